"""LangChain: middleware for `create_agent`, which shows the search tool, and what was found, to the agent's model."""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Annotated, Any, NotRequired
from uuid import uuid4

from toolsearch import MissingExtra, Session, ToolCall, ToolResult, ToolSearch
from toolsearch.frameworks.running import Approval, CallerOf, opened, running_in

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import PrivateStateAttr
    from langgraph.types import Command

    from toolsearch.frameworks._langgraph_pieces import approved, message_of, tools_of, with_note
except ImportError as error:
    raise MissingExtra("toolsearch.frameworks.langchain", "langchain", "langchain") from error

__all__ = ["SearchMiddleware", "SearchState"]


class SearchState(AgentState[Any]):
    """What an agent's state holds for the search, and a checkpointer keeps: the session's id, and what was found."""

    toolsearch_id: NotRequired[Annotated[str, PrivateStateAttr]]
    toolsearch_found: NotRequired[Annotated[list[str], PrivateStateAttr, operator.add]]


class SearchMiddleware(AgentMiddleware[Any, Any, Any]):
    """The tools of a `ToolSearch` for `create_agent(…, middleware=[SearchMiddleware(search)])`.

    A session belongs to the agent's state: to its thread if there is a checkpointer, else to one invocation, and a
    sub-agent has its own. `caller(runtime)` says who a run acts for. Calls of tools that ask for it, and of those that
    `approval` names, interrupt the graph, as `HumanInTheLoopMiddleware(interrupt_mode="per_call")` does.
    """

    state_schema = SearchState

    def __init__(self, search: ToolSearch, *, caller: CallerOf | None = None, approval: Approval | None = None) -> None:
        super().__init__()
        self._search, self._caller, self._approval = search, caller, approval

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return None if state.get("toolsearch_id") else {"toolsearch_id": uuid4().hex}

    def _session(self, request: Any) -> Session:
        caller, state = self._caller(request.runtime) if self._caller else None, request.state
        return opened(self._search, state["toolsearch_id"], caller, state.get("toolsearch_found", ()))

    def _with_tools(self, request: Any) -> Any:
        session, tools = self._session(request), request.tools
        said = with_note(request.system_message, session)
        return request.override(tools=[*tools, *tools_of(session)], system_message=said)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(self._with_tools(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(self._with_tools(request))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        if request.tool is not None:  # one of the agent's own
            return handler(request)
        session = self._session(request)
        if not isinstance(call := approved(session, request.tool_call, self._approval), ToolCall):
            return call
        with _running(request, handler):
            return _answer(session.handle(call))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        if request.tool is not None:
            return await handler(request)
        session = self._session(request)
        if not isinstance(call := approved(session, request.tool_call, self._approval), ToolCall):
            return call
        with _running(request, handler):
            return _answer(await session.ahandle(call))


def _running(request: Any, handler: Callable[[Any], Any]) -> AbstractContextManager[None]:
    """While it lasts, the agent's own node runs the LangChain tools that take the graph's state, store or runtime."""

    def run(tool: Any, arguments: Mapping[str, object]) -> Any:
        return handler(
            request.override(tool=tool, tool_call={**request.tool_call, "name": tool.name, "args": arguments})
        )

    return running_in("LangGraph", run)


def _answer(result: ToolResult) -> Any:
    message = message_of(result)
    return Command(update={"messages": [message], "toolsearch_found": [*result.found]}) if result.found else message
