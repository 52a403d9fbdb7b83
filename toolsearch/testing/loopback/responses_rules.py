"""What OpenAI Responses refuses in a request."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from toolsearch.support.json_types import JsonObject
from toolsearch.testing.loopback import schema_rules

__all__ = ["places_of", "problems"]

MOST_TOOLS, MOST_ID_CHARACTERS = 128, 64
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ROLES = ("user", "assistant", "system", "developer")
_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
_KEYS = {"type", "id", "call_id", "name", "namespace", "arguments", "status", "caller", "async"}  # of a function call
_CONTENTS = {"assistant": ("output_text", "refusal", "input_text")}
_INPUTS = ("input_text", "input_image", "input_file")
_ABOUT_TOOLS = ("tool_choice", "parallel_tool_calls")


def problems(body: JsonObject) -> Iterator[str]:
    """Why a request with this body is refused, the first reason first."""
    tools = body.get("tools") or []
    names = [(space, function["name"]) for space, function in _functions(tools)]
    if len(names) > MOST_TOOLS:
        yield f"Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}."
    searches = any(tool["type"] == "tool_search" for tool in tools)
    if not searches and any(function.get("defer_loading") for _, function in _functions(tools)):
        yield "Deferred tools require a tool_search tool."
    yield from _problems_of_tools(tools)
    yield from _problems_of_choice(body, {name for _, name in names})
    items = body["input"]
    if not isinstance(items, str):
        yield from _problems_of_places(tools, items)
        yield from _problems_of_pairs(items)
        yield from _problems_of_items(items, is_stored=body.get("store") is not False)
    elif len({*names}) < len(names):
        yield f"duplicate tools: {names}"


def _problems_of_choice(body: JsonObject, names: Collection[str]) -> Iterator[str]:
    if not body.get("tools"):
        yield from (f"{key} is only allowed when 'tools' are specified." for key in _ABOUT_TOOLS if body.get(key))
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping):
        chosen = choice.get("tools") or [choice]
        for name in [each["name"] for each in chosen if each.get("type") == "function"]:
            if name not in names:
                yield f"Tool choice '{name}' not found in 'tools' parameter."


# -- tools -------------------------------------------------------------------------------------------------------


def _problems_of_tools(tools: list[JsonObject]) -> Iterator[str]:
    for tool in tools:
        if tool["type"] == "namespace" and not tool.get("description"):
            yield f"Missing required parameter: the description of the namespace {tool['name']!r}."
        if tool["type"] == "tool_search" and tool.get("execution") == "client" and not tool.get("description"):
            yield "Missing required parameter: the description of a tool_search that the client executes."
    for _, function in _functions(tools):
        rules = schema_rules.openai_strict if function.get("strict") else schema_rules.openai
        parameters = function.get("parameters") or {"type": "object", "properties": {}}
        for problem in rules(function["name"], function.get("description"), parameters):
            yield f"Invalid schema for function {function['name']!r}: {problem}"


def _functions(tools: list[JsonObject]) -> Iterator[tuple[str, JsonObject]]:
    """Every function, with the name of its namespace, "" for none."""
    for tool in tools:
        if tool["type"] == "function":
            yield "", tool
        elif tool["type"] == "namespace":
            yield from ((tool["name"], inner) for inner in tool["tools"])


def places_of(tools: list[JsonObject], items: list[JsonObject]) -> Iterator[tuple[str, str]]:
    """Name and namespace of every function that can be called: those in `tools`, and those that items bring.

    A function that comes later, and alone, has a namespace of its own name.
    """
    for space, function in _functions(tools):
        if not function.get("defer_loading"):
            yield function["name"], space
    for item in items:
        if item.get("type") in ("additional_tools", "tool_search_output"):
            for space, function in _functions(item["tools"]):
                yield function["name"], space or function["name"]


def _problems_of_places(tools: list[JsonObject], items: list[JsonObject]) -> Iterator[str]:
    """Each tool is declared once, and each call says where.

    A call of a tool that is not there yet, or nowhere, is taken: models make up names.
    """
    places = [*places_of(tools, items)]
    names = [name for name, space in places if space in ("", name)]
    for name in {name for name in names if names.count(name) > 1} | {n for n, s in places if places.count((n, s)) > 1}:
        yield f"duplicate tool: {name!r} is declared twice"
    for place, item in enumerate(items):
        if item.get("type") != "function_call":
            continue
        name, space = item["name"], item.get("namespace") or ""
        now = {where for each, where in places_of(tools, items[:place]) if each == name}
        later = {where for each, where in places if each == name} if not now else set()
        if space not in (now or {"", *later}):
            there = f"namespace {space!r}" if space else "default namespace"
            wrong = "Unknown" if space else "Missing"
            yield f"input[{place}]: {wrong} namespace for function_call '{name}'. It does not exist in the {there}."


# -- items -------------------------------------------------------------------------------------------------------


def _problems_of_pairs(items: list[JsonObject]) -> Iterator[str]:
    waiting: dict[str, str] = {}
    for place, item in enumerate(items):
        kind, at = item.get("type"), f"input[{place}]"
        if item.get("execution") == "server":
            continue
        if (output := _OUTPUTS.get(str(kind))) is not None:
            if not 0 < len(item["call_id"]) <= MOST_ID_CHARACTERS:
                yield f"Invalid '{at}.call_id': string too long. Expected a string with maximum length 64."
            if item["call_id"] in waiting:
                yield f"{at}: two calls have the call_id {item['call_id']}"
            waiting[item["call_id"]] = output
        elif kind in _OUTPUTS.values() and waiting.pop(item["call_id"], None) != kind:
            yield f"{at}: No tool call found for {kind} with call_id {item['call_id']}."
        elif item.get("role") == "user" and waiting:
            break
    if waiting:
        yield f"No tool output found for function call {', '.join(waiting)}."


def _problems_of_items(items: list[JsonObject], *, is_stored: bool) -> Iterator[str]:
    ids: set[str] = set()
    for place, item in enumerate(items):
        kind, at = item.get("type", "message"), f"input[{place}]"
        if (item_id := item.get("id")) in ids:
            yield f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
        ids |= {item_id} if item_id else set()
        match kind:
            case "message":
                yield from _problems_of_message(item, at)
            case "function_call":
                yield from _problems_of_call(item, at)
            case "function_call_output":
                yield from _problems_of_parts(item["output"], _INPUTS, f"{at}.output")
            case "additional_tools" | "tool_search_output":
                if kind == "additional_tools" and item.get("role") != "developer":
                    yield f"{at}.role: expected 'developer'"
                yield from _problems_of_tools(item["tools"])
            case "reasoning":
                after = items[place + 1] if place + 1 < len(items) else {}
                if after.get("role") == "user" or not after:
                    yield f"Item '{item_id}' of type 'reasoning' was provided without its required following item."
                if not is_stored and not item.get("encrypted_content"):
                    yield f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false."
            case _:
                pass


def _problems_of_message(item: JsonObject, at: str) -> Iterator[str]:
    role = item.get("role")
    if role not in _ROLES:
        yield f"Invalid value: {role!r} at {at}.role"
    yield from _problems_of_parts(item["content"], _CONTENTS.get(str(role), _INPUTS), f"{at}.content")


def _problems_of_parts(content: Any, kinds: Collection[str], at: str) -> Iterator[str]:
    if not isinstance(content, str | list):
        yield f"Invalid type for '{at}': expected a string or an array"
    for part in content if isinstance(content, list) else []:
        if part["type"] not in kinds:
            yield f"Invalid value: {part['type']!r} at {at}"
        if "parsed" in part:
            yield f"Unknown parameter: '{at}.parsed'."


def _problems_of_call(item: JsonObject, at: str) -> Iterator[str]:
    yield from (f"Unknown parameter: '{at}.{key}'." for key in item.keys() - _KEYS)
    if not isinstance(item["arguments"], str):
        yield f"{at}.arguments: expected a string"
    if not _NAME.fullmatch(item["name"]):
        yield f"Invalid '{at}.name': string does not match pattern."
