"""What each search of a turn was for: the tools that were called with success after it.

A call counts for the last search before it whose answer showed the tool, and for the searches in vain that led there.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch.layers import RecordedTurn

__all__ = ["called", "needs_of"]


def called(turn: RecordedTurn) -> tuple[str, ...]:
    """The ids of the tools that were called with success in the turn, each once."""
    return tuple(dict.fromkeys(call.tool for call in turn.calls if call.tool and call.status == "ok"))


def needs_of(turn: RecordedTurn) -> list[tuple[str, ...]]:
    """For each search of the turn the tools that it was for, in the order of the calls; empty where none was called.

    A tool that no search of the turn showed counts for none: it was loaded in an earlier turn, or is always there.
    """
    needs: list[dict[str, None]] = [{} for _ in turn.searches]
    for call in turn.calls:
        if not call.tool or call.status != "ok":
            continue
        before = turn.searches[: call.after]
        shown = [at for at, search in enumerate(before) if call.tool in search.shown]
        if shown:
            for at in (*_in_vain_before(turn, shown[-1]), shown[-1]):
                needs[at][call.tool] = None
    return [tuple(each) for each in needs]


def _in_vain_before(turn: RecordedTurn, at: int) -> Sequence[int]:
    """The searches in vain that come directly before this one."""
    first = at
    while first and turn.searches[first - 1].in_vain:
        first -= 1
    return range(first, at)
