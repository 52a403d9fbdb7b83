"""Intervals of savings, and where search breaks even: on the difference of two costs, with bounds called so."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from toolsearch_evals.data.cases import Dataset, load
from toolsearch_evals.ranking.measures import bootstrap_of_ratio, wilson
from toolsearch_evals.reports.forms import as_csv, as_json, as_markdown
from toolsearch_evals.savings.break_even import break_even_of
from toolsearch_evals.savings.intervals import Crossing, crossing, middle, resamples
from toolsearch_evals.savings.prices import PLAIN
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.rows import cells_of
from toolsearch_evals.savings.runs import Pricing
from toolsearch_evals.savings.sweep import SweepPlan, SweepResult, rows_of, sweep

PLAN = SweepPlan(
    modes=("append", "bridge", "auto"),
    sizes=(10, 30, 60),
    seeds=1,
    conversations=6,
    turns=(2, 5),
    localities=(0.0, 1.0),
    caches=("cold", "warm"),
    prices=("plain", "anthropic"),
    static_success=(1.0, 0.9, 0.8),
)


@pytest.fixture(scope="module")
def commons() -> Dataset:
    return load("commons")[0]


@pytest.fixture(scope="module")
def swept(commons: Dataset) -> SweepResult:
    return sweep(commons, commons.cases, PLAN)


@pytest.mark.parametrize(
    ("sizes", "saved", "at", "bound"),
    [
        ((5, 10, 20), (-50, -10, 10), 15, ""),
        ((5, 10), (10, 30), 5, "≤"),
        ((5, 10), (-50, -10), 10, ">"),
        ((5, 10), (10, -10), 10, ">"),
        ((5, 10, 20, 30), (-10, 10, -10, 10), 25, ""),
        ((5, 10, 20), (-math.inf, 10, 20), 10, ""),
        ((5, 10, 20), (0, 0, 10), 20, "≤"),
        ((5, 10, 20), (-5, 0, 10), 20, ""),
        ((5,), (3,), 5, "≤"),
    ],
)
def test_search_breaks_even_where_the_difference_last_leaves_zero(
    sizes: tuple[float, ...], saved: tuple[float, ...], at: float, bound: str
) -> None:
    """E07"""
    found = crossing(sizes, saved)
    assert found.at == pytest.approx(at)
    assert found.bound == bound
    assert found.measured == (None if bound else pytest.approx(at))


def test_a_bound_is_never_told_as_a_measurement() -> None:
    assert Crossing(5, "≤").in_words(5, 673) == "≤ 5"
    assert Crossing(673, ">").in_words(5, 673) == "> 673"
    assert Crossing(29.4, "", 27.2, 31.4).in_words(5, 673) == "29 [27, 31]"
    assert Crossing(29.4, "", None, None).in_words(5, 100) == "29 [≤ 5, > 100]"


def test_the_difference_and_not_the_share_is_interpolated() -> None:
    """Costs that grow evenly cross at 36; a line through the shares that are saved would say 59."""
    sizes, before, after = (20.0, 100.0), (16.0, 80.0), (28.8 - 0.1, 28.8 - 0.1)
    at = crossing(sizes, [b - a for b, a in zip(before, after, strict=True)]).at
    assert at == pytest.approx(35.9, abs=0.1)


def test_resamples_are_those_of_the_bootstrap_of_a_ratio_and_pair_what_belongs_together() -> None:
    costs, met = [5.0, 9.0, 4.0, 8.0, 3.0, 7.0], [2.0, 3.0, 1.0, 3.0, 1.0, 3.0]
    drawn = resamples(6)
    ratios = [a / b for a, b in zip(drawn.sums(costs), drawn.sums(met), strict=True)]
    assert middle(ratios) == pytest.approx(bootstrap_of_ratio(list(zip(costs, met, strict=True))))
    twice = [a / b for a, b in zip(drawn.sums(costs), drawn.sums([2 * cost for cost in costs]), strict=True)]
    assert middle(twice) == (0.5, 0.5), "what is always half as dear is surely half as dear"
    assert middle([1.0] * 90 + [math.inf] * 10) == (None, None)
    assert middle(resamples(1).sums([7.0])) == (None, None), "one conversation shows no doubt, and tells of none"


def test_every_rate_has_its_interval_and_its_number(swept: SweepResult) -> None:
    """E07: with what is known about each figure."""
    for row in swept.rows:
        for name in ("saving", "cost saving", "met saving"):
            low, share, high = (row[f"{name}{end}"] for end in (" low", "", " high"))  # type: ignore[literal-required]
            assert low is not None
            assert low - 1e-9 <= share <= high + 1e-9
        assert row["conversations"] == 6
        assert 6 <= row["different cases"] <= 30
        assert row["success"] is not None
        served = round(row["success"] * row["requests to meet"])
        assert (row["success low"], row["success high"]) == wilson(served, row["requests to meet"])


def test_each_assumption_is_a_row_of_its_own_and_nothing_is_played_for_it(swept: SweepResult) -> None:
    keys = [
        (row["turns"], row["locality"], row["profile"], row["cache"], row["mode"], row["tools"]) for row in swept.rows
    ]
    assert len(set(keys)) == len(keys) == 2 * 2 * 2 * 2 * 3 * 3
    assert len(swept.break_evens) == 2 * 2 * 2 * 2 * 3 * 3
    assert len(swept.played) == 2 * 2 * 6 * 3 * 4
    assert rows_of(replace(PLAN, prices=("gpt-5",)), swept.played)[0][0]["profile"] == "gpt-5"
    by = dict(zip(keys, swept.rows, strict=True))
    for mode in ("append", "bridge"):
        cold, warm = (by[2, 0.0, "plain", cache, mode, 60] for cache in ("cold", "warm"))
        assert cold["tokens"] == warm["tokens"]
        assert warm["cost"] < cold["cost"]
        assert warm["cost saving"] < cold["cost saving"], "a warm cache helps sending all more"
    claude = by[5, 0.0, "claude-sonnet-4-5", "cold", "append", 60]
    assert claude["cached"] < by[5, 0.0, "plain", "cold", "append", 60]["cached"], "a change of tools loses all"


def test_sending_all_bears_the_requests_that_it_does_not_meet(swept: SweepResult) -> None:
    cells = next(iter(cells_of(swept.played).values()))
    by_share = {share: break_even_of(cells, Pricing(PLAIN, "cold", share)) for share in (1.0, 0.8, 0.5)}
    at = [by_share[share].by_met.at for share in (1.0, 0.8, 0.5)]
    assert at == sorted(at, reverse=True)
    assert at[0] > at[2]
    assert len({by_share[share].by_cost for share in by_share}) == 1


def test_the_report_tells_the_first_assumptions_and_keeps_all_of_them(commons: Dataset, swept: SweepResult) -> None:
    report = savings_report(swept, PLAN, commons, "all")
    first, even, assumed, curve, *_ = report.tables
    assert len(first.rows) == 3 * 3
    assert {(row["turns"], row["cache"]) for row in first.rows} == {(2, "cold")}
    assert len(as_csv(report).splitlines()) == 1 + len(swept.rows)
    assert [column.head for column in assumed.columns[:4]] == ["turns", "locality", "prices", "cache"]
    assert len(assumed.rows) == 2 * 2 * 2 * 2 * (1 + 3)
    assert [column.head for column in curve.columns[-3:]] == [f"if all sent meets {n}%" for n in (100, 90, 80)]
    assert len(even.rows) == 2 * 2 * 2 * 2 * 3
    told = as_markdown(report)
    assert "different cases" in told
    assert "look worse, not better" in told
    assert "USD for a million new tokens; of 2026-10" in told
    assert "with a chance of 0% or 100%" in told
    data: dict[str, Any] = json.loads(as_json(report))
    assert len(data["tables"][0]["rows"]) == len(swept.rows)
    assert {each["tokens bound"] for each in data["break_even"]} <= {"", "≤", ">"}


def test_the_headline_is_the_price_of_a_met_request_with_its_interval(commons: Dataset, swept: SweepResult) -> None:
    said = savings_report(swept, PLAN, commons, "all").headline
    assert all("a request that is met costs as much as" in line for line in said[:3])
    assert all("(95% interval " in line for line in said[:4])


def test_a_size_with_too_little_room_for_long_conversations_is_left_out(commons: Dataset, swept: SweepResult) -> None:
    plan = replace(PLAN, turns=(2, 10), localities=(0.0,), modes=("append",), conversations=1)
    sizes = {(job.turns, job.size) for job in sweep(commons, commons.cases, plan).played}
    assert sizes == {(2, 10), (2, 30), (2, 60), (10, 30), (10, 60)}
