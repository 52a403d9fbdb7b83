"""Public research sets, read from the folder that their authors publish: which forms there are, and what they share.

A form is named, as in `bfcl:FOLDER`, or recognised by the files that only this set has. Nothing is fetched. What a set
says is kept, with these exceptions: types that JSON Schema does not know are translated or left out, and a label that
names no tool of the set is dropped, as a note of the data set says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.data.files import JsonObject
from toolsearch_evals.reports.report import counted

__all__ = ["Labels", "PublicForm", "PublicSet", "as_object", "files_like", "flat_schema", "json_types", "one_file"]

_TYPES = {
    "dict": "object", "hashmap": "object", "map": "object", "float": "number", "double": "number", "decimal": "number",
    "tuple": "array", "list": "array", "arraylist": "array", "str": "string", "char": "string", "text": "string",
    "date": "string", "int": "integer", "long": "integer", "short": "integer", "byte": "integer", "bool": "boolean",
    "none": "null",
}  # fmt: skip
_KNOWN = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_NAMED = 5  # names in a note, of those that were dropped


@dataclass(frozen=True)
class PublicSet:
    """Definitions and cases in the form of research sets (see `cases`), and what was left out, in sentences."""

    definitions: tuple[JsonObject, ...]
    rows: tuple[JsonObject, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublicForm:
    """How a set is published: its name here, the files that give it away, and what reads its folder.

    A folder gives it away by files, in it or below it, for all patterns of one of the `signatures`; the first of them
    must begin with a text that has the word `holds`.
    """

    name: str
    title: str
    signatures: tuple[tuple[str, ...], ...]
    read: Callable[[Path], PublicSet]
    holds: str = ""

    def fits(self, folder: Path) -> bool:
        """Whether the folder has the files that give this form away."""
        for patterns in self.signatures:
            found = [next(folder.rglob(each), None) for each in patterns]
            if all(found) and (not self.holds or (found[0] is not None and self.holds in _beginning(found[0]))):
                return True
        return False


def _beginning(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(2_000).decode("utf-8", "replace")


@dataclass
class Labels:
    """The labels of a set as its rows are read: each need is a list of ids; one that no tool can meet is dropped."""

    known: frozenset[str]
    rows: list[JsonObject] = field(default_factory=list)
    _dropped: dict[str, None] = field(default_factory=dict)
    _without: int = 0

    def add(self, row: Mapping[str, Any], needs: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Adds a case. A need is the name that the label gives, and the ids of the tools that meet it."""
        groups = []
        for name, ids in needs:
            if found := [i for i in ids if i in self.known]:
                groups.append(found)
            else:
                self._dropped[name] = None
        if groups:
            self.rows.append({**row, "gold_groups": groups})
        else:
            self._without += 1

    def made(self, definitions: Iterable[JsonObject], *notes: str) -> PublicSet:
        """The set, with notes on what was dropped."""
        told = list(notes)
        if self._dropped:
            names = ", ".join(map(repr, [*self._dropped][:_NAMED]))
            more = f" and {len(self._dropped) - _NAMED} more" if len(self._dropped) > _NAMED else ""
            told.append(f"Labels that name no tool of the set were left out: {names}{more}.")
        if self._without:
            requests = f"{counted(self._without, 'request')} {'was' if self._without == 1 else 'were'}"
            told.append(f"{requests} left out: no label names a tool of the set.")
        return PublicSet(tuple(definitions), tuple(self.rows), tuple(told))


def files_like(folder: Path, pattern: str) -> list[Path]:
    """The files in the folder or below it whose names match, in order."""
    return sorted(file for file in folder.rglob(pattern) if file.is_file())


def one_file(folder: Path, pattern: str, form: str) -> Path:
    """The first file of that name in the folder or below it. Raises `SetupError` if there is none."""
    found = files_like(folder, pattern)
    if not found:
        raise SetupError(f"{str(folder)!r} is not a whole {form}: no file in it is called {pattern!r}")
    return found[0]


def as_object(value: Any, where: str) -> JsonObject:
    """A value that must be a JSON object. Raises `SetupError` naming the place."""
    if not isinstance(value, dict):
        raise SetupError(f"{where} is not a JSON object: {str(value)[:60]!r}")
    return value


def flat_schema(parameters: Any, required: Iterable[str] = ()) -> JsonObject:
    """The JSON Schema of parameters that a set lists by name, each with its type and description."""
    named = parameters if isinstance(parameters, Mapping) else {}
    if isinstance(named.get("type"), str) and isinstance(named.get("properties"), Mapping):
        return as_object(json_types({**named, "type": "object"}), "a schema")
    properties = {
        str(name): json_types(told) if isinstance(told, Mapping) else {"type": "string", "description": str(told)}
        for name, told in named.items()
    }
    return {"type": "object", "properties": properties, "required": [each for each in required if each in properties]}


def json_types(schema: Any) -> Any:
    """A schema whose types are those of JSON Schema: "dict" becomes "object"; "str, optional" becomes "string"."""
    if isinstance(schema, list):
        return [json_types(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return dict(_translated(schema))


def _translated(schema: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            word = re.split(r"[^a-z]", value.strip().lower(), maxsplit=1)[0]
            if (kind := _TYPES.get(word, word)) in _KNOWN:
                yield key, kind
        elif key == "properties" and isinstance(value, Mapping):
            yield key, {str(name): json_types(of) for name, of in value.items()}
        elif key == "required" and not isinstance(value, list):
            continue  # some sets say `"required": true` at a parameter
        elif key in ("default", "enum", "const", "examples", "example"):
            yield key, value
        else:
            yield str(key), json_types(value)
