"""A program a user might write. test_typing.py checks it against the installed wheel; it is never run."""

from typing import Any, assert_type

from toolsearch import Caller, Catalog, Tool, ToolSearch, tool
from toolsearch.wires import anthropic, openai_chat


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
