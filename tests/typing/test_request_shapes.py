"""What a wire sends has the shapes of the provider's SDK: every item and every tool, checked by mypy as a literal."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from openai import OpenAI

from toolsearch import Agent, Catalog, ImagePart, TextPart, ToolSearch
from toolsearch.testing import LoopbackProvider
from toolsearch.wires import anthropic, openai_responses

pytestmark = pytest.mark.slow

HEAD = """from anthropic.types import MessageParam, ToolUnionParam
from anthropic.types.beta import BetaMessageParam, BetaToolUnionParam
from openai.types.responses import ResponseInputItemParam, ToolParam
from openai.types.responses.response_tool_search_output_item_param_param import ResponseToolSearchOutputItemParamParam
"""
OUTPUT = {"type": "tool_search_output", "tools": [{"type": "function", "name": "f", "parameters": {}}]}
NAMESPACE = {"type": "tool_search_output", "tools": [{"type": "namespace", "name": "s", "tools": []}]}
REFERENCE = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [
    {"type": "tool_reference", "name": "f"}]}]}  # fmt: skip


def look(what: str = "") -> list[TextPart | ImagePart]:
    """Look at something."""
    return [TextPart(f"This is {what}."), ImagePart("iVBORw0KGgoAAAAN", "image/png")]


def bodies_of(search_tool: str) -> list[Any]:
    """The requests of a conversation in which a tool is found, by a server and without one, and called."""
    script = [
        ["I look.", ("s1", search_tool, {"queries": ["look at something", "water the plants"]})],
        [("c1", "look", {"what": "it"}), ("c2", "water_plants", {})],
        "Done.",
    ]
    found = search(search_tool)
    with LoopbackProvider(script) as provider:
        client = OpenAI(base_url=provider.url, api_key="none", max_retries=0)
        Agent(openai_responses.model(client, "m"), found, actions="run").run("Look, and water.", conversation_id="c")
    assert provider.refusals == []
    assert len(provider.requests) == 3
    return provider.requests


def search(search_tool: str = "search_tools") -> ToolSearch:
    plants = {"name": "water_plants", "server": "garden", "description": "Water the plants.", "run": lambda: "done"}
    return ToolSearch(Catalog([look, plants]), "keyword", mode="native", search_tool=search_tool)


def messages_of(**options: Any) -> Any:
    """The last request of such a conversation, to Anthropic, marked for its cache."""
    script = [
        ["I look.", ("s1", "search_tools", {"queries": ["look at something", "water the plants"]})],
        [("c1", "look", {"what": "it"}), ("c2", "water_plants", {}), ("c3", "no_tool", {})],
        "Done.",
    ]
    with LoopbackProvider(script) as provider:
        client = Anthropic(base_url=provider.url, api_key="none", max_retries=0)
        model = anthropic.model(client, "m", cache="1h", **options)
        Agent(model, search(), actions="run").run("Look, and water.", conversation_id="c")
    assert provider.refusals == []
    return provider.requests[-1]


def test_messages_and_tools_are_those_of_the_sdk(tmp_path: Path) -> None:
    """OA-3, OA-6: and mypy sees what is missing, `strict` outside a namespace and the description of a namespace.

    AN-4, AN-15, AN-17: and it sees that a reference in a result has a `tool_name`.
    """
    right = []
    for search_tool in ("search_tools", "tool_search"):
        last = bodies_of(search_tool)[-1]
        right += [("ResponseInputItemParam", item) for item in last["input"]]
        right += [("ToolParam", tool) for tool in last["tools"]]
    for options, kind in (({}, ""), ({"additions": True}, "Beta")):
        last = messages_of(**options)
        right += [(f"{kind}MessageParam", message) for message in last["messages"]]
        right += [(f"{kind}ToolUnionParam", tool) for tool in last["tools"]]
    wrong = [("MessageParam", REFERENCE)]
    wrong += [("ResponseToolSearchOutputItemParamParam", each) for each in (OUTPUT, NAMESPACE)]
    lines = HEAD.splitlines()
    lines += [f"shape_{n}: {kind} = {shape!r}" for n, (kind, shape) in enumerate([*right, *wrong])]
    (tmp_path / "shapes.py").write_text("\n".join(lines) + "\n", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", f"--config-file={os.devnull}", "shapes.py"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert found == {*range(len(lines) - 2, len(lines) + 1)}, done.stdout
