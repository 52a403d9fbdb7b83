"""A small world that tools really change: rooms, loans, stock, issues, files and claims, as tables in memory.

`data/tools.jsonl` has each tool's definition and, apart from it, its effect on the tables; a model reads only the
definition. The effects are a few forms (find, add, change, copy, remove), so that a new tool is a line of data.
Everything is the same each time: no clock, and new records get the next free id.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from toolsearch import Tool, ToolContext

__all__ = ["DATA", "Record", "Refusal", "Tables", "World", "effects", "world_definitions"]

DATA = Path(__file__).parent / "data"
ELSEWHERE = "elsewhere"  # the table of what tools did that are no part of the world
FOUND = 20  # records that a tool shows at most

Record = dict[str, Any]
Tables = dict[str, dict[str, Record]]  # records by table and id, in the order in which they were made


class Refusal(ValueError):
    """A tool cannot do what it was asked for: there is no such record, or its state does not allow it."""


@cache
def _lines() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in (DATA / "tools.jsonl").read_text("utf-8").splitlines())


def world_definitions() -> list[dict[str, Any]]:
    """The definitions of the world's tools, as a server lists them."""
    return [line["definition"] for line in _lines()]


@cache
def effects() -> Mapping[str, Mapping[str, Any]]:
    """What each tool of the world does, by its id."""
    return {f"{line['definition']['server']}/{line['definition']['name']}": line["effect"] for line in _lines()}


@cache
def _beginning() -> dict[str, Any]:
    state: dict[str, Any] = json.loads((DATA / "state.json").read_text("utf-8"))
    return state


class World:
    """The tables as they are now. Each task begins with a new one."""

    def __init__(self) -> None:
        self.tables: Tables = copy.deepcopy(_beginning()["tables"])

    def run(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> str:
        """What a tool answers, after it has changed the tables. Raises `Refusal` where it cannot do it.

        A tool that is no part of the world finds nothing. If it is one that acts, the call is noted as a change.
        """
        del context
        effect = effects().get(tool.id)
        if effect is not None:
            return json.dumps(self.apply(effect, arguments), ensure_ascii=False)
        if tool.marks.kind == "action":
            self._add(ELSEWHERE, {"tool": tool.id, "arguments": arguments})
            return json.dumps({"status": "done"})
        return json.dumps({"found": []})

    def apply(self, effect: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Has an effect with these arguments; returns what the tool shows."""
        table = effect["table"]
        for name, other in effect.get("refers", {}).items():
            if name in arguments and arguments[name] not in self.tables[other]:
                raise Refusal(f"there is no {name} {arguments[name]!r}; look it up first")
        if effect["do"] == "find":
            return self._find(effect, arguments)
        given = {field: arguments[name] for name, field in effect.get("set", {}).items() if name in arguments}
        if effect["do"] == "add":
            record = {**copy.deepcopy(effect.get("defaults", {})), **given}
            self._refuse_overlap(effect, record, "")
            return self._shown(table, self._add(table, record))
        record_id = str(arguments[effect["id"]])
        record = self.record(table, record_id)
        for field, wanted in effect.get("only_if", {}).items():
            if record[field] != wanted:
                raise Refusal(f"{record_id} is {record[field]!r}, and has to be {wanted!r} for this")
        if effect["do"] == "remove":
            del self.tables[table][record_id]
            return {"id": record_id, "status": "removed"}
        changed = _changed(record_id, record, effect, arguments, given)
        self._refuse_overlap(effect, changed, record_id)
        if effect["do"] == "copy":
            return self._shown(table, self._add(table, changed))
        self.tables[table][record_id] = changed
        return self._shown(table, record_id)

    def record(self, table: str, record_id: str) -> Record:
        """One record; raises `Refusal` if there is none with this id."""
        if record_id not in self.tables[table]:
            raise Refusal(f"there is no {record_id!r} among the {table}; look the id up first")
        return self.tables[table][record_id]

    def _shown(self, table: str, record_id: str) -> dict[str, Any]:
        return {"id": record_id, **self.tables[table][record_id]}

    def _add(self, table: str, record: Record) -> str:
        prefix = _beginning()["prefixes"][table]
        numbers = [int(each.rpartition("-")[2]) for each in (*_beginning()["tables"][table], *self.tables[table])]
        record_id = f"{prefix}-{max(numbers, default=0) + 1}"
        self.tables[table][record_id] = record
        return record_id

    def _refuse_overlap(self, effect: Mapping[str, Any], wanted: Record, own_id: str) -> None:
        """Raises `Refusal` if the room is taken in the span, for effects that need it free."""
        if not effect.get("free_span"):
            return
        if wanted["start"] >= wanted["end"]:
            raise Refusal(f"the start {wanted['start']} is not before the end {wanted['end']}")
        for other_id, other in self.tables[effect["table"]].items():
            same = other_id != own_id and (other["room"], other["date"]) == (wanted["room"], wanted["date"])
            if same and other["start"] < wanted["end"] and wanted["start"] < other["end"]:
                raise Refusal(f"{wanted['room']} is taken by {other_id} from {other['start']} to {other['end']}")

    def _find(self, effect: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        table = effect["table"]
        found = [i for i, record in self.tables[table].items() if _fits({"id": i, **record}, effect, arguments)]
        found.reverse()  # the newest first
        most = min(FOUND, arguments.get(effect.get("limit", ""), FOUND))
        return {"found": [self._shown(table, each) for each in found[:most]], "in all": len(found)}


def _changed(
    record_id: str,
    record: Record,
    effect: Mapping[str, Any],
    arguments: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Record:
    """A copy of the record with the effect's changes."""
    changed = {**copy.deepcopy(record), **effect.get("to", {}), **given}
    for field, more in effect.get("plus", {}).items():
        changed[field] += more
    for field, most in effect.get("most", {}).items():
        if changed[field] > most:
            raise Refusal(f"the {field} of {record_id} cannot be more than {most}")
    for name, field in effect.get("add_to", {}).items():
        changed[field] += arguments[name]
    for name, field in effect.get("append", {}).items():
        changed[field].append(arguments[name])
    return changed


def _fits(record: Record, effect: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether a record is one that was asked for."""
    asked = {name: value for name, value in arguments.items() if value not in ("", None)}
    where = [(record.get(f), asked[name]) for name, f in effect.get("where", {}).items() if name in asked]
    has = [(record.get(f), asked[name]) for name, f in effect.get("has", {}).items() if name in asked]
    least = [record[f] >= asked[name] for name, f in effect.get("least", {}).items() if name in asked]
    most = [record[f] <= asked[name] for name, f in effect.get("most_of", {}).items() if name in asked]
    text = [
        all(word in " ".join(str(record[f]) for f in fields).lower() for word in _words(str(asked[name])))
        for name, fields in effect.get("text", {}).items()
        if name in asked
    ]
    same = [_same_or_in(value, wanted) for value, wanted in (*where, *has)]
    return all((*same, *least, *most, *text))


def _same_or_in(value: object, wanted: object) -> bool:
    if isinstance(value, list):
        return any(_same_or_in(each, wanted) for each in value)
    if isinstance(value, str) and isinstance(wanted, str):
        return value.lower() == wanted.lower()
    return value == wanted


def _words(text: str) -> Iterable[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()
