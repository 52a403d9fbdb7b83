"""The kit that proves a wire: `check_wire(my_wire, reply_with_calls=…, reply_with_text=…)`."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeAlias

from toolsearch import Session, ToolSearch
from toolsearch.calls import ImagePart, Status, TextPart, ToolCall, ToolResult, native_of
from toolsearch.calls.parts import text_of_parts
from toolsearch.events.facts import Reply, TextDelta, UserSaid
from toolsearch.events.requests import CallModel, Finished
from toolsearch.loop.agent import Agent
from toolsearch.protocols import Model, Wire
from toolsearch.support.checks import shown
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.doubles import FixedIndex
from toolsearch.testing.promises import guarded, is_sendable, require

__all__ = ["check_reading", "check_wire"]

WritesCalls: TypeAlias = Callable[[Sequence[ToolCall]], JsonObject]
WritesText: TypeAlias = Callable[[str], JsonObject]
MakesModel: TypeAlias = Callable[[Sequence[JsonObject]], Model]
GivesRequests: TypeAlias = Callable[[], Sequence[JsonObject]]

METHODS = ("tools_for", "message_from", "calls_in", "results_for")
_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EITHER = {"anyOf": [{"properties": {"text": {"type": "string"}}}, {"properties": {"url": {"type": "string"}}}]}


def _look(**arguments: object) -> str:
    return f"looked for {sorted(arguments)}"


_TOOLS: tuple[JsonObject, ...] = (
    {
        "name": "send_mail",
        "server": "post",
        "description": "Send a mail.",
        "input_schema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
        "run": _look,
    },
    {"name": "send_mail", "server": "other", "description": "Send a mail too.", "run": _look},
    {"name": "wétter für morgen!", "description": "Weather \ud800 🙂 \u0000 \u202e", "run": _look},
    {"name": "water_plants", "description": "", "run": _look},
    {"name": "n" * 90, "description": "A long name.", "run": _look},
    {"name": "publish", "description": "Publish it. " * 400, "input_schema": _EITHER, "run": _look},
)
_ARGUMENTS: tuple[JsonObject, ...] = (
    {"to": "\ud800 lone"}, {"": ""}, {"to": "x" * 100_000}, {"to": ["天气🙂", {"deep": [None, True, 1.5]}]}, {},
)  # fmt: skip
_SYSTEM, _SAID = "Be kind to every plant.", "Water all the plants, twice."
_NAMES = ("send_mail", "", "no such tool!", "\ud800", "n" * 300)
_CONTENTS = ("plain", "", " ", "\ud800 lone", "x" * 200_000, "\u0000", '{"a": "\\"}', "天气🙂")


def check_wire(
    wire: Wire,
    *,
    reply_with_calls: WritesCalls,
    reply_with_text: WritesText,
    model: MakesModel | None = None,
    requests: GivesRequests | None = None,
) -> None:
    """Raises `BrokenPromise`, saying which promise of `Wire` is broken and how to see it; returns if all hold.

    `reply_with_calls` and `reply_with_text` write a reply as the provider does, as a dict. `model`, where there is one,
    takes such replies and gives a model whose provider answers with them, in turn; it is then asked by an agent, with
    `run` and with `arun`. `requests` gives all requests that this provider has received, as dicts; it is then checked
    that they hold what was said.
    """
    for name in METHODS:
        require(callable(getattr(wire, name, None)), f"{shown(wire)} has no {name}()", "Wire in toolsearch.protocols")
    with guarded("an ordinary call"):
        _shows_tools(wire)
        check_reading(wire, reply_with_calls, reply_with_text)
        _gives_distinct_ids(wire, reply_with_calls)
        _keeps_what_was_said(wire, reply_with_calls, reply_with_text)
        _survives(wire, reply_with_calls, reply_with_text)
        _carries_results(wire)
        _delivers_natively(wire)
        if model is not None:
            _answers_an_agent(model, reply_with_calls, reply_with_text, requests)


def _steady(name: str, function: Callable[[Any], Any], value: Any) -> Any:
    """What a function of the wire gives, where it gives the same twice and leaves what it was passed as it was."""
    before = copy.deepcopy(value)
    with guarded(f"{name}({shown(value)})"):
        first, second = function(value), function(value)
    require(
        first == second, f"{name} gives different answers for the same input", f"{shown(first)}, then {shown(second)}"
    )
    require(value == before, f"{name} changes what it is passed", f"{name}({shown(before)})")
    return first


def _are(kind: type, values: object) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(each, kind) for each in values)


def _search(mode: Literal["append", "native"] = "append") -> tuple[ToolSearch, list[str]]:
    index = FixedIndex({})
    search = ToolSearch(_TOOLS, index=index, mode=mode, results=50)
    ids = [tool.id for tool in search.catalog]
    index.answers |= {"first": ids[:1], "all": ids[1:]}
    return search, ids


def _find(session: Session, query: str) -> None:
    session.handle(ToolCall(query, "search_tools", {"queries": [query]}))


# -- tools -------------------------------------------------------------------------------------------------------


def _shows_tools(wire: Wire) -> None:
    search, ids = _search()
    session = search.session()
    before: list[str] = []
    for query in (None, "first", "all"):
        if query is not None:
            _find(session, query)
        tools = wire.tools_for(session)
        see = f"tools_for(session) gave {shown(tools)}"
        require(_are(dict, tools), "tools_for gives no dicts", see)
        require(is_sendable(tools), "tools_for gives what is no JSON in valid UTF-8", see)
        texts = [json.dumps(each) for each in tools]
        same = texts == [json.dumps(each) for each in wire.tools_for(session)]
        require(same, "tools_for gives other bytes for the same session", "tools_for(session) twice")
        see = f"search for {query!r}, then tools_for(session): {shown(tools)}"
        promise = "tools_for changes or moves an earlier tool: found tools come at the end, the rest keeps its bytes"
        require(texts[: len(before)] == before, promise, see)
        require(len({*texts}) == len(texts), "tools_for gives a tool twice", see)
        before = texts
    _defines(wire, session, len(ids))


def _defines(wire: Wire, session: Session, tools: int) -> None:
    shown_tools, definitions = session.tools(), wire.tools_for(session)
    see = f"session.tools() has {len(shown_tools)}, tools_for(session) {len(definitions)}"
    require(len(definitions) == len(shown_tools) > tools, "tools_for does not give every tool of the session", see)
    for one, definition in zip(shown_tools, definitions, strict=True):
        texts = [*_texts(definition)]
        see = f"the definition of {one.tool.id[:40]!r} is {shown(definition)}"
        promise = f"the name {one.name!r} is not in its definition: handle() knows a tool by this name, and no other"
        require(one.name in texts and _LEGAL.fullmatch(one.name), promise, see)
        described = one.tool.description or one.tool.fallback_description
        found = any(described[:40].strip() in text for text in texts)
        require(found, "a definition lacks the description, or its replacement `fallback_description`", see)
        for name in ("to", "text", "url"):
            if f'"{name}"' in json.dumps(one.tool.input_schema):
                require(f'"{name}"' in json.dumps(definition), f"the definition lacks the argument {name!r}", see)


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value that is no key."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


# -- replies -----------------------------------------------------------------------------------------------------


def check_reading(wire: Wire, reply_with_calls: WritesCalls, reply_with_text: WritesText) -> None:
    """Checks that replies are read as they were written. A part of `check_wire`."""
    calls = [ToolCall("call_1", "send_mail", {"to": "ana"}), ToolCall("call_2", "water_plants", {}),
             ToolCall("call_3", "send_mail", {"to": "bo"})]  # fmt: skip
    reply = reply_with_calls(calls)
    read = _steady("calls_in", wire.calls_in, reply)
    see = f"calls_in({shown(reply)}) gave {shown(read)}"
    require(_are(ToolCall, read), "calls_in gives no calls", see)
    plain = [(call.name, _object(call.arguments)) for call in read]
    wanted = [(call.name, call.arguments) for call in calls]
    require(plain == wanted, f"a reply with calls is read as {plain}", see)
    if all(call.id in [*_texts(reply)] for call in calls):
        ids = [call.id for call in read]
        require(ids == [call.id for call in calls], f"the ids of a reply are read as {ids}", see)
    spoken = reply_with_text("All done.")
    require("All done." in [*_texts(spoken)], "reply_with_text does not hold the text", shown(spoken))
    found = _steady("calls_in", wire.calls_in, spoken)
    require(not found, "a reply with text calls something", f"calls_in({shown(spoken)}) gave {shown(found)}")


def _object(arguments: str | JsonObject | None) -> object:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def _gives_distinct_ids(wire: Wire, reply_with_calls: WritesCalls) -> None:
    for ids in (("", "", ""), ("a", "a", "b"), ("", "a", "a")):
        reply = reply_with_calls([ToolCall(each, "send_mail", {"to": "ana"}) for each in ids])
        read = [call.id for call in _steady("calls_in", wire.calls_in, reply)]
        see = f"calls with the ids {ids} are read with the ids {read}; distinct_ids in toolsearch.wires makes them"
        require(all(isinstance(each, str) and each for each in read), "a call has an empty id", see)
        require(len({*read}) == len(ids), "two calls have one id", see)
        message = [*_texts(wire.message_from(reply))]
        if "a" in ids and "a" in message:  # the provider's format has ids
            lost = [each for each in read if each not in message]
            promise = "message_from and calls_in disagree on the ids of the calls"
            require(not lost, promise, f"{see}; the message lacks {lost}")


def _keeps_what_was_said(wire: Wire, reply_with_calls: WritesCalls, reply_with_text: WritesText) -> None:
    calls = [ToolCall("c1", "send_mail", {"to": "ana"}), ToolCall("c2", "water_plants", {"to": "bo"})]
    for reply, parts in ((reply_with_calls(calls), ("send_mail", "water_plants", "ana", "bo")),
                         (reply_with_text("All done."), ("All done.",))):  # fmt: skip
        message = _steady("message_from", wire.message_from, reply)
        see = f"message_from({shown(reply)}) gave {shown(message)}"
        messages = message if isinstance(message, list) else [message]
        require(_are(dict, messages), "message_from gives neither a dict nor a list of dicts", see)
        require(is_sendable(message), "message_from gives what is no JSON in valid UTF-8", see)
        text = json.dumps(message)
        for part in parts:
            require(part in text, f"message_from loses {part!r} of the reply", see)


def _survives(wire: Wire, reply_with_calls: WritesCalls, reply_with_text: WritesText) -> None:
    """What models write: names that nobody has, lone surrogates, nothing, too much."""
    calls = [ToolCall("c", name, arguments) for name in _NAMES for arguments in _ARGUMENTS]
    replies = [reply_with_calls(calls), reply_with_calls([]), *map(reply_with_text, _CONTENTS)]
    for reply in replies:
        with guarded(f"the reply {shown(reply)}"):
            read = wire.calls_in(reply)
            message = wire.message_from(reply)
            results = wire.results_for([(call, ToolResult(call.id, call.name, "unknown", "no")) for call in read])
        see = f"the reply {shown(reply)}; clean and clean_json in toolsearch.wires replace what cannot be sent"
        require(is_sendable(message), "message_from gives what cannot be sent, for hostile texts", see)
        require(is_sendable(results), "results_for gives what cannot be sent, for hostile texts", see)
    read = wire.calls_in(replies[0])
    require(
        len(read) == len(calls), "calls_in loses calls with hostile names or arguments", f"{len(read)} of {len(calls)}"
    )


def _carries_results(wire: Wire) -> None:
    statuses: tuple[Status, ...] = ("ok", "failed", "ok")
    answered = [
        (ToolCall(f"c{n}", "send_mail"), ToolResult(f"c{n}", "send_mail", status, f"result-{n}-of-it"))
        for n, status in enumerate(statuses)
    ]
    messages = _steady("results_for", wire.results_for, answered)
    text = json.dumps(messages)
    see = f"results_for of three calls gave {shown(messages)}"
    require(
        _are(dict, messages),
        "results_for gives no dicts",
        see,
    )
    for _, result in answered:
        times = text.count(result.content)
        require(times == 1, f"results_for gives a call {times} results, not one", see)
    places = [text.index(result.content) for _, result in answered]
    require(places == sorted(places), "results_for does not keep the order of the calls", see)
    require(
        wire.results_for(iter(answered)) == messages, "results_for needs a list: any iterable will do", "an iterator"
    )
    require(not wire.results_for([]), "results_for gives messages where nothing was called", "results_for([])")
    image = ImagePart("iVBORw0KGgoAAAAN", "image/png")
    parts = (TextPart("begins"), image, TextPart("ends"))
    result = ToolResult("c", "look", "ok", text_of_parts(parts), parts=parts)
    with guarded("a result with an image"):
        messages = wire.results_for([(ToolCall("c", "look"), result)])
    see = f"a result of two texts with an image between them gave {shown(messages)}"
    require(is_sendable(messages), "results_for gives what cannot be sent, for a result with an image", see)
    told = " ".join(_texts(messages))
    require(told.count("begins") == told.count("ends") == 1, "results_for loses or repeats text around an image", see)
    for content in _CONTENTS:
        with guarded(f"the result {shown(content)}"):
            messages = wire.results_for([(ToolCall("c", "look"), ToolResult("c", "look", "ok", content))])
        see = f"the result {shown(content)}"
        require(is_sendable(messages), "results_for gives what cannot be sent, for hostile texts", see)


def _delivers_natively(wire: Wire) -> None:
    """Where the wire says that it does: a result brings what a search found, and the tools keep their bytes."""
    if native_of(wire) is None:
        return
    search, _ = _search("native")
    session = search.session(wire=wire)
    before = wire.tools_for(session)
    calls = [ToolCall(query, "search_tools", {"queries": [query]}) for query in ("first", "all")]
    answered = [(call, session.handle(call)) for call in calls]
    messages = _steady("results_for", wire.results_for, answered)
    see = f"mode='native', two searches, results_for of both: {shown(messages)}"
    require(is_sendable(messages), "results_for gives what cannot be sent, for results that bring tools", see)
    told = [*_texts(messages)]
    lost = [loaded.name for _, result in answered for loaded in result.loaded if loaded.name not in told]
    require(not lost, f"results_for neither brings nor names the found tools {lost}", see)
    after = wire.tools_for(session)
    see = f"mode='native', tools_for(session) before a search, and after: {shown(after)}"
    require(
        json.dumps(before) == json.dumps(after), "in the mode 'native' a search changes the tools of a request", see
    )
    session.after_compaction()
    listed = [*_texts(wire.tools_for(session))]
    see = "mode='native', two searches, session.after_compaction(), tools_for(session)"
    require(all(shown.name in listed for shown in session.tools()), "a tool that no message brings is not listed", see)


# -- a model -----------------------------------------------------------------------------------------------------


def _answers_an_agent(
    model: MakesModel,
    reply_with_calls: WritesCalls,
    reply_with_text: WritesText,
    requests: GivesRequests | None,
) -> None:
    replies = [
        reply_with_calls([ToolCall("a", "search_tools", {"queries": ["all"]})]),
        reply_with_calls(
            [ToolCall("b", "water_plants", {"where": "balcony"}), ToolCall("c", "water_plants", {"where": "kitchen"})]
        ),
        reply_with_text("All done."),
    ]
    reply, is_async = _ask(model(replies[-1:]))
    see = "model(replies)(CallModel(…)), and what it gives last"
    require(isinstance(reply, Reply), f"a model gives {shown(reply)} where a Reply is due", see)
    text = getattr(reply, "text", "")
    require(text == "All done.", f"the text of a reply is {shown(text)}, not 'All done.'", see)
    for way in ("arun",) if is_async else ("run", "arun"):
        agent = Agent(model(replies), _search()[0], system=_SYSTEM)
        if way == "run":
            result = agent.run(_SAID, conversation_id="s")
        else:
            with ThreadPoolExecutor(1) as pool:  # the caller may be in an event loop of its own
                result = pool.submit(asyncio.run, agent.arun(_SAID, conversation_id="s")).result()
        ended = result.text if isinstance(result, Finished) else "a pause"
        see = f"agent.{way}(…): a search, two calls, an answer"
        require(ended == "All done.", f"a conversation ends with {ended!r}, not with the model's answer", see)
        if requests is not None:
            _tells_the_provider(requests())


def _tells_the_provider(requests: Sequence[JsonObject]) -> None:
    """The first request holds the tools, and the last one all that was said, called and answered."""
    require(len(requests) > 2, f"requests() gives {len(requests)} requests, where the model was asked three times")
    first, last = requests[-3], requests[-1]
    result = _look(where="")
    see = f"the first request of a conversation: {shown(first)}"
    require("search_tools" in _texts(first), "a request lacks the tools", see)
    held = (
        ("the system text", _SYSTEM),
        ("what the user said", _SAID),
        ("a call of the model", "balcony"),
        ("a call of the model", "kitchen"),
        ("the result of a call", result),
    )
    for what, text in held:
        see = f"a search, two calls, an answer; {text!r} has to be in the last request: {shown(last)}"
        require(any(text in each for each in _texts(last)), f"a request lacks {what}", see)
    times = sum(each.count(result) for each in _texts(last))
    require(times == 2, f"a request has the results of two calls {times} times", shown(last))


def _ask(model: Model) -> tuple[object, bool]:
    """The last that a model gives, and whether it has to be awaited."""
    answer = model(CallModel((UserSaid("Hello"),)))
    if isinstance(answer, Awaitable) or hasattr(answer, "__aiter__"):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, _last_of(answer)).result(), True
    last: object = answer
    if isinstance(answer, Iterator):
        for last in answer:
            require(
                isinstance(last, TextDelta | Reply), f"a model gives {shown(last)} on the way", "TextDelta, then Reply"
            )
    return last, False


async def _last_of(answer: object) -> object:
    """What an async answer comes to: its last item, or the answer itself."""
    received: object = await answer if isinstance(answer, Awaitable) else answer
    if not isinstance(received, AsyncIterator):
        return received
    last: object = None
    async for last in received:
        require(isinstance(last, TextDelta | Reply), f"a model gives {shown(last)} on the way", "TextDelta, then Reply")
    return last
