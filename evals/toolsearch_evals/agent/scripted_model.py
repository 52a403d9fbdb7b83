"""A model that knows each task's solution: it searches for the tools it does not have, calls them, and answers.

It reads a request as a model does, and keeps nothing between two. So it shows that a task can be solved with what was
sent, over any wire and in any mode; it says nothing about how well a real model chooses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch_evals.agent.probe import ASKED, CODE
from toolsearch_evals.agent.tasks import Step, Task, same, tasks

__all__ = ["Exchange", "Prompt", "Written", "next_reply"]

SEARCH, CALL = "search_tools", "call_tool"
LOST = "I am sorry, I have found no tool for this."
SEARCHES = 2  # of each query, before it gives up


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call that was made, and its result."""

    name: str
    arguments: Mapping[str, Any]
    result: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request as the model reads it: the names of its tools, what the user said last, what was called since."""

    tools: tuple[str, ...]
    said: str
    exchanges: tuple[Exchange, ...] = ()


Written = str | tuple[str, Mapping[str, Any]]  # a text, or a call: a tool's name and arguments


def next_reply(prompt: Prompt) -> Written:
    """What the model writes."""
    if prompt.said == ASKED:
        return ("record_code", {"code": CODE}) if "record_code" in prompt.tools else f"The code is {CODE}."
    task = next((each for each in tasks() if prompt.said.startswith(each.text)), None)
    if task is None:
        return "Hello."
    done = _done(task, prompt.exchanges)
    if done == len(task.solution):
        return task.said
    return _call_for(task.solution[done], prompt)


def _done(task: Task, exchanges: Sequence[Exchange]) -> int:
    """How many steps of the solution have run, in order. A tool of the world answers with an object."""
    done = 0
    for each in exchanges:
        name, arguments = _called(each)
        if done < len(task.solution) and each.result.startswith("{"):
            step = task.solution[done]
            done += _is_name_of(name, step.tool) and same(step.arguments, arguments)
    return done


def _called(exchange: Exchange) -> tuple[str, Mapping[str, Any]]:
    """The tool that was really called, behind the bridge's call tool."""
    if exchange.name != CALL:
        return exchange.name, exchange.arguments
    return str(exchange.arguments.get("name")), exchange.arguments.get("arguments") or {}


def _call_for(step: Step, prompt: Prompt) -> Written:
    listed = next((name for name in prompt.tools if _is_name_of(name, step.tool)), None)
    if listed is not None:
        return listed, step.arguments
    wanted = {"queries": [step.query]}
    answers = [each.result for each in prompt.exchanges if each.name == SEARCH and same(wanted, each.arguments)]
    named = next((n for text in answers for n in re.findall(r"[\w-]+", text) if _is_name_of(n, step.tool)), None)
    if named is not None and CALL in prompt.tools:
        return CALL, {"name": named, "arguments": dict(step.arguments)}
    if named is not None:  # it is named, but not loaded: a call loads it
        return named, step.arguments
    if SEARCH in prompt.tools and len(answers) < SEARCHES:
        return SEARCH, wanted
    return LOST


def _is_name_of(name: str, tool_id: str) -> bool:
    """Whether a provider's name is that of a tool: the base name alone, or with the server before it."""
    server, _, base = tool_id.partition("/")
    return name in (base, f"{server}_{base}", f"{server}__{base}", f"{server}-{base}")


def as_json(written: Written) -> str:
    """What a model writes that was told to reply with one JSON object."""
    if isinstance(written, str):
        return json.dumps({"tool": "answer", "arguments": {}, "answer": written})
    return json.dumps({"tool": written[0], "arguments": dict(written[1]), "answer": ""}, ensure_ascii=False)
