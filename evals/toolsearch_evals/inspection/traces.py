"""A trace: the conversations of some files, with what could not be read of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from toolsearch import SetupError, StateError
from toolsearch.layers import RecordedTurn
from toolsearch_evals.inspection.gateway_turns import turn_of_log
from toolsearch_evals.inspection.rounds import drop_unknown_losses
from toolsearch_evals.inspection.steps import Turn, Words, turn_of_record
from toolsearch_evals.inspection.turns import turns_of_facts
from toolsearch_evals.recording.files import Damaged, Recorded, check_turn, read_recorded
from toolsearch_evals.recording.gateway_log import turns_of_log
from toolsearch_evals.recording.needs import needs_of

__all__ = ["Conversation", "Trace", "read_trace"]

_TOLD = 20  # places that cannot be read, which are named one by one


@dataclass(frozen=True)
class Conversation:
    """One conversation: its id as people may see it, what it was read from, and its turns.

    `source` is "journal", "record" or "gateway". `recorded` has the turns as `record` keeps them, for reports.
    """

    id: str
    file: str
    source: str
    turns: Sequence[Turn]
    recorded: Sequence[RecordedTurn]

    @property
    def began(self) -> float:
        """Seconds since the epoch; 0 where no time was kept."""
        return min((turn["at"] for turn in self.turns if turn.get("at")), default=0.0)


@dataclass
class Trace:
    """Conversations, those that began last first. `damaged` counts the places that could not be read."""

    name: str
    conversations: list[Conversation] = field(default_factory=list)
    damaged: int = 0
    told: list[str] = field(default_factory=list)  # the first of these places

    @property
    def recorded(self) -> list[RecordedTurn]:
        """All turns as `record` keeps them."""
        return [turn for each in self.conversations for turn in each.recorded]

    def note_damage(self, why: str) -> None:
        """Counts a place that cannot be read, and keeps what was said of the first ones."""
        self.damaged += 1
        if len(self.told) < _TOLD:
            self.told.append(why)


def read_trace(files: Sequence[Path], words: Words, only: Sequence[str] = ()) -> Trace:
    """The trace of these files, or of their conversations with these ids only.

    What is damaged in a file is noted. Raises `SetupError` for a file that is none of those that `read_recorded` reads,
    and if no turn is left.
    """
    trace = Trace(", ".join(file.name for file in files))
    there: dict[str, None] = {}
    times: Counter[str] = Counter()
    for found in read_recorded(files, trace.note_damage):
        name = found.conversation or "gateway"
        there[name] = None
        shown = words.name(name)
        if only and not {name, shown} & {*only}:
            continue
        made = [*_turns(found, words, trace.note_damage)]
        turns = [turn for turn, _ in made if turn["steps"]]
        if not turns:
            continue
        times[shown] += 1
        shown = shown if times[shown] == 1 else f"{shown} ({times[shown]})"  # several files may have it
        recorded = [replace(of, conversation=shown) for _, of in made if of is not None and _is_sound(of, trace)]
        trace.conversations.append(Conversation(shown, found.file.name, _source(found), turns, recorded))
    if not trace.conversations:
        raise SetupError(_nothing(trace, only, [*there]))
    drop_unknown_losses(turn for each in trace.conversations for turn in each.turns)
    trace.conversations.sort(key=lambda each: -each.began)
    return trace


def _turns(of: Recorded, words: Words, damaged: Damaged) -> Iterator[tuple[Turn, RecordedTurn | None]]:
    if of.facts:
        yield from turns_of_facts(of.conversation, of.facts, words, damaged)
    for turn in of.turns:
        rewritten = turn.rewritten(words.redact)
        yield turn_of_record(rewritten, needs_of(rewritten), words), rewritten
    if of.log:
        recorded = [turn.rewritten(words.redact) for turn in turns_of_log(of.conversation, of.log)]
        yield turn_of_log(of.log, recorded, words), next(iter(recorded), None)


def _is_sound(turn: RecordedTurn, trace: Trace) -> bool:
    """Whether everything in a turn is of its type, so that tables can be made of it."""
    try:
        check_turn(turn)
    except StateError as error:
        trace.note_damage(f"a turn of {turn.conversation!r} is in no table: {error}")
        return False
    return True


def _source(of: Recorded) -> str:
    return "journal" if of.facts else "record" if of.turns else "gateway"


def _nothing(trace: Trace, only: Sequence[str], there: Sequence[str]) -> str:
    if only:
        near = f"; there are {', '.join(map(repr, there[:5]))}" if there else ""
        return f"there is no conversation {only[0]!r} in {trace.name!r}{near}"
    damage = f": {trace.told[0]}" if trace.told else ": name journals, lines of `record`, or the log of a gateway"
    return f"there is no turn in {trace.name!r}{damage}"
