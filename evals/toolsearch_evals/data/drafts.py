"""Drafts of labelled cases for one's own tools, to be edited: from example queries, from a model, or empty forms.

A draft says that it is one. Reports count drafts, and `problems` names them until somebody has read them.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolsearch import Catalog, SetupError, Tool
from toolsearch_evals.data.files import JsonObject, as_lines, definition_of

__all__ = ["Drafts", "draft_cases", "tools_to_label", "write_drafts"]

ANSWERABLE = 9  # drafts to one request that no tool can meet: a tenth of all, which `datasets check` asks for
_FILES = ("tools.jsonl", "cases.jsonl", "README.md")


@dataclass(frozen=True)
class Drafts:
    """Lines for `cases.jsonl`. `written` of them have a query; the others are forms to fill in."""

    lines: tuple[JsonObject, ...]

    @property
    def written(self) -> int:
        return sum(bool(line["query"]) for line in self.lines)


def tools_to_label(catalog: Catalog, most: int, seed: int = 0) -> list[Tool]:
    """At most so many tools, drawn with a seed and in turn from every server, in the order of the catalog."""
    rng = random.Random(seed)
    servers: dict[str, list[Tool]] = {}
    for tool in catalog:
        servers.setdefault(tool.server or "", []).append(tool)
    for group in servers.values():
        rng.shuffle(group)
    taken: list[str] = []
    while len(taken) < most and any(servers.values()):
        taken += [group.pop().id for group in servers.values() if group]
    chosen = {*taken[:most]}
    return [tool for tool in catalog if tool.id in chosen]


def draft_cases(tools: Sequence[Tool], queries: Mapping[str, Sequence[str]], by: str) -> Drafts:
    """A draft for each query, by tool id, of the tools; an empty form for a tool without any.

    A tenth of all are forms for requests that no tool can meet. Half of the cases are for tuning and half for
    reporting; which, the digest of the id decides. `by` says who wrote the queries.
    """
    lines: list[JsonObject] = []
    for tool in tools:
        for query in queries.get(tool.id, ()) or ("",):
            note = f"draft by {by}" if query else f"write a request for: {tool.summary(100)}"
            lines.append(_line(len(lines) + 1, query, [[tool.id]], note))
    for _ in range(math.ceil(len(lines) / ANSWERABLE)):
        lines.append(_line(len(lines) + 1, "", [], "write a request that none of your tools can meet"))
    return Drafts(tuple(lines))


def _line(number: int, query: str, gold: list[list[str]], note: str) -> JsonObject:
    case_id = f"own-{number:03}"
    is_odd = hashlib.sha256(case_id.encode()).digest()[0] % 2
    split = "test" if is_odd else "dev"
    return {"id": case_id, "query": query, "gold": gold, "wording": "user", "split": split, "draft": True, "note": note}


def write_drafts(catalog: Iterable[Tool], drafts: Drafts, folder: Path) -> list[Path]:
    """Writes tools, drafts and a page on how to label into a folder. Returns the files.

    The tools are written without example queries: a request that is searched for by itself is always found. Raises
    `SetupError` if one of the files exists already, for it may hold somebody's labels.
    """
    for name in _FILES:
        if (folder / name).exists():
            raise SetupError(f"{str(folder / name)!r} exists already, and may hold your labels: name another folder")
    definitions = [{k: v for k, v in definition_of(tool).items() if k != "examples"} for tool in catalog]
    texts = (as_lines(definitions), as_lines(drafts.lines), _README)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in zip(_FILES, texts, strict=True):
            (folder / name).write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise SetupError(f"the drafts cannot be written to {str(folder)!r}: {error.strerror}") from None
    return [folder / name for name in _FILES]


_README = """\
# How to label these cases

`tools.jsonl` has your tools, one a line. `cases.jsonl` has requests, each with the tools that meet it. Every line is
a **draft** until you have read it:

1. Is the `query` something that your users would type, or your agent would search for? Reword it until it is. Avoid
   the words of the tool's name: people do not know it.
2. Does the tool in `gold` do it? `gold` is a list of needs, and each need a list of tools of which any one will do:
   `[["a"]]` needs a; `[["a", "b"]]` needs a or b; `[["a"], ["b"]]` needs both; `[]` means that no tool can do it.
   **Add every other tool that would do it too**; a missing one counts as a miss of the search.
3. `wording` is `user` for what a person types and `agent` for the short query that a model writes.
4. `split`: tune on `dev`, report on `test`.
5. Take `"draft": true` out of the line, or delete the line.

A good set has requests that no tool can meet, at least one in ten, and some that need several tools. Real requests
from your logs are better than any draft. From about 100 cases on, differences of ten points can be told from chance.

    toolsearch eval datasets check --data FOLDER     # what is wrong, and how many drafts are left
    toolsearch eval ranking --data FOLDER            # how well your tools are found
    toolsearch eval savings --data FOLDER            # what search saves on them
"""
