"""A server whose own search hands out definitions that stand in no list (J45)."""

import asyncio

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.servers import entry
from toolsearch import Agent, Finished, ToolCall, ToolSearch
from toolsearch.mcp import Servers
from toolsearch.stores.memory import MemoryStore
from toolsearch.testing import ScriptedModel

OPTIONS = {"toolsearch": {"search_tool": "gateway_search"}}


def search_over(servers: Servers) -> ToolSearch:
    return ToolSearch(servers.catalog, run=servers.run, index="keyword", not_loaded="run")


@pytest.mark.parametrize("structured", [False, True], ids=["as text", "structured"])
def test_what_it_finds_can_be_called_in_the_next_step(structured: bool) -> None:
    """J45: in the mode that shows only what was loaded, without a search of ours."""
    model = ScriptedModel(
        [("search_tools", {"queries": ["select:pipes__gateway_search"]})],
        [("pipes__gateway_search", {})],
        [("pipes__weld_pipe", {})],
        "Welded.",
    )
    store = MemoryStore()
    with Servers({"pipes": {**entry("searching", structured=structured), **OPTIONS}}) as servers:

        def agent() -> Agent:
            return Agent(model, ToolSearch(servers.catalog, run=servers.run, index="keyword"), store=store)

        done = agent().run("Weld it.", conversation_id="pipes")
        agent().run("And now?", conversation_id="pipes")  # from the stored journal
    assert isinstance(done, Finished)
    for request in model.requests[2:]:
        assert [each.name for each in request.tools][-2:] == ["pipes__weld_pipe", "pipes__cut_pipe"]
    assert "weld_pipe ran" in str(model.requests[3])


def test_they_are_found_by_a_search_of_other_sessions_and_outlive_a_new_list() -> None:
    with Servers({"pipes": {**entry("searching"), **OPTIONS}}) as servers:
        search = search_over(servers)
        session = search.session()
        assert session.handle(ToolCall("1", "pipes__gateway_search", {})).ok
        asyncio.run(servers.refresh())
        found = search.session().handle(ToolCall("1", "search_tools", {"queries": ["weld a pipe"]}))
        assert "pipes__weld_pipe" in found.content
        assert servers.definition(servers.catalog["pipes/weld_pipe"])["description"] == "Welds a pipe."


def test_without_the_option_a_result_is_only_a_result() -> None:
    with Servers({"pipes": entry("searching")}) as servers:
        session = search_over(servers).session()
        assert session.handle(ToolCall("1", "pipes__gateway_search", {})).ok
        assert len(servers.catalog) == 1
