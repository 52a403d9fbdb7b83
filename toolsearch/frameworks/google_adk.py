"""Google ADK: a toolset whose search tool and found tools are those of one agent in one session of ADK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolsearch import Caller, MissingExtra, Session, Shown, ToolCall, ToolSearch
from toolsearch.frameworks.running import Approval, asking_plan, definition, definitions, found_in, opened, running_in

try:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools import BaseTool, ToolContext
    from google.adk.tools.base_toolset import BaseToolset
    from google.genai.types import FunctionDeclaration
except ImportError as error:
    raise MissingExtra("toolsearch.frameworks.google_adk", "google-adk", "google-adk") from error

__all__ = ["SearchToolset"]


class SearchToolset(BaseToolset):
    """The tools of a `ToolSearch` for `LlmAgent(tools=[toolset], on_tool_error_callback=toolset.answer_unlisted)`.

    Every agent of a session of ADK searches for itself: sub-agents, and agents that run as a tool, take a toolset of
    the same `search`, or this one. The ids of found tools are kept in the state of ADK's session, so a session that is
    stored goes on with them in another process. `caller` says who a request acts for; without it, the user of the
    session, who has no roles. ADK asks a person for confirmation of the calls that `approval` names.
    """

    def __init__(
        self,
        search: ToolSearch,
        *,
        caller: Callable[[ReadonlyContext], Caller | None] | None = None,
        approval: Approval | None = None,
    ) -> None:
        super().__init__()
        self._search, self._caller, self._approval = search, caller, approval
        self._use_invocation_cache = False  # private: else ADK lists the tools once a turn, and found ones never appear

    def session(self, context: ReadonlyContext | None) -> Session:
        """The session of the agent that runs: ids of sessions are unique for one user of one app only."""
        if context is None:  # a page about the agent, not a conversation
            return self._search.session()
        ours, caller = context.session, self._caller(context) if self._caller else Caller(user=context.user_id)
        key = "/".join(map(repr, (ours.app_name, ours.user_id, ours.id, context.agent_name)))
        return opened(self._search, key, caller, found_in(context.state, _state_key(context)))

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return [_SessionTool(self, each[0]) for each in definitions(self.session(readonly_context).tools())]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        llm_request.append_instructions(list(filter(None, [self.session(tool_context).instructions()])))

    async def answer_unlisted(
        self, tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, str] | None:
        """For `on_tool_error_callback`: answers a call of a tool that is not listed, instead of listing them all."""
        return await self.answer(tool.name, args, tool_context) if type(tool) is BaseTool else None

    def asks(self, name: str, args: dict[str, Any], context: ToolContext) -> bool:
        """Whether a person has to confirm the call; a call through `call_tool` is judged as one of the inner tool."""
        return asking_plan(self.session(context), _call(name, args, context), self._approval) is not None

    async def answer(self, name: str, args: dict[str, Any], context: ToolContext) -> dict[str, str]:
        session = self.session(context)
        with running_in("Google ADK", context):
            result = await session.ahandle(_call(name, args, context))
        if result.found:
            context.state[_state_key(context)] = [tool.id for tool in session.loaded]
        return {"result" if result.ok else "error": result.content}


class _SessionTool(BaseTool):
    def __init__(self, toolset: SearchToolset, shown: Shown) -> None:
        name, description, self._schema = definition(shown)
        super().__init__(name=name, description=description)
        self._toolset = toolset

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=self._schema)

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        return self._toolset.asks(self.name, args, tool_context)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, str]:
        return await self._toolset.answer(self.name, args, tool_context)


def _call(name: str, args: dict[str, Any], context: ToolContext) -> ToolCall:
    return ToolCall(context.function_call_id or "", name, args)


def _state_key(context: ReadonlyContext) -> str:
    return f"toolsearch:{context.agent_name}"
