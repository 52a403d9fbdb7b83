"""The requests of a conversation keep their beginning: every mode, every wire, whole and streamed, over three turns.

J50: in the mode "native" the tools of a request keep their bytes, and the provider refuses nothing.
"""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from anthropic import Anthropic
from google import genai
from google.genai.types import HttpOptions
from ollama import Client as OllamaClient
from openai import OpenAI

from toolsearch import Agent, ToolSearch
from toolsearch.events import Answers
from toolsearch.layers import memory
from toolsearch.stores import MemoryStore
from toolsearch.testing import LoopbackProvider, assert_prefix_stable
from toolsearch.wires import anthropic, gemini, ollama, openai_chat, openai_responses

Mode = Literal["static", "append", "bridge", "native", "compact"]
MODES: tuple[Mode, ...] = ("static", "append", "bridge", "native", "compact")
FILLERS = [f"{verb}_{thing}" for verb in ("paint", "lend", "sort", "weigh") for thing in ("fence", "book", "apple")]


def chat(url: str, stream: bool) -> Any:
    return openai_chat.model(OpenAI(api_key="none", base_url=url, max_retries=0), "m", stream=stream)


def responses(url: str, stream: bool) -> Any:
    return openai_responses.model(OpenAI(api_key="none", base_url=url, max_retries=0), "m", stream=stream)


def messages(url: str, stream: bool, **options: Any) -> Any:
    client = Anthropic(api_key="none", base_url=url, max_retries=0)
    return anthropic.model(client, "m", stream=stream, **options)


def messages_cached(url: str, stream: bool) -> Any:
    return messages(url, stream, cache="5m")


def messages_by_addition(url: str, stream: bool) -> Any:
    return messages(url, stream, additions=True)


def contents(url: str, stream: bool) -> Any:
    return gemini.model(genai.Client(api_key="none", http_options=HttpOptions(base_url=url)), "m", stream=stream)


def ollama_chat(url: str, stream: bool) -> Any:
    return ollama.model(OllamaClient(host=url), "m", stream=stream)


WIRES = [chat, responses, messages, messages_cached, messages_by_addition, contents, ollama_chat]


def tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    return {"name": name, "description": f"{name.replace('_', ' ').capitalize()}.", "input_schema": schema,
            "run": lambda what: f"{name}: {what}"}  # fmt: skip


def search() -> list[dict[str, Any]]:
    return [tool(name) for name in ("rotate_key", "water_plants", "book_room", *FILLERS)]


def script(mode: Mode) -> list[Any]:
    def call(call_id: str, name: str, what: str) -> tuple[str, str, dict[str, Any]]:
        if mode in ("bridge", "compact"):
            return call_id, "call_tool", {"name": name, "arguments": {"what": what}}
        return call_id, name, {"what": what}

    def find(call_id: str, *queries: str) -> Any:
        return [(call_id, "search_tools", {"queries": [*queries]})]

    steps: list[Any] = [
        find("c1", "rotate key"), [call("c2", "rotate_key", "billing")], "Rotated.",
        find("c3", "water plants", "book room"),
        [call("c4", "water_plants", "balcony"), call("c5", "book_room", "7")], "Watered and booked.",
        ["Once more. ", call("c6", "rotate_key", "mail")], find("c7", "no such thing at all"), "Done.",
    ]  # fmt: skip
    if mode in ("static", "compact"):  # nothing is searched
        steps = [step for step in steps if isinstance(step, str) or "search_tools" not in str(step)]
    return steps


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", WIRES)
def test_requests_begin_as_the_one_before(make: Callable[[str, bool], Any], mode: Mode, stream: bool) -> None:
    with LoopbackProvider(script(mode)) as provider:
        model = make(provider.url, stream)
        found = ToolSearch(search(), index="keyword", mode=mode, results=1, pinned=["sort_book"])
        agent = Agent(model, found, system="Be brief.")
        said = [agent.run(text, conversation_id="c").text for text in ("Leak!", "Plants?", "Again.")]  # type: ignore[union-attr]
        why = agent.conversation("c").session.why()
    assert (said, provider.refusals) == (["Rotated.", "Watered and booked.", "Done."], [])
    delivered: Mode = "append" if mode == "native" and getattr(model, "native", None) is None else mode
    assert delivered == mode or "cannot deliver natively" in why
    assert_prefix_stable(provider.requests, mode=delivered)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_moves_from_provider_to_provider_and_ends(stream: bool) -> None:
    """Each turn on another wire: what was found goes along, and no provider refuses anything."""
    said = [
        [("c1", "search_tools", {"queries": ["rotate key"]})], [("c2", "rotate_key", {"what": "billing"})], "One.",
        [("c3", "rotate_key", {"what": "mail"}), ("c4", "search_tools", {"queries": ["water plants"]})], "Two.",
        [("c5", "water_plants", {"what": "balcony"}), ("c6", "rotate_key", {"what": "web"})], "Three.",
        [("c7", "water_plants", {"what": "hall"})], [("c8", "search_tools", {"queries": ["book room"]})], "Four.",
        [("c9", "book_room", {"what": "7"}), ("c10", "rotate_key", {"what": "x"})], "Five.",
        [("c11", "book_room", {"what": "8"})], "Six.", [("c12", "water_plants", {"what": "roof"})], "Seven.",
    ]  # fmt: skip
    makes = [messages, responses, contents, messages, chat, ollama_chat, messages_by_addition]
    store = MemoryStore()
    found = ToolSearch(search(), index="keyword", mode="native", results=1)
    with LoopbackProvider(said) as provider:
        ended = []
        for make in makes:
            agent = Agent(make(provider.url, stream), found, layers=[memory(store)])
            ended.append(agent.run("Go on.", conversation_id="c").text)  # type: ignore[union-attr]
        answers = [result for each in agent.conversation("c").transcript if isinstance(each, Answers)
                   for result in each.results]  # fmt: skip
    assert ended == ["One.", "Two.", "Three.", "Four.", "Five.", "Six.", "Seven."]
    assert provider.refusals == []
    assert {answer.status for answer in answers} == {"ok"}
