"""The user's own words, searched before the model is asked: which tools come with a message, and what is said of them.

The model gets these tools in the round in which it would have searched for them. The user may want no tool at all, so
little is delivered: the best hit, and others only where the search is fairly sure of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolsearch.catalog.tools import Tool
from toolsearch.search.index import Hits
from toolsearch.session.delivery import IN_TEXT
from toolsearch.session.loaded import LoadedTools
from toolsearch.session.meta_tool import schema_text
from toolsearch.session.searching import SearchLog
from toolsearch.settings import Settings
from toolsearch.tokens import ESTIMATE

__all__ = ["Preselection"]

LIKELY = 0.2  # the least confidence of the best tool, where there are many: else talk brings tools all the time
MANY = 50  # tools; of fewer, even the right one may have a low confidence
FAIRLY_SURE = 0.3  # the least confidence of the others
_ROUND = str.maketrans("[]", "()")
END = 300  # characters of each end of a long text: together about as many words as an index reads of a query


@dataclass(frozen=True)
class Preselection:
    """What comes with the messages of one conversation. Not thread-safe by itself: its session holds a lock."""

    settings: Settings
    tools: LoadedTools
    searching: SearchLog

    def most(self, limit: int | None = None) -> int:
        """The most tools that come with a message; 0 if its words are not searched."""
        native = self.tools.native
        if self.tools.mode == "static" or (self.tools.mode == "native" and native and not native.with_messages):
            return 0
        return self.settings.most_preselected if limit is None else limit

    def deliver(self, hits: Hits, most: int) -> str:
        """Loads what is worth it and new to the model; returns the text for the user's message, empty if nothing is.

        No tool leaves for one that nobody asked for: only the room that is left is used.
        """
        wanted = [live for tool in _worth(hits, most, self._least) if (live := self.tools.live(tool.id)) is not None]
        new = [tool for tool in wanted if not self.searching.has_shown(tool)]
        while new and not (self.tools.has_room_for(new) and self._is_short(new)):
            new.pop()
        if not new:
            return ""
        self.searching.deliver(hits, new)
        return self._text(new)

    @property
    def _least(self) -> float:
        """The least confidence of the best tool."""
        return LIKELY if self.tools.searchable >= MANY else 0.0

    def _is_short(self, tools: Sequence[Tool]) -> bool:
        """Whether the text costs no more than a search result may; the best tool is shown in any case."""
        return len(tools) == 1 or ESTIMATE.count(self._text(tools)) <= self.settings.answer_tokens

    def _text(self, tools: Sequence[Tool]) -> str:
        """In brackets, as all that the program adds: these words are not the user's."""
        what = "Loaded for this message, if it fits" if len(tools) == 1 else "Loaded for this message, if one fits"
        if self.tools.mode not in IN_TEXT:
            return f"\n\n[{what}: {', '.join(map(self.tools.name_of, tools))}.]"
        doors = dict.fromkeys(self.settings.door_of(tool.kind) for tool in tools)
        lines = [
            f"- {self.tools.name_of(t)}: {_plain(t)}\n  arguments: {schema_text(t, in_brackets=True)}" for t in tools
        ]
        return "\n".join((f"\n\n[{what}; call it through {' or '.join(doors)}:", *lines)) + "]"


def _plain(tool: Tool) -> str:
    """A tool's summary without a bracket that could seem to end the program's words, and begin the user's."""
    return tool.summary().translate(_ROUND)


def query_of(text: str) -> str:
    """The user's words as a query. Of a long text its two ends: people ask before what they paste, or after it."""
    text = text.strip()
    return text if len(text) <= 2 * END else f"{text[:END]}\n{text[-END:]}"


def _worth(hits: Hits, most: int, least: float) -> list[Tool]:
    """The best hit, if it is likely enough, and behind it those of which the search is fairly sure."""
    return [
        hit.tool
        for rank, hit in enumerate(hits[:most])
        if (rank == 0 if hit.confidence is None else hit.confidence >= (FAIRLY_SURE if rank else least))
    ]
