"""One conversation that begins with Anthropic, moves to OpenAI in the middle of a turn, and is finished by Gemini.

Each provider is the strict one on this machine, asked by its real SDK. The journal is in a file, and each program that
goes on opens it anew, with a catalog and a session of its own.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import ollama
import openai
import pytest
from google import genai
from google.genai import types

from toolsearch import Agent, Approve, Finished, Paused, ToolSearch, tool
from toolsearch.layers import approval
from toolsearch.stores import SqliteStore
from toolsearch.testing.loopback import LoopbackProvider
from toolsearch.wires import anthropic as anthropic_wire
from toolsearch.wires import gemini, openai_chat, openai_responses
from toolsearch.wires import ollama as ollama_wire

Script = list[Any]


def of_anthropic(url: str, stream: bool) -> Any:
    return anthropic_wire.model(
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=0), "claude-test", stream=stream
    )


def of_chat(url: str, stream: bool) -> Any:
    return openai_chat.model(openai.OpenAI(base_url=url, api_key="k", max_retries=0), "gpt-test", stream=stream)


def of_responses(url: str, stream: bool) -> Any:
    return openai_responses.model(openai.OpenAI(base_url=url, api_key="k", max_retries=0), "gpt-test", stream=stream)


def of_gemini(url: str, stream: bool) -> Any:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
    return gemini.model(client, "gemini-test", stream=stream)


def of_ollama(url: str, stream: bool) -> Any:
    return ollama_wire.model(ollama.Client(host=url), "qwen-test", stream=stream)


ran: list[str] = []


@tool
def find_order(number: str) -> str:
    """Find an order by its number."""
    ran.append(f"find {number}")
    return f"order {number}: a teapot, 25 euros"


@tool(kind="action")
def pay_back(order: str, amount: float) -> str:
    """Pay money back to a customer."""
    ran.append(f"pay {amount:g} for {order}")
    return f"{amount:g} euros are on their way"


@tool
def write_letter(to: str) -> str:
    """Write a letter to a customer."""
    ran.append(f"write to {to}")
    return "written"


OTHERS = [{"name": f"vault_{n}", "description": f"Open box {n} of the vault.", "run": lambda: "open"} for n in range(9)]


class Shop:
    """The program that is started again and again; only the file stays."""

    def __init__(self, folder: Path, mode: str | None, stream: bool) -> None:
        self.file, self.stream = folder / "journals.sqlite", stream
        self.options: dict[str, Any] = {} if mode is None else {"mode": mode}
        self.mode = mode

    def turn(self, make: Callable[..., Any], script: Script, said: str | None = None) -> tuple[Any, LoopbackProvider]:
        """One run of the program on a provider: with a message, or with the approval of all that waits."""
        search = ToolSearch([find_order, pay_back, write_letter, *OTHERS], "keyword", results=2, **self.options)
        with LoopbackProvider([self.wrapped(step) for step in script]) as provider:
            store = SqliteStore(self.file)
            agent = Agent(make(provider.url, self.stream), search, layers=[approval()], store=store)
            waiting = agent.conversation("c").waiting if said is None else []
            decisions = {call.id: Approve() for call in waiting}
            result = agent.run(said, conversation_id="c", decisions=decisions or None)
            store.close()
        assert provider.refusals == []
        return result, provider

    def wrapped(self, step: Any) -> Any:
        """In the mode "bridge" every call of a found tool goes through `call_tool`."""
        if self.mode != "bridge" or isinstance(step, str):
            return step
        return [
            each if isinstance(each, str) or each[1] == "search_tools" else
            (each[0], "call_tool", {"name": each[1], "arguments": each[2]})
            for each in step
        ]  # fmt: skip


MIDDLES = {"chat": of_chat, "responses": of_responses, "ollama": of_ollama}


@pytest.mark.parametrize(
    ("middle", "mode", "stream"),
    [
        ("chat", None, True),
        ("chat", "append", False),
        ("chat", "native", True),
        ("responses", None, False),
        ("responses", "native", True),
        ("responses", "bridge", False),
        ("ollama", "bridge", True),
        ("ollama", "native", False),
    ],
)
def test_a_conversation_moves_from_anthropic_to_openai_to_gemini_and_is_finished(
    middle: str, mode: str | None, stream: bool, tmp_path: Path
) -> None:
    """In the middle of a turn, at a call that waits for a person; what Anthropic found, Gemini calls."""
    ran.clear()
    shop = Shop(tmp_path, mode, stream)
    look_up = [("call_1", "search_tools", {"queries": ["find an order", "pay money back", "write a letter"]})]
    both = [
        "I look.",
        ("call_2", "find_order", {"number": "A-17"}),
        ("call_3", "pay_back", {"order": "A-17", "amount": 25}),
    ]
    paused, _ = shop.turn(of_anthropic, [look_up, both], "A-17 is broken. Pay it back, please.")
    assert isinstance(paused, Paused)
    assert [call.name for call in paused.waiting] == ["pay_back"]

    again = [("call_2", "pay_back", {"order": "A-17", "amount": 5}), ("call_9", "find_order", {"number": "B-3"})]
    paused, second = shop.turn(MIDDLES[middle], [again])
    assert isinstance(paused, Paused), "the second model pays once more, and so a person is asked once more"
    assert ran == ["find A-17", "pay 25 for A-17", "find B-3"]
    assert "25 euros are on their way" in json.dumps(second.requests[0])

    script: Script = [[("", "write_letter", {"to": "Ana"})], "Paid back, and written."]
    finished, third = shop.turn(of_gemini, script)
    assert isinstance(finished, Finished)
    assert (finished.text, finished.reason) == ("Paid back, and written.", "answered")
    assert ran[3:] == ["pay 5 for A-17", "write to Ana"]
    said = json.dumps(third.requests[-1]["contents"])
    for told in ("A-17 is broken", "I look.", "a teapot", "25 euros", "5 euros", "order B-3", "written"):
        assert told in said
    tools = {"bridge": ["search_tools", "call_tool"]}.get(
        mode or "", ["search_tools", "find_order", "pay_back", "write_letter"]
    )
    assert all(sorted(names) == sorted(tools) for names in third.tool_names())

    back, fourth = shop.turn(of_anthropic, [[("call_1", "find_order", {"number": "C-8"})], "A teapot."], "And C-8?")
    assert (back.text, ran[-1]) == ("A teapot.", "find C-8")
    assert "Paid back, and written." in json.dumps(fourth.requests[0])
    agent = Agent(of_gemini("http://127.0.0.1:9", False), ToolSearch([find_order]), store=SqliteStore(shop.file))
    ids = [call.id for message in agent.conversation("c").transcript for call in getattr(message, "calls", ())]
    assert len({*ids}) == len(ids) == 7, "ids stay distinct, also where two providers gave the same"
