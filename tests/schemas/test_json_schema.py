"""Schemas: regular on the way in, acceptable to a provider on the way out."""

import copy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolsearch import Catalog, DefinitionError, tool
from toolsearch.schemas.argument_texts import argument_texts
from toolsearch.schemas.export import Exported, exported
from toolsearch.schemas.json_schema import normalised
from toolsearch.schemas.validation import ArgumentsError, validate_arguments

A = {"a": {"type": "string"}}


@pytest.mark.parametrize("schema", [{}, None, True, {"type": "object"}, {"type": "object", "properties": None},
    {"type": None}, {"type": "object", "properties": [], "required": []}, {"required": [None, 5]}])  # fmt: skip
def test_no_arguments_known_is_an_empty_object(schema: Any) -> None:
    """B02, B03: `properties` is always there, whatever was left out."""
    assert normalised(schema, "t") == {"type": "object", "properties": {}}
    assert exported(normalised(schema, "t"), "openai") == Exported({"type": "object", "properties": {}})


@pytest.mark.parametrize(("schema", "expected"), [
    ({"type": "object", "properties": None, "required": None}, {"type": "object", "properties": {}}),
    ({"properties": A}, {"type": "object", "properties": A}),
    ({"type": "object", "required": "a"}, {"type": "object", "properties": {}, "required": ["a"]}),
    ({"type": "object", "required": ""}, {"type": "object", "properties": {}}),
    ({"type": ["object", "null"], "properties": A}, {"type": "object", "properties": A}),
    ({"type": "OBJECT", "properties": A, "required": ("a", "a")},
     {"type": "object", "properties": A, "required": ["a"]}),
])  # fmt: skip
def test_odd_schemas_of_an_object_become_regular(schema: Any, expected: dict[str, Any]) -> None:
    """B03."""
    assert normalised(schema, "t") == expected


@pytest.mark.parametrize(
    "schema", ["string", [1], 5, {"type": "string"}, {"type": ["string"]}, {"type": "array"}, False]
)
def test_a_schema_that_is_no_object_is_refused_with_the_tools_name(schema: Any) -> None:
    """B03: at registration, not by a provider."""
    with pytest.raises(DefinitionError, match="the input schema of 'wire_money' must"):
        tool({"name": "wire_money", "input_schema": schema})


@pytest.mark.parametrize(("inner", "expected"), [
    ({"type": "object", "properties": None, "required": None}, {"type": "object"}),
    ({"type": None, "enum": None, "description": "x", "items": None}, {"description": "x"}),
    ({"type": "object", "properties": {"b": None, "c": True}}, {"type": "object", "properties": {"b": {}, "c": {}}}),
    ({"type": "object", "properties": [], "required": "b"}, {"type": "object", "required": ["b"]}),
    ({"type": "object", "required": ""}, {"type": "object"}),
    ({"type": "str"}, {"type": "string"}),
    ({"type": ["Int", "none"]}, {"type": ["integer", "null"]}),
    ({"type": "any", "description": "x"}, {"description": "x"}),
    ({"type": "string", "default": None}, {"type": "string", "default": None}),
    ({"anyOf": [{"type": "DICT", "properties": None}]}, {"anyOf": [{"type": "object"}]}),
])  # fmt: skip
def test_what_says_nothing_is_dropped_at_every_level(inner: Any, expected: dict[str, Any]) -> None:
    """B03, siblings: nested nulls, types of Python, a lone name for a list of names."""
    assert normalised({"type": "object", "properties": {"a": inner}}, "t")["properties"]["a"] == expected


@pytest.mark.parametrize(
    "value", [{"type": "A", "nullable": True}, [{"type": "OBJECT", "title": " x "}], {"required": None}]
)
def test_values_in_a_schema_are_not_taken_for_schemas(value: Any) -> None:
    schema = {
        "properties": {"a": {"const": value}, "b": {"enum": [value]}, "c": {"default": value, "examples": [value]}}
    }
    before = copy.deepcopy(schema)
    made = tool({"name": "t", "input_schema": schema})
    assert made.input_schema["properties"] == before["properties"]
    assert validate_arguments(made.input_schema, {"a": value, "b": value}) == {"a": value, "b": value}


def test_the_catalog_keeps_a_copy_that_later_changes_of_the_source_do_not_reach() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"enum": ["x"], "default": {"k": [1]}}}}
    made = tool({"name": "t", "input_schema": schema})
    schema["properties"]["a"]["enum"].append("y")
    schema["properties"]["a"]["default"]["k"].append(2)
    assert made.input_schema["properties"]["a"] == {"enum": ["x"], "default": {"k": [1]}}


# -- on the way out ----------------------------------------------------------------------------------------------------

TEXT = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
URL = {"properties": {"url": {"type": "string"}}, "required": ["url"]}
BOTH = {"text": {"type": "string"}, "url": {"type": "string"}}

FOLDED: list[tuple[dict[str, Any], dict[str, Any], list[str], str]] = [
    ({"anyOf": [TEXT, URL]}, BOTH, [], "Give one of: text; url."),
    ({"oneOf": [TEXT, URL]}, BOTH, [], "Give one of: text; url."),
    ({"allOf": [TEXT, URL]}, BOTH, ["text", "url"], ""),
    ({"properties": {"id": {}}, "required": ["id"], "anyOf": [TEXT, URL]}, {"id": {}, **BOTH}, ["id"],
     "Give one of: text; url."),
    ({"anyOf": [{**TEXT, "required": ["text", "id"]}, {**URL, "required": ["url", "id"]}]}, BOTH, ["id"],
     "Give one of: text; url."),
    ({"$defs": {"t": TEXT}, "anyOf": [{"$ref": "#/$defs/t"}, URL]}, BOTH, [], "Give one of: text; url."),
    ({"anyOf": [{"anyOf": [TEXT, URL]}, {"allOf": [TEXT]}]}, BOTH, [], "Give one of: text."),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}], "properties": {"a": {}, "b": {}, "c": {}}},
     {"a": {}, "b": {}, "c": {}}, [], "Give one of: a; b and c."),
    ({"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", **TEXT}}}, TEXT["properties"], ["text"], ""),
    ({"anyOf": [{"properties": {"x": {"type": "string"}}}, {"properties": {"x": {"type": "integer"}}}]},
     {"x": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, [], ""),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "properties", "required", "note"), FOLDED)
def test_combinators_at_the_root_are_folded(
    schema: dict[str, Any], properties: dict[str, Any], required: list[str], note: str
) -> None:
    """B01 and siblings: oneOf, allOf, a reference, one inside another, branches that only require."""
    made = tool({"name": "load", "input_schema": {"type": "object", **schema}}).input_schema
    sent = exported(made, "openai")
    root, told = sent.schema, sent.note
    assert not root.keys() & {"anyOf", "oneOf", "allOf", "not", "$ref"}
    assert (root["type"], root["properties"], root.get("required", [])) == ("object", properties, required)
    assert told == note
    Draft202012Validator.check_schema(root)


def test_arguments_are_validated_against_the_original_of_a_folded_schema() -> None:
    """B01: what the export lost still holds."""
    made = tool({"name": "load", "input_schema": {"type": "object", "anyOf": [TEXT, URL]}}).input_schema
    assert validate_arguments(made, {"url": "x"}) == {"url": "x"}
    with pytest.raises(ArgumentsError, match="none of 2 forms fits: the required argument 'text' is missing"):
        validate_arguments(made, {})


def test_combinators_below_the_root_and_the_original_are_untouched() -> None:
    """B01."""
    schema = normalised({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "anyOf": [TEXT]}, "t")
    before = copy.deepcopy(schema)
    root = exported(schema, "openai").schema
    assert root["properties"]["a"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert schema == before
    assert exported(schema, "openai") == exported(schema, "openai")


@pytest.mark.parametrize("branch", [5, "x", None, [], {"properties": 5}, {"required": 5}, {"anyOf": 7}, {"$ref": "#"},
    {"$ref": "#/nowhere"}, {"$ref": 5}])  # fmt: skip
def test_a_broken_branch_does_not_break_the_export(branch: Any) -> None:
    catalog = Catalog([{"name": "t", "input_schema": {"type": "object", "anyOf": [branch, TEXT]}}])
    for held in catalog:
        assert exported(held.input_schema, "openai").schema["properties"]["text"] == {"type": "string"}


def test_the_texts_of_arguments_are_found_at_every_depth() -> None:
    schema = {
        "description": "of the tool, known already",
        "properties": {
            "filter": {
                "description": "Which",
                "properties": {"state": {"enum": ["open", "closed", 3, None]}, "description": {"type": "string"}},
            },
            "ids": {"items": {"anyOf": [{"description": "An id"}, {"$ref": "#/$defs/x"}]}},
        },
        "$defs": {"x": {"properties": {"deep": {"description": "Deep"}}}},
    }
    names, texts = argument_texts(schema)
    assert names == ["filter", "ids", "state", "description", "deep"]
    assert set(texts) == {"Which", "open", "closed", "3", "An id", "Deep"}


def test_a_reference_into_a_folded_branch_is_replaced_by_what_it_meant() -> None:
    """B01, B07: the branch is gone from the root, so nothing may point to it."""
    schema = {
        "type": "object",
        "properties": {"m": {"$ref": "#/anyOf/0/properties/n"}, "t": {"$ref": "#/$defs/T"}},
        "$defs": {"T": {"type": "string"}},
        "anyOf": [{"properties": {"n": {"type": "integer"}}, "required": ["n"]}, {"required": ["m"]}],
    }
    root = exported(schema, "openai").schema
    assert root["properties"]["m"] == {"type": "integer"}
    assert root["properties"]["t"] == {"$ref": "#/$defs/T"}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_B01_branches_that_share_theirs_many_times_over_are_folded_once(keyword: str) -> None:
    """B01, sibling: 8 to the power of 7 ways from the root to one object, which are too many to go."""
    steps = {f"e{n}": {keyword: [{"$ref": f"#/$defs/e{n + 1}"}] * 8} for n in range(7)}
    schema = {keyword: [{"$ref": "#/$defs/e0"}], "$defs": {**steps, "e7": {"properties": A, "required": ["a"]}}}
    made = exported(normalised(schema, "t"), "openai").schema
    assert (made["properties"], keyword in made) == (A, False)
