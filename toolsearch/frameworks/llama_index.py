"""LlamaIndex: a tool retriever that gives an agent the search tool, and what its conversation has found."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsearch import Caller, MissingExtra, Session, SetupError, Shown, Tool, ToolCall, ToolSearch
from toolsearch.frameworks.running import Approval, asking_plan, definition, found_in, running_in

try:
    from llama_index.core.objects import ObjectRetriever
    from llama_index.core.tools import AsyncBaseTool, ToolMetadata, ToolOutput
    from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
except ImportError as error:
    raise MissingExtra("toolsearch.frameworks.llama_index", "llama-index-core", "llama-index") from error

__all__ = ["SearchRetriever"]

_KEY = "toolsearch"  # in the store of a context: the id of the conversation, and what each of its agents has found


class SearchRetriever(ObjectRetriever[Any]):
    """For `FunctionAgent(tool_retriever=retriever, system_prompt=retriever.instructions())`: what a session lists.

    A conversation is a `Context`: `agent.run(message, ctx=ctx)` goes on with what it found, also if the context was
    stored, and without one each run has a new private session. Every agent of a workflow searches for itself. `caller`
    says who a run acts for. A call of a tool that `approval` names waits for a `HumanResponseEvent`.
    """

    def __init__(
        self,
        search: ToolSearch,
        *,
        caller: Callable[[Context[Any]], Caller | None] | None = None,
        approval: Approval | None = None,
    ) -> None:
        self._search, self._caller, self.approval = search, caller, approval

    def instructions(self, caller: Caller | None = None) -> str:
        """The note for the system prompt of an agent."""
        session = self._search.session(caller=caller)
        self._search.end_session(session.id)
        return session.instructions()

    def retrieve(self, str_or_query_bundle: Any) -> list[Any]:
        raise SetupError("the tools of a conversation are known in an agent's run only, which calls aretrieve")

    async def aretrieve(self, str_or_query_bundle: Any) -> list[Any]:
        """The tools of a request for the model; for the name of a call, the tool that answers the call."""
        ctx: Context[Any] = Context.get_step_context()
        kept = await ctx.store.get(_KEY, default=None) or {"id": secrets.token_urlsafe(16)}
        agent = await ctx.store.get("current_agent_name", default="")
        session = self._search.session(f"{kept['id']}/{agent}", caller=self._caller(ctx) if self._caller else None)
        if not session.loaded:  # another process may have found some
            session.load(found_in(kept, agent))
        if str_or_query_bundle == await ctx.store.get("user_msg_str", default=""):
            await ctx.store.set(_KEY, {**kept, agent: [tool.id for tool in session.loaded]})
            return [_SessionTool(self, session, ctx, shown) for shown in session.tools()]
        name, shown = str(str_or_query_bundle), {each.name: each for each in session.shown()}
        plan = session.decide(ToolCall("", name, {}))
        if plan.result is not None and plan.result.status == "unknown" and name not in shown:
            return []  # one of the agent's own tools, or none: LlamaIndex answers
        return [_SessionTool(self, session, ctx, shown.get(name) or Shown(name, Tool(name, name)))]


class _SessionTool(AsyncBaseTool):
    def __init__(self, retriever: SearchRetriever, session: Session, ctx: Context[Any], shown: Shown) -> None:
        self._retriever, self._session, self._ctx = retriever, session, ctx
        name, description, schema = definition(shown)
        json_schema = classmethod(lambda cls, *args, **options: schema)
        members = {"model_config": ConfigDict(extra="allow"), "model_json_schema": json_schema}
        arguments: type[BaseModel] = type("Arguments", (BaseModel,), members)
        self._metadata = ToolMetadata(description[:1024], name, arguments, return_direct=shown.tool.return_direct)

    @property
    def metadata(self) -> ToolMetadata:
        return self._metadata

    def call(self, /, **arguments: Any) -> ToolOutput:
        raise SetupError("the tools of a session are called in an agent's run only, by acall")

    async def acall(self, /, **arguments: Any) -> ToolOutput:
        call, name = ToolCall("", self._metadata.get_name(), arguments), self._metadata.get_name()
        if (plan := asking_plan(self._session, call, self._retriever.approval)) is not None and plan.tool is not None:
            asked = {"tool": plan.tool.id, "arguments": json.dumps(dict(plan.arguments or {}), ensure_ascii=False)}
            question = InputRequiredEvent(prefix=f"Run {plan.tool.id}? (yes or no)", **asked)
            answer = await self._ctx.wait_for_event(HumanResponseEvent, waiter_event=question, requirements=asked)
            if str(answer.response).strip().lower() not in ("y", "yes", "true"):
                text = f"{plan.tool.name!r} did not run: the user declined it. Do not call it again in this turn."
                return ToolOutput(name, text, raw_input=arguments, raw_output=text, is_error=True)
        with running_in("LlamaIndex", self._ctx):
            result = await self._session.ahandle(call)
        return ToolOutput(name, result.content, raw_input=arguments, raw_output=result.content, is_error=not result.ok)
