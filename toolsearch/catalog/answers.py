"""What a model answers when it is asked for example queries: JSON or plain lines, read in any form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from toolsearch.catalog.tools import Tool

__all__ = ["read_answer"]

Queries: TypeAlias = dict[str, list[object]]
"""By tool id, as the model wrote them: not every item need be a text."""

# Possessive, so that a line costs time in proportion to its length.
_HEADING = re.compile(r"^\W*+(?:tool\s+)?(\d++)\W*+(?:(\w(?:[^\s:*`]*\w)?)\W*+)?$", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d+[.)]|[a-z][.)])\s+")


def read_answer(answer: str, tools: Sequence[Tool]) -> Queries:
    """The queries by tool id, in whatever form they come: JSON, fenced, amid talk, or lines below headings."""
    names: dict[str, str] = {}
    for number, tool in enumerate(tools, 1):
        names |= {key.casefold(): tool.id for key in (str(number), tool.id, tool.name)}
    for value in _json_values(answer):
        if queries := _from_json(value, names, tools):
            return queries
    return _from_lines(answer, names, tools)


def _json_values(text: str) -> Iterator[object]:
    """The JSON objects and arrays in a text, in order."""
    decoder = json.JSONDecoder()
    at, tries = 0, 0
    while (match := re.compile(r"[\[{]").search(text, at)) is not None and tries < 50:
        tries += 1
        try:
            value, at = decoder.raw_decode(text, match.start())
            yield value
        except (ValueError, RecursionError):
            at = match.end()


def _from_json(value: object, names: Mapping[str, str], tools: Sequence[Tool]) -> Queries:
    if isinstance(value, Mapping):
        return _from_object(value, names, tools)
    if not isinstance(value, list):
        return {}
    if all(isinstance(item, Mapping) for item in value):
        queries: Queries = {}
        for item in value:
            which = next((str(item[k]) for k in ("number", "tool", "id", "name") if k in item), "").strip().casefold()
            if which in names:
                queries[names[which]] = _texts_in(item)
        return queries
    if len(tools) == 1 and all(isinstance(item, str) for item in value):
        return {tools[0].id: list(value)}
    if len(value) == len(tools) and all(isinstance(item, list) for item in value):
        return {tool.id: list(item) for tool, item in zip(tools, value, strict=True)}
    return {}


def _from_object(value: Mapping[object, object], names: Mapping[str, str], tools: Sequence[Tool]) -> Queries:
    if len(value) == 1 and isinstance(inner := next(iter(value.values())), Mapping | list):
        key = str(next(iter(value))).strip().casefold()
        if key not in names:
            return _from_json(inner, names, tools)  # {"tools": …}
    keys = {key: str(key).strip().casefold() for key in value}
    queries = {names[keys[key]]: _texts_in(item) for key, item in value.items() if keys[key] in names}
    return {tool_id: texts for tool_id, texts in queries.items() if texts}


def _texts_in(item: object) -> list[object]:
    """The texts that an item is, or holds in a list."""
    if isinstance(item, Mapping):
        item = next((v for v in item.values() if isinstance(v, list)), [])
    return [item] if isinstance(item, str) else list(item) if isinstance(item, list) else []


def _from_lines(answer: str, names: Mapping[str, str], tools: Sequence[Tool]) -> Queries:
    """Lines below a heading that names the tool; where only one was asked about, all lines that look like items."""
    queries: Queries = {}
    current = tools[0].id if len(tools) == 1 else None
    for line in answer.splitlines():
        plain = line.strip().strip("#*_` ").rstrip(":").strip()
        heading = _HEADING.match(plain)
        key = heading[1] if heading else plain.casefold()
        if key in names and not (heading and heading[2] and heading[2].casefold() not in names):
            current = names[key]
        elif current is not None and _BULLET.match(line):
            queries.setdefault(current, []).append(_BULLET.sub("", line))
    return queries
