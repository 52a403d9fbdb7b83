"""Regular expressions, in a linear-time engine and ranked by what matched; plain words are searched as `keyword` does.

The engine is Rust's, inside pydantic-core: it cannot backtrack, so no pattern a model writes can hang. It has no
look-around and no back-references; for those the `regex` package is used if it is installed, with a time limit.

Patterns and texts are in Unicode's form NFC. A pattern sees each text twice: as it stands, and with its identifiers
split into words, so that `\\binvoice\\b` fits `list_invoice_items` and `sendInvoice`.
"""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from heapq import nsmallest
from itertools import pairwise
from time import thread_time

from pydantic_core import SchemaError, SchemaValidator, core_schema

from toolsearch.catalog import Tool
from toolsearch.errors import QueryError
from toolsearch.protocols import Matched, Ranking, Scored
from toolsearch_indexes.document import FIELDS, texts
from toolsearch_indexes.keyword import KeywordIndex

__all__ = ["RegexIndex"]

PATTERN_CHARACTERS = 200
PATTERN_STEPS = 300  # single characters and classes, counts multiplied out: the cost of compiling
PIECE_CHARACTERS = 20_000  # a longer text is tested in pieces, so that the deadline is looked at in between
DEADLINE_SECONDS = 0.1  # of processor time, so that a busy machine changes no answer
WEIGHED_APART = 10_000  # tools times alternatives; where more fit, the pattern is weighed as a whole
NEARLY_ALL = 0.9  # of the tools; a pattern that fits so many does not say what is sought
GOOD = "(create|open)_?issue"

_Test = Callable[[str], bool]
# What prose does not contain: escapes, groups, classes, counts, alternatives without spaces, anchors at an end,
# `.*`, a question mark inside a word, and a star on a word.
_PATTERN = re.compile(
    r"\\|[\[\](){}]|(?<!\s)\||\|(?!\s)|(?:^|\|)\^|\S\$(?=$|\|)|\.[*+]|\.\?(?=\w)|\w\?(?=\w)|\w\*|\*\w"
)
# An aside as people write it, "(urgent)", "[draft]", "($)": brackets of their own around words, or around no word.
_ASIDE = re.compile(r"(?<!\S)(?:\([\w\s,;:.'&/$€£%-]*\)|\[[\w\s,;:.'&/$€£%]*\]|\{[A-Za-z_][\w\s]*\})(?=[\s.,;:!?]|$)")
_SENTENCE = re.compile(r"\w\w\W*\s\W*\w\w")  # two words with a space between
_GLOB = re.compile(r"(?:\w|(?<![\w)\].])(?=\*\w))\*")
# Two texts with nothing in common but their form; a pattern that fits both does not say what is sought.
_ANYTHING = ("Bcdf_ghjk Bcdf", "Vwxy_zqlm Vwxy")
_STEP = re.compile(r"\\[pP]\{\w*\}|\\.|\[(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|.", re.DOTALL)
_BETWEEN = "\n\x1f\n"  # between the fields of a tool
_ALSO = "\n\x1e\n"  # between a field as it stands and the same with its identifiers split
_RUN = re.compile(r"\w+")
# `URLs` and `S3` are words, `HTTPServer` two.
_WORD = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+[0-9]*(?![a-z])|[A-Z]?[a-z]+[0-9]*|[0-9]+")


class RegexIndex:
    """Patterns over name, server, description and arguments, in any case; each alternative is weighed by its rarity."""

    name = "regex"

    def __init__(self) -> None:
        self._words = KeywordIndex()
        self._texts: dict[str, str] = {}  # all fields of a tool in one
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tools={len(self._texts)})"

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, tools: Sequence[Tool]) -> None:
        with self._lock:
            self._words.add(tools)
            for tool in tools:
                self._texts[tool.id] = _BETWEEN.join(map(_both_forms, texts(tool).values()))

    def remove(self, ids: Sequence[str]) -> None:
        with self._lock:
            self._words.remove(ids)
            for tool_id in ids:
                self._texts.pop(tool_id, None)

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        query = unicodedata.normalize("NFC", query.strip())
        if not _PATTERN.search(_ASIDE.sub("", query)):
            return self._words.search(query, limit, among)
        try:
            hits = self._rank(query, *_alternatives(query), limit, among)
        except TimeoutError:
            raise QueryError(f"The pattern {query!r} takes too long; write a simpler one, like {GOOD!r}.") from None
        except QueryError:
            if not _SENTENCE.search(query):
                raise
            hits = Ranking()
        # A sentence with a stray bracket, or one that only looks like a pattern, is still a sentence.
        return hits or (self._words.search(query, limit, among) if _SENTENCE.search(query) else [])

    def _rank(
        self, query: str, anywhere: _Test, alternatives: dict[str, _Test], limit: int, among: AbstractSet[str] | None
    ) -> Ranking:
        """Raises `TimeoutError` when the deadline has passed."""
        with self._lock:
            documents = {i: t for i, t in self._texts.items() if among is None or i in among}
        deadline = thread_time() + DEADLINE_SECONDS

        def fits(test: _Test, text: str) -> bool:
            for form in text.split(_ALSO):
                for piece in _pieces(form):
                    if thread_time() > deadline:
                        raise TimeoutError
                    if test(piece):
                        return True
            return False

        fitting = [tool_id for tool_id, text in documents.items() if fits(anywhere, text)]
        if len(fitting) * len(alternatives) > WEIGHED_APART:
            alternatives = {"|".join(alternatives): anywhere}
        fits_of: dict[str, tuple[int, ...]] = {}  # tool -> for each alternative the fields it fits, a bit each
        for tool_id in fitting:
            fields = documents[tool_id].split(_BETWEEN)
            fits_of[tool_id] = tuple(
                sum(1 << at for at, text in enumerate(fields) if text and fits(test, text))
                for test in alternatives.values()
            )
        holders = [sum(map(bool, fits_in)) for fits_in in zip(*fits_of.values(), strict=True)]
        rarities = [math.log(1 + len(documents) / max(1, tools)) for tools in holders]
        scored = ((sum(map(_weigh, rarities, fits_in)), tool_id) for tool_id, fits_in in fits_of.items())
        best = nsmallest(limit, ((-score, tool_id) for score, tool_id in scored if score > 0))
        hits = (
            Scored(
                i,
                -score,
                tuple(Matched(p, _names(bits)) for p, bits in zip(alternatives, fits_of[i], strict=True) if bits),
            )
            for score, i in best
        )
        return Ranking(hits, hint=_hint(query, len(fitting), len(documents)) if len(fitting) > limit else None)


def _hint(query: str, fitting: int, tools: int) -> str | None:
    """What to say of a pattern that fits so many of the tools that the best are no better than the rest."""
    if fitting < NEARLY_ALL * tools:
        return None
    which = f"all {tools:,} tools" if fitting == tools else f"{fitting:,} of {tools:,} tools"
    return f"The pattern {query!r} fits {which}. Say more of what is sought, like {GOOD!r}."


def _both_forms(text: str) -> str:
    """A field's text as patterns see it: as it stands, and if that is another text, with its identifiers split."""
    text = unicodedata.normalize("NFC", text).replace("\x1f", " ").replace("\x1e", " ")
    apart = _RUN.sub(_split_run, text)
    return text if apart == text else f"{text}{_ALSO}{apart}"


def _split_run(run: re.Match[str]) -> str:
    """An identifier as words, cut at underscores and humps; any other word as it is."""
    text = run.group()
    if text.isascii():
        return " ".join(_WORD.findall(text)) or " "
    humps = (f" {char}" if before.islower() and char.isupper() else char for before, char in pairwise(f" {text}"))
    return "".join(humps).replace("_", " ")


def _names(bits: int) -> tuple[str, ...]:
    return tuple(name for at, name in enumerate(FIELDS) if bits >> at & 1)


def _weigh(rarity: float, bits: int) -> float:
    return rarity * sum(FIELDS[name].weight for name in _names(bits))


def _pieces(text: str) -> list[str]:
    """The text, or if it is long its overlapping pieces."""
    if len(text) <= PIECE_CHARACTERS:
        return [text]
    return [text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS - PATTERN_CHARACTERS)]


def _alternatives(query: str) -> tuple[_Test, dict[str, _Test]]:
    """A test for all fields joined in one text, and one for each top-level alternative that is specific enough.

    Raises `QueryError` with the position of a mistake.
    """
    if len(query) > PATTERN_CHARACTERS:
        raise QueryError(
            f"The pattern has {len(query)} characters; {PATTERN_CHARACTERS} is the most. Use a few plain words instead."
        )
    pattern = _GLOB.sub(lambda star: star.group()[:-1] + ".*", query)  # `get_*` and `*mail` are meant as globs
    if (steps := _steps(pattern)) > PATTERN_STEPS:
        raise QueryError(
            f"The pattern {query!r} spells out {steps} characters; {PATTERN_STEPS} is the most. Count less, or use `*`."
        )
    whole = _compile(pattern)
    try:
        tests = {part: _compile(part) for part in map(str.strip, _split(pattern)) if part}
    except QueryError:
        tests = {pattern: whole}  # an inline flag spans the alternatives, say
    telling = {part: test for part, test in tests.items() if not test("") and not all(map(test, _ANYTHING))}
    if not telling:
        raise QueryError(f"The pattern {query!r} fits any text. Say more of what is sought, like {GOOD!r}.")
    # With `m` the anchors mean a field's ends too, and ends of lines, which is sorted out field by field.
    return _compile(f"(?m:{'|'.join(telling)})"), telling


def _steps(pattern: str) -> int:
    """How many characters and classes the pattern spells out."""
    groups, last = [0], 0
    for step in _STEP.finditer(pattern):
        low, high = step.groups()
        if low:
            last, before = last * max(int(low), int(high or 0)), last
            groups[-1] += last - before
        elif step.group() == "(":
            groups.append(0)
        elif step.group() == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        else:
            last = 1
            groups[-1] += 1
    return sum(groups)


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
def _compile(pattern: str) -> _Test:
    try:
        return SchemaValidator(
            core_schema.str_schema(pattern=f"(?i){pattern}", regex_engine="rust-regex")
        ).isinstance_python
    except SchemaError as error:
        message = str(error)
    if "look-around" in message or "backreference" in message:
        return _compile_backtracking(pattern)
    caret = next((line.index("^") for line in message.splitlines() if line.strip(" ^") == "" and "^" in line), None)
    reason = re.search(r"error: (.+)", message)
    where = f" at position {caret - len('    (?i)')}" if caret is not None else ""
    what = reason[1].split(" at ")[0].strip() if reason else "it is too large"
    raise QueryError(
        f"The pattern {pattern!r} is not valid{where}: {what}. A good pattern is {GOOD!r}; plain words work too."
    )


def _compile_backtracking(pattern: str) -> _Test:
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
    return lambda text: compiled.search(text, timeout=DEADLINE_SECONDS / 10) is not None
