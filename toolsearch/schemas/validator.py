"""A value checked against a JSON Schema, and coerced on the way: one walk through both.

What a condition only asks about (`not`, `if`, `contains`, `propertyNames`) is compared as it is; only what is kept is
coerced. A schema may refer to itself, so what one validation may cost is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice

from toolsearch.schemas.budget import Budget, EnoughProblems, TooMuchWork
from toolsearch.schemas.constraints import bound, count_problems, matches, number_problems, shown_value, text_problems
from toolsearch.schemas.json_values import JSON_TYPES, coerced, comparable, type_of
from toolsearch.schemas.references import pointed_at, resolve
from toolsearch.support.json_types import JsonObject

__all__ = ["Validator"]

_DEEPEST = 64  # levels of nesting; deeper values and reference loops are refused, not followed
_PROBLEMS = 50  # problems after which one validation stops
_PATTERNS = 20  # patterns of property names in one object


class Validator:
    """One walk, or one trial of a branch within it; `problems` has a sentence for everything that does not fit."""

    def __init__(self, root: JsonObject, budget: Budget, depth: int = 0, *, exact: bool = False) -> None:
        self.root = root
        self.budget = budget
        self.depth = depth
        self.exact = exact  # compare only: coerce nothing, stop at the first problem
        self.problems: list[str] = []

    def value(self, schema: object, value: object, path: str) -> object:
        """One value checked and coerced; problems are collected with their path (`ids[2]`)."""
        for layer in self.layers(schema):
            self.budget.work -= 1
            if self.budget.work < 0:
                raise TooMuchWork
            if layer is False:
                self.refuse(path, "is not allowed")
            if not isinstance(layer, Mapping):
                continue
            self.depth += 1
            try:
                if self.depth > _DEEPEST:
                    self.refuse(path, "is nested too deeply")
                    return value
                value = self._checked(layer, value, path)
            finally:
                self.depth -= 1
        return value

    def layers(self, schema: object) -> list[object]:
        """A schema and what its `$ref` points to: both hold. A circle of references alone demands nothing."""
        layers: list[object] = []
        for _ in range(_DEEPEST):
            if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
                return [*layers, schema]
            layers.insert(0, {k: v for k, v in schema.items() if k != "$ref"})
            schema = pointed_at(self.root, schema["$ref"])
        return layers

    def _checked(self, schema: JsonObject, value: object, path: str) -> object:
        wanted = self.types(schema)
        if not self.exact:
            value = self._enum_case(schema.get("enum"), coerced(value, wanted))
        if wanted and type_of(value) not in wanted and not (type_of(value) == "integer" and "number" in wanted):
            self.refuse(path, f"must be {_any_of_types(sorted(wanted))}, not {type_of(value)}{shown_value(value)}")
            return value
        self._constants(schema, value, path)
        if isinstance(value, dict):
            value = self._object(schema, value, path)
        elif isinstance(value, list):
            value = self._array(schema, value, path)
        elif isinstance(value, str):
            self._refuse_all(path, text_problems(schema, value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._refuse_all(path, number_problems(schema, value))
        return self._combined(schema, value, path)

    def refuse(self, path: str, what: str) -> None:
        self.problem(f"{path!r} {what}" if path else f"{self.budget.whole} {what}")

    def _refuse_all(self, path: str, problems: Iterable[str]) -> None:
        for what in problems:
            self.refuse(path, what)

    def problem(self, sentence: str) -> None:
        self.problems.append(sentence)
        if self.exact or len(self.problems) >= _PROBLEMS:
            raise EnoughProblems

    def types(self, schema: object, depth: int = 0) -> frozenset[str]:
        """The JSON types a schema admits; empty where any will do."""
        schema = resolve(self.root, schema)
        if not isinstance(schema, Mapping) or depth > 8:
            return frozenset()
        if id(schema) not in self.budget.types:  # branches may share theirs many times over
            self.budget.types[id(schema)] = schema, self._types(schema, depth)
        return self.budget.types[id(schema)][1]

    def _types(self, schema: JsonObject, depth: int) -> frozenset[str]:
        named = schema.get("type")
        if isinstance(named, str):
            return frozenset([named]) & JSON_TYPES
        if isinstance(named, list):
            return frozenset(t for t in named if isinstance(t, str)) & JSON_TYPES
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list) and branches:
                admitted = [self.types(branch, depth + 1) for branch in branches]
                return frozenset().union(*admitted) if all(admitted) else frozenset()
        return frozenset()

    def _enum_case(self, enum: object, value: object) -> object:
        if not isinstance(enum, list) or not isinstance(value, str):
            return value
        values, cases = self.budget.enum(enum)
        same = cases.get(value.strip().lower(), set()) if value not in values else set[str]()
        return next(iter(same)) if len(same) == 1 else value

    def _constants(self, schema: JsonObject, value: object, path: str) -> None:
        if isinstance(enum := schema.get("enum"), list) and comparable(value) not in self.budget.enum(enum)[0]:
            some = ", ".join(json.dumps(v, ensure_ascii=False, default=str) for v in enum[:12])
            more = f" … ({len(enum)} values)" if len(enum) > 12 else ""
            hint = self._meant(value, (v for v in enum if isinstance(v, str)))
            self.refuse(path, f"must be one of {some}{more}, not{shown_value(value)}{hint}")
        if "const" in schema and comparable(value) != comparable(schema["const"]):
            self.refuse(path, f"must be {json.dumps(schema['const'], ensure_ascii=False, default=str)}")

    def _meant(self, written: object, known: Iterable[str], at: str = "") -> str:
        """What was probably meant, as the end of a sentence; "" when nothing is close or enough was suggested."""
        if not isinstance(written, str) or self.exact or self.budget.hints <= 0:
            return ""
        self.budget.hints -= 1
        spelled = {k.casefold(): k for k in islice(known, 1000) if len(k) <= 64}
        near = get_close_matches(written[:64].casefold(), spelled, 1)
        return f"; did you mean {_join(at, spelled[near[0]])!r}?" if near else ""

    def _object(self, schema: JsonObject, value: dict[str, object], path: str) -> dict[str, object]:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
        if not self.exact:
            value = self._without_nulls(value, properties, required)
        for key in required:
            if key not in value:
                self.problem(f"the required {self.budget.part} {_join(path, key)!r} is missing")
        checked = self._properties(schema, properties, value, path)
        self._refuse_all(path, count_problems(schema, len(value), "Properties", "fields"))
        if (names := schema.get("propertyNames")) is not None:
            for key in value:
                if not self.fits(names, key):
                    self.refuse(_join(path, key), "has a name that is not allowed")
        return self._dependents(schema, value, checked, path)

    def _without_nulls(
        self, value: dict[str, object], properties: Mapping[str, object], required: list[str]
    ) -> dict[str, object]:
        """A model that sends null for what it does not want to say means "left out"."""
        return {
            key: item
            for key, item in value.items()
            if item is not None or key in required or key not in properties or self._admits_null(properties[key])
        }

    def _properties(
        self, schema: JsonObject, properties: Mapping[str, object], value: dict[str, object], path: str
    ) -> dict[str, object]:
        """Each field by the schemas that apply to its name, or else by `additionalProperties`."""
        rest = schema.get("additionalProperties", True)
        patterns = schema.get("patternProperties")
        patterns = dict(islice(patterns.items(), _PATTERNS)) if isinstance(patterns, Mapping) else {}
        checked: dict[str, object] = {}
        for key, item in value.items():
            at = _join(path, key)
            fitting = [properties[key]] if key in properties else []
            self.budget.work -= len(patterns) // 10
            fitting += [inner for pattern, inner in patterns.items() if matches(pattern, key)]
            checked[key] = item
            if not fitting and rest is False:
                self.problem(f"there is no {self.budget.part} {at!r}{self._meant(key, properties, path)}")
                continue
            for one in fitting or [rest]:
                checked[key] = self.value(one, checked[key], at)
        return checked

    def _dependents(
        self, schema: JsonObject, value: dict[str, object], checked: dict[str, object], path: str
    ) -> dict[str, object]:
        """What must be there, or hold, because some field is there."""
        for key, others in _items(schema.get("dependentRequired")):
            for other in _list(others):
                if key in value and other not in value:
                    self.problem(f"{_join(path, str(other))!r} is required together with {_join(path, key)!r}")
        for key, dependent in _items(schema.get("dependentSchemas")):
            if key in checked:
                again = self.value(dependent, checked, path)
                checked = again if isinstance(again, dict) else checked
        return checked

    def _admits_null(self, schema: object) -> bool:
        schema = resolve(self.root, schema)
        if isinstance(schema, Mapping) and (None in _list(schema.get("enum")) or ("const", None) in schema.items()):
            return True
        types = self.types(schema)
        return not types or "null" in types

    def _array(self, schema: JsonObject, value: list[object], path: str) -> list[object]:
        first = _list(schema.get("prefixItems"))
        rest = schema.get("items", True)
        checked = [
            self.value(first[i] if i < len(first) else rest, item, f"{path}[{i}]") for i, item in enumerate(value)
        ]
        self._refuse_all(path, count_problems(schema, len(value), "Items", "items"))
        if schema.get("uniqueItems") is True and len({comparable(item) for item in checked}) < len(checked):
            self.refuse(path, "must not hold the same item twice")
        if isinstance(contains := schema.get("contains"), Mapping | bool):
            fitting = sum(self.fits(contains, item) for item in checked)
            low, high = bound(schema, "minContains"), bound(schema, "maxContains")
            if fitting < (1 if low is None else low):
                self.refuse(path, "lacks an item it must contain")
            elif high is not None and fitting > high:
                self.refuse(path, f"must hold at most {high} items of one kind, not {fitting}")
        return checked

    def _combined(self, schema: JsonObject, value: object, path: str) -> object:
        for branch in _list(schema.get("allOf")):
            value = self.value(branch, value, path)
        for keyword in ("anyOf", "oneOf"):
            if branches := _list(schema.get(keyword)):
                value = self._any_of(branches, value, path)
        if isinstance(refused := schema.get("not"), Mapping | bool) and self.fits(refused, value):
            self.refuse(path, "has a form that is not allowed")
        if isinstance(condition := schema.get("if"), Mapping | bool):
            branch = schema.get("then" if self.fits(condition, value) else "else")
            value = self.value(branch, value, path) if branch is not None else value
        return value

    def _any_of(self, branches: list[object], value: object, path: str) -> object:
        """A branch that takes the value as it is comes before one that would change it."""
        if len(branches) > 1 and not self.exact and any(self.fits(branch, value) for branch in branches):
            return value
        failures = []
        for branch in branches:
            trial = Validator(self.root, self.budget, self.depth, exact=self.exact)
            try:
                checked = trial.value(branch, value, path)
            except EnoughProblems:
                checked = value
            if not trial.problems:
                return checked
            failures.append(trial.problems)
        closest = min(failures, key=len)
        if len(branches) > 1:
            closest = [f"none of {len(branches)} forms fits: {'; '.join(closest[:3])}"]
        for sentence in closest:
            self.problem(sentence)
        return value

    def fits(self, schema: object, value: object) -> bool:
        """Whether the value is valid as it is."""
        trial = Validator(self.root, self.budget, self.depth, exact=True)
        try:
            trial.value(schema, value, "")
        except EnoughProblems:
            return False
        return True


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _items(value: object) -> list[tuple[str, object]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _any_of_types(names: list[str]) -> str:
    return " or ".join(f"an {n}" if n[0] in "aio" else n if n == "null" else f"a {n}" for n in names)
