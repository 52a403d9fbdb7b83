"""Things that people pass in place of a definition: an error says what each is, and what to pass instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from toolsearch.errors import DefinitionError
from toolsearch.support.checks import shown
from toolsearch.support.json_types import JsonObject

__all__ = ["HOSTED_BY_KEY", "NotATool", "check_hosted", "named_shape", "snake"]


class NotATool(DefinitionError):
    """What was passed is no definition at all. A source in which there is nothing else raises a `SetupError`."""


_Test: TypeAlias = Callable[[JsonObject], bool]

LIST_NEXT = "pass what a server answers to tools/list"
_SERVER_MAPS = ("mcpServers", "servers", "context_servers", "mcp_servers", "mcp")
_CALLS = tuple("tool_use server_tool_use function_call tool_call mcp_call custom_tool_call".split())


def _holds(key: str, *kinds: type) -> _Test:
    return lambda source: isinstance(source.get(key), kinds)


def _is_client_configuration(source: JsonObject) -> bool:
    if any(isinstance(source.get(key), Mapping) for key in _SERVER_MAPS):
        return True
    # One server of such a configuration.
    return isinstance(source.get("command"), str) and isinstance(source.get("args", source.get("env")), list | Mapping)


def _is_error(source: JsonObject) -> bool:
    error = source.get("error")
    return isinstance(error, Mapping) or (isinstance(error, str) and "name" not in source)


def _is_call(source: JsonObject) -> bool:
    function = source.get("function")
    body = function if isinstance(function, Mapping) else source
    written = isinstance(body.get("arguments"), str) and isinstance(body.get("name"), str)
    return source.get("type") in _CALLS or (written and "description" not in body)


def _is_json_schema(source: JsonObject) -> bool:
    keys = ("properties", "$defs", "$schema", "$ref")
    return "name" not in source and (any(key in source for key in keys) or {"title", "type"} <= source.keys())


_SHAPES: tuple[tuple[_Test, str], ...] = (
    (lambda source: not source, "it is an empty object; pass a list of tool definitions"),
    (
        _is_client_configuration,
        "it is the configuration of an MCP client, which says how to reach servers and not which tools they have; "
        + LIST_NEXT,
    ),
    (
        lambda source: "openapi" in source or "swagger" in source,
        "it is an OpenAPI description of an HTTP API; pass a list of tool definitions",
    ),
    (lambda source: "asyncapi" in source, "it is an AsyncAPI description; pass a list of tool definitions"),
    (lambda source: "__schema" in source, "it is a GraphQL schema; pass a list of tool definitions"),
    (_holds("prompts", list), f"it is an answer to prompts/list, and prompts are no tools; {LIST_NEXT}"),
    (_holds("resources", list), f"it is an answer to resources/list, and resources are no tools; {LIST_NEXT}"),
    (_holds("resourceTemplates", list), f"it is a list of resource templates, which are no tools; {LIST_NEXT}"),
    (lambda source: "protocolVersion" in source, f"it is an answer to initialize; {LIST_NEXT}"),
    (lambda source: "jsonrpc" in source and "method" in source, f"it is an RPC request or notification; {LIST_NEXT}"),
    (
        lambda source: any(isinstance(source.get(key), list) for key in ("packages", "remotes")),
        f"it is an entry of the MCP registry, which says how to get a server; start the server, and {LIST_NEXT}",
    ),
    (_is_call, "it is a call of a tool; pass the tool's definition, with its name, description and parameters"),
    (lambda source: "role" in source and "content" in source, "it is a message of a conversation; pass the tools"),
    (
        lambda source: isinstance(source.get("content"), list) and ("isError" in source or "name" not in source),
        f"it is the result of a call of a tool; {LIST_NEXT}",
    ),
    (_holds("uri", str), f"it is a resource of an MCP server, not a tool; {LIST_NEXT}"),
    (
        _is_json_schema,
        "its entries look like JSON schemas, which have a title; give each a 'name': {'name': …, 'input_schema': …}",
    ),
)  # fmt: skip


def named_shape(source: JsonObject) -> str | None:
    """What a JSON object is instead of a definition or a list of them, if its kind is known, and the next step."""
    if _is_error(source):
        error = source["error"]
        message = error.get("message", error) if isinstance(error, Mapping) else error
        return f"it is the answer of a server that failed: {shown(message)}; see to that, and {LIST_NEXT}"
    return next((sentence for fits, sentence in _SHAPES if fits(source)), None)


# What providers run themselves, as they name it in `type`; some add a date, or "preview".
_HOSTED = re.compile(
    r"(?:web_search|web_fetch|x_search|code_interpreter|code_execution|file_search|image_generation|computer|"
    r"computer_use|bash|text_editor|memory|local_shell|hosted_shell|shell|apply_patch|mcp|mcp_server|mcp_toolset|"
    r"hosted_mcp|tool_search|tool_search_tool\w*|advisor|url_context|google_search|google_search_retrieval|google_maps|"
    r"enterprise_web_search|retrieval|collections_search|programmatic_tool_calling)"
    r"(?:_tool)?(?:_preview|_beta)?(?:_20\d\d_?\d\d_?\d\d)?"
)
_DATED = re.compile(r"\w+_20\d{6}")  # Anthropic's way to name a version
HOSTED_BY_KEY = frozenset(
    "google_search google_search_retrieval code_execution url_context google_maps file_search computer_use "
    "enterprise_web_search retrieval parallel_ai_search".split()
)
"""The provider's own tools in Gemini's form: one key each, and no name."""


def check_hosted(body: JsonObject, schema: object) -> None:
    """Raises `DefinitionError` for a tool that the provider runs: no program could answer a call of it."""
    kind, name = body.get("type"), body.get("name")
    named = isinstance(name, str)
    hosted = False
    if isinstance(kind, str) and kind not in ("function", "object", "tool"):
        known = bool(_HOSTED.fullmatch(kind) or _DATED.fullmatch(kind))
        free_text = kind == "custom" and ("format" in body or isinstance(body.get("custom"), Mapping))
        unknown = "description" not in body and named
        hosted = (schema is None and (known or free_text or unknown)) or (known and not named)
    if not hosted and not named and len(body) <= 2:
        for key in body:
            if snake(str(key)) in HOSTED_BY_KEY and isinstance(body[key], Mapping | None):
                kind, hosted = key, True
    if hosted:
        raise DefinitionError(
            f"{str(name if named else kind)!r}, of the type {kind!r}, is a tool of the provider's own; put it into the "
            "request yourself"
        )


def snake(key: str) -> str:
    """`googleSearch` as `google_search`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()
