"""What of a tool's definition is pinned, and the difference between two definitions, for people to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, TypeAlias

from toolsearch import Tool, tool
from toolsearch.support.redaction import visible
from toolsearch.support.text import counted, plain_json

__all__ = ["Pinned", "changed_parts", "differences", "pinned_definition", "said_by"]

Pinned: TypeAlias = Mapping[str, Any]

_WORDS = {
    "inputSchema": "input schema", "outputSchema": "output schema", "annotations": "hints", "options": "marks",
}  # fmt: skip
_COMPARED = 1_000  # lines that are compared one by one; of more, only the first ones are shown
_SHOWN = 20  # lines of a side that is not compared
_LINE = 160  # characters
_SENTENCE = re.compile(r"(?<=[.!?;]) +|\n")


def pinned_definition(of: Tool) -> dict[str, Any]:
    """Everything of a definition that a model or a policy sees: what `Tool.digest` covers, without what is empty."""
    # A mark that is not set says nothing, so that pins outlive a version of toolsearch that has more of them.
    marks = {
        name: value
        for name, value in of.marks.to_options().items()
        if value is not False or name in ("alone", "repeatable")
    }
    parts: dict[str, object] = {
        "name": of.name,
        "server": of.server,
        "title": of.title,
        "description": of.description,
        "inputSchema": of.input_schema,
        "outputSchema": of.output_schema,
        "annotations": of.annotations,
        "options": {**marks, "roles": sorted(of.roles)} if of.roles else marks,
        "category": of.category,
        "tags": of.tags,
        "examples": of.examples,
        "version": of.version,
    }
    pinned: dict[str, Any] = plain_json({name: value for name, value in parts.items() if value})
    return pinned


def said_by(server: str, text: str) -> Tool:
    """The instructions of a server, which a client may put before its model, as something that can be pinned.

    The id is the name of the server alone, which no tool of a server has. What a person would not see is removed.
    """
    schema = {"type": "object", "properties": {}}
    made = tool({"name": "instructions", "description": text, "inputSchema": schema}, server=server)
    return replace(made, id=made.id.rpartition("/")[0])


def changed_parts(old: Pinned, new: Pinned) -> tuple[str, ...]:
    """What differs, in words: "description", "input schema", …; none of the texts themselves."""
    names = [*new, *(name for name in old if name not in new)]
    return tuple(_WORDS.get(name, name) for name in names if old.get(name) != new.get(name))


def differences(old: Pinned, new: Pinned) -> tuple[str, ...]:
    """The lines that went ("- …") and came ("+ …"), part by part; control characters are written out."""
    return tuple(visible(line) for line in _lines(old, new))


def _lines(old: Pinned, new: Pinned) -> Iterator[str]:
    for name in [*new, *(name for name in old if name not in new)]:
        if old.get(name) != new.get(name):
            yield f"{_WORDS.get(name, name)}:"
            yield from _changes(_text_lines(old.get(name)), _text_lines(new.get(name)))


def _text_lines(value: object) -> list[str]:
    """A part as lines, a sentence each, so that a change shows where it is."""
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
    pieces = [piece for piece in _SENTENCE.split(text) if piece.strip()]
    return [piece[at : at + _LINE] for piece in pieces for at in range(0, len(piece), _LINE)]


def _changes(old: list[str], new: list[str]) -> Iterator[str]:
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    old, new = old[same:], new[same:]
    if len(old) > _COMPARED or len(new) > _COMPARED:
        for sign, lines in (("-", old), ("+", new)):
            yield from (f"  {sign} {line}" for line in lines[:_SHOWN])
            if len(lines) > _SHOWN:
                yield f"  {sign} … and {counted(len(lines) - _SHOWN, 'more line')}"
        return
    for kind, from_old, to_old, from_new, to_new in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from (f"  - {line}" for line in old[from_old:to_old])
            yield from (f"  + {line}" for line in new[from_new:to_new])
