"""A schema read once: its references followed, its enums and required names as sets, its patterns compiled.

A part is read when a value first comes to it. What is not written as JSON Schema has it, or cannot be checked, makes
its part `unsure`: it refuses nothing, and no condition rests on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from heapq import nlargest
from typing import Any

from toolsearch.schemas.constraints import BOUNDS, Bound, bounds_of, number_of
from toolsearch.schemas.drafts import modern
from toolsearch.schemas.json_values import JSON_TYPES, brief, comparable
from toolsearch.schemas.patterns import Pattern, pattern_of
from toolsearch.schemas.references import COMBINATORS, LONGEST_CHAIN, pointed_at, resolve
from toolsearch.schemas.root_folding import argument_names
from toolsearch.support.bounded_cache import BoundedCache
from toolsearch.support.json_types import JsonObject

__all__ = ["CompiledSchema", "Enum", "Part", "compiled"]

_CACHED = 5_000_000  # characters of all schemas that are kept compiled
_MOST_PARTS, _PARTS_WEIGHT = 2_000, 20_000  # of one schema, and what they count for among those characters
_ENUM_SHOWN, _MEMBER_CHARACTERS = 12, 80  # of an enum in a sentence
_SPACES = 1_000  # around a member of an enum
_MANY, _MOST_ALIKE = 1_000, 50  # members that are all compared with what was written; of more, those most like it
_LONGEST_HINT = 64  # characters of what was written
_NOWHERE = object()
# Keywords that only describe, or that nothing here checks: a condition that rests on one of them cannot be told.
_UNREAD = frozenset("format unevaluatedProperties unevaluatedItems $dynamicRef $recursiveRef".split())


class Enum:
    """The values of an enum, comparable, and the texts among them by their lower case."""

    def __init__(self, members: list[object]) -> None:
        self.members = members
        self.values: frozenset[Hashable] = frozenset(map(comparable, members))
        self.has_containers = any(isinstance(each, Mapping | list) for each in members)
        self.cases: dict[str, set[str]] = {}
        self.longest = 0
        for text in (each for each in members if isinstance(each, str)):
            self.longest = max(self.longest, len(text))
            self.cases.setdefault(text.lower(), set()).add(text)

    def spelled(self, text: str) -> str:
        """The one member that a text means, if it differs in case and spaces only; otherwise the text."""
        if text in self.values or len(text) > self.longest + _SPACES:
            return text
        same = self.cases.get(text.strip().lower(), ())
        return next(iter(same)) if len(same) == 1 else text

    def candidates(self, written: object) -> Iterator[str]:
        """The members that a text may mean: of many, those that have it inside, or begin most like it."""
        if len(self.cases) <= _MANY or not isinstance(written, str):
            yield from (each for each in self.members if isinstance(each, str))
            return
        text = written[:_LONGEST_HINT].strip().lower()
        for case in nlargest(_MOST_ALIKE, self.cases, key=lambda case: (text in case, _shared(text, case))):
            yield from sorted(self.cases[case])

    @cached_property
    def shown(self) -> str:
        """The first members, for a sentence."""
        some = ", ".join(brief(each, _MEMBER_CHARACTERS) for each in self.members[:_ENUM_SHOWN])
        return some + (f" … ({len(self.members):,} values)" if len(self.members) > _ENUM_SHOWN else "")


class Part:
    """What one schema says by itself, without what its `$ref` points to."""

    __slots__ = (
        "additional", "all_of", "any_of", "bounds", "condition", "const", "contains", "contains_bounds", "dependent",
        "dependent_required", "enum", "first", "has_const", "item_bounds", "items", "length_bounds", "names", "never",
        "otherwise", "pattern", "patterns", "properties", "property_bounds", "refused", "required", "schema", "step",
        "then", "types", "unique", "unsure",
    )  # fmt: skip

    def __init__(self, schema: JsonObject, types: frozenset[str]) -> None:
        self.schema, self.types = schema, types
        self.never = False
        self.unsure = not _UNREAD.isdisjoint(schema) or ("type" in schema and not _named_types(schema["type"]))
        enum = self._take("enum", list, None)
        self.enum = Enum(enum) if enum is not None else None
        self.has_const = "const" in schema
        self.const: object = schema.get("const")
        self._read_scalars()
        self._read_object()
        self._read_array()
        self.all_of = self._take("allOf", list, [])
        self.any_of = [branches for key in ("anyOf", "oneOf") if (branches := self._take(key, list, []))]
        self.refused, self.condition = self._one("not"), self._one("if")
        self.then, self.otherwise = self._one("then"), self._one("else")

    def _take(self, keyword: str, kind: type, absent: Any) -> Any:
        """The value of a keyword; one of another kind cannot be read."""
        value = self.schema.get(keyword, _NOWHERE)
        if value is _NOWHERE:
            return absent
        if not isinstance(value, kind):
            self.unsure = True
            return absent
        return value

    def _one(self, keyword: str) -> Any:
        """The schema that a keyword holds; None if there is none."""
        value = self.schema.get(keyword)
        if isinstance(value, Mapping | bool):
            return value
        self.unsure = self.unsure or keyword in self.schema
        return None

    def _counts(self, keywords: str) -> tuple[float | None, float | None]:
        low, high = f"min{keywords}", f"max{keywords}"
        least, most = number_of(self.schema, low), number_of(self.schema, high)
        self.unsure = self.unsure or (least is None and low in self.schema) or (most is None and high in self.schema)
        return least, most

    def _read_scalars(self) -> None:
        self.bounds: list[Bound] = bounds_of(self.schema)
        self.step = number_of(self.schema, "multipleOf")
        written = len(self.schema.keys() & BOUNDS) + ("multipleOf" in self.schema)
        self.unsure = self.unsure or written > len(self.bounds) + (self.step is not None)
        self.length_bounds = self._counts("Length")
        pattern = self._take("pattern", str, None)
        self.pattern: Pattern | None = pattern_of(pattern) if pattern is not None else None

    def _read_object(self) -> None:
        self.properties: JsonObject = self._take("properties", Mapping, {})
        self.required = dict.fromkeys(each for each in self._take("required", list, []) if isinstance(each, str))
        additional = self._one("additionalProperties")
        self.additional: object = True if additional is None else additional
        patterns = self._take("patternProperties", Mapping, {})
        self.patterns: list[tuple[Pattern, object]] = [(pattern_of(str(key)), each) for key, each in patterns.items()]
        self.names = self._one("propertyNames")
        self.property_bounds = self._counts("Properties")
        self.dependent_required: JsonObject = self._take("dependentRequired", Mapping, {})
        self.dependent: JsonObject = self._take("dependentSchemas", Mapping, {})

    def _read_array(self) -> None:
        self.first: list[object] = self._take("prefixItems", list, [])
        rest = self._one("items")
        self.items: object = True if rest is None else rest
        self.item_bounds = self._counts("Items")
        self.unique = self.schema.get("uniqueItems") is True
        self.contains = self._one("contains")
        self.contains_bounds = self._counts("Contains")


def _shared(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def _named_types(named: object) -> frozenset[str]:
    each = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    return frozenset(kind for kind in each if isinstance(kind, str)) & JSON_TYPES


class CompiledSchema:
    """A root and the parts of it that were read, each by the identity of its schema, which the root keeps alive."""

    def __init__(self, root: object) -> None:
        self.root: JsonObject = root if isinstance(root, Mapping) else {}
        self.schema = root
        self._layers: dict[int, tuple[Part, ...]] = {}
        self._types: dict[int, frozenset[str]] = {}
        self._parts: dict[int, Part] = {}

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """The names of arguments that a model is shown, and those of the tool, where they differ."""
        return argument_names(self.root)

    def layers(self, schema: object) -> tuple[Part, ...]:
        """A schema and what its `$ref` points to: all hold. A circle of references alone demands nothing."""
        if not isinstance(schema, Mapping):
            return (_NEVER,) if schema is False else ()
        known = self._layers.get(id(schema))
        if known is None:
            known = self._layers[id(schema)] = self._followed(schema)
        return known

    def _followed(self, schema: object) -> tuple[Part, ...]:
        layers: list[Part] = []
        seen: set[int] = set()
        for _ in range(LONGEST_CHAIN):
            if schema is _NOWHERE or not isinstance(schema, Mapping):
                layers += [_ANYTHING] if schema is _NOWHERE else [_NEVER] if schema is False else []
                break
            if id(schema) in seen:
                break
            seen.add(id(schema))
            if len(schema) > 1 or "$ref" not in schema:  # a reference alone says nothing itself
                layers.append(self._part(schema))
            ref = schema.get("$ref")
            if not isinstance(ref, str):
                break
            schema = pointed_at(self.root, ref, _NOWHERE)
        return tuple(reversed(layers))

    def _part(self, schema: JsonObject) -> Part:
        if id(schema) not in self._parts:
            if len(self._parts) >= _MOST_PARTS:  # what is needed is read again
                self._parts.clear()
                self._layers.clear()
            self._parts[id(schema)] = Part(modern(schema), self.own_types(schema, 0))
        return self._parts[id(schema)]

    def types(self, schema: object, depth: int = 0) -> frozenset[str]:
        """The JSON types a schema admits, its references followed; empty where any will do."""
        schema = resolve(self.root, schema)
        return self.own_types(schema, depth) if isinstance(schema, Mapping) and depth <= 8 else frozenset()

    def own_types(self, schema: JsonObject, depth: int) -> frozenset[str]:
        if id(schema) not in self._types:  # branches may share theirs many times over
            self._types[id(schema)] = self._admitted(schema, depth)
        return self._types[id(schema)]

    def _admitted(self, schema: JsonObject, depth: int) -> frozenset[str]:
        if isinstance(schema.get("type"), str | list):
            return _named_types(schema["type"])
        for keyword in COMBINATORS[:2]:
            if isinstance(branches := schema.get(keyword), list) and branches:
                admitted = [self.types(branch, depth + 1) for branch in branches]
                return frozenset().union(*admitted) if all(admitted) else frozenset()
        return frozenset()

    def admits_null(self, schema: object) -> bool:
        schema = resolve(self.root, schema)
        enum = schema.get("enum") if isinstance(schema, Mapping) else None
        if (isinstance(enum, list) and None in enum) or (
            isinstance(schema, Mapping) and schema.get("const", 0) is None
        ):
            return True
        types = self.types(schema)
        return not types or "null" in types


_NEVER = Part({}, frozenset())
_NEVER.never = True
_ANYTHING = Part({}, frozenset())  # what a reference that leads nowhere points to
_ANYTHING.unsure = True

_cache: BoundedCache[CompiledSchema] = BoundedCache(_CACHED)


def compiled(schema: object, digest: str = "") -> CompiledSchema:
    """The schema, compiled once while it stays in use. `digest` identifies its content, if the program knows it."""
    if digest:  # its tool holds the schema: what is kept here are the parts that were read
        return _cache.get(digest) or _cache.put(digest, CompiledSchema(schema), _PARTS_WEIGHT)
    try:
        text = json.dumps(schema, default=_refused)
    except (TypeError, ValueError, RecursionError):  # it is no JSON: nothing tells it from another
        return CompiledSchema(schema)
    key = hashlib.sha256(text.encode()).digest()
    return _cache.get(key) or _cache.put(key, CompiledSchema(schema), len(text) + 100)


def _refused(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
