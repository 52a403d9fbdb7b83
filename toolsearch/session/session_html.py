"""How a notebook shows a session: how its tools are delivered and why, and which tools its model has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolsearch.catalog.tools import Shown, Tool, definition_tokens
from toolsearch.session.delivery import IN_TEXT, Delivery
from toolsearch.support.html import table
from toolsearch.support.text import counted

__all__ = ["session_html"]

MOST_TOOLS = 50
HEADS = ("tool", "what it is", "called", "tokens, about", "summary")


def session_html(title: str, mode: Delivery, shown: Sequence[Shown], loaded: Iterable[Tool], through: str) -> str:
    """A table of the tools that the model is `shown`, then of those that are `loaded` and not among these.

    `through` is the tool by which found tools are called in the mode "bridge", where no request carries them.
    """
    found = {tool.id: tool for tool in loaded}
    found_word = "listed" if mode == "static" else "found"
    rows = [
        _row(each.tool, "built in" if each.built_in else found_word if each.tool.id in found else "pinned", each.name)
        for each in shown
    ]
    listed = {each.tool.id for each in shown}
    called = f"through {through}" if mode in IN_TEXT else "in the next request"
    rows += [_row(tool, found_word, called) for tool_id, tool in found.items() if tool_id not in listed]
    tokens = sum(definition_tokens(each.tool) for each in shown)
    note = f"A request carries {counted(len(shown), 'tool')}, about {tokens:,} tokens of definitions."
    return table(title, HEADS, rows, note=note, most=MOST_TOOLS)


def _row(tool: Tool, what: str, called: str) -> tuple[str, ...]:
    return tool.id, what, called, f"{definition_tokens(tool):,}", tool.summary()
