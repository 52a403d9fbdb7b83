"""However tools reach the model, the same loop governs them."""

from typing import Any

import pytest

from toolsearch import Catalog, ToolSearch, tool
from toolsearch.events.facts import Answers
from toolsearch.events.requests import CallModel, Paused
from toolsearch.layers import approval, limits
from toolsearch.loop.agent import Agent
from toolsearch.stores import MemoryStore
from toolsearch.testing import ScriptedModel


@tool(kind="action")
def send_mail(to: str) -> str:
    """Send an e-mail."""
    return f"sent to {to}"


def read_mail() -> str:
    """Read the mail."""
    return "no mail"


def search(mode: str) -> ToolSearch:
    return ToolSearch([send_mail, read_mail], mode=mode)


def call(mode: str, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return ("call_tool", {"name": name, "arguments": arguments}) if mode == "bridge" else (name, arguments)


def found(mode: str) -> list[Any]:
    """The step before the first call, where tools have to be found."""
    return [] if mode == "static" else [[("search_tools", {"queries": ["select:send_mail,read_mail"]})]]


@pytest.mark.parametrize("pieces", [0, 3])
@pytest.mark.parametrize("mode", ["static", "append", "bridge"])
def test_the_layers_govern_every_delivery_streamed_or_not(drive: Any, mode: str, pieces: int) -> None:
    """PG-1. A gate and a limit see the call itself, and not what it came through."""
    script = [*found(mode), [call(mode, "send_mail", {"to": "ana"})], *[[call(mode, "read_mail", {})]] * 3, "Done."]
    layers = [approval(), limits(identical=2)]
    agent = Agent(ScriptedModel(*script, pieces=pieces), search(mode), layers=layers)
    paused = drive(agent, "Go", conversation_id="s")
    assert isinstance(paused, Paused)
    assert [(each.name, each.arguments) for each in paused.waiting] == [("send_mail", {"to": "ana"})]
    drive(agent, conversation_id="s", decisions={paused.waiting[0].id: True})
    answers = [m.results[0] for m in agent.conversation("s").transcript if isinstance(m, Answers)]
    assert [result.status for result in answers[-4:]] == ["ok", "ok", "ok", "limit"]


def test_whether_tools_are_searched_is_chosen_for_each_conversation(drive: Any) -> None:
    """PG-21: two ways over one catalog and one index; behind a search are all the tools."""
    catalog = Catalog([send_mail, read_mail])
    first = ToolSearch(catalog, mode="static")
    ways = {"static": first, "append": ToolSearch(catalog, first.index, mode="append")}
    store = MemoryStore()
    seen: dict[str, list[str]] = {}
    for chat, way in (("a", "static"), ("b", "append"), ("c", "static")):
        model = ScriptedModel(*found(way), "Done.")
        drive(Agent(model, ways[way], store=store), "Go", conversation_id=chat)
        seen[chat] = [shown.name for shown in model.requests[-1].tools]
    every, searched = ["read_mail", "send_mail"], ["search_tools", "send_mail", "read_mail"]
    assert seen == {"a": every, "b": searched, "c": every}


def test_what_enters_a_request_is_found_first_and_what_may_run_is_the_same(drive: Any) -> None:
    """PG-22: static shows every definition in each request, search only what was found; neither hides a tool."""
    shown: dict[str, list[list[str]]] = {}
    ran: dict[str, list[str]] = {}
    for mode in ("static", "append"):
        model = ScriptedModel([("read_mail", {})], [("read_mail", {})], "Done.")
        agent = Agent(model, search(mode))
        drive(agent, "Go", conversation_id="s")
        shown[mode] = [[each.name for each in request.tools] for request in requests(model)]
        ran[mode] = [m.results[0].status for m in agent.conversation("s").transcript if isinstance(m, Answers)]
    assert shown["static"] == [["read_mail", "send_mail"]] * 3
    assert shown["append"] == [["search_tools"], *[["search_tools", "read_mail"]] * 2]
    assert ran == {"static": ["ok", "ok"], "append": ["not_loaded", "ok"]}


def requests(model: ScriptedModel) -> list[CallModel]:
    return model.requests
