"""Labelled cases drafted from recorded turns: the gold are the tools that were called with success."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch import Catalog
from toolsearch.events import Event
from toolsearch.layers import RecordedTurn, private, record
from toolsearch_evals.data.cases import Case
from toolsearch_evals.data.drafts import Drafts
from toolsearch_evals.data.files import JsonObject
from toolsearch_evals.recording.needs import called, needs_of

__all__ = ["DraftedCases", "cases_from", "drafted_cases"]


@dataclass(frozen=True)
class DraftedCases:
    """Lines for `cases.jsonl`, and what was not made into one.

    `unknown` are tools that were called and are not in the catalog; `silent` counts the turns that say nothing about
    what they needed: neither a tool was called with success, nor a search was in vain.
    """

    drafts: Drafts
    unknown: tuple[str, ...] = ()
    silent: int = 0


def cases_from(
    journal: Iterable[Event | Mapping[str, Any]], *, redact: Callable[[str], str] = private
) -> tuple[Case, ...]:
    """The cases of one journal: facts, or what a store has of them. Each is a draft.

    A turn gives a case in the user's words, and one in the agent's words for each of its searches that led to a call.
    """
    lines = drafted_cases(record.of(journal, redact=redact)).drafts.lines
    return tuple(
        Case(
            id=line["id"],
            query=line["query"],
            gold=tuple(map(tuple, line["gold"])),
            wording=line["wording"],
            split=line["split"],
            draft=True,
        )
        for line in lines
    )


def drafted_cases(turns: Iterable[RecordedTurn], catalog: Catalog | None = None) -> DraftedCases:
    """Drafts from turns, each pair of a query and its tools once; of tools in the catalog only, if there is one."""
    lines: dict[tuple[str, str, tuple[str, ...]], JsonObject] = {}
    unknown: dict[str, None] = {}
    silent = 0
    for turn in turns:
        needed = [i for i in called(turn) if catalog is None or i in catalog]
        missing = [i for i in called(turn) if i not in needed]
        unknown |= dict.fromkeys(missing)
        made = [] if missing else list(_cases(turn, needed))
        silent += not (made or missing)
        for wording, query, gold, note in made:
            key = wording, query.casefold(), tuple(sorted(gold))
            lines.setdefault(key, _line(len(lines) + 1, turn, wording, query, gold=gold, note=note))
    return DraftedCases(Drafts(tuple(lines.values())), tuple(unknown), silent)


def _cases(turn: RecordedTurn, needed: list[str]) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Wording, query, tools and a note for the reviewer."""
    asked = " ".join(turn.said.split())
    if needed and asked:
        yield "user", asked, tuple(needed), "recorded: these tools were called with success in this turn"
    searched = [search for search in turn.searches if search.status == "ok" and search.queries]
    if not needed and asked and searched and all(search.in_vain for search in searched):
        yield "user", asked, (), "recorded: every search was in vain. Is there really no tool that does it?"
    for search, tools in zip(turn.searches, needs_of(turn), strict=True):
        if tools and search.queries:
            several = "" if len(search.queries) == 1 else "; several queries in one: split it"
            note = f"recorded: these tools were called after this search{several}"
            yield "agent", "; ".join(search.queries), tools, note


def _line(number: int, turn: RecordedTurn, wording: str, query: str, *, gold: tuple[str, ...], note: str) -> JsonObject:
    """One line. All cases of a conversation are in one split, so that none is tuned on and reported."""
    split = "test" if hashlib.sha256(turn.conversation.encode()).digest()[0] % 2 else "dev"
    return {
        "id": f"recorded-{number:03}",
        "query": query,
        "gold": [[tool] for tool in gold],
        "wording": wording,
        "split": split,
        "draft": True,
        "note": note,
    }
