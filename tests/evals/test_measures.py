"""Measures: what counts, what counts once, and what stays in the denominator."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_evals.data.cases import Case
from toolsearch_evals.ranking.measures import (
    MEASURES,
    JudgedCase,
    bootstrap,
    bootstrap_of_ratio,
    coverage,
    hit,
    interval,
    ndcg,
    recall,
    score_of,
    summarise,
)


def judged(*, found: bool, error: str | None = None) -> JudgedCase:
    return JudgedCase(Case("c", "q", (("right",),)), ("right",) if found else ("wrong",), error)


def test_a_tool_retrieved_twice_counts_once() -> None:
    """F01"""
    retrieved, gold = ["a", "a", "x"], (("a",), ("b",))
    assert recall(retrieved, gold, 3) == 0.5
    assert ndcg(retrieved, gold, 3) <= 1


def test_a_repeated_tool_takes_no_place_from_others() -> None:
    """F01"""
    assert recall(["a", "a", "b"], (("a",), ("b",)), 2) == 1
    assert ndcg(["a", "a", "b"], (("a",), ("b",)), 10) == ndcg(["a", "b"], (("a",), ("b",)), 10) == 1


@pytest.mark.parametrize("gold", [
    (("x",), ("x",), ("y",)), (("x",), ("y",), ("x",)), (("x", "x"), ("y",), ("x",)), (("y", "y"), ("y",), ("x",)),
])  # fmt: skip
def test_a_need_that_is_there_twice_counts_once(gold: tuple[tuple[str, ...], ...]) -> None:
    """K22: in every measure, as for [[x], [y]]."""
    once = (("x",), ("y",))
    assert recall(["x"], gold, 5) == 0.5
    assert round(ndcg(["x"], gold, 10), 3) == 0.613
    assert coverage(["x", "y"], gold, 5) == 1
    for retrieved in ((), ("x",), ("z", "y"), ("z", "y", "x")):
        one, other = JudgedCase(Case("1", "q", gold), retrieved), JudgedCase(Case("1", "q", once), retrieved)
        assert [score_of(one, each) for each in MEASURES] == [score_of(other, each) for each in MEASURES]
        assert [each.score(retrieved, gold) for each in MEASURES] == [each.score(retrieved, once) for each in MEASURES]


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4),
    st.lists(st.sampled_from("abcdef"), max_size=8),
    st.randoms(),
)
def test_repeating_and_turning_groups_changes_no_score(groups: list[Any], retrieved: list[str], rng: Any) -> None:
    """K22."""
    again = [*groups, *(tuple(rng.sample(group, len(group))) for group in groups if rng.random() < 0.5)]
    for measure in MEASURES:
        assert measure.score(retrieved, tuple(again)) == measure.score(retrieved, tuple(groups)), measure.name


def test_any_tool_of_a_group_serves_it_and_every_group_is_needed() -> None:
    """F10"""
    gold = (("mail_a_send", "mail_b_send"), ("contact_find",))
    assert recall(["mail_b_send", "contact_find"], gold, 5) == 1
    assert recall(["mail_b_send"], gold, 5) == 0.5
    assert recall(["mail_a_send", "mail_b_send"], gold, 5) == 0.5
    assert coverage(["mail_b_send", "contact_find"], gold, 5) == 1
    assert coverage(["mail_b_send"], gold, 5) == 0
    assert hit(["mail_b_send"], gold, 5) == 1


def test_ndcg_pays_a_group_at_its_first_tool_only() -> None:
    gold = (("a", "b"),)
    assert ndcg(["a", "b"], gold, 10) == 1
    assert ndcg(["x", "b"], gold, 10) == pytest.approx(1 / math.log2(3))
    assert ndcg(["x", "y"], gold, 10) == 0


def test_failed_searches_stay_in_the_denominator() -> None:
    """F03"""
    cases = [judged(found=True)] * 6 + [judged(found=False)] * 2 + [judged(found=False, error="TimeoutError: 1 s")] * 2
    summary = summarise(cases)
    assert summary.values["R@5"] == 0.6
    assert (summary.n_scored, summary.errors) == (10, 2)


def test_what_a_failed_search_returned_earns_nothing() -> None:
    """F03"""
    assert summarise([judged(found=True, error="broke off")]).values["R@5"] == 0


def test_a_bucket_without_cases_has_no_number() -> None:
    """F11"""
    summary = summarise([])
    assert summary.n_scored == 0
    assert set(summary.values.values()) == {None}
    assert summary.answered is None


def test_unanswerable_cases_are_not_scored_but_counted_when_answered() -> None:
    """F08, F11"""
    nothing = Case("n", "what is the weather on Mars")
    summary = summarise(
        [JudgedCase(nothing, ("weather",)), JudgedCase(nothing), JudgedCase(nothing, error="down"), judged(found=True)]
    )
    assert summary.n_scored == 1
    assert summary.values["R@5"] == 1
    assert summary.n_unanswerable == 3
    assert summary.answered == pytest.approx(2 / 3)


ids = st.sampled_from("abcdef")


@given(st.lists(ids, max_size=15), st.lists(st.lists(ids, min_size=1, max_size=3).map(tuple), min_size=1, max_size=4))
def test_every_measure_is_between_0_and_1(retrieved: list[str], groups: list[tuple[str, ...]]) -> None:
    """F01"""
    for measure in MEASURES:
        assert 0 <= measure.score(retrieved, tuple(groups)) <= 1 + 1e-9, measure.name


def test_an_interval_holds_the_mean_and_narrows_with_more_cases() -> None:
    few, many = [1.0, 0.0, 0.5, 1.0] * 5, [1.0, 0.0, 0.5, 1.0] * 80
    low, high = interval(many)
    assert low < 0.625 < high
    assert interval(many) == (low, high)
    assert high - low < 0.5 * (interval(few)[1] - interval(few)[0])
    assert high - low == pytest.approx(2 * 1.96 * (0.171875 / 320) ** 0.5, rel=0.15)


def test_a_bucket_without_misses_is_not_beyond_doubt() -> None:
    low, high = interval([1.0] * 16)
    assert (high, low) == (1, pytest.approx(16 / (16 + 1.96**2)))
    assert interval([0.0] * 16) == (0, pytest.approx(1 - low))
    assert bootstrap([0.0] * 16) == (0, 0)
    assert summarise([]).intervals == {}


def test_the_interval_of_a_ratio_holds_the_ratio_and_is_infinite_where_a_resample_has_nothing_below() -> None:
    pairs = [(10.0, 1.0), (20.0, 3.0), (30.0, 2.0)] * 10
    low, high = bootstrap_of_ratio(pairs)
    assert 8 < low < 60 / 6 < high < 12
    assert bootstrap_of_ratio(pairs) == (low, high)
    assert bootstrap_of_ratio([(10.0, 1.0)]) == (10, 10)
    assert bootstrap_of_ratio([(10.0, 0.0), (20.0, 1.0)])[1] == math.inf
