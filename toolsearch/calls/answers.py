"""The answers that the library itself gives in a tool's place, all within one bound.

They repeat what others wrote: a model's names and arguments, a server's names, enums and patterns, the text of an
exception. Nothing cuts them later, because no tool ran that a layer could work around.
"""

from __future__ import annotations

from toolsearch.calls.values import Status, ToolResult
from toolsearch.support.text import bounded

__all__ = ["ANSWER_CHARACTERS", "CALL_NAME_CHARACTERS", "answer"]

ANSWER_CHARACTERS = 20_000  # of one answer
CALL_NAME_CHARACTERS = 1_000  # of the name in a call; no tool has one as long


def answer(call_id: str, name: str, status: Status, text: str, data: object = None) -> ToolResult:
    """One answer, its text cut where it is too long."""
    return ToolResult(call_id, name, status, bounded(text, ANSWER_CHARACTERS), data)
