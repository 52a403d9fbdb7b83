"""Time-outs: a tool that is late gets an answer that says so; a model call or a turn that is late is an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolsearch.errors import SetupError
from toolsearch.events import synthetic
from toolsearch.events.requests import Call, CallModel, Run
from toolsearch.layers._shared import setting_for
from toolsearch.protocols import Layer, ModelSteps, RunSteps, ToolSteps, Within
from toolsearch.support import checks

__all__ = ["timeout"]


def timeout(
    tool: float | None = None,
    model: float | None = None,
    per_tool: Mapping[str, float | None] | None = None,
    *,
    turn: float | None = None,
) -> Layer:
    """A layer that bounds, in seconds, each call of a `tool`, each call of the `model`, and a whole `turn`.

    `per_tool` sets other bounds for some tools, by id or name, None for no bound; the search tool is bounded only
    there. The answer of a late tool has the status "timed_out", the other answers of its round stay, and the turn goes
    on; the tool itself can look at `ToolContext.cancelled` and stop. A late model or turn raises `TimeoutError`, and
    the conversation is whole.
    """
    own = checks.table("per_tool", per_tool, "numbers of seconds", none="for none")
    bounds = {"tool": tool, "model": model, "turn": turn}
    bounds |= {f"per_tool[{name!r}]": seconds for name, seconds in own.items()}
    for name, seconds in bounds.items():
        checks.number(name, seconds, "a number of seconds", none="for no bound")
    if all(seconds is None for seconds in bounds.values()):
        raise SetupError("timeout() bounds nothing: pass tool=…, model=…, per_tool=… or turn=…")
    return _Timeout(tool, model, own, turn)


@dataclass(frozen=True)
class _Timeout:
    tool: float | None
    model: float | None
    per_tool: Mapping[str, float | None]
    turn: float | None
    name: str = "timeout"

    def around_run(self, run: Run) -> RunSteps:
        return (yield run if self.turn is None else Within(self.turn, run))

    def around_model(self, request: CallModel) -> ModelSteps:
        return (yield request if self.model is None else Within(self.model, request))

    def around_tool(self, call: Call) -> ToolSteps:
        seconds = setting_for(call.judged, self.per_tool, None if call.judged.kind == "search" else self.tool)
        if seconds is None:
            return (yield call)
        try:
            return (yield Within(seconds, call))
        except TimeoutError as error:
            return synthetic.timed_out(call.judged, error)
