"""JSON Schema of a tool's arguments, made regular on the way in: each schema in it stands where one belongs.

A definition comes from elsewhere. What is no schema where one must stand says nothing and is left out, with its place;
what no reader of ours can check (a pattern with look-around, a remote reference) stays, and is named too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from toolsearch.errors import DefinitionError
from toolsearch.schemas.json_values import JSON_TYPES
from toolsearch.schemas.limits import check_size
from toolsearch.schemas.patterns import PATTERN_WEIGHT, pattern_of
from toolsearch.schemas.references import DATA, LISTS, MAPS, ONE, pointed_at
from toolsearch.support.checks import shown
from toolsearch.support.json_types import JsonObject

__all__ = ["Place", "normalised", "unchecked", "written"]

_NOWHERE = object()
_MOST_PLACES = 20  # that are named for one schema
_WEIGHT = 5 * PATTERN_WEIGHT  # of all patterns of one schema
# What people who think of Python, Java or C write for a type of JSON.
_TYPES = {
    "str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number", "double": "number",
    "bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "none": "null",
}  # fmt: skip

Place = tuple["Place", str] | None  # linked: most places are never written out


def normalised(schema: object, tool: str, left_out: list[str] | None = None) -> JsonObject:
    """A new schema of type object with `properties`; what it accepts is unchanged.

    None, {} and [], as PHP writes an empty map, mean "no arguments known". Gemini's upper-case types and `nullable`
    become standard, and so do the names that Python uses for types. A keyword set to null, an unknown type, and what is
    no schema where one must stand say nothing, and are dropped at every level; `left_out` gets their places.
    Raises `DefinitionError`, naming the tool, for anything but the schema of an object, and for one that is too large.
    """
    if schema is None or schema is True or (isinstance(schema, list | tuple) and not schema):
        schema = {}
    if not isinstance(schema, Mapping):
        raise DefinitionError(f"the input schema of {tool!r} must be a JSON object, not {type(schema).__name__}")
    check_size(f"the input schema of {tool!r}", schema)
    reader = _Reader()
    root = reader.schema(schema, None)
    kind = root.get("type")
    is_object = kind in (None, "object") or (isinstance(kind, list) and "object" in kind)
    if (kind is None and schema.get("type") is not None) or not is_object:
        raise DefinitionError(f"the input schema of {tool!r} must have type 'object', not {shown(schema['type'])}")
    _check_properties(schema.get("properties") or {}, tool)
    properties = root.get("properties")
    regular: dict[str, object] = {"type": "object", "properties": properties if isinstance(properties, dict) else {}}
    if names := _required_names(schema.get("required"), tool):
        regular["required"] = names
    if left_out is not None:
        left_out += reader.left_out
    return regular | {k: v for k, v in root.items() if k not in ("type", "properties", "required")}


def _check_properties(properties: object, tool: str) -> None:
    if not isinstance(properties, Mapping):
        raise DefinitionError(
            f"'properties' in the input schema of {tool!r} must be an object, not {shown(properties)}"
        )
    for name, argument in properties.items():
        if not isinstance(argument, Mapping | bool | None) and not _is_empty_list(argument):
            what = f"the schema of {str(name)[:80]!r} in {tool!r} must be a JSON object"
            raise DefinitionError(f"{what}, not {shown(argument)}")


def _required_names(required: object, tool: str) -> list[str]:
    """The names, each once; a single text is one name, and an empty one is none."""
    names = [required] if required and isinstance(required, str) else required or []
    if not isinstance(names, list | tuple):
        raise DefinitionError(f"'required' in the input schema of {tool!r} must be a list of names, not {shown(names)}")
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def _is_empty_list(value: object) -> bool:
    return isinstance(value, list | tuple) and not value


@dataclass
class _Reader:
    """Reads one schema; `left_out` has the places of what was dropped although it was meant to say something."""

    left_out: list[str] = field(default_factory=list)
    losses: int = 0

    def schema(self, schema: Mapping[str, object], at: Place) -> dict[str, object]:
        copy: dict[str, object] = {}
        for key, value in schema.items():
            if key in DATA:
                infinite = key == "default" and isinstance(value, float) and not math.isfinite(value)
                if not infinite and (value is not None or key in ("const", "default")):
                    copy[key] = value  # a value, which only looks like a schema
            elif key == "type":
                self._type(copy, value, at)
            elif key == "required":
                if value and isinstance(value, str | list | tuple):
                    copy["required"] = [value] if isinstance(value, str) else self._any(value, at)
            elif key in MAPS:
                if isinstance(value, Mapping):
                    copy[key] = self._map(value, at if key == "properties" else (at, key))
                elif value and value is not True:
                    self._lose((at, key))
            elif key in LISTS:
                self._list(copy, key, value, at)
            elif key in ONE:
                self._one(copy, key, value, at)
            elif value is not None:
                copy[str(key)] = self._any(value, (at, str(key)))
        if copy.pop("nullable", None) is True:
            _admit_null(copy)
        return copy

    def _any(self, value: object, at: Place) -> object:
        """The value of a keyword that this library does not know."""
        if isinstance(value, list | tuple):
            return [self._any(item, at) for item in value]
        return self.schema(value, at) if isinstance(value, Mapping) else value

    def _type(self, copy: dict[str, object], value: object, at: Place) -> None:
        names = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
        kinds = [_TYPES.get(name.lower(), name.lower()) for name in names if isinstance(name, str)]
        known = [kind for kind in kinds if kind in JSON_TYPES]
        if known:
            copy["type"] = known[0] if isinstance(value, str) else list(dict.fromkeys(known))
        elif value is not None:
            self.losses += 1  # it says nothing, which is how people write "anything"

    def _map(self, schemas: Mapping[str, object], at: Place) -> dict[str, object]:
        """A map from names to schemas; null stands for a schema that says nothing, as `true` does."""
        return {str(k): {} if v is True else self._inner(v, (at, str(k))) for k, v in schemas.items()}

    def _inner(self, value: object, at: Place) -> object:
        """One schema; what is none becomes {}, which admits anything."""
        if isinstance(value, Mapping):
            return self.schema(value, at)
        if isinstance(value, bool):
            return value
        if value is not None and not _is_empty_list(value):
            self._lose(at)
        return {}

    def _list(self, copy: dict[str, object], key: str, value: object, at: Place) -> None:
        if isinstance(value, list | tuple) and value:
            copy[key] = [self._inner(item, (at, f"{key}[{i}]")) for i, item in enumerate(value)]
        elif value:
            self._lose((at, key))

    def _one(self, copy: dict[str, object], key: str, value: object, at: Place) -> None:
        """A keyword that holds one schema. One that asks the other way round is dropped where its schema lost a part:
        what is left would fit too much, and refuse what is right."""
        inner: Place = (at, "[]" if key == "items" else key)
        before = self.losses
        if isinstance(value, Mapping | bool):
            copy[key] = self.schema(value, inner) if isinstance(value, Mapping) else value
        elif key == "items" and isinstance(value, list | tuple) and value:  # of older drafts, one for each place
            copy[key] = [self._inner(item, (at, f"[{i}]")) for i, item in enumerate(value)]
        elif value is not None and not _is_empty_list(value):
            self._lose(inner)
        if key in ("not", "if", "contains") and self.losses > before:
            copy.pop(key, None)
            self._lose(inner)

    def _lose(self, at: Place) -> None:
        self.losses += 1
        if len(self.left_out) < _MOST_PLACES and (place := written(at)) not in self.left_out:
            self.left_out.append(place)


def written(at: Place) -> str:
    """A place as text: `opts.size`, `list[]`, `a.anyOf[0]`."""
    steps: list[str] = []
    while at is not None:
        at, step = at
        steps.append(step if step.startswith("[") else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")[:200]


def _admit_null(schema: dict[str, object]) -> None:
    """Writes what Gemini and OpenAPI call `nullable` in JSON Schema, in place."""
    kind, enum, branches = schema.get("type"), schema.get("enum"), schema.get("anyOf")
    if isinstance(kind, str | list):
        schema["type"] = [*dict.fromkeys([*([kind] if isinstance(kind, str) else kind), "null"])]
    if isinstance(enum, list | tuple) and None not in enum:
        schema["enum"] = [*enum, None]
    if isinstance(branches, list):
        schema["anyOf"] = [*branches, {"type": "null"}]


def unchecked(schema: JsonObject, tool: str) -> tuple[str, ...]:
    """What in a regular schema no call is checked against, each as a sentence with its place, up to twenty.

    Raises `DefinitionError`, naming the tool, where all patterns together take too much work to compile.
    """
    told: list[str] = []
    seen: set[str] = set()
    left = _WEIGHT
    for at, keyword, text in _texts_of(schema):
        if keyword == "$ref":
            problem = "leads nowhere in the schema" if pointed_at(schema, text, _NOWHERE) is _NOWHERE else ""
        else:
            pattern = pattern_of(text)
            problem = pattern.problem
            left -= pattern.weight if pattern.compiled is not None and text not in seen else 0
            seen.add(text)
            if left < 0:
                raise DefinitionError(f"the patterns in the input schema of {tool!r} take too much work to compile")
        if problem and len(told) < _MOST_PLACES:
            told.append(f"{written(at)}: the {'reference' if keyword == '$ref' else 'pattern'} {shown(text)} {problem}")
    return tuple(told)


def _texts_of(root: JsonObject) -> Iterator[tuple[Place, str, str]]:
    """Every reference and every pattern in a schema, with its place."""
    waiting: list[tuple[object, Place]] = [(root, None)]
    while waiting:
        node, at = waiting.pop()
        if isinstance(node, list):
            waiting += [(item, at) for item in reversed(node)]
        if not isinstance(node, Mapping):
            continue
        later: list[tuple[object, Place]] = []
        for key, value in node.items():
            if key in ("$ref", "pattern") and isinstance(value, str):
                yield (at, key), key, value
            elif key in MAPS and isinstance(value, Mapping):
                where: Place = at if key == "properties" else (at, key)
                if key == "patternProperties":
                    yield from ((where, key, name) for name in value)
                later += [(item, (where, name)) for name, item in value.items()]
            elif key in ONE or key in LISTS:
                later.append((value, (at, "[]" if key == "items" else key)))
        waiting += reversed(later)
