"""What leaves for each kind of provider: accepted by its rules, valid 2020-12, and nothing lost in silence."""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import toolsearch_datasets
from toolsearch import Catalog, DefinitionError, NotExportable, Shown, Tool, ToolCall, ToolSearch, tool
from toolsearch.schemas.argument_names import renamed
from toolsearch.schemas.drafts import modern
from toolsearch.schemas.export import TARGETS, exported
from toolsearch.schemas.references import pointed_at
from toolsearch.schemas.targets import RULES
from toolsearch.schemas.validation import ArgumentsError, validate_arguments
from toolsearch.testing.loopback import schema_rules
from toolsearch.wires import anthropic, definitions

Json = dict[str, Any]

REFUSALS: dict[str, Callable[[str, str, Any], Iterator[str]]] = {
    "openai": schema_rules.openai,
    "openai_strict": schema_rules.openai_strict,
    "anthropic": schema_rules.anthropic,
    "gemini": schema_rules.gemini_json,
    "ollama": schema_rules.ollama,
}
PLAIN = [target for target in TARGETS if target != "openai_strict"]
META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
every_target = pytest.mark.parametrize("target", PLAIN)


def problems(schema: Any, target: Any) -> list[str]:
    """What the provider would refuse, what is no schema of 2020-12, and references that lead nowhere."""
    wrong = [*REFUSALS[target]("name", "description", schema)]
    if target != "anthropic":  # whose rules have it
        wrong += [each.message for each in META.iter_errors(schema)]
    return wrong + [ref for ref in references(schema) if pointed_at(schema, ref, wrong) is wrong]


def references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [ref for each in node for ref in references(each)]
    if not isinstance(node, dict):
        return []
    inner = [each for key, each in node.items() if key not in ("const", "default", "enum", "examples")]
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + references(inner)


def nodes(node: Any) -> Iterator[Json]:
    if isinstance(node, list):
        for each in node:
            yield from nodes(each)
    elif isinstance(node, dict):
        yield node
        yield from nodes(list(node.values()))


def sent(properties: Json, target: Any, **more: Any) -> Json:
    """The properties of a tool's arguments as a target gets them."""
    schema = tool({"name": "t", "input_schema": {"type": "object", "properties": properties, **more}}).input_schema
    before = copy.deepcopy(schema)
    made = exported(schema, target)
    assert schema == before, "the original is not changed"
    assert problems(made.schema, target) == []
    properties_sent: Json = made.schema["properties"]
    return properties_sent


# -- arrays, older drafts, odd forms ---------------------------------------------------------------------------------

REPORTS: Json = {
    "reports": {"type": "array", "description": "names"},
    "maybe": {"anyOf": [{"type": "array"}, {"type": "string"}]},
    "deep": {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "array"}}}},
    "either": {"type": ["array", "null"]},
    "all": {"allOf": [{"type": "array"}]},
    "kept": {"type": "array", "items": True},
    "none": {"type": "array", "items": False},
    "shared": {"$ref": "#/$defs/Row"},
}


@every_target
def test_J09_every_array_has_items_at_any_depth(target: Any) -> None:
    made = sent(REPORTS, target, **{"$defs": {"Row": {"type": "array", "description": "x" * 300}}})
    arrays = [node for node in nodes(made) if "array" in str(node.get("type"))]
    assert len(arrays) >= 7 - (target in ("openai", "anthropic"))
    assert all(isinstance(node["items"], dict) for node in arrays)


def test_J09_an_array_that_takes_no_item_says_so_by_a_count() -> None:
    assert sent({"a": {"type": "array", "items": False}}, "openai")["a"] == {
        "type": "array",
        "items": {},
        "maxItems": 0,
    }


PAIR = {"type": "array", "items": [{"type": "string"}, {"type": "string"}], "minItems": 2, "maxItems": 2}
PROBE: Json = {
    "headers": {"type": "array", "items": PAIR},
    "every": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
    "most": {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
    "step": {"type": "number", "divisibleBy": 2},
    "mixed": {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
    "closed": {"type": "array", "items": [{"type": "integer"}], "additionalItems": False},
    "needs": {"type": "object", "id": "http://a/b", "dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
    "kind": {"$ref": "#/definitions/Kind"},
}
DEFINITIONS: Json = {"definitions": {"Kind": {"type": "object", "properties": {"k": {"$ref": "#/definitions/Kind"}}}}}


@every_target
def test_J11_a_schema_of_an_older_draft_leaves_in_the_words_of_2020(target: Any) -> None:
    assert sent(PROBE, target, **DEFINITIONS)


def test_J11_nothing_of_an_older_draft_is_lost_where_all_of_2020_is_read() -> None:
    made = sent(PROBE, "anthropic", **DEFINITIONS)
    pair = {"type": "array", "prefixItems": PAIR["items"], "minItems": 2, "maxItems": 2, "items": {}}
    assert made["headers"]["items"] == pair
    assert made["every"] == {"type": "integer", "exclusiveMinimum": 0}
    assert made["most"] == {"type": "integer", "maximum": 9}
    assert made["step"] == {"type": "number", "multipleOf": 2}
    assert made["mixed"] == {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}}
    assert made["closed"] == {"type": "array", "prefixItems": [{"type": "integer"}], "items": {}, "maxItems": 1}
    needs = {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}
    assert made["needs"] == {"type": "object", **needs}
    assert made["kind"] == {"$ref": "#/$defs/Kind"}


def test_J11_where_a_provider_wants_an_object_the_items_are_a_choice() -> None:
    made = sent({"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}}, "gemini")
    assert made["pair"]["items"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}


@pytest.mark.parametrize(("arguments", "problem"), [
    ({"headers": [["a", 1]]}, ""),  # a number is written as text where text is wanted
    ({"headers": [["a", {}]]}, "'headers[0][1]' must be a string"),
    ({"every": 0}, "'every' must be more than 0"),
    ({"most": 9}, ""),
    ({"step": 3}, "'step' must be a multiple of 2"),
    ({"mixed": [1, {}]}, "'mixed[1]' must be a string"),
    ({"closed": [1, 2]}, "'closed[1]' is not allowed"),
    ({"needs": {"a": 1}}, "'needs.b' is required together with 'needs.a'"),
    ({"needs": {"c": 1}}, "the required argument 'needs.d' is missing"),
    ({"kind": {"k": {"k": 1}}}, "'kind.k.k' must be an object"),
])  # fmt: skip
def test_J11_old_forms_are_checked_as_well_as_new_ones(arguments: Json, problem: str) -> None:
    schema = tool({"name": "t", "input_schema": {"type": "object", "properties": PROBE, **DEFINITIONS}}).input_schema
    if problem:
        with pytest.raises(ArgumentsError) as told:
            validate_arguments(schema, arguments)
        assert str(told.value).startswith(problem)
    else:
        assert validate_arguments(schema, arguments)


def test_a_schema_without_old_forms_is_not_copied() -> None:
    schema = {"type": "object", "properties": {}, "items": {}, "exclusiveMinimum": 3}
    assert modern(schema) is schema


# -- names of arguments ----------------------------------------------------------------------------------------------

BUILDS: Json = {"filter[app]": {"type": "string"}, "page size": {"type": "integer"}, "$top": {"type": "integer"}}


@pytest.mark.parametrize("target", PLAIN)
def test_J13_names_that_a_provider_refuses_are_replaced_for_all(target: Any) -> None:
    schema = {"type": "object", "properties": BUILDS, "required": ["filter[app]"], "additionalProperties": False}
    made = exported(schema, target)
    assert problems(made.schema, target) == []
    assert list(made.schema["properties"]) == ["filter_app", "page_size", "top"]
    assert made.schema["required"] == ["filter_app"]
    assert made.renamed == {"filter_app": "filter[app]", "page_size": "page size", "top": "$top"}


def test_J13_new_names_are_distinct_and_do_not_depend_on_the_order() -> None:
    names = ["a b", "a  b", "a_b", "a[b]", "名前", "", "x" * 70, "ok.name-1", "a/b"]
    made = renamed(names)
    assert sorted(made.values()) == sorted(set(names) - {"a_b", "ok.name-1"})
    assert made == renamed(reversed(names))
    assert len(set(made) | {"a_b", "ok.name-1"}) == len(names)
    assert problems({"type": "object", "properties": {name: {} for name in made}}, "anthropic") == []


@settings(deadline=None)
@given(st.lists(st.text(max_size=70) | st.sampled_from(["a b", "a_b", "a[b", "a_b_", "argument"]), unique=True))
def test_J13_any_names_have_legal_and_distinct_ones(names: list[str]) -> None:
    made = renamed(names)
    kept = [name for name in names if name not in made.values()]
    assert len({*kept, *made}) == len(names)
    assert not problems({"type": "object", "properties": {name: {} for name in [*kept, *made]}}, "anthropic")


@pytest.mark.parametrize("mode", ["static", "append", "bridge"])
def test_J13_a_call_reaches_the_tool_under_its_own_names(mode: Any) -> None:
    """Also through the bridge, and in every text that shows a schema or says what is wrong."""
    got: list[Json] = []
    schema = {
        "type": "object",
        "properties": {**BUILDS, "id": {"type": "string"}},
        "required": ["filter[app]"],
        "additionalProperties": False,
    }
    definition = {"name": "list_builds", "description": "List builds.", "input_schema": schema}
    search = ToolSearch([tool(definition, run=lambda **given: got.append(given) or "done")], mode=mode)
    session = search.session()
    session.load(["list_builds"])
    session.tools()

    def call(arguments: Json) -> Any:
        wrapped = {"name": "list_builds", "arguments": arguments} if mode == "bridge" else arguments
        return session.handle(ToolCall("1", "call_tool" if mode == "bridge" else "list_builds", wrapped))

    assert call({"filter_app": "x", "page_size": "5"}).ok
    assert call({"filter[app]": "y", "$top": 1}).ok
    assert got == [{"filter[app]": "x", "page size": 5}, {"filter[app]": "y", "$top": 1}]
    missing = call({"page_size": 5}).content
    assert "the required argument 'filter_app' is missing" in missing
    assert '"filter_app": {"type": "string"}' in missing
    assert "filter[app]" not in missing
    wrong = call({"filter_app": "x", "page_size": {"a": 1}, "pag_size": 1}).content
    assert "'page_size' must be an integer" in wrong
    assert "there is no argument 'pag_size'; did you mean 'page_size'?" in wrong


def test_J13_names_in_the_branches_of_a_root_are_replaced_and_mapped_back() -> None:
    """The choice that the model reads about has the names that it knows."""
    branches = [{"properties": {"a b": {}}, "required": ["a b"]}, {"properties": {"c": {}}, "required": ["c"]}]
    schema = {"type": "object", "oneOf": branches}
    made = exported(schema, "anthropic")
    assert list(made.schema["properties"]) == ["a_b", "c"]
    assert made.note == "Give one of: a_b; c."
    assert validate_arguments(schema, {"a_b": 1}) == {"a b": 1}
    with pytest.raises(ArgumentsError, match="the required argument 'a_b' is missing"):
        validate_arguments(schema, {})


def test_J13_a_reference_to_a_renamed_argument_follows_it() -> None:
    big = {"type": "object", "description": "d" * 300, "properties": {"k": {"type": "string"}}}
    made = sent({"a b": big, "c": {"$ref": "#/properties/a%20b"}}, "openai")
    assert made["c"] == {"$ref": "#/properties/a_b"}


# -- references ------------------------------------------------------------------------------------------------------

NODE: Json = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/definitions/Node"}}}}


@every_target
@pytest.mark.parametrize("keyword", ["definitions", "$defs"])
def test_B05_a_schema_that_refers_to_itself_goes_out(target: Any, keyword: str) -> None:
    ref = {"$ref": f"#/{keyword}/Node"}
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": ref}}}
    made = sent({"root": ref}, target, **{keyword: {"Node": node}})
    if RULES[target].keeps_references:
        assert made["root"] == {"$ref": "#/$defs/Node"}
    else:
        again = {"type": "object", "description": "Nested in the same way as further up."}
        assert made["root"] == {"type": "object", "properties": {"kids": {"type": "array", "items": again}}}


@every_target
@pytest.mark.parametrize("pointer", ["#/properties/h", "#/properties/a~1b", "#/properties/p%20q/properties/r~0s"])
def test_B07_any_local_pointer_is_followed(target: Any, pointer: str) -> None:
    inner = {"type": "object", "description": "x" * 300, "properties": {"n": {"type": "integer"}}}
    properties = {"h": inner, "a/b": inner, "p q": {"type": "object", "properties": {"r~s": inner}}}
    made = sent({**properties, "acts": {"type": "array", "items": {"$ref": pointer}}}, target)
    items = made["acts"]["items"]
    if "$ref" in items:
        items = pointed_at({"properties": made}, items["$ref"])
    assert items["properties"]["n"] == {"type": "integer"}


@every_target
def test_references_in_a_circle_and_to_nowhere_are_left_out(target: Any) -> None:
    defs = {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}
    made = exported(
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/no"}}, "$defs": defs}, target
    )
    assert problems(made.schema, target) == []
    assert made.losses
    assert not any("$ref" in node for node in nodes(made.schema["properties"]))


# -- a few keywords only ---------------------------------------------------------------------------------------------


def test_B09_what_a_provider_does_not_list_is_said_in_words() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False,
        "title": "X", "properties": {"a": {"type": "string", "default": "z", "pattern": "^z", "title": "A"}},
    }  # fmt: skip
    before = copy.deepcopy(schema)
    assert exported(schema, "gemini").schema == {
        "type": "object",
        "properties": {"a": {"type": "string", "description": '(default "z"; pattern ^z)'}},
    }
    assert schema == before


@pytest.mark.parametrize("target", ["gemini", "ollama", "openai_strict"])
def test_B09_nothing_but_the_listed_keywords_leaves_at_any_depth(target: Any) -> None:
    inner = {
        "type": "object", "title": "t", "$id": "x", "x-vendor": 1, "minProperties": 1, "additionalProperties": False,
        "properties": {"b": {"type": "integer", "const": 3, "examples": [3], "exclusiveMinimum": 0}}, "required": ["b"],
    }  # fmt: skip
    deep = {"type": "object", "properties": {"i": inner}, "required": ["i"], "additionalProperties": False}
    made = sent({"a": inner, "c": {"type": "array", "items": {"oneOf": [inner, deep]}}}, target, required=["a", "c"],
                additionalProperties=False)  # fmt: skip
    named = {"a", "b", "c", "i"}
    assert {key for node in nodes(made) for key in node} - named <= RULES[target].keywords
    assert made["a"]["properties"]["b"]["enum"] == [3]


@pytest.mark.parametrize("target", ["gemini", "ollama"])
def test_B10_a_choice_of_arrays_in_an_array_and_keywords_of_another_type(target: Any) -> None:
    rows = [{"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "number"}}]
    made = sent(
        {
            "grid": {"type": "array", "items": {"anyOf": rows}},
            "data": {"type": "string", "properties": {}, "required": []},
        },
        target,
    )
    either = {"anyOf": [{"type": "string"}, {"type": "number"}]}
    assert made["grid"] == {"type": "array", "items": {"type": "array", "items": either}}
    assert made["data"] == {"type": "string"}


def test_B11_a_list_of_types_becomes_the_form_of_the_target() -> None:
    properties = {
        "a": {"type": ["string", "null"]},
        "b": {"type": ["integer", "string"], "minimum": 1},
        "c": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}], "description": "C."},
        "d": {"type": "object", "properties": []},
        "e": {"type": ["null", "string"], "enum": ["x", None]},
    }
    null = {"type": "null"}
    assert sent(properties, "gemini") == {
        "a": {"anyOf": [{"type": "string"}, null]},
        "b": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]},
        "c": {"description": "C.", "anyOf": [{"type": "string", "enum": ["x"]}, null]},
        "d": {"type": "object"},
        "e": {"anyOf": [{"type": "string", "enum": ["x"]}, null]},
    }
    assert sent(properties, "ollama") == {
        "a": {"type": "string", "description": "or null"},
        "b": {
            "description": "integer or string",
            "anyOf": [{"type": "integer", "description": "(at least 1)"}, {"type": "string"}],
        },
        "c": {"type": "string", "description": "C. or null", "enum": ["x"]},
        "d": {"type": "object"},
        "e": {"type": "string", "description": "or null", "enum": ["x"]},
    }
    assert sent(properties, "openai")["a"] == properties["a"]


@pytest.mark.parametrize("target", ["gemini", "ollama"])
def test_combined_schemas_are_one_schema_where_allOf_is_not_read(target: Any) -> None:
    base = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    more = {"properties": {"n": {"type": "integer"}, "id": {"description": "Which."}}, "required": ["n"]}
    made = sent({"a": {"description": "A.", "allOf": [{"$ref": "#/$defs/b"}, more]}}, target, **{"$defs": {"b": base}})
    fields = {"id": {"type": "string", "description": "Which."}, "n": {"type": "integer"}}
    assert made["a"] == {"type": "object", "description": "A.", "properties": fields, "required": ["id", "n"]}


def test_a_name_that_is_required_and_not_described_is_an_argument_of_any_kind() -> None:
    """Gemini refuses a required name that is not among the properties."""
    made = exported({"type": "object", "properties": {}, "required": ["a"]}, "gemini").schema
    assert made == {"type": "object", "properties": {"a": {}}, "required": ["a"]}


@every_target
def test_deep_schemas_keep_their_outline(target: Any) -> None:
    deep: Json = {"type": "string"}
    for _ in range(40):
        deep = {"type": "object", "properties": {"a": deep}}
    made = exported({"type": "object", "properties": {"a": deep}}, target)
    assert problems(made.schema, target) == []
    assert bool(made.losses) == (not RULES[target].keeps_references)
    levels = str(made.schema).count("properties")
    assert levels == (41 if RULES[target].keeps_references else 10)


# -- enums -----------------------------------------------------------------------------------------------------------

COUNTRIES = [f"value_{i}" for i in range(3_000)]


@every_target
def test_B20_an_enum_above_the_budget_is_said_and_still_enforced(target: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"country": {"type": "string", "enum": COUNTRIES, "description": "Where."}},
    }
    made = exported(schema, target)
    shown = ", ".join(f'"value_{i}"' for i in range(8))
    assert made.schema["properties"]["country"] == {
        "type": "string",
        "description": f"Where. One of 3,000 values, such as {shown}.",
    }
    assert made.losses == ("an enum of 3,000 values is not sent: country",)
    assert exported(schema, target, enum_values=3_000).schema["properties"]["country"]["enum"] == COUNTRIES
    with pytest.raises(ArgumentsError, match="did you mean 'value_2998'"):
        validate_arguments(schema, {"country": "value_2998x"})
    assert validate_arguments(schema, {"country": " VALUE_2999 "}) == {"country": "value_2999"}


@every_target
def test_a_value_that_an_enum_has_twice_is_sent_once(target: Any) -> None:
    assert sent({"a": {"type": "string", "enum": ["x", "y", "x"]}}, target)["a"]["enum"] == ["x", "y"]


@every_target
def test_B20_many_enums_together_have_a_budget_too(target: Any) -> None:
    values = [f"v{i}" for i in range(150)]
    made = sent({f"p{n}": {"type": "string", "enum": values} for n in range(10)}, target)
    assert sum("enum" in each for each in made.values()) == 6


def test_B20_an_answer_that_shows_the_schema_shows_all_arguments_of_it() -> None:
    """The schema is longer than an answer may show, because of one enum."""
    schema = {"type": "object", "properties": {"country": {"enum": COUNTRIES}, "last": {"type": "string"}}}
    session = ToolSearch([{"name": "t", "input_schema": schema, "run": print}], mode="static").session()
    session.tools()
    answer = session.handle(ToolCall("1", "t", {"country": "value_17x"})).content
    assert "did you mean 'value_17'" in answer
    assert '"last": {"type": "string"}' in answer
    assert len(answer) < 1_500


# -- strict ----------------------------------------------------------------------------------------------------------

TEXT = {"type": "string"}
LOSSY: list[tuple[str, Json, str]] = [
    ("B12", {"properties": {"a": TEXT}, "additionalProperties": {}}, "an object takes fields that it does not name"),
    ("B12", {"properties": {"a": TEXT}, "additionalProperties": True}, "an object takes fields that it does not name"),
    ("B13", {"properties": {"headers": {"type": "object", "description": "any key/value"}}}, "headers"),
    ("B13", {"properties": {}}, "an object takes fields that it does not name: the root"),
    ("B13", {"properties": {"a": {"type": "object", "additionalProperties": TEXT}}}, ": a"),
    ("B14", {"properties": {"a": {"type": ["object", "null"]}}, "required": ["a"]}, ": a"),
    ("null", {"properties": {"a": {"type": ["string", "null"]}}}, "an argument that may be left out takes null"),
    ("any", {"properties": {"a": {}}, "required": ["a"]}, "an argument has no type: a"),
    ("tuple", {"properties": {"a": {"type": "array", "prefixItems": [TEXT]}}}, "which item stands where"),
    ("circle", {"properties": {"a": {"$ref": "#"}}}, "a reference that comes round again"),
    ("choice", {"properties": {"a": TEXT}, "anyOf": [{"required": ["a"]}, {}]}, "what may be given instead"),
    ("if", {"properties": {"a": TEXT}, "if": {}}, "if is not sent"),
    ("enum", {"properties": {"a": {"enum": COUNTRIES}}}, "an enum of 3,000 values is not sent: a"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "schema", "reason"), LOSSY)
def test_strict_is_refused_with_a_reason_where_it_would_lose_something(case: str, schema: Json, reason: str) -> None:
    """B12, B13, B14: an open object stays open; the tool is sent without strict."""
    with pytest.raises(NotExportable, match=reason):
        exported({"type": "object", **schema}, "openai_strict")
    assert problems(exported({"type": "object", **schema}, "openai").schema, "openai") == []


def test_B14_every_object_is_closed_and_all_its_fields_required() -> None:
    properties = {
        "a": {"type": ["object", "null"], "properties": {"x": TEXT}},
        "b": {"properties": {"y": {"type": "integer", "default": 3}}},
    }
    made = exported({"type": "object", "properties": properties, "required": ["a"]}, "openai_strict").schema
    assert problems(made, "openai_strict") == []
    or_null, closed = {"type": ["object", "null"]}, {"additionalProperties": False}
    y = {"type": ["integer", "null"], "description": "(default 3)"}
    assert made == {
        "type": "object",
        "properties": {
            "a": {**or_null, "properties": {"x": {"type": ["string", "null"]}}, "required": ["x"], **closed},
            "b": {**or_null, "properties": {"y": y}, "required": ["y"], **closed},
        },
        "required": ["a", "b"],
        **closed,
    }


def test_a_null_that_strict_makes_a_model_write_means_left_out() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}
    assert exported(schema, "openai_strict").schema["properties"]["b"] == {"type": ["string", "null"]}
    assert validate_arguments(schema, {"a": "x", "b": None}) == {"a": "x"}


# -- whatever comes --------------------------------------------------------------------------------------------------


def shipped() -> list[Tool]:
    text = Path(toolsearch_datasets.path("commons"), "tools.jsonl").read_text("utf-8")
    return list(Catalog([json.loads(line) for line in text.splitlines()]))


@pytest.mark.parametrize("target", TARGETS)
def test_no_request_is_refused_for_a_tool_of_the_shipped_set(target: Any) -> None:
    tools = shipped()
    refused, left_out = {}, 0
    for each in tools[::3]:
        try:
            made = exported(each.input_schema, target)
        except NotExportable:
            left_out += 1
            continue
        if wrong := problems(made.schema, target):
            refused[each.id] = wrong
    assert refused == {}
    assert left_out == 0 or target == "openai_strict"


names = st.sampled_from(["a", "b", "a b", "$ref", "items", "é"])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["", "a", "string", "object"])
pointers = st.sampled_from([
    "#", "#/$defs/a", "#/definitions/b", "#/properties/a", "#/properties/a%20b/items", "#/anyOf/0", "#/nowhere", "http://x",
])  # fmt: skip


def keywords(inner: Any) -> Any:
    kinds = st.sampled_from(["string", "integer", "array", "object", "null", "number", "boolean"])
    odd = inner | scalars
    return st.fixed_dictionaries({}, optional={
        "type": kinds | st.lists(kinds | scalars, max_size=3) | scalars,
        "properties": st.dictionaries(names, odd, max_size=3) | scalars,
        "required": st.lists(names | scalars, max_size=3) | scalars,
        "items": odd | st.lists(odd, max_size=2),
        "prefixItems": st.lists(odd, max_size=2) | scalars,
        "additionalItems": odd,
        "additionalProperties": odd,
        "anyOf": st.lists(odd, max_size=3) | scalars,
        "oneOf": st.lists(odd, max_size=2),
        "allOf": st.lists(odd, max_size=2) | scalars,
        "not": odd, "if": odd, "contains": odd,
        "$defs": st.dictionaries(names, odd, max_size=2) | scalars,
        "definitions": st.dictionaries(names, odd, max_size=2),
        "dependencies": st.dictionaries(names, odd | st.lists(names), max_size=2) | scalars,
        "$ref": pointers | scalars,
        "enum": st.lists(scalars, max_size=3) | scalars,
        "const": scalars, "default": odd,
        "minimum": scalars, "exclusiveMinimum": scalars, "minItems": scalars, "maxLength": scalars,
        "multipleOf": scalars, "format": scalars, "pattern": scalars, "description": scalars, "uniqueItems": scalars,
        "$anchor": scalars, "id": scalars, "x-odd": odd,
    })  # fmt: skip


hostile = st.recursive(scalars, keywords, max_leaves=12).filter(lambda schema: isinstance(schema, dict))


@given(hostile)
@settings(max_examples=60, deadline=None)
def test_whatever_stands_in_a_schema_what_leaves_is_accepted(schema: Json) -> None:
    """By hand, past the catalog: nothing raises but NotExportable, and the original stays as it was."""
    by_hand = {"properties": {}, **schema, "type": "object"}
    regular: list[Json] = [by_hand]
    with suppress(DefinitionError):
        regular.append(dict(tool({"name": "t", "input_schema": by_hand}).input_schema))
    for each in regular:
        before = repr(each)
        for target in TARGETS:
            try:
                made = exported(each, target)
            except NotExportable:
                assert target == "openai_strict"
                continue
            assert problems(made.schema, target) == []
            assert len(json.dumps(made.schema)) <= 3 * len(repr(each)) + 1_000
        assert repr(each) == before


def wide() -> Json:
    """Every field refers to all that are there."""
    fields = {
        f"f{i}": {"type": "object", "properties": {f"g{j}": {"$ref": f"#/$defs/d{j}"} for j in range(20)}}
        for i in range(20)
    }
    defs = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{j}"} for j in range(20)], **fields[f"f{i}"]} for i in range(20)}
    return {"type": "object", "properties": fields, "$defs": defs}


def branching() -> Json:
    """2 to the power of 30 ways down."""
    defs = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(30)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, "d30": TEXT}}


def chained() -> Json:
    """One long text behind hundreds of references."""
    defs: Json = {"long": {"type": "string", "description": "x" * 10_000}}
    return {"type": "object", "properties": {f"p{i}": {"$ref": "#/$defs/long"} for i in range(500)}, "$defs": defs}


CIRCLE: Json = {"type": "object", "properties": {}}
CIRCLE["properties"]["me"] = CIRCLE


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("made", [wide, branching, chained])
def test_a_hostile_schema_leaves_within_a_budget(made: Callable[[], Json], target: Any) -> None:
    schema = made()
    try:
        leaves = exported(schema, target).schema
    except NotExportable:
        assert target == "openai_strict"
        return
    assert problems(leaves, target) == []
    assert len(json.dumps(leaves)) < 3 * len(json.dumps(schema)) + 5_000


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schema", [
    CIRCLE, {"type": "array"}, {"type": "string"}, {"type": ["null"]}, {"type": 5},
    {"type": "object", "properties": {str(i): {} for i in range(60_000)}},
], ids=["circle", "array", "string", "null", "number", "large"])  # fmt: skip
def test_what_cannot_be_expressed_is_named_and_left_out(
    schema: Json, target: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(NotExportable):
        exported(schema, target)
    fine = Tool(id="fine", name="fine")
    shown = [Shown("odd", Tool(id=f"odd_{target}", name="odd", input_schema=schema)), Shown("fine", fine)]
    for _ in range(2):
        assert [each["name"] for each in definitions(shown, anthropic.definition)] == ["fine"]
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(f"the tool 'odd_{target}' is left out of all requests: the ")
