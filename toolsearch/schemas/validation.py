"""Arguments from a model: parsed, coerced where nothing is lost, and validated against the tool's own JSON Schema.

Covered are the keywords tool schemas use (2020-12, without `unevaluated*` and `$dynamicRef`); `oneOf` is read as
`anyOf`, because coercion would make two branches fit. `format` is a hint and is not enforced. What a condition only
asks about (`not`, `if`, `contains`, `propertyNames`) is compared as it is; coercion is for what is kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolsearch.schemas.json_schema import pointed_at, resolve
from toolsearch.schemas.json_values import JSON_TYPES, coerced, comparable, read_json, size, type_of
from toolsearch.support.text import clean, clean_json

__all__ = ["ArgumentsError", "parse_arguments", "validate_arguments", "validated"]

Schema = Mapping[str, Any]
_DEEPEST = 64  # levels of nesting; deeper values and reference loops are refused, not followed
_WORK = 5_000, 10  # looks at values in one validation, and more for each value: a schema can refer to itself twice
_PROBLEMS = 50  # problems after which one validation stops
_PATTERNS = 20  # patterns of property names in one object
_HINTS = 20  # suggestions of a spelling in one validation: comparing with a long enum is slow


class ArgumentsError(ValueError):
    """The arguments of one call do not fit; `problems` has one plain sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def parse_arguments(raw: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments as an object. Empty text and null mean {}; malformed JSON is refused, never replaced by {}.

    An object that was encoded twice, so that the JSON is a text, is decoded twice.
    """
    value = _decoded(raw) if isinstance(raw, str) else raw
    if isinstance(raw, str) and isinstance(value, str) and value.strip().startswith("{"):
        value = _decoded(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentsError([f"the arguments must be a JSON object, not {type_of(value)}"])
    try:
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    except RecursionError:
        raise ArgumentsError(["the arguments are nested too deeply"]) from None


def _decoded(text: str) -> Any:
    try:
        return read_json(text) if text.strip() else None
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise ArgumentsError([f"the arguments are not valid JSON: {what} at character {error.pos}"]) from None
    except ValueError as error:  # NaN, or a number of thousands of digits
        raise ArgumentsError([f"the arguments are not valid JSON: {error}"]) from None
    except RecursionError:
        raise ArgumentsError(["the arguments are nested too deeply"]) from None


def validate_arguments(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, coerced to the schema's types; raises `ArgumentsError` naming every problem.

    Coerced are: JSON text where an array or object is wanted (decoded once), numbers and booleans written as text,
    numbers where text is wanted, enum values in another case, and null for an optional argument (dropped).
    """
    checked: dict[str, Any] = validated(schema, dict(arguments))
    return checked


def validated(schema: Schema, given: Any, whole: str = "the arguments", part: str = "argument") -> Any:
    """Any JSON value, coerced and checked as `validate_arguments` does; `whole` and `part` are what it is called."""
    check = _Check(schema, _Budget(given, whole, part))
    value: Any = None
    try:
        value = check.value(schema, given, "")
    except _Enough:
        pass
    except _Spent:
        raise ArgumentsError([f"{whole} take too long to check"]) from None
    except (RecursionError, ValueError):
        raise ArgumentsError([f"{whole} are nested too deeply, or hold a number too long to read"]) from None
    if check.problems:
        raise ArgumentsError(check.problems)
    return value


class _Enough(Exception):
    """The outcome of a trial is known."""


class _Spent(Exception):
    """No trial may go on: what each of them costs adds up."""


class _Budget:
    """What one validation may spend, shared by all its trials, and the enums it has seen."""

    def __init__(self, given: Any, whole: str, part: str) -> None:
        self.whole, self.part = whole, part
        self.work = _WORK[0] + _WORK[1] * size(given)
        self.hints = _HINTS
        self._enums: dict[int, tuple[frozenset[Any], dict[str, set[str]]]] = {}
        self.types: dict[int, tuple[Any, frozenset[str]]] = {}  # by the id of a schema, which is kept beside it

    def enum(self, values: list[Any]) -> tuple[frozenset[Any], dict[str, set[str]]]:
        """The values, comparable, and the texts among them by their lower case."""
        if id(values) not in self._enums:
            cases: dict[str, set[str]] = {}
            for text in (v for v in values if isinstance(v, str)):
                cases.setdefault(text.lower(), set()).add(text)
            self._enums[id(values)] = frozenset(map(comparable, values)), cases
        return self._enums[id(values)]


class _Check:
    def __init__(self, root: Schema, budget: _Budget, depth: int = 0, *, exact: bool = False) -> None:
        self.root = root
        self.budget = budget
        self.depth = depth
        self.exact = exact  # compare only: coerce nothing, stop at the first problem
        self.problems: list[str] = []

    def value(self, schema: Any, value: Any, path: str) -> Any:
        """One value checked and coerced; problems are collected with their path (`ids[2]`)."""
        for layer in self.layers(schema):
            self.budget.work -= 1
            if self.budget.work < 0:
                raise _Spent
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

    def layers(self, schema: Any) -> list[Any]:
        """A schema and what its `$ref` points to: both hold. A circle of references alone demands nothing."""
        layers: list[Any] = []
        for _ in range(_DEEPEST):
            if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
                return [*layers, schema]
            layers.insert(0, {k: v for k, v in schema.items() if k != "$ref"})
            schema = pointed_at(self.root, schema["$ref"])
        return layers

    def _checked(self, schema: Schema, value: Any, path: str) -> Any:
        wanted = self.types(schema)
        if not self.exact:
            value = self._enum_case(schema.get("enum"), coerced(value, wanted))
        if wanted and type_of(value) not in wanted and not (type_of(value) == "integer" and "number" in wanted):
            self.refuse(path, f"must be {_or(sorted(wanted))}, not {type_of(value)}{_shown(value)}")
            return value
        self._constants(schema, value, path)
        if isinstance(value, dict):
            value = self._object(schema, value, path)
        elif isinstance(value, list):
            value = self._array(schema, value, path)
        elif isinstance(value, str):
            self._text(schema, value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(schema, value, path)
        return self._combined(schema, value, path)

    def refuse(self, path: str, what: str) -> None:
        self.problem(f"{path!r} {what}" if path else f"{self.budget.whole} {what}")

    def problem(self, sentence: str) -> None:
        self.problems.append(sentence)
        if self.exact or len(self.problems) >= _PROBLEMS:
            raise _Enough

    def types(self, schema: Any, depth: int = 0) -> frozenset[str]:
        """The JSON types a schema admits; empty where any will do."""
        schema = resolve(self.root, schema)
        if not isinstance(schema, Mapping) or depth > 8:
            return frozenset()
        if id(schema) not in self.budget.types:  # branches may share theirs many times over
            self.budget.types[id(schema)] = schema, self._types(schema, depth)
        return self.budget.types[id(schema)][1]

    def _types(self, schema: Schema, depth: int) -> frozenset[str]:
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

    def _enum_case(self, enum: Any, value: Any) -> Any:
        if not isinstance(enum, list) or not isinstance(value, str):
            return value
        values, cases = self.budget.enum(enum)
        same = cases.get(value.strip().lower(), set()) if value not in values else set[str]()
        return next(iter(same)) if len(same) == 1 else value

    def _constants(self, schema: Schema, value: Any, path: str) -> None:
        if isinstance(enum := schema.get("enum"), list) and comparable(value) not in self.budget.enum(enum)[0]:
            some = ", ".join(json.dumps(v, ensure_ascii=False, default=str) for v in enum[:12])
            more = f" … ({len(enum)} values)" if len(enum) > 12 else ""
            hint = self._meant(value, (v for v in enum if isinstance(v, str)))
            self.refuse(path, f"must be one of {some}{more}, not{_shown(value)}{hint}")
        if "const" in schema and comparable(value) != comparable(schema["const"]):
            self.refuse(path, f"must be {json.dumps(schema['const'], ensure_ascii=False, default=str)}")

    def _meant(self, written: Any, known: Iterable[str], at: str = "") -> str:
        """What was probably meant, as the end of a sentence; "" when nothing is close or enough was suggested."""
        if not isinstance(written, str) or self.exact or self.budget.hints <= 0:
            return ""
        self.budget.hints -= 1
        spelled = {k.casefold(): k for k in islice(known, 1000) if len(k) <= 64}
        near = get_close_matches(written[:64].casefold(), spelled, 1)
        return f"; did you mean {_join(at, spelled[near[0]])!r}?" if near else ""

    def _object(self, schema: Schema, value: dict[str, Any], path: str) -> dict[str, Any]:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = [r for r in _list(schema.get("required")) if isinstance(r, str)]
        # A model that sends null for what it does not want to say means "left out".
        value = {
            key: item
            for key, item in value.items()
            if item is not None
            or self.exact
            or key in required
            or key not in properties
            or self._admits_null(properties[key])
        }
        for key in required:
            if key not in value:
                self.problem(f"the required {self.budget.part} {_join(path, key)!r} is missing")
        rest = schema.get("additionalProperties", True)
        patterns = schema.get("patternProperties")
        patterns = dict(islice(patterns.items(), _PATTERNS)) if isinstance(patterns, Mapping) else {}
        checked = {}
        for key, item in value.items():
            at = _join(path, key)
            fitting = [properties[key]] if key in properties else []
            self.budget.work -= len(patterns) // 10
            fitting += [s for p, s in patterns.items() if _matches(p, key)]
            checked[key] = item
            if not fitting and rest is False:
                self.problem(f"there is no {self.budget.part} {at!r}{self._meant(key, properties, path)}")
                continue
            for one in fitting or [rest]:
                checked[key] = self.value(one, checked[key], at)
        self._count(schema, len(value), path, "Properties", "fields")
        if (names := schema.get("propertyNames")) is not None:
            for key in value:
                if not self.fits(names, key):
                    self.refuse(_join(path, key), "has a name that is not allowed")
        for key, others in _items(schema.get("dependentRequired")):
            for other in _list(others):
                if key in value and other not in value:
                    self.problem(f"{_join(path, str(other))!r} is required together with {_join(path, key)!r}")
        for key, dependent in _items(schema.get("dependentSchemas")):
            if key in checked:
                checked = self.value(dependent, checked, path)
        return checked

    def _admits_null(self, schema: Any) -> bool:
        schema = resolve(self.root, schema)
        if isinstance(schema, Mapping) and (None in _list(schema.get("enum")) or ("const", None) in schema.items()):
            return True
        types = self.types(schema)
        return not types or "null" in types

    def _array(self, schema: Schema, value: list[Any], path: str) -> list[Any]:
        first = _list(schema.get("prefixItems"))
        rest = schema.get("items", True)
        checked = [
            self.value(first[i] if i < len(first) else rest, item, f"{path}[{i}]") for i, item in enumerate(value)
        ]
        self._count(schema, len(value), path, "Items", "items")
        if schema.get("uniqueItems") is True and len({comparable(item) for item in checked}) < len(checked):
            self.refuse(path, "must not hold the same item twice")
        if isinstance(contains := schema.get("contains"), Mapping | bool):
            found = sum(self.fits(contains, item) for item in checked)
            low, high = _bound(schema, "minContains"), _bound(schema, "maxContains")
            if found < (1 if low is None else low):
                self.refuse(path, "lacks an item it must contain")
            elif high is not None and found > high:
                self.refuse(path, f"must hold at most {high} items of one kind, not {found}")
        return checked

    def _text(self, schema: Schema, value: str, path: str) -> None:
        self._count(schema, len(value), path, "Length", "characters")
        if isinstance(pattern := schema.get("pattern"), str) and not _matches(pattern, value):
            self.refuse(path, f"must match the pattern {pattern!r}")

    def _number(self, schema: Schema, value: float, path: str) -> None:
        bounds: list[tuple[str, Callable[[float, float], bool], str]] = [
            ("minimum", lambda v, b: v >= b, "at least"),
            ("maximum", lambda v, b: v <= b, "at most"),
            ("exclusiveMinimum", lambda v, b: v > b, "more than"),
            ("exclusiveMaximum", lambda v, b: v < b, "less than"),
        ]
        if not -math.inf < value < math.inf:
            self.refuse(path, "must be a finite number")
            return
        for keyword, holds, phrase in bounds:
            bound = _bound(schema, keyword)
            if bound is not None and not holds(value, bound):
                self.refuse(path, f"must be {phrase} {bound}, not{_shown(value)}")
        step = _bound(schema, "multipleOf")
        if step is not None and step > 0 and _exactly(value) % _exactly(step):
            self.refuse(path, f"must be a multiple of {step}")

    def _count(self, schema: Schema, size: int, path: str, keywords: str, unit: str) -> None:
        low, high = _bound(schema, f"min{keywords}"), _bound(schema, f"max{keywords}")
        if low is not None and size < low:
            self.refuse(path, f"must have at least {low} {unit}, not {size}")
        if high is not None and size > high:
            self.refuse(path, f"must have at most {high} {unit}, not {size}")

    def _combined(self, schema: Schema, value: Any, path: str) -> Any:
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

    def _any_of(self, branches: list[Any], value: Any, path: str) -> Any:
        """A branch that takes the value as it is comes before one that would change it."""
        if len(branches) > 1 and not self.exact and any(self.fits(branch, value) for branch in branches):
            return value
        failures = []
        for branch in branches:
            trial = _Check(self.root, self.budget, self.depth, exact=self.exact)
            try:
                checked = trial.value(branch, value, path)
            except _Enough:
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

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether the value is valid as it is."""
        trial = _Check(self.root, self.budget, self.depth, exact=True)
        try:
            trial.value(schema, value, "")
        except _Enough:
            return False
        return True


def _bound(schema: Schema, keyword: str) -> float | None:
    bound = schema.get(keyword)
    if isinstance(bound, float):
        return bound if math.isfinite(bound) else None
    return bound if isinstance(bound, int) and not isinstance(bound, bool) else None


def _exactly(number: float) -> Fraction:
    """The number as it is written: .3 is three tenths, although no float is."""
    return Fraction(number if isinstance(number, int) else repr(number))


@lru_cache(maxsize=4096)
def _pattern(pattern: str) -> SchemaValidator | None:
    """Compiled by pydantic-core's linear-time engine; None for what it cannot run (look-around): left unchecked."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def _matches(pattern: Any, text: str) -> bool:
    compiled = _pattern(pattern) if isinstance(pattern, str) else None
    return compiled is None or compiled.isinstance_python(text)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _or(names: list[str]) -> str:
    return " or ".join(f"an {n}" if n[0] in "aio" else n if n == "null" else f"a {n}" for n in names)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f" {text[:60]}…" if len(text) > 60 else f" {text}"
