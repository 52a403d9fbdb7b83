"""Tools of other frameworks, with their function bound.

The doubles here have the attributes that the frameworks' objects had in October 2026 (langchain-core 1.8, pydantic-ai
2.68, llama-index-core 0.14, openai-agents 0.24). Where a framework is installed, its own objects are tried too.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from toolsearch import Catalog, Tool, ToolCall, ToolResult, ToolSearch


def rotate_key(name: str, days: int = 3) -> str:
    """Replace an API key by a new one."""
    if name == "gone":
        raise LookupError("no such key")
    return f"rotated {name} for {days}"


async def rotate_later(name: str, days: int = 3) -> str:
    """Replace an API key by a new one."""
    return rotate_key(name, days)


class Arguments(BaseModel):
    name: str
    days: int = 3


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "days": {"type": "integer", "default": 3}},
    "required": ["name"],
}


# -- LangChain ---------------------------------------------------------------------------------------------------------


@dataclass
class ToolMessage:
    content: Any
    tool_call_id: str
    status: str = "success"
    artifact: Any = None


class LangChainTool(BaseModel):
    """As `StructuredTool`: a pydantic model, so one could iterate over it."""

    name: str = "rotate_key"
    description: str = "Replace an API key by a new one."
    args_schema: Any = Arguments
    func: Any = rotate_key
    coroutine: Any = None
    return_direct: bool = False
    tags: list[str] | None = None
    answers_errors: bool = False

    @property
    def tool_call_schema(self) -> Any:
        return self.args_schema

    @property
    def args(self) -> dict[str, Any]:
        properties: dict[str, Any] = Arguments.model_json_schema()["properties"]
        return properties

    def invoke(self, call: dict[str, Any]) -> ToolMessage:
        if self.func is None:
            raise NotImplementedError("StructuredTool does not support sync invocation.")
        try:
            return ToolMessage(self.func(**call["args"]), call["id"])
        except LookupError as error:
            if self.answers_errors:
                return ToolMessage(str(error), call["id"], "error")
            raise

    async def ainvoke(self, call: dict[str, Any]) -> ToolMessage:
        if self.coroutine is None:
            return self.invoke(call)
        return ToolMessage(await self.coroutine(**call["args"]), call["id"])


# -- pydantic-ai -------------------------------------------------------------------------------------------------------


@dataclass
class PydanticAITool:
    function: Callable[..., Any] = rotate_key
    name: str = "rotate_key"
    description: str = "Replace an API key by a new one."
    takes_ctx: bool = False
    requires_approval: bool = False
    sequential: bool = False
    function_schema: Any = field(default_factory=lambda: SimpleNamespace(json_schema=SCHEMA))


@dataclass
class PydanticAIDefinition:
    name: str = "rotate_key"
    description: str = "Replace an API key by a new one."
    parameters_json_schema: Any = field(default_factory=lambda: SCHEMA)
    outer_typed_dict_key: Any = None
    kind: str = "function"
    sequential: bool = False


# -- LlamaIndex --------------------------------------------------------------------------------------------------------


class LlamaIndexTool:
    """As `FunctionTool`: it can be called, with `*args`."""

    def __init__(self, function: Callable[..., Any] = rotate_key, requires_context: bool = False) -> None:
        self._function = function
        self.requires_context = requires_context
        self.metadata = SimpleNamespace(
            name="rotate_key", description="Replace an API key by a new one.", return_direct=False,
            get_parameters_dict=lambda: {**Arguments.model_json_schema(), "title": "rotate_key"},
        )  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        raw = self._function(*args, **kwargs)
        return SimpleNamespace(content=str(raw), raw_output=raw, is_error=raw == "broken")

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


# -- OpenAI Agents SDK -------------------------------------------------------------------------------------------------


@dataclass
class AgentsTool:
    name: str = "rotate_key"
    description: str = "Replace an API key by a new one."
    params_json_schema: Any = field(default_factory=lambda: {**SCHEMA, "required": ["name", "days"]})
    on_invoke_tool: Any = None
    strict_json_schema: bool = True
    is_enabled: bool = True
    needs_approval: Any = False

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return rotate_key


# -- others that hold their function ----------------------------------------------------------------------------------


@dataclass
class HoldsFunction:
    """As FastMCP's and Anthropic's: a schema, and the function beside it."""

    name: str = "rotate_key"
    description: str = "Replace an API key by a new one."
    parameters: Any = field(default_factory=lambda: SCHEMA)
    fn: Any = rotate_key


def real(package: str, make: Callable[[Any], Any]) -> Any:
    """The framework's own object; the packages are in no extra, because they are large."""
    module = pytest.importorskip(package, reason=f"{package} is not installed: the double stands for it")
    return make(module)


MADE: dict[str, Callable[[], Any]] = {
    "langchain": LangChainTool,
    "langchain, schema as dict": lambda: LangChainTool(args_schema=SCHEMA),
    "pydantic-ai": PydanticAITool,
    "llama-index": LlamaIndexTool,
    "openai-agents": AgentsTool,
    "holds its function": HoldsFunction,
    "real langchain": lambda: real("langchain_core.tools", lambda m: m.tool(rotate_key)),
    "real pydantic-ai": lambda: real("pydantic_ai", lambda m: m.Tool(rotate_key)),
    "real llama-index": lambda: real("llama_index.core.tools", lambda m: m.FunctionTool.from_defaults(rotate_key)),
    "real openai-agents": lambda: real("agents", lambda m: m.function_tool(rotate_key)),
    "real anthropic": lambda: real("anthropic", lambda m: m.beta_tool(rotate_key)),
}


def only(source: Any) -> Tool:
    catalog = Catalog([source])
    assert not catalog.quarantined, catalog.quarantined
    (held,) = catalog
    return held


def answers(held: Tool, **arguments: Any) -> tuple[ToolResult, ToolResult]:
    """What a session answers to a call, in a thread and in a task."""
    session = ToolSearch([held], mode="static").session()
    session.tools()
    call = ToolCall("call_1", "rotate_key", arguments)
    return session.handle(call), asyncio.run(session.ahandle(call))


@pytest.mark.parametrize("kind", MADE)
def test_a_tool_of_another_framework_is_read_with_its_function_bound(kind: str) -> None:
    held = only(MADE[kind]())
    assert held.name == "rotate_key"
    assert "Replace an API key by a new one." in held.description
    assert {name: schema["type"] for name, schema in held.input_schema["properties"].items()} == {
        "name": "string",
        "days": "integer",
    }
    assert held.input_schema["required"] == ["name"]
    assert kind == "real anthropic" or "title" not in str(held.input_schema)
    assert (held.kind, held.alone) == ("read", False)
    for result in answers(held, name="billing", days="5"):
        assert (result.status, result.content) == ("ok", "rotated billing for 5")
    for result in answers(held, name="gone"):
        assert result.status == "failed"
        assert "no such key" in result.content


@pytest.mark.parametrize("kind", MADE)
def test_one_object_alone_and_a_map_of_objects_are_lists_too(kind: str) -> None:
    made = MADE[kind]()
    assert [t.id for t in Catalog(made)] == ["rotate_key"]
    assert [t.id for t in Catalog({"rotate_key": made})] == ["rotate_key"]
    assert [t.id for t in Catalog(SimpleNamespace(tools={"rotate_key": made}))] == ["rotate_key"]


@pytest.mark.parametrize("make", [
    lambda: LangChainTool(func=None, coroutine=rotate_later),
    lambda: PydanticAITool(function=rotate_later),
    lambda: real("langchain_core.tools", lambda m: m.tool(rotate_later)),
    lambda: real("pydantic_ai", lambda m: m.Tool(rotate_later)),
    lambda: real("agents", lambda m: m.function_tool(rotate_later)),
])  # fmt: skip
def test_an_async_tool_is_awaited(make: Callable[[], Any]) -> None:
    made = make()
    if made.name != "rotate_key":
        made.name = "rotate_key"
    in_thread, in_task = answers(only(made), name="billing")
    assert "it is async" in in_thread.content
    assert (in_task.status, in_task.content) == ("ok", "rotated billing for 3")


def test_an_error_that_a_framework_answers_is_an_error() -> None:
    for result in answers(only(LangChainTool(answers_errors=True)), name="gone"):
        assert (result.status, result.content) == ("failed", "no such key")
    for result in answers(only(LlamaIndexTool(lambda name: "broken")), name="x"):
        assert result.status == "failed"


def test_what_an_author_wants_asked_or_alone_is_marked_so() -> None:
    assert only(PydanticAITool(requires_approval=True)).kind == "action"
    assert only(PydanticAITool(sequential=True)).alone
    assert only(PydanticAIDefinition(kind="unapproved")).kind == "action"
    assert only(PydanticAIDefinition()).kind == "read"
    assert only(AgentsTool(needs_approval=lambda *_: True)).kind == "action"
    assert only(LangChainTool(return_direct=True)).return_direct


def test_a_tool_that_needs_its_frameworks_context_comes_without_its_function_and_says_so() -> None:
    for made, wanted in (
        (PydanticAITool(takes_ctx=True), "RunContext"),
        (LlamaIndexTool(requires_context=True), "Context"),
    ):
        catalog = Catalog([made])
        assert catalog["rotate_key"].run is None
        assert f"'rotate_key' takes a {wanted}" in catalog.notices[0]


def test_a_function_that_takes_something_else_than_the_arguments_is_not_bound() -> None:
    assert only(HoldsFunction(fn=lambda context, name, days: name)).run is None


def test_the_providers_own_tools_of_a_framework_are_quarantined() -> None:
    """J39: pydantic-ai says it in `kind`, the Agents SDK in `name`."""
    for hosted in (SimpleNamespace(kind="web_search"), SimpleNamespace(name="code_interpreter", tool_config={})):
        catalog = Catalog([hosted, {"name": "good"}])
        assert "provider's own" in catalog.quarantined[0].reason
