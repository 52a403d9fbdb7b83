"""Arguments from a model: parsed, coerced where nothing is lost, and validated against the tool's own JSON Schema.

Covered are the keywords tool schemas use (2020-12, without `unevaluated*` and `$dynamicRef`); `oneOf` is read as
`anyOf`, because coercion would make two branches fit. `format` is a hint and is not enforced.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolsearch.calls import clean

__all__ = ["JSON_TYPES", "ArgumentsError", "parse_arguments", "resolve", "validate_arguments"]

Schema = Mapping[str, Any]
_DEEPEST = 64  # levels of nesting; deeper values and reference loops are refused, not followed
_TRIALS = 20_000  # branches of combinators tried in one validation: a schema can refer to itself twice, and so on


class ArgumentsError(ValueError):
    """The arguments of one call do not fit; `problems` has one plain sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def parse_arguments(raw: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments as an object. Empty text and null mean {}; malformed JSON is refused, never replaced by {}."""
    if isinstance(raw, str):
        if not raw.strip():
            return {}
        try:
            raw = json.loads(raw)
        except json.JSONDecodeError as error:
            raise ArgumentsError([f"the arguments are not valid JSON: {error.msg} at character {error.pos}"]) from None
        except RecursionError:
            raise ArgumentsError(["the arguments are nested too deeply"]) from None
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise ArgumentsError([f"the arguments must be a JSON object, not {_type_of(raw)}"])
    try:
        return {clean(str(key)): _clean(value) for key, value in raw.items()}
    except RecursionError:
        raise ArgumentsError(["the arguments are nested too deeply"]) from None


def validate_arguments(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, coerced to the schema's types; raises `ArgumentsError` naming every problem.

    Coerced are: JSON text where an array or object is wanted (decoded once), numbers and booleans written as text,
    numbers where text is wanted, enum values in another case, and null for an optional argument (dropped).
    """
    check = _Check(schema)
    value = check.value(schema, dict(arguments), "")
    if check.problems:
        raise ArgumentsError(check.problems)
    result: dict[str, Any] = value
    return result


def resolve(root: Schema, schema: Any) -> Any:
    """The schema behind a chain of local `$ref`s (any JSON pointer); an unknown or circular one allows anything."""
    for _ in range(_DEEPEST):
        if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
            return schema
        schema = _pointer(root, schema["$ref"])
    return {}


def _pointer(root: Any, ref: str) -> Any:
    if not ref.startswith("#"):
        return {}
    from urllib.parse import unquote

    at = root
    for step in unquote(ref[1:]).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and key in at:
            at = at[key]
        elif isinstance(at, list) and key.isdigit() and int(key) < len(at):
            at = at[int(key)]
        else:
            return {}
    return at


class _Check:
    def __init__(self, root: Schema, parent: _Check | None = None) -> None:
        self.root = root
        self.problems: list[str] = []
        self.depth: int = parent.depth if parent else 0
        self.trials: list[None] = parent.trials if parent else []  # shared by all, for its length

    def trial(self) -> _Check:
        self.trials.append(None)
        return _Check(self.root, self)

    def value(self, schema: Any, value: Any, path: str) -> Any:
        """One value checked and coerced; problems are collected with their path (`ids[2]`)."""
        schema = resolve(self.root, schema)
        if schema is False:
            self.refuse(path, "is not allowed")
        if not isinstance(schema, Mapping):
            return value
        self.depth += 1
        try:
            if self.depth > _DEEPEST or len(self.trials) > _TRIALS:
                self.refuse(path, "is nested too deeply")
                return value
            return self._checked(schema, value, path)
        finally:
            self.depth -= 1

    def _checked(self, schema: Schema, value: Any, path: str) -> Any:
        wanted = self.types(schema)
        value = _coerce(value, wanted)
        value = _enum_case(schema.get("enum"), value)
        if wanted and _type_of(value) not in wanted and not (_type_of(value) == "integer" and "number" in wanted):
            self.refuse(path, f"must be {_or(sorted(wanted))}, not {_type_of(value)}{_shown(value)}")
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
        self.problems.append(f"{path!r} {what}" if path else f"the arguments {what}")

    def types(self, schema: Any, depth: int = 0) -> frozenset[str]:
        """The JSON types a schema admits; empty where any will do."""
        schema = resolve(self.root, schema)
        if not isinstance(schema, Mapping) or depth > 8:
            return frozenset()
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

    def _constants(self, schema: Schema, value: Any, path: str) -> None:
        if isinstance(enum := schema.get("enum"), list) and not any(_same(value, allowed) for allowed in enum):
            some = ", ".join(json.dumps(v, ensure_ascii=False, default=str) for v in enum[:12])
            more = f" … ({len(enum)} values)" if len(enum) > 12 else ""
            near = get_close_matches(str(value)[:64], [str(v) for v in enum[:5000]], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            self.refuse(path, f"must be one of {some}{more}, not{_shown(value)}{hint}")
        if "const" in schema and not _same(value, schema["const"]):
            self.refuse(path, f"must be {json.dumps(schema['const'], ensure_ascii=False, default=str)}")

    def _object(self, schema: Schema, value: dict[str, Any], path: str) -> dict[str, Any]:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = [r for r in _list(schema.get("required")) if isinstance(r, str)]
        # A model that sends null for what it does not want to say means "left out".
        value = {
            key: item
            for key, item in value.items()
            if item is not None or key in required or key not in properties or self._admits_null(properties[key])
        }
        for key in required:
            if key not in value:
                self.problems.append(f"the required argument {_join(path, key)!r} is missing")
        rest = schema.get("additionalProperties", True)
        patterns = schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, Mapping) else {}
        checked = {}
        for key, item in value.items():
            at = _join(path, key)
            if key in properties:
                checked[key] = self.value(properties[key], item, at)
            elif fitting := [s for p, s in patterns.items() if _matches(p, key)]:
                checked[key] = self.value(fitting[0], item, at)
            elif rest is False:
                near = get_close_matches(key[:64], list(properties), 1)
                self.problems.append(
                    f"there is no argument {at!r}" + (f"; did you mean {_join(path, near[0])!r}?" if near else "")
                )
            else:
                checked[key] = self.value(rest, item, at)
        self._count(schema, len(value), path, "Properties", "fields")
        for key, others in _items(schema.get("dependentRequired")):
            for other in _list(others):
                if key in value and other not in value:
                    self.problems.append(f"{_join(path, str(other))!r} is required together with {_join(path, key)!r}")
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
        if schema.get("uniqueItems") is True:
            seen = {json.dumps(item, sort_keys=True, default=str) for item in checked}
            if len(seen) < len(checked):
                self.refuse(path, "must not hold the same item twice")
        if isinstance(contains := schema.get("contains"), Mapping) and not any(
            self.fits(contains, item) for item in checked
        ):
            self.refuse(path, "lacks an item it must contain")
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
        for keyword, holds, phrase in bounds:
            bound = schema.get(keyword)
            if isinstance(bound, int | float) and not isinstance(bound, bool) and not holds(value, bound):
                self.refuse(path, f"must be {phrase} {bound}, not {value}")
        step = schema.get("multipleOf")
        if isinstance(step, int | float) and step > 0 and math.isfinite(value):
            times = value / step
            if not math.isclose(times, round(times), rel_tol=1e-9, abs_tol=1e-9):
                self.refuse(path, f"must be a multiple of {step}")

    def _count(self, schema: Schema, size: int, path: str, keywords: str, unit: str) -> None:
        low, high = schema.get(f"min{keywords}"), schema.get(f"max{keywords}")
        if isinstance(low, int) and size < low:
            self.refuse(path, f"must have at least {low} {unit}, not {size}")
        if isinstance(high, int) and size > high:
            self.refuse(path, f"must have at most {high} {unit}, not {size}")

    def _combined(self, schema: Schema, value: Any, path: str) -> Any:
        for branch in _list(schema.get("allOf")):
            value = self.value(branch, value, path)
        for keyword in ("anyOf", "oneOf"):
            if branches := _list(schema.get(keyword)):
                value = self._any_of(branches, value, path)
        if isinstance(refused := schema.get("not"), Mapping) and self.fits(refused, value):
            self.refuse(path, "has a form that is not allowed")
        if isinstance(condition := schema.get("if"), Mapping):
            branch = schema.get("then" if self.fits(condition, value) else "else")
            value = self.value(branch, value, path) if branch is not None else value
        return value

    def _any_of(self, branches: list[Any], value: Any, path: str) -> Any:
        failures = []
        for branch in branches:
            trial = self.trial()
            checked = trial.value(branch, value, path)
            if not trial.problems:
                return checked
            failures.append(trial.problems)
        closest = min(failures, key=len)
        self.problems += (
            closest if len(branches) == 1 else [f"none of {len(branches)} forms fits: {'; '.join(closest)}"]
        )
        return value

    def fits(self, schema: Any, value: Any) -> bool:
        trial = self.trial()
        trial.value(schema, value, "")
        return not trial.problems


JSON_TYPES = frozenset(["string", "number", "integer", "boolean", "array", "object", "null"])


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object" if isinstance(value, Mapping) else type(value).__name__


def _coerce(value: Any, wanted: frozenset[str]) -> Any:
    kind = _type_of(value)
    if not wanted or kind in wanted or (kind == "integer" and "number" in wanted):
        return value
    if kind == "number" and "integer" in wanted and value.is_integer():
        return int(value)
    if kind in ("integer", "number") and "string" in wanted:
        return json.dumps(value)
    return _from_text(value, wanted) if kind == "string" else value


def _from_text(text: str, wanted: frozenset[str]) -> Any:
    """What the text means as JSON, if that is of a wanted type; otherwise the text."""
    if len(text) > 1_000_000:
        return text
    try:
        value = json.loads(text.strip().lower() if "boolean" in wanted else text)
    except (ValueError, RecursionError):
        return text
    kind = _type_of(value)
    if kind == "number" and "integer" in wanted and value.is_integer():
        return int(value)
    fits = kind in wanted or (kind == "integer" and "number" in wanted)
    return value if fits and kind not in ("null", "string") else text


def _enum_case(enum: Any, value: Any) -> Any:
    if not isinstance(enum, list) or not isinstance(value, str) or value in enum:
        return value
    same = [v for v in enum if isinstance(v, str) and v.lower() == value.strip().lower()]
    return same[0] if len(same) == 1 else value


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> SchemaValidator | None:
    """Compiled by pydantic-core's linear-time engine; None for what it cannot run (look-around): left unchecked."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def _matches(pattern: Any, text: str) -> bool:
    compiled = _pattern(pattern) if isinstance(pattern, str) else None
    return compiled is None or compiled.isinstance_python(text)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list | tuple) else value


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
