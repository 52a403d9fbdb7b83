"""pydantic-ai: an index of ours as the strategy of its own `ToolSearch`, and a toolset that holds a whole catalog."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import Any

from toolsearch import ImagePart, MissingExtra, Session, Shown, Tool, ToolCall, ToolIndex, ToolSearch
from toolsearch.frameworks.running import Approval, CallerOf, asking_plan, definitions, found_in, opened, running_in

try:
    from pydantic_ai import ApprovalRequired, BinaryContent, RunContext, ToolDefinition, ToolReturn
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ImportError as error:
    raise MissingExtra("toolsearch.frameworks.pydantic_ai", "pydantic-ai-slim", "pydantic-ai") from error

__all__ = ["SearchToolset", "searched_by"]

_OBJECT = SchemaValidator(core_schema.dict_schema())  # a session checks arguments itself, and explains what is wrong


def searched_by(
    index: str | Callable[[], ToolIndex] | ToolSearch | None = None, *, limit: int = 5, caller: CallerOf | None = None
) -> Callable[[RunContext[Any], Sequence[str], Sequence[ToolDefinition]], list[str]]:
    """For `pydantic_ai.capabilities.ToolSearch(strategy=searched_by("hybrid"))`: at most `limit` tools a query.

    With the name of an index, or a function that makes one, the agent's own deferred tools are searched. With a
    `ToolSearch`, its catalog is, with its filters for the `caller`; what the agent does not have is left out.
    """
    kept: list[tuple[Sequence[ToolDefinition], ToolSearch]] = []

    def search_over(tools: Sequence[ToolDefinition]) -> ToolSearch:
        if isinstance(index, ToolSearch):
            return index
        if (made := next((search for listed, search in kept if listed == tools), None)) is None:
            made = ToolSearch(tools, index() if callable(index) else index)
            kept[:] = [(list(tools), made), *kept[:7]]  # users may have different tools
        return made

    def strategy(ctx: RunContext[Any], queries: Sequence[str], tools: Sequence[ToolDefinition]) -> list[str]:
        search, who = search_over(tools), caller(ctx) if caller else None
        known = {each.name for each in tools}
        hits = (search.find(query, limit, caller=who) for query in queries)
        names = [[_name_in(known, search, hit.tool) for hit in each] for each in hits]
        return list(dict.fromkeys(name for name in chain.from_iterable(zip_longest(*names)) if name))

    return strategy


def _name_in(known: set[str], search: ToolSearch, tool: Tool) -> str | None:  # tools of several servers may share one
    return next((name for name in (tool.name, search.catalog.provider_name(tool.id)) if name in known), None)


class SearchToolset(AbstractToolset[Any]):
    """The tools of a `ToolSearch` for `Agent(toolsets=[SearchToolset(search)])`: the search tool, and what it found.

    The session is that of `ctx.conversation_id`: without an id or a history, each run has a new private one. `caller`
    says who a run acts for. A call of a tool that asks, or that `approval` names, raises `ApprovalRequired`.
    """

    toolset_id = "toolsearch"  # set another one on a second toolset of the same agent

    def __init__(self, search: ToolSearch, *, caller: CallerOf | None = None, approval: Approval | None = None) -> None:
        self._search, self._caller, self._approval = search, caller, approval

    @property
    def id(self) -> str:
        return self.toolset_id

    def session(self, ctx: RunContext[Any]) -> Session:
        noted = (getattr(part, "metadata", None) for message in ctx.messages for part in message.parts)
        found = (each for metadata in noted for each in found_in(metadata, self.toolset_id))
        return opened(self._search, ctx.conversation_id, self._caller(ctx) if self._caller else None, found)

    async def get_instructions(self, ctx: RunContext[Any]) -> str | None:
        return self.session(ctx).instructions() or None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {each[0].name: self._tool(*each) for each in definitions(self.session(ctx).tools())}

    def _tool(self, shown: Shown, text: str, schema: dict[str, Any]) -> ToolsetTool[Any]:
        new = ToolDefinition(
            name=shown.name, description=text, parameters_json_schema=schema, sequential=shown.tool.alone
        )
        return ToolsetTool(toolset=self, tool_def=new, max_retries=1, args_validator=_OBJECT)

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> ToolReturn:
        session, call = self.session(ctx), ToolCall(ctx.tool_call_id or "", name, tool_args)
        plan = None if ctx.tool_call_approved else asking_plan(session, call, self._approval)
        if plan is not None and plan.tool is not None:
            raise ApprovalRequired(metadata={"tool": plan.tool.id, "arguments": dict(plan.arguments or {})})
        with running_in("pydantic-ai", ctx):
            result = await session.ahandle(call)
        images = [
            BinaryContent(b64decode(p.data), media_type=p.media_type) for p in result.parts if isinstance(p, ImagePart)
        ]
        return ToolReturn(result.content, content=images or None, metadata={self.toolset_id: [*result.found]})
