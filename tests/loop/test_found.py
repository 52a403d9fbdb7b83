"""The tools that a conversation has found, as its layers and later turns know them."""

from typing import Any

from toolsearch import Agent, Catalog, ToolSearch
from toolsearch.testing import FixedIndex, ScriptedModel

FOUND = {"keys": ["rotate_key"], "pages": ["printer/print_page"]}


def defined(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"The {name} tool.", "run": lambda: f"{name} ran"}


def test_layers_read_what_an_answer_made_callable(drive: Any) -> None:
    seen: list[Any] = []

    class Watching:
        name = "watching"

        def around_tool(self, request: Any) -> Any:
            result = yield request
            seen.append((result.status, result.found))
            return result

        def around_round(self, request: Any) -> Any:
            results = yield request
            seen.extend((result.status, result.found) for result in results.values() if result.status == "not_loaded")
            return results

    search_ = ToolSearch(Catalog([defined("rotate_key"), defined("send_mail")]), FixedIndex(FOUND), mode="append")
    script = [("search_tools", {"queries": ["keys"]})], [("send_mail", {})], "Done."
    drive(Agent(ScriptedModel(*script), search_, layers=[Watching()]), "Go", conversation_id="s")
    assert seen == [("ok", {"rotate_key": "rotate_key"}), ("not_loaded", {"send_mail": "send_mail"})]


def test_K19_a_server_that_was_away_for_a_turn_gets_its_tools_back(drive: Any) -> None:
    """K19: the tool is in the first request after the server is back, and its call runs."""
    pages = [{"name": "print_page", "description": "Print it.", "run": lambda: "printed"}]
    catalog = Catalog()
    catalog.sync(pages, server="printer")
    script = (
        [("search_tools", {"queries": ["pages"]})], "Found.", "Away.", "Still away.",
        [("print_page", {})], "Printed.", "And again.",
    )  # fmt: skip
    agent = Agent(ScriptedModel(*script), ToolSearch(catalog, FixedIndex(FOUND), mode="append"))

    def turn(said: str) -> list[list[str]]:
        model: Any = agent.parts.model
        before = len(model.requests)
        drive(agent, said, conversation_id="s")
        return [[each.name for each in request.tools] for request in model.requests[before:]]

    assert turn("Find")[-1] == ["search_tools", "print_page"]
    catalog.sync([], server="printer")
    assert turn("And?") == turn("Still?") == [["search_tools"]]
    catalog.sync(pages, server="printer")
    assert turn("Print") == [["search_tools", "print_page"]] * 2
    journal = agent.conversation("s").export()
    assert [fact["content"] for fact in journal if fact["fact"] == "ToolReturned"][-1] == "printed"
    told = [text for fact in journal if fact["fact"] == "ToolsUnloaded" for text in fact["told"]]  # type: ignore[attr-defined]
    assert told == ["print_page is no longer available and was unloaded", "available again: print_page"]
    assert turn("More") == [["search_tools", "print_page"]]
