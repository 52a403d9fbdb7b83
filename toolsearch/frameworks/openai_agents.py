"""OpenAI Agents SDK: an agent whose model is shown the search tool, and what was found; other calls are answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from toolsearch import ImagePart, MissingExtra, Session, SetupError, Shown, ToolCall, ToolResult, ToolSearch
from toolsearch.frameworks.running import Approval, CallerOf, asking_plan, asks, definitions, running_in

try:
    from agents import Agent, FunctionTool, RunConfig, RunContextWrapper, Tool, ToolOutputImage, ToolOutputText
    from agents.run_config import ToolErrorFormatterArgs
    from agents.tool_context import ToolContext
except ImportError as error:
    raise MissingExtra("toolsearch.frameworks.openai_agents", "openai-agents", "openai-agents") from error

__all__ = ["SearchAgent", "search_run_config"]

# Attributes of the context of a run, which the SDK copies when a run waits: its agents' own sessions, and the last one.
_SESSIONS, _RUNNING = "_toolsearch_sessions", "_toolsearch_running"


@dataclass
class SearchAgent(Agent[Any]):
    """An `Agent` with the tools of a `ToolSearch`: `SearchAgent("Lead", search=search, model=…)`.

    A session belongs to `conversation_id(context)`, or else to one run, and each agent of a run has its own. `caller`
    says who a run acts for. Calls of tools that ask for it, and of those that `approval` names, interrupt the run. Pass
    `run_config=search_run_config()` to the runner, so that a call of a tool that is not loaded is answered.
    """

    search: ToolSearch | None = None
    conversation_id: Callable[[RunContextWrapper[Any]], str | None] | None = field(default=None, kw_only=True)
    caller: CallerOf | None = field(default=None, kw_only=True)
    approval: Approval | None = field(default=None, kw_only=True)

    def session(self, context: RunContextWrapper[Any]) -> Session:
        if self.search is None:
            raise SetupError(f"the agent {self.name!r} has no search: pass search=ToolSearch(…)")
        caller = self.caller(context) if self.caller else None
        if self.conversation_id and (conversation := self.conversation_id(context)):
            return self.search.session(f"{conversation}/{self.name}", caller=caller)
        ids: dict[str, str] = vars(context).setdefault(_SESSIONS, {})
        return self.search.session(ids.setdefault(self.name, uuid4().hex), caller=caller)

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        said = await super().get_system_prompt(run_context), self.session(run_context).instructions()
        return "\n\n".join(filter(None, said)) or None

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        session = self.session(run_context)
        setattr(run_context, _RUNNING, session)
        own = await super().get_all_tools(run_context)
        return [*own, *(self._tool(session, *each) for each in definitions(session.tools()))]

    def _tool(self, session: Session, shown: Shown, text: str, schema: dict[str, Any]) -> FunctionTool:
        async def invoke(context: ToolContext[Any], arguments: str) -> Any:
            with running_in("the OpenAI Agents SDK", context):
                return _output(await session.ahandle(ToolCall(context.tool_call_id, shown.name, arguments)))

        async def inner_asks(context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
            return asking_plan(session, ToolCall(call_id, shown.name, arguments), self.approval) is not None

        calls_others = self.search is not None and shown.built_in and shown.name == self.search.settings.call_tool
        waits = inner_asks if calls_others else asks(shown.tool, self.approval)
        return FunctionTool(shown.name, text, schema, invoke, strict_json_schema=False, needs_approval=waits)


def search_run_config(config: RunConfig | None = None) -> RunConfig:
    """The configuration of a run in which a call of a tool that is not loaded is answered, and does not end the run.

    The answer loads the tool and shows its schema, as the setting `not_loaded` says. Nothing runs by it.
    """
    given = config or RunConfig()

    def told(problem: ToolErrorFormatterArgs[Any]) -> Any:
        session: Session | None = getattr(problem.run_context, _RUNNING, None)
        if problem.kind != "tool_not_found" or session is None:
            return given.tool_error_formatter(problem) if given.tool_error_formatter else None
        call = ToolCall(problem.call_id, problem.tool_name)
        plan = session.decide(call)
        if plan.result is None or plan.result.status not in ("unknown", "not_loaded"):
            session.load(plan.reveal)  # it could run, but the SDK does not say with which arguments
            return f"{problem.tool_name!r} did not run: it was not loaded. It is loaded now; call it again."
        return session.handle(call).content

    return replace(given, tool_not_found_behavior="return_error_to_model", tool_error_formatter=told)


def _output(result: ToolResult) -> Any:
    images = [part for part in result.parts if isinstance(part, ImagePart)]
    urls = [ToolOutputImage(image_url=f"data:{part.media_type};base64,{part.data}") for part in images]
    return [ToolOutputText(text=result.content), *urls] if urls else result.content
