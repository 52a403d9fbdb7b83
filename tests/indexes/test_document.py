"""How a tool becomes text: which fields there are, what is in them, and that no two tools share a score by chance."""

from dataclasses import replace

import pytest

from toolsearch import tool
from toolsearch_indexes.document import FIELDS, PASSAGES, passages, texts

FORECAST = {
    "name": "get_forecast",
    "title": "Forecast",
    "description": "Weather of the coming days",
    "server": "meteo",
    "category": "climate",
    "tags": ["outdoor", "planning"],
    "examples": ["will it rain tomorrow"],
    "input_schema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of a municipality"},
            "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
            "area": {"type": "object", "properties": {"radius": {"type": "number", "description": "How far around"}}},
        },
    },
}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("name", ["get_forecast"]),
        ("description", ["Forecast", "Weather of the coming days"]),
        ("server", ["meteo", "climate", "outdoor", "planning"]),
        ("examples", ["will it rain tomorrow"]),
        ("arguments", ["city", "unit", "area"]),
        ("argument texts", ["Name of a municipality", "celsius", "kelvin"]),
    ],
)
def test_everything_that_is_said_of_a_tool_is_in_a_field(field: str, expected: list[str]) -> None:
    """SA-25, X2, X6, AN-10: name, description, server, examples, argument names and texts and enum values."""
    text = texts(tool(FORECAST))[field]
    assert [part for part in expected if part not in text] == []


def test_arguments_inside_arguments_are_in_the_text() -> None:
    text = " ".join(texts(tool(FORECAST)).values())
    assert "radius" in text
    assert "How far around" in text


def test_a_tool_that_says_nothing_but_its_name_has_a_text_for_every_field() -> None:
    made = texts(tool({"name": "ping"}))
    assert list(made) == list(FIELDS)
    assert {field for field, text in made.items() if text.strip()} == {"name"}


def test_a_name_weighs_most_and_what_is_said_of_arguments_least() -> None:
    weights = {name: field.weight for name, field in FIELDS.items()}
    assert max(weights, key=weights.__getitem__) == "name"
    assert min(weights, key=weights.__getitem__) == "argument texts"
    assert all(field.weight > 0 and field.pivot > 0 for field in FIELDS.values())


def test_a_vector_is_the_mean_of_several_texts_with_identifiers_in_words() -> None:
    described = FORECAST | {"name": "getForecast", "description": "Weather of the coming days. By the hour! Or day."}
    del described["title"]
    enriched = ("do I need an umbrella", "is it warm out")
    assert passages(replace(tool(described), enriched=enriched)) == {
        "all": "meteo get forecast. Weather of the coming days. By the hour! Or day.",
        "first sentence": "get forecast. Weather of the coming days.",
        "name": "meteo get forecast",
        "arguments": "city unit area radius Name of a municipality celsius kelvin How far around",
        "examples": "will it rain tomorrow",
        "enriched": "do I need an umbrella is it warm out",
    }
    assert set(passages(replace(tool(described), enriched=enriched))) == set(PASSAGES)


def test_a_tool_that_says_little_has_no_empty_texts() -> None:
    assert passages(tool({"name": "ping"})) == {"all": "ping.", "first sentence": "ping.", "name": "ping"}
    assert (
        passages(tool({"name": "天气查询", "description": "查询天气。按城市。"}))["first sentence"]
        == "天气查询. 查询天气。"
    )
