"""Limits of a turn: rounds, calls, repetitions, searches, tokens and money; reaching one is told, or ends the turn.

Successes count as much as failures. What is counted is read from the journal, so a turn that is resumed, in this
process or another, has no more than one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import Ending, JudgedCall, ModelCalled, Noted
from toolsearch.events.requests import Round
from toolsearch.events.turn_view import TurnView, fingerprint, is_one_of
from toolsearch.protocols import Record, RoundSteps, ToolAnswer
from toolsearch.support import checks

__all__ = ["limits"]


def limits(
    *,
    soft: int | None = 16,
    hard: int | None = 18,
    steps: int | None = None,
    identical: int | None = 3,
    polling: Iterable[str] = (),
    per_tool: int | None = 40,
    tools: Mapping[str, int | None] | None = None,
    calls: int | None = 150,
    uncounted: Iterable[str] = (),
    searches: int | None = 10,
    tokens: int | None = None,
    cost: float | None = None,
    price: Callable[[ModelCalled], float | None] | None = None,
    excess: Literal["answer", "end"] = "answer",
) -> Any:
    """A layer that bounds a turn; None takes a bound away.

    `soft`, `hard`: rounds of calls; past `soft` no call runs and the model is told to answer, past `hard` the turn
    ends. `steps`: replies with calls; the calls of the last one run, and the turn ends as if it were answered.
    `identical`: how often a tool runs with the same arguments; not for those in `polling`, nor those marked so.
    `per_tool`, with another number for those in `tools`, and `calls` in all; those in `uncounted` count for neither.
    `searches`: calls of the search tool. `tokens`, in and out, and `cost`, in what `price` gives for a model call
    (None: not known, 0), of the turn so far. Tools are given by id or name.

    `excess` "answer" answers a call that is too much and goes on; "end" runs nothing of its round and ends the turn. A
    budget of tokens or money that is used up is told once; after that, or with "end" at once, the turn ends.
    """
    own = checks.table("tools", tools, "numbers of calls", none=True)
    numbers = {
        "soft": soft, "hard": hard, "steps": steps, "identical": identical, "per_tool": per_tool, "calls": calls,
        "searches": searches, "tokens": tokens,
        **{f"tools[{name!r}]": most for name, most in own.items()},
    }  # fmt: skip
    for name, bound in numbers.items():
        checks.whole(name, bound, none="for no such limit")
    checks.number("cost", cost, none="for no such limit")
    checks.function("price", price, "from a ModelCalled to what it cost", none="without a limit of cost")
    if cost is not None and price is None:
        raise SetupError("a limit of cost needs price=, a function from a ModelCalled to what it cost")
    checks.choice("excess", excess, "answer", "end")
    if soft is not None and hard is not None and hard < soft:
        raise SetupError(f"hard ({hard}) must not be below soft ({soft}): give both, the same number to never wrap up")
    return _Limits(
        soft,
        hard,
        steps,
        identical,
        frozenset(checks.names("polling", polling)),
        per_tool,
        own,
        calls,
        frozenset(checks.names("uncounted", uncounted)),
        searches,
        tokens,
        cost,
        price,
        excess,
    )


@dataclass(frozen=True, slots=True)
class _Excess:
    """A limit that is reached: its name for people and metrics, what the model is told, and what to do."""

    outcome: str
    reason: str
    text: str
    ends: bool = False


@dataclass(frozen=True)
class _Limits:
    soft: int | None
    hard: int | None
    steps: int | None
    identical: int | None
    polling: frozenset[str]
    per_tool: int | None
    tools: Mapping[str, int | None]
    calls: int | None
    uncounted: frozenset[str]
    searches: int | None
    tokens: int | None
    cost: float | None
    price: Callable[[ModelCalled], float | None] | None
    excess: str
    name: str = "limits"
    gate: bool = True

    def around_round(self, request: Round) -> RoundSteps:
        """The whole round first, then call by call: what is cancelled never comes here."""
        verdict = self._verdict(request.turn)
        if verdict is not None:
            yield Record(self._noted(verdict, request.turn.rounds))
            if verdict.ends:
                yield Record(Ending(verdict.reason, by=self.name))
            return {call.id: synthetic.limited(call, verdict.text) for call in request.calls}
        refused = dict(self._refused(request))
        for call_id, found in refused.items():
            yield Record(self._noted(found, request.turn.rounds, call_id))
        if refused and self.excess == "end":
            first = next(iter(refused.values()))
            yield Record(Ending(first.reason, by=self.name))
            rest = f"the turn has reached a limit ({first.reason}) and ends here."
            return {call.id: synthetic.limited(call, _text(refused.get(call.id), rest)) for call in request.calls}
        if self.steps is not None and request.turn.rounds >= self.steps and not _is_ending(request.turn):
            yield Record(Ending("step limit", by=self.name))
        answers: dict[str, ToolAnswer] = {
            call.id: synthetic.limited(call, refused[call.id].text) for call in request.calls if call.id in refused
        }
        if len(answers) < len(request.calls):
            answers |= yield request.without(answers)
        return answers

    def _noted(self, found: _Excess, round_number: int, call_id: str = "") -> Noted:
        note = {"outcome": found.outcome, "reason": found.reason, "round": round_number}
        return Noted(self.name, note | {"call": call_id} if call_id else note)

    # -- the whole round -----------------------------------------------------------------------------------------

    def _verdict(self, turn: TurnView) -> _Excess | None:
        """A hard stop goes before wrapping up."""
        rounds = turn.rounds
        found = [self._rounds(rounds)]
        if self.tokens is not None and (used := turn.usage.tokens) > self.tokens:
            found.append(self._budget(turn, "token budget", f"{used:,} of {self.tokens:,} tokens"))
        if self.cost is not None and self.price is not None:
            paid = sum(self.price(e) or 0.0 for e in turn.facts if isinstance(e, ModelCalled))
            if paid > self.cost:
                found.append(self._budget(turn, "cost budget", f"{paid:.4g} of {self.cost:.4g}"))
        reached = [each for each in found if each is not None]
        return next((each for each in reached if each.ends), reached[0] if reached else None)

    def _rounds(self, rounds: int) -> _Excess | None:
        reason = "round limit"
        if self.hard is not None and rounds > self.hard:
            text = f"the turn has had {self.hard} rounds of calls, the most there are, and ends here."
            return _Excess("hard-stop", reason, text, ends=True)
        if self.soft is not None and rounds > self.soft:
            text = (
                f"the turn has had {self.soft} rounds of calls, and nothing more runs in it. Make no more calls: "
                "answer now with what you have, and say what is missing."
            )
            return _Excess("wrap-up", reason, text)
        return None

    def _budget(self, turn: TurnView, reason: str, used: str) -> _Excess:
        """Told in one round; if the model calls again, that is the end."""
        told = any(note["reason"] == reason and note["round"] < turn.rounds for note in turn.notes(self.name))
        if told or self.excess == "end":
            return _Excess(
                "hard-stop", reason, f"the {reason} of the turn is used up ({used}), and it ends here.", True
            )
        text = (
            f"the {reason} of the turn is used up ({used}), and nothing more runs in it. Make no more calls: answer "
            "now with what you have, and say what is missing."
        )
        return _Excess("wrap-up", reason, text)

    # -- call by call --------------------------------------------------------------------------------------------

    def _refused(self, request: Round) -> Iterator[tuple[str, _Excess]]:
        """The calls that are too much, by id. A call that was refused counts for nothing."""
        judged = {call.id for call in request.calls if call.id not in request.approved}  # those were judged before
        results = request.turn.results
        counted = 0
        same: dict[str, list[JudgedCall]] = {}  # the calls so far, by tool
        for call in request.turn.calls:
            result = results.get(call.id)
            if result is not None and result.status == "limit":
                continue
            before = same.setdefault(call.tool or call.name, [])
            if call.id in judged and (found := self._too_much(call, before, counted)) is not None:
                yield call.id, found
                continue
            before.append(call)
            counted += not self._is_uncounted(call)

    def _too_much(self, call: JudgedCall, same: list[JudgedCall], counted: int) -> _Excess | None:
        """The limit that this call would go beyond, after those of the same tool, and so many in all."""
        if self.identical is not None and len(same) >= self.identical and not self._polls(call):
            alike = [c for c in same if c.given == call.given]  # quick, and true of whatever has the same fingerprint
            this = fingerprint(call) if len(alike) >= self.identical else ""
            if this and sum(1 for c in alike if fingerprint(c) == this) >= self.identical:
                way = _SEARCHED if call.kind == "search" else _CALLED
                text = f"it was made {self.identical} times with the same arguments in this turn, and its answers are "
                return _Excess("repeated", "repeated call", f"{text}above. {way}")
        if call.kind == "search" and self.searches is not None and len(same) >= self.searches:
            text = (
                f"there were {self.searches} searches in this turn, the most there are. Do not search again in it: "
                "call a tool that is loaded, or answer with what you have and say what is missing."
            )
            return _Excess("search-limit", "search limit", text)
        if self._is_uncounted(call):
            return None
        most = self._most(call)
        if call.kind != "search" and most is not None and len(same) >= most:
            text = f"it was called {most} times in this turn, the most there is. Do not call it again in it; " + _GO_ON
            return _Excess("call-limit", "call limit", text)
        if self.calls is not None and counted >= self.calls:
            text = f"there were {self.calls} calls in this turn, the most there are. Make no more in it; " + _GO_ON
            return _Excess("call-limit", "call limit", text)
        return None

    def _is_uncounted(self, call: JudgedCall) -> bool:
        return bool(self.uncounted) and is_one_of(call, self.uncounted)

    def _polls(self, call: JudgedCall) -> bool:
        return call.marks.polling or is_one_of(call, self.polling)

    def _most(self, call: JudgedCall) -> int | None:
        own = next((name for name in self.tools if is_one_of(call, (name,))), None)
        return self.per_tool if own is None else self.tools[own]


_GO_ON = "answer with what you have, and say what is missing."
_CALLED = "Use what it gave, change the arguments, or go on without it."
_SEARCHED = "Call one of the tools that it loaded, or search for something else."


def _text(found: _Excess | None, rest: str) -> str:
    return rest if found is None else found.text


def _is_ending(turn: TurnView) -> bool:
    return any(isinstance(fact, Ending) for fact in turn.facts)
