"""pydantic-ai: an index of ours as the strategy of its own `ToolSearch`, and a toolset that holds a whole catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import Any

from toolsearch import MissingExtra, Session, Shown, ToolCall, ToolIndex, ToolSearch
from toolsearch.frameworks.running import Approval, CallerOf, asking_plan, definitions, found_in, opened, running_in

try:
    from pydantic_ai import ApprovalRequired, RunContext, ToolDefinition, ToolReturn
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ImportError as error:
    raise MissingExtra("toolsearch.frameworks.pydantic_ai", "pydantic-ai-slim", "pydantic-ai") from error

__all__ = ["SearchToolset", "searched_by"]

_OBJECT = SchemaValidator(core_schema.dict_schema())  # a session checks arguments itself, and explains what is wrong


def searched_by(
    index: str | ToolIndex | ToolSearch | None = None, *, limit: int = 5, caller: CallerOf | None = None
) -> Callable[[RunContext[Any], Sequence[str], Sequence[ToolDefinition]], list[str]]:
    """For `pydantic_ai.capabilities.ToolSearch(strategy=searched_by("hybrid"))`: at most `limit` tools a query.

    With an index, the agent's own deferred tools are searched. With a `ToolSearch`, its catalog is, with its filters
    for the `caller`; what the agent does not have is left out. pydantic-ai delivers what is found.
    """
    kept: list[tuple[Sequence[ToolDefinition], ToolSearch]] = []

    def search_over(tools: Sequence[ToolDefinition]) -> ToolSearch:
        if isinstance(index, ToolSearch):
            return index
        if (found := next((each for each in kept if each[0] == tools), None)) is None:
            found = (list(tools), ToolSearch(tools, index))
            kept[:] = [found, *kept[:7]]  # users of different roles may have different tools
        return found[1]

    def strategy(ctx: RunContext[Any], queries: Sequence[str], tools: Sequence[ToolDefinition]) -> list[str]:
        search, who = search_over(tools), caller(ctx) if caller else None
        names = [[hit.tool.name for hit in search.find(query, limit, caller=who)] for query in queries]
        known = {each.name for each in tools}
        return list(dict.fromkeys(name for name in chain.from_iterable(zip_longest(*names)) if name in known))

    return strategy


class SearchToolset(AbstractToolset[Any]):
    """The tools of a `ToolSearch` for `Agent(toolsets=[SearchToolset(search)])`: the search tool, and what it found.

    The session is that of `ctx.conversation_id`: without an id or a history, each run has a new private one. The
    history names what was found, so that another process loads it again. `caller` says who a run acts for. Calls of
    tools that ask for it, and of those that `approval` names, raise `ApprovalRequired`.
    """

    def __init__(
        self,
        search: ToolSearch,
        *,
        caller: CallerOf | None = None,
        approval: Approval | None = None,
        toolset_id: str = "toolsearch",
    ) -> None:
        self._search, self._caller, self._approval, self._id = search, caller, approval, toolset_id

    @property
    def id(self) -> str:
        return self._id

    def session(self, ctx: RunContext[Any]) -> Session:
        parts = (part for message in ctx.messages for part in message.parts if part.part_kind == "tool-return")
        found = (each for part in parts for each in found_in(getattr(part, "metadata", None), self._id))
        return opened(self._search, ctx.conversation_id, self._caller(ctx) if self._caller else None, found)

    async def get_instructions(self, ctx: RunContext[Any]) -> str | None:
        return self.session(ctx).instructions() or None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {each[0].name: self._tool(*each) for each in definitions(self.session(ctx).tools())}

    def _tool(self, shown: Shown, text: str, schema: dict[str, Any]) -> ToolsetTool[Any]:
        told = ToolDefinition(
            name=shown.name, description=text, parameters_json_schema=schema, sequential=shown.tool.alone
        )
        return ToolsetTool(toolset=self, tool_def=told, max_retries=1, args_validator=_OBJECT)

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> ToolReturn:
        session, call = self.session(ctx), ToolCall(ctx.tool_call_id or "", name, tool_args)
        plan = None if ctx.tool_call_approved else asking_plan(session, call, self._approval)
        if plan is not None and plan.tool is not None:
            raise ApprovalRequired(metadata={"tool": plan.tool.id, "arguments": dict(plan.arguments or {})})
        with running_in("pydantic-ai", ctx):
            result = await session.ahandle(call)
        return ToolReturn(result.content, metadata={self._id: list(result.found), "status": result.status})
