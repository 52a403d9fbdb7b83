"""Tools of other frameworks: what each object says, and its function, bound. They are known by their attributes.

Nothing here imports a framework: a program that has such an object has the framework too.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from toolsearch.calls import ToolContext, ToolResult
from toolsearch.catalog.functions import Function, without_titles

__all__ = ["ForeignTool", "is_foreign", "own_function", "read_foreign"]

ASKS = {"readOnlyHint": False, "requiresApproval": True}
"""The hints of a tool before each call of which its framework asks a person. So do the adapters in `frameworks`."""


@dataclass(frozen=True)
class ForeignTool:
    """What an object of another framework says of its tool. `function` is what it wraps, if that can be called so."""

    options: dict[str, object]
    schema: object
    function: Function | None = None
    notices: tuple[str, ...] = ()


def read_foreign(source: object) -> ForeignTool | None:
    """The tool that an object of LangChain, pydantic-ai, LlamaIndex or the OpenAI Agents SDK is; None for others."""
    reader = _reader_for(source)
    return None if reader is None else reader(source)


def is_foreign(source: object) -> bool:
    """Whether `read_foreign` knows an object."""
    return _reader_for(source) is not None


def _reader_for(source: object) -> Callable[[Any], ForeignTool] | None:
    if isinstance(source, type | Mapping) or source is None:
        return None
    return next((read for attributes, read in _READERS if all(hasattr(source, name) for name in attributes)), None)


def own_function(source: object, schema: object) -> Callable[..., object] | None:
    """The function that an object holds as `fn`, `func` or `function`, if it takes exactly the arguments of the schema.

    FastMCP, Anthropic's `beta_tool` and others have it. One that takes something else is the framework's to call.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name in ("fn", "func", "function"):
        if not inspect.isroutine(call := getattr(source, name, None)):
            continue
        try:
            parameters = inspect.signature(call).parameters
        except (TypeError, ValueError):
            continue
        if set(parameters) == set(properties if isinstance(properties, Mapping) else ()):
            return call
    return None


def _plain(schema: Mapping[str, object]) -> dict[str, object]:
    """A schema without titles and without the description that the tool has too."""
    return {key: value for key, value in without_titles(schema).items() if key != "description"}


def _with_function(options: dict[str, object], call: Callable[..., object], schema: Any) -> ForeignTool:
    """A tool with its own function, read as any other if that says as much as the schema: `**arguments` does not."""
    function = Function(call)
    if _names(function.schema) == _names(schema):
        return ForeignTool({**options, "run": call}, function.schema, function)
    return ForeignTool({**options, "run": call}, schema)


def _names(schema: Mapping[str, object]) -> set[object]:
    properties = schema.get("properties")
    return set(properties) if isinstance(properties, Mapping) else set()


# -- LangChain ---------------------------------------------------------------------------------------------------


class _LangChainRun:
    """Calls a LangChain tool as its own agents do: with a tool call, so that ids, errors and artifacts come through."""

    def __init__(self, tool: Any) -> None:
        self._tool = tool

    def __call__(self, toolsearch_context: ToolContext, **arguments: object) -> object:
        return _langchain_result(self._tool.invoke(self._call(toolsearch_context, arguments)))

    def _call(self, context: ToolContext, arguments: dict[str, object]) -> dict[str, object]:
        return {"type": "tool_call", "id": context.call_id, "name": self._tool.name, "args": arguments}


class _LangChainBoth(_LangChainRun):
    async def call_async(self, toolsearch_context: ToolContext, **arguments: object) -> object:
        return _langchain_result(await self._tool.ainvoke(self._call(toolsearch_context, arguments)))


class _LangChainAsync(_LangChainBoth):
    async def __call__(self, toolsearch_context: ToolContext, **arguments: object) -> object:
        return await self.call_async(toolsearch_context, **arguments)


def _langchain_result(message: Any) -> object:
    """The content of a `ToolMessage`; where it says that the tool failed, a failed result."""
    if not hasattr(message, "content") or not hasattr(message, "tool_call_id"):
        return message
    content, artifact = message.content, getattr(message, "artifact", None)
    if getattr(message, "status", None) == "error":
        return ToolResult("", "", "failed", content, artifact)
    return content if artifact is None else ToolResult("", "", "ok", content, artifact)


def _read_langchain(source: Any) -> ForeignTool:
    schema = source.tool_call_schema
    for method in ("model_json_schema", "schema"):  # "schema" in pydantic's first generation
        if not isinstance(schema, Mapping) and hasattr(schema, method):
            schema = getattr(schema, method)()
    if source.args_schema is None and set(source.args) == {"tool_input"}:  # the oldest form, of one text
        schema = {"type": "object", "properties": source.args, "required": ["tool_input"]}
    # One with a coroutine alone refuses to be called from a thread.
    is_async = getattr(source, "coroutine", None) is not None and getattr(source, "func", None) is None
    run = _LangChainAsync(source) if is_async else _LangChainBoth(source)
    options: dict[str, object] = {"name": source.name, "description": source.description, "run": run}
    if source.return_direct is True:
        options["return_direct"] = True
    return ForeignTool(options, _plain(schema))


# -- pydantic-ai -------------------------------------------------------------------------------------------------


def _read_pydantic_ai(source: Any) -> ForeignTool:
    """A `Tool`. Its function is read as any other; one that takes a run context only its own agent can call."""
    options: dict[str, object] = {"name": source.name, "description": source.description}
    if getattr(source, "requires_approval", False) is True:
        options["annotations"] = ASKS
    if getattr(source, "sequential", False) is True:
        options["alone"] = True
    if source.takes_ctx:
        return ForeignTool(
            options, source.function_schema.json_schema, notices=_without_function(source.name, "RunContext")
        )
    return _with_function(options, source.function, source.function_schema.json_schema)


def _read_pydantic_ai_definition(source: Any) -> ForeignTool:
    """A `ToolDefinition`, whose `kind` is not ours; one that is unapproved asks a person."""
    options: dict[str, object] = {"name": source.name, "description": source.description}
    if source.kind == "unapproved":
        options["annotations"] = ASKS
    if getattr(source, "sequential", False) is True:
        options["alone"] = True
    return ForeignTool(options, source.parameters_json_schema)


def _without_function(name: str, wanted: str) -> tuple[str, ...]:
    what = f"{name!r} takes a {wanted}, which only its own framework has, so it comes without its function"
    return (f"{what}: pass run=… to ToolSearch",)


# -- LlamaIndex --------------------------------------------------------------------------------------------------


class _LlamaIndexRun:
    """Calls a LlamaIndex tool; what it returns is its output, and an error in it is an error."""

    def __init__(self, tool: Any) -> None:
        self._tool = tool

    def __call__(self, **arguments: object) -> object:
        return _llama_index_result(self._tool.call(**arguments))


class _LlamaIndexBoth(_LlamaIndexRun):
    async def call_async(self, **arguments: object) -> object:
        return _llama_index_result(await self._tool.acall(**arguments))


def _llama_index_result(output: Any) -> object:
    if getattr(output, "is_error", False) is True:
        return ToolResult("", "", "failed", str(output.content), getattr(output, "raw_output", None))
    raw = getattr(output, "raw_output", None)
    return getattr(output, "content", output) if raw is None else raw


def _read_llama_index(source: Any) -> ForeignTool:
    metadata = source.metadata
    options: dict[str, object] = {"name": metadata.name, "description": metadata.description}
    if getattr(metadata, "return_direct", False) is True:
        options["return_direct"] = True
    schema = _plain(metadata.get_parameters_dict())
    if getattr(source, "requires_context", False) is True:
        return ForeignTool(options, schema, notices=_without_function(metadata.name, "Context"))
    run = _LlamaIndexBoth(source) if hasattr(source, "acall") else _LlamaIndexRun(source)
    return ForeignTool({**options, "run": run}, schema)


# -- OpenAI Agents SDK -------------------------------------------------------------------------------------------


def _read_openai_agents(source: Any) -> ForeignTool:
    options: dict[str, object] = {"name": source.name, "description": source.description}
    if getattr(source, "needs_approval", False) is not False:
        options["annotations"] = ASKS
    wrapped = getattr(source, "__wrapped__", None)
    if callable(wrapped) and not _takes_agents_context(wrapped):
        return _with_function(options, wrapped, source.params_json_schema)

    async def run(toolsearch_context: ToolContext, **arguments: object) -> object:
        text = json.dumps(arguments)
        context = import_module("agents.tool_context").ToolContext(
            context=None, tool_name=source.name, tool_call_id=toolsearch_context.call_id, tool_arguments=text
        )
        return await source.on_invoke_tool(context, text)

    return ForeignTool({**options, "run": run}, source.params_json_schema)


def _takes_agents_context(call: Callable[..., object]) -> bool:
    """Whether the first parameter is the SDK's context, whose class is a `RunContextWrapper` or made from one."""
    first = next(iter(inspect.signature(call).parameters.values()), None)
    if first is None:
        return False
    kind = getattr(first.annotation, "__origin__", first.annotation)
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    return name.partition("[")[0].rpartition(".")[2] in ("RunContextWrapper", "ToolContext")


_READERS: tuple[tuple[tuple[str, ...], Callable[[Any], ForeignTool]], ...] = (
    (("name", "args_schema", "tool_call_schema", "invoke", "ainvoke"), _read_langchain),
    (("name", "function", "function_schema", "takes_ctx"), _read_pydantic_ai),
    (("name", "kind", "parameters_json_schema", "outer_typed_dict_key"), _read_pydantic_ai_definition),
    (("name", "params_json_schema", "on_invoke_tool"), _read_openai_agents),
    (("metadata", "call"), _read_llama_index),
)
