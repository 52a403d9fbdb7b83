"""Which tools of a request a provider has refused, by the error that any SDK raised.

The status of the error must be one of a request that is wrong. Its text, and its `param`, name a tool, or the place of
one among the tools of the request: OpenAI names the function, Anthropic writes `tools.3.custom.input_schema`, Gemini
`tools[0].function_declarations[2].parameters`. A tool that a message brings has a place among the messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from toolsearch.support.text import clean

__all__ = ["brought_tools", "refused_tool", "refused_tools", "request_tools"]

_STATUSES = frozenset([400, 422])
_MOST_TEXT = 20_000  # characters of an error that are read
_OF_A_TOOL = re.compile(r"schema|function|tool|parameter", re.IGNORECASE)
_QUOTED = re.compile(r"""'([\w.:-]{1,128})'|"([\w.:-]{1,128})"|`([\w.:-]{1,128})`""")
_DECLARED = re.compile(r"tools\W{1,3}(\d{1,5})\W{1,3}function_?declarations\W{1,3}(\d{1,5})", re.IGNORECASE)
# Not `messages.2.content`, `tool_choice`, or a place inside a namespace: only what begins with the list of tools.
_PLACE = re.compile(r"(?<![\w.\]])tools(?:\.|\[)(\d{1,5})(?![\w])(?!\W{1,3}function_?declarations)", re.IGNORECASE)
# Where native delivery brings a tool with a message: `messages.3.content.0.tool.definition`, `input[2].tools[0]`.
_IN_MESSAGES = re.compile(r"\b(?:messages|input)(?:[.\[\]]{1,2}\w{1,64}){1,20}")


def refused_tool(error: BaseException, tools: Iterable[object]) -> str | None:
    """The name of the first tool that an error of a provider is about; None if it is about none of these.

    `tools` are those of the request, as `tools_for` of a wire gave them. Take the tool out with `Session.set_aside`,
    and send the request again.
    """
    return next(iter(refused_tools(error, tools)), None)


def refused_tools(error: BaseException, tools: Iterable[object], others: Iterable[str] = ()) -> list[str]:
    """As `refused_tool`, all that the error names: Gemini reports every tool that it refuses.

    `others` are names of tools that stand elsewhere in the request, so that no place leads to them.
    """
    if _status(error) not in _STATUSES:
        return []
    text = _text(error)
    if not _OF_A_TOOL.search(text):
        return []
    listed = list(tools)
    names = [names_of(entry) for entry in listed]
    known = {name for each in names for name in each}.union(others)
    found = [name for match in _QUOTED.finditer(text) if (name := match[1] or match[2] or match[3]) in known]
    for outer, inner in ((int(match[1]), int(match[2])) for match in _DECLARED.finditer(text)):
        found += names[outer][inner : inner + 1] if outer < len(names) else []
        if not any(isinstance(entry, Mapping) and _declarations(entry) for entry in listed):  # a list of declarations
            found += [name for each in names[inner : inner + 1] for name in each]
    for place in (int(match[1]) for match in _PLACE.finditer(text)):
        found += names[place][:1] if place < len(names) else []
    return list(dict.fromkeys(found))


def brought_tools(error: BaseException, arguments: object) -> list[str]:
    """The names of the tools that an error is about by their places in the messages of a request."""
    found: list[str] = []
    for match in _IN_MESSAGES.finditer(_text(error)) if _status(error) in _STATUSES else ():
        value = arguments
        for step in re.findall(r"\w+", match[0]):  # a step that leads nowhere is the name of a form, such as `custom`
            if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            elif isinstance(value, Mapping) and step in value:
                value = value[step]
            if isinstance(value, Mapping) and {"input_schema", "parameters"} & {*value}:
                found += names_of(value)
                break
    return list(dict.fromkeys(found))


def request_tools(arguments: object) -> list[object]:
    """The tools among the arguments of a client's call: `tools`, or those of its `config`."""
    if not isinstance(arguments, Mapping):
        return []
    config = arguments.get("config")
    tools = arguments.get("tools") or (config.get("tools") if isinstance(config, Mapping) else None)
    return list(tools) if isinstance(tools, list | tuple) else []


def names_of(entry: object) -> list[str]:
    """The names of the tools in one entry of a list of tools: one, or several in a group or a namespace."""
    if not isinstance(entry, Mapping):
        name = getattr(entry, "name", None)
        return [name] if isinstance(name, str) else []
    if several := _declarations(entry):
        return [name for each in several for name in names_of(each)]
    function = entry.get("function")
    name = (function if isinstance(function, Mapping) else entry).get("name")
    return [name] if isinstance(name, str) else []


def _declarations(entry: Mapping[str, object]) -> list[object]:
    for key in ("function_declarations", "functionDeclarations", "tools"):
        if isinstance(inner := entry.get(key), list):
            return inner
    return []


def _status(error: BaseException) -> object:
    """The status of a reply, as the SDKs have it: `status_code` of the error or of its response, or `code`."""
    for holder in (error, getattr(error, "response", None)):
        if isinstance(status := getattr(holder, "status_code", None), int):
            return status
    return getattr(error, "code", None)


def _text(error: BaseException) -> str:
    text = ""
    with suppress(Exception):
        text = str(error)
    param = getattr(error, "param", None)
    return clean(f"{text} {param if isinstance(param, str) else ''}"[:_MOST_TEXT])
