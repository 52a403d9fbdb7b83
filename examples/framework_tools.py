"""What the examples `with_*.py` share: 95 tools, a task, scripts for the model, and a count of what it is sent."""

import json
from collections.abc import Sequence
from typing import Any

import toolsearch_datasets
from toolsearch import Catalog
from toolsearch.tokens import counter

SERVERS = {"datadog", "github", "gmail", "google_calendar", "notion", "slack", "stripe", "weather"}
DEFINITIONS: list[dict[str, Any]] = [
    {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)}
    for tool in Catalog.from_file(toolsearch_datasets.path("commons"))
    if tool.server in SERVERS
]
TASK = "What will the weather be in Oslo tomorrow? Post it to the channel C024BE91L on Slack."
ALL_TOOLS: list[Any] = [
    [("get_forecast", {"location": "Oslo", "days": 1})],
    [("slack_post_message", {"channel_id": "C024BE91L", "text": "Oslo tomorrow: rain, 4 to 7 °C."})],
    "Tomorrow it rains in Oslo, 4 to 7 °C. I have posted it.",
]
SEARCH: list[Any] = [
    [("search_tools", {"queries": ["weather forecast", "post message to slack channel"]})],
    *ALL_TOOLS,
]


def run_tool(name: str, arguments: dict[str, Any]) -> str:
    """The tools of the data set have no functions. Here you would do the work."""
    return "rain, 4 to 7 °C" if name == "get_forecast" else f"{name} has done {json.dumps(arguments)}"


class Sent:
    """What a model is sent, request by request."""

    def __init__(self) -> None:
        self.requests = self.tokens = 0

    def add(self, tools: Sequence[tuple[str, str | None, Any]], messages: object) -> None:
        """Counts one request: its tools (name, description, schema), and its messages as JSON or text."""
        listed = [{"name": name, "description": text, "parameters": schema} for name, text, schema in tools]
        self.requests += 1
        self.tokens += counter().of([listed, messages])
        print(f"  request {self.requests}: {len(tools)} tools")

    def __str__(self) -> str:
        return f"{self.requests} requests, {self.tokens:,} input tokens, by {counter().name}"
