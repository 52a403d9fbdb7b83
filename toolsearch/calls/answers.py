"""The answers that the library itself gives in a tool's place, all within one bound.

They repeat what others wrote: a model's names and arguments, a server's names, enums and patterns, the text of an
exception. Nothing cuts them later, because no tool ran that a layer could work around.
"""

from __future__ import annotations

from toolsearch.calls.values import Status, ToolResult

__all__ = ["ANSWER_CHARACTERS", "CALL_NAME_CHARACTERS", "answer", "bounded"]

ANSWER_CHARACTERS = 20_000  # of one answer
CALL_NAME_CHARACTERS = 1_000  # of the name in a call; no tool has one as long


def answer(call_id: str, name: str, status: Status, text: str, data: object = None) -> ToolResult:
    """One answer, its text cut where it is too long."""
    return ToolResult(call_id, name, status, bounded(text), data)


def bounded(text: str, most: int = ANSWER_CHARACTERS) -> str:
    """The text within a number of characters; its end says that it was cut."""
    if len(text) <= most:
        return text
    mark = f"… [cut: {most:,} of {len(text):,} characters]"
    return text[: max(0, most - len(mark))] + mark
