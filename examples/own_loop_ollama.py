"""Your own loop with Ollama's own client, over a catalog of 673 tools: the reply is shown as it comes in.

    python examples/own_loop_ollama.py

With OLLAMA_MODEL set it asks that model of the Ollama that runs here. Without, a scripted model answers.
"""

import os
from typing import Any

import ollama

import toolsearch_datasets
from toolsearch import Agent, Catalog, TextDelta, Tool, ToolContext, ToolSearch
from toolsearch.testing import LoopbackProvider
from toolsearch.wires import ollama as wire

TASK = "What will the weather be in Oslo tomorrow?"
SCRIPT: list[Any] = [
    [("search_tools", {"queries": ["weather forecast"]})],
    [("get_forecast", {"location": "Oslo", "days": "1"})],
    "Tomorrow it rains in Oslo, 4 to 7 °C.",
]


def run_tool(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
    """The tools of the data set have no functions. Here you would call your MCP client."""
    return {"location": arguments["location"], "days": [{"sky": "rain", "min": 4, "max": 7}]}


def loop(client: ollama.Client, model: str, search: ToolSearch) -> None:
    session = search.session()
    messages: list[Any] = [{"role": "system", "content": session.instructions()}, {"role": "user", "content": TASK}]
    for _ in range(10):
        tools = wire.tools_for(session)
        print("request:", ", ".join(each["function"]["name"] for each in tools))
        reply = client.chat(model, messages, tools=tools, options={"num_ctx": 16_000})
        messages.append(wire.message_from(reply))
        calls = wire.calls_in(reply)
        if not calls:
            break
        answered = list(zip(calls, session.handle_all(calls), strict=True))
        messages += wire.results_for(answered)
        for call, result in answered:
            print(f"  {call.name} {call.arguments}\n  {result.status}: {result.content.splitlines()[0]}")
    print(f"\n{messages[-1]['content']}")


def main(client: ollama.Client, model: str) -> None:
    search = ToolSearch(Catalog.from_file(toolsearch_datasets.path("commons")), run=run_tool)
    loop(client, model, search)
    print("\nThe same with an agent, piece by piece: ", end="")
    agent = Agent(wire.model(client, model, options={"num_ctx": 16_000}), search)
    pieces = [event.text for event in agent.stream(TASK) if isinstance(event, TextDelta)]
    print("|".join(pieces))


if __name__ == "__main__":
    if os.environ.get("OLLAMA_MODEL"):
        main(ollama.Client(), os.environ["OLLAMA_MODEL"])
    else:
        print("OLLAMA_MODEL is not set: a scripted model answers.\n")
        with LoopbackProvider([*SCRIPT, *SCRIPT]) as provider:
            main(ollama.Client(host=provider.url), "scripted")
