"""What a check of arguments costs: a schema is compiled once, and the work is counted by its size."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch.schemas import compiled as compiling
from toolsearch.schemas.budget import Budget, TooMuchWork
from toolsearch.schemas.compiled import Part, compiled
from toolsearch.schemas.json_values import brief
from toolsearch.schemas.patterns import MATCH_WORK, pattern_of
from toolsearch.schemas.validation import ArgumentsError, validate_arguments
from toolsearch.schemas.validator import Validator
from toolsearch.support.bounded_cache import BoundedCache

Json = dict[str, Any]


def looks(schema: Json, value: object) -> int:
    """What a check of a value is charged."""
    budget = Budget(value, "the value", "argument")
    before = budget.work
    Validator(compiled(schema), budget).value(schema, value, "")
    return before - budget.work


def told(schema: Json, arguments: Json) -> list[str]:
    with pytest.raises(ArgumentsError) as caught:
        validate_arguments(schema, arguments)
    return caught.value.problems


# -- compiled once -----------------------------------------------------------------------------------------------------

SIBLINGS = {f"x-{i}": i for i in range(20_000)}
HEAVY: list[tuple[str, Json, Json]] = [
    ("a reference with 20,000 keys beside it, 1,500 times", {
        "properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}] * 1_500}},
        "$defs": {"a": {"$ref": "#/$defs/b", **SIBLINGS}, "b": {}},
    }, {"x": 1}),
    ("20,000 required names, for each of 1,500 objects", {"properties": {"x": {"items": {
        "anyOf": [{"type": "object", "required": [f"k{i}" for i in range(20_000)]}, {}],
    }}}}, {"x": [{}] * 1_500}),
    ("20,000 values of an enum, 1,000 times", {
        "properties": {"x": {"anyOf": [{"$ref": "#/$defs/e"}] * 1_000}},
        "$defs": {"e": {"enum": [f"v{i}" for i in range(20_000)]}},
    }, {"x": "v7"}),
    ("a list of 20,000 that is no constant, 1,000 times", {
        "properties": {"x": {"allOf": [{"not": {"const": 1}}] * 1_000}},
    }, {"x": list(range(20_000))}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "schema", "arguments"), HEAVY, ids=[what for what, _, _ in HEAVY])
def test_each_part_of_a_schema_is_read_once(
    what: str, schema: Json, arguments: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D5: 372 kB of schema took 14 seconds for every call. Nothing of its size is done for a look."""
    made: list[int] = []
    read = Part.__init__

    def counted(self: Part, schema: Any, types: frozenset[str]) -> None:
        made.append(id(schema))
        read(self, schema, types)

    monkeypatch.setattr(Part, "__init__", counted)
    monkeypatch.setattr(compiling, "_cache", BoundedCache(5_000_000))
    assert validate_arguments(schema, arguments) == arguments
    assert len(made) == len(set(made))
    count = len(made)
    for _ in range(3):
        assert validate_arguments(schema, arguments) == arguments
    assert len(made) == count
    assert looks(schema, arguments) <= 10_000


def test_what_stands_beside_a_reference_is_not_copied() -> None:
    """D5."""
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b", "x": 1}, "b": {"type": "string"}}}
    parts = compiled(schema).layers(schema)
    assert [part.schema for part in parts] == [schema["$defs"]["b"], schema["$defs"]["a"], schema]
    assert all(
        part.schema is each for part, each in zip(parts, (schema["$defs"]["b"], schema["$defs"]["a"]), strict=False)
    )


def test_a_compiled_schema_is_found_by_its_content_and_forgotten_in_bounds() -> None:
    """D5: a schema that was changed in place is another one."""
    schema: Json = {"properties": {"a": {"type": "integer"}}}
    assert compiled(schema) is compiled(json.loads(json.dumps(schema)))
    assert validate_arguments(schema, {"a": "5"}) == {"a": 5}
    schema["properties"]["a"]["type"] = "string"
    assert validate_arguments(schema, {"a": 5}) == {"a": "5"}
    cache: BoundedCache[str] = BoundedCache(10)
    for i in range(100):
        cache.put(i, "x", 3)
    cache.put("heavy", "x", 11)
    assert (len(cache), cache.get(99), cache.get(0), cache.get("heavy")) == (3, "x", None, None)


def test_what_one_check_costs_is_charged_by_size() -> None:
    """D5: a long list that must be unique is more work than a short one."""
    schema = {"uniqueItems": True}
    assert looks(schema, list(range(4_000))) - looks(schema, list(range(40))) >= 900
    many = {f"^{i}": {} for i in range(200)}
    assert looks({"patternProperties": many}, {str(i): 1 for i in range(50)}) >= 50 * 200 // 10


UNIQUE = {"uniqueItems": True}


@pytest.mark.parametrize("schema", [
    {"allOf": [UNIQUE] * 5_000}, {"allOf": [{"not": {"const": list(range(3_000))}}] * 5_000},
    {"allOf": [{"not": {"enum": [[1], 2]}}] * 5_000}, {"items": {"allOf": [{"minimum": 0}] * 1_000}},
])  # fmt: skip
def test_work_that_adds_up_is_refused_and_not_done(schema: Json) -> None:
    """D5."""
    assert told({"properties": {"x": schema}}, {"x": list(range(20_000))}) == ["the arguments take too long to check"]


def test_a_check_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """D5: whatever the counting missed."""
    budget = Budget({}, "the arguments", "argument")
    budget.until = 0.0
    with pytest.raises(TooMuchWork):
        budget.spend(1_000)


def test_a_text_is_read_as_json_once_in_all_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """D5, sibling: a text of 200 kB for each of 500 forms; and what it holds counts as part of the value."""
    from toolsearch.schemas import budget

    read: list[int] = []
    original = budget.read_json

    def counted(text: str) -> object:
        read.append(len(text))
        return original(text)

    monkeypatch.setattr(budget, "read_json", counted)
    text = json.dumps(list(range(30_000)))
    assert told({"properties": {"x": {"anyOf": [{"type": "object", "const": i} for i in range(500)]}}}, {"x": text})
    assert read == [len(text)]
    schema = {"properties": {"x": {"type": "array", "items": {"type": "integer"}}}}
    assert validate_arguments(schema, {"x": text}) == {"x": list(range(30_000))}


def test_texts_inside_a_text_are_valid_utf8_too() -> None:
    """D5, sibling: what is read on the way is cleaned as the rest is."""
    schema = {"properties": {"x": {"type": "array"}}}
    assert validate_arguments(schema, {"x": '["\\ud800"]'}) == {"x": ["\ufffd"]}


def test_a_text_that_is_too_long_for_its_pattern_is_left_unchecked_and_said(caplog: pytest.LogCaptureFixture) -> None:
    """D5: one match cannot be interrupted."""
    pattern = r"^[^u-z]{6000}!$"
    text = "a" * (MATCH_WORK // pattern_of(pattern).weight + 1)
    schema = {"properties": {"x": {"pattern": pattern}}}
    for _ in range(2):
        assert validate_arguments(schema, {"x": text}) == {"x": text}
    assert told(schema, {"x": "a"})
    assert len([each for each in caplog.records if "too long for the pattern" in each.getMessage()]) == 1


# -- sentences in bounds -----------------------------------------------------------------------------------------------

LONG = "n" * 100_000


@pytest.mark.parametrize(("schema", "value"), [
    ({"enum": [f"{i}{LONG}" for i in range(12)]}, "v"), ({"enum": [[LONG] * 20]}, 1), ({"const": {LONG: LONG}}, 1),
    ({"pattern": f"^{'a' * 15_000}$"}, "v"), ({"required": [LONG]}, {}),
    ({"dependentRequired": {"a": [LONG]}}, {"a": 1}),
    ({"properties": {LONG: {"type": "integer"}}}, {LONG: "x"}), ({"additionalProperties": False}, {LONG: 1}),
    ({"propertyNames": {"maxLength": 3}}, {LONG: 1}), ({"type": "integer"}, LONG), ({"type": "integer"}, [LONG] * 50),
    ({"type": "integer"}, {LONG: 1}), ({"minimum": 10**4_000}, 1), ({"multipleOf": 10**4_000}, 1),
    ({"anyOf": [{"enum": [LONG]}, {"const": LONG}, {"required": [LONG]}]}, {}), ({"minItems": 10**4_000}, []),
])  # fmt: skip
def test_every_sentence_about_a_value_is_short(schema: Json, value: Any) -> None:
    """D9: enum members, constants, patterns, names, limits and values are foreign, or the model's."""
    for path in ("a", LONG):
        problems = told({"properties": {path: schema}}, {path: value})
        assert problems
        assert all(len(each) <= 1_600 for each in problems)


@given(st.recursive(st.text() | st.integers() | st.none(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)),
       st.integers(1, 80))  # fmt: skip
def test_a_value_is_shown_as_the_beginning_of_its_json(value: Any, characters: int) -> None:
    whole = json.dumps(value, ensure_ascii=False)
    shown = brief(value, characters)
    assert shown == whole if len(whole) <= characters else shown == f"{whole[:characters]}…"


# -- what cannot be read refuses nothing -------------------------------------------------------------------------------

UNREAD: list[Json] = [
    {"pattern": "a(b"}, {"pattern": "(?=x)"}, {"pattern": r"(\w{40}){40}!"}, {"$ref": "https://example.com/s.json"},
    {"$ref": "#/nowhere"}, {"$ref": "#anchor"}, {"type": "any"}, {"format": "email"}, {"unevaluatedProperties": False},
    {"$dynamicRef": "#x"}, {"minimum": "5"}, {"enum": "x"}, {"anyOf": 5}, {"allOf": [{"pattern": "(?!x)"}]},
    {"anyOf": [{"type": "integer"}, {"pattern": "(?!x)"}]}, {"not": {"pattern": "(?!x)"}}, {"items": "string"},
    {"if": {"pattern": "(?!x)"}, "then": False}, {"properties": 5}, {"multipleOf": "2"}, {"maxLength": "3"},
    {"propertyNames": 5},
]  # fmt: skip
ASKED: list[tuple[Json, Any]] = []
for unread in UNREAD:
    ASKED += [
        (unread, "v"), ({"not": unread}, "v"), ({"not": {"not": unread}}, "v"),
        ({"oneOf": [unread, {"type": "null"}]}, "v"), ({"not": {"anyOf": [unread, {"type": "null"}]}}, "v"),
        ({"if": unread, "then": False}, "v"), ({"if": unread, "else": False}, "v"),
        ({"not": {"allOf": [unread, {}]}}, "v"), ({"not": {"properties": {"a": unread}}}, {"a": "v"}),
        ({"contains": unread, "maxContains": 0}, ["v"]), ({"contains": unread, "minContains": 2}, ["v", "w"]),
        ({"not": {"contains": unread}}, ["v"]), ({"not": {"items": unread}}, ["v"]),
        ({"propertyNames": {"not": unread}}, {"v": 1}), ({"items": {"not": unread}}, ["v"]),
        ({"additionalProperties": {"not": unread}}, {"x": "v"}),
    ]  # fmt: skip
UNREAD_NAMES: list[tuple[Json, Any]] = [
    ({"patternProperties": {"x-(": {"type": "integer"}}}, {"name": "v"}),
    ({"patternProperties": {"^(?!x)": {"type": "integer"}}}, {"xname": "v"}),
    ({"patternProperties": {"^(?!x)": {}}, "additionalProperties": False}, {"name": "v"}),
    ({"patternProperties": {"^(?!x)": {}}, "additionalProperties": {"type": "integer"}}, {"name": "v"}),
    ({"not": {"patternProperties": {"^(?!x)": {"type": "integer"}}}}, {"name": "v"}),
    ({"not": {"patternProperties": {"^(?!x)": {}}, "additionalProperties": False}}, {"name": "v"}),
]


@pytest.mark.parametrize(("schema", "value"), ASKED + UNREAD_NAMES)
def test_K09_what_cannot_be_read_never_refuses_a_call(schema: Json, value: Any) -> None:
    """K09: asked directly, or the other way round."""
    assert validate_arguments({"properties": {"a": schema}}, {"a": value}) == {"a": value}


@pytest.mark.parametrize(("schema", "value"), [
    ({"not": {"allOf": [{"pattern": "(?!x)"}, {}], "type": "string"}}, None),
    ({"not": {"anyOf": [{"pattern": "(?!x)"}, {"type": "string"}]}}, "v"),
    ({"anyOf": [{"allOf": [{"pattern": "(?!x)"}, {"type": "integer"}]}, {"type": "null"}]}, "v"),
    ({"patternProperties": {"^(?!x)": {}, "^n": {"type": "integer"}}}, {"name": "v"}),
    ({"properties": {"n": {"type": "integer"}}, "patternProperties": {"^(?!x)": {}}}, {"n": "v"}),
    ({"contains": {"allOf": [{"pattern": "(?!x)"}, {"type": "integer"}]}}, ["v"]),
])  # fmt: skip
def test_what_can_be_told_in_spite_of_it_still_holds(schema: Json, value: Any) -> None:
    """K09: only the part that cannot be read is left out."""
    if value is None:
        assert validate_arguments({"properties": {"a": schema}, "required": ["a"]}, {"a": None}) == {"a": None}
    else:
        assert told({"properties": {"a": schema}}, {"a": value})


@pytest.mark.parametrize("count", [21, 300])
def test_every_pattern_of_names_counts(count: int) -> None:
    """D15: those beyond the twentieth were ignored, and a right name was refused."""
    patterns = {**{f"^a{i}$": {} for i in range(count)}, "^n": {"type": "integer"}}
    schema = {"patternProperties": patterns, "additionalProperties": False}
    assert validate_arguments(schema, {"n1": 5, "n2": "6"}) == {"n1": 5, "n2": 6}
    assert told(schema, {"n1": "x"})
    assert told(schema, {"m": 1})


def test_items_by_place_as_older_drafts_write_them() -> None:
    """K09, sibling: what can be read is checked."""
    schema = {"properties": {"a": {"items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False}}}
    assert validate_arguments(schema, {"a": ["1", "x"]}) == {"a": [1, "x"]}
    assert told(schema, {"a": [1, "x", 2]})


@pytest.mark.parametrize(("schema", "given", "expected"), [
    ({"properties": {"a": {"type": "integer"}}, "not": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
     {"a": "5"}, None),
    ({"properties": {"a": {"type": "integer"}}, "if": {"properties": {"a": {"const": 5}}}, "then": {"required": ["b"]}},
     {"a": "5"}, None),
    ({"properties": {"a": {"type": ["integer", "string"]}}, "allOf": [{"properties": {"a": {"type": "integer"}}}]},
     {"a": "5"}, {"a": 5}),
    ({"properties": {"a": {"not": {"type": "integer"}}}}, {"a": 1.0}, None),
])  # fmt: skip
def test_what_is_accepted_is_accepted_again(schema: Json, given: Json, expected: Json | None) -> None:
    """D16: a condition may see a value differently once it is coerced."""
    if expected is None:
        assert told(schema, given)
    else:
        assert validate_arguments(schema, validate_arguments(schema, given)) == expected
