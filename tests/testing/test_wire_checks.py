"""The kit for wires: an honest wire passes it, and it names the promise that another one breaks."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from toolsearch.calls import NativeDelivery, ToolCall
from toolsearch.catalog.tools import shown_of
from toolsearch.events import Answers, CallModel, ModelReplied, Reply, TextDelta, UserSaid
from toolsearch.support.text import clean, clean_json
from toolsearch.testing import BrokenPromise, check_wire
from toolsearch.wires.shared import distinct_ids


def with_calls(calls: Sequence[ToolCall]) -> dict[str, Any]:
    return {"by": "model", "calls": [{"id": c.id, "tool": c.name, "with": c.arguments} for c in calls]}


def with_text(text: str) -> dict[str, Any]:
    return {"by": "model", "text": text}


class Plain:
    """A small honest wire."""

    def tools_for(self, session: Any) -> Any:
        return [
            {
                "tool": shown.name,
                "about": clean(shown.tool.description or shown.tool.fallback_description),
                "arguments": shown.tool.input_schema,
            }
            for shown in session.tools()
        ]

    def message_from(self, reply: Any) -> Any:
        if "calls" not in reply:
            return clean_json(dict(reply))
        calls = [{"id": c.id, "tool": c.name, "with": c.arguments} for c in self.calls_in(reply)]
        return clean_json({**reply, "calls": calls})

    def calls_in(self, reply: Any) -> Any:
        calls = reply.get("calls", [])
        ids = distinct_ids([call["id"] for call in calls], "call", reply)
        return [ToolCall(i, call["tool"], call["with"]) for i, call in zip(ids, calls, strict=True)]

    def results_for(self, answered: Any) -> Any:
        return [{"by": "tool", "id": clean(call.id), "text": clean(result.content)} for call, result in answered]


def prove(wire: Any, **options: Any) -> None:
    check_wire(wire, reply_with_calls=with_calls, reply_with_text=with_text, **options)


def test_an_honest_wire_passes() -> None:
    prove(Plain())


class WithoutIds(Plain):
    """A format in which calls have no ids, as some providers'."""

    def calls_in(self, reply: Any) -> Any:
        calls = reply.get("calls", [])
        ids = distinct_ids(["" for _ in calls], "call", reply)
        return [ToolCall(i, call["tool"], call["with"]) for i, call in zip(ids, calls, strict=True)]

    def results_for(self, answered: Any) -> Any:
        return [{"by": "tool", "text": clean(result.content)} for _, result in answered]


def test_a_format_without_ids_passes() -> None:
    def without_ids(calls: Sequence[ToolCall]) -> dict[str, Any]:
        return {"by": "model", "calls": [{"id": "", "tool": c.name, "with": c.arguments} for c in calls]}

    check_wire(WithoutIds(), reply_with_calls=without_ids, reply_with_text=with_text)


class Shuffling(Plain):
    def tools_for(self, session: Any) -> Any:
        return super().tools_for(session)[::-1]


class Unsteady(Plain):
    numbers = itertools.count()

    def tools_for(self, session: Any) -> Any:
        return [{**each, "n": next(self.numbers)} for each in super().tools_for(session)]


class Partial(Plain):
    def tools_for(self, session: Any) -> Any:
        return super().tools_for(session)[:3]


class Twice(Plain):
    def tools_for(self, session: Any) -> Any:
        tools = super().tools_for(session)
        return [*tools, tools[0]]


class OwnNames(Plain):
    def tools_for(self, session: Any) -> Any:
        return [{**each, "tool": each["tool"][:40]} for each in super().tools_for(session)]


class Undescribed(Plain):
    def tools_for(self, session: Any) -> Any:
        return [
            {**tool, "about": one.tool.description}
            for tool, one in zip(super().tools_for(session), session.tools(), strict=True)
        ]


class Schemaless(Plain):
    def tools_for(self, session: Any) -> Any:
        return [{**each, "arguments": {}} for each in super().tools_for(session)]


class Objects(Plain):
    def tools_for(self, session: Any) -> Any:
        return session.tools()


class Mute(Plain):
    def calls_in(self, reply: Any) -> Any:
        return []


class Backwards(Plain):
    def calls_in(self, reply: Any) -> Any:
        return super().calls_in(reply)[::-1]


class Renumbering(Plain):
    def calls_in(self, reply: Any) -> Any:
        return [ToolCall(f"n{n}", call.name, call.arguments) for n, call in enumerate(super().calls_in(reply))]


class Hearing(Plain):
    def calls_in(self, reply: Any) -> Any:
        return super().calls_in(reply) or [ToolCall("x", "send_mail", {})]


class Trusting(Plain):
    def calls_in(self, reply: Any) -> Any:
        return [ToolCall(call["id"], call["tool"], call["with"]) for call in reply.get("calls", [])]


class Random(Plain):
    numbers = itertools.count()

    def calls_in(self, reply: Any) -> Any:
        return [ToolCall(c.id or f"{next(self.numbers)}", c.name, c.arguments) for c in Trusting().calls_in(reply)]


class Disagreeing(Plain):
    def message_from(self, reply: Any) -> Any:
        return clean_json(dict(reply))


class Greedy(Plain):
    def calls_in(self, reply: Any) -> Any:
        calls = super().calls_in(reply)
        reply.get("calls", []).clear()
        return calls


class Forgetful(Plain):
    def message_from(self, reply: Any) -> Any:
        message = super().message_from(reply)
        return {**message, "calls": message["calls"][:1]} if len(message.get("calls", ())) == 2 else message


class Raw(Plain):
    def message_from(self, reply: Any) -> Any:
        if "calls" not in reply:
            return dict(reply)
        return {**reply, "calls": [{"id": c.id, "tool": c.name, "with": c.arguments} for c in self.calls_in(reply)]}


class Nervous(Plain):
    def calls_in(self, reply: Any) -> Any:
        for call in reply.get("calls", []):
            if not call["tool"]:
                raise KeyError("no name")
        return super().calls_in(reply)


class Dropping(Plain):
    def calls_in(self, reply: Any) -> Any:
        return [call for call in super().calls_in(reply) if call.name]


class LastOnly(Plain):
    def results_for(self, answered: Any) -> Any:
        return super().results_for(answered)[-1:]


class Doubling(Plain):
    def results_for(self, answered: Any) -> Any:
        return super().results_for([each for each in answered for _ in (1, 2)])


class Disordered(Plain):
    def results_for(self, answered: Any) -> Any:
        return super().results_for(answered)[::-1]


class Indexing(Plain):
    def results_for(self, answered: Any) -> Any:
        return super().results_for([answered[n] for n in range(len(answered))])


class Chatty(Plain):
    def results_for(self, answered: Any) -> Any:
        return super().results_for(answered) or [{"by": "tool", "text": "nothing"}]


class FirstPart(Plain):
    def results_for(self, answered: Any) -> Any:
        shown = [(c, replace(r, content=r.parts[0].text) if r.parts else r) for c, r in answered]
        return super().results_for(shown)


class Unclean(Plain):
    def results_for(self, answered: Any) -> Any:
        return [{"by": "tool", "id": call.id, "text": result.content} for call, result in answered]


class Silent:
    tools_for = message_from = calls_in = Plain.tools_for


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Silent, r"has no results_for\(\)"),
        (Shuffling, "changes or moves an earlier tool"),
        (Unsteady, "other bytes for the same session"),
        (Partial, "does not give every tool"),
        (Twice, "gives a tool twice"),
        (OwnNames, "is not in its definition"),
        (Undescribed, "lacks the description, or its replacement `fallback_description`"),
        (Schemaless, "lacks the argument 'to'"),
        (Objects, "tools_for gives no dicts"),
        (Mute, r"a reply with calls is read as \[\]"),
        (Backwards, "a reply with calls is read as"),
        (Renumbering, "the ids of a reply are read as"),
        (Hearing, "a reply with text calls something"),
        (Trusting, "a call has an empty id"),
        (Random, "gives different answers for the same input"),
        (Disagreeing, "disagree on the ids"),
        (Greedy, "calls_in changes what it is passed|different answers"),
        (Forgetful, "message_from loses 'water_plants'"),
        (Raw, "message_from gives what cannot be sent"),
        (Nervous, "the reply .* raises KeyError"),
        (Dropping, "calls_in loses calls with hostile names"),
        (LastOnly, "gives a call 0 results, not one"),
        (Doubling, "gives a call 2 results, not one"),
        (Disordered, "does not keep the order"),
        (Indexing, "results_for|raises TypeError"),
        (Chatty, "messages where nothing was called"),
        (FirstPart, "results_for loses or repeats text around an image"),
        (Unclean, "results_for gives what cannot be sent"),
    ],
)
def test_a_broken_promise_is_named(broken: Callable[[], Any], promise: str) -> None:
    with pytest.raises(BrokenPromise, match=promise):
        prove(broken())


def plain_reply(written: Any) -> Reply:
    return Reply(written.get("text", ""), tuple(Plain().calls_in(written)), raw=Plain().message_from(written))


class Answering:
    """A model that is asked nothing: its provider's replies are written down."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self.replies = list(replies)

    def __call__(self, request: CallModel) -> Any:
        return plain_reply(self.replies.pop(0))


class Streaming(Answering):
    def __call__(self, request: CallModel) -> Iterator[TextDelta | Reply]:
        reply = plain_reply(self.replies.pop(0))
        yield from map(TextDelta, reply.text)
        yield reply


class Async(Answering):
    async def __call__(self, request: CallModel) -> Any:
        return plain_reply(self.replies.pop(0))


class AsyncStreaming(Answering):
    async def __call__(self, request: CallModel) -> Any:
        yield TextDelta("All")
        yield plain_reply(self.replies.pop(0))


@pytest.mark.parametrize("model", [Answering, Streaming, Async, AsyncStreaming])
def test_a_model_is_proved_with_its_wire(model: Any) -> None:
    prove(Plain(), model=model)


class Asking(Answering):
    """A model whose provider notes what it is asked; `lost` is what it leaves out of its requests."""

    requests: list[Any] = []  # noqa: RUF012 - as a server that all tests share
    lost = ""

    def __call__(self, request: CallModel) -> Any:
        messages: list[Any] = []
        for message in request.transcript:
            match message:
                case UserSaid():
                    messages.append({"by": "user", "text": message.text})
                case ModelReplied():
                    messages.append(message.raw)
                case Answers():
                    messages += [{"by": "tool", "id": each.call_id, "text": each.content} for each in message.results]
        self.requests.append(
            {
                "system": "" if self.lost == "system" else request.system,
                "tools": [] if self.lost == "tools" else [shown.name for shown in request.tools],
                "messages": [each for each in messages if each["by"] != self.lost],
            }
        )
        return super().__call__(request)


class Amnesic(Asking):
    lost = "tool"


class Impolite(Asking):
    lost = "user"


class Unguided(Asking):
    lost = "system"


class Toolless(Asking):
    lost = "tools"


class Unthinking(Asking):
    lost = "model"


def test_the_requests_of_a_model_are_proved_with_it() -> None:
    prove(Plain(), model=Asking, requests=lambda: Asking.requests)
    prove(Plain(), model=Amnesic)  # nobody can see it then


@pytest.mark.parametrize(
    ("model", "promise"),
    [
        (Amnesic, "a request lacks the result of a call"),
        (Impolite, "a request lacks what the user said"),
        (Unguided, "a request lacks the system text"),
        (Toolless, "a request lacks the tools"),
        (Unthinking, "a request lacks a call of the model"),
    ],
)
def test_what_a_request_lacks_is_named(model: Any, promise: str) -> None:
    with pytest.raises(BrokenPromise, match=promise):
        prove(Plain(), model=model, requests=lambda: Asking.requests)


class Misreading(Plain):
    def calls_in(self, reply: Any) -> Any:
        return reply["output"]


def test_what_raises_is_named_with_its_reply() -> None:
    with pytest.raises(
        BrokenPromise, match=r"calls_in\(\{'by': .*\) raises KeyError: 'output'. To see it: calls_in\(\)"
    ):
        prove(Misreading())


class Texting(Answering):
    def __call__(self, request: CallModel) -> Any:
        return "All done."


class Chunks(Answering):
    def __call__(self, request: CallModel) -> Any:
        yield "All"
        yield plain_reply(self.replies.pop(0))


class Deaf(Answering):
    def __call__(self, request: CallModel) -> Any:
        return Reply("All")


class NeverCalling(Answering):
    """Reads the text of a reply alone, and so ends a conversation with nothing."""

    def __call__(self, request: CallModel) -> Any:
        return Reply(self.replies.pop(0).get("text", ""))


@pytest.mark.parametrize(
    ("model", "promise"),
    [
        (Texting, "a model gives 'All done.' where a Reply is due"),
        (Chunks, "a model gives 'All' on the way"),
        (Deaf, "the text of a reply is 'All'"),
        (NeverCalling, "a conversation ends with ''"),
    ],
)
def test_what_a_model_breaks_is_named(model: Any, promise: str) -> None:
    with pytest.raises(BrokenPromise, match=promise):
        prove(Plain(), model=model)


# -- native delivery -------------------------------------------------------------------------------------------------


class Native(Plain):
    """Brings found tools by value."""

    native = NativeDelivery()

    def tools_for(self, session: Any) -> Any:
        return [self.define(shown) for shown in session.tools() if not shown.delivered]

    def define(self, shown: Any) -> Any:
        about = clean(shown.tool.description or shown.tool.fallback_description)
        return {"tool": shown.name, "about": about, "arguments": shown.tool.input_schema}

    def results_for(self, answered: Any) -> Any:
        pairs = list(answered)
        brought = [self.define(shown_of(loaded)) for _, result in pairs for loaded in result.loaded]
        return [*super().results_for(pairs), *([{"by": "tool", "brings": brought}] if brought else [])]


class Changing(Native):
    tools_for = Plain.tools_for


class Silent(Native):
    def results_for(self, answered: Any) -> Any:
        return Plain.results_for(self, answered)


class Hiding(Native):
    def tools_for(self, session: Any) -> Any:
        return [self.define(shown) for shown in session.tools() if session.mode != "native" or shown.built_in]


def test_a_wire_that_delivers_natively_passes() -> None:
    prove(Native())


@pytest.mark.parametrize(
    ("wire", "promise"),
    [
        (Changing(), "a search changes the tools of a request"),
        (Silent(), "results_for neither brings nor names the found tools"),
        (Hiding(), "a tool that no message brings is not listed"),
    ],
)
def test_a_wire_that_does_not_deliver_what_it_promises_is_named(wire: Any, promise: str) -> None:
    with pytest.raises(BrokenPromise, match=promise):
        prove(wire)
