"""A provider refuses a tool all the same: the turn goes on without it, whatever its error looks like."""

import json
from typing import Any

import anthropic as anthropic_sdk
import httpx
import ollama as ollama_sdk
import openai as openai_sdk
import pytest
from google.genai import errors as gemini_errors

from toolsearch import Agent, CallModel, ReplyError, ToolCall, ToolSearch, tool
from toolsearch.calls import NativeDelivery
from toolsearch.events import Note, ToolsUnloaded
from toolsearch.testing import ScriptedModel
from toolsearch.wires import anthropic, gemini, openai_chat, openai_responses, refused_tool


def made(*names: str) -> list[Any]:
    return [tool({"name": name, "description": f"Does {name}."}, run=lambda **given: "ok") for name in names]


class Refused(Exception):
    """As any SDK raises it: a status and a text."""

    def __init__(self, text: str, status_code: int = 400) -> None:
        super().__init__(text)
        self.status_code = status_code


def refusing(*bad: str) -> Any:
    """A step of a model whose provider refuses these tools, one a request, and otherwise goes on."""

    def step(request: CallModel) -> Any:
        for shown in request.tools:
            if shown.name in bad:
                return Refused(f"Invalid schema for function '{shown.name}': array schema missing items")
        return "Fine."

    return step


# -- the errors of providers -----------------------------------------------------------------------------------------

CHAT = [{"type": "function", "function": {"name": name}} for name in ("search_tools", "send_mail", "x.y")]
RESPONSES = [{"type": "function", "name": "search_tools"}, {"type": "function", "name": "send_mail"}]
MESSAGES = [{"name": "search_tools"}, {"type": "web_search_20260318", "name": "web_search"}, {"name": "send_mail"}]
GEMINI = [{"function_declarations": [{"name": "search_tools"}, {"name": "_3d"}, {"name": "send_mail"}]}]
DECLARATIONS = GEMINI[0]["function_declarations"]


def openai_error(message: str, param: str | None = None) -> Exception:
    body = {"message": message, "type": "invalid_request_error", "param": param, "code": "invalid_function_parameters"}
    response = httpx.Response(400, request=httpx.Request("POST", "http://127.0.0.1/"))
    return openai_sdk.BadRequestError(f"Error code: 400 - {{'error': {body}}}", response=response, body=body)


def anthropic_error(message: str) -> Exception:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    response = httpx.Response(400, request=httpx.Request("POST", "http://127.0.0.1/"))
    return anthropic_sdk.BadRequestError(f"Error code: 400 - {body}", response=response, body=body)


def gemini_error(message: str) -> Exception:
    return gemini_errors.ClientError(400, {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})


IN_CONTEXT = "Invalid schema for function 'send_mail': In context=('properties', 'to'), array schema missing items."
DRAFT = "tools.2.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"
FIELDS = "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[to].items: missing field."


@pytest.mark.parametrize(("error", "tools", "name"), [
    (openai_error(IN_CONTEXT, "tools[1].function.parameters"), CHAT, "send_mail"),
    (openai_error("Invalid 'tools[2].function.name': it has no such form", "tools[2].function.name"), CHAT, "x.y"),
    (openai_error(IN_CONTEXT, "tools[1].parameters"), RESPONSES, "send_mail"),
    (anthropic_error(DRAFT), MESSAGES, "send_mail"),
    (anthropic_error("tools.2.custom.input_schema.properties: Property keys should match"), MESSAGES, "send_mail"),
    (gemini_error(FIELDS), GEMINI, "send_mail"),
    (gemini_error(FIELDS), DECLARATIONS, "send_mail"),
    (gemini_error("tools[0].functionDeclarations[1].name: [FIELD_INVALID] Invalid function name."), GEMINI, "_3d"),
    (gemini_error("Unable to submit request because `send_mail` functionDeclaration …"), GEMINI, "send_mail"),
    (ReplyError("Invalid schema for function 'send_mail'", status_code=400), CHAT, "send_mail"),
    (Refused("invalid tool 'send_mail': bad parameters", 422), CHAT, "send_mail"),
    # about none of these tools, or about no tool
    (openai_error(IN_CONTEXT.replace("send_mail", "other")), CHAT, None),
    (anthropic_error("messages.2.content.1.tool_result: unexpected tool_use_id"), MESSAGES, None),
    (anthropic_error("tools.17.custom.input_schema: JSON schema is invalid"), MESSAGES, None),
    (anthropic_error("tools: too many tools"), MESSAGES, None),
    (Refused("max_tokens is too large: 'send_mail'"), CHAT, None),
    (Refused(IN_CONTEXT, 500), CHAT, None),
    (Refused(IN_CONTEXT, 429), CHAT, None),
    (ollama_sdk.ResponseError("json: cannot unmarshal string into Go struct field", 400), CHAT, None),
    (ValueError(IN_CONTEXT), CHAT, None),
    (ReplyError("x" * 100_000, status_code=400), CHAT, None),
])  # fmt: skip
def test_an_error_names_the_tool_it_is_about(error: Exception, tools: list[Any], name: str | None) -> None:
    assert refused_tool(error, tools) == name


@pytest.mark.parametrize("tools", [[], [None], ["x"], [5], [{}], [{"function": 5}], [{"tools": [{"name": 7}]}]])
def test_odd_lists_of_tools_have_no_names(tools: list[Any]) -> None:
    assert refused_tool(Refused(f"{IN_CONTEXT} tools.0.custom"), tools) is None


# -- an agent --------------------------------------------------------------------------------------------------------


def test_the_turn_goes_on_without_the_tool_and_the_model_is_told(drive: Any) -> None:
    model = ScriptedModel([("search_tools", {"queries": ["send mail"]})], refusing("send_mail"), "Sorry.")
    agent = Agent(model, ToolSearch(made("send_mail", "read_mail"), mode="append", index="keyword"))
    result = drive(agent, "Send it", conversation_id="c")
    assert result.text == "Sorry."
    refused, again = model.requests[1:]
    assert "send_mail" in [shown.name for shown in refused.tools]
    assert "send_mail" not in [shown.name for shown in again.tools]
    assert again.transcript[-1] == Note("Tools have changed: the provider refuses send_mail: go on without it")
    (fact,) = [fact for fact in agent.conversation("c").journal if isinstance(fact, ToolsUnloaded)]
    assert fact.unloaded == ("send_mail",)


def test_the_tool_stays_away_from_searches_calls_and_later_turns(drive: Any) -> None:
    search = [("search_tools", {"queries": ["send mail"]})]
    model = ScriptedModel(search, refusing("send_mail"), "No.", search, [("send_mail", {})], "Still no.")
    agent = Agent(model, ToolSearch(made("send_mail", "read_mail"), mode="append", index="keyword", not_loaded="run"))
    drive(agent, "Send it", conversation_id="c")
    drive(agent, "Try again", conversation_id="c")
    *_, found, called = [fact.content for fact in agent.conversation("c").journal if hasattr(fact, "content")]
    assert "- send_mail" not in found
    assert called == (
        "'send_mail' did not run: the provider refuses this tool, so it cannot be used here. "
        "Instead, search for another one with search_tools."
    )
    assert all("send_mail" not in [s.name for s in request.tools] for request in model.requests[2:])
    assert agent.conversation("c").session.refused.keys() == {"send_mail"}


def test_in_static_each_refused_tool_leaves_and_the_others_stay(drive: Any) -> None:
    step = refusing("a", "c")
    model = ScriptedModel(step, step, step)
    agent = Agent(model, ToolSearch(made("a", "b", "c"), mode="static"))
    assert drive(agent, "Go").text == "Fine."
    assert [[shown.name for shown in request.tools] for request in model.requests] == [
        ["a", "b", "c"], ["b", "c"], ["b"],
    ]  # fmt: skip


def test_a_pinned_tool_leaves_too(drive: Any) -> None:
    step = refusing("a")
    model = ScriptedModel(step, step)
    agent = Agent(model, ToolSearch(made("a", "b"), mode="append", index="keyword", pinned=["a"]))
    assert drive(agent, "Go").text == "Fine."
    assert [shown.name for shown in model.requests[1].tools] == ["search_tools"]


class NativeScript(ScriptedModel):
    """A model whose wire declares nothing: what is found comes with the answers of searches."""

    native = NativeDelivery(declares=False, with_messages=False)


def test_in_native_no_message_brings_the_tool_again(drive: Any) -> None:
    search = [("search_tools", {"queries": ["send mail"]})]
    model = NativeScript(search, Refused("Invalid schema for function 'send_mail'"), "Sorry.")
    agent = Agent(model, ToolSearch(made("send_mail", "read_mail"), mode="native", index="keyword"))
    assert drive(agent, "Send it").text == "Sorry."
    brought = [
        [loaded.id for result in message.results for loaded in result.loaded]
        for request in model.requests[1:]
        for message in request.transcript
        if hasattr(message, "results")
    ]
    assert "send_mail" in brought[0]
    assert "send_mail" not in brought[1]
    assert brought[1] == [tool_id for tool_id in brought[0] if tool_id != "send_mail"]


def test_a_provider_that_refuses_everything_ends_the_turn_with_its_error(drive: Any) -> None:
    names = [f"t{i}" for i in range(10, 40)]
    step = refusing(*names)
    model = ScriptedModel(*[step] * 30)
    with pytest.raises(Refused, match="Invalid schema for function 't20'"):
        drive(Agent(model, ToolSearch(made(*names), mode="static")), "Go")
    assert len(model.requests) == 11


@pytest.mark.parametrize("error", [
    Refused("Invalid schema for function 'search_tools'"), Refused("max_tokens is too large"), Refused(IN_CONTEXT, 500),
])  # fmt: skip
def test_any_other_error_is_raised(error: Exception, drive: Any) -> None:
    """The search tool itself is nobody's tool, and cannot leave."""
    model = ScriptedModel(error)
    with pytest.raises(Refused):
        drive(Agent(model, ToolSearch(made("send_mail"), mode="append", index="keyword")), "Go")
    assert len(model.requests) == 1


@pytest.mark.parametrize("wire", [openai_chat, anthropic])
def test_a_tool_is_found_by_its_place_among_all_that_were_sent(wire: Any) -> None:
    """Tools of the provider's own, and those that the wire left out, count."""

    class Model(ScriptedModel):
        def request_for(self, request: CallModel) -> Any:
            return {"tools": [{"type": "web_search_20260318", "name": "web"}, *map(wire.definition, request.tools)]}

    model = Model(Refused("tools.2.custom.input_schema: JSON schema is invalid"), "Fine.")
    agent = Agent(model, ToolSearch(made("a", "b"), mode="static"))
    assert agent.run("Go").text == "Fine."
    assert [shown.name for shown in model.requests[1].tools] == ["a"]


class Client:
    """What is used of the clients of all SDKs: it refuses a tool of that name, as its provider words it."""

    def __init__(self, provider: str, bad: str, *replies: Any) -> None:
        self.provider, self.bad, self.replies = provider, bad, list(replies)
        self.requests: list[Any] = []
        self.chat = self.completions = self.messages = self.responses = self.models = self

    def create(self, **arguments: Any) -> Any:
        self.requests.append(arguments)
        if (error := self._refusal(arguments)) is not None:
            raise error
        return self.replies.pop(0)

    generate_content = generate_content_stream = create

    def _refusal(self, arguments: Any) -> Exception | None:
        in_config = self.provider == "gemini"
        tools = arguments["config"]["tools"][0]["function_declarations"] if in_config else arguments["tools"]
        names = [(each.get("function") or each).get("name") for each in tools]
        named = f"Invalid schema for function '{self.bad}'"
        if self.provider == "responses" and f'"name": "{self.bad}", "description"' in json.dumps(arguments["input"]):
            return openai_error(named, "input[3].tools[0].parameters")
        if self.bad not in names:
            return None
        place = names.index(self.bad)
        return {
            "chat": openai_error(named, f"tools[{place}].function.parameters"),
            "responses": openai_error(named, f"tools[{place}].parameters"),
            "anthropic": anthropic_error(f"tools.{place}.custom.input_schema: JSON schema is invalid"),
            "gemini": gemini_error(f"* GenerateContentRequest.tools[0].function_declarations[{place}].name: Invalid"),
        }[self.provider]


WIRES: dict[str, Any] = {"chat": openai_chat, "responses": openai_responses, "anthropic": anthropic, "gemini": gemini}


def reply_of(provider: str, *calls: tuple[str, dict[str, Any]]) -> Any:
    """A reply with calls, or with the text "Fine."."""
    if provider == "chat":
        return {"choices": [{"message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}]}
    if provider == "gemini":
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": "Fine."}]}, "finish_reason": "STOP"}]}
    if provider == "anthropic":
        used = [{"type": "tool_use", "id": "toolu_1", "name": name, "input": given} for name, given in calls]
        blocks = used or [{"type": "text", "text": "Fine."}]
        stop = "tool_use" if calls else "end_turn"
        return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": stop}
    items = [
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": name, "arguments": json.dumps(given)}
        for name, given in calls
    ]
    said = {"type": "output_text", "text": "Fine.", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [said]}
    return {"object": "response", "id": "r", "status": "completed", "output": items or [message]}


@pytest.mark.parametrize("provider", WIRES)
def test_each_providers_error_is_understood_with_its_own_wire(provider: str) -> None:
    """Also of a tool whose name had to be changed for one of them."""
    client = Client(provider, "_3d_print" if provider == "gemini" else "3d_print", reply_of(provider))
    model = WIRES[provider].model(client, "m", stream=False)
    agent = Agent(model, ToolSearch(made("read_mail", "3d_print", "send_mail"), mode="static"))
    assert agent.run("Go", conversation_id="c").text == "Fine."
    assert agent.conversation("c").session.refused.keys() == {"3d_print"}
    assert len(client.requests) == 2


@pytest.mark.parametrize("provider", ["anthropic", "responses"])
def test_in_native_a_refused_tool_is_not_sent_again(provider: str) -> None:
    """Anthropic has it declared from the beginning; Responses gets it by value, behind the answer of a search."""
    search = reply_of(provider, ("search_tools", {"queries": ["send mail"]}))
    client = Client(provider, "send_mail", search, reply_of(provider))
    model = WIRES[provider].model(client, "m", stream=False)
    agent = Agent(model, ToolSearch(made("read_mail", "send_mail"), mode="native", index="keyword"))
    assert agent.run("Go", conversation_id="c").text == "Fine."
    session = agent.conversation("c").session
    assert (session.mode, [*session.refused]) == ("native", ["send_mail"])
    assert len(client.requests) == 3
    assert "Does send_mail." not in json.dumps(client.requests[-1]["tools"])


# -- a loop of one's own ---------------------------------------------------------------------------------------------


def test_a_session_that_is_stored_knows_what_was_refused() -> None:
    search = ToolSearch(made("send_mail", "read_mail"), "keyword", mode="append", pinned=["read_mail"])
    session = search.session()
    assert session.set_aside(["send_mail", "read_mail", "nobody", "search_tools"], "why") == ("send_mail", "read_mail")
    assert session.notices() == ["the provider refuses send_mail, read_mail: go on without them"]
    restored = search.restore(json.loads(json.dumps(session.export())))
    for each in (session, restored):
        assert each.refused == {"send_mail": "why", "read_mail": "why"}
        assert [shown.name for shown in each.tools()] == ["search_tools"]
        each.load(["send_mail"])
        assert each.loaded == ()
        assert "send_mail" not in each.handle(ToolCall("1", "search_tools", {"queries": ["send mail"]})).content
    assert [shown.name for shown in search.session().tools()] == ["search_tools", "read_mail"]


def test_own_loop_recipe() -> None:
    session = ToolSearch(made("send_mail", "read_mail"), mode="static").session()
    tools = openai_chat.tools_for(session)
    name = refused_tool(openai_error(IN_CONTEXT), tools)
    assert name is not None
    assert session.set_aside([name]) == ("send_mail",)
    assert [each["function"]["name"] for each in openai_chat.tools_for(session)] == ["read_mail"]
