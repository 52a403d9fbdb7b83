"""Your own loop with OpenAI Responses, over a catalog of 673 tools, found tools delivered natively.

    python examples/own_loop_responses.py

What a search finds comes as an item of the input, behind the answer. So the `tools` of every request are the same, and
the provider's cache keeps the whole conversation. With OPENAI_API_KEY set it asks the model in OPENAI_MODEL. Without, a
scripted model on this machine answers, which refuses what the real provider refuses.
"""

import json
import os
from typing import Any

from openai import OpenAI

import toolsearch_datasets
from toolsearch import Catalog, Tool, ToolContext, ToolSearch
from toolsearch.testing import LoopbackProvider
from toolsearch.wires import openai_responses as wire

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
    search = ToolSearch(catalog, run=run_tool, mode="native")
    session = search.session("example", wire=wire)
    items: list[Any] = [{"role": "user", "content": TASK}]
    sent = set()
    for _ in range(10):
        tools: Any = wire.tools_for(session)
        sent.add(json.dumps(tools))
        reply = client.responses.create(model=model, instructions=session.instructions(), input=items, tools=tools)
        items += wire.message_from(reply)
        calls = wire.calls_in(reply)
        if not calls:
            break
        answered = list(zip(calls, session.handle_all(calls), strict=True))
        items += wire.results_for(answered)
        for call, result in answered:
            brought = f", brings {', '.join(tool.name for tool in result.loaded)}" if result.loaded else ""
            print(f"  {call.name} {call.arguments}\n  {result.status}: {result.content.splitlines()[0]}{brought}")
    print(f"\n{reply.output_text}\nthe tools of all requests: {len(tools)}, the same bytes: {len(sent) == 1}")


if __name__ == "__main__":
    if os.environ.get("OPENAI_API_KEY"):
        loop(OpenAI(), os.environ.get("OPENAI_MODEL", "gpt-5-mini"))
    else:
        print("OPENAI_API_KEY is not set: a scripted model answers.\n")
        with LoopbackProvider(SCRIPT) as provider:
            loop(OpenAI(base_url=provider.url, api_key="none"), "scripted")
