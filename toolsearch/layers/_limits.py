"""Limits of a turn: rounds, calls, repetitions, searches, tokens and money. Beyond one, calls are answered or it ends.

Successes count as much as failures. The counts are read from the journal, so a turn that is resumed, in this process or
another, gets no more than one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.facts import Ending, JudgedCall, ModelCalled, Noted
from toolsearch.events.requests import Round
from toolsearch.events.turn_view import TurnView, fingerprint, is_one_of
from toolsearch.layers._shared import setting_for
from toolsearch.protocols import Layer, Record, RoundSteps, ToolAnswer
from toolsearch.support import checks

__all__ = ["limits"]

Excess: TypeAlias = Literal["answer", "end"]
NO_LIMIT = "for no such limit"


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
    unknown: int | None = 5,
    tokens: int | None = None,
    cost: float | None = None,
    price: Callable[[ModelCalled], float | None] | None = None,
    excess: Excess = "answer",
) -> Layer:
    """A layer that bounds a turn; None removes a bound.

    `soft`, `hard`: rounds of calls; after `soft` no call runs and the model is asked to answer, after `hard` the turn
    ends. `steps`: rounds of calls that run; the reply after the last one is the answer, and calls in it do not run.
    `identical`: how often a tool runs with the same arguments, except tools in `polling` and those marked so.
    `per_tool`: calls of one tool, with other numbers in `tools`; `calls`: calls in all; tools in `uncounted` count for
    neither. `searches`: calls of the search tool. `unknown`: calls in a row of tools that do not exist, whatever their
    names; after twice as many the turn ends. `tokens` (in and out) and `cost` (in what `price` returns for a model
    call; None, not known, counts as 0): of the turn so far. Tools are given by id or name.

    `excess`: "answer" answers a call beyond a limit and goes on; "end" runs no call of its round and ends the turn. If
    a budget of tokens or money is used up, the model is informed once; then, or with "end" at once, the turn ends.
    """
    layer = _Limits(
        soft=soft,
        hard=hard,
        steps=steps,
        identical=identical,
        polling=frozenset(checks.names("polling", polling)),
        per_tool=per_tool,
        tools=checks.table("tools", tools, "numbers of calls", none=True),
        calls=calls,
        uncounted=frozenset(checks.names("uncounted", uncounted)),
        searches=searches,
        unknown=unknown,
        tokens=tokens,
        cost=cost,
        price=price,
        excess=excess,
    )
    layer.check()
    return layer


@dataclass(frozen=True, slots=True)
class _Excess:
    """A limit that is reached: its name for people and metrics, what the model reads, and whether the turn ends."""

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
    unknown: int | None
    tokens: int | None
    cost: float | None
    price: Callable[[ModelCalled], float | None] | None
    excess: Excess
    name: str = "limits"
    gate: bool = True

    def check(self) -> None:
        """Raises `SetupError` for options that cannot work."""
        for option in ("soft", "hard", "steps", "identical", "per_tool", "calls", "searches", "unknown", "tokens"):
            checks.whole(option, getattr(self, option), none=NO_LIMIT)
        for tool, most in self.tools.items():
            checks.whole(f"tools[{tool!r}]", most, none=NO_LIMIT)
        checks.number("cost", self.cost, none=NO_LIMIT)
        checks.function("price", self.price, "from a ModelCalled to what it cost", none="without a limit of cost")
        if self.cost is not None and self.price is None:
            raise SetupError("a limit of cost needs price=, a function from a ModelCalled to what it cost")
        checks.choice("excess", self.excess, "answer", "end")
        if self.soft is not None and self.hard is not None and self.hard < self.soft:
            both = "set both to the same number to skip the wrap-up"
            raise SetupError(f"hard ({self.hard}) must be at least soft ({self.soft}); {both}")

    def around_round(self, request: Round) -> RoundSteps:
        """The whole round first, then call by call: what is cancelled never comes here."""
        excess = self._excess_of_round(request.turn)
        if excess is not None:
            yield Record(self._note(excess, request.turn.rounds))
            if excess.ends:
                yield Record(Ending(excess.reason, by=self.name))
            return {call.id: synthetic.limited(call, excess.text) for call in request.calls}
        refused = dict(self._refusals(request))
        for call_id, excess in refused.items():
            yield Record(self._note(excess, request.turn.rounds, call_id))
        ending = [each for each in refused.values() if each.ends or self.excess == "end"]
        if ending:
            first = ending[0]
            yield Record(Ending(first.reason, by=self.name))
            rest = f"the turn has reached a limit ({first.reason}) and ends here."
            texts = {call_id: excess.text for call_id, excess in refused.items()}
            return {call.id: synthetic.limited(call, texts.get(call.id, rest)) for call in request.calls}
        answers: dict[str, ToolAnswer] = {
            call.id: synthetic.limited(call, refused[call.id].text) for call in request.calls if call.id in refused
        }
        if len(answers) < len(request.calls):
            answers |= yield request.without(answers)
        return answers

    def _note(self, excess: _Excess, round_number: int, call_id: str = "") -> Noted:
        note = {"outcome": excess.outcome, "reason": excess.reason, "round": round_number}
        return Noted(self.name, note | {"call": call_id} if call_id else note)

    # -- the whole round -----------------------------------------------------------------------------------------

    def _excess_of_round(self, turn: TurnView) -> _Excess | None:
        """The limit that the whole round is beyond: one that ends the turn comes before one that asks to wrap up."""
        candidates = [self._excess_of_rounds(turn.rounds)]
        if self.tokens is not None and (used := turn.usage.tokens) > self.tokens:
            candidates.append(self._excess_of_budget(turn, "token budget", f"{used:,} of {self.tokens:,} tokens"))
        if self.cost is not None and self.price is not None:
            paid = sum(self.price(e) or 0.0 for e in turn.facts if isinstance(e, ModelCalled))
            if paid > self.cost:
                candidates.append(self._excess_of_budget(turn, "cost budget", f"{paid:.4g} of {self.cost:.4g}"))
        reached = [each for each in candidates if each is not None]
        return next((each for each in reached if each.ends), reached[0] if reached else None)

    def _excess_of_rounds(self, rounds: int) -> _Excess | None:
        if self.steps is not None and rounds > self.steps:
            text = f"the turn has had {self.steps} rounds of calls, the most there are, and ends here."
            return _Excess("hard-stop", "step limit", text, ends=True)
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

    def _excess_of_budget(self, turn: TurnView, reason: str, used: str) -> _Excess:
        """The model is informed in one round; if it calls tools again, the turn ends."""
        informed = any(note["reason"] == reason and note["round"] < turn.rounds for note in turn.notes(self.name))
        if informed or self.excess == "end":
            return _Excess(
                "hard-stop", reason, f"the {reason} of the turn is used up ({used}), and it ends here.", True
            )
        text = (
            f"the {reason} of the turn is used up ({used}), and nothing more runs in it. Make no more calls: answer "
            "now with what you have, and say what is missing."
        )
        return _Excess("wrap-up", reason, text)

    # -- call by call --------------------------------------------------------------------------------------------

    def _refusals(self, request: Round) -> Iterator[tuple[str, _Excess]]:
        """The ids of the calls beyond a limit, with that limit. A call that was refused does not count."""
        judged = {call.id for call in request.calls if call.id not in request.approved}  # those were judged before
        results = request.turn.results
        counted = strange = 0
        same: dict[str, list[JudgedCall]] = {}  # the calls so far, by tool
        for call in request.turn.calls:
            strange = strange + 1 if call.kind == "answered" and call.status == "unknown" else 0
            result = results.get(call.id)
            if result is not None and result.status == "limit":
                continue
            before = same.setdefault(call.tool or call.name, [])
            if call.id in judged:
                excess = self._excess_of_call(call, before, counted) or self._excess_of_unknown(strange)
                if excess is not None:
                    yield call.id, excess
                    continue
            before.append(call)
            counted += not self._is_uncounted(call)

    def _excess_of_call(self, call: JudgedCall, same: list[JudgedCall], counted: int) -> _Excess | None:
        """The limit that this call would go beyond, after the calls `same` of its tool and `counted` calls in all."""
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
        most = setting_for(call, self.tools, self.per_tool)
        if call.kind != "search" and most is not None and len(same) >= most:
            text = f"it was called {most} times in this turn, the most there is. Do not call it again in it; " + _GO_ON
            return _Excess("call-limit", "call limit", text)
        if self.calls is not None and counted >= self.calls:
            text = f"there were {self.calls} calls in this turn, the most there are. Make no more in it; " + _GO_ON
            return _Excess("call-limit", "call limit", text)
        return None

    def _excess_of_unknown(self, strange: int) -> _Excess | None:
        """The limit that the last of so many calls in a row, of tools that do not exist, goes beyond."""
        if self.unknown is None or strange <= self.unknown:
            return None
        text = (
            f"none of your last {strange} calls was of a tool that exists. Stop guessing names: call a listed tool by "
            "its exact name, or answer now with what you have and say what is missing."
        )
        return _Excess("unknown-limit", "unknown tools", text, ends=strange > 2 * self.unknown)

    def _is_uncounted(self, call: JudgedCall) -> bool:
        return bool(self.uncounted) and is_one_of(call, self.uncounted)

    def _polls(self, call: JudgedCall) -> bool:
        return call.marks.polling or is_one_of(call, self.polling)


_GO_ON = "answer with what you have, and say what is missing."
_CALLED = "Use what it gave, change the arguments, or go on without it."
_SEARCHED = "Call one of the tools that it loaded, or search for something else."
