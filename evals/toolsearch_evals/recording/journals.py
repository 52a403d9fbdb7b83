"""Turns read from files: journals that a store keeps or a conversation exports, and lines that `record` wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from toolsearch import SetupError
from toolsearch.layers import RecordedTurn, private, record
from toolsearch_evals.recording.files import Recorded, read_recorded
from toolsearch_evals.recording.gateway_log import turns_of_log

__all__ = ["read_turns", "turns_of"]


def read_turns(files: Iterable[Path], redact: Callable[[str], str] = private) -> list[RecordedTurn]:
    """The turns of these files, and of all such files in folders, each text redacted.

    The files are those of `read_recorded`. Raises `SetupError`, naming the file and the place, for anything that cannot
    be read, and if there is no turn in any of them.
    """
    turns = [turn for each in read_recorded(files, _refuse) for turn in turns_of(each, redact)]
    if not turns:
        raise SetupError("there is no turn in these files: name journals, or files that `record` wrote")
    return turns


def turns_of(recorded: Recorded, redact: Callable[[str], str] = private) -> Iterator[RecordedTurn]:
    """The turns of a conversation, each text redacted."""
    if recorded.facts:
        yield from record.of(recorded.facts, conversation=recorded.conversation, redact=redact)
    yield from (
        turn.rewritten(redact) for turn in (*recorded.turns, *turns_of_log(recorded.conversation, recorded.log))
    )


def _refuse(why: str) -> NoReturn:
    raise SetupError(why)
