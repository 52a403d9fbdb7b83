"""The choice of a delivery by price: the fit, the regret, and how native and compact deliveries are counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolsearch import Catalog, ToolSearch
from toolsearch.tokens import counter
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.savings.choice import Cell, Extra, Situation, by_fit, extra_of, regrets, turning_point
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.jobs import Job, jobs_of
from toolsearch_evals.savings.plan import STATIC, SweepPlan
from toolsearch_evals.savings.played import PlayedConversation
from toolsearch_evals.savings.rows import SavingsRow
from toolsearch_evals.savings.scripted import answer, play
from toolsearch_evals.savings.sweep import SweepResult, sweep
from toolsearch_evals.token_usage import TokenMeter

REQUESTS = 1.9
KNOWN = Extra(500, 750, 48)


def cell(turns: int, cache: str, definitions: float, extra: Extra = KNOWN) -> Cell:
    """A situation in which search costs exactly what `extra` says more than a conversation without definitions."""
    first = 0.1 if cache == "warm" else 1.0
    paid = first + 0.1 * (REQUESTS * turns - 1)
    more = extra.fixed * first + extra.turn * turns + extra.turn_squared * turns**2
    rest = 900.0 * turns
    costs = {"static": rest + definitions * paid, "bridge helped": rest + more, "bridge": rest + 1.5 * more}
    job = Job(0, 0, turns, 0.0, round(definitions / 137), "openai_chat", STATIC)
    situation = Situation("openai_chat", turns, cache, job.size)
    return Cell(situation, job, definitions, definitions, costs, dict.fromkeys(costs, float(turns)))


CELLS = [cell(t, c, d) for t in (3, 10, 20) for c in ("cold", "warm") for d in range(1_000, 12_000, 1_000)]


def test_the_fit_finds_the_rule_that_made_the_cells() -> None:
    found = extra_of(CELLS, "bridge helped", REQUESTS)
    assert (found.fixed, found.turn, found.turn_squared) == pytest.approx((500, 750, 48), rel=0.01)


@pytest.mark.parametrize("sizes", [(2_000, 8_000), (1_000, 2_000), (9_000, 12_000)])
def test_a_turning_point_is_interpolated_or_beyond_the_line_goes_on(sizes: tuple[int, int]) -> None:
    situation = Situation("openai_chat", 10, "cold", 1)
    at = turning_point([cell(10, "cold", size) for size in sizes], "bridge helped", lambda each: each.definitions)
    assert at == pytest.approx(KNOWN.cheaper_below(situation, REQUESTS))


def test_the_regret_is_what_a_choice_costs_more_than_the_cheapest_way() -> None:
    choices: dict[str, Any] = {
        "best": by_fit({"bridge": KNOWN}, REQUESTS, lambda _: "bridge helped"),
        "static": lambda _: "static",
        "bridge": lambda _: "bridge",
        "not played": lambda _: "native",
    }
    found = {each.policy: each for each in regrets(CELLS, choices)}
    assert found.keys() == {"best", "static", "bridge"}
    assert (found["best"].cells, found["best"].mean, found["best"].worst) == (66, 0, 0)
    assert 0 < found["static"].mean < found["static"].p90 <= found["static"].worst
    assert found["bridge"].mean > 0


def test_static_is_no_way_where_a_request_cannot_carry_all() -> None:
    small, large = cell(10, "cold", 1_000), cell(10, "cold", 137 * 200.0, Extra(1e6, 0, 0))
    assert small.cheapest == small.price("static")
    assert large.cheapest == large.price("bridge helped") > large.price("static")


# -- native and compact ------------------------------------------------------------------------------------------------

NEEDED = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
DEFINITIONS = [
    {"name": f"tool_{n:02}", "description": f"About {n:02}. {'word ' * 12}", "input_schema": NEEDED} for n in range(30)
]


def talk(wire: str, **options: Any) -> PlayedConversation:
    search = ToolSearch(Catalog(DEFINITIONS), "keyword", run=answer, **options)
    cases = [Case(f"{n}", f"select:tool_{n:02}", ((f"tool_{n:02}",),)) for n in range(6)]
    return play(search, cases, FORMATS[wire], TokenMeter(counter()))


@pytest.mark.parametrize("wire", ["anthropic", "openai_responses"])
def test_native_counts_a_definition_once_where_it_was_found_and_loses_no_cache(wire: str) -> None:
    native, append, bridge = (talk(wire, mode=mode) for mode in ("native", "append", "bridge"))
    for each in (native, append, bridge):
        assert not each.refused
        assert all(turn.served for turn in each.turns)
    assert not any(request.tools_changed for request in native.requests)
    shared = [(now.shared, before.input) for before, now in zip(native.requests, native.requests[1:], strict=False)]
    assert all(kept > 0.97 * whole for kept, whole in shared), "each request begins with the one before"
    assert native.requests[0].input < 700, "deferred definitions are no part of the context"
    grown = native.requests[-1].input - native.requests[0].input
    assert grown > 6 * 60, "those that were found are"
    prices = [each.usage.cost(0.1, 5) for each in (native, bridge, append)]
    assert prices == sorted(prices)


def test_native_is_played_on_the_wires_that_can() -> None:
    plan = SweepPlan(modes=("append", "native"), wires=("openai_chat", "anthropic"), sizes=(20,), seeds=1)
    played = {(job.wire, job.arm.mode) for job in jobs_of(plan, 30)}
    assert ("anthropic", "native") in played
    assert ("openai_chat", "native") not in played
    assert ("openai_chat", "append") in played


def test_in_compact_nothing_is_searched_and_some_first_calls_misfit() -> None:
    played = talk("openai_chat", mode="compact")
    assert played.searches == 0
    assert all(turn.served for turn in played.turns)
    requests = [len(turn.requests) for turn in played.turns]
    assert {*requests} == {2, 3}, "a misfit takes one request more"
    again = talk("openai_chat", mode="compact")
    assert [len(turn.requests) for turn in again.turns] == requests


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def commons() -> Dataset:
    return load("commons")[0]


def test_a_session_of_auto_expects_the_turns_that_are_played(commons: Dataset) -> None:
    """So that the measure is not of a wrong guess; a setting says otherwise."""

    def swept(**more: Any) -> SweepResult:
        plan = SweepPlan(
            indexes=("keyword",), modes=("auto", "append helped", "bridge helped"), sizes=(60,), seeds=1, turns=(3,),
            conversations=2, **more,
        )  # fmt: skip
        return sweep(commons, commons.cases, plan)

    def prices(rows: list[SavingsRow]) -> dict[str, float | None]:
        return {row["mode"]: row["cost a met request"] for row in rows}

    told = prices(swept().rows)
    assert told["auto"] == told["append helped"] != told["bridge helped"]
    told = prices(swept(settings=(("expected_turns", "20"),)).rows)
    assert told["auto"] == told["bridge helped"] != told["append helped"]


def test_the_command_fits_and_judges(tmp_path: Path) -> None:
    """On the seeds and lengths that were not fitted; the file has the form of the one that ships."""
    file = tmp_path / "fit.json"
    asked = "delivery --index keyword --wire anthropic --sizes 8,20 --turns 2,3,4 --judged-turns 1 --seeds 2"
    run = CliRunner().invoke(
        app, [*asked.split(), "--conversations", "1", "--processes", "1", "--fit", str(file), "--format", "json"]
    )
    assert run.exit_code == 0, run.output
    report = json.loads(run.stdout)
    first = report["tables"][0]["rows"]
    assert [row["policy"] for row in first][:2] == ["the new fit, turns and cache known", "auto, turns and cache known"]
    assert {row["cells"] for row in first} == {4 * 2 * 2}
    assert {"always native", "always append helped", "always static"} <= {row["policy"] for row in first}
    fitted = json.loads(file.read_text("utf-8"))
    assert fitted.keys() == {"command", "fitted on", "cached", "requests", "extra"}
    assert fitted["extra"].keys() == {"native", "bridge", "append"}
