"""J28: a call of `multi_tool_use.parallel` in a loop of one's own."""

import asyncio
from typing import Any

import pytest

from toolsearch import ToolCall, ToolSearch

USES = [{"recipient_name": "functions.double", "parameters": {"n": 2}}, {"recipient_name": "double", "parameters": {}}]


def double(n: int) -> int:
    """Twice as much."""
    return 2 * n


@pytest.mark.parametrize("is_async", [False, True])
def test_J28_the_inner_calls_are_made_and_joined(is_async: bool) -> None:
    session = ToolSearch([double], mode="static").session()
    session.tools()
    call = ToolCall("c1", "multi_tool_use.parallel", {"tool_uses": USES[:1] * 2})
    result = asyncio.run(session.ahandle(call)) if is_async else session.handle(call)
    assert (result.call_id, result.name, result.status) == ("c1", "multi_tool_use.parallel", "ok")
    assert result.content == "functions.double: 4\n\nfunctions.double: 4"
    assert result.data == [4, 4]


def test_J28_one_inner_call_that_fails_is_told_and_the_others_run() -> None:
    session = ToolSearch([double], mode="static").session()
    session.tools()
    result = session.handle(ToolCall("c1", "multi_tool_use.parallel", {"tool_uses": USES}))
    assert result.status == "invalid_arguments"
    assert "functions.double: 4" in result.content
    assert "'double' did not run" in result.content


@pytest.mark.parametrize("given", [{"tool_uses": []}, {"tool_uses": [5]}, "{", None, {"tool_uses": USES, "x": 1}])
def test_J28_what_cannot_be_read_is_told_what_to_do(given: Any) -> None:
    session = ToolSearch([double], mode="static").session()
    session.tools()
    result = session.handle(ToolCall("c1", "multi_tool_use.parallel", given))
    assert (result.status, "call the tools directly, several in one reply" in result.content) == ("unknown", True)
