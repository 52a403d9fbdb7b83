"""The tools that frameworks' objects hold, with their functions bound. An object is known by its attributes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolsearch import DefinitionError, SetupError, ToolContext, ToolResult, tool
from toolsearch.frameworks.running import context_of

__all__ = ["tools_from"]


def tools_from(*sources: object) -> list[object]:
    """The tools that frameworks' objects hold, for a `Catalog` or a `ToolSearch`, with their functions bound.

    A source is a tool or a list of tools, or holds tools: an agent, a toolset, a toolkit, a tool spec, a `ToolNode`.
    A function that takes its framework's own context (`RunContext`, `ToolRuntime`, `RunContextWrapper`, `Context`,
    `ToolContext`) gets that of the call in the adapter of its framework; elsewhere such a call fails, and says so.
    Raises `SetupError` for what gives its tools only in a running agent.
    """
    return [_bound(leaf) for source in sources for leaf in _leaves(source)]


def _leaves(source: Any) -> list[object]:
    held = _held_by(source)
    return [source] if held is None else [leaf for each in held for leaf in _leaves(each)]


def _held_by(source: Any) -> Iterable[object] | None:
    """What a source holds; None for a tool, and for what a `Catalog` has to judge."""
    if isinstance(source, Mapping):  # tools by name, or a definition
        values = source.values()
        return values if values and all(callable(each) or hasattr(each, "name") for each in values) else None
    for name in ("to_tool_list", "get_tools"):  # of a LlamaIndex tool spec, of a LangChain toolkit
        if inspect.ismethod(give := getattr(source, name, None)) and not inspect.iscoroutinefunction(give):
            return list(give())
    for name in ("tools_by_name", "tools", "toolsets"):  # of a ToolNode, a toolset or an agent, a pydantic-ai agent
        held = getattr(source, name, None)
        if isinstance(held, Mapping | list | tuple):
            return held.values() if isinstance(held, Mapping) else held
    if inspect.iscoroutinefunction(getattr(source, "get_tools", getattr(source, "list_tools", None))):
        raise SetupError(
            f"{type(source).__name__} gives its tools only in a running agent: pass the tools themselves, or for an "
            "MCP server what it answers to tools/list"
        )
    one = isinstance(source, str | bytes | type) or hasattr(source, "name")  # a LangChain tool can be iterated over
    return None if one or not isinstance(source, Iterable) else source


def _bound(source: Any) -> object:
    """The tool, with a function in place of one that takes its framework's context."""
    if getattr(source, "takes_ctx", False) is True and hasattr(source, "function_schema"):
        run: Callable[..., object] = _pydantic_ai_run(source)
    elif getattr(source, "_injected_args_keys", None) and hasattr(source, "tool_call_schema"):
        run = _LangChainRun(source)
    elif hasattr(source, "on_invoke_tool"):
        run = _openai_agents_run(source)
    elif getattr(source, "requires_context", False) is True and hasattr(source, "metadata"):
        run = _llama_index_run(source)
    elif hasattr(source, "_get_declaration") and hasattr(source, "run_async"):
        return _google_adk_tool(source)
    else:
        return source
    try:
        plain = tool(source).function is not None and getattr(source, "is_enabled", True) is True
        return source if plain else tool(source, run=run)
    except DefinitionError:
        return source  # a catalog says what is wrong with it


def _pydantic_ai_run(source: Any) -> Callable[..., Any]:
    async def run(toolsearch_context: ToolContext, **arguments: object) -> object:
        context = context_of("pydantic-ai", source.name)
        if await source.prepare_tool_def(context) is None:
            return ToolResult("", "", "denied", f"{source.name!r} is not available now. Do without it.")
        return await source.function_schema.call(source.function_schema.validator.validate_python(arguments), context)

    return run


class _LangChainRun:
    """Has the graph's node run the tool: it knows the state, the store and the runtime that a function may take."""

    def __init__(self, source: Any) -> None:
        self._tool = source

    def __call__(self, **arguments: object) -> object:
        return _langchain_result(context_of("LangGraph", self._tool.name)(self._tool, arguments))

    async def call_async(self, **arguments: object) -> object:
        return _langchain_result(await context_of("LangGraph", self._tool.name)(self._tool, arguments))


def _langchain_result(message: Any) -> object:
    content = getattr(message, "content", message)
    return ToolResult("", "", "failed", content) if getattr(message, "status", "success") == "error" else content


def _openai_agents_run(source: Any) -> Callable[..., Any]:
    async def run(toolsearch_context: ToolContext, **arguments: object) -> object:
        context = context_of("the OpenAI Agents SDK", source.name)
        enabled = source.is_enabled
        if callable(enabled):
            enabled = enabled(context, context.agent)
            enabled = await enabled if inspect.isawaitable(enabled) else enabled
        if not enabled:
            return ToolResult("", "", "denied", f"{source.name!r} is not enabled now. Do without it.")
        return await source.on_invoke_tool(context, json.dumps(arguments))

    return run


def _llama_index_run(source: Any) -> Callable[..., Any]:
    async def run(**arguments: object) -> object:
        context = context_of("LlamaIndex", source.metadata.name)
        return (await source.acall(**{**arguments, source.ctx_param_name: context})).raw_output

    return run


def _google_adk_tool(source: Any) -> object:
    async def run(**arguments: object) -> object:
        return await source.run_async(args=arguments, tool_context=context_of("Google ADK", source.name))

    declaration = source._get_declaration()
    if declaration is None:
        return source  # the provider's own
    made, function = tool(declaration, run=run), getattr(source, "func", None)
    if not inspect.isroutine(function) or getattr(source, "_require_confirmation", False):
        return made
    # A function that takes the arguments alone needs no context.
    alone = set(inspect.signature(function).parameters) == set(made.input_schema.get("properties", {}))
    return tool(declaration, run=function) if alone else made
