"""A tool in one line, as the mode "compact" shows it: `name(argument:type, argument?:type)`.

It is a summary of the schema: what a call must look like is checked against the whole schema, and an answer to a misfit
shows that. Names and values are a server's texts, so each is kept short and on its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from toolsearch.catalog.tools import Tool
from toolsearch.schemas.references import resolve
from toolsearch.schemas.root_folding import folded_root

__all__ = ["signature"]

MOST_CHARACTERS = 400  # of the arguments of one tool
MOST_VALUES = 6  # of an enumeration, or of a union
VALUE_CHARACTERS = 24
_PLAIN = re.compile(r"[\w.$@-]{1,64}")
_DEPTH = 4  # of arrays in arrays, and of unions


def signature(name: str, tool: Tool) -> str:
    """The tool under this name, its arguments by the names that every provider takes; `…` stands for further ones."""
    schema, folded = tool.input_schema, folded_root(tool.input_schema).keywords
    properties, needed = folded.get("properties"), folded.get("required")
    properties = properties if isinstance(properties, Mapping) else {}
    required = set(needed) if isinstance(needed, list | tuple) else set()
    wanted = [key for key in properties if key in required] + [key for key in properties if key not in required]
    told: list[str] = []
    for key in wanted:
        argument = f"{key}{'' if key in required else '?'}:{_type(properties[key], schema)}"
        if sum(map(len, told)) + 2 * len(told) + len(argument) > MOST_CHARACTERS:
            told.append("…")
            break
        told.append(argument)
    return f"{name}({', '.join(told)})"


def _type(schema: object, root: Mapping[str, object], depth: int = 0) -> str:
    """A type in a word or two; `any` where there is none."""
    schema = resolve(root, schema)
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return "any"
    values = schema.get("enum") if "const" not in schema else [schema["const"]]
    if isinstance(values, list | tuple) and (told := _values(values)):
        return told
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list | tuple):
            return _union(_type(each, root, depth + 1) for each in options[:MOST_VALUES])
    kinds = schema.get("type")
    if isinstance(kinds, list | tuple):
        return _union(_type({**schema, "type": kind}, root, depth + 1) for kind in kinds[:MOST_VALUES])
    if kinds == "array":
        item = _type(schema.get("items"), root, depth + 1)
        return f"({item})[]" if "|" in item else f"{item}[]"
    if isinstance(kinds, str):
        return kinds if _PLAIN.fullmatch(kinds) else "any"
    return "object" if "properties" in schema else "any"


def _values(values: list[object] | tuple[object, ...]) -> str:
    """The values of an enumeration; nothing if one of them is long, or no plain value."""
    told = [json.dumps(each, ensure_ascii=False) for each in values[:MOST_VALUES] if _is_short(each)]
    if len(told) < min(len(values), MOST_VALUES):
        return ""
    return "|".join(told) + ("|…" if len(values) > MOST_VALUES else "")


def _is_short(value: object) -> bool:
    return isinstance(value, str | int | float | None) and len(str(value)) <= VALUE_CHARACTERS


def _union(kinds: Iterator[str]) -> str:
    """The kinds, each once; that an argument may be null says nothing, as it may be left out."""
    told = list(dict.fromkeys(kinds))
    return "|".join([kind for kind in told if kind != "null"] or told) or "any"
