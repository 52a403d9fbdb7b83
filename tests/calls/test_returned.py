"""What a tool returned, as its result: values, parts, and what the client of an MCP server hands on."""

import asyncio
import base64
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import ToolCall, ToolResult, ToolSearch
from toolsearch.calls import AudioPart, ImagePart, JsonPart, ResourcePart, TextPart
from toolsearch.calls.returned import read_result

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
WAV = "UklGRiQAAABXQVZF"
ERROR_TEXT = {"type": "text", "text": "no such file"}


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def answered(value: Any) -> ToolResult:
    """The answer to a call, where `run=` hands on what it got."""
    search = ToolSearch([{"name": "fetch", "server": "files"}], run=lambda *_: value, not_loaded="run")
    return search.session().handle(ToolCall("c", "fetch", {}))


@dataclass
class FromAnotherSdk:
    """As the clients of other SDKs give it: fields of the same names, another class."""

    content: list[Any] = field(default_factory=list)
    is_error: bool = False
    structured_content: Any = None


ERRORS: list[Any] = [
    mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="no such file")], is_error=True),
    FromAnotherSdk([mcp_types.TextContent(type="text", text="no such file")], is_error=True),
    {"content": [ERROR_TEXT], "isError": True},
    {"content": [ERROR_TEXT], "is_error": True},
    {"content": [ERROR_TEXT], "isError": True, "_meta": {"a": 1}, "somethingNew": 1},
    {"content": [ERROR_TEXT], "isError": "true"},
    {"content": "no such file", "isError": True},
    SimpleNamespace(content=[mcp_types.TextContent(type="text", text="no such file")], isError=True),
    {"content": ["no such file"], "isError": True},
    {"jsonrpc": "2.0", "id": 1, "result": {"content": [ERROR_TEXT], "isError": True}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no such file"}},
    {"jsonrpc": "2.0", "id": 1, "error": "no such file"},
    {"content": ERROR_TEXT, "isError": True},
    {"content": [None, ERROR_TEXT, None], "isError": True},
    ToolResult("x", "y", "ok", {"content": [ERROR_TEXT], "isError": True}),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("value", ERRORS, ids=range(len(ERRORS)))
def test_J23_what_an_mcp_server_calls_an_error_is_an_error(value: Any) -> None:
    """J23, K16: object or dict, snake or camel case, whole answer or its result."""
    result = answered(value)
    assert (result.status, result.content) == ("failed", "no such file")
    if not isinstance(value, ToolResult):
        assert result.data is value
        assert result.parts == (TextPart("no such file"),)


def test_J23_the_async_way_gives_the_same() -> None:
    async def run(*_: Any) -> Any:
        return ERRORS[0]

    search = ToolSearch([{"name": "fetch"}], run=run, not_loaded="run")
    result = asyncio.run(search.session().ahandle(ToolCall("c", "fetch", {})))
    assert (result.status, result.content) == ("failed", "no such file")


@pytest.mark.parametrize("value", [{"content": [], "isError": True}, {"content": [text_block(" ")], "isError": True}])
def test_J23_siblings_an_error_without_a_text_says_what_to_do(value: Any) -> None:
    result = answered(value)
    assert result.status == "failed"
    assert result.content.startswith("'fetch' failed and gave no reason. ")


@pytest.mark.parametrize(
    ("content", "structured", "told"),
    [
        ([text_block('{"total": 7}')], {"total": 7}, '{"total": 7}'),
        ([text_block('{\n  "total": 7\n}')], {"total": 7}, '{\n  "total": 7\n}'),
        ([text_block("noted: hi")], {"result": "noted: hi"}, "noted: hi"),
        ([text_block("7")], {"result": 7}, "7"),
        ([text_block('{"a": 1}'), text_block('{"a": 2}')], {"result": [{"a": 1}, {"a": 2}]}, '{"a": 1}\n{"a": 2}'),
        ([text_block("a"), text_block("b")], {"result": ["a", "b"]}, "a\nb"),
        ([text_block("hi")], {"result": [text_block("hi")]}, "hi"),
        ([], {"total": 7}, '{"total": 7}'),
        ([text_block("7 orders were found")], {"total": 7}, '7 orders were found\n{"total": 7}'),
        ([text_block("[1, 2]")], [1, 2], "[1, 2]"),
        (None, {"total": 7}, '{"total": 7}'),
        ([text_block("Here:"), text_block('{"total": 7}')], {"total": 7}, 'Here:\n{"total": 7}'),
        ([text_block("a"), text_block("b"), text_block("done")], {"result": ["a", "b"]}, "a\nb\ndone"),
        ([text_block("b"), text_block("a")], {"result": ["a", "b"]}, 'b\na\n{"result": ["a", "b"]}'),
    ],
)
@pytest.mark.parametrize("names", [("structuredContent", "isError"), ("structured_content", "is_error")])
def test_K16_structured_content_is_told_once(content: Any, structured: Any, told: str, names: Any) -> None:
    """K16: servers send structured content as text too; the model reads it once, the program has it as a value."""
    result = answered({"content": content, names[0]: structured, names[1]: False})
    assert (result.status, result.content) == ("ok", told)
    assert result.parts[-1] == JsonPart(structured)


def test_K16_siblings_an_older_sdk_gives_content_and_structure_as_a_pair() -> None:
    result = answered(([mcp_types.TextContent(type="text", text="7")], {"result": 7}))
    assert (result.content, result.parts) == ("7", (TextPart("7"), JsonPart({"result": 7})))


def test_K16_structured_content_alone_is_enough() -> None:
    assert answered({"structuredContent": {"total": 7}}).content == '{"total": 7}'


MEDIA: list[tuple[Any, str]] = [
    ({"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}, "<audio/wav, 12 bytes, not shown>"),
    ({"content": [{"type": "image", "data": "QQ==", "mime_type": "image/png"}]}, "<image/png, 1 bytes, not shown>"),
    ([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}], "<audio/wav, 12 bytes, not shown>"),
    ({"type": "audio", "data": WAV, "mimeType": "audio/wav"}, "<audio/wav, 12 bytes, not shown>"),
    (mcp_types.AudioContent(type="audio", data=WAV, mime_type="audio/wav"), "<audio/wav, 12 bytes, not shown>"),
    ([mcp_types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")], "<audio/wav, 12 bytes, not shown>"),
    (AudioPart(b"RIFF$\0\0\0WAVE", "audio/wav"), "<audio/wav, 12 bytes, not shown>"),
    (["It says:", AudioPart(WAV, "audio/wav")], "It says:\n<audio/wav, 12 bytes, not shown>"),
    (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
        "<image/png, 3 bytes, not shown>",
    ),
    ({"content": [{"type": "image", "data": "QUJD"}], "isError": False}, "<image/unknown, 3 bytes, not shown>"),
    ([text_block("See:"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}],
     "See:\n<image/png, 3 bytes, not shown>"),
    (
        {
            "content": [
                {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "application/pdf", "blob": WAV}}
            ]
        },
        "Resource file:///a: <application/pdf, 12 bytes, not shown>",
    ),
    (
        {"content": [text_block("ok")], "structuredContent": {"icon": {"mimeType": "image/png", "data": WAV}}},
        'ok\n{"icon": {"mimeType": "image/png", "data": "<image/png, 12 bytes, not shown>"}}',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "told"), MEDIA, ids=range(len(MEDIA)))
def test_K16_data_is_a_placeholder_in_the_text_however_short(value: Any, told: str) -> None:
    """K16: what no model can read as text is named with type and size, and is whole in the parts."""
    result = answered(value)
    assert (result.status, result.content) == ("ok", told)
    assert result.parts


def test_a_resource_is_told_with_its_address() -> None:
    blocks = [
        mcp_types.EmbeddedResource(
            type="resource",
            resource=mcp_types.TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="hello"),
        ),
        mcp_types.ResourceLink(type="resource_link", uri="file:///b", name="b", mime_type="text/csv", description="B"),
    ]
    result = answered(mcp_types.CallToolResult(content=blocks))
    assert result.content == "Resource file:///a.txt:\nhello\nLink to file:///b (b, text/csv): B"
    assert result.parts == (
        ResourcePart("file:///a.txt", "text/plain", "", "hello"),
        ResourcePart("file:///b", "text/csv", "b", description="B"),
    )


@pytest.mark.parametrize(
    "value",
    [
        {"content": "an article", "title": "A"},
        {"content": [{"id": 1}], "next": 2},
        {"content": [{"type": "paragraph", "text": "x"}]},
        {"content": []},
        {"isError": True, "message": "theirs"},
        {"type": "text", "text": "x", "author": "ana"},
        [{"type": "text", "text": "x", "id": 7}],
        [{"type": "image", "id": 7}],
        {"type": "resource", "resource": {"id": 7}},
        {"data": "QUJD", "kind": "x"},
        ["a", "b"],
        [],
        {},
    ],
)
def test_what_only_looks_like_a_result_stays_data(value: Any) -> None:
    result = answered(value)
    assert (result.status, json.loads(result.content), result.parts) == ("ok", value, ())


def test_a_server_that_asks_for_input_has_not_answered() -> None:
    asks = mcp_types.InputRequiredResult(request_state="x")
    for value in (asks, asks.model_dump(by_alias=True), asks.model_dump()):
        result = answered(value)
        assert (result.status, result.data) == ("failed", value)
        assert "asks for more input" in result.content


def test_a_block_of_an_unknown_kind_is_told_as_the_json_that_it_is() -> None:
    result = answered({"content": [{"type": "hologram", "size": 3}], "isError": False})
    assert result.content == '{"type": "hologram", "size": 3}'


@pytest.mark.parametrize("blank", ["", "  \n", {"content": [], "isError": False}, {"content": [text_block(" ")]}, []])
def test_a_blank_result_says_that_there_is_nothing(blank: Any) -> None:
    told = answered(blank).content
    assert told == ("[]" if blank == [] else "Done; the tool returned nothing.")


def test_a_tool_can_make_parts_itself() -> None:
    parts = (TextPart("a chart"), ImagePart(PNG, "image/png"), JsonPart({"n": 1}))
    result = answered(ToolResult("", "", "ok", "", parts=parts))
    assert result.parts == parts
    assert result.content == 'a chart\n<image/png, 48 bytes, not shown>\n{"n": 1}'
    assert answered(ToolResult("", "", "failed", "no chart", parts=parts)).content == "no chart"
    assert answered(ToolResult("", "", "ok", "text", parts="junk")).parts == ()  # type: ignore[arg-type]
    assert answered(iter(parts)).parts == parts


def test_the_data_of_an_image_is_not_in_its_repr() -> None:
    part = ImagePart(b"\0" * 10_000, "image/png")
    assert len(repr(answered([part]).parts)) < 100
    assert (part.size, part) == (10_000, ImagePart(f"data:image/png;base64,{part.data}", "image/png"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "content",
                    "isError",
                    "is_error",
                    "structuredContent",
                    "type",
                    "text",
                    "data",
                    "mimeType",
                    "resource",
                    "uri",
                    "blob",
                    "source",
                    "result",
                    "jsonrpc",
                    "error",
                    "message",
                    "x",
                ]
            ),
            inner | st.sampled_from(["text", "image", "audio", "resource", "resource_link", WAV]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_whatever_is_returned_there_is_a_text_that_can_be_sent(value: Any) -> None:
    result = read_result("c", "t", value)
    assert result.status in ("ok", "failed")
    assert result.content.strip()
    result.content.encode()
    assert result.data is value
