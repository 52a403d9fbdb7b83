"""The parameters of a tool in the forms people write them."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from toolsearch import Catalog, Tool

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def only(source: Any) -> Tool:
    catalog = Catalog([source])
    assert not catalog.quarantined, catalog.quarantined
    (held,) = catalog
    return held


@pytest.mark.parametrize("key", ["inputSchema", "input_schema", "parameters", "params", "schema", "arguments", "args"])
@pytest.mark.parametrize("nothing", [[], {}, None, ()], ids=repr)
def test_nothing_is_written_in_many_ways(key: str, nothing: Any) -> None:
    """J17: an empty list is what PHP writes for an empty map."""
    assert only({"name": "whoami", key: nothing}).input_schema == {"type": "object", "properties": {}}


ENTRIES = [
    {"name": "query", "type": "string", "desc": "What to look for", "required": True},
    {"name": "most", "type": "integer", "description": "How many", "optional": True, "enum": [1, 2]},
    {"name": "words", "type": "array", "items": {"type": "string"}, "optional": False},
]
SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for"},
        "most": {"type": "integer", "description": "How many", "enum": [1, 2]},
        "words": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query", "words"],
}


@pytest.mark.parametrize("key", ["arguments", "parameters", "params", "args", "inputs", "inputSchema", "schema"])
def test_a_list_of_parameters_becomes_a_schema(key: str) -> None:
    """J18: under whatever key the list stands."""
    assert only({"name": "search_docs", "description": "Search.", key: ENTRIES}).input_schema == SCHEMA


@pytest.mark.parametrize("schema", [
    {"type": "object", "properties": ENTRIES},
    json.dumps(SCHEMA),
    {"json": SCHEMA},
], ids=["entries as properties", "JSON as text", "Bedrock"])  # fmt: skip
def test_other_forms_of_the_same_schema(schema: Any) -> None:
    """J18: siblings of a list of entries."""
    assert only({"name": "search_docs", "inputSchema": schema}).input_schema == SCHEMA


def test_entries_may_hold_schemas_and_entries_of_their_own() -> None:
    entries = [
        {"name": "id", "in": "query", "required": True, "schema": {"type": "integer"}},
        {"name": "filter", "type": "object", "properties": [{"name": "state", "type": "string", "required": "true"}]},
    ]
    assert only({"name": "a", "parameters": entries}).input_schema == {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "filter": {"type": "object", "properties": {"state": {"type": "string"}}, "required": ["state"]},
        },
        "required": ["id"],
    }


def test_a_plain_map_may_say_what_is_required_and_name_types() -> None:
    schema = only(
        {"name": "a", "parameters": {"city": {"type": "str", "required": True}, "days": "integer"}}
    ).input_schema
    assert schema["properties"]["days"] == {"type": "integer"}
    assert schema["properties"]["city"]["type"] == "string"
    assert schema["required"] == ["city"]


@pytest.mark.parametrize("source", [
    {"name": "a", "description": "A.", "properties": CITY["properties"], "required": ["city"]},
    {"name": "a", "type": "object", "properties": CITY["properties"], "required": ["city"]},
    {"toolSpec": {"name": "a", "inputSchema": {"json": CITY}}},
    {"name": "a", "input_schema": None, "parameters": CITY},
    {"name": "a", "inputSchema": {}, "arguments": [{"name": "city", "type": "string", "required": True}]},
], ids=["beside the name", "a schema with a name", "Bedrock", "None first", "{} first"])  # fmt: skip
def test_parameters_are_found_wherever_they_stand(source: dict[str, Any]) -> None:
    assert only(source).input_schema == CITY


class Place(BaseModel):
    city: str


@dataclass
class PlainPlace:
    city: str


@pytest.mark.parametrize("kind", [Place, PlainPlace])
def test_a_class_gives_its_schema(kind: type) -> None:
    assert only({"name": "a", "input_schema": kind}).input_schema == CITY


@pytest.mark.parametrize("key", ["arguments", "args", "inputs", "parameter_definitions"])
@pytest.mark.parametrize("unreadable", [5, "a text", ["city", "days"], [{"type": "string"}], [{"name": ""}]], ids=repr)
def test_what_looks_like_parameters_and_cannot_be_read_is_quarantined(key: str, unreadable: Any) -> None:
    """J18: never dropped, because the tool would be called without arguments."""
    catalog = Catalog([{"name": "a", "description": "A.", key: unreadable}])
    (aside,) = catalog.quarantined
    assert f"{key!r} of 'a' looks like its parameters and cannot be read" in aside.reason


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "type", "a", "required"]), inner)
    ),
    max_leaves=8,
)


@given(json_values, st.sampled_from(["arguments", "parameters", "inputSchema", "args"]))
def test_parameters_of_any_form_are_read_or_quarantined_and_what_has_names_is_never_lost(value: Any, key: str) -> None:
    """J18: an entry with a name is an argument of the tool, or the tool is set aside."""
    catalog = Catalog([{"name": "a", "description": "A.", key: value}])
    assert len(catalog) + len(catalog.quarantined) == 1
    if isinstance(value, list) and value and len(catalog):
        (held,) = catalog
        assert list(held.input_schema["properties"]) == list(dict.fromkeys(entry["name"] for entry in value))
