"""Several calls in one: `multi_tool_use.parallel`, which models of OpenAI call although there is no such tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolsearch.schemas.validation import ArgumentsError, parse_arguments

__all__ = ["inner_calls", "is_parallel"]

MOST_INNER = 100
_PARALLEL = re.compile(r"(?:functions[._])?multi_tool_use[._]parallel")


def is_parallel(name: object) -> bool:
    """Whether a name is that of the tool which is none."""
    return isinstance(name, str) and _PARALLEL.fullmatch(name) is not None


def inner_calls(name: object, arguments: Any) -> list[tuple[str, Any]]:
    """The calls inside such a call, each with its name and arguments; none where it is another, or cannot be read.

    Nothing is guessed: a call that holds anything else does not run in part.
    """
    if not is_parallel(name):
        return []
    try:
        outer = parse_arguments(arguments)
    except ArgumentsError:
        return []
    uses = outer.get("tool_uses")
    if outer.keys() != {"tool_uses"} or not isinstance(uses, list) or not 0 < len(uses) <= MOST_INNER:
        return []
    inner: list[tuple[str, Any]] = []
    for use in uses:
        called, parameters = (use.get("recipient_name"), use.get("parameters")) if isinstance(use, Mapping) else (0, 0)
        if not (isinstance(called, str) and called and isinstance(parameters, str | Mapping | None)):
            return []
        inner.append((called, parameters))
    return inner
