"""Names that hold the server's, so that no tool that comes later changes them."""

from hypothesis import given
from hypothesis import strategies as st

from toolsearch import Catalog, ToolCall, ToolSearch
from toolsearch.catalog.names import LEGAL, qualified_name, tool_id


def definition(name: str) -> dict[str, object]:
    return {"name": name, "description": "Does it.", "inputSchema": {"type": "object", "properties": {}}}


def catalog_of(**servers: list[str]) -> Catalog:
    catalog = Catalog(qualified=True)
    for server, names in servers.items():
        catalog.sync([definition(name) for name in names], server=server)
    return catalog


def test_a_server_that_comes_later_changes_no_name() -> None:
    """J46 and H: with names that get a prefix where they collide, `query` would be another name from then on."""
    catalog = catalog_of(db=["query"])
    before = catalog.provider_name("db/query")
    assert before == "db__query"
    catalog.sync([definition("query")], server="shop")
    assert (catalog.provider_name("db/query"), catalog.provider_name("shop/query")) == (before, "shop__query")


def test_the_bare_name_is_accepted_while_it_is_unique() -> None:
    """D07."""
    catalog = catalog_of(db=["query", "explain"])
    search = ToolSearch(catalog, index="keyword", run=lambda tool, arguments, context: tool.id, not_loaded="run")
    assert search.session().handle(ToolCall("1", "query", {})).content == "db/query"
    catalog.sync([definition("query")], server="shop")
    session = search.session()
    refused = session.handle(ToolCall("1", "query", {}))
    assert refused.status == "unknown"
    assert "db__query" in refused.content
    assert "shop__query" in refused.content
    assert session.handle(ToolCall("2", "shop__query", {})).content == "shop/query"


def test_servers_whose_names_hold_the_separator_stay_distinct() -> None:
    """J46: nothing splits a name again."""
    catalog = Catalog(qualified=True)
    for server, names in {"a": ["query", "b__query"], "a__b": ["query", "__start"], "1": ["x"], "Ü": ["é"]}.items():
        catalog.sync([definition(name) for name in names], server=server)
    shown = [catalog.provider_name(tool.id) for tool in catalog]
    assert len({*shown}) == len(catalog)
    for name, tool in zip(shown, catalog, strict=True):
        assert [found.id for found in catalog.named(name)] == [tool.id]


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from([8, 32]))
def test_a_name_is_legal_begins_with_a_letter_and_holds_the_separator_once(server: str, name: str, digits: int) -> None:
    found = qualified_name(name, tool_id(name, server), server, digits=digits)
    assert LEGAL.fullmatch(found)
    assert found[0].isalpha()
    assert found.count("__") == 1


def test_a_tool_without_a_server_keeps_its_name() -> None:
    catalog = catalog_of(door=["echo"])
    catalog.add(lambda: None, name="door__echo", description="Of the program.")
    assert catalog.provider_name("door__echo") == "door__echo"
    assert catalog.provider_name("door/echo") != "door__echo"
