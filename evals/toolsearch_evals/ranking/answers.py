"""What a model reads when it searches: the tools that an answer loads or names, and the tokens that it costs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from toolsearch import Catalog, Session, Settings, ToolCall, ToolIndex, ToolSearch
from toolsearch.tokens import TokenCounter, counter
from toolsearch.wires import openai_chat
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["AnswerReader", "SearchAnswer"]

SETTINGS = Settings.of(mode="append")  # and the defaults, as a program has them that sets nothing


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The ids of the tools that the answer shows, the loaded ones first, and its tokens with their definitions."""

    shown: tuple[str, ...]
    tokens: int


class AnswerReader:
    """Searches with the search tool, each time as the first search of a new conversation.

    Making one fills the index with the catalog's tools.
    """

    def __init__(self, catalog: Catalog, index: ToolIndex, tokens: TokenCounter | None = None) -> None:
        self._search = ToolSearch(catalog, index, settings=SETTINGS)
        self._meter = TokenMeter(tokens or counter())

    def read(self, query: str) -> SearchAnswer | None:
        """The answer to one query; None if the search failed."""
        session = self._search.session()
        try:
            call = ToolCall("call_1", self._search.settings.search_tool, {"queries": [query]})
            result = session.handle(call)
            if not result.ok or not isinstance(result.data, dict):
                return None
            tokens = self._meter.count(result.content) + sum(map(self._meter.count, _definitions(session)))
            return SearchAnswer(_shown(result.data), tokens)
        finally:
            self._search.end_session(session.id)


def _definitions(session: Session) -> Iterable[str]:
    """What the found tools add to the list of tools, as it is sent."""
    built_in = session.shown()
    listed = openai_chat.tools_for(session)
    return (json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in listed[len(built_in) :])


def _shown(data: dict[str, object]) -> tuple[str, ...]:
    ids = [i for key in ("loaded", "already_loaded", "named") for i in _ids(data.get(key))]
    return tuple(dict.fromkeys(ids))


def _ids(value: object) -> list[str]:
    return [i for i in value if isinstance(i, str)] if isinstance(value, list) else []
