"""Postings in dicts and in arrays give the same answers, whatever was added and removed before."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_indexes.postings import ArrayPostings, DictPostings

Postings = DictPostings | ArrayPostings
both = pytest.mark.parametrize("make", [DictPostings, ArrayPostings])

WORDS = "abcdef"
impacts = st.dictionaries(st.sampled_from(WORDS), st.sampled_from([0.1, 0.2, 0.3, 1.0, 1.7]), min_size=1)
# A tool and its impacts (replacing what it had), or a tool to take out.
steps = st.lists(st.tuples(st.integers(0, 12).map("t{}".format), st.none() | impacts), max_size=40)
weights = st.dictionaries(st.sampled_from(WORDS), st.sampled_from([0.1, 0.7, 1.0, 3.0]), min_size=1)


def apply(postings: Postings, changes: list[tuple[str, dict[str, float] | None]]) -> dict[str, dict[str, float]]:
    held: dict[str, dict[str, float]] = {}
    for tool_id, new in changes:
        if tool_id in held:
            postings.remove(tool_id, held.pop(tool_id))
        if new is not None:
            postings.add(tool_id, new)
            held[tool_id] = new
    return held


def best(held: dict[str, dict[str, float]], asked: dict[str, float]) -> list[tuple[float, str]]:
    """The same, as one would write it down."""
    scores = {i: sum(w * of[word] for word, w in asked.items() if word in of) for i, of in held.items()}
    return sorted(((round(s, 9), i) for i, s in scores.items() if s > 0), key=lambda pair: (-pair[0], pair[1]))


@both
@given(steps, weights, st.integers(1, 15), st.none() | st.frozensets(st.integers(0, 12).map("t{}".format)))
def test_the_best_are_those_of_the_plain_sum(
    make: type[Postings],
    changes: list[tuple[str, dict[str, float] | None]],
    asked: dict[str, float],
    limit: int,
    among: frozenset[str] | None,
) -> None:
    postings = make()
    held = apply(postings, changes)
    known = {word: weight for word, weight in asked.items() if word in postings.words}
    allowed = {i: of for i, of in held.items() if among is None or i in among}
    assert postings.top(known, limit, among) == best(allowed, known)[:limit]


@both
@given(steps)
def test_a_word_is_known_as_long_as_a_tool_holds_it(
    make: type[Postings], changes: list[tuple[str, dict[str, float] | None]]
) -> None:
    postings = make()
    held = apply(postings, changes)
    assert {word: len(postings.words[word]) for word in postings.words} == {
        word: count for word in WORDS if (count := sum(word in of for of in held.values()))
    }


@both
@pytest.mark.parametrize("limit", [1, 5, 100])
def test_words_that_cannot_lift_a_tool_into_the_answer_do_not_change_it(make: type[Postings], limit: int) -> None:
    """Large enough that `DictPostings` stops looking for new tools early."""
    chance = random.Random(7)
    changes: list[tuple[str, dict[str, float] | None]] = [
        (f"t{n}", {word: chance.choice([0.2, 0.5, 1.5]) for word in WORDS if chance.random() < 0.6} or {"a": 0.1})
        for n in range(1_500)
    ]
    changes += [(f"t{n}", None) for n in range(0, 1_500, 7)]
    postings = make()
    held = apply(postings, changes)
    for asked in ({"a": 3.0, "b": 0.01, "c": 0.01}, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.1}):
        assert postings.top(asked, limit, None) == best(held, asked)[:limit]


@both
def test_sums_that_are_equal_on_paper_are_ties_and_ties_go_by_id(make: type[Postings]) -> None:
    """.1 + .2 + .3 and .3 + .2 + .1 differ in the last bit."""
    postings = make()
    postings.add("b", {"a": 0.1, "b": 0.2, "c": 0.3})
    postings.add("a", {"a": 0.3, "b": 0.2, "c": 0.1})
    asked = {"a": 1.0, "b": 1.0, "c": 1.0}
    assert postings.top(asked, 5, None) == [(0.6, "a"), (0.6, "b")]
    assert postings.top(asked, 1, None) == [(0.6, "a")]


@both
def test_a_set_of_allowed_tools_that_is_changed_by_its_owner_is_read_anew(make: type[Postings]) -> None:
    postings = make()
    postings.add("a", {"x": 1.0})
    postings.add("b", {"x": 0.5})
    allowed = {"a"}
    assert [i for _, i in postings.top({"x": 1.0}, 5, allowed)] == ["a"]
    allowed.add("b")
    assert [i for _, i in postings.top({"x": 1.0}, 5, allowed)] == ["a", "b"]


@both
def test_a_tool_in_the_place_of_a_removed_one_does_not_inherit_what_it_was_allowed(make: type[Postings]) -> None:
    allowed = frozenset(["old"])
    postings = make()
    postings.add("old", {"x": 1.0})
    assert [i for _, i in postings.top({"x": 1.0}, 5, allowed)] == ["old"]
    postings.remove("old", ["x"])
    postings.add("new", {"x": 1.0})
    assert postings.top({"x": 1.0}, 5, allowed) == []
