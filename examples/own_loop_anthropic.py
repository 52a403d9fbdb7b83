"""Your own loop with Anthropic Messages, async, with calls that run together.

    python examples/own_loop_anthropic.py

With ANTHROPIC_API_KEY set it asks the model in ANTHROPIC_MODEL. Without, a scripted model on this machine answers.
"""

import asyncio
import os

from anthropic import AsyncAnthropic

from toolsearch import Catalog, ToolSearch
from toolsearch.testing import LoopbackProvider
from toolsearch.wires import anthropic as wire

TASK = "How is the weather in Oslo and in Rome?"
SCRIPT = [
    [("search_tools", {"queries": ["current weather"]})],
    [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})],
    "It is 4 °C in Oslo and 17 °C in Rome.",
]


async def get_weather(city: str) -> dict[str, object]:
    """Current weather of a city: sky and temperature."""
    await asyncio.sleep(0.1)
    return {"city": city, "celsius": {"Oslo": 4, "Rome": 17}.get(city)}


def convert_units(value: float, unit: str, to: str) -> float:
    """Convert a value from one unit to another."""
    metres = {"m": 1.0, "km": 1_000.0, "mi": 1_609.344}
    return value * metres[unit] / metres[to]


def ask_user(question: str) -> str:
    """Ask the user a question."""
    return input(question)


async def loop(client: AsyncAnthropic, model: str) -> None:
    search = ToolSearch(Catalog([get_weather, convert_units, ask_user]), index="keyword", pinned=["ask_user"])
    session = search.session()
    messages = [{"role": "user", "content": TASK}]
    for _ in range(10):
        tools = wire.tools_for(session)
        print("request:", ", ".join(tool["name"] for tool in tools))
        reply = await client.messages.create(
            model=model, max_tokens=2_000, system=session.instructions(), messages=messages, tools=tools
        )
        messages.append(wire.message_from(reply))
        calls = wire.calls_in(reply)
        if not calls:
            break
        results = await session.ahandle_all(calls)
        messages += wire.results_for(zip(calls, results, strict=True))
        for call, result in zip(calls, results, strict=True):
            print(f"  {call.name} {call.arguments} -> {result.status}: {result.content.splitlines()[0]}")
    print("\n".join(block["text"] for block in messages[-1]["content"] if block["type"] == "text"))


async def main() -> None:
    if os.environ.get("ANTHROPIC_API_KEY"):
        async with AsyncAnthropic() as client:
            await loop(client, os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5"))
    else:
        print("ANTHROPIC_API_KEY is not set: a scripted model answers.")
        with LoopbackProvider(SCRIPT) as provider:
            async with AsyncAnthropic(base_url=provider.url, api_key="none") as client:
                await loop(client, "scripted")


if __name__ == "__main__":
    asyncio.run(main())
