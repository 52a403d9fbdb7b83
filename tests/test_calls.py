"""Calls, results, and what a tool returned as the text a model reads."""

import dataclasses
import datetime
import enum
import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from toolsearch import Caller, ToolResult
from toolsearch.support.text import clean, text_of


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


class Odd:
    def __str__(self) -> str:
        return "odd \ud800"


@pytest.mark.parametrize(("value", "text"), [
    (None, "Done; the tool returned nothing."),
    ("plain", "plain"),
    ("", "Done; the tool returned nothing."),  # J25: some providers refuse a blank result
    ("  \n", "Done; the tool returned nothing."),
    ("lone \ud800", "lone \ufffd"),
    ({"a": [1, None, True]}, '{"a": [1, null, true]}'),
    ("größe", "größe"),
    (["größe"], '["größe"]'),
    (Point(x=1), '{"x": 1}'),
    ([Pair(Point(x=1), {"b", "a"})], '[{"a": {"x": 1}, "b": ["a", "b"]}]'),
    (Colour.RED, '"red"'),
    ({"day": datetime.date(2024, 5, 1)}, '{"day": "2024-05-01"}'),
    (PurePosixPath("a/b"), '"a/b"'),
    (b"\x00" * 1500, "<binary data, 1,500 bytes>"),
    ([b"abc"], '["<binary data, 3 bytes>"]'),
    ({(1, 2): 3}, "{(1, 2): 3}"),
    (CIRCLE, "[[...]]"),
    (Odd(), '"odd \ufffd"'),
    ([Point], f'["{Point}"]'),
])  # fmt: skip
def test_what_a_tool_returned_is_text_a_model_can_read(value: Any, text: str) -> None:
    """A tool that did its work is never answered as failed because of what it returned."""
    assert text_of(value) == text


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.tuples(st.text()), inner),
    max_leaves=8,
))  # fmt: skip
def test_any_value_gives_valid_utf8(value: Any) -> None:
    text_of(value).encode()


@given(st.text(alphabet=st.characters(categories=["L", "Cs"])))
def test_cleaning_replaces_lone_surrogates_and_nothing_else(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert len(cleaned) == len(text)
    assert all(a == b or (b == "\ufffd" and "\ud800" <= a <= "\udfff") for a, b in zip(text, cleaned, strict=True))


def test_a_callers_roles_are_a_set_however_they_are_given() -> None:
    assert Caller("ana", roles="admin").roles == frozenset(["admin"])
    assert Caller("ana", roles=["a", "b", "a"]) == Caller("ana", roles={"a", "b"})
    assert Caller() == Caller(None, ())
    assert hash(Caller("ana", {"a"})) == hash(Caller("ana", ["a"]))


def test_a_result_is_compared_by_what_the_model_reads() -> None:
    one = ToolResult("1", "a", "ok", "text", data=object())
    assert one == ToolResult("1", "a", "ok", "text", data=None)
    assert one.ok
    assert not ToolResult("1", "a", "failed", "text").ok
    assert json.loads(text_of(one))["status"] == "ok"
