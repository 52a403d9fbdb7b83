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
trace         an observer: what happens, for a person to read
delegation    an agent as a tool of another one

Importing one imports no other.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolsearch.layers.approval import Policy, approval
    from toolsearch.layers.delegation import delegate, delegation
    from toolsearch.layers.eligibility import eligibility
    from toolsearch.layers.follow_ups import follow_ups, follow_ups_of
    from toolsearch.layers.history import history
    from toolsearch.layers.interaction import interaction
    from toolsearch.layers.limits import limits
    from toolsearch.layers.logs import LogFilter, logs
    from toolsearch.layers.memory import memory
    from toolsearch.layers.otel import otel
    from toolsearch.layers.preflight import Completed, Denied, Ready, preflight
    from toolsearch.layers.processors import Refuse, Rewrite, processors, redact
    from toolsearch.layers.retry import retry
    from toolsearch.layers.rules import rules
    from toolsearch.layers.structured import structured
    from toolsearch.layers.thought import thought
    from toolsearch.layers.timeout import timeout
    from toolsearch.layers.trace import trace
    from toolsearch.layers.truncate import truncate
    from toolsearch.layers.usage import Price, Quota, usage

__all__ = [
    "Completed",
    "Denied",
    "LogFilter",
    "Policy",
    "Price",
    "Quota",
    "Ready",
    "Refuse",
    "Rewrite",
    "approval",
    "delegate",
    "delegation",
    "eligibility",
    "follow_ups",
    "follow_ups_of",
    "history",
    "interaction",
    "limits",
    "logs",
    "memory",
    "otel",
    "preflight",
    "processors",
    "redact",
    "retry",
    "rules",
    "structured",
    "thought",
    "timeout",
    "trace",
    "truncate",
    "usage",
]

# Where each name is; one that is not here is in the module called like it.
_WHERE = {
    "Completed": "preflight",
    "Denied": "preflight",
    "Policy": "approval",
    "Price": "usage",
    "Quota": "usage",
    "Ready": "preflight",
    "Refuse": "processors",
    "Rewrite": "processors",
    "delegate": "delegation",
    "follow_ups_of": "follow_ups",
    "redact": "processors",
    "LogFilter": "logs",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE.get(name, name)}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Layers(ModuleType):
    """This package: a layer's name means what makes the layer, even after its module of that name was imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        made = isinstance(value, ModuleType) and name in __all__
        super().__setattr__(name, getattr(value, name) if made else value)


sys.modules[__name__].__class__ = _Layers
