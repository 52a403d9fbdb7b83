"""What people pass in place of a definition is called what it is."""

from typing import Any

import pytest

from toolsearch import Catalog, DefinitionError, SetupError, tool

SHAPES: list[tuple[Any, str]] = [
    ({"mcpServers": {"notes": {"command": "npx"}}}, "the configuration of an MCP client"),
    ({"servers": {"notes": {"type": "http", "url": "http://127.0.0.1"}}}, "the configuration of an MCP client"),
    ({"context_servers": {"notes": {"command": "npx"}}}, "the configuration of an MCP client"),
    ({"mcp": {"servers": {"notes": {"command": "npx"}}}}, "the configuration of an MCP client"),
    ([{"name": "notes", "command": "npx", "args": ["-y", "notes"]}], "the configuration of an MCP client"),
    ({"openapi": "3.0.0", "paths": {}}, "an OpenAPI description"),
    ({"swagger": "2.0", "paths": {}}, "an OpenAPI description"),
    ({"asyncapi": "3.0.0", "channels": {}}, "an AsyncAPI description"),
    ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}, "'Method not found'"),
    ({"error": {"message": "Unauthorized"}}, "the answer of a server that failed: 'Unauthorized'"),
    ({"error": "invalid_token"}, "the answer of a server that failed: 'invalid_token'"),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, "an RPC request"),
    ({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}, "initialize"),
    ({"jsonrpc": "2.0", "id": 1, "result": {"prompts": [{"name": "a"}]}}, "an answer to prompts/list"),
    ({"resources": [{"uri": "file:///a", "name": "a"}]}, "an answer to resources/list"),
    ({"resourceTemplates": []}, "resource templates"),
    ([{"uri": "file:///a", "name": "a", "description": "A file."}], "a resource of an MCP server"),
    ({"content": [{"type": "text", "text": "hi"}], "isError": False}, "the result of a call"),
    ([{"title": "RotateKey", "type": "object", "properties": {}}], "JSON schemas, which have a title"),
    ({"$defs": {}, "$ref": "#/$defs/RotateKey"}, "JSON schemas"),
    ([{"type": "tool_use", "id": "1", "name": "a", "input": {}}], "a call of a tool"),
    ([{"type": "function", "id": "1", "function": {"name": "a", "arguments": "{}"}}], "a call of a tool"),
    ([{"role": "user", "content": "hello"}], "a message of a conversation"),
    ({"name": "io.github.a/b", "description": "A server.", "packages": []}, "an entry of the MCP registry"),
    (["add_note", "del_note"], "'add_note' is a name or a text"),
    ({}, "an empty object"),
]


@pytest.mark.parametrize(("source", "shape"), SHAPES, ids=[str(source)[:40] for source, _ in SHAPES])
def test_what_is_no_list_of_tools_is_named(source: Any, shape: str) -> None:
    """J22: it raises, with the name of the shape and what to pass instead, and is no tool beside good ones."""
    with pytest.raises(SetupError) as caught:
        Catalog(source)
    assert shape in str(caught.value)
    assert "pass" in str(caught.value) or "give each a 'name'" in str(caught.value)
    beside = Catalog([{"name": "good"}, *(source if isinstance(source, list) else [source])])
    assert [t.id for t in beside] == ["good"]
    assert shape in beside.quarantined[0].reason


HOSTED: list[dict[str, Any]] = [
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    {"type": "web_search"},
    {"type": "web_search_preview_2025_03_11"},
    {"type": "web_fetch_20250910", "name": "web_fetch"},
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    {"type": "computer_20250124", "name": "computer", "display_width_px": 1024, "display_height_px": 768},
    {"type": "computer_use_preview", "display_width": 1024},
    {"type": "memory_20250818", "name": "memory"},
    {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "file_search", "vector_store_ids": ["a"]},
    {"type": "image_generation"},
    {"type": "mcp", "server_label": "a", "server_url": "http://127.0.0.1"},
    {"type": "local_shell"},
    {"type": "apply_patch"},
    {"type": "custom", "name": "patch", "description": "Free-form text.", "format": {"type": "grammar"}},
    {"type": "custom", "custom": {"name": "patch"}},
    {"type": "something_new_20270101", "name": "something"},
    {"type": "something_newer", "name": "something"},
    {"google_search": {}},
    {"googleSearch": {}},
    {"urlContext": {}},
    {"code_execution": {}},
]  # fmt: skip


@pytest.mark.parametrize("source", HOSTED, ids=[str(source)[:40] for source in HOSTED])
def test_a_tool_of_the_providers_own_is_quarantined(source: dict[str, Any]) -> None:
    """J39: no call of it would reach a function of the program."""
    catalog = Catalog([source, {"name": "good"}])
    assert [t.id for t in catalog] == ["good"]
    assert "is a tool of the provider's own; put it into the request yourself" in catalog.quarantined[0].reason
    with pytest.raises(DefinitionError, match="provider's own"):
        tool(source)


def test_a_tool_of_the_providers_own_beside_declarations_is_told_too() -> None:
    """J39: Gemini's form has both in one object."""
    catalog = Catalog([{"functionDeclarations": [{"name": "good"}], "googleSearch": {}}])
    assert [t.id for t in catalog] == ["good"]
    assert "'googleSearch'" in catalog.quarantined[0].reason


@pytest.mark.parametrize("source", [
    {"type": "custom", "name": "good", "input_schema": {"type": "object"}},
    {"type": "function", "name": "good"},
    {"type": "memory", "name": "good", "description": "Remember.", "parameters": {"type": "object"}},
    {"type": "mcp", "name": "good", "inputSchema": {}},
    {"type": "api", "name": "good", "description": "Call an API."},
    {"name": "web_search", "description": "Search the web."},
])  # fmt: skip
def test_a_programs_own_tool_may_be_called_so(source: dict[str, Any]) -> None:
    assert len(Catalog([source])) == 1
