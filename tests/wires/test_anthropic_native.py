"""Native delivery over Anthropic (J50): all tools declared and deferred, found ones referred to; or added by value."""

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic, BadRequestError

from toolsearch import Agent, Caller, Catalog, Session, Tool, ToolCall, ToolSearch
from toolsearch.calls import LoadedTool, NativeDelivery, ToolResult
from toolsearch.errors import ReplyError
from toolsearch.events.refusals import brought_tools
from toolsearch.layers import history, memory
from toolsearch.testing import Failure, LoopbackProvider, assert_prefix_stable
from toolsearch.wires import anthropic as wire

NAMES = ("rotate_key", "send_mail", "water_plants", "book_room")
FIND = ("s1", "search_tools", {"queries": ["rotate key"]})
FIND_MORE = ("s2", "search_tools", {"queries": ["water plants"]})
USE = ("c1", "rotate_key", {"what": "billing"})
USE_MORE = ("c2", "water_plants", {"what": "balcony"})
ways = pytest.mark.parametrize("way", ["whole", "streamed", "whole async", "streamed async"])


def tool(name: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    described = f"{name.replace('_', ' ').capitalize()}."
    return {
        "name": name,
        "description": described,
        "input_schema": schema,
        "run": lambda what: f"{name}: {what}",
        **more,
    }


def search(catalog: Any = None, **options: Any) -> ToolSearch:
    made = catalog if catalog is not None else [tool(name) for name in NAMES]
    return ToolSearch(made, **{"index": "keyword", "mode": "native", "results": 1, **options})


def model(url: str, way: str = "whole", **options: Any) -> Any:
    client: Any = (AsyncAnthropic if "async" in way else Anthropic)(api_key="none", base_url=url, max_retries=0)
    return wire.model(client, "m", stream="streamed" in way, **options)


def ask(agent: Agent, way: str, text: str) -> Any:
    if "async" in way:
        return asyncio.run(agent.arun(text, conversation_id="c"))
    return agent.run(text, conversation_id="c")


def results_in(body: Any) -> list[Any]:
    """The contents of all results, in order."""
    said = [message["content"] for message in body["messages"] if message["role"] == "user"]
    blocks = [block for content in said if isinstance(content, list) for block in content]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


# -- by reference --------------------------------------------------------------------------------------------------


@ways
def test_all_tools_are_declared_and_a_search_refers_to_what_it_found(way: str) -> None:
    """J50, AN-2, AN-4, AN-13, AN-14, AN-15."""
    with LoopbackProvider([[FIND], [USE], "Done.", [USE], "Again."]) as provider:
        agent = Agent(model(provider.url, way), search(pinned=["book_room"]))
        assert [ask(agent, way, text).text for text in ("Leak!", "Once more")] == ["Done.", "Again."]
    assert provider.refusals == []
    assert_prefix_stable(provider.requests, mode="native")
    tools = provider.requests[0]["tools"]
    assert [(each["name"], each.get("defer_loading", False)) for each in tools] == [
        ("search_tools", False), ("book_room", False),  # AN-7: never all
        ("rotate_key", True), ("send_mail", True), ("water_plants", True),
    ]  # fmt: skip
    found, used, _ = results_in(provider.requests[-1])
    assert found == [{"type": "tool_reference", "tool_name": "rotate_key"}]
    assert used == "rotate_key: billing"


def test_an_agent_delivers_natively_where_nothing_else_is_said() -> None:
    with LoopbackProvider([[FIND], [USE], "Done."]) as provider:
        agent = Agent(model(provider.url), ToolSearch([tool(name) for name in NAMES]))
        agent.run("Leak!", conversation_id="c")
        assert agent.conversation("c").session.mode == "native"
    assert provider.refusals == []
    assert_prefix_stable(provider.requests, mode="native")


def test_what_an_answer_says_follows_behind_all_results() -> None:
    other = ("c9", "book_room", {"what": "7"})
    with LoopbackProvider([[FIND, other], "Done."]) as provider:
        Agent(model(provider.url), search(pinned=["book_room"])).run("Leak!")
    blocks = provider.requests[-1]["messages"][-1]["content"]
    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "text"]
    assert "rotate_key" in blocks[-1]["text"]


def test_a_loop_of_ones_own_delivers_natively_too() -> None:
    with LoopbackProvider([[FIND], [USE], "Done."]) as provider:
        client = Anthropic(api_key="none", base_url=provider.url, max_retries=0)
        session = search().session(wire=wire)
        messages: list[Any] = [{"role": "user", "content": "Leak!"}]
        calls = [ToolCall("", "")]
        while calls:
            tools: Any = wire.tools_for(session)
            reply = client.messages.create(model="m", max_tokens=9, messages=messages, tools=tools)
            calls = wire.calls_in(reply)
            results = wire.results_for([(call, session.handle(call)) for call in calls])
            messages = [*messages, wire.message_from(reply), *results]
    assert provider.refusals == []
    assert_prefix_stable(provider.requests, mode="native")
    assert results_in(provider.requests[-1])[0] == [{"type": "tool_reference", "tool_name": "rotate_key"}]


def test_a_search_that_finds_nothing_answers_with_text() -> None:
    """AN-5: an empty list of content is refused."""
    with LoopbackProvider([[("s", "search_tools", {"queries": ["xyzzy"]})], "Nothing."]) as provider:
        Agent(model(provider.url), search()).run("?")
    assert provider.refusals == []
    (content,) = results_in(provider.requests[-1])
    assert "Nothing fits" in content


def test_the_answer_to_a_call_of_a_tool_that_was_not_loaded_refers_to_it_and_is_no_error() -> None:
    with LoopbackProvider([[USE], [USE], "Done."]) as provider:
        Agent(model(provider.url), search()).run("?")
    assert provider.refusals == []
    said = provider.requests[1]["messages"][-1]["content"]
    assert said[0]["content"] == [{"type": "tool_reference", "tool_name": "rotate_key"}]
    assert "is_error" not in said[0]
    assert "did not run" in said[1]["text"]
    assert results_in(provider.requests[-1])[-1] == "rotate_key: billing"


@pytest.mark.parametrize("restored", [False, True])
def test_a_tool_that_leaves_the_catalog_stays_declared_for_what_refers_to_it(restored: bool) -> None:
    """AN-7: a reference to a tool that is not declared is refused."""
    catalog = Catalog([tool(name) for name in NAMES])
    found = search(catalog)
    session = found.session(wire=wire)
    before = wire.tools_for(session)
    session.handle(ToolCall(*FIND))
    catalog.remove("rotate_key")
    if restored:
        session = found.restore(json.loads(json.dumps(session.export())), wire=wire)
    after = wire.tools_for(session)
    assert (after == before) != restored
    assert "rotate_key" in [each["name"] for each in after]
    assert session.handle(ToolCall("c", "rotate_key", {"what": "x"})).status == "unknown"


def _unload_and_hide(session: Session, catalog: Catalog) -> None:
    del catalog
    session.unload(["rotate_key"])
    session.rebind_caller(Caller("ana"))


def _remove_and_compact(session: Session, catalog: Catalog) -> None:
    catalog.remove("rotate_key")
    session.after_compaction()


def _hide_and_compact(session: Session, catalog: Catalog) -> None:
    del catalog
    session.rebind_caller(Caller("ana"))
    session.after_compaction()


def _set_aside(session: Session, catalog: Catalog) -> None:
    del catalog
    session.set_aside(["rotate_key"], "the provider refuses it")


@pytest.mark.parametrize("restored", [False, True], ids=["", "restored"])
@pytest.mark.parametrize("leave", [_set_aside, _unload_and_hide, _remove_and_compact, _hide_and_compact])
def test_whatever_an_answer_referred_to_stays_declared_as_the_program_may_keep_that_answer(
    leave: Callable[[Session, Catalog], None], restored: bool
) -> None:
    """AN-7, in a loop of one's own: the session does not know which messages the program still sends."""
    admins: Any = {"rotate_key": {"roles": ["admin"]}} if leave in (_unload_and_hide, _hide_and_compact) else {}
    catalog = Catalog([tool(name, **admins.get(name, {})) for name in NAMES])
    found = search(catalog)
    session = found.session(caller=Caller("ana", roles=["admin"]), wire=wire)
    wire.tools_for(session)
    session.handle(ToolCall(*FIND))
    wire.tools_for(session)
    leave(session, catalog)
    if restored:
        state = json.loads(json.dumps(session.export()))
        session = found.restore(state, caller=session.caller, wire=wire)
    (left,) = [each for each in wire.tools_for(session) if each["name"] == "rotate_key"]
    assert (left["defer_loading"], left["description"]) == (True, "No longer available.")


def test_a_tool_that_the_program_unloads_and_a_search_finds_again_is_brought_once() -> None:
    session = search().session(wire=wire)
    wire.tools_for(session)
    assert [each.name for each in session.handle(ToolCall(*FIND)).loaded] == ["rotate_key"]
    session.unload(["rotate_key"])
    wire.tools_for(session)
    again = session.handle(ToolCall("s2", *FIND[1:]))
    assert (again.loaded, list(again.found)) == ((), ["rotate_key"])
    wire.tools_for(session)
    assert session.handle(ToolCall(*USE)).ok


def test_an_agent_goes_on_when_a_tool_that_it_found_has_left() -> None:
    catalog = Catalog([tool(name) for name in NAMES])
    with LoopbackProvider([[FIND], "One.", [FIND_MORE], [USE, USE_MORE], "Two."]) as provider:
        agent = Agent(model(provider.url), search(catalog))
        agent.run("?", conversation_id="c")
        catalog.remove("rotate_key")
        assert agent.run("?", conversation_id="c").text == "Two."  # type: ignore[union-attr]
    assert provider.refusals == []


def test_of_a_tool_that_the_caller_may_no_longer_see_the_name_stays_where_an_answer_refers_to_it() -> None:
    allowed = {*NAMES}
    visible: Callable[..., bool] = lambda each, caller: each.id in allowed  # noqa: E731
    visible.version = lambda: len(allowed)  # type: ignore[attr-defined]
    with LoopbackProvider([[FIND], "One.", "Two."]) as provider:
        agent = Agent(model(provider.url), search(visible=visible))
        agent.run("?", conversation_id="c", caller=Caller("ana"))
        allowed -= {"rotate_key", "send_mail"}
        agent.run("?", conversation_id="c", caller=Caller("ana"))
    assert provider.refusals == []
    left = {each["name"]: each for each in provider.requests[-1]["tools"]}
    assert "send_mail" not in left
    assert left["rotate_key"]["description"] == "No longer available."
    assert left["rotate_key"]["input_schema"]["properties"] == {}


def test_a_tool_that_cannot_be_expressed_is_neither_declared_nor_referred_to() -> None:
    """One that was made by hand, past the catalog's checks."""
    bad = Tool(id="rotate_key", name="rotate_key", description="Rotate key.", input_schema={"type": "array"})
    with LoopbackProvider([[FIND], "Done."]) as provider:
        Agent(model(provider.url), search([bad, tool("send_mail")])).run("?")
    assert provider.refusals == []
    assert "rotate_key" not in [each["name"] for each in provider.requests[0]["tools"]]
    loaded = LoadedTool("rotate_key", "rotate_key", "Rotate key.", bad.input_schema)
    result = ToolResult("s1", "search_tools", "ok", "Loaded 1 tool.", loaded=(loaded,))
    (message,) = wire.results_for([(ToolCall("s1", "search_tools"), result)])
    assert message["content"][0]["content"] == "Loaded 1 tool."


def test_tools_whose_message_is_gone_are_listed_and_not_deferred() -> None:
    with LoopbackProvider([[FIND], [USE], "One.", "Two.", [USE], "Three."]) as provider:
        agent = Agent(model(provider.url), search(), layers=[memory(keep="answers")])
        said = [agent.run(text, conversation_id="c").text for text in "123"]  # type: ignore[union-attr]
    assert (said, provider.refusals) == (["One.", "Two.", "Three."], [])
    assert results_in(provider.requests[-1]) == ["rotate_key: billing"]
    listed = [each["name"] for each in provider.requests[-1]["tools"] if not each.get("defer_loading")]
    assert listed == ["search_tools", "rotate_key"]


def test_no_mark_of_the_cache_stands_on_a_deferred_tool() -> None:
    with LoopbackProvider([[FIND], [USE], "Done."]) as provider:
        Agent(model(provider.url, cache="5m"), search()).run("?")
    assert provider.refusals == []
    marked = [[each["name"] for each in body["tools"] if "cache_control" in each] for body in provider.requests]
    assert marked == [["search_tools"]] * 3


def test_the_providers_own_search_tool_may_stand_beside_it() -> None:
    hosted = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    with LoopbackProvider([[FIND], [USE], "Done."]) as provider:
        assert Agent(model(provider.url, tools=[hosted]), search()).run("?").text == "Done."  # type: ignore[union-attr]
    assert [body["tools"][0] for body in provider.requests] == [hosted] * 3


# -- by value --------------------------------------------------------------------------------------------------------


@ways
def test_with_additions_a_message_of_the_system_brings_the_definitions(way: str) -> None:
    """AN-17: nothing is declared, and the tools of a request keep their bytes all the same."""
    with LoopbackProvider([[FIND], [USE], "Done.", [FIND_MORE], [USE_MORE], "Again."]) as provider:
        agent = Agent(model(provider.url, way, additions=True, betas=["my-beta"]), search())
        assert [ask(agent, way, text).text for text in ("Leak!", "Plants?")] == ["Done.", "Again."]
        assert agent.conversation("c").session.why() == "native: the setting `mode`"
    assert provider.refusals == []
    assert {each["anthropic-beta"] for each in provider.headers} == {",".join(["my-beta", *wire.BETAS])}
    assert provider.tool_names() == [["search_tools"]] * 6
    assert_prefix_stable(provider.requests, mode="native")
    last = provider.requests[-1]["messages"]
    added = [each["content"] for each in last if each["role"] == "system"]
    assert [[block["tool"]["definition"]["name"] for block in blocks] for blocks in added] == [
        ["rotate_key"], ["water_plants"],
    ]  # fmt: skip
    assert "defer_loading" not in json.dumps(last)


def test_with_additions_a_definition_comes_once_and_not_beside_a_listed_one() -> None:
    loaded = LoadedTool("rotate_key", "rotate_key", "Rotate.", {"type": "object", "properties": {}})
    from toolsearch.events.facts import Answers, JudgedCall, ModelReplied, ToolReturned, UserSaid

    def found(call_id: str) -> list[Any]:
        return [ModelReplied(calls=(JudgedCall(call_id, "search_tools"),)),
                Answers((ToolReturned(call_id, "ok", "Loaded.", loaded=(loaded,)),))]  # fmt: skip

    transcript = [UserSaid("Hi"), *found("a"), *found("b")]
    roles = [each["role"] for each in wire.messages_for(transcript, listed=())]
    assert roles == ["user", "assistant", "user", "system", "assistant", "user"]
    assert "system" not in [each["role"] for each in wire.messages_for(transcript, listed=["rotate_key"])]
    said = UserSaid("Rotate it.", loaded=(loaded,))
    assert [each["role"] for each in wire.messages_for([said], listed=())] == ["user", "system"]


def test_a_loop_of_ones_own_adds_by_value_with_a_model_that_does() -> None:
    session = search().session(wire=model("http://127.0.0.1:9", additions=True))
    calls = [ToolCall(*FIND)]
    assert [each["name"] for each in wire.tools_for(session)] == ["search_tools"]
    answered = [(call, session.handle(call)) for call in calls]
    said, added = wire.results_for(answered, additions=True)
    assert (said["role"], added["role"]) == ("user", "system")
    assert isinstance(said["content"][0]["content"], str)
    assert added["content"][0]["tool"]["definition"]["name"] == "rotate_key"
    assert [each["name"] for each in wire.tools_for(session)] == ["search_tools"]


def test_with_additions_a_tool_that_the_users_words_find_comes_with_the_message() -> None:
    with LoopbackProvider([[USE], "Done.", [USE_MORE], "Again."]) as provider:
        agent = Agent(model(provider.url, additions=True), search(preselect=1))
        for text in ("Rotate the key of billing", "Water the plants"):
            agent.run(text, conversation_id="c")
    assert provider.refusals == []
    assert_prefix_stable(provider.requests, mode="native")
    last = provider.requests[-1]["messages"]
    assert [each["role"] for each in last] == [
        "user", "system", "assistant", "user", "assistant", "user", "system", "assistant", "user",
    ]  # fmt: skip
    assert results_in(provider.requests[-1]) == ["rotate_key: billing", "water_plants: balcony"]


@pytest.mark.parametrize("name", ["by reference", "by value"])
def test_recorded_requests_are_made_again(recorded: Any, name: str) -> None:
    """Byte by byte."""
    with LoopbackProvider([[FIND], [USE], "Done."]) as provider:
        agent = Agent(model(provider.url, additions=name == "by value"), search(), system="Be brief.")
        agent.run("Leak!")
    assert json.dumps(provider.requests[-1]) == json.dumps(recorded("anthropic_native.json")[name])


def test_a_model_can_be_told_to_do_without() -> None:
    with LoopbackProvider([[FIND], [USE], "Done."]) as provider:
        agent = Agent(model(provider.url, native=False), search())
        agent.run("Leak!", conversation_id="c")
    assert agent.conversation("c").session.why() == "append: the wire 'MessagesModel' cannot deliver natively"
    assert provider.tool_names()[-1] == ["search_tools", "rotate_key"]


# -- histories that are cut ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [2, 3, 5])
@pytest.mark.parametrize("summarize", [False, True])
@pytest.mark.parametrize("additions", [False, True], ids=["by reference", "by value"])
def test_a_conversation_that_is_compacted_again_and_again_is_never_refused(
    bound: int, summarize: bool, additions: bool
) -> None:
    """Wherever the cut falls: each tool is declared or brought in one place, and nothing refers to what is not."""

    def step(body: Any) -> Any:
        number = len(provider.replies)
        if not body.get("tools"):
            return "A summary."
        wanted = [[(f"s{number}", *FIND[1:])], [(f"c{number}", *USE[1:])], [(f"d{number}", "send_mail", {"what": "x"})],
                  [(f"e{number}", "send_mail", {"what": "x"})], "Ok."]  # fmt: skip
        return wanted[number % 5]

    with LoopbackProvider([step] * 60) as provider:
        layers = [history(messages=bound, summarize=summarize)]
        agent = Agent(model(provider.url, additions=additions), search(), layers=layers)
        for turn in range(6):
            assert agent.run(f"Turn {turn}.", conversation_id="c").text == "Ok."  # type: ignore[union-attr]
    assert provider.refusals == []


@pytest.mark.parametrize("additions", [False, True], ids=["by reference", "by value"])
@pytest.mark.parametrize("start", [2, 4, 6])
def test_a_history_that_a_loop_of_ones_own_shortened_is_taken(start: int, additions: bool) -> None:
    """It begins with a later message of the user; the session is told, and lists what was found from then on."""
    with LoopbackProvider() as provider:
        client = Anthropic(api_key="none", base_url=provider.url, max_retries=0)
        session = search().session(wire=model(provider.url, additions=additions))
        messages: list[Any] = []
        for number, calls in enumerate(([FIND], [USE], [FIND_MORE, ("c9", *USE[1:])], [USE_MORE])):
            wire.tools_for(session)
            asked = [ToolCall(f"{call_id}_{number}", name, given) for call_id, name, given in calls]
            said = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in asked]
            answered = [(call, session.handle(call)) for call in asked]
            messages += [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": said}]
            messages += [*wire.results_for(answered, additions=additions), {"role": "assistant", "content": "Ok."}]
        places = [n for n, message in enumerate(messages) if message["content"] == "Go on."]
        messages = [each for each in messages[places[start // 2] :] if each["role"] != "system"]
        session.after_compaction()
        messages.append({"role": "user", "content": "And now?"})
        tools: Any = wire.tools_for(session)
        betas = list(wire.BETAS)
        client.beta.messages.create(model="m", max_tokens=9, messages=messages, tools=tools, betas=betas)
    assert provider.refusals == []


# -- falling back ----------------------------------------------------------------------------------------------------


class Old(LoopbackProvider):
    """A provider, or a host of its models, that does not know native delivery."""

    told = "tools.1.custom.defer_loading: Extra inputs are not permitted"

    def step(self, body: Any) -> Any:
        if "defer_loading" in json.dumps(body) or "tool_addition" in json.dumps(body):
            self.script.insert(self._played, Failure(400, self.told))
        return super().step(body)


@ways
@pytest.mark.parametrize("additions", [False, True], ids=["by reference", "by value"])
def test_J50_what_the_provider_refuses_goes_on_as_append_and_why_says_so(way: str, additions: bool) -> None:
    with Old([[FIND], [USE], "Done.", [FIND_MORE], [USE_MORE], "Again."]) as provider:
        asked = model(provider.url, way, additions=additions)
        agent = Agent(asked, search())
        assert [ask(agent, way, text).text for text in ("Leak!", "Plants?")] == ["Done.", "Again."]
        why = agent.conversation("c").session.why()
    assert asked.native is None
    assert why.startswith("append: the wire 'MessagesModel' cannot deliver natively: the provider refused it")
    assert "Extra inputs are not permitted" in why
    assert provider.tool_names()[-1] == ["search_tools", "rotate_key", "water_plants"]
    refused = [body for body in provider.requests if "defer_loading" in str(body) or "tool_addition" in str(body)]
    assert len(refused) == 1
    rest = [body for body in provider.requests if body not in refused]
    assert_prefix_stable(rest, mode="append")


@pytest.mark.parametrize("way", ["whole", "streamed async"])
@pytest.mark.parametrize(
    "failure",
    [
        Failure(400, "max_tokens: too large"),
        Failure(400, "tools.deferred_payment.custom.input_schema: invalid"),
        Failure(401, "defer_loading needs a key"),
    ],
    ids=["400", "400 of a tool", "401"],
)
def test_another_error_is_raised_as_it_is(way: str, failure: Failure) -> None:
    with LoopbackProvider([failure]) as provider:
        asked = model(provider.url, way)
        agent = Agent(asked, search())
        with pytest.raises(Exception, match=failure.message):
            ask(agent, way, "?")
    assert asked.native is not None
    assert len(provider.requests) == 1


def test_J50_requests_that_are_refused_at_the_same_time_all_go_on() -> None:
    together = threading.Barrier(3, timeout=20)

    def refuse(body: Any) -> Any:
        together.wait()
        return Failure(400, Old.told)

    with LoopbackProvider([refuse] * 3) as provider:
        agent = Agent(model(provider.url), search())
        with ThreadPoolExecutor(3) as pool:
            ended = list(pool.map(lambda name: agent.run("?", conversation_id=name).text, "abc"))  # type: ignore[union-attr]
    assert ended == ["Done."] * 3


class Picky(LoopbackProvider):
    """Refuses a request that declares this tool with its argument, as Anthropic says it: by the tool's place."""

    refused = ""

    def step(self, body: Any) -> Any:
        for place, each in enumerate(body["tools"]):
            if each["name"] == self.refused and each["input_schema"].get("required"):
                self.script.insert(
                    self._played, Failure(400, f"tools.{place}.custom.input_schema: JSON schema is invalid")
                )
        return super().step(body)


@pytest.mark.parametrize("refused", ["send_mail", "rotate_key"])
def test_a_declared_tool_that_the_provider_refuses_is_set_aside_and_the_rest_stays_native(refused: str) -> None:
    """Whether it was found already, so that an answer refers to it, or not."""
    with Picky([[FIND], "One.", [FIND_MORE], [USE_MORE], "Two.", "Three."]) as provider:
        asked = model(provider.url)
        agent = Agent(asked, search())
        assert agent.run("Leak!", conversation_id="c").text == "One."  # type: ignore[union-attr]
        provider.refused = refused
        assert agent.run("Plants?", conversation_id="c").text == "Two."  # type: ignore[union-attr]
        sent = len(provider.requests)
        assert agent.run("More?", conversation_id="c").text == "Three."  # type: ignore[union-attr]
    assert provider.refusals == []
    assert asked.native is not None
    assert len(provider.requests) == sent + 1
    last = {each["name"]: each for each in provider.requests[-1]["tools"]}
    assert not last.get(refused, {}).get("input_schema", {}).get("required")
    assert results_in(provider.requests[-1])[-1] == "water_plants: balcony"


class PickyOfMessages(LoopbackProvider):
    """Refuses a message that brings this tool, by its place."""

    def step(self, body: Any) -> Any:
        for place, message in enumerate(body["messages"]):
            if message["role"] == "system":
                where = f"messages.{place}.content.0.tool_addition.tool.definition.custom.input_schema"
                self.script.insert(self._played, Failure(400, f"{where}: JSON schema is invalid"))
        return super().step(body)


def test_a_tool_that_the_provider_refuses_where_a_message_brings_it_is_set_aside() -> None:
    with PickyOfMessages([[FIND], "One.", "Two."]) as provider:
        asked = model(provider.url, additions=True)
        agent = Agent(asked, search())
        said = [agent.run(text, conversation_id="c").text for text in ("Leak!", "More?")]  # type: ignore[union-attr]
    assert (said, provider.refusals, len(provider.requests)) == (["One.", "Two."], [], 4)
    assert asked.native is not None
    assert [each["role"] for each in provider.requests[-1]["messages"]].count("system") == 0


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ("input[1].tools[0].parameters: bad", ["f"]), ("Invalid 'input.1.tools.0'", ["f"]),
        ("messages.0.content.0.tool.definition.custom.input_schema: bad", ["g"]),
        ("messages.0.content.0.input: bad", []), ("input[9].tools[0]", []), ("input[1].tools[x]", []),
    ],
)  # fmt: skip
def test_a_place_among_the_messages_names_the_tool_there(told: str, names: list[str]) -> None:
    tools = [{"type": "function", "name": "f", "parameters": {}}]
    added = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool("g")}}
    arguments = {"input": [{"role": "user"}, {"tools": tools}], "messages": [{"role": "system", "content": [added]}]}
    error = ReplyError(told, status_code=400)
    assert brought_tools(error, arguments) == names


def test_a_refusal_of_a_request_that_was_not_native_is_raised() -> None:
    with LoopbackProvider([Failure(400, "tools.0.defer_loading: not here")]) as provider:
        with pytest.raises(BadRequestError, match="not here"):
            Agent(model(provider.url), search(mode="append")).run("?")
        assert len(provider.requests) == 1


def test_more_tools_than_the_provider_takes_are_delivered_as_append() -> None:
    """AN-8."""
    assert wire.native == NativeDelivery(declares=True, most_declared=10_000)
    with LoopbackProvider([[FIND], [USE], "Done."]) as provider:
        asked = model(provider.url)
        asked.native = NativeDelivery(declares=True, most_declared=3)
        agent = Agent(asked, search())
        assert agent.run("?", conversation_id="c").text == "Done."  # type: ignore[union-attr]
        assert "more than" in agent.conversation("c").session.why()
    assert provider.tool_names()[-1] == ["search_tools", "rotate_key"]
