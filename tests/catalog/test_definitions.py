"""Definitions in the forms of every provider."""

from typing import Any

import pytest

from toolsearch import Catalog, DefinitionError, Tool, tool
from toolsearch.catalog.definitions import read_definition
from toolsearch.catalog.listings import parts

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def only(*sources: Any) -> Tool:
    catalog = Catalog(sources)
    assert not catalog.quarantined, catalog.quarantined
    (held,) = catalog
    return held


FORMS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "get_weather", "description": "Forecast.", "parameters": CITY}},
    {"type": "function", "name": "get_weather", "description": "Forecast.", "parameters": CITY, "strict": True},
    {"name": "get_weather", "description": "Forecast.", "input_schema": CITY, "cache_control": {"type": "ephemeral"}},
    {"name": "get_weather", "description": "Forecast.", "inputSchema": CITY, "outputSchema": {"type": "object"}},
    {"name": "get_weather", "description": "Forecast.", "parametersJsonSchema": CITY},
    {"name": "get_weather", "description": "Forecast.", "schema": CITY},
    {"name": "get_weather", "description": "Forecast.", "parameters": {
        "type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}},
]  # fmt: skip
IDS = ["OpenAI chat", "OpenAI Responses", "Anthropic", "MCP", "Gemini JSON Schema", "plain", "Gemini"]


@pytest.mark.parametrize("form", FORMS, ids=IDS)
def test_every_providers_form_gives_the_same_tool(form: dict[str, Any]) -> None:
    """BK-6: what a tool is does not depend on where it came from."""
    made = only(form)
    assert (made.name, made.description) == ("get_weather", "Forecast.")
    assert made.input_schema == CITY
    assert made.digest == only(FORMS[0]).digest


@pytest.mark.parametrize("wrapped", [
    {"tools": FORMS}, {"tools": FORMS, "nextCursor": "x"}, {"jsonrpc": "2.0", "id": 1, "result": {"tools": FORMS}},
    {"functionDeclarations": FORMS}, {"function_declarations": FORMS}, {"tools": [{"functionDeclarations": FORMS}]},
])  # fmt: skip
def test_lists_are_unwrapped_however_they_come(wrapped: dict[str, Any]) -> None:
    assert only(wrapped).name == "get_weather"
    assert len(list(parts(wrapped))) == len(FORMS)


@pytest.mark.parametrize("wrapped", [
    {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [{"type": "function", "name": "find"}]},
    {"tools": [{"type": "namespace", "name": "crm", "tools": [{"name": "find"}]}]},
])  # fmt: skip
def test_a_namespace_becomes_the_server_of_its_tools(wrapped: dict[str, Any]) -> None:
    assert only(wrapped).id == "crm/find"


@pytest.mark.parametrize("own", [
    {"name": "deploy", "tools": ["hammer"], "input_schema": CITY},
    {"name": "deploy", "result": {"tools": []}, "input_schema": CITY},
])  # fmt: skip
def test_a_tool_that_mentions_tools_is_one_tool(own: dict[str, Any]) -> None:
    assert only(own).name == "deploy"


def test_lists_that_wrap_one_another_without_end_are_left_alone() -> None:
    endless: dict[str, Any] = {"tools": []}
    endless["tools"].append(endless)
    catalog = Catalog([endless])
    assert len(catalog) == 0
    assert "needs a name" in catalog.quarantined[0].reason


# -- plain dicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [
    {"city": "Name of the city", "days": "How many days"},
    {"city": {"type": "string", "description": "Name of the city"}, "days": {"description": "How many days"}},
    {"type": "Kind of forecast", "city": "Name of the city"},
])  # fmt: skip
def test_a_plain_map_of_arguments_becomes_a_schema(params: dict[str, Any]) -> None:
    schema = only({"name": "get_weather", "params": params}).input_schema
    assert list(schema["properties"]) == list(params)
    assert schema["properties"]["city"]["description"] == "Name of the city"
    assert schema["type"] == "object"
    assert "required" not in schema


@pytest.mark.parametrize("schema", [
    CITY,
    {"properties": {"city": {"type": "string"}}, "required": ["city"]},
    {"type": "object", "required": "city", "properties": CITY["properties"]},
])  # fmt: skip
def test_a_schema_stays_a_schema(schema: dict[str, Any]) -> None:
    assert only({"name": "a", "params": schema}).input_schema == CITY


def test_a_dict_may_bring_its_function() -> None:
    def look(city: str) -> str:
        """Look out of the window."""
        return f"rain in {city}"

    for source in ({"run": look}, {"name": "look", "run": look}, {"name": "look", "function": look}):
        made = only(source)
        assert (made.name, made.description) == ("look", "Look out of the window.")
        assert made.input_schema["required"] == ["city"]
        assert made("Bonn") == "rain in Bonn"
    with_schema = only({"name": "look", "input_schema": CITY, "run": look})
    assert with_schema.function is None, "the schema was given, so arguments are checked by it alone"
    assert with_schema("Bonn") == "rain in Bonn"


# -- MCP ---------------------------------------------------------------------------------------------------------------

HINTS: list[tuple[dict[str, Any] | None, str, bool]] = [
    (None, "read", True),
    ({}, "action", False),
    ({"readOnlyHint": True}, "read", True),
    ({"readOnlyHint": False}, "action", False),
    ({"destructiveHint": False}, "action", False),
    ({"idempotentHint": True}, "action", True),
    ({"readOnlyHint": "yes"}, "action", False),
]


@pytest.mark.parametrize(("hints", "kind", "repeatable"), HINTS)
def test_hints_of_mcp_mark_the_tool(hints: dict[str, Any] | None, kind: str, repeatable: bool) -> None:
    source: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}
    made = only(source if hints is None else source | {"annotations": hints})
    assert (made.kind, made.repeatable, made.alone) == (kind, repeatable, kind == "action")


def test_what_the_program_says_wins_over_hints() -> None:
    source = {"name": "a", "inputSchema": {}, "annotations": {"readOnlyHint": True}}
    assert tool(source, kind="action").kind == "action"
    assert only(source | {"kind": "action"}).kind == "action"


def test_the_title_of_the_tool_comes_before_the_title_in_its_hints() -> None:
    hints = {"annotations": {"title": "From the hints"}}
    assert only({"name": "a"} | hints).title == "From the hints"
    assert only({"name": "a", "title": "Own"} | hints).title == "Own"


def test_meta_brings_category_tags_and_examples() -> None:
    meta = {"category": "weather", "tags": ["sky"], "examples": ["will it rain"], "io.example/x": 1, "roles": ["admin"]}
    made = only({"name": "a", "_meta": meta})
    assert (made.category, made.tags, made.examples) == ("weather", ("sky",), ("will it rain",))
    assert made.roles == frozenset()
    assert only({"name": "a", "category": "own", "_meta": meta}).category == "own"


def test_the_sdks_own_objects_are_read() -> None:
    types = pytest.importorskip("mcp.types")
    given = {
        "name": "get_weather", "title": "Weather", "description": "Forecast.", "inputSchema": CITY,
        "annotations": {"title": "x", "readOnlyHint": True}, "_meta": {"category": "sky"},
    }  # fmt: skip
    parsed = types.Tool.model_validate(given)
    for source in (
        parsed,
        parsed.model_dump(),
        parsed.model_dump(by_alias=True),
        types.ListToolsResult(tools=[parsed]),
    ):
        made = only(source)
        assert made.digest == only(given).digest
        assert (made.title, made.kind, made.category) == ("Weather", "read", "sky")
    catalog = Catalog([parsed])
    assert catalog["get_weather"].run is None


class OlderTool:
    """The attributes of the first generation of the SDK."""

    name = "get_weather"
    title = None
    description = "Forecast."
    inputSchema = CITY  # noqa: N815
    annotations = None
    meta = None


class Declaration:
    """Gemini's SDK: `parameters` is an object too."""

    class Parameters:
        def model_dump(self, **_: Any) -> dict[str, Any]:
            return {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}

    name = "get_weather"
    description = "Forecast."
    parameters = Parameters()


class GeminiTool:
    function_declarations = [Declaration()]  # noqa: RUF012


@pytest.mark.parametrize("source", [OlderTool(), Declaration(), GeminiTool()])
def test_objects_with_the_attributes_of_an_sdk_are_read(source: Any) -> None:
    made = only(source)
    assert made.input_schema == CITY
    assert made.digest == only(FORMS[0]).digest


# -- Gemini ------------------------------------------------------------------------------------------------------------


def test_geminis_upper_case_types_and_nullable_become_standard() -> None:
    declared = {"type": "OBJECT", "nullable": False, "properties": {
        "when": {"type": "STRING", "nullable": True, "format": "date-time"},
        "unit": {"type": "STRING", "enum": ["C", "F"], "nullable": True},
        "near": {"type": "ARRAY", "items": {"type": "OBJECT", "properties": {"km": {"type": "NUMBER"}}}},
        "any": {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}], "nullable": True},
        "type": {"type": "STRING"}}}  # fmt: skip
    assert only({"name": "a", "parameters": declared}).input_schema["properties"] == {
        "when": {"type": ["string", "null"], "format": "date-time"},
        "unit": {"type": ["string", "null"], "enum": ["C", "F", None]},
        "near": {"type": "array", "items": {"type": "object", "properties": {"km": {"type": "number"}}}},
        "any": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        "type": {"type": "string"},
    }


def test_what_is_no_definition_is_refused() -> None:
    with pytest.raises(DefinitionError, match="int is not a tool: pass a function, a dict with a name"):
        read_definition(5)
