"""Checks for what plugs into the evaluations: each raises `BrokenPromise`, which says what is broken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from numbers import Real
from typing import Any

from toolsearch import ToolSearch
from toolsearch.testing.promises import BrokenPromise, guarded, require
from toolsearch.testing.wire_checks import check_reading
from toolsearch.tokens import counter
from toolsearch_evals.data.cases import Case, Groups
from toolsearch_evals.ranking.measure_plugins import names_of, our_names
from toolsearch_evals.ranking.measures import MEASURES, Measure
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.scripted import answer, play
from toolsearch_evals.token_usage import TokenMeter, pieces

__all__ = ["check_format", "check_measure"]

# What a search may come to: nothing, misses, one of two needed tools, an alternative, everything, and ten of a crowd.
_ANSWERS: tuple[tuple[tuple[str, ...], Groups], ...] = (
    ((), (("send",),)),
    (("other",), (("send",),)),
    (("send",), (("send",),)),
    (("other", "send"), (("send",), ("read",))),
    (("post", "read"), (("send", "post"), ("read",))),
    (("send", "post", "read"), (("send", "post"), ("read",))),
    (tuple(f"tool {number}" for number in range(10)), (("tool 9",),)),
    (("send",), tuple((f"need {number}",) for number in range(12))),
)


def check_measure(measure: Measure) -> None:
    """Checks the promises of a measure: a name, a meaning, and a score that can be relied on."""
    passed: object = measure
    if not isinstance(passed, Measure):
        kind = type(passed).__name__
        raise BrokenPromise(
            f"a measure is a toolsearch_evals.ranking.measures.Measure(name, function, meaning), not a {kind}"
        )
    require(measure.name.strip(), "a measure has a name")
    require("\n" not in measure.name, "the name is the head of a column: one line")
    is_ours = any(measure is each for each in MEASURES)
    free = is_ours or not names_of(measure) & our_names()
    require(free, f"the name {measure.name!r} is taken by one of ours: rename the measure")
    require(measure.meaning.strip(), "a measure has a meaning: a sentence for the report")
    for retrieved, gold in _ANSWERS:
        shown = json.dumps({"retrieved": retrieved, "gold": gold})
        score = _score(measure, retrieved, gold)
        if not isinstance(score, Real):
            raise BrokenPromise(f"a score is a number, not {score!r}, for {shown}")
        require(0 <= float(score) <= 1, f"a score is from 0 to 1, not {score!r}, for {shown}")
        require(_score(measure, retrieved, gold) == score, f"the same answer has the same score, for {shown}")
    needed = (("a",), ("b",))
    hit, miss = measure.score(("a", "b"), needed), measure.score(("x", "y"), needed)
    require(hit >= miss, "needed tools first score no less than misses")


def _score(measure: Measure, retrieved: Sequence[str], gold: Groups) -> object:
    shown = json.dumps({"retrieved": retrieved, "gold": gold})
    with guarded(f"the function of the measure, called with two arguments for {shown},"):
        return measure.score(retrieved, gold)


_TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "send_mail",
        "description": "Sends a mail.",
        "input_schema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    },
    {"name": "water_plants", "description": "Waters the plants."},
)


def check_format(form: WireFormat) -> None:
    """Checks the promises of a wire's format: replies are read as they were written, and conversations work."""
    check_reading(form.wire, form.reply_with_calls, form.reply_with_text)
    require("Good morning." in json.dumps(form.user_message("Good morning.")), "the user's message holds what was said")
    _check_request(form)
    case = Case("1", "send a mail", (("send_mail",),))
    for mode in ("append", "bridge", "static"):
        search = ToolSearch(_TOOLS, "keyword", run=answer, mode=mode)
        played = play(search, [case, Case("2", "fold my laundry")], form, TokenMeter(counter()))
        if played.refused:
            raise BrokenPromise(f"a call is refused in the mode {mode}: {played.refused[0]}")
        require(played.turns[0].served, f"a tool that is found can be called in the mode {mode}")


def _check_request(form: WireFormat) -> None:
    session = ToolSearch(_TOOLS, "keyword", run=answer, mode="static").session()
    tools, first = form.wire.tools_for(session), form.user_message("Good morning.")
    request = form.request(tools, "Be brief.", [first])
    text = json.dumps(request)
    for part in ("Be brief.", "Good morning.", "send_mail"):
        require(part in text, f"a request holds its system message, its messages and its tools; {part!r} is missing")
    longer = form.request(tools, "Be brief.", [first, form.user_message("Go on.")])
    kept = pieces(request)[:-1]
    require(pieces(longer)[: len(kept)] == kept, "a further message changes nothing before it")
