"""Arguments from a model: parsed, coerced where nothing is lost, validated against the original schema."""

import copy
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from toolsearch.schemas.references import resolve
from toolsearch.schemas.validation import ArgumentsError, parse_arguments, validate_arguments


def of(schema: Any, value: Any, **root: Any) -> Any:
    """The value of one argument after validation."""
    return validate_arguments({"type": "object", "properties": {"a": schema}, "required": ["a"], **root}, {"a": value})[
        "a"
    ]


def problems(schema: Any, arguments: Any) -> list[str]:
    with pytest.raises(ArgumentsError) as caught:
        validate_arguments(schema, arguments)
    return caught.value.problems


# -- parsing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", ["", "  ", None, "null", "{}", {}, "\n", " null ", '""', '"{}"'])
def test_empty_arguments_mean_an_empty_object(raw: Any) -> None:
    """C11, SA-45: also as blank lines, and encoded twice."""
    assert parse_arguments(raw) == {}


@pytest.mark.parametrize(("raw", "told"), [
    ('{"path": "/data/a", "mode": ', "the arguments are not valid JSON: Expecting value at character 28"),
    ('{"path": "/data/a"', "the arguments are not valid JSON: Expecting ',' delimiter at character 18"),
    ("{'path': 1}", "not valid JSON"),
    ('{"a": 1} {"b": 2}', "not valid JSON: Extra data at character 9"),
    ('{"a": NaN}', "the arguments are not valid JSON: NaN is not a JSON value"),
    ('{"a": -Infinity}', "not a JSON value"),
    ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
    ('"{\\"a\\": "', "not valid JSON"),
    ("[1]", "the arguments must be a JSON object, not array"),
    ('"hello"', "the arguments must be a JSON object, not string"),
    ("5", "the arguments must be a JSON object, not integer"),
    ("[" * 100_000, "nested too deeply"),
    ('{"a":' * 5_000 + "1" + "}" * 5_000, "nested too deeply"),
])  # fmt: skip
def test_malformed_arguments_are_refused_and_never_become_empty(raw: str, told: str) -> None:
    """C12 and siblings: the problem says where."""
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(raw)
    assert told in caught.value.problems[0]


def test_an_object_encoded_twice_is_decoded_twice() -> None:
    """C14, sibling: the whole object as a text."""
    assert parse_arguments(json.dumps(json.dumps({"a": 1}))) == {"a": 1}


def test_texts_are_valid_utf8_at_every_depth() -> None:
    assert parse_arguments('{"\\ud800": ["\\udfff", {"b": "\\ud83d\\ude00"}]}') == {"\ufffd": ["\ufffd", {"b": "😀"}]}


def outcome(schema: Any, arguments: Any) -> dict[str, Any] | list[str]:
    """The arguments, or the problems with them; any other exception fails the test."""
    try:
        return validate_arguments(schema, parse_arguments(arguments) if isinstance(arguments, str) else arguments)
    except ArgumentsError as error:
        return error.problems or ["refused without a reason"]


@given(st.text() | st.text(alphabet='{}[]":,\\ntru0123456789.eE- '))
def test_no_text_raises_anything_but_an_arguments_error(raw: str) -> None:
    got = outcome({}, raw)
    assert isinstance(got, dict) or all(got)


# -- what is missing or wrong ------------------------------------------------------------------------------------------

DOCUMENT = {"type": "object", "properties": {"document_id": {"type": "string"}}, "required": ["document_id"]}


def test_a_missing_argument_is_named() -> None:
    """C04: before anything runs."""
    assert problems(DOCUMENT, {}) == ["the required argument 'document_id' is missing"]


@pytest.mark.parametrize(("schema", "arguments", "told"), [
    (DOCUMENT, {"document_id": None}, "'document_id' must be a string, not null"),
    ({"properties": {"a": DOCUMENT}}, {"a": {}}, "the required argument 'a.document_id' is missing"),
    ({"properties": {"a": {"items": DOCUMENT}}}, {"a": [{"document_id": "x"}, {}]}, "'a[1].document_id' is missing"),
    ({"$ref": "#/$defs/d", "$defs": {"d": DOCUMENT}}, {}, "the required argument 'document_id' is missing"),
    ({"anyOf": [DOCUMENT, {"required": ["x"]}]}, {}, "none of 2 forms fits: the required argument 'document_id'"),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "'b' is required together with 'a'"),
])  # fmt: skip
def test_a_missing_argument_is_named_with_its_path(schema: Any, arguments: Any, told: str) -> None:
    """C04, siblings: null, nested, in a list, behind a reference, in a choice, required by another."""
    assert told in "; ".join(problems(schema, arguments))


WRONG: list[tuple[Any, Any, str]] = [
    ({"type": "integer"}, "five", "'a' must be an integer, not string \"five\""),
    ({"type": "integer"}, 1.5, "must be an integer, not number 1.5"),
    ({"type": "integer"}, True, "must be an integer, not boolean true"),
    ({"type": "string"}, True, "must be a string, not boolean true"),
    ({"type": ["array", "null"]}, 5, "must be an array or null, not integer"),
    ({"type": "object"}, "{broken", "must be an object, not string"),
    ({"type": "array"}, '{"b": 1}', "must be an array, not string"),
    ({"enum": ["open", "closed"]}, "opn", "must be one of \"open\", \"closed\", not \"opn\"; did you mean 'open'?"),
    ({"enum": list(range(20))}, 99, "… (20 values), not 99"),
    ({"enum": [1]}, True, "must be one of 1, not true"),
    ({"const": [1]}, [True], "'a' must be [1]"),
    ({"minimum": 1}, 0, "must be at least 1, not 0"),
    ({"maximum": 1}, 2, "must be at most 1, not 2"),
    ({"exclusiveMinimum": 0}, 0, "must be more than 0, not 0"),
    ({"exclusiveMaximum": 0}, 0, "must be less than 0, not 0"),
    ({"multipleOf": 0.1}, 0.25, "must be a multiple of 0.1"),
    ({"multipleOf": 1}, 10**9 + 0.5, "must be a multiple of 1"),
    ({"type": "number"}, math.inf, "must be a finite number"),
    ({"minLength": 2}, "a", "must have at least 2 characters, not 1"),
    ({"maxItems": 1}, [1, 2], "must have at most 1 items, not 2"),
    ({"minProperties": 1}, {}, "must have at least 1 fields, not 0"),
    ({"uniqueItems": True}, [1, 1.0], "must not hold the same item twice"),
    ({"contains": {"type": "string"}}, [5], "lacks an item it must contain"),
    ({"contains": {"const": 1}, "maxContains": 1}, [1, 1], "must hold at most 1 items of one kind, not 2"),
    ({"pattern": "^a+$"}, "b", "must match the pattern '^a+$'"),
    ({"additionalProperties": False, "properties": {"city": {}}}, {"cty": 1},
     "no argument 'a.cty'; did you mean 'a.city'?"),
    ({"propertyNames": {"pattern": "^x"}}, {"y": 1}, "'a.y' has a name that is not allowed"),
    ({"patternProperties": {"^x": {"type": "integer"}}}, {"xy": "b"}, "'a.xy' must be an integer"),
    ({"properties": {"xy": {}}, "patternProperties": {"^x": {"type": "integer"}}}, {"xy": "b"},
     "'a.xy' must be an integer"),
    ({"dependentSchemas": {"b": {"required": ["c"]}}}, {"b": 1}, "the required argument 'a.c' is missing"),
    ({"not": {"type": "string"}}, "x", "'a' has a form that is not allowed"),
    ({"if": {"const": 1}, "then": False}, 1, "'a' is not allowed"),
    ({"if": {"const": 1}, "else": {"minimum": 5}}, 2, "must be at least 5"),
    ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 4, "must be at most 3"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "must be an integer or null, not string"),
    ({"prefixItems": [{"type": "integer"}], "items": False}, [1, 2], "'a[1]' is not allowed"),
    ({"$ref": "#/$defs/n", "minimum": 5}, 3, "must be at least 5"),
    (False, 1, "'a' is not allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "told"), WRONG)
def test_what_does_not_fit_is_told_in_a_plain_sentence(schema: Any, value: Any, told: str) -> None:
    root = {"properties": {"a": schema}, "$defs": {"n": {"type": "integer"}}}
    (problem,) = problems(root, {"a": value})
    assert told in problem


def test_every_problem_is_named_at_once() -> None:
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}},
        "required": ["c"],
        "additionalProperties": False,
    }
    assert len(problems(schema, {"a": "?", "b": "y", "d": 1})) == 4


# -- coercion ----------------------------------------------------------------------------------------------------------


def test_json_text_is_decoded_once_where_an_array_or_object_is_wanted() -> None:
    """C14."""
    schema = {"properties": {"ids": {"type": "array", "items": {"type": "integer"}}, "body": {"type": "object"}}}
    assert validate_arguments(schema, {"ids": "[1,2]", "body": '{"a":1}'}) == {"ids": [1, 2], "body": {"a": 1}}


COERCED: list[tuple[Any, Any, Any]] = [
    ({"type": ["array", "null"]}, "[1]", [1]),
    ({"type": ["array", "null"]}, " null ", None),
    ({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}, '["A"]', ["A"]),
    ({"anyOf": [{"type": "boolean"}, {"type": "array"}]}, '["Mixed Case"]', ["Mixed Case"]),
    ({"$ref": "#/$defs/list"}, "[1]", [1]),
    ({"allOf": [{"type": "array"}]}, "[1]", [1]),
    ({"type": "array", "items": {"type": "object"}}, '["{\\"a\\": 1}"]', [{"a": 1}]),
    ({"type": "array", "items": {"type": "string"}}, '["[1]"]', ["[1]"]),
    ({"type": "object", "properties": {"n": {"type": "array"}}}, '{"n": "[]"}', {"n": []}),
    ({"type": "integer"}, "5", 5),
    ({"type": "integer"}, "-1e2", -100),
    ({"type": "integer"}, 5.0, 5),
    ({"type": "number"}, "1.5", 1.5),
    ({"type": "number"}, 3, 3),
    ({"type": "boolean"}, "True", True),
    ({"type": "boolean"}, " false ", False),
    ({"type": "string"}, 42, "42"),
    ({"type": "string"}, 1.5, "1.5"),
    ({"type": "integer", "enum": [1, 2]}, "2", 2),
    ({"enum": ["Open", "Closed"]}, " open ", "Open"),
    ({"type": "string", "enum": ["1", "2"]}, 1, "1"),
]


@pytest.mark.parametrize(("schema", "given", "expected"), COERCED)
def test_a_value_in_another_spelling_is_coerced(schema: Any, given: Any, expected: Any) -> None:
    """C14 and siblings: nullable, in a union, behind a reference, nested; numbers and booleans as text."""
    got = of(schema, given, **{"$defs": {"list": {"type": "array"}}})
    assert got == expected
    assert type(got) is type(expected)


KEPT: list[tuple[Any, Any]] = [
    ({"type": "string"}, "[1,2]"),
    ({"type": ["string", "array"]}, "[1,2]"),
    ({}, "[1,2]"),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 5),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5"),
    ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, ["a"]),
    ({"oneOf": [{"type": "string", "maxLength": 1}, {"type": "integer"}]}, 5),
    ({"not": {"type": "string"}}, 5),
    ({"if": {"type": "string"}, "then": False}, 5),
    ({"enum": ["a", "A"]}, "A"),
    ({"type": "boolean"}, False),
    ({"multipleOf": 0.1}, 0.3),
    ({"multipleOf": 0.1}, 10**400),
    ({"multipleOf": 1e-10}, 1e308),
    ({"type": "number"}, 10**400),
    ({"pattern": "(?=look)ahead"}, "what no linear engine runs is left unchecked"),
    ({"type": "strange"}, 5),
    ({"$ref": "#/nowhere"}, 5),
    ({"$ref": "#anchor"}, 5),
    ({"$ref": "#/properties/a"}, 5),
    ({"$ref": "https://example.org/schema"}, 5),
    ({"$ref": "#/$defs/list/²"}, 5),
    ({"$ref": "#/$defs/list/" + "9" * 5000}, 5),
]


@pytest.mark.parametrize(("schema", "value"), KEPT)
def test_a_value_that_fits_as_it_is_is_not_changed(schema: Any, value: Any) -> None:
    got = of(schema, value, **{"$defs": {"list": []}})
    assert got == value
    assert type(got) is type(value)


def test_null_for_an_optional_argument_means_left_out() -> None:
    schema = {
        "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {}, "d": {"enum": [None, 1]}}
    }
    assert validate_arguments(schema, {"a": None, "b": None, "c": None, "d": None}) == {"b": None, "c": None, "d": None}


def test_the_given_arguments_are_not_changed() -> None:
    given = {"a": "[1]", "b": {"c": None}}
    before = copy.deepcopy(given)
    schema = {"properties": {"a": {"type": "array"}, "b": {"properties": {"c": {"type": "string"}}}}}
    assert validate_arguments(schema, given) == {"a": [1], "b": {}}
    assert given == before


def test_references_are_followed_by_any_json_pointer() -> None:
    root = {"$defs": {"a/b": {"x~y": [{"type": "integer"}]}}, "properties": {"p": {"$ref": "#/$defs/a~1b/x~0y/0"}}}
    assert resolve(root, root["properties"]["p"]) == {"type": "integer"}
    assert resolve(root, {"$ref": "#/%24defs/a~1b/x~0y/0"}) == {"type": "integer"}


def test_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_value_goes() -> None:
    node = {"properties": {"v": {"type": "integer"}, "kids": {"items": {"$ref": "#/$defs/n"}}}}
    schema = {"properties": {"tree": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}
    tree = {"v": "1", "kids": [{"v": "2", "kids": [{"v": "3"}]}]}
    assert validate_arguments(schema, {"tree": tree})["tree"]["kids"][0]["kids"][0]["v"] == 3
    assert problems(schema, {"tree": {"kids": [{"kids": [{"v": "x"}]}]}})[0].startswith("'tree.kids[0].kids[0].v'")


# -- in bounded time ---------------------------------------------------------------------------------------------------

AGAIN = {"$ref": "#/$defs/n"}
BOTH_WAYS = {"$defs": {"n": {"anyOf": [{"required": ["z"]}, {"allOf": [AGAIN, AGAIN]}]}}, **AGAIN}
ENUM = {"type": "array", "items": {"enum": [f"value {i}" for i in range(5_000)]}}
CIRCLE: dict[str, Any] = {}
CIRCLE["a"] = CIRCLE
DEEP: Any = 1
for _ in range(400):
    DEEP = [DEEP]


@pytest.mark.parametrize(("schema", "arguments"), [
    (BOTH_WAYS, {"a": {"b": {}}}),
    ({"properties": {"a": {"anyOf": [ENUM] * 20}}}, {"a": [f"Vlue {i}" for i in range(5_000)]}),
    ({"properties": {"a": ENUM}}, {"a": [f"VALUE {i % 5_000}" for i in range(20_000)]}),
    ({"additionalProperties": False, "properties": {f"name{i}": {} for i in range(2_000)}},
     {f"nme{i}": 1 for i in range(2_000)}),
    ({"properties": {"a": {"enum": ["x" * 100_000] * 50}}}, {"a": "x" * 99_999}),
    ({"properties": {"a": {"pattern": "(a+)+$"}}}, {"a": "a" * 100_000 + "b"}),
    ({"properties": {"a": {"uniqueItems": True}}}, {"a": [[i] for i in range(20_000)]}),
    ({"properties": {"a": {"$ref": "#/properties/a"}}}, {"a": DEEP}),
    ({"properties": {"a": {"const": DEEP}}}, {"a": DEEP}),
    ({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "string"}]}}}, CIRCLE),
])  # fmt: skip
def test_no_schema_and_no_arguments_take_long(schema: Any, arguments: Any) -> None:
    started = time.perf_counter()
    got = outcome(schema, arguments)
    assert isinstance(got, dict) or 0 < len(got) <= 60
    assert time.perf_counter() - started < 2


def test_a_long_list_that_fits_is_not_too_long() -> None:
    schema = {"properties": {"a": {"items": {"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "string"}]}}}}
    value = ["text"] * 20_000
    assert validate_arguments(schema, {"a": value}) == {"a": value}


# -- against another validator -----------------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([0.5, 1.0, -2.0]) | st.sampled_from(
    ["", "a", "ab", "B", "5", "true", "null", "[1]", '{"a": 1}']
)  # fmt: skip
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from("abx"), v, max_size=3), max_leaves=8
)
TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"]
counts = st.integers(0, 3)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A schema of the keywords this library checks; `oneOf` is read as `anyOf` and left out."""
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from("abx"), inner, max_size=3)
    return st.booleans() | st.fixed_dictionaries({}, optional={
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3), "const": values,
        "minimum": st.integers(-2, 5), "maximum": st.integers(0, 9), "exclusiveMinimum": st.integers(-2, 5),
        "exclusiveMaximum": st.integers(0, 9), "multipleOf": st.integers(1, 3),
        "minLength": counts, "maxLength": counts, "pattern": st.sampled_from(["^a", "b$", "[0-9]"]),
        "properties": named, "required": st.lists(st.sampled_from("abx"), max_size=2, unique=True),
        "additionalProperties": inner, "patternProperties": st.dictionaries(st.sampled_from(["^a", "x"]), inner),
        "propertyNames": inner, "minProperties": counts, "maxProperties": counts,
        "dependentRequired": st.just({"a": ["b"]}), "dependentSchemas": st.fixed_dictionaries({"a": inner}),
        "items": inner, "prefixItems": some, "contains": inner, "minContains": counts, "maxContains": counts,
        "minItems": counts, "maxItems": counts, "uniqueItems": st.booleans(),
        "anyOf": some, "allOf": some, "not": inner, "if": inner, "then": inner, "else": inner,
        "$ref": st.sampled_from(["#/$defs/d", "#/$defs/e"]),
    })  # fmt: skip


schemas = st.recursive(st.just({}), keywords, max_leaves=10)


@given(
    schemas,
    schemas,
    st.sampled_from([{}, {"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/d"}}]),
    values,
)
def test_what_was_not_changed_is_valid_for_jsonschema_too(inner: Any, d: Any, e: Any, value: Any) -> None:
    """And what jsonschema takes as it is, this library takes as it is: coercion never gets in the way."""
    try:
        Draft202012Validator.check_schema(d)
        schema = {"properties": {"a": inner}, "$defs": {"d": d, "e": e}}
        valid = Draft202012Validator(schema).is_valid({"a": value})
    except RecursionError:  # a reference that leads to itself
        return
    got = outcome(schema, {"a": value})
    if isinstance(got, list):
        assert not valid
    elif json.dumps(got, sort_keys=True) == json.dumps({"a": value}, sort_keys=True):
        assert valid


wild = st.recursive(
    scalars | st.floats() | st.text(max_size=5) | st.sampled_from(["#", "#/properties/a", *TYPES]),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(
        "type enum const minimum multipleOf minLength pattern properties required additionalProperties items contains "
        "prefixItems anyOf oneOf allOf not if then else $ref uniqueItems patternProperties dependentRequired "
        "dependentSchemas propertyNames minContains a b".split()), v, max_size=4),
    max_leaves=15,
)  # fmt: skip


@given(wild, values)
def test_no_schema_however_broken_raises_anything_but_an_arguments_error(schema: Any, value: Any) -> None:
    started = time.perf_counter()
    for root in (schema, {"properties": {"a": schema}}):
        if isinstance(root, dict):
            assert outcome(root, {"a": value}) != ["refused without a reason"]
    assert time.perf_counter() - started < 1


def woven(keyword: str, branches: int, levels: int, leaf: Any) -> dict[str, Any]:
    """A schema of a few lines that has `branches` to the power of `levels` ways to its leaf."""
    steps = {f"e{n}": {keyword: [{"$ref": f"#/$defs/e{n + 1}"}] * branches} for n in range(levels)}
    return {keyword: [{"$ref": "#/$defs/e0"}], "$defs": {**steps, f"e{levels}": leaf}}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
@pytest.mark.parametrize("arguments", [{"a": 5}, {"a": [1]}, {"a": "x"}])
def test_branches_that_share_theirs_many_times_over_are_given_up_in_time(keyword: str, arguments: Any) -> None:
    """As G01, of schemas: 8 to the power of 12 ways, none of which is taken to its end."""
    schema = woven(keyword, 8, 12, {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]})
    told = problems(schema, arguments)
    assert told == ["the arguments take too long to check"] or "'b' is missing" in told[0] or "must be" in told[0]


def test_a_long_list_is_not_gone_through_for_every_branch() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/e0"}}, **woven("allOf", 2, 40, {"type": "string"})}
    del schema["allOf"]
    assert problems(schema, {"a": [1] * 2_000})
