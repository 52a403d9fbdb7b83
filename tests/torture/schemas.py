"""Random schemas and arguments, read, validated and exported, and compared with jsonschema."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from contextlib import suppress
from typing import Any

from jsonschema import Draft202012Validator

from tests.torture import Outcome
from toolsearch import DefinitionError, NotExportable, tool
from toolsearch.schemas.export import TARGETS, exported
from toolsearch.schemas.validation import ArgumentsError, parse_arguments, validate_arguments

__all__ = ["FINDINGS", "schemas"]

# What must not be found, and what it means for so many schemas or arguments.
FINDINGS = {
    "raised": "raised something else than DefinitionError or ArgumentsError",
    "valid and refused": "were refused although jsonschema takes them",
    "accepted and invalid": "were accepted although jsonschema does not take the result",
    "not the same twice": "were changed once more by a second validation",
    "own result refused": "were accepted, and refused by a second validation",
    "grown": "were exported much larger than they are",
    "no schema": "were exported as what is no schema of 2020-12",
}
_TEXTS = (
    "", "a", "abc", "ABC", "1", "1.0", "1e5", "true", "null", "[1]", '{"a":1}', "é", "\u200b", "\ud800", " x ", "NaN",
    "-0", "0x1", "١", "2024-01-01",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 1.0, 1.5, -0.0, 1e308, 2**53 + 1, 10**25)
_META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
# Keywords that jsonschema reads in another way: oneOf, floats that are no exact tenths, what is left unchecked here.
_READ_DIFFERENTLY = ("oneOf", "pattern", "patternProperties", "$ref", "multipleOf")


def schemas(count: int, seed: int) -> Outcome:
    """Tries `count` random schemas, each with arguments."""
    rng = random.Random(seed)
    figures: Counter[str] = Counter(dict.fromkeys(("accepted", "refused", "quarantined", *FINDINGS), 0))
    logger = logging.getLogger("toolsearch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        for _ in range(count):
            root: dict[str, Any] = {"type": "object", **_as_object(_schema(rng, 0))}
            if rng.random() < 0.5:
                root["$defs"] = {"x": _schema(rng, 1)}
            _try(root, {key: _value(rng) for key in rng.sample("abcd", rng.randrange(4))}, rng, figures)
    finally:
        logger.setLevel(level)
    violations = [f"{figures[kind]} schemas or arguments {what}" for kind, what in FINDINGS.items() if figures[kind]]
    return Outcome(dict(figures), violations)


def _try(root: dict[str, Any], arguments: dict[str, Any], rng: random.Random, figures: Counter[str]) -> None:
    try:
        schema = dict(tool({"name": "t", "input_schema": root}).input_schema)
        for target in TARGETS:
            with suppress(NotExportable):
                sent = exported(schema, target).schema
                more = 200 if target in ("openai", "anthropic") else 4_200  # what is inlined has a budget of its own
                figures["grown"] += len(json.dumps(sent)) > 3 * len(json.dumps(schema)) + more
                figures["no schema"] += not _META.is_valid(sent)
    except DefinitionError:
        figures["quarantined"] += 1
        return
    except Exception:
        figures["raised"] += 1
        return
    given: dict[str, Any] = {}
    accepted: dict[str, Any] | None = None
    try:
        given = parse_arguments(arguments if rng.random() < 0.5 else json.dumps(arguments))
        accepted = validate_arguments(schema, given)
    except ArgumentsError:
        pass
    except Exception:
        figures["raised"] += 1
        return
    figures["refused" if accepted is None else "accepted"] += 1
    if accepted is not None:
        _try_again(schema, accepted, figures)
    if "\ud800" not in repr(arguments) and not any(_has(root, keyword) for keyword in _READ_DIFFERENTLY):
        _compare(schema, given, accepted, figures)


def _try_again(schema: dict[str, Any], accepted: dict[str, Any], figures: Counter[str]) -> None:
    try:
        figures["not the same twice"] += repr(validate_arguments(schema, accepted)) != repr(accepted)
    except ArgumentsError:
        figures["own result refused"] += 1


def _compare(
    schema: dict[str, Any], given: dict[str, Any], accepted: dict[str, Any] | None, figures: Counter[str]
) -> None:
    reference = Draft202012Validator(schema)
    try:
        if accepted is None:
            figures["valid and refused"] += reference.is_valid(given)
        else:
            figures["accepted and invalid"] += not reference.is_valid(accepted)
    except Exception:  # it does not read every schema that this library reads
        return


def _as_object(schema: Any) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "type"} if isinstance(schema, dict) else {}


def _has(node: Any, keyword: str) -> bool:
    if isinstance(node, dict):
        return keyword in node or any(_has(value, keyword) for value in node.values())
    return isinstance(node, list) and any(_has(value, keyword) for value in node)


def _value(rng: random.Random, depth: int = 0) -> Any:
    chance = rng.random()
    if depth > 3 or chance < 0.6:
        return rng.choice([None, True, False, *_NUMBERS, *_TEXTS])
    if chance < 0.8:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice("abcd"): _value(rng, depth + 1) for _ in range(rng.randrange(4))}


def _schema(rng: random.Random, depth: int) -> Any:
    if rng.random() < 0.05:
        return rng.choice([True, False, {}])
    schema: dict[str, Any] = {}
    if rng.random() < 0.7:
        schema["type"] = rng.choice([*_TYPES, ["string", "null"], ["integer", "string"], ["array", "object"]])
    if depth < 3:
        _add_inner(schema, rng, depth + 1)
    if rng.random() < 0.1:
        schema["enum"] = [_value(rng, 2) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.05:
        schema["const"] = _value(rng, 2)
    bounds = (
        ("minimum", 1), ("maximum", 5), ("exclusiveMinimum", 0), ("multipleOf", rng.choice([0.1, 2, 3])),
        ("minLength", 1), ("maxLength", 3), ("minItems", 1), ("maxItems", 2), ("minProperties", 1),
        ("maxProperties", 2), ("uniqueItems", True),
    )  # fmt: skip
    schema |= {keyword: bound for keyword, bound in bounds if rng.random() < 0.05}
    if rng.random() < 0.05:
        schema["pattern"] = rng.choice(["^a", "[0-9]+", "^$", "(", "(?=a)", "\\d"])
    return schema


def _add_inner(schema: dict[str, Any], rng: random.Random, depth: int) -> None:
    """Keywords that hold schemas, each by chance."""
    if rng.random() < 0.4:
        schema["properties"] = {key: _schema(rng, depth) for key in rng.sample("abcd", rng.randrange(4))}
    if rng.random() < 0.2:
        schema["required"] = rng.sample("abcd", rng.randrange(3))
    if rng.random() < 0.2:
        schema["additionalProperties"] = rng.choice([True, False, _schema(rng, depth)])
    if rng.random() < 0.1:
        schema["patternProperties"] = {rng.choice(["^a", "b$", "."]): _schema(rng, depth)}
    for keyword, chance in (("items", 0.2), ("contains", 0.1), ("not", 0.05), ("propertyNames", 0.05)):
        if rng.random() < chance:
            schema[keyword] = _schema(rng, depth)
    if rng.random() < 0.1:
        schema["prefixItems"] = [_schema(rng, depth) for _ in range(2)]
    for keyword in ("anyOf", "allOf", "oneOf"):
        if rng.random() < 0.08:
            schema[keyword] = [_schema(rng, depth) for _ in range(rng.randrange(1, 3))]
    if rng.random() < 0.05:
        schema |= {"if": _schema(rng, depth), "then": _schema(rng, depth)}
    if rng.random() < 0.07:
        schema["$ref"] = rng.choice(["#", "#/$defs/x", "#/properties/a", "#/nowhere"])
