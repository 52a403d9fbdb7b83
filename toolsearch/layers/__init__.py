"""Layers around the loop, one concern a module; `toolsearch.layers.limits(…)` and so on make them.

limits        rounds, calls, repetitions, searches, tokens, money     approval   a person decides before a call runs
preflight     the program's own check, before asking and running      rules      who may see and call what
interaction   tools whose answer a person gives                       memory     what earlier turns show, the store
history       a window on what was said, with a summary                truncate   results no longer than can be read
structured    the answer as a value, repaired or refused               processors what goes in, comes out and is kept
thought       extra arguments, for your program only                   usage      quotas, and what model calls cost
follow_ups    questions the user might ask next                        retry      calls that failed in passing, again
timeout       how long a tool, a model, a turn may take                eligibility: a reply is taken as it is
logs          a line a round, ids on each, no secrets           otel       spans and metrics of OpenTelemetry
trace         an observer: what happens, for a person to read       narration  facts in the words that it prints
plain         before and after: layers from plain functions           defaults   the layers an agent has by itself

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
    from toolsearch.layers._logs import LogFilter, logs
    from toolsearch.layers._memory import memory
    from toolsearch.layers._otel import otel
    from toolsearch.layers._plain import after, before
    from toolsearch.layers._preflight import Completed, Denied, Ready, preflight
    from toolsearch.layers._processors import Refuse, Rewrite, processors, redact
    from toolsearch.layers._retry import is_transient, retry
    from toolsearch.layers._rules import rules
    from toolsearch.layers._structured import structured
    from toolsearch.layers._thought import thought
    from toolsearch.layers._timeout import timeout
    from toolsearch.layers._trace import trace
    from toolsearch.layers._truncate import truncate
    from toolsearch.layers._usage import PRICES, Price, Quota, cost, usage, usage_summary, usage_table
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
    "Refuse",
    "Rewrite",
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
    "logs",
    "memory",
    "otel",
    "preflight",
    "processors",
    "redact",
    "redacted",
    "retry",
    "rules",
    "scope",
    "structured",
    "thought",
    "timeout",
    "trace",
    "truncate",
    "usage",
    "usage_summary",
    "usage_table",
]

# For a layer of your own and for a program around one.
_OUTSIDE = {"redacted": "toolsearch.support.redaction", "scope": "toolsearch.support.context"}

# Where each name is; one that is not here is in the module called like it.
_WHERE = {
    "PRICES": "usage",
    "cost": "usage",
    "is_transient": "retry",
    "usage_summary": "usage",
    "usage_table": "usage",
    "after": "plain",
    "before": "plain",
    "Completed": "preflight",
    "Denied": "preflight",
    "Policy": "approval",
    "Price": "usage",
    "Quota": "usage",
    "Ready": "preflight",
    "Refuse": "processors",
    "Rewrite": "processors",
    "follow_ups_of": "follow_ups",
    "redact": "processors",
    "LogFilter": "logs",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _OUTSIDE.get(name) or f"{__name__}._{_WHERE.get(name, name)}"
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
