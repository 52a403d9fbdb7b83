"""What the search box answers: what a query finds by each index, and what a model would get of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from toolsearch import Catalog, SetupError, Tool, ToolCall, ToolSearch
from toolsearch.cli.output import hits_as_json
from toolsearch.tokens import counter
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.data.files import definition_of
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.own_tokens import catalog_tokens
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["SearchBox"]

HITS = 10  # of an index that are shown
LONGEST = 2_000  # characters of a query


class SearchBox:
    """A catalog with several indexes over it. `answer` may be called from any thread."""

    def __init__(self, catalog: Catalog, indexes: Sequence[str]) -> None:
        if twice := [name for name in indexes if indexes.count(name) > 1]:
            raise SetupError(f"the index {twice[0]!r} is named twice")
        self.catalog = catalog
        self._searches = {
            label(name): ToolSearch(catalog, open_backend(name), mode="append", run=_never) for name in indexes
        }
        self._tokens: dict[tuple[str, str], int] = {}

    @property
    def indexes(self) -> tuple[str, ...]:
        """The names of the indexes, in their order."""
        return tuple(self._searches)

    def answer(self, query: str) -> list[dict[str, Any]]:
        """For each index: its hits, and the answer that a model reads, with the tokens of both that and the tools."""
        return [self._answer_of(name, search, query[:LONGEST]) for name, search in self._searches.items()]

    def _answer_of(self, name: str, search: ToolSearch, query: str) -> dict[str, Any]:
        search.wait()
        began = time.perf_counter()
        hits = search.find(query, HITS)
        seconds = time.perf_counter() - began
        session = search.session()
        try:
            result = session.handle(ToolCall("1", search.settings.search_tool, {"queries": [query]}))
        finally:
            search.end_session(session.id)
        data = result.data if isinstance(result.data, Mapping) else {}
        loaded = [self.catalog[i] for i in data.get("loaded", ()) if i in self.catalog]
        tokens = [self._tokens_of(tool) for tool in loaded]
        found = {key: value for key, value in hits_as_json(hits, self.catalog).items() if key in _SHOWN}
        return {
            **found,
            "index": name,
            "seconds": seconds,
            "problem": hits.problem,
            "loaded": [{"id": tool.id, "tokens": each} for tool, each in zip(loaded, tokens, strict=True)],
            "loaded_tokens": sum(tokens),
            "named": list(data.get("named", ())),
            "answer": result.content,
            "answer_tokens": self._meter.count(result.content),
        }

    def _tokens_of(self, tool: Tool) -> int:
        """Tokens of a definition in a request, counted once for each version of it."""
        key = tool.id, tool.digest
        if key not in self._tokens:
            one = catalog_tokens(Catalog([definition_of(tool)]), FORMATS["openai_chat"], self._meter)
            self._tokens[key] = one.tools[0].tokens if one.tools else 0
        return self._tokens[key]

    @cached_property
    def _meter(self) -> TokenMeter:
        return TokenMeter(counter())


_SHOWN = ("query", "verdict", "hits", "unknown", "near", "hint", "degraded")


def _never(tool: object, arguments: object, context: object) -> str:
    """No tool runs here: a search box only searches."""
    raise SetupError("the search box runs no tool")
