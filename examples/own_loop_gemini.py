"""Your own loop with Gemini, by google-genai, over a catalog of 673 tools and one whose name begins with a digit.

    python examples/own_loop_gemini.py

With GEMINI_API_KEY set it asks the model in GEMINI_MODEL. Without, a scripted model on this machine answers, which
refuses what the real provider refuses.
"""

import os
from typing import Any

from google import genai
from google.genai import types

import toolsearch_datasets
from toolsearch import Catalog, Tool, ToolContext, ToolSearch, tool
from toolsearch.testing import LoopbackProvider
from toolsearch.wires import gemini as wire

TASK = "What will the weather be in Oslo tomorrow? If it rains, print me an umbrella."
SCRIPT: list[Any] = [
    [("search_tools", {"queries": ["weather forecast", "print an object in 3D"]})],
    ["Rain is likely. ", ("get_forecast", {"location": "Oslo", "days": "1"}), ("_3d_print", {"what": "umbrella"})],
    "Tomorrow it rains in Oslo. Your umbrella is being printed.",
]


@tool(name="3d_print")
def print_object(what: str) -> str:
    """Print an object in 3D."""
    return f"printing: {what}"


def run_tool(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
    """The tools of the data set have no functions. Here you would call your MCP client."""
    return {"location": arguments["location"], "days": [{"sky": "rain", "min": 4, "max": 7}]}


def loop(client: genai.Client, model: str) -> None:
    catalog = Catalog([*Catalog.from_file(toolsearch_datasets.path("commons")), print_object])
    session = ToolSearch(catalog, run=run_tool).session()
    contents: list[Any] = [{"role": "user", "parts": [{"text": TASK}]}]
    while True:
        declared = wire.tools_for(session)
        print("request:", ", ".join(each["name"] for each in declared))
        config: Any = {
            "system_instruction": session.instructions(),
            "tools": [{"function_declarations": declared}],
            "automatic_function_calling": {"disable": True},
        }
        reply = client.models.generate_content(model=model, contents=contents, config=config)
        contents.append(wire.message_from(reply))  # whole, with the signatures of the model's thoughts
        calls = wire.calls_in(reply)
        if not calls:
            break
        answered = list(zip(calls, session.handle_all(calls), strict=True))
        contents += wire.results_for(answered)
        for call, result in answered:
            print(f"  {call.name} {call.arguments}\n  {result.status}: {result.content.splitlines()[0]}")
    print(f"\n{reply.text}")


if __name__ == "__main__":
    if os.environ.get("GEMINI_API_KEY"):
        loop(genai.Client(), os.environ.get("GEMINI_MODEL", "gemini-2.5-flash"))
    else:
        print("GEMINI_API_KEY is not set: a scripted model answers.\n")
        with LoopbackProvider(SCRIPT) as provider:
            loop(genai.Client(api_key="none", http_options=types.HttpOptions(base_url=provider.url)), "scripted")
