"""The files of data sets: lines of JSON, and definitions of tools in any form that `Catalog` reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolsearch import Catalog, SetupError, Tool
from toolsearch.catalog.files import add_sources, read_tools

__all__ = ["JsonObject", "as_lines", "definition_of", "read_definitions", "read_json", "read_lines", "read_text"]

JsonObject = dict[str, Any]


def read_text(file: Path) -> str:
    """The text of a file. Raises `SetupError` if there is none, or if it is not UTF-8."""
    try:
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise SetupError(f"there is no file {str(file)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{str(file)!r} cannot be read as UTF-8 text: {error}") from None


def read_json(file: Path) -> Any:
    """What a file of JSON holds. Raises `SetupError` if it is none."""
    try:
        return json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{str(file)!r} is not valid JSON: {error}") from None


def read_lines(file: Path, needed: Sequence[str] = ()) -> list[JsonObject]:
    """The objects of a file with one JSON object a line, each with the `needed` keys.

    A needed "id" or "query" must be text, and each id may be there once; the query of a draft may be empty. Raises
    `SetupError` naming the line.
    """
    lines = []
    for number, text in enumerate(read_text(file).split("\n"), 1):  # not `splitlines`: a JSON text may hold U+2028
        if text.strip():
            lines.append(_line(text, f"{str(file)!r}, line {number}", needed))
    ids = [line["id"] for line in lines] if "id" in needed else []
    if twice := [i for i, times in Counter(ids).items() if times > 1]:
        raise SetupError(f"{str(file)!r} has the id {twice[0]!r} {ids.count(twice[0])} times; each case counts once")
    return lines


def _line(text: str, where: str, needed: Sequence[str]) -> JsonObject:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{where}, is not valid JSON: {error}") from None
    if not isinstance(line, dict):
        raise SetupError(f"{where}, is not a JSON object")
    if missing := [key for key in needed if key not in line]:
        raise SetupError(f"{where}, has no {missing[0]!r}")
    for key in ("id", "query"):
        may_be_empty = key == "query" and line.get("draft") is True and isinstance(line[key], str)
        if key in needed and not may_be_empty and not (isinstance(line[key], str) and line[key].strip()):
            raise SetupError(f"{where}: the {key!r} must be text, not {line[key]!r}")
    return line


def read_definitions(file: Path) -> tuple[JsonObject, ...]:
    """The definitions in a file of tools, one for each tool.

    They stay as they are if each is an object with a name. Else, as in an answer to tools/list, they are those that a
    catalog reads. Raises `SetupError` if no tool of the file is usable.
    """
    sources = read_tools(file)
    add_sources(catalog := Catalog(), sources, f"the file {str(file)!r}")
    plain = [source for source in sources if isinstance(source, dict) and isinstance(source.get("name"), str)]
    if len(plain) == len(sources) and not any(isinstance(source.get("tools"), list) for source in plain):
        return tuple(plain)
    return tuple(map(definition_of, catalog))


def definition_of(tool: Tool) -> JsonObject:
    """A tool as a line of a data set's `tools.jsonl`. Read again, it has the same id and the same texts."""
    fields: Mapping[str, object] = {
        "server": tool.server,
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input_schema": dict(tool.input_schema),
        "category": tool.category,
        "examples": list(tool.examples),
        "annotations": dict(tool.annotations),
    }
    return {key: value for key, value in fields.items() if value or key in ("description", "input_schema")}


def as_lines(objects: Iterable[Mapping[str, object]]) -> str:
    """Objects as JSON, one a line."""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)
