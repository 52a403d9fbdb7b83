"""Layers around the loop, each for one concern and in one module; `toolsearch.layers.limits(…)` and so on make them.

calls of tools
    limits       bounds for a turn: rounds, calls, repetitions, searches, tokens, money
    rules        who may see and call which tool
    eligibility  whether the calls of a reply run at all
    preflight    the program's own check of a call, before a person is asked and before it runs
    approval     a person decides before a call runs
    interaction  tools whose answer a person gives
    tool_questions  tools that ask a person something while they run
    thought      extra arguments of every tool, for your program only
    truncate     results cut to a length that a model should read
what the model reads and says
    memory       what is shown of earlier turns, and the store
    history      a window on what was said, with a summary
    structured   the final answer as a value
    processors   what goes in, comes out and is stored: rewritten, redacted or refused
    follow_ups   questions that the user might ask next
time and money
    retry        calls that failed for a moment are made again
    timeout      how long a tool, a model or a turn may take
    usage        quotas, and what model calls cost
watching
    logs         a line per round, with ids and without secrets; each request to a model and its reply
    trace        an observer that shows a person what happens; its words are in narration
    record       an observer that records turns without what is private; their form is in recorded
    otel         spans and metrics of OpenTelemetry
of your own
    plain        before() and after(): layers from plain functions
    defaults     the layers that an agent has by default
    shared       what several layers do

Importing one imports no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolsearch.layers._approval import Policy, approval
    from toolsearch.layers._eligibility import eligibility
    from toolsearch.layers._follow_ups import follow_ups, follow_ups_of
    from toolsearch.layers._history import history
    from toolsearch.layers._interaction import interaction
    from toolsearch.layers._limits import limits
    from toolsearch.layers._logs import LogFilter, log_model, logs
    from toolsearch.layers._memory import memory
    from toolsearch.layers._otel import Telemetry, otel
    from toolsearch.layers._plain import after, before
    from toolsearch.layers._preflight import Completed, Denied, Ready, preflight
    from toolsearch.layers._processors import Refuse, Rewrite, processors, redact
    from toolsearch.layers._record import RecordedTurn, Watched, private, record
    from toolsearch.layers._retry import is_transient, retry
    from toolsearch.layers._rules import Rules, rules
    from toolsearch.layers._structured import structured
    from toolsearch.layers._thought import thought
    from toolsearch.layers._timeout import timeout
    from toolsearch.layers._tool_questions import tool_questions
    from toolsearch.layers._trace import trace
    from toolsearch.layers._truncate import truncate
    from toolsearch.layers._usage import PRICES, Price, Quota, UsageTotal, cost, usage, usage_summary, usage_table
    from toolsearch.support.context import scope
    from toolsearch.support.redaction import redacted

__all__ = [
    "PRICES",
    "Completed",
    "Denied",
    "LogFilter",
    "Policy",
    "Price",
    "Quota",
    "Ready",
    "RecordedTurn",
    "Refuse",
    "Rewrite",
    "Rules",
    "Telemetry",
    "UsageTotal",
    "Watched",
    "after",
    "approval",
    "before",
    "cost",
    "eligibility",
    "follow_ups",
    "follow_ups_of",
    "history",
    "interaction",
    "is_transient",
    "limits",
    "log_model",
    "logs",
    "memory",
    "otel",
    "preflight",
    "private",
    "processors",
    "record",
    "redact",
    "redacted",
    "retry",
    "rules",
    "scope",
    "structured",
    "thought",
    "timeout",
    "tool_questions",
    "trace",
    "truncate",
    "usage",
    "usage_summary",
    "usage_table",
]

# Where each name is, unless its module has the same name.
_NAMES = {
    "_approval": "Policy",
    "_follow_ups": "follow_ups_of",
    "_logs": "LogFilter log_model",
    "_otel": "Telemetry",
    "_plain": "after before",
    "_preflight": "Completed Denied Ready",
    "_processors": "Refuse Rewrite redact",
    "_record": "RecordedTurn Watched private",
    "_retry": "is_transient",
    "_rules": "Rules",
    "_usage": "PRICES Price Quota UsageTotal cost usage_summary usage_table",
}
_WHERE = {
    "redacted": "toolsearch.support.redaction",
    "scope": "toolsearch.support.context",
    **{name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()},
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE.get(name, f"{__name__}._{name}")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
