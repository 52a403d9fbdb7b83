"""D14: values that are nested deeply. What is stored can be read from any stack, and only the value itself suffers."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from toolsearch import Agent, JsonPart, ToolResult, ToolSearch
from toolsearch.events.facts import ToolReturned
from toolsearch.events.journal import cleaned, read_event, stored
from toolsearch.stores import SqliteStore
from toolsearch.support.text import LEVELS, clean_json, is_deeper, plain_json
from toolsearch.testing import ScriptedModel


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def under(frames: int, function: Callable[[], Any]) -> Any:
    """What a function gives when the stack is so much deeper."""
    return under(frames - 1, function) if frames else function()


RETURNED: list[Callable[[int], Any]] = [
    nested,
    lambda levels: [[nested(levels)]],
    lambda levels: ToolResult("", "", "ok", "", nested(levels)),
    lambda levels: ToolResult("", "", "ok", "", parts=(JsonPart(nested(levels)),)),
    lambda levels: {"content": [{"type": "text", "text": "x"}], "structuredContent": nested(levels)},
]


@pytest.mark.parametrize("levels", [60, LEVELS, LEVELS + 1, 420, 600])
@pytest.mark.parametrize("given", ["arguments", 0, 1, 2, 3, 4])
def test_D14_a_journal_that_was_written_from_a_shallow_stack_is_read_from_a_deep_one(
    tmp_path: Any, levels: int, given: Any
) -> None:
    """D14: 420 levels were stored, and could not be read 200 frames deeper: the conversation was lost there."""
    store = SqliteStore(tmp_path / "j.db")
    returned = "ok" if given == "arguments" else RETURNED[given](levels)
    search = ToolSearch([{"name": "echo", "run": lambda **_: returned}], mode="static")
    arguments = {"x": nested(levels)} if given == "arguments" else {}
    agent = Agent(ScriptedModel([("c1", "echo", arguments)]), search, store=store)
    assert agent.run("Go", conversation_id="s").reason == "answered"  # type: ignore[union-attr]
    (answer,) = [e for e in agent.conversation("s").journal if isinstance(e, ToolReturned)]
    assert answer.status == ("invalid_arguments" if given == "arguments" and levels >= LEVELS else "ok")
    for frames in (0, 200, 400, 600):
        again = Agent(ScriptedModel("Fine."), search, store=store)
        run = under(frames, lambda again=again: again.run("Again", conversation_id="s"))  # type: ignore[misc]
        assert run.text == "Fine."
    store.close()


@pytest.mark.parametrize("copy", [clean_json, plain_json])
def test_D14_values_are_copied_without_recursion(copy: Callable[[object], Any]) -> None:
    value = nested(490)
    assert under(600, lambda: copy(value)) == copy(value)
    assert copy({"b": [1, {"c": None}], "a": ("x", 1.5, float("inf"))}) == {
        "b": [1, {"c": None}],
        "a": ["x", 1.5, "inf"],
    }
    circle: list[Any] = []
    circle += [circle, circle]
    for endless in (circle, nested(600)):
        with pytest.raises(ValueError, match="nested more than 500 levels"):
            copy(endless)


def test_D14_facts_are_stored_and_read_without_recursion() -> None:
    """A journal of an older version may hold what is too deep today."""
    fact = ToolReturned("c1", "ok", "x", nested(400))
    line = json.loads(json.dumps(stored(fact)))
    assert under(600, lambda: cleaned(read_event(line, 0))) == cleaned(fact)


@pytest.mark.parametrize(
    ("value", "levels"), [(1, 0), ([], 1), ({}, 1), ([[1], []], 2), ({"a": {"b": [1]}}, 3), ((1, [2]), 2)]
)
def test_levels_are_counted_as_lists_and_objects(value: Any, levels: int) -> None:
    assert is_deeper(value, levels - 1) or levels == 0
    assert not is_deeper(value, levels)
