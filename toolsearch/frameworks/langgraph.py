"""LangGraph: the two nodes of a graph that is built by hand."""

from __future__ import annotations

from typing import Any

from toolsearch import MissingExtra, Session, ToolCall, ToolSearch
from toolsearch.frameworks.running import Approval, CallerOf, found_in, opened

try:
    from langchain_core.messages import SystemMessage
    from langchain_core.runnables import RunnableConfig, RunnableLambda

    from toolsearch.frameworks._langgraph_pieces import FOUND, approved, message_of, tools_of, with_note
except ImportError as error:
    raise MissingExtra("toolsearch.frameworks.langgraph", "langgraph", "langchain") from error

__all__ = ["SearchNodes"]


class SearchNodes:
    """The nodes of a graph over `MessagesState`: `model(llm)`, and `tools`, which stands in the place of a `ToolNode`.

    A session belongs to a thread and a graph in it (`thread_id`, `checkpoint_ns`). Without a thread, and in another
    process, what was found is read from the messages. `caller(config)` says who a run acts for. Calls of tools that ask
    for it, and of those that `approval` names, interrupt the graph.
    """

    def __init__(self, search: ToolSearch, *, caller: CallerOf | None = None, approval: Approval | None = None) -> None:
        self._search, self._caller, self._approval = search, caller, approval
        self.tools = RunnableLambda(self._answer, afunc=self._aanswer, name="tools")

    def model(self, llm: Any, system: str = "") -> RunnableLambda[Any, Any]:
        """The node that asks the model, with the tools of its next request and the note for its instructions."""

        def asked(state: Any, config: RunnableConfig) -> tuple[Any, list[Any]]:
            session = self._session(state, config)
            said = with_note(SystemMessage(system) if system else None, session)
            return llm.bind_tools(tools_of(session)), [*([said] if said else []), *state["messages"]]

        async def ask_async(state: Any, config: RunnableConfig) -> dict[str, list[Any]]:
            bound, messages = asked(state, config)
            return {"messages": [await bound.ainvoke(messages, config)]}

        def ask(state: Any, config: RunnableConfig) -> dict[str, list[Any]]:
            bound, messages = asked(state, config)
            return {"messages": [bound.invoke(messages, config)]}

        return RunnableLambda(ask, afunc=ask_async, name="model")

    def _session(self, state: Any, config: RunnableConfig) -> Session:
        keys = config.get("configurable", {})
        graph = str(keys.get("checkpoint_ns") or "").rpartition("|")[0]  # without the task that runs
        thread = f"{keys['thread_id']}/{graph}".rstrip("/") if keys.get("thread_id") else None
        found = (each for message in state["messages"] for each in found_in(getattr(message, "artifact", None), FOUND))
        return opened(self._search, thread, self._caller(config) if self._caller else None, found)

    def _answer(self, state: Any, config: RunnableConfig) -> dict[str, list[Any]]:
        session, asked = self._session(state, config), state["messages"][-1].tool_calls
        calls = [approved(session, call, self._approval) for call in asked]
        answers = iter(session.handle_all([call for call in calls if isinstance(call, ToolCall)]))
        return {"messages": [message_of(next(answers)) if isinstance(call, ToolCall) else call for call in calls]}

    async def _aanswer(self, state: Any, config: RunnableConfig) -> dict[str, list[Any]]:
        session, asked = self._session(state, config), state["messages"][-1].tool_calls
        calls = [approved(session, call, self._approval) for call in asked]
        answers = iter(await session.ahandle_all([call for call in calls if isinstance(call, ToolCall)]))
        return {"messages": [message_of(next(answers)) if isinstance(call, ToolCall) else call for call in calls]}
