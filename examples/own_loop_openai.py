"""Your own loop with OpenAI Chat Completions, over a catalog of 673 tools.

    python examples/own_loop_openai.py

With OPENAI_API_KEY set it asks the model in OPENAI_MODEL. Without, a scripted model on this machine answers.
"""

import os
from typing import Any

from openai import OpenAI

import toolsearch_datasets
from toolsearch import Catalog, Tool, ToolContext, ToolSearch
from toolsearch.testing import LoopbackProvider
from toolsearch.tokens import counter
from toolsearch.wires import openai_chat as wire

TASK = "What will the weather be in Oslo tomorrow? Post it to the channel C024BE91L on Slack."
SCRIPT = [
    [("search_tools", {"queries": ["weather forecast", "post message to slack channel"]})],
    [("get_forecast", {"location": "Oslo", "days": "1"})],
    [("slack_post_message", {"channel_id": "C024BE91L", "text": "Oslo tomorrow: rain, 4 to 7 °C."})],
    "Tomorrow it rains in Oslo, 4 to 7 °C. I have posted it.",
]


def run_tool(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
    """The tools of the data set have no functions. Here you would call your MCP client."""
    if tool.id == "weather/get_forecast":
        return {"location": arguments["location"], "days": [{"sky": "rain", "min": 4, "max": 7}]}
    return {"ok": True, "tool": tool.id}


def loop(client: OpenAI, model: str) -> None:
    catalog = Catalog.from_file(toolsearch_datasets.path("commons"))
    search = ToolSearch(catalog, run=run_tool)
    session = search.session()
    everything = counter().of(wire.tools_for(ToolSearch(catalog, mode="static", max_tools=1_000).session()))
    print(f"{catalog!r}: {everything:,} tokens of definitions, by {counter().name}\n")

    messages = [{"role": "system", "content": session.instructions()}, {"role": "user", "content": TASK}]
    for _ in range(10):
        tools = wire.tools_for(session)
        print(f"request: {len(tools)} tools, {counter().of(tools):,} tokens of definitions")
        reply = client.chat.completions.create(model=model, messages=messages, tools=tools)
        messages.append(wire.message_from(reply))
        calls = wire.calls_in(reply)
        if not calls:
            break
        answered = list(zip(calls, session.handle_all(calls), strict=True))
        messages += wire.results_for(answered)
        for call, result in answered:
            print(f"  {call.name} {call.arguments}\n  {result.status}: {result.content.splitlines()[0]}")
    print(f"\n{messages[-1]['content']}")


if __name__ == "__main__":
    if os.environ.get("OPENAI_API_KEY"):
        loop(OpenAI(), os.environ.get("OPENAI_MODEL", "gpt-5-mini"))
    else:
        print("OPENAI_API_KEY is not set: a scripted model answers.\n")
        with LoopbackProvider(SCRIPT) as provider:
            loop(OpenAI(base_url=provider.url, api_key="none"), "scripted")
