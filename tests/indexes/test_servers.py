"""A query that names a server finds the tools of that server first, whichever index reads the words."""

import pytest

from toolsearch import Catalog, Tool, find, open_index
from toolsearch.catalog import tool
from toolsearch_indexes.bm25f import impacts
from toolsearch_indexes.keyword import KeywordIndex

INDEXES = ("keyword", "whoosh", "tantivy", "hybrid")


def _catalog(*servers: str) -> Catalog:
    tools: list[Tool] = []
    for server in servers:
        for name, what in (("send_message", "Send a message."), ("list_members", "List the members of a channel.")):
            tools.append(tool({"name": name, "description": what, "server": server}))
    return Catalog(tools)


def _servers(index_name: str, catalog: Catalog, query: str) -> list[str | None]:
    index = open_index(index_name)
    index.add(list(catalog))
    return [hit.tool.server for hit in find(catalog, index, query, 10)]


def _scores(index_name: str, catalog: Catalog, query: str) -> dict[str, float]:
    index = open_index(index_name)
    index.add(list(catalog))
    return {hit.id: hit.score for hit in index.search(query, 10)}


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("query", ["tell the others in slakc: lunch is here", "slack, the members of a channel"])
def test_the_tools_of_a_named_server_come_first(index: str, query: str) -> None:
    first, *_ = _servers(index, _catalog("discord", "slack", "zulip", "mattermost"), query)
    assert first == "slack"


@pytest.mark.parametrize(
    ("index", "query"),
    [
        *((index, "fix the record in salesforce") for index in ("keyword", "whoosh", "tantivy")),
        ("hybrid", "fix a typo in salesforce"),
    ],
)
def test_a_tool_of_the_named_server_comes_before_one_whose_name_says_more(index: str, query: str) -> None:
    catalog = Catalog(
        [
            {"name": "update_record", "description": "Update an object.", "server": "salesforce"},
            {"name": "delete_object", "description": "Delete an object.", "server": "salesforce"},
            {"name": "fix_record", "description": "Fix a typo in a record.", "server": "hubspot"},
            {"name": "list_deals", "description": "List the deals.", "server": "hubspot"},
            *({"name": f"run_{at}", "description": "Run a job.", "server": f"jobs{at}"} for at in range(20)),
        ]
    )
    assert _servers(index, catalog, query)[:2] == ["salesforce", "hubspot"]


@pytest.mark.parametrize("index", INDEXES)
def test_a_part_of_the_servers_name_is_enough(index: str) -> None:
    catalog = _catalog("Discord MCP Server", "com.slack/mcp", "Zulip MCP Server", "Mattermost MCP Server")
    assert _servers(index, catalog, "send a message on slack")[0] == "com.slack/mcp"


@pytest.mark.parametrize("index", ["keyword", "whoosh", "tantivy"])
def test_a_word_that_many_other_tools_hold_names_no_server(index: str) -> None:
    named = [tool({"name": "read", "description": "Read one.", "server": "files"})]
    others = [tool({"name": f"copy_{at}", "description": "Copy files.", "server": f"copier{at}"}) for at in range(9)]
    plain = [tool({"name": "read", "description": "Read one.", "server": None, "category": "files"})]
    scores = _scores(index, Catalog(named + others), "files")
    assert scores["files/read"] == pytest.approx(_scores(index, Catalog(plain + others), "files")["read"])


def test_the_name_of_the_only_server_tells_no_tools_apart() -> None:
    index = KeywordIndex()
    index.add(list(_catalog("slack")))
    assert index.look_up("list the members on slack", 10).query.servers == {}
    index.add(list(_catalog("zulip")))
    assert list(index.look_up("list the members on slack", 10).query.servers) == ["@slack"]


def test_generic_words_of_a_servers_name_are_not_its_own() -> None:
    _, words = impacts(tool({"name": "send", "description": "", "server": "Slack MCP API Server v 2"}))
    assert [word for word in words if word.startswith("@")] == ["@slack"]
