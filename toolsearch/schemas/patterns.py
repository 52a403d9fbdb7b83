"""Regular expressions of schemas: run by a linear-time engine, and only where compiling them is cheap."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolsearch.support.bounded_cache import BoundedCache

__all__ = ["PATTERN_WEIGHT", "Pattern", "pattern_of", "weight_of"]

log = logging.getLogger("toolsearch")

PATTERN_WEIGHT = 20_000  # the heaviest pattern that is compiled: `\w` 200 times, which takes 0.2 s
MATCH_WORK = 500_000_000  # the most of weight times characters in one match, which nothing can interrupt: some 0.1 s
_TOO_HEAVY = "takes too much work to compile"
_CLASSES = {"w": 100, "W": 100, "p": 100, "P": 100, "d": 5, "D": 5}  # of Unicode: large automata
_TOKEN = re.compile(
    r"\\[pP]\{[^}]*\}|\\."  # an escape
    r"|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]"  # a class
    r"|\{(\d{1,9})(,?)(\d{0,9})\}"  # a counted repetition
    r"|\((?:\?(?:P?<\w+>|[a-zA-Z-]*[:)]|<?[=!]))?"  # the beginning of a group, or flags
    r"|.",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as a schema gives it; `problem` says why it is not checked, and is empty where it is."""

    text: str
    weight: int
    compiled: SchemaValidator | None
    problem: str = ""

    def matches(self, text: str) -> bool | None:
        """Whether a text holds the pattern; None where that cannot be told."""
        if self.compiled is None:
            return None
        if len(text) * self.weight > MATCH_WORK:
            _warn_once(self.text[:200])
            return None
        return self.compiled.isinstance_python(text)


@lru_cache(maxsize=1024)
def _warn_once(pattern: str) -> None:
    log.warning("texts that are too long for the pattern %r are not checked against it", pattern)


_patterns: BoundedCache[Pattern] = BoundedCache(20 * PATTERN_WEIGHT)


def pattern_of(text: str) -> Pattern:
    """The pattern, compiled if it is not too heavy, and once while it stays in use."""
    found = _patterns.get(text)
    if found is not None:
        return found
    weight = weight_of(text)
    if weight > PATTERN_WEIGHT:
        return Pattern(text, weight, None, _TOO_HEAVY)
    try:
        compiled = SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex"))
    except SchemaError as error:
        too_large = "size limit" in str(error)
        problem = _TOO_HEAVY if too_large else "is no pattern of a linear-time engine, which has no look-around"
        found = Pattern(text, weight, None, problem)
    else:
        found = Pattern(text, weight, compiled)
    return _patterns.put(text, found, 100 + weight + len(text))


def weight_of(pattern: str) -> int:
    """About how many states the automaton of a pattern has; what stands in counted repetitions counts as often."""
    groups, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        text = token.group()
        if token.group(1):
            times = int(token.group(3) or token.group(1))
            groups[-1] += last * max(0, times - 1)
            last *= max(1, times)
            continue
        if text.startswith("("):
            if not text.endswith(")"):
                groups.append(0)
            continue
        if text == ")" and len(groups) > 1:
            last = groups.pop()
        else:
            last = _atom(text)
        groups[-1] += last
    return min(sum(groups), 10**12)


def _atom(text: str) -> int:
    if text.startswith("\\"):
        return _CLASSES.get(text[1:2], 1)
    if text.startswith("["):
        return sum(_CLASSES.get(each, 0) for each in re.findall(r"\\(.)", text)) + (1 if text.isascii() else 3) + (
            2 if text.startswith("[^") else 0
        )  # fmt: skip
    return 3 if text == "." else 1
