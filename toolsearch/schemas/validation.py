"""Arguments from a model: parsed, coerced where nothing is lost, and validated against the tool's own JSON Schema.

Covered are the keywords tool schemas use (2020-12, without `unevaluated*` and `$dynamicRef`); `oneOf` is read as
`anyOf`, because coercion would make two branches fit. `format` is a hint and is not enforced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolsearch.schemas.budget import Budget, EnoughProblems, TooMuchWork
from toolsearch.schemas.compiled import CompiledSchema, compiled
from toolsearch.schemas.json_values import read_repeated, type_of
from toolsearch.schemas.validator import Validator
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import LEVELS, clean, clean_json, is_deeper

__all__ = ["ArgumentsError", "parse_arguments", "validate_arguments", "validate_value"]

_PASSES = 3  # walks through a value that was coerced


class ArgumentsError(ValueError):
    """The arguments of one call do not fit; `problems` has one plain sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def parse_arguments(raw: str | JsonObject | None) -> dict[str, Any]:
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
    if is_deeper(value, LEVELS):
        raise ArgumentsError([f"the arguments are nested too deeply, more than {LEVELS} levels"])
    return {clean(str(key)): clean_json(item) for key, item in value.items()}


def _decoded(text: str) -> object:
    try:
        return read_repeated(text) if text.strip() else None
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise ArgumentsError([f"the arguments are not valid JSON: {what} at character {error.pos}"]) from None
    except ValueError as error:  # NaN, or a number of thousands of digits
        raise ArgumentsError([f"the arguments are not valid JSON: {error}"]) from None
    except RecursionError:
        raise ArgumentsError(["the arguments are nested too deeply"]) from None


def validate_arguments(schema: JsonObject, arguments: JsonObject, digest: str = "") -> dict[str, Any]:
    """The arguments, coerced to the schema's types; raises `ArgumentsError` naming every problem.

    Coerced are: JSON text where an array or object is wanted (decoded once), numbers and booleans written as text,
    numbers where text is wanted, enum values in another case, and null for an optional argument (dropped).
    Arguments that providers are sent under another name come out under their own; problems name what the model knows.
    `digest` identifies the schema, if the program knows it: it is compiled once while it stays in use.
    """
    known = compiled(schema, digest)
    if not known.renamed:
        checked = _value(known, dict(arguments), "the arguments", "argument", {})
    else:
        own = {known.renamed.get(name, name): value for name, value in arguments.items()}
        names = {original: name for name, original in known.renamed.items() if original not in arguments}
        checked = _value(known, own, "the arguments", "argument", names)
    return checked if isinstance(checked, dict) else {}


def validate_value(
    schema: JsonObject, value: object, whole: str = "the arguments", part: str = "argument", digest: str = ""
) -> object:
    """Any JSON value, coerced and checked as `validate_arguments` does; `whole` and `part` are what it is called.

    What comes out would come out again: a value that was coerced is checked anew, because a condition may see it
    differently then.
    """
    return _value(compiled(schema, digest), value, whole, part, {})


def _value(schema: CompiledSchema, value: object, whole: str, part: str, names: Mapping[str, str]) -> object:
    checked, has_coerced = _validated(schema, value, Budget(value, whole, part, names))
    for _ in range(_PASSES):
        if not has_coerced:
            return checked
        before = checked
        checked, has_coerced = _validated(schema, before, Budget(before, whole, part, names))
    if has_coerced:
        raise ArgumentsError([f"{whole} fit only after a change, again and again: send them as the schema says"])
    return checked


def _validated(schema: CompiledSchema, value: object, budget: Budget) -> tuple[object, bool]:
    """The value after one walk, and whether anything in it was changed."""
    whole = budget.whole
    validator = Validator(schema, budget)
    checked: object = None
    try:
        checked = validator.value(schema.schema, value, "")
    except EnoughProblems:
        pass
    except TooMuchWork:
        raise ArgumentsError([f"{whole} take too long to check"]) from None
    except (RecursionError, ValueError):
        raise ArgumentsError([f"{whole} are nested too deeply, or hold a number too long to read"]) from None
    if validator.problems:
        raise ArgumentsError(validator.problems)
    return checked, budget.has_coerced
