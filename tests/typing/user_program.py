"""A program a user might write. test_typing.py checks it against the installed wheel; it is never run."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_type

from toolsearch import Agent, Caller, CallModel, Catalog, Paused, Reply, TextDelta, Tool, ToolSearch, tool
from toolsearch.calls import ToolCall, ToolResult
from toolsearch.errors import StateError
from toolsearch.events import Call, Round
from toolsearch.layers import approval, limits, retry
from toolsearch.protocols import JournalStore, Layer, Model, RoundSteps, ShowsTools, ToolSteps, Wire
from toolsearch.testing import ScriptedModel, check_layer, check_store, check_wire
from toolsearch.wires import anthropic, distinct_ids, exported, openai_chat


def get_weather(city: str, days: int = 1) -> str:
    """Forecast the weather of a city."""
    return f"{city}: sun for {days} days"


@tool
def ask_user(question: str) -> str:
    """Ask the user a question."""
    return question


plain: dict[str, Any] = {"name": "rotate_key", "description": "Rotate an API key", "input_schema": {"type": "object"}}
catalog = Catalog([get_weather, ask_user, plain])
search = ToolSearch(catalog, index="keyword", pinned=["ask_user"])

for hit in search.find("rotate an api key", limit=5):
    assert_type(hit.tool, Tool)
    assert_type(hit.tool.name, str)
    assert_type(hit.score, float)

session = search.session("conversation-42", caller=Caller(user="ana", roles={"support"}))
assert_type(session.instructions(), str)


def one_round(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """What goes back to an OpenAI model after its reply."""
    definitions = openai_chat.tools_for(session)
    assert_type(definitions, list[dict[str, Any]])
    answers = [(call, session.handle(call)) for call in openai_chat.calls_in(reply)]
    for call, result in answers:
        assert_type(call.name, str)
        assert result.status in ("ok", "failed")
    return [openai_chat.message_from(reply), *openai_chat.results_for(answers)]


async def one_round_of_claude(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """The same for an Anthropic model, with tools that are coroutines."""
    answers = [(call, await session.ahandle(call)) for call in anthropic.calls_in(reply)]
    return [anthropic.message_from(reply), *anthropic.results_for(answers)]


# -- plugs of the user's own -------------------------------------------------------------------------------------


class Quiet:
    """A layer: failures are short, and no round has more than ten calls."""

    name = "quiet"

    def around_round(self, calls: Round) -> RoundSteps:
        answers = {call.id: calls.call(call).answer("limit", "too many") for call in calls.calls[10:]}
        rest = yield calls.without(answers)
        return {**rest, **answers}

    def around_tool(self, call: Call) -> ToolSteps:
        result = yield call
        if isinstance(result, ToolResult) and not result.ok:
            return call.answer(result.status, result.content[:200])
        return result


class Shelf:
    """A store."""

    def __init__(self) -> None:
        self.journals: dict[str, list[str]] = {}

    def append(self, conversation_id: str, position: int, facts: Sequence[Mapping[str, Any]]) -> None:
        journal = self.journals.get(conversation_id, [])
        if len(journal) != position:
            raise StateError("somebody else wrote")
        self.journals[conversation_id] = journal + [json.dumps(fact) for fact in facts]

    def load(self, conversation_id: str) -> list[dict[str, Any]]:
        return [json.loads(fact) for fact in self.journals.get(conversation_id, [])]

    def delete(self, conversation_id: str) -> bool:
        return self.journals.pop(conversation_id, None) is not None

    def list(self) -> Iterable[str]:
        return self.journals.keys()


class Telegraph:
    """A wire."""

    def tools_for(self, session: ShowsTools) -> list[dict[str, Any]]:
        return [
            {"name": shown.name, "takes": exported(shown.tool.input_schema, "openai").schema}
            for shown in session.tools()
        ]

    def message_from(self, reply: dict[str, Any]) -> dict[str, Any]:
        return reply

    def calls_in(self, reply: dict[str, Any]) -> list[ToolCall]:
        calls: list[dict[str, Any]] = reply.get("calls", [])
        ids = distinct_ids([call.get("id") for call in calls], "call", reply)
        return [ToolCall(i, call["name"], call["given"]) for i, call in zip(ids, calls, strict=True)]

    def results_for(self, answered: Iterable[tuple[ToolCall, ToolResult]]) -> list[dict[str, Any]]:
        return [{"id": call.id, "text": result.content} for call, result in answered]


def telegraph(request: CallModel) -> Iterator[TextDelta | Reply]:
    """A model."""
    yield TextDelta("STOP")
    yield Reply(request.system + "STOP")


async def posted(request: CallModel) -> Reply:
    """A model that has to be awaited."""
    return Reply(request.system)


wire: Wire = Telegraph()
modules: list[Wire] = [openai_chat, anthropic, wire]
store: JournalStore = Shelf()
models: list[Model] = [telegraph, posted, ScriptedModel("Hello.")]
layers: list[Layer] = [limits(), retry(), approval(), Quiet()]
agents = [Agent(model, search, layers=layers, store=store, observe=print) for model in models]
result = agents[0].run("Hello", conversation_id="1")
if not isinstance(result, Paused):
    assert_type(result.text, str)


def written(calls: Sequence[ToolCall]) -> dict[str, Any]:
    return {"calls": [{"id": call.id, "name": call.name, "given": call.arguments} for call in calls]}


check_store(Shelf)
check_layer(Quiet)
check_layer(lambda: limits(soft=3))
check_wire(wire, reply_with_calls=written, reply_with_text=lambda text: {"text": text})
