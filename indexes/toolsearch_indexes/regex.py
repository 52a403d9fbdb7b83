"""Regular expressions, in a linear-time engine and ranked by what matched; plain words are searched as `keyword` does.

The engine is Rust's, inside pydantic-core: it cannot backtrack, so no pattern a model writes can hang. It has no
look-around and no back-references; for those the `regex` package is used if it is installed, with a time limit.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from time import monotonic

from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolsearch.catalog import Tool
from toolsearch.errors import QueryError
from toolsearch.index import Matched, Scored
from toolsearch_indexes.document import FIELDS, texts
from toolsearch_indexes.keyword import KeywordIndex

__all__ = ["RegexIndex"]

PATTERN_CHARACTERS = 200
TEXT_CHARACTERS = 20_000  # of one field
DEADLINE_SECONDS = 0.1
GOOD = "(create|open)_?issue"

_Test = Callable[[str], bool]
# What prose does not contain: classes, groups, alternatives, anchors, counts, escapes, `.*`, and a star on a word.
_PATTERN = re.compile(r"[\\|^$\[\]{}()]|\.[*+?]|\w\*|\*\w|\w\+(?!\S*\w)")
_GLOB = re.compile(r"(?:\w|(?<![\w)\].])(?=\*\w))\*")


class RegexIndex:
    """Patterns over name, server, description and arguments, in any case; each alternative is weighed by its rarity."""

    name = "regex"

    def __init__(self) -> None:
        self._words = KeywordIndex()
        self._texts: dict[str, dict[str, str]] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, tools: Sequence[Tool]) -> None:
        with self._lock:
            self._words.add(tools)
            for tool in tools:
                self._texts[tool.id] = {
                    name: text[:TEXT_CHARACTERS] for name, text in texts(tool).items() if text.strip()
                }

    def remove(self, ids: Sequence[str]) -> None:
        with self._lock:
            self._words.remove(ids)
            for tool_id in ids:
                self._texts.pop(tool_id, None)

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        if not _PATTERN.search(query):
            return self._words.search(query, limit, among)
        try:
            alternatives = _alternatives(query.strip())
        except QueryError:
            # A sentence with a stray bracket is still a sentence.
            if len(re.findall(r"\w{2,}", query)) > 1 and re.search(r"\w\s+\w", query):
                return self._words.search(query, limit, among)
            raise
        return self._ranked(alternatives, limit, among)

    def _ranked(
        self, alternatives: list[tuple[str, _Test]], limit: int, among: AbstractSet[str] | None
    ) -> list[Scored]:
        with self._lock:
            documents = [(i, t) for i, t in self._texts.items() if among is None or i in among]
        deadline = monotonic() + DEADLINE_SECONDS
        found: dict[str, dict[str, tuple[str, ...]]] = {}  # tool -> alternative -> fields
        for pattern, test in alternatives:
            for tool_id, fields in documents:
                try:
                    held = tuple(name for name, text in fields.items() if test(text))
                except TimeoutError:
                    raise _too_slow(pattern) from None
                if monotonic() > deadline:
                    raise _too_slow(pattern)
                if held:
                    found.setdefault(tool_id, {})[pattern] = held
        rarity = {
            pattern: math.log(1 + len(documents) / max(1, sum(pattern in matched for matched in found.values())))
            for pattern, _ in alternatives
        }
        hits = []
        for tool_id, matched in found.items():
            score = sum(rarity[p] * sum(FIELDS[name].weight for name in fields) for p, fields in matched.items())
            hits.append(Scored(tool_id, score, tuple(Matched(p, fields) for p, fields in matched.items())))
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def _too_slow(pattern: str) -> QueryError:
    return QueryError(f"The pattern {pattern!r} takes too long; write a simpler one, like {GOOD!r}.")


def _alternatives(query: str) -> list[tuple[str, _Test]]:
    """The pattern's alternatives at the top level, compiled; raises `QueryError` with the position of a mistake."""
    if len(query) > PATTERN_CHARACTERS:
        raise QueryError(
            f"The pattern has {len(query)} characters; {PATTERN_CHARACTERS} is the most. Use a few plain words instead."
        )
    pattern = _GLOB.sub(lambda star: star.group()[:-1] + ".*", query)  # `get_*` and `*mail` are meant as globs
    whole = _compiled(pattern)
    if whole(""):
        raise QueryError(f"The pattern {query!r} fits any text. Say more of what is sought, like {GOOD!r}.")
    parts = [part for part in _split(pattern) if part]
    if len(parts) > 1:
        try:
            return [(part, _compiled(part)) for part in dict.fromkeys(parts)]
        except QueryError:
            pass  # an inline flag spans the alternatives, say
    return [(pattern, whole)]


def _split(pattern: str) -> list[str]:
    """The pattern cut at each `|` that is in no group or class."""
    parts, depth, in_class, at = [""], 0, False, 0
    while at < len(pattern):
        char = pattern[at]
        step = 2 if char == "\\" else 1
        if char == "[" or (char == "]" and in_class):
            in_class = char == "["
        elif not in_class:
            depth += (char == "(") - (char == ")")
        if char == "|" and not in_class and depth == 0:
            parts.append("")
        else:
            parts[-1] += pattern[at : at + step]
        at += step
    return parts


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> _Test:
    try:
        return SchemaValidator(
            core_schema.str_schema(pattern=f"(?i){pattern}", regex_engine="rust-regex")
        ).isinstance_python
    except SchemaError as error:
        message = str(error)
    if "look-around" in message or "backreference" in message:
        return _backtracking(pattern)
    caret = next((line.index("^") for line in message.splitlines() if line.strip(" ^") == "" and "^" in line), None)
    reason = re.search(r"error: (.+)", message)
    where = f" at position {caret - len('    (?i)')}" if caret is not None else ""
    what = reason[1].split(" at ")[0].strip() if reason else "it is too large"
    raise QueryError(
        f"The pattern {pattern!r} is not valid{where}: {what}. A good pattern is {GOOD!r}; plain words work too."
    )


def _backtracking(pattern: str) -> _Test:
    try:
        import regex
    except ImportError:
        raise QueryError(
            f"The pattern {pattern!r} uses look-around or a back-reference, which this engine does not have. "
            f"A good pattern is {GOOD!r}; plain words work too."
        ) from None
    try:
        compiled = regex.compile(pattern, regex.IGNORECASE)
    except regex.error as error:
        raise QueryError(f"The pattern {pattern!r} is not valid: {error}. A good pattern is {GOOD!r}.") from None
    return lambda text: compiled.search(text, timeout=DEADLINE_SECONDS / 4) is not None
