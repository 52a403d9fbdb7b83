"""The arguments a scripted model writes fit the schema they are written for."""

from typing import Any

import pytest

from toolsearch.schemas.validation import validate_arguments
from toolsearch_evals.data.argument_maker import smallest_arguments
from toolsearch_evals.data.cases import load


def test_the_smallest_arguments_fit_every_tool_that_ships() -> None:
    for tool in load("commons")[0].catalog():
        validate_arguments(tool.input_schema, smallest_arguments(tool.input_schema))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 3, "multipleOf": 5},
        {"type": "integer", "exclusiveMinimum": 7},
        {"type": "number", "maximum": -2},
        {"type": "string", "minLength": 20},
        {"type": "string", "maxLength": 3},
        {"type": "string", "pattern": "^[A-Z]{3}$"},
        {"type": "string", "pattern": "^(ab|cd)-\\d+(\\.[a-z0-9]{4})?$"},
        {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
        {"type": "string", "format": "date-time"},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        {"enum": ["b", "a"]},
        {"const": 4},
        {"type": ["null", "string"]},
        {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
        {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "integer"}}}]},
        {"$ref": "#/$defs/node"},
        True,
    ],
)
def test_they_fit_what_schemas_ask_for(schema: Any) -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "string"}},
        "required": ["v"],
    }
    whole = {"type": "object", "properties": {"x": schema, "y": {}}, "required": ["x"], "$defs": {"node": node}}
    made = smallest_arguments(whole)
    assert made.keys() == {"x"}
    validate_arguments(whole, made)


def test_a_schema_that_requires_itself_ends() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}
    assert smallest_arguments(schema).keys() == {"x"}
