"""The one place that sends into a generator."""

from collections.abc import Generator
from typing import Any

import pytest

from toolsearch.loop.trampoline import Trampoline


def steps() -> Generator[str, Any, str]:
    first = yield "first"
    try:
        second = yield f"second after {first}"
    except ValueError as error:
        second = f"caught {error}"
    return f"{first}, {second}"


def test_what_is_wanted_is_answered_and_the_result_is_what_was_returned() -> None:
    driven = Trampoline(steps())
    wanted = []
    while driven.advance():
        with driven:
            wanted.append(driven.wanted)
            driven.answer = len(wanted)
    assert wanted == ["first", "second after 1"]
    assert driven.result == "1, 2"


def test_what_is_raised_is_raised_where_the_generator_yielded() -> None:
    driven = Trampoline(steps())
    while driven.advance():
        with driven:
            if driven.wanted != "first":
                raise ValueError("no")
    assert driven.result == "None, caught no"


def test_what_the_generator_does_not_catch_comes_out() -> None:
    driven = Trampoline(steps())
    assert driven.advance()
    with driven:
        raise KeyError("x")
    with pytest.raises(KeyError):
        driven.advance()


def test_errors_for_whoever_drives_pass_through() -> None:
    driven = Trampoline(steps(), passing=(RuntimeError,))
    assert driven.advance()
    with pytest.raises(RuntimeError), driven:
        raise RuntimeError("stop")
    driven.close()


def test_the_generator_runs_by_the_function_that_is_given() -> None:
    entered: list[str] = []

    def run(function: Any, value: Any) -> Any:
        entered.append(function.__name__)
        return function(value)

    driven = Trampoline(steps(), run=run)
    while driven.advance():
        with driven:
            if driven.wanted != "first":
                raise ValueError("no")
    assert entered == ["send", "send", "throw"]
