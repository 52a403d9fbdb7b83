"""A schema for a provider that reads all of JSON Schema: in the words of 2020-12, every reference leading somewhere.

Nothing is written more than once. What several references share, and has left the schema, stands once in `$defs`; so
what is sent is at most about twice as large as the original, whatever its references do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from toolsearch.schemas.drafts import modern
from toolsearch.schemas.export_parts import NOTHING, Losses, brief_enum, joined, sound, types_of
from toolsearch.schemas.json_schema import Place
from toolsearch.schemas.references import LISTS, LONGEST_CHAIN, MAPS, ONE, pointed_at
from toolsearch.support.json_types import JsonObject

__all__ = ["WholeSchema"]

_INLINE = 200  # characters: a target without references that is no longer there stands in the place of a reference
_NOWHERE = object()

Path = tuple[str, ...]


class WholeSchema:
    """One walk through one schema; `original` is what its references lead into."""

    def __init__(self, original: JsonObject, losses: Losses) -> None:
        self.original, self.losses = original, losses
        self.where: dict[int, Path] = {}  # where each schema of the original stands now, by its id
        self.references: list[tuple[dict[str, object], str, Place]] = []
        self.hoisted: dict[str, object] = {}
        self.taken: set[str] = set()
        self.is_hoisting = False

    def made(self, root: JsonObject) -> dict[str, object]:
        """The root, and in its `$defs` what its references need and is not in it."""
        definitions = root.get("$defs")
        self.taken = set(map(str, definitions)) if isinstance(definitions, Mapping) else set()
        self.where[id(self.original)] = ()
        made = self._schema(root, (), None)
        self.is_hoisting = True
        for holder, ref, at in self.references:  # which grows, as what is hoisted refers to more
            self._lead(holder, ref, at)
        if self.hoisted:
            definitions = made.get("$defs")
            made["$defs"] = {**(definitions if isinstance(definitions, Mapping) else {}), **self.hoisted}
        return made

    def _schema(self, schema: JsonObject, path: Path, at: Place) -> dict[str, object]:
        self.where.setdefault(id(schema), path)
        made: dict[str, object] = {}
        for key, value in modern(schema).items():
            if key not in self.losses.rules.keywords:
                continue  # it says nothing to a provider: `$schema`, `$id`, and what others have made up
            if key == "$ref":
                if isinstance(value, str):
                    made[key] = value
                    self.references.append((made, value, at))
            elif key in MAPS:
                if isinstance(value, Mapping):
                    where = at if key == "properties" else (at, key)
                    made[key] = {
                        str(name): self._inner(each, (*path, key, str(name)), (where, str(name)))
                        for name, each in value.items()
                    }
            elif key in LISTS:
                if isinstance(value, list | tuple) and value:
                    made[key] = [
                        self._inner(each, (*path, key, str(place)), (at, f"{key}[{place}]"))
                        for place, each in enumerate(value)
                    ]
            elif key in ONE:
                self._one(made, key, value, path, at)
            elif (kept := sound(key, value)) is not NOTHING:
                made[key] = kept
        self._finish(made, at)
        return made

    def _inner(self, value: object, path: Path, at: Place) -> dict[str, object]:
        if isinstance(value, Mapping):
            if self.is_hoisting and id(value) in self.where and not (len(value) == 1 and "$ref" in value):
                return {"$ref": _pointer(self.where[id(value)])}
            return self._schema(value, path, at)
        return {"not": {}} if value is False else {}

    def _one(self, made: dict[str, object], key: str, value: object, path: Path, at: Place) -> None:
        inner: Place = (at, "[]" if key == "items" else key)
        if isinstance(value, Mapping):
            made[key] = self._inner(value, (*path, key), inner)
        elif isinstance(value, bool):
            # Where a provider wants an object, no item at all is a count; where a boolean is usual, it stays one.
            made[key] = (
                value if key not in ("items", "not", "contains", "propertyNames") else {} if value else {"not": {}}
            )

    def _finish(self, made: dict[str, object], at: Place) -> None:
        """What a provider wants besides: an array has items, and an enum is within the budget."""
        if "array" in types_of(made.get("type")) or "prefixItems" in made:
            if made.get("items") == {"not": {}}:
                first = made.get("prefixItems")
                most, several = made.get("maxItems"), len(first) if isinstance(first, list) else 0
                made["maxItems"] = min(most, several) if isinstance(most, int) else several
                made["items"] = {}
            made.setdefault("items", {})
        if isinstance(values := made.get("enum"), list) and (told := brief_enum(values, self.losses, at)):
            del made["enum"]
            made["description"] = joined(made.get("description"), told)

    # -- references --------------------------------------------------------------------------------------------------

    def _lead(self, holder: dict[str, object], ref: str, at: Place) -> None:
        """Makes a reference lead to what it meant; one that leads nowhere, or elsewhere, is left out."""
        target = pointed_at(self.original, ref, _NOWHERE)
        is_lost = target is _NOWHERE or self._is_circle(target)
        if is_lost or not isinstance(target, Mapping) or not target:
            del holder["$ref"]
            if is_lost:
                self.losses.add("a reference that leads nowhere is not sent", at)
            elif target is False:
                holder["not"] = {}
            return
        path = self.where.get(id(target))
        if path is not None and path == _steps(ref):
            return
        if _is_small(target):
            del holder["$ref"]
            for key, value in WholeSchema(self.original, self.losses)._schema(target, (), at).items():
                holder.setdefault(key, value)
            return
        if path is None:
            name = self._name(ref)
            path = "$defs", name
            self.hoisted[name] = {}  # its place, before others that it refers to
            self.hoisted[name] = self._schema(target, path, at)
        holder["$ref"] = _pointer(path)

    def _is_circle(self, target: object) -> bool:
        """Whether nothing but references comes behind a reference, round and round."""
        for _ in range(LONGEST_CHAIN):
            if not (isinstance(target, Mapping) and isinstance(target.get("$ref"), str)):
                return False
            target = pointed_at(self.original, target["$ref"])
        return True

    def _name(self, ref: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", ref.rpartition("/")[2])[:40] or "shared"
        name, number = stem, 2
        while name in self.taken:
            name, number = f"{stem}_{number}", number + 1
        self.taken.add(name)
        return name


def _steps(ref: str) -> Path:
    """The steps of a local reference."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in unquote(ref[1:]).split("/")[1:])


def _pointer(path: Path) -> str:
    return "#" + "".join("/" + quote(step.replace("~", "~0").replace("/", "~1"), safe="~$") for step in path)


def _is_small(target: JsonObject) -> bool:
    """Whether a schema is short and refers to nothing, so that it can stand where a reference to it stood."""
    if len(target) > 8 or not all(_is_short(value) for value in target.values()):
        return False
    text = json.dumps(target, default=repr)
    return len(text) <= _INLINE and '"$ref"' not in text


def _is_short(value: object) -> bool:
    return len(value) <= _INLINE if isinstance(value, str | list | Mapping) else True
