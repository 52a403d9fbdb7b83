"""Carries out plans of calls: gives an answer, searches, or runs a tool, and learns from a success."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

from toolsearch.calls import Caller, ToolCall, ToolResult
from toolsearch.calls.answers import answer
from toolsearch.session.call_plans import CallPlan
from toolsearch.session.execution import Execution
from toolsearch.session.loaded import LoadedTools
from toolsearch.session.meta_tool import SearchRequest
from toolsearch.session.searching import SearchLog
from toolsearch.session.view import View
from toolsearch.support.large_values import is_large
from toolsearch.support.text import reason_of

__all__ = ["Performer"]

log = logging.getLogger("toolsearch")


@dataclass(frozen=True, slots=True)
class Performer:
    """Carries out the plans of one conversation, with the lock of its session."""

    conversation_id: str
    view: View
    tools: LoadedTools
    searching: SearchLog
    lock: threading.RLock

    def perform(self, plan: CallPlan, cancelled: threading.Event | None) -> ToolResult:
        """Does what the plan says, and nothing else."""
        if plan.result is not None:
            return self.with_found(plan.result, plan.reveal)
        if plan.search is not None:
            return self._search(plan.call, plan.search)
        return self._teach(plan, self._execution(plan, cancelled).run())

    async def aperform(self, plan: CallPlan, cancelled: threading.Event | None) -> ToolResult:
        """As `perform`, for async code."""
        if plan.result is not None:
            return self.with_found(plan.result, plan.reveal)
        from toolsearch.support.threads import in_thread, in_thread_if  # which brings asyncio

        if (request := plan.search) is not None:
            return await in_thread(lambda: self._search(plan.call, request))
        execution = await in_thread_if(is_large(plan.arguments), lambda: self._execution(plan, cancelled))
        return self._teach(plan, await execution.arun())

    def _execution(self, plan: CallPlan, cancelled: threading.Event | None) -> Execution:
        return Execution(plan, self.conversation_id, self.tools.caller, self.view.run, cancelled)

    def with_found(self, result: ToolResult, ids: Iterable[str]) -> ToolResult:
        """The result with the loaded ones of these tools as what it made callable."""
        wanted = list(ids)
        if not wanted:
            return result
        with self.lock:
            return replace(result, found=self.tools.names_of(wanted), loaded=self.tools.bring(wanted))

    def _search(self, call: ToolCall, request: SearchRequest) -> ToolResult:
        try:
            outcome = self.searching.look_up(request)  # without the lock: other calls do not wait for an index
            with self.lock:
                self.searching.take(outcome)
        except Exception as error:
            log.exception("the index %r failed", self.view.index.name)
            text = f"The search failed: {reason_of(error)}. Use a listed tool, or say what happened."
            return answer(call.id, call.name, "failed", text)
        with self.lock:
            text, new = self.searching.report(outcome), [tool.id for tool in outcome.new]
            found = self.tools.names_of(i for i in new if i not in self.tools.callable)
            loaded = self.tools.bring(new)
        return ToolResult(call.id, call.name, "ok", text, outcome.data, found=found, loaded=loaded)

    def _loaded_for(self, result: ToolResult) -> list[str]:
        """Loads the tools that a tool named in its own result, as far as the caller may see them."""
        if not result.found:
            return []
        with self.lock:
            wanted = [tool_id for tool_id in result.found if self.tools.live(tool_id) is not None]
            self.tools.reveal(wanted)
        return wanted

    def _teach(self, plan: CallPlan, result: ToolResult) -> ToolResult:
        """Learns from a successful call: the searches before it describe what the tool is for."""
        result = self.with_found(replace(result, found={}), [*plan.reveal, *self._loaded_for(result)])
        if not result.ok or plan.tool is None:
            return result
        with self.lock:
            queries = self.searching.trail.pop_queries(plan.tool.id)
        if (learned := self.view.learned) is not None:
            caller = self.tools.caller or Caller()
            try:
                for query, times in queries:
                    learned.teach(query, plan.tool.id, tenant=caller.tenant, user=caller.user, times=times)
            except Exception:
                log.exception("nothing was learned from the call of %r", plan.tool.id)
        return result
