"""Lists of tools, however they come: pages, an SDK's results, maps by name and by server, lists of lists."""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import Catalog, SetupError, ToolSearch, tool

OBJECT = {"type": "object"}
A: dict[str, Any] = {"name": "a", "description": "Does a.", "inputSchema": OBJECT}
B: dict[str, Any] = {"name": "b", "description": "Does b.", "inputSchema": OBJECT}


def nameless(definition: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in definition.items() if key != "name"}


def look(city: str) -> str:
    """Look out of the window."""
    return f"rain in {city}"


@pytest.mark.parametrize("listed", [
    {"a": nameless(A), "b": nameless(B)},
    {"tools": {"a": nameless(A), "b": nameless(B)}},
    {"result": {"tools": {"a": nameless(A), "b": nameless(B)}}},
    {"$schema": "https://example.com/tools.json", "_note": "reviewed", "a": nameless(A), "b": nameless(B)},
    {"a": A, "b": {"type": "function", "function": nameless(B)}},
    {"a": nameless(A), "b": {}},
    {"functions": [A, B]},
    {"functions": {"a": nameless(A), "b": nameless(B)}},
    [[A], [B]],
    [{"jsonrpc": "2.0", "id": 1, "result": {"tools": [A]}}, {"jsonrpc": "2.0", "id": 2, "result": {"tools": [B]}}],
    {"result": [A, B]},
    {"a": tool(look, name="a"), "b": look},
])  # fmt: skip
def test_a_list_is_read_whatever_it_is_wrapped_in(listed: Any) -> None:
    """J21, J22: maps by name, `functions`, batches, lists of lists; the keys of a map are the names."""
    catalog = Catalog(listed)
    assert [t.name for t in catalog] == ["a", "b"]
    assert not catalog.quarantined


@pytest.mark.parametrize("listed", [
    {"github": {"tools": [A]}, "azure": {"tools": [B]}},
    {"github": [A], "azure": [B]},
    {"github": {"tools": {"a": nameless(A)}}, "azure": {"result": {"tools": [B]}}},
    {"nextCursor": None, "tools": {"github": {"tools": [A]}, "azure": [B]}},
    [{"name": "github", "description": "Code.", "tools": [A]}, {"server": "azure", "tools": [B]}],
    [{"type": "namespace", "name": "github", "tools": [A]}, {"serverName": "azure", "tools": [B]}],
], ids=str)  # fmt: skip
def test_a_map_by_server_gives_each_tool_its_server(listed: Any) -> None:
    assert [t.id for t in Catalog(listed)] == ["github/a", "azure/b"]
    assert [t.id for t in Catalog(listed, server="mine")] == ["mine/a", "mine/b"]


@pytest.mark.parametrize("name", ["tools", "schema", "parameters", "result", "functions", "name", "run", "description"])
def test_a_map_by_name_may_have_a_tool_of_any_name(name: str) -> None:
    assert [t.name for t in Catalog({name: nameless(A), "other": nameless(B)})] == [name, "other"]


@pytest.mark.parametrize("form", ["object", "list with the object", "by server", "dict"])
def test_what_the_mcp_sdk_returns_is_read_as_it_is(form: str) -> None:
    """What `await session.list_tools()` of the official SDK returns, with nothing taken out of it."""
    types = pytest.importorskip("mcp.types")
    listed = types.ListToolsResult.model_validate({"tools": [A, B]})
    given = {"object": listed, "list with the object": [listed], "by server": {"notes": listed}, "dict": dict(listed)}
    catalog = Catalog(given[form], server="notes")
    assert [t.id for t in catalog] == ["notes/a", "notes/b"]
    assert not catalog.quarantined
    assert not catalog.notices


def test_one_object_of_an_sdk_is_one_tool_though_one_could_iterate_over_it() -> None:
    types = pytest.importorskip("mcp.types")
    assert [t.id for t in Catalog(types.Tool.model_validate(A))] == ["a"]


@pytest.mark.parametrize("key", ["data", "items", "results", "payload"])
def test_K30_what_an_http_api_wraps_around_a_list_is_no_server(key: str) -> None:
    """K30 and siblings: a list under a key that says nothing, beside plain values, is that list."""
    for inner in ([A, B], {"tools": [A, B]}, {"jsonrpc": "2.0", "id": 1, "result": {"tools": [A, B]}}):
        catalog = Catalog({"object": "list", key: inner, "nextCursor": "page-2", "error": None})
        assert [t.id for t in catalog] == ["a", "b"]
        assert "'page-2'" in catalog.notices[0]
    assert [t.id for t in Catalog({key: [A], "mail": [B]})] == [f"{key}/a", "mail/b"]
    assert [t.id for t in Catalog({key: nameless(A)})] == [key]


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["nextCursor", "next_cursor"])
def test_a_page_that_is_not_the_last_is_told(key: str, caplog: pytest.LogCaptureFixture) -> None:
    """K30: the rest of a list is not left out without a word."""
    with caplog.at_level(logging.WARNING, "toolsearch"):
        catalog = Catalog([{"tools": [A], key: "page-2"}], server="notes")
    (notice,) = catalog.notices
    assert "the list of tools goes on" in notice
    assert "'page-2'" in notice
    assert "the list of tools goes on" in caplog.text
    assert [t.id for t in catalog] == ["notes/a"]


def test_an_sdks_page_that_is_not_the_last_is_told() -> None:
    types = pytest.importorskip("mcp.types")
    page = types.ListToolsResult.model_validate({"tools": [A], "nextCursor": "page-2"})
    assert "'page-2'" in Catalog(page).notices[0]
    assert (
        "'page-2'"
        in Catalog([{"jsonrpc": "2.0", "id": 1, "result": {"tools": [A], "nextCursor": "page-2"}}]).notices[0]
    )


def test_all_pages_together_are_whole() -> None:
    pages = [{"tools": [A], "nextCursor": "2"}, {"tools": [B]}]
    assert not Catalog(pages).notices
    one_by_one = Catalog()
    for page in pages:
        one_by_one.extend([page], server="notes")
    assert not one_by_one.notices


def test_pages_of_one_server_say_nothing_about_another() -> None:
    catalog = Catalog()
    catalog.extend({"tools": [A], "nextCursor": "2"}, server="notes")
    catalog.extend({"tools": [B]}, server="mail")
    assert len(catalog.notices) == 1


# -- any list, and anything at all ------------------------------------------------------------------------------------

WRAPPINGS: dict[str, Callable[[list[Any]], Any]] = {
    "tools": lambda listed: {"tools": listed},
    "functions": lambda listed: {"functions": listed},
    "declarations": lambda listed: {"functionDeclarations": listed},
    "answer": lambda listed: {"jsonrpc": "2.0", "id": 1, "result": {"tools": listed}},
    "list": lambda listed: [listed],
    "pages": lambda listed: [{"tools": [], "nextCursor": "2"}, {"tools": listed}],
    "object": lambda listed: SimpleNamespace(tools=listed),
}


@given(st.lists(st.sampled_from(sorted(WRAPPINGS)), max_size=4), st.integers(1, 4), st.booleans(), st.booleans())
def test_definitions_are_found_however_they_are_wrapped(
    wrapped: list[str], many: int, by_name: bool, by_server: bool
) -> None:
    """J21: each wrapping inside any other."""
    tools = {f"tool_{i}": {"description": f"Does {i}."} for i in range(many)}
    listed: Any = tools if by_name else [{**definition, "name": name} for name, definition in tools.items()]
    if by_server:
        listed = {"notes": {"tools": listed}}
    for kind in wrapped:
        listed = WRAPPINGS[kind](listed if isinstance(listed, list) else [listed])
    catalog = Catalog(listed)
    assert [t.name for t in catalog] == list(tools)
    assert catalog.servers == (("notes",) if by_server else ())
    assert not catalog.quarantined
    assert not catalog.notices


KEYS = (
    "name description tools functions result inputSchema parameters arguments properties type function server error "
    "nextCursor params a $schema required schema items _meta annotations custom toolSpec json run tags examples "
    "content jsonrpc mcpServers"
).split()
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["object", "web_search", "custom"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@given(anything)
def test_anything_is_read_or_set_aside_with_a_reason_or_refused_as_a_whole(whole: Any) -> None:
    """J22: whatever JSON it is, nothing fails in a way that nobody meant."""
    beside = Catalog([whole, {"name": "good"}])
    assert "good" in beside
    assert not [aside for aside in beside.quarantined if "reading the definition failed" in aside.reason]
    with contextlib.suppress(SetupError):
        Catalog([whole])


# -- nothing usable ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nothing", [[], {"tools": []}, [{"tools": []}], {"result": {"tools": []}}, {"tools": {}}, iter([])]
)
def test_an_empty_list_is_no_mistake(nothing: Any) -> None:
    assert len(Catalog(nothing)) == 0


@pytest.mark.parametrize(("wrong", "told"), [
    ([5, None], "int is not a tool"),
    (["add_note", "del_note"], "'add_note' is a name or a text"),
    ([("meta", None), ("tools", [])], "is a name or a text"),
    ([{"foo": 1}], "a tool needs a name, not None"),
    ({}, "an empty object"),
    ({"tools": ["a", "b"]}, "'a' is a name or a text"),
    ([object()], "object is not a tool"),
])  # fmt: skip
def test_sources_without_a_definition_raise(wrong: Any, told: str) -> None:
    """An agent with an empty catalog would only say that nothing fits: the program hears of it at once."""
    with pytest.raises(SetupError, match="no tool was passed") as caught:
        Catalog(wrong)
    assert told in str(caught.value)
    catalog = Catalog([A], server="s")
    with pytest.raises(SetupError, match="no tool was passed"):
        catalog.sync(wrong, server="s")
    assert [t.id for t in catalog] == ["s/a"], "a wrong answer takes nothing away"


@pytest.mark.parametrize("path", ["tools.json", Path("tools.json")])
def test_a_path_is_no_catalog_and_the_error_says_how_to_read_it(path: Any) -> None:
    for made in (Catalog, ToolSearch):
        with pytest.raises(SetupError, match=r"Catalog\.from_file"):
            made(path)


def test_bad_definitions_are_quarantined_and_never_raise() -> None:
    catalog = Catalog([{"name": "a", "inputSchema": 5}, {"type": "web_search", "name": "web_search"}, 7])
    assert len(catalog.quarantined) == 3


async def _list_tools() -> Any: ...


def test_a_coroutine_is_to_be_awaited() -> None:
    listed = _list_tools()
    with pytest.raises(SetupError, match="await it first"):
        Catalog(listed)
    listed.close()


def test_one_servers_two_tools_of_a_name_are_told_as_that() -> None:
    """J38: the reason does not advise what was done already."""
    catalog = Catalog()
    catalog.extend(
        [{"name": "run", "description": "Run a query."}, {"name": "run", "description": "Run a job."}], server="db"
    )
    (aside,) = catalog.quarantined
    assert "the server 'db' lists two tools named 'run', and the first is kept" in aside.reason
    assert "on_collision='replace'" in aside.reason
    assert catalog["db/run"].description == "Run a query."
    assert "give one of them a server" in Catalog([A, {**A, "description": "Other."}]).quarantined[0].reason
