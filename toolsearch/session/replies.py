"""The calls of one reply, with what was decided about each: which of them run together, and one result for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from toolsearch.calls import Status, ToolCall, ToolResult
from toolsearch.session.call_plans import CallPlan
from toolsearch.support import checks

__all__ = ["PlannedReply", "list_of"]


@dataclass(frozen=True, slots=True)
class PlannedReply:
    """Calls in the model's order, the calls that each holds, if it does, and a plan for each single call."""

    calls: Sequence[ToolCall]
    inner: Sequence[Sequence[ToolCall]]
    plans: Sequence[CallPlan]

    def jobs(self) -> list[list[int]]:
        """The places of the plans. Jobs run together, and the plans of a job in order.

        Searches are one job, because their order counts. If a tool is `alone`, all plans are one job.
        """
        places = range(len(self.plans))
        if any(plan.tool is not None and plan.tool.alone for plan in self.plans):
            return [list(places)]
        searches = [place for place in places if self.plans[place].search is not None]
        others = [[place] for place in places if self.plans[place].search is None]
        return [searches, *others] if searches else others

    def results(self, of_plans: Iterable[ToolResult]) -> list[ToolResult]:
        """One result for each call, from those of the plans, in order."""
        left = iter(of_plans)
        return [
            _joined(call, [next(left) for _ in inner]) if inner else next(left)
            for call, inner in zip(self.calls, self.inner, strict=True)
        ]


def _joined(call: ToolCall, results: list[ToolResult]) -> ToolResult:
    """The one answer to a call that holds several, each with its own result; ok if all of them are."""
    content = "\n\n".join(f"{each.name}: {each.content}" for each in results)
    failures: list[Status] = [each.status for each in results if not each.ok]
    status: Status = failures[0] if failures else "ok"
    return ToolResult(
        call.id,
        call.name,
        status,
        content,
        [each.data for each in results],
        tuple(chain.from_iterable(each.parts for each in results)),
        {tool_id: name for each in results for tool_id, name in each.found.items()},
    )


def list_of(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The calls of a reply. Raises `SetupError` for anything else, a single call among it."""
    if isinstance(calls, ToolCall) or not isinstance(calls, Iterable):
        raise checks.wrong("calls", "a list of calls, as calls_in(reply) of a wire gives them", calls)
    return list(calls)
