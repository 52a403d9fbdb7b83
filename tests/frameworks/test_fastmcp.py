"""The transform for a FastMCP server, through FastMCP's own client; mounted and proxied servers have the search too."""

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from toolsearch import Catalog, Settings, ToolCall, ToolSearch

pytest.importorskip("fastmcp", reason="needs pip install 'toolsearch-kit[fastmcp]': see `make frameworks`")

from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy
from fastmcp.server.middleware import Middleware
from fastmcp.tools.base import Tool
from fastmcp.utilities.types import Image
from mcp_types import CallToolResult, ImageContent, ResourceLink, TextContent

from toolsearch.frameworks.fastmcp import SearchTransform

SEARCH = ("search_tools", {"queries": ["rotate an api key"]})
ROTATE = ("call_tool", {"name": "rotate_key", "arguments": {"name": "billing"}})
PIXEL = b"\x89PNG\r\n\x1a\n"


def rotate_key(name: str) -> str:
    """Replace an API key by a new one."""
    return f"rotated {name}"


def get_weather(city: str) -> dict[str, object]:
    """Current weather of a city."""
    return {"city": city, "celsius": 17}


def draw_note(text: str) -> Image:
    """Draw a note as a picture."""
    return Image(data=PIXEL, format="png")


def ask_user(question: str) -> str:
    """Ask the user a question."""
    return "yes"


def broken() -> str:
    """Fail, always."""
    raise ToolError("the disk is full")


def server(*functions: Callable[..., Any], transform: SearchTransform | None = None) -> FastMCP:
    made = FastMCP("demo")
    for function in functions or (rotate_key, get_weather, draw_note, ask_user, broken):
        made.tool(function)
    if transform is not None:
        made.add_transform(transform)
    return made


def searched(**options: Any) -> SearchTransform:
    return SearchTransform("keyword", **options)


def play(to: FastMCP, *calls: tuple[str, dict[str, Any]]) -> tuple[list[str], list[Any]]:
    """What a client lists, and what its calls give, in one connection."""

    async def conversation() -> tuple[list[str], list[Any]]:
        async with Client(to) as client:
            listed = [each.name for each in await client.list_tools()]
            return listed, [await client.call_tool(*call, raise_on_error=False) for call in calls]

    return asyncio.run(conversation())


def text(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


def test_a_client_lists_two_tools_and_what_is_pinned_and_calls_what_it_found() -> None:
    listed, (found, rotated) = play(server(transform=searched(pinned=["ask_user", "gone"])), SEARCH, ROTATE)
    assert listed == ["ask_user", "search_tools", "call_tool"]
    assert "rotate_key" in text(found)
    assert '"name"' in text(found)
    assert "get_weather" not in text(found)
    assert (text(rotated), rotated.is_error) == ("rotated billing", False)


def test_what_a_tool_returns_reaches_the_client_as_it_is() -> None:
    weather = ("call_tool", {"name": "get_weather", "arguments": {"city": "Rome"}})
    note = ("call_tool", {"name": "draw_note", "arguments": {"text": "milk"}})
    _, (hot, drawn) = play(server(transform=searched()), weather, note)
    assert hot.structured_content == {"city": "Rome", "celsius": 17}
    assert drawn.content[0].type == "image"
    assert drawn.content[0].mime_type == "image/png"


def test_what_goes_wrong_is_an_error_that_says_what_to_do() -> None:
    calls = [
        ("call_tool", {"name": "rotate_key", "arguments": {"key": "billing"}}),
        ("call_tool", {"name": "rotate_kye", "arguments": {}}),
        ("call_tool", {"name": "broken", "arguments": {}}),
        ("call_tool", {"name": "call_tool", "arguments": {}}),
    ]
    _, results = play(server(transform=searched()), *calls)
    assert all(result.is_error for result in results)
    misfit, unknown, failed, _ = map(text, results)
    assert "Correct the arguments" in misfit
    assert '"required"' in misfit
    assert "'rotate_key'" in unknown
    assert "get_weather" not in unknown
    assert "the disk is full" in failed


@pytest.mark.parametrize("kind", ["alone", "mounted", "mounted with search", "proxied", "proxy of a search"])
def test_J52_every_kind_of_server_has_the_search(kind: str) -> None:
    """One script; the tools may lie on a server that is mounted, or behind a proxy."""
    name = "keys_rotate_key" if kind.startswith("mounted") else "rotate_key"
    if kind == "alone":
        to = server(transform=searched())
    elif kind == "mounted":
        to = server(get_weather, transform=searched())
        to.mount(server(rotate_key), namespace="keys")
    elif kind == "mounted with search":
        to, name = server(get_weather), "rotate_key"
        to.mount(server(rotate_key, ask_user, transform=searched()), namespace="keys")
    elif kind == "proxied":
        to = create_proxy(server())
        to.add_transform(searched())
    else:
        to = create_proxy(server(transform=searched()))
    own = "keys_" if kind == "mounted with search" else ""
    calls = [(own + "search_tools", SEARCH[1]), (own + "call_tool", {**ROTATE[1], "name": name})]
    listed, (found, rotated) = play(to, *calls)
    assert set(listed) == {own + "search_tools", own + "call_tool", *(["get_weather"] if own else [])}
    assert name in text(found)
    assert text(rotated) == "rotated billing"


def test_C39_middleware_and_rights_judge_the_inner_tool_by_its_own_name() -> None:
    seen: list[str] = []

    class Gate(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            seen.append(context.message.name)
            if context.message.name == "rotate_key":
                raise ToolError("a person has to approve this")
            return await call_next(context)

    to = server(transform=searched())
    to.add_middleware(Gate())
    _, (refused,) = play(to, ROTATE)
    assert seen == ["call_tool", "rotate_key"]
    assert refused.is_error
    assert "a person has to approve this" in text(refused)


def test_C39_a_tool_that_the_client_may_not_see_is_as_good_as_none() -> None:
    to = server(transform=searched())
    to.disable(names={"rotate_key"})
    _, (found, called) = play(to, SEARCH, ROTATE)
    _, (_, unknown) = play(server(get_weather, draw_note, ask_user, broken, transform=searched()), SEARCH, ROTATE)
    assert "rotate_key" not in text(found)
    assert text(called) == text(unknown)
    assert "there is no such tool" in text(called)


def test_C39_rights_of_one_request_do_not_reach_another_one() -> None:
    hidden: set[str] = set()

    class Rights(Middleware):
        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            return [each for each in await call_next(context) if each.name not in hidden]

    to = server(transform=searched())
    to.add_middleware(Rights())
    answers = []
    for names in ({"rotate_key"}, set[str](), {"rotate_key"}):
        hidden.clear()
        hidden.update(names)
        answers.append([text(each) for each in play(to, SEARCH, ROTATE)[1]])
    assert "rotate_key" not in answers[0][0]
    assert "there is no such tool" in answers[0][1]
    assert "rotate_key" in answers[1][0]
    assert answers[1][1] == "rotated billing"
    assert answers[2] == answers[0]


def test_one_connection_may_serve_many_conversations() -> None:
    """The schema is told every time: the model of the second search has not read the answer to the first."""
    _, (first, second) = play(server(transform=searched()), SEARCH, SEARCH)
    assert text(first) == text(second)


def test_a_change_of_the_tools_is_searched_from_the_next_request_on() -> None:
    transform = searched()
    to = server(get_weather, transform=transform)
    assert "rotate_key" not in text(play(to, SEARCH)[1][0])
    to.tool(rotate_key)
    assert "rotate_key" in text(play(to, SEARCH)[1][0])


def test_a_tool_without_an_output_schema_is_read_without_a_warning() -> None:
    """FastMCP warns of every look at an older name of MCP's, also where there is nothing."""
    tool = Tool(name="note", description="Write a note.", parameters={"type": "object", "properties": {}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Catalog([tool.to_mcp_tool()]).quarantined


def test_what_a_client_of_fastmcp_returns_is_read_without_a_warning() -> None:
    link = ResourceLink(type="resource_link", name="a note", uri="note://1")
    returned = [
        CallToolResult(content=[TextContent(type="text", text="done"), link]),
        CallToolResult(content=[ImageContent(type="image", data="aGk=", mime_type="image/png")], is_error=True),
    ]
    session = ToolSearch([{"name": "f"}], mode="static", run=lambda *call: returned.pop(0)).session()
    session.tools()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = session.handle(ToolCall("1", "f")), session.handle(ToolCall("2", "f"))
    assert (first.status, second.status) == ("ok", "failed")
    assert [type(part).__name__ for part in (*first.parts, *second.parts)] == ["TextPart", "ResourcePart", "ImagePart"]


def test_the_names_of_the_two_tools_are_settings() -> None:
    settings = Settings.of(search_tool="find", call_tool="run")
    listed, (found,) = play(server(transform=searched(settings=settings)), ("find", SEARCH[1]))
    assert listed == ["find", "run"]
    assert "rotate_key" in text(found)
