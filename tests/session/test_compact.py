"""The mode "compact": every tool as a signature in the instructions, calls through `call_tool`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolsearch import Caller, Catalog, Session, ToolCall, ToolSearch
from toolsearch.catalog import Tool
from toolsearch.session.signatures import signature
from toolsearch.tokens import ESTIMATE

ADMIN, GUEST = Caller("u", ["admin"]), Caller("u", [])
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def defined(
    name: str, server: str | None = None, required: tuple[str, ...] = (), /, **properties: Any
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "name": name,
        "server": server,
        "description": f"Does {name}. {'And more. ' * 30}",
        "input_schema": schema,
        "run": lambda **given: f"{name} {given}",
    }


TOOLS = [
    defined("create_issue", "github", ("title",), body=TEXT, title=TEXT),
    defined("list_issues", "github", state={"enum": ["open", "closed"]}, labels={"type": "array", "items": TEXT}),
    defined("get_forecast", None, ("city",), city=TEXT, days=NUMBER),
]
SECRET = defined("rotate_key", "vault", ("name",), name=TEXT) | {"roles": ["admin"]}


def compact(tools: Any = TOOLS, **options: Any) -> ToolSearch:
    return ToolSearch(tools, "keyword", mode="compact", **options)


def shown(session: Session) -> list[str]:
    return [each.name for each in session.tools()]


def call(session: Session, name: str, /, **arguments: Any) -> Any:
    return session.handle(ToolCall("c", "call_tool", {"name": name, "arguments": arguments}))


# -- the signatures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "t()"),
        ({"properties": {"a": TEXT, "b": NUMBER}, "required": ["b"]}, "t(b:integer, a?:string)"),
        ({"properties": {"a": {"enum": ["x", "y"]}, "b": {"const": 1}}}, 't(a?:"x"|"y", b?:1)'),
        ({"properties": {"a": {"enum": list("abcdefgh")}}}, 't(a?:"a"|"b"|"c"|"d"|"e"|"f"|…)'),
        ({"properties": {"a": {"type": "string", "enum": ["x" * 30, "y"]}}}, "t(a?:string)"),
        ({"properties": {"a": {"type": ["string", "null"]}}}, "t(a?:string)"),
        ({"properties": {"a": {"anyOf": [TEXT, NUMBER, {"type": "null"}]}}}, "t(a?:string|integer)"),
        ({"properties": {"a": {"type": "array", "items": {"anyOf": [TEXT, NUMBER]}}}}, "t(a?:(string|integer)[])"),
        ({"properties": {"a": {"type": "array"}, "b": {}}}, "t(a?:any[], b?:any)"),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"properties": {}}}}, "t(a?:object)"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "t(a?:any)"),
        ({"properties": {"a": {"$ref": "#/$defs/x~1y"}}, "$defs": {"x/y": TEXT}}, "t(a?:string)"),
        (
            {"anyOf": [{"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": NUMBER}}]},
            "t(a?:string, b?:integer)",
        ),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": TEXT}, "required": ["a"]}}}, "t(a:string)"),
        ({"properties": {f"argument_{n}": TEXT for n in range(100)}}, None),
    ],
)
def test_a_signature_has_the_arguments_with_their_types(schema: dict[str, Any], expected: str | None) -> None:
    told = signature("t", Tool("t", "t", input_schema={"type": "object", **schema}))
    assert "\n" not in told
    assert len(told) < 420
    assert told.endswith(", …)") if expected is None else told == expected


def test_a_signature_has_the_names_of_arguments_that_every_provider_takes() -> None:
    """J13: as the schema that the answer to a misfit shows."""
    tool = Tool("t", "t", input_schema={"properties": {"filter[app]": TEXT, "a\nb": TEXT}, "required": ["filter[app]"]})
    needed, other = tool.exported().schema["properties"]
    assert signature("t", tool) == f"t({needed}:string, {other}?:string)"
    assert not {needed, other} & {*tool.input_schema["properties"]}


def test_a_schema_without_an_end_and_one_that_is_none_have_a_signature() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    assert signature("t", Tool("t", "t", input_schema={"properties": {"a": deep, "b": 3}})).startswith("t(a?:any[]")
    assert signature("t", Tool("t", "t", input_schema={"properties": 3, "required": 4})) == "t()"


# -- what a conversation carries ---------------------------------------------------------------------------------------


def test_all_signatures_stand_in_the_instructions_and_the_request_has_the_call_tool_alone() -> None:
    session = compact().session()
    assert session.instructions() == (
        "Tools to call through call_tool, with their arguments; ? marks one that may be left out. The answer to a call "
        "that does not fit has the whole schema.\n"
        "github:\n"
        "create_issue(title:string, body?:string)\n"
        'list_issues(state?:"open"|"closed", labels?:string[])\n'
        "get_forecast(city:string, days?:integer)"
    )
    assert shown(session) == ["call_tool"]
    assert session.why() == "compact: the setting `mode`"
    assert ESTIMATE.count(session.instructions()) < 0.4 * sum(ESTIMATE.of([t["description"]]) for t in TOOLS)


def test_a_call_runs_and_a_misfit_is_answered_with_the_schema() -> None:
    session = compact().session()
    assert call(session, "get_forecast", city="Oslo").content == "get_forecast {'city': 'Oslo'}"
    misfit = call(session, "get_forecast", days="many")
    assert misfit.status == "invalid_arguments"
    assert json.dumps(TOOLS[2]["input_schema"]) in misfit.content
    assert session.handle(ToolCall("c", "get_forecast", {"city": "Oslo"})).ok, "by its own name as well"
    off = session.handle(ToolCall("c", "search_tools", {"queries": ["weather"]}))
    assert (off.status, off.content) == (
        "unknown",
        "'search_tools' is off: every tool is listed already. Call one through call_tool.",
    )
    gone = call(session, "no_such_tool")
    assert gone.status == "unknown"
    assert "search" not in gone.content


def test_what_does_not_fit_is_searched() -> None:
    session = compact(directory=2).session()
    assert shown(session) == ["search_tools", "call_tool"]
    note = session.instructions()
    assert "create_issue(" in note
    assert "get_forecast" not in note
    assert note.startswith("More tools exist than are listed.")
    answer = session.handle(ToolCall("c", "search_tools", {"queries": ["weather forecast"]}))
    assert '"city"' in answer.content, "with its schema, as in bridge"
    session.tools()
    assert call(session, "get_forecast", city="Oslo").ok
    assert session.instructions() == note, "the same bytes throughout"


def test_two_hundred_fit_by_default_whatever_a_request_may_carry() -> None:
    many = [defined(f"tool_{n:03}", "s", a=TEXT) for n in range(200)]
    session = compact(many).session()
    assert shown(session) == ["call_tool"]
    assert session.instructions().count("(a?:string)") == 200
    assert call(session, "tool_199", a="x").ok
    more = compact([*many, defined("one_more", "z")]).session()
    assert shown(more) == ["search_tools", "call_tool"]
    assert more.instructions().count("(a?:string)") == 200


def test_the_bytes_stay_until_a_compaction_whatever_the_catalog_does() -> None:
    search = compact()
    session = search.session()
    before, tools = session.instructions(), [each.tool for each in session.tools()]
    search.catalog.add(defined("late", "zoo"))
    search.catalog.remove("github/list_issues")
    assert session.instructions() == before
    assert [each.tool for each in session.tools()] == tools
    assert call(session, "late").status == "not_loaded"
    assert call(session, "list_issues").status == "unknown"
    session.after_compaction()
    assert "late()" in session.instructions()
    assert "list_issues" not in session.instructions()


def test_a_caller_reads_and_calls_only_what_it_may_see() -> None:
    search = compact([*TOOLS, SECRET])
    assert "rotate_key" not in search.session(caller=GUEST).instructions()
    assert call(search.session(caller=GUEST), "rotate_key", name="x").status == "unknown"
    session = search.session("s", caller=ADMIN)
    assert "vault:\nrotate_key(name:string)" in session.instructions()
    assert call(session, "rotate_key", name="x").ok
    search.session("s", caller=GUEST)
    assert "rotate_key" not in session.instructions()
    assert "vault" not in session.instructions()
    session.tools()
    assert not call(session, "rotate_key", name="x").ok


def test_a_restored_session_goes_on_with_the_same_bytes() -> None:
    search = compact([*TOOLS, SECRET])
    session = search.session("s", caller=ADMIN)
    session.tools()
    state = json.loads(json.dumps(session.export()))
    search.catalog.extend([defined(f"more_{n:03}", "zoo") for n in range(300)])
    restored = search.restore(state, caller=ADMIN)
    assert restored.instructions() == session.instructions()
    assert shown(restored) == ["call_tool"]
    assert call(restored, "get_forecast", city="Oslo").ok
    assert call(restored, "more_001").status == "not_loaded"


def test_pinned_tools_are_listed_and_have_no_signature() -> None:
    session = compact(pinned=["get_forecast"]).session()
    assert shown(session) == ["call_tool", "get_forecast"]
    assert "get_forecast(" not in session.instructions()
    assert "- get_forecast: Does get_forecast." in session.instructions()


def test_two_servers_with_a_tool_of_one_name_are_told_apart() -> None:
    search = compact(Catalog([defined("run", "a"), defined("run", "b")]))
    session = search.session()
    names = [line.partition("(")[0] for line in session.instructions().splitlines() if "(" in line]
    assert len({*names}) == 2
    assert [call(session, name).content for name in names] == ["run {}", "run {}"]


def test_without_tools_there_is_nothing_to_say() -> None:
    session = compact([]).session()
    assert session.instructions() == ""
    assert shown(session) == ["call_tool"]
