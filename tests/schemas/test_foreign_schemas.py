"""A schema from elsewhere has a budget: what is too large is set aside, and nothing grows on its way through."""

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import Catalog, DefinitionError, NotExportable, Tool, ToolCall, ToolSearch, tool
from toolsearch.catalog.sanitising import TEXT_CHARACTERS
from toolsearch.schemas.argument_texts import TEXT_CHARACTERS as ARGUMENT_CHARACTERS
from toolsearch.schemas.argument_texts import argument_texts
from toolsearch.schemas.export import exported
from toolsearch.schemas.json_schema import normalised
from toolsearch.schemas.limits import SCHEMA_CHARACTERS, SCHEMA_DEPTH, SCHEMA_VALUES
from toolsearch.schemas.patterns import PATTERN_WEIGHT, pattern_of, weight_of
from toolsearch.schemas.references import pointed_at
from toolsearch.wires import anthropic, openai_chat

Json = dict[str, Any]


def chars(value: object) -> int:
    return len(json.dumps(value))


def references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [ref for item in node for ref in references(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [ref for item in node.values() for ref in references(item)]


# -- what leaves the root is written once ------------------------------------------------------------------------------


def dropped_targets(width: int, levels: int = 8) -> Json:
    """D4: references into what is dropped at the root, each level referring to the next several times."""
    steps = {f"x{i}": {"allOf": [{"$ref": f"#/if/x{i + 1}"}] * width} for i in range(levels)}
    return {"type": "object", "properties": {"a": {"$ref": "#/if/x0"}}, "if": steps}


def folded_targets(width: int, levels: int = 8) -> Json:
    """K08: references into a combinator of the root."""
    defs = {
        f"N{i}": {
            "type": "object",
            "properties": {f"p{j}": {"$ref": f"#/allOf/0/$defs/N{i + 1}"} for j in range(width)},
        }
        for i in range(levels)
    }
    branch = {"$defs": {**defs, f"N{levels}": {"type": "string"}}, "properties": {"x": {"$ref": "#/allOf/0/$defs/N0"}}}
    return {"type": "object", "allOf": [branch]}


@pytest.mark.parametrize("width", [1, 3, 8, 40])
@pytest.mark.parametrize("made", [dropped_targets, folded_targets])
@pytest.mark.parametrize("wire", [openai_chat, anthropic])
def test_a_request_is_not_much_larger_than_the_schema(width: int, made: Any, wire: Any) -> None:
    """D4, K08: 1.2 kB of schema made a request of 11 MB in a minute, 2.9 kB one of 268 MB."""
    session = ToolSearch([{"name": "t", "input_schema": made(width)}], mode="static").session()
    assert chars(wire.tools_for(session)) < 2 * chars(made(width)) + 2_000


@pytest.mark.parametrize("made", [dropped_targets, folded_targets])
def test_a_shared_target_stands_once_in_defs(made: Any) -> None:
    """D4, K08: and every reference leads to it."""
    root = exported(made(4), "openai").schema
    assert len(root["$defs"]) == 8
    assert all(pointed_at(root, ref) for ref in references(root))


def test_a_target_inside_a_target_is_not_written_twice() -> None:
    """D4, sibling: references to every level of one deep value."""
    inner: Any = {"description": "x" * 10_000, "$ref": "#/nowhere"}
    path = "#/not"
    paths = []
    for _ in range(40):
        inner = {"properties": {"a": inner}}
    for _ in range(40):
        paths.append(path)
        path += "/properties/a"
    schema = {"type": "object", "properties": {f"p{i}": {"$ref": p} for i, p in enumerate(paths)}, "not": inner}
    root = exported(schema, "openai").schema
    assert chars(root) < 2 * chars(schema)
    assert all(pointed_at(root, ref) for ref in references(root))


def test_branches_with_a_property_of_many_forms_are_folded_once() -> None:
    """D4, sibling: two large branches, referred to by turns."""
    big = {f"b{n}": {"properties": {"p": {"enum": [f"{n}{i}" for i in range(2_000)]}}} for n in range(2)}
    schema = {"type": "object", "anyOf": [{"$ref": f"#/$defs/b{i % 2}"} for i in range(2_000)], "$defs": big}
    root = exported(schema, "openai").schema
    assert len(root["properties"]["p"]["anyOf"]) == 2
    assert chars(root) < 2 * chars(schema)


def test_the_sentence_about_what_was_lost_is_bounded() -> None:
    """D4, D9: names of arguments are foreign text."""
    branches = [{"required": [f"{'n' * 500}{i}_{j}" for j in range(5)]} for i in range(100)]
    note = exported({"type": "object", "anyOf": branches}, "openai").note
    assert 0 < len(note) < 1_100


def test_combinators_that_share_too_much_are_set_aside() -> None:
    """D4, sibling: each of 40 branches goes through all 40 of the next level, with thousands of names."""
    leaf = {"properties": {f"p{i}": {} for i in range(5_000)}}
    steps = {
        f"e{n}_{i}": {"anyOf": [{"$ref": f"#/$defs/e{n + 1}_{j}"} for j in range(40)], "properties": {f"q{n}_{i}": {}}}
        for n in range(4)
        for i in range(40)
    }
    last = {f"e4_{j}": {**leaf, "required": [f"p{j}"]} for j in range(1)} | {f"e4_{j}": leaf for j in range(1, 2)}
    schema = {"type": "object", "anyOf": [{"$ref": "#/$defs/e0_0"}], "$defs": {**steps, **last}}
    catalog = Catalog([{"name": "t", "input_schema": schema}])
    (entry,) = catalog.quarantined
    assert entry.reason == "the input schema of 't' combines too much at its root to be sent to a provider"
    by_hand = ToolSearch([Tool(id="u", name="u", input_schema=schema)], mode="static").session()
    assert [openai_chat.tools_for(by_hand), anthropic.tools_for(by_hand)] == [[], []]  # nor does one made by hand
    with pytest.raises(NotExportable, match="the input schema combines too much at its root"):
        exported(schema, "openai")


def test_a_reference_out_of_the_schema_is_not_sent() -> None:
    """K08, K09: providers refuse it."""
    root = exported(
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json", "title": "A"}}}, "openai"
    ).schema
    assert root["properties"]["a"] == {"title": "A"}


names = st.sampled_from(["x0", "x1", "x2", "x3"])
pointers = st.builds(
    lambda place, name: f"#/{place}/{name}", st.sampled_from(["if", "not", "allOf/0/$defs", "$defs"]), names
) | st.sampled_from(["#", "#/allOf/0", "#/if", "#/properties/a", "#/if/x0/properties/x1"])
nodes = st.recursive(
    st.builds(lambda ref: {"$ref": ref}, pointers) | st.just({"type": "string"}),
    lambda n: (
        st.fixed_dictionaries({"properties": st.dictionaries(names, n, max_size=3)})
        | st.fixed_dictionaries({"anyOf": st.lists(n, min_size=1, max_size=3)})
    ),
    max_leaves=8,
)
tables = st.dictionaries(names, nodes, max_size=4)


@given(tables, tables, tables, st.dictionaries(st.sampled_from("abc"), nodes, max_size=3))
def test_D4_whatever_refers_to_whatever_is_sent_in_bounds(condition: Json, branch: Json, defs: Json, own: Json) -> None:
    schema = normalised(
        {"properties": own, "if": condition, "allOf": [{"$defs": branch, "properties": own}], "$defs": defs}, "t"
    )
    root = exported(schema, "openai").schema
    assert chars(root) <= 3 * chars(schema) + 200
    assert all(pointed_at(root, ref, None) is not None for ref in references(root))
    assert not {"if", "allOf"} & root.keys()


# -- the budget --------------------------------------------------------------------------------------------------------


def nested(depth: int) -> Json:
    schema: Json = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


CIRCLE: Json = {"type": "object", "properties": {}}
CIRCLE["properties"]["me"] = CIRCLE


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": {f"p{i}": {} for i in range(SCHEMA_VALUES)}}, "is too large"),
        ({"properties": {"a": {"enum": ["x" * SCHEMA_CHARACTERS]}}}, "is too large"),
        ({"properties": {"x" * SCHEMA_CHARACTERS: {}}}, "is too large"),
        ({"properties": {"a": {"description": "x" * SCHEMA_CHARACTERS}}}, "is too large"),
        ({"properties": {"a": {"default": [[]] * SCHEMA_VALUES}}}, "is too large"),
        ({"properties": {}, "required": [str(i) for i in range(SCHEMA_VALUES)]}, "is too large"),
        ({"properties": {"a": {"minimum": 1 << (4 * SCHEMA_CHARACTERS)}}}, "is too large"),
        (nested(SCHEMA_DEPTH), "is nested too deeply"),
        (CIRCLE, "is nested too deeply"),
    ],
)
def test_a_schema_above_the_budget_is_set_aside(schema: Json, reason: str) -> None:
    """D4, D5: in whatever part of it, and whoever made the tool."""
    by_hand = Tool(id="u", name="u", input_schema={"type": "object", "properties": {}, **schema})
    catalog = Catalog([{"name": "t", "input_schema": schema}, by_hand, {"name": "fine"}])
    assert [held.id for held in catalog] == ["fine"]
    assert catalog.quarantined[0].name == "t"
    assert all(reason in each.reason for each in catalog.quarantined)
    assert f"the input schema of 't' {reason}" in catalog.quarantined[0].reason


def test_a_large_schema_of_people_is_within_the_budget() -> None:
    schema = {"type": "object", "properties": {f"property_{i}": {"type": "string"} for i in range(5_000)}}
    assert len(tool({"name": "t", "input_schema": schema}).input_schema["properties"]) == 5_000


def test_texts_of_a_tool_are_cut_before_anything_reads_them() -> None:
    """D15: 5 MB of description took seconds to read, to index, and in every request."""
    long = "word " * 1_000_000
    made = tool({"name": "t", "description": long, "title": long, "category": long, "examples": [long]})
    for text in (made.description, made.title, made.category, made.examples[0]):
        assert text is not None
        assert text.startswith("word word")
        assert text.endswith(f"… [cut: {TEXT_CHARACTERS:,} of 5,000,000 characters]")
        assert len(text) < TEXT_CHARACTERS + 100
    with pytest.raises(DefinitionError, match="the server of 't' has 40,"):
        tool({"name": "t", "server": long})
    with pytest.raises(DefinitionError, match="'tags' of 't' is too large"):
        tool({"name": "t", "tags": ["x"] * 100_000})


def test_the_texts_of_arguments_for_an_index_are_bounded() -> None:
    """D4: the budget covers what is indexed."""
    schema = {"properties": {f"p{i}": {"description": "d" * 400} for i in range(1_000)}}
    names, texts = argument_texts(schema)
    assert sum(map(len, names)) + sum(map(len, texts)) <= ARGUMENT_CHARACTERS
    assert len(names) == 1_000


# -- what is no schema, and what cannot be read ------------------------------------------------------------------------

WRONG: list[tuple[Json, str]] = [
    ({"opts": {"properties": {"size": "integer"}}}, "opts.size"),
    ({"list": {"type": "array", "items": "string"}}, "list[]"),
    ({"a": {"anyOf": [{"type": "string"}, "integer"]}}, "a.anyOf[1]"),
    ({"a": {"oneOf": 5}}, "a.oneOf"),
    ({"a": {"allOf": {"type": "string"}}}, "a.allOf"),
    ({"a": {"prefixItems": [1]}}, "a.prefixItems[0]"),
    ({"a": {"additionalProperties": "no"}}, "a.additionalProperties"),
    ({"a": {"patternProperties": {"^x": ["string"]}}}, "a.patternProperties.^x"),
    ({"a": {"$defs": {"d": "string"}}}, "a.$defs.d"),
    ({"a": {"not": "string"}}, "a.not"),
    ({"a": {"if": 1, "then": {"type": "string"}}}, "a.if"),
    ({"a": {"contains": "x"}}, "a.contains"),
    ({"a": {"propertyNames": "x"}}, "a.propertyNames"),
    ({"a": {"dependentSchemas": {"b": 1}}}, "a.dependentSchemas.b"),
    ({"a": {"properties": "x"}}, "a.properties"),
    ({"a": {"not": {"properties": {"b": 7}}}}, "a.not.b"),
    ({"a": {"items": {"items": [{"type": "string"}, 3]}}}, "a[][1]"),
]


def stray(node: Any) -> list[object]:
    """What stands where a schema must, and is none."""
    found: list[object] = []
    if not isinstance(node, dict):
        return [] if isinstance(node, bool) else [node]
    for key, value in node.items():
        if key in ("properties", "patternProperties", "$defs", "dependentSchemas"):
            found += [odd for item in value.values() for odd in stray(item)] if isinstance(value, dict) else [value]
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") or (key == "items" and isinstance(value, list)):
            found += [odd for item in value for odd in stray(item)] if isinstance(value, list) else [value]
        elif key in ("items", "additionalProperties", "not", "if", "then", "contains", "propertyNames"):
            found += stray(value)
    return found


@pytest.mark.parametrize(("properties", "place"), WRONG)
@pytest.mark.parametrize("wire", [openai_chat, anthropic])
def test_what_is_no_schema_is_left_out_and_named_once(
    properties: Json, place: str, wire: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """K07: it never reaches a provider, and the tool stays."""
    definition = {"name": "resize", "input_schema": {"type": "object", "properties": properties}}
    search = ToolSearch([definition], mode="static")
    sent = wire.tools_for(search.session())[0]
    assert stray(sent.get("input_schema") or sent["function"]["parameters"]) == []
    search.catalog.sync([definition], server="s")
    search.catalog.sync([definition], server="s")
    assert [f"{place}: what stands there is no schema" in each.getMessage() for each in caplog.records] == [True] * 2
    assert any(place in each for each in search.catalog["resize"].unchecked)


@pytest.mark.parametrize("key", ["input_schema", "inputSchema", "parameters"])
def test_an_empty_list_is_an_empty_map(key: str) -> None:
    """J17: as PHP writes it; of the schema, its properties, one of them, and what stands for a schema inside."""
    catalog = Catalog([
        {"name": "a", key: []},
        {"name": "b", key: {"type": "object", "properties": [], "required": []}},
        {"name": "c", key: {"type": "object", "properties": {"x": [], "y": {"items": [], "properties": []}}}},
    ])  # fmt: skip
    assert not catalog.quarantined
    assert [catalog[name].input_schema["properties"] for name in "abc"] == [{}, {}, {"x": {}, "y": {}}]
    assert not any(each.unchecked for each in catalog)


def test_what_cannot_be_read_is_logged_once_a_tool(caplog: pytest.LogCaptureFixture) -> None:
    """K09: patterns that no linear-time engine runs, or only at a price, and references that lead nowhere."""
    schema = {
        "properties": {
            "a": {"pattern": "a(b"},
            "b": {"patternProperties": {"^(?!x)": {}}},
            "c": {"items": {"$ref": "https://example.com/s.json"}},
            "d": {"pattern": r"(\w{40}){40}!"},
            "e": {"pattern": r"^[\w.-]{1,64}$"},
        }
    }
    with caplog.at_level(logging.WARNING, "toolsearch"):
        search = ToolSearch([{"name": "v", "input_schema": schema, "run": lambda **k: "ok"}], mode="static")
        for _ in range(3):
            session = search.session()
            session.tools()
            assert session.handle(ToolCall("1", "v", {"a": "v", "c": [1], "d": "x", "e": "a-b"})).content == "ok"
    (told,) = [each.getMessage() for each in caplog.records]
    assert told.startswith("calls of 'v' are not checked against all of its schema: ")
    assert "a.pattern: the pattern 'a(b' is no pattern of a linear-time engine" in told
    assert "b.patternProperties: the pattern '^(?!x)' is no pattern" in told
    assert "c[].$ref: the reference 'https://example.com/s.json' leads nowhere in the schema" in told
    assert "d.pattern: the pattern '(\\\\w{40}){40}!' takes too much work to compile" in told
    assert "e.pattern" not in told


@pytest.mark.parametrize(("pattern", "weight"), [
    ("abc", 3), ("a{100}", 100), ("(ab){10}", 20), ("((a{10}){10}){10}", 1_000), (r"\w{3}", 300), ("[a-z]{5}", 5),
    (r"[\w-]{2}", 202), ("a{2,7}", 7), (r"\p{L}", 100), ("(?i)ab", 2), ("(?P<n>ab){3}", 6), ("a{", 2), ("", 0),
    ("(?:a?){3000}b", 6_001), ("a{999999999}" * 9, 9 * 999_999_999),
])  # fmt: skip
def test_the_weight_of_a_pattern_is_about_the_size_of_its_automaton(pattern: str, weight: int) -> None:
    """D5: repetitions multiply."""
    assert weight_of(pattern) == weight


@given(st.text("ab(){}[]\\wp?*+|^$.0123456789,:!<>=-", max_size=60))
def test_any_text_has_a_weight_and_is_tried_in_bounds(text: str) -> None:
    pattern = pattern_of(text)
    assert pattern.weight == weight_of(text)
    assert pattern.compiled is None or pattern.weight <= PATTERN_WEIGHT
    assert pattern.matches("ab") in ((None,) if pattern.compiled is None else (True, False))
