"""Whether requests keep their beginning: what is found, and where it says that the difference is."""

import copy
from typing import Any

import pytest

from toolsearch.errors import SetupError
from toolsearch.testing import BrokenPromise, assert_prefix_stable

A, B = {"name": "a", "input_schema": {"type": "object"}}, {"name": "b", "input_schema": {"type": "object"}}


def body(*messages: Any, tools: Any = (A,), system: Any = "Be brief.") -> dict[str, Any]:
    return {"max_tokens": 9, "system": system, "tools": [*tools], "messages": [*messages]}


def said(role: str, *texts: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text, **more} for text in texts]}


def test_a_conversation_that_only_grows_is_stable() -> None:
    requests = [
        body({"role": "user", "content": "Hi"}),
        body(said("user", "Hi"), said("assistant", "Hello.")),  # a text and a block say the same
        body(said("user", "Hi"), said("assistant", "Hello.", "Well."), said("user", "And?")),  # merged with a neighbour
    ]
    before = copy.deepcopy(requests)
    for mode in ("static", "bridge", "native", "append", "compact"):
        assert_prefix_stable(requests, mode=mode)  # type: ignore[arg-type]
    assert requests == before


def test_marks_of_the_cache_move_and_break_nothing() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    requests = [body(said("user", "Hi", **mark)), body(said("user", "Hi"), said("assistant", "Hello.", **mark))]
    assert_prefix_stable(requests, mode="native")


def test_tools_may_grow_in_append_only() -> None:
    requests = [body(said("user", "Hi")), body(said("user", "Hi"), tools=(A, B))]
    assert_prefix_stable(requests, mode="append")
    with pytest.raises(BrokenPromise, match=r"request 2 has tools\[1\], which the one before has not"):
        assert_prefix_stable(requests, mode="native")


@pytest.mark.parametrize(
    ("second", "wanted"),
    [
        (body(said("user", "Hi"), tools=(B, A)), r"request 2 changes tools\[0\], at its character 11"),
        (body(said("user", "Hi"), tools=()), r"request 2 lacks tools\[0\]"),
        (body(said("user", "Ho")), r"request 2 changes messages\[0\].content\[0\]"),
        (body(said("assistant", "Hi")), r"request 2 changes messages\[0\].content\[0\]"),
        (body(), r"request 2 lacks messages\[0\].content\[0\]"),
        (body(said("user", "Hi"), system="Be long."), "request 2 changes system"),
        (body(said("user", "Hi"), tools=({"input_schema": {"type": "object"}, "name": "a"},)), r"changes tools\[0\]"),
    ],
)
def test_what_differs_is_named_with_its_request_and_place(second: dict[str, Any], wanted: str) -> None:
    with pytest.raises(BrokenPromise, match=wanted):
        assert_prefix_stable([body(said("user", "Hi")), second], mode="append")


def test_the_difference_itself_is_shown() -> None:
    long = "x" * 500
    with pytest.raises(BrokenPromise) as caught:
        assert_prefix_stable(
            [body(said("user", long + "1" + long)), body(said("user", long + "2" + long))], mode="native"
        )
    before, now = caught.value.see.splitlines()
    assert before.startswith("before: …xxx")
    assert ("x1x" in before, "x2x" in now) == (True, True)
    assert len(now) < 200


@pytest.mark.parametrize(
    ("key", "first", "second"),
    [
        ("messages", [{"role": "user", "content": "Hi"}],
         [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": []}]),
        ("input", "Hi", [{"role": "user", "content": "Hi"}]),
        ("input", [{"role": "user", "content": "Hi"}], [{"role": "user", "content": "Hi"}, {"type": "reasoning"}]),
        ("contents", [{"role": "user", "parts": [{"text": "Hi"}]}],
         [{"role": "user", "parts": [{"text": "Hi"}, {"text": "there"}]}]),
    ],
)  # fmt: skip
def test_the_requests_of_every_wire_are_read(key: str, first: Any, second: Any) -> None:
    requests = [{key: first}, {key: second}]
    if isinstance(first, str):  # one text is one message of the user, but other bytes
        with pytest.raises(BrokenPromise):
            assert_prefix_stable(requests, mode="native")
        return
    assert_prefix_stable(requests, mode="native")
    with pytest.raises(BrokenPromise, match=rf"request 2 lacks {key}"):
        assert_prefix_stable(requests[::-1], mode="native")


def test_declarations_of_gemini_may_grow_inside_their_tool() -> None:
    one = {"contents": [], "tools": [{"functionDeclarations": [A]}]}
    two = {"contents": [], "tools": [{"functionDeclarations": [A, B]}]}
    assert_prefix_stable([one, two], mode="append")
    with pytest.raises(BrokenPromise, match=r"functionDeclarations\[1\]"):
        assert_prefix_stable([one, two], mode="bridge")


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(SetupError, match="'auto'"):
        assert_prefix_stable([], mode="auto")  # type: ignore[arg-type]
