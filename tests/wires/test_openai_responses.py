"""OpenAI Responses: recorded JSON in both directions, items that go back, replies in pieces, odd replies."""

import json
from typing import Any

import pytest
from openai.types.responses import Response

from toolsearch import Agent, Catalog, ImagePart, ReplyError, SetupError, TextPart, ToolCall, ToolResult, ToolSearch
from toolsearch.calls.parts import text_of_parts
from toolsearch.events.facts import Answers, JudgedCall, Message, ModelReplied, Note, TextDelta, ToolReturned, UserSaid
from toolsearch.events.requests import CallModel
from toolsearch.testing import ScriptedModel, check_wire
from toolsearch.wires import openai_responses as wire
from toolsearch.wires._response_pieces import ResponsePieces

RECORDED = "openai_responses.json"


def function_call(call_id: Any = "c", name: Any = "tick", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def said(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content, **more}


def response(*items: Any, **more: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": "completed", "output": list(items), **more}


def thought(text: str = "Hm.", **more: Any) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}]
    return {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA", **more}


# -- recorded ----------------------------------------------------------------------------------------------------


def test_a_recorded_request_is_made_again(recorded: Any) -> None:
    held = recorded(RECORDED)
    session = ToolSearch(Catalog(held["definitions"])).session()
    session.handle(ToolCall("s", "search_tools", {"queries": ["weather forecast", "list files", "post a note"]}))
    assert json.dumps(wire.tools_for(session)) == json.dumps(held["request_tools"])


@pytest.mark.parametrize("as_object", [True, False])
def test_a_recorded_reply_is_read_and_answered(recorded: Any, as_object: bool) -> None:
    held = recorded(RECORDED)
    reply, last = held["reply"], held["last_reply"]
    if as_object:
        reply, last = Response.model_validate(reply), Response.model_validate(last)
    calls = wire.calls_in(reply)
    assert [[call.id, call.name, call.arguments] for call in calls] == held["calls"]
    assert wire.message_from(reply) == held["message"]
    answers = [
        ToolResult(call.id, call.name, status, text)
        for call, (status, text) in zip(calls, held["answers"], strict=True)
    ]
    assert wire.results_for(zip(calls, answers, strict=True)) == held["results"]
    assert wire.calls_in(last) == []
    assert wire.message_from(last) == held["last_message"]
    read = wire.reply_from(reply)
    assert (read.text, read.reasoning, read.stop) == ("I'll look.", "The user wants the weather.", "completed")
    assert (read.usage.input_tokens, read.usage.cached_tokens, read.usage.output_tokens) == (120, 100, 40)


def test_the_wire_keeps_the_promises() -> None:
    def with_calls(calls: Any) -> dict[str, Any]:
        return response(*(function_call(call.id, call.name, json.dumps(call.arguments)) for call in calls))

    check_wire(wire, reply_with_calls=with_calls, reply_with_text=lambda text: response(said(text)))


# -- what goes back ------------------------------------------------------------------------------------------------


def test_every_item_goes_back_as_it_came() -> None:
    """OA-5, OA-8: reasoning, phases, namespaces, ids, items of the provider's own tools, calls of custom tools."""
    items = [
        thought(),
        said("I look.", id="msg_1", status="completed", phase="commentary"),
        function_call(id="fc_1", namespace="clock", status="completed"),
        {"type": "tool_search_call", "id": "ts_1", "execution": "server", "status": "completed", "arguments": {}},
        {"type": "tool_search_output", "id": "to_1", "execution": "server", "status": "completed", "tools": []},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "mcp_call", "id": "mcp_1", "name": "tick", "server_label": "s", "arguments": "{}", "output": "1"},
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "c9", "name": "tick", "input": "now"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB"},
        {"type": "what_comes_next", "any": [None]},
    ]
    assert wire.message_from(response(*items)) == items
    assert [(call.id, call.name) for call in wire.calls_in(response(*items))] == [("c", "tick")]


def test_what_the_provider_does_not_take_back_is_left_out() -> None:
    """Nulls, what `client.responses.parse` adds, and a thought that nothing follows, in a reply that was cut."""
    part = {"type": "output_text", "text": "{}", "annotations": [], "parsed": {"a": 1}}
    message = {"type": "message", "role": "assistant", "status": None, "content": [part]}
    sent = wire.message_from(response(message, function_call(parsed_arguments={}, status=None), thought()))
    assert sent == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "{}", "annotations": []}],
        },
        function_call(),
    ]
    assert wire.message_from(response(thought(), status="incomplete")) == []


def test_an_argument_that_the_sdk_renames_gets_its_own_name_back() -> None:
    """`async` is a word of Python, so the SDK writes it with an underscore, which the provider does not know."""
    full = {
        "created_at": 1, "model": "m", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        **response(function_call(**{"async": True})),
    }  # fmt: skip
    assert wire.message_from(Response.model_validate(full)) == [function_call(**{"async": True})]


@pytest.mark.parametrize("arguments", ["", "  ", None, "null", "{}", {}])
def test_C11_no_arguments_are_replayed_as_an_empty_object(arguments: Any) -> None:
    assert wire.message_from(response(function_call(arguments=arguments)))[0]["arguments"].strip() == "{}"


@pytest.mark.parametrize("arguments", ['{"path": "/data/a", "mode": ', "[1]", '"x"', "nul", '{"a": Infinity}'])
def test_C12_malformed_arguments_stay_paired_and_become_valid_json_in_the_history(arguments: str) -> None:
    reply = response(function_call(arguments=arguments))
    assert wire.calls_in(reply)[0].arguments == arguments
    assert json.loads(wire.message_from(reply)[0]["arguments"]) == {"unparsed": arguments}


@pytest.mark.parametrize(
    "ids", [["", None], ["c", "c"], ["a", "a_2", "a"], ["tick", "tick", "", ""], ["\ud800", "\ud800"], [3, "3"]]
)
def test_missing_and_repeated_ids_become_distinct_the_same_way_in_every_reading(ids: Any) -> None:
    """C16's kind: an id that is fine stays."""
    reply = response(*map(function_call, ids))
    made = [call.id for call in wire.calls_in(reply)]
    assert len({*made}) == len(ids)
    assert [item["call_id"] for item in wire.message_from(reply)] == made
    results = wire.results_for([(call, ToolResult(call.id, "tick", "ok", "1")) for call in wire.calls_in(reply)])
    assert [item["call_id"] for item in results] == made


def test_several_calls_in_one_become_several_that_run_and_go_back() -> None:
    uses = [{"recipient_name": f"functions.{name}", "parameters": {"n": n}} for n, name in enumerate(("tick", "tock"))]
    one = function_call("c", "multi_tool_use.parallel", json.dumps({"tool_uses": uses}), id="fc_1")
    calls = wire.calls_in(response(one))
    assert [(call.name, call.arguments) for call in calls] == [
        ("functions.tick", '{"n": 0}'),
        ("functions.tock", '{"n": 1}'),
    ]
    assert calls[0].id == "c"
    sent = wire.message_from(response(one))
    assert [item["call_id"] for item in sent] == [call.id for call in calls]
    assert [item.get("id") for item in sent] == ["fc_1", None]


def test_an_image_in_a_result_is_shown_in_its_place() -> None:
    image = ImagePart("iVBORw0KGgoAAAAN", "image/png")
    parts = (TextPart("begins"), image, TextPart("ends"))
    result = ToolResult("c", "look", "ok", text_of_parts(parts), parts=parts)
    (sent,) = wire.results_for([(ToolCall("c", "look"), result)])
    assert sent["output"] == [
        {"type": "input_text", "text": "begins"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgoAAAAN"},
        {"type": "input_text", "text": "ends"},
    ]
    returned = ToolReturned("c", "ok", text_of_parts(parts), parts=parts)
    assert wire.messages_for([Answers((returned,))]) == [sent]


def test_a_transcript_becomes_the_input_of_a_request() -> None:
    call = JudgedCall("x1", "room_of", '{"meeting": "a"}', given={"meeting": "a"})
    own = ModelReplied("Hm.", (call,), raw=[thought(), function_call("x0", "room_of")], wire="openai_responses")
    transcript: list[Message] = [
        UserSaid("hi", parts=({"type": "input_image", "image_url": "data:,"},)),
        own,
        Answers((ToolReturned("x1", "ok", "room 7"),)),
        Note("Tools have changed"),
        ModelReplied("Hm.", (call,), raw={"content": []}, wire="anthropic"),
        Answers((ToolReturned("x1", "ok", "room 7"),)),
    ]
    result = {"type": "function_call_output", "call_id": "x1", "output": "room 7"}
    assert wire.messages_for(transcript) == [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "data:,"}],
        },
        thought(),
        function_call("x1", "room_of"),
        result,
        {"role": "user", "content": "[Tools have changed]"},
        {"role": "assistant", "content": "Hm."},
        function_call("x1", "room_of", '{"meeting": "a"}'),
        result,
    ]


def test_what_a_user_sent_in_the_format_of_another_provider_is_translated() -> None:
    data = "data:image/png;base64,iVBORw0KGgo="
    parts = (
        {"type": "input_file", "file_id": "f"},
        {"type": "image_url", "image_url": {"url": data}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "text", "text": "And?"},
        {"type": "document", "source": {}},
    )
    (sent,) = wire.messages_for([UserSaid("What?", parts)])
    assert sent["content"] == [
        {"type": "input_text", "text": "What?"},
        {"type": "input_file", "file_id": "f"},
        {"type": "input_image", "image_url": data},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
        {"type": "input_image", "image_url": data},
        {"type": "input_text", "text": "And?"},
        {"type": "input_text", "text": "[document, not shown]"},
    ]


def test_a_call_of_a_custom_tool_has_a_result_in_an_agent_and_an_id_stands_once() -> None:
    """The provider refuses a call without its result, and two items of one id."""
    custom = {"type": "custom_tool_call", "id": "ct_1", "call_id": "c9", "name": "sketch", "input": "now"}
    raw = [custom, said("One.", id="msg_1")]
    items = wire.messages_for([ModelReplied("One.", raw=raw, wire="openai_responses")] * 2)
    assert [item["type"] for item in items[:3]] == ["custom_tool_call", "custom_tool_call_output", "message"]
    assert [item.get("id") for item in items if item["type"] == "message"] == ["msg_1", None]


# -- what a reply says -----------------------------------------------------------------------------------------------


def test_the_text_is_that_of_the_final_answer_if_one_is_marked() -> None:
    reply = wire.reply_from(response(said("I look.", phase="commentary"), said('{"a": 1}', phase="final_answer")))
    assert reply.text == '{"a": 1}'
    assert wire.reply_from(response(said("I look.", phase="commentary"), function_call())).text == "I look."


def test_a_refusal_is_told_and_is_no_answer() -> None:
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}
    reply = wire.reply_from(response(refusal))
    assert (reply.text, reply.stop) == ("I can't.", "refusal")


@pytest.mark.parametrize(
    ("reason", "cut"),
    [("max_output_tokens", "cut off"), ("content_filter", "filtered"), (None, "cut off")],
)
def test_a_call_that_a_reply_was_cut_in_does_not_run(reason: str | None, cut: str) -> None:
    details = {"reason": reason} if reason else None
    reply = response(
        function_call("a"), function_call("b", arguments='{"x'), status="incomplete", incomplete_details=details
    )
    assert [call.cut for call in wire.calls_in(reply)] == ["", cut]
    assert wire.reply_from(reply).stop == reason or "incomplete"


@pytest.mark.parametrize(
    ("reply", "told", "status"),
    [
        (response(status="failed", error={"code": "server_error", "message": "It broke."}), "It broke", 500),
        (response(status="failed"), "names none", None),
        ({"error": {"code": "rate_limit_exceeded", "message": "Slow down."}}, "Slow down", 429),
        ({"object": "response", "status": "completed"}, "there is no output", None),
        ({}, "there is no output", None),
        (response(status="queued"), "Leave out the option `background`", None),
    ],
)
def test_an_error_in_place_of_a_reply_is_raised(reply: Any, told: str, status: int | None) -> None:
    with pytest.raises(ReplyError, match=told) as caught:
        wire.reply_from(reply)
    assert caught.value.status_code == status


def test_replies_of_other_formats_are_told_and_do_not_pass_for_ones_without_calls() -> None:
    for reply, told in (
        ({"choices": []}, r"use toolsearch\.wires\.openai_chat"),
        ({"type": "message", "content": []}, r"use toolsearch\.wires\.anthropic"),
    ):
        with pytest.raises(SetupError, match=told):
            wire.calls_in(reply)


# -- in pieces -------------------------------------------------------------------------------------------------------


def put_together(*events: Any) -> tuple[dict[str, Any], list[TextDelta]]:
    pieces = ResponsePieces()
    shown = [delta for event in events for delta in pieces.take(event)]
    return pieces.whole(), shown


CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
CALL_BEGINS = {
    "type": "response.output_item.added",
    "output_index": 1,
    "item": function_call("c", "tick", "", status="in_progress"),
}


def written(piece: str, at: int | None = 1) -> dict[str, Any]:
    where = {} if at is None else {"output_index": at}
    return {"type": "response.function_call_arguments.delta", "delta": piece, **where}


def spoken(piece: str, kind: str = "output_text", at: int | None = 0) -> dict[str, Any]:
    where = {} if at is None else {"output_index": at, "content_index": 0}
    return {"type": f"response.{kind}.delta", "delta": piece, **where}


def test_the_last_event_has_the_whole_reply() -> None:
    whole = response(thought(), said("Yes."))
    reply, shown = put_together(
        CREATED,
        spoken("H", "reasoning_summary_text"),
        spoken("m.", "reasoning_text"),
        spoken("Yes."),
        {"type": "response.completed", "response": whole},
    )
    assert reply == whole
    assert [(delta.text, delta.kind) for delta in shown] == [("H", "reasoning"), ("m.", "reasoning"), ("Yes.", "text")]


def test_items_that_the_last_event_leaves_out_are_those_that_came() -> None:
    done = {"type": "response.output_item.done", "output_index": 0, "item": said("Yes.")}
    reply, _ = put_together(CREATED, spoken("Y"), done, {"type": "response.completed", "response": response()})
    assert reply["output"] == [said("Yes.")]


@pytest.mark.parametrize("at", [1, None])
def test_a_reply_that_breaks_off_has_what_came_of_it(at: int | None) -> None:
    """J01: a call whose arguments are closed is whole, another one is not; a thought without its end is dropped."""
    reason = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}}
    for pieces, cut in ((['{"x": ', "1}"], ""), (['{"x": ', "1"], "broken off")):
        reply, _ = put_together(CREATED, reason, CALL_BEGINS, *(written(piece, at) for piece in pieces))
        (call,) = wire.calls_in(reply)
        assert (call.id, call.arguments, call.cut) == ("c", "".join(pieces), cut)
        assert [item["type"] for item in wire.message_from(reply)] == ["function_call"]
    reply, _ = put_together(CREATED, spoken("Half a"), spoken("n answ"))
    assert (wire.reply_from(reply).text, wire.reply_from(reply).stop) == ("Half an answ", "broken off")
    reply, _ = put_together(CREATED, spoken("I can", "refusal"))
    assert wire.reply_from(reply).text == "I can"


@pytest.mark.parametrize("stop", ["max_output_tokens", "content_filter", None])
def test_J01_in_an_agent_a_call_that_a_reply_was_cut_in_does_not_run(stop: str | None) -> None:
    """J01: the calls before it run; so for a stream that breaks off in the middle of one."""
    ran: list[Any] = []
    purge = {"name": "purge", "description": "Purge.", "kind": "action", "run": lambda **given: ran.append(given)}
    begins = {**CALL_BEGINS, "item": function_call("b", "purge", "")}
    first = {"type": "response.output_item.done", "output_index": 0, "item": function_call("a", "purge")}
    end = {"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": stop}}}
    reply, _ = put_together(CREATED, first, begins, written('{"folder": "x'), *([end] if stop else []))
    search = ToolSearch([purge], mode="static")
    agent = Agent(ScriptedModel(wire.reply_from(reply), "Sorry."), search, actions="run")
    agent.run("Purge it", conversation_id="s")
    assert ran == [{}]
    answers = [fact for fact in agent.conversation("s").journal if isinstance(fact, ToolReturned)]
    assert {fact.call_id: fact.status for fact in answers} == {"a": "ok", "b": "invalid_arguments"}


def test_K27_the_work_of_a_stream_grows_with_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """K27: characters that are read, not seconds."""
    real, read = json.loads, [0]

    def counted(text: str, **options: Any) -> Any:
        read[0] += len(text)
        return real(text, **options)

    monkeypatch.setattr(json, "loads", counted)
    work = []
    for count in (1_000, 4_000):
        read[0] = 0
        texts = ['{"x":"', *[f"{n:022}" for n in range(count)], '"}']
        reply, _ = put_together(CREATED, CALL_BEGINS, *map(written, texts))
        assert wire.calls_in(reply)[0].arguments == "".join(texts)
        work.append(read[0] / len("".join(texts)))
    assert max(work) <= 8
    assert work[1] <= work[0] + 1


def test_arguments_that_come_whole_at_their_end_are_not_doubled() -> None:
    end = {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": '{"x": 1}'}
    reply, _ = put_together(CALL_BEGINS, written('{"x": '), end)
    assert wire.calls_in(reply)[0].arguments == '{"x": 1}'


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "It broke.", "param": None},
        {"type": "error", "error": {"code": "server_error", "message": "It broke."}},
        {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "It broke."}}},
    ],
)
def test_an_error_in_a_stream_is_raised(event: Any) -> None:
    with pytest.raises(ReplyError, match=r"It broke\.") as caught:
        put_together(CREATED, event)
    assert caught.value.status_code == 500


def test_a_stream_of_nothing_is_an_error() -> None:
    with pytest.raises(ReplyError, match="there is no output"):
        wire.reply_from(put_together()[0])


# -- a request -------------------------------------------------------------------------------------------------------


class Client:
    """Answers with one reply."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.requests = list(answers), list[dict[str, Any]]()
        self.responses = self

    def create(self, **request: Any) -> Any:
        self.requests.append(request)
        return self.answers.pop(0)


def request_for(request: CallModel, **options: Any) -> dict[str, Any]:
    return wire.model(Client(), "gpt", stream=False, **options).request_for(request)


def test_nothing_is_stored_at_the_provider_unless_the_program_says_so() -> None:
    asked = CallModel((UserSaid("hi"),), system="Be kind.")
    assert request_for(asked) == {
        "model": "gpt",
        "input": [{"role": "user", "content": "hi"}],
        "instructions": "Be kind.",
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    assert request_for(asked, store=None, include=None).keys() == {"model", "input", "instructions"}
    assert wire.model(Client(), "gpt").request_for(asked)["stream"] is True


def test_a_schema_goes_to_the_provider_beside_what_the_program_says_of_the_text() -> None:
    asked = CallModel((UserSaid("hi"),), schema={"type": "object"})
    form = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}
    assert request_for(asked, text={"verbosity": "low"})["text"] == {"format": form, "verbosity": "low"}


def test_a_choice_of_tools_is_left_out_where_there_are_none() -> None:
    """The provider refuses a choice among no tools; a helper's request has none."""
    tools = tuple(ToolSearch([{"name": "tick"}], mode="static").session().tools())
    options: dict[str, Any] = {
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "tools": [{"type": "web_search"}],
    }
    asked = request_for(CallModel((), tools), **options)
    assert [tool.get("name", tool["type"]) for tool in asked["tools"]] == ["web_search", "tick"]
    assert (asked["tool_choice"], asked["parallel_tool_calls"]) == ("required", False)
    assert not request_for(CallModel((), purpose="summary"), **options).keys() & {*options}
