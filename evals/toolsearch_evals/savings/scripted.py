"""A scripted model in a real session: it plays a conversation through a wire, and every request is counted.

It knows which tools are right, and never calls another one. So this compares what the requests carry and whether the
search finds the right tools; it does not compare how well a model reads long lists of tools.

With search, a turn goes like this: the model calls the tools that are loaded already, those that came with the user's
message (the setting `preselect`) among them. For the rest it makes one search call, with a query for each capability.
If an answer only names a right tool, the model recognises it with a given probability; then it calls the tool by this
name, which loads it, and calls it again with arguments that fit. A right name in the directory of the instructions is
recognised as often, and loaded by a query for this name. A miss costs a second search with the same words and a larger
limit, and a third with the content words alone; then the model says that it cannot do it. In static mode, every
definition is in every request, and the right tool is called at once. A request that no tool can meet costs one search,
and then the answer that no tool can do it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

from toolsearch import Session, Tool, ToolCall, ToolContext, ToolResult, ToolSearch
from toolsearch_evals.data.argument_maker import smallest_arguments
from toolsearch_evals.data.cases import Case
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.played import PlayedConversation, PlayedRequest, PlayedTurn
from toolsearch_evals.token_usage import ConversationMeter, TokenMeter

__all__ = ["RECOGNISED", "PlayedConversation", "PlayedRequest", "PlayedTurn", "answer", "play"]

RECOGNISED = 0.7  # how often a model takes a right tool of which it has read only the name: a guess, not measured

MISFIT = 0.3  # how often the first call misfits of a tool of which the model has read only the signature: a guess

SYSTEM = "You are a helpful assistant. Use the tools to do what the user asks. Be brief, and say what you did."
MORE = 20  # tools that a second search asks for; it gets fewer
DONE = "Done. I have taken care of it; the details are in the result above. Tell me if you want anything changed."
NO_TOOL = "I am sorry: none of my tools can do this, so I have not done it. Is there something else I can help with?"
# What every tool returns: about sixty tokens, like a small record.
RESULT = {
    "status": "ok",
    "id": "rec_48213",
    "title": "Quarterly review",
    "owner": "Ana Ruiz",
    "created": "2026-03-02T09:30:00Z",
    "items": [{"name": "first", "value": 12}, {"name": "second", "value": 7}],
}
_STOP = frozenset(
    "a about all also an and any are as at be been before but by can could did do does for from get give has have he "
    "her hi his how i if in into is it its just let like make may me more my need no not now of on one or our out "
    "please she so some that the their them then there these they this those to up us want was we were what when where "
    "which who why will with would you your".split()
)


def play(
    search: ToolSearch,
    cases: Sequence[Case],
    form: WireFormat,
    meter: TokenMeter,
    *,
    one_by_one: bool = False,
    recognised: float = RECOGNISED,
) -> PlayedConversation:
    """Plays the cases as successive turns of one new session of `search`, in its mode.

    The tools a turn needs are called together in one reply, or `one_by_one`, which takes a request for each. A right
    tool that is only named is `recognised` with this probability; it depends on the case alone, not on the session.
    """
    talk = _ModelSession(search, form, meter)
    for case in cases:
        searches, requests = talk.searches, len(talk.requests)
        served = _play_turn(talk, case, recognised, one_by_one)
        turn = PlayedTurn(case, served, talk.searches - searches, tuple(talk.requests[requests:]))
        talk.played.turns.append(turn)
    return talk.played


def _unchanged(request: dict[str, Any]) -> dict[str, Any]:
    return request


class _ModelSession:
    """The conversation so far; the model replies to it with text or with calls."""

    def __init__(self, search: ToolSearch, form: WireFormat, meter: TokenMeter) -> None:
        self.search = search
        self.session: Session = search.session(wire=form.wire)
        self.played = PlayedConversation()
        self.searches = 0
        self.requests: list[PlayedRequest] = []
        self.can_call: frozenset[str] = frozenset()
        self.named: set[str] = set()  # ids of tools of which the model has read the name, but no schema
        self._form, self._meter = form, ConversationMeter(meter)
        self._in_context = form.in_context() if form.in_context is not None else _unchanged
        self._read_schemas: set[str] = set()  # in compact: ids of tools that the model has called
        instructions = self.session.instructions()
        self.listed = self._listed(instructions) if self.session.has_directory else frozenset[str]()
        self._system = "\n\n".join(filter(None, (SYSTEM, instructions)))
        self._messages: list[dict[str, Any]] = []
        self._tools: Sequence[dict[str, Any]] = []
        self._tools_before: Sequence[dict[str, Any]] | None = None
        self._fixed = 0  # tokens of the tools and the system message

    def _listed(self, instructions: str) -> frozenset[str]:
        """The ids of the tools whose names stand in the instructions."""
        words = {*re.findall(r"[\w.-]+", instructions)}
        return frozenset(tool.id for tool in self.search.catalog if self.search.catalog.provider_name(tool.id) in words)

    def user(self, text: str) -> None:
        before = {tool.id for tool in self.session.loaded}
        text += self.session.preselect(text)
        new = [tool.id for tool in self.session.loaded if tool.id not in before]
        brought = self.session.brought_with_message(new) if self._form.with_tools is not None else ()
        if brought and self._form.with_tools is not None:
            self._messages += self._form.with_tools(text, brought)
        else:
            self._messages.append(self._form.user_message(text))
        self._look()

    def _look(self) -> None:
        """Notes what the next request will carry, and so what the model can call in its reply."""
        if self.session.mode != "static" or not self._tools:  # else they never change
            self._tools = self._form.wire.tools_for(self.session)
        self.can_call = frozenset(tool.id for tool in self.session.loaded)

    def say(self, text: str) -> None:
        self._send(self._form.reply_with_text(text))

    def call(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> list[ToolResult]:
        """The model calls tools by name; the session answers, and the answers go back with the next request."""
        number = len(self.requests) + 1
        written = [ToolCall(f"call_{number}_{at}", *call) for at, call in enumerate(calls, 1)]
        made = self._form.reply_with_calls(written)
        if self._form.of_brought is not None:
            made = self._form.of_brought(made, {each.name for each in self.session.shown() if each.delivered})
        reply = self._send(made)
        answered = [(call, self.session.handle(call)) for call in self._form.wire.calls_in(reply)]
        self._messages += self._form.wire.results_for(answered)
        for _, result in answered:
            self._read(result)
        self._look()
        return [result for _, result in answered]

    def _read(self, result: ToolResult) -> None:
        """Notes which tools an answer of the search tool names without loading them."""
        found: dict[str, Any] = result.data if isinstance(result.data, dict) else {}
        if result.name == self.search.settings.search_tool:
            self.named.update(found.get("named", ()))

    def _send(self, reply: dict[str, Any]) -> dict[str, Any]:
        sent = self._form.request(self._tools, self._system, self._messages)
        whole, shared = self._meter.request(self._in_context(sent))
        changed = self._tools_before is not None and self._tools != self._tools_before
        if changed or self._tools_before is None:
            self._fixed = self._meter.start(self._in_context(self._form.request(self._tools, self._system, [])))
        self.requests.append(PlayedRequest(whole, shared, self._fixed, self._meter.reply(reply), changed))
        self._tools_before = list(self._tools)
        made = self._form.wire.message_from(reply)
        self._messages += made if isinstance(made, list) else [made]
        return reply

    @property
    def can_search(self) -> bool:
        return any(each.name == self.search.settings.search_tool for each in self.session.shown())

    def misfits(self, tool: Tool, case: Case) -> bool:
        """Whether the first call of a tool whose schema the model has not read misses an argument."""
        if self.session.mode != "compact" or tool.id in self._read_schemas or not tool.input_schema.get("required"):
            return False
        self._read_schemas.add(tool.id)
        return random.Random(f"{case.id} {tool.id}").random() < MISFIT


def _play_turn(talk: _ModelSession, case: Case, recognised: float, one_by_one: bool) -> bool:
    talk.user(case.query)
    if not case.gold:
        if talk.can_search:
            _search(talk, [case.query])
        talk.say(NO_TOOL)
        return False
    ran = set[str]() if talk.session.mode == "static" else _look_for_tools(talk, case, recognised)
    wanted = [next((i for i in group if i in talk.can_call), None) for group in case.gold]
    found = [talk.search.catalog[i] for i in dict.fromkeys(wanted) if i is not None and i not in ran]
    replies = [[tool] for tool in found] if one_by_one else [found] if found else []
    for tools in replies:
        if wrong := [tool for tool in tools if talk.misfits(tool, case)]:
            talk.call([_call_of(talk, tool.id, {}) for tool in wrong])
    ran_well = [_use(talk, tools) for tools in replies]
    served = all(ran_well) and None not in wanted
    talk.say(DONE if served else NO_TOOL)
    return served


def _look_for_tools(talk: _ModelSession, case: Case, recognised: float) -> set[str]:
    """Loads what the case needs: by names that the model recognises, and by up to three searches.

    Returns the ids of the tools that have run meanwhile.
    """
    ran = _load_by_name(talk, case, recognised)
    for attempt in range(3):
        missing = _missing(talk, case)
        if not missing:
            break
        asked = [case.steps[at] for at in missing] if case.steps else [case.query]
        if attempt == 2:
            asked = [content_words(query) for query in asked]
        _search(talk, asked, MORE if attempt else None)
        ran |= _load_by_name(talk, case, recognised)
    return ran


def _missing(talk: _ModelSession, case: Case) -> list[int]:
    """The places of the groups of which no tool is loaded."""
    return [at for at, group in enumerate(case.gold) if talk.can_call.isdisjoint(group)]


def _load_by_name(talk: _ModelSession, case: Case, recognised: float) -> set[str]:
    """Loads needed tools by names that the model has read and recognises.

    A name of the directory is searched; one of an answer is called, without arguments as no schema is known. Returns
    the ids of the tools that ran all the same, which takes `not_loaded="run"`.
    """
    known: dict[str, None] = {}
    for at in _missing(talk, case):
        named = next((i for i in case.gold[at] if i in talk.named or i in talk.listed), None)
        if named is not None and random.Random(f"{case.id} {at}").random() < recognised:
            known[named] = None
    if not known:
        return set()
    if talk.search.settings.not_loaded == "refuse" or talk.listed.intersection(known):
        names = map(talk.search.catalog.provider_name, known)
        _search(talk, [f"select:{','.join(names)}"])
        return set()
    talk.named -= known.keys()
    results = talk.call([_call_of(talk, tool_id, {}) for tool_id in known])
    return {tool_id for tool_id, result in zip(known, results, strict=True) if result.ok}


def _search(talk: _ModelSession, queries: Sequence[str], limit: int | None = None) -> None:
    arguments: dict[str, Any] = {"queries": list(queries)}
    if limit is not None:
        arguments["limit"] = limit
    talk.searches += 1
    for result in talk.call([(talk.search.settings.search_tool, arguments)]):
        if not result.ok:
            talk.played.refused.append(f"{result.name}: {result.content}")


def _use(talk: _ModelSession, tools: Sequence[Tool]) -> bool:
    """Calls tools in one reply. True if all of them ran."""
    results = talk.call([_call_of(talk, tool.id, smallest_arguments(tool.input_schema)) for tool in tools])
    talk.played.refused += [f"{result.name}: {result.content}" for result in results if not result.ok]
    return all(result.ok for result in results)


def _call_of(talk: _ModelSession, tool_id: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A call of a tool as the model writes it in the session's mode."""
    name = talk.search.catalog.provider_name(tool_id)
    if talk.session.mode in ("bridge", "compact"):
        return talk.search.settings.call_tool, {"name": name, "arguments": arguments}
    return name, arguments


def content_words(query: str) -> str:
    """The words of a query that carry meaning, in order; the whole query if none does."""
    words = re.findall(r"[^\W_][\w'-]*", query)
    return " ".join(word for word in words if word.lower() not in _STOP) or query


def answer(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> str:
    """What every scripted tool returns."""
    del tool, arguments, context
    return json.dumps(RESULT)
