"""One tool: what it is called and does, what it takes, how it may be run; made from a function or a definition."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack, overload

from toolsearch.catalog.definitions import Definition, parts, read
from toolsearch.catalog.functions import Function
from toolsearch.catalog.names import base_name
from toolsearch.catalog.sanitising import clean_schema, clean_text
from toolsearch.errors import DefinitionError, SetupError
from toolsearch.schemas.json_schema import normalised
from toolsearch.tokens import ESTIMATE

__all__ = [
    "Kind",
    "Marks",
    "Shown",
    "Tool",
    "definition_of",
    "definition_tokens",
    "first_sentence",
    "made_from",
    "tool",
]

Kind = Literal["read", "action"]


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool, immutable. Two tools are equal when their digests are: same texts, same schema, same marks.

    `id` never changes and is what permissions, metrics and labels use: "server/name", or the name where there is no
    server. `description` and the texts in `input_schema` are cleaned; `flags` names what was found in them.
    `kind` is "action" for a tool that changes something; `alone` (default: every action) runs by itself in a round;
    `repeatable` may run again after a crash; `return_direct` and `terminal` are for the loop, `polling` (asking again
    with the same arguments is its use) for its limits. `roles`: a caller needs one of them to see the tool. `run` does
    the work; without it the program runs the call itself.

    `examples` are requests the tool answers, by its author. `enriched` are such requests by anybody else, which
    `Catalog.enrich` puts there: searched like the others, but no part of the definition, of its digest, or of equality.
    """

    id: str
    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    server: str | None = None
    title: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    enriched: tuple[str, ...] = field(default=(), kw_only=True)
    kind: Kind = "read"
    repeatable: bool = True
    alone: bool = False
    return_direct: bool = False
    terminal: bool = False
    polling: bool = False
    roles: frozenset[str] = frozenset()
    version: str | None = None
    flags: tuple[str, ...] = ()
    run: Callable[..., Any] | None = None
    function: Function | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything a model or a policy can see: texts, schema, marks."""
        texts: list[Any] = [self.id, self.name, self.title, self.description, self.input_schema, self.server]
        marks: list[Any] = [self.category, self.tags, self.examples, self.kind, self.repeatable, self.alone]
        seen = [*texts, *marks, self.return_direct, self.terminal, sorted(self.roles), self.version]
        seen += ["polling"] if self.polling else []
        return hashlib.sha256(json.dumps(seen, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    @cached_property
    def searched_digest(self) -> str:
        """What changes whenever an index has to take the tool anew: the digest, the flags, the enriched queries."""
        told = [" ".join((self.digest, *self.flags)), *self.enriched]
        return hashlib.sha256("\0".join(told).encode("utf-8", "replace")).hexdigest() if self.enriched else told[0]

    @property
    def base_name(self) -> str:
        return base_name(self.name, self.server)

    def summary(self, limit: int = 160) -> str:
        """The first sentence, at most `limit` characters; an ellipsis says that it was cut."""
        return first_sentence(self.description or self.fallback_description, limit)

    @property
    def fallback_description(self) -> str:
        """What a tool without a description is said to do: its name in words."""
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-_./:]+", " ", self.base_name).strip().lower()
        return f"{spaced.capitalize()}." if spaced else self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.run is None:
            raise SetupError(f"tool {self.id!r} has no function to run")
        return self.run(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.id!r}: {self.summary(60)})"


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool as a request carries it: the name the model calls it by, and the definition as it was first shown.

    `built_in` ones are the session's own, as the search tool is.
    """

    name: str
    tool: Tool
    built_in: bool = False


class Marks(TypedDict, total=False):
    """What may be said of a tool beside its definition; each replaces what the definition says itself."""

    name: str
    description: str
    server: str
    title: str
    category: str
    tags: Iterable[str]
    examples: Iterable[str]
    kind: Kind
    repeatable: bool
    alone: bool
    return_direct: bool
    terminal: bool
    polling: bool
    roles: Iterable[str]
    version: str
    run: Callable[..., Any]


@overload
def tool(source: Callable[..., Any] | Mapping[str, Any], /, **marks: Unpack[Marks]) -> Tool: ...
@overload
def tool(**marks: Unpack[Marks]) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(source: Any = None, /, **marks: Unpack[Marks]) -> Any:
    """A tool from a function or a definition: `@tool`, `@tool(kind="action")`, or `tool(definition, run=call)`.

    Raises `DefinitionError` for what cannot be a tool. The tool can still be called like the function.
    """
    if source is None:
        return lambda call: tool(call, **marks)
    found = list(parts(source))
    if len(found) != 1:
        raise DefinitionError(f"this definition holds {len(found)} tools; pass it to Catalog instead")
    return made_from(definition_of(found[0]), marks)


def definition_of(part: Any) -> Definition:
    """What one part of a source says of its tool; a finished tool is taken apart again."""
    return Definition.of(part) if isinstance(part, Tool) else read(part)


def made_from(definition: Definition, marks: Mapping[str, Any]) -> Tool:
    """The tool a definition describes, cleaned and checked."""
    told = {**definition.marks, **{k: v for k, v in marks.items() if v is not None}}
    named = told.pop("name", None)
    if not isinstance(named, str):
        raise DefinitionError(f"a tool needs a name, not {named!r}")
    clear, flags = clean_text(named)
    if not clear:
        raise DefinitionError(f"a tool needs a name, not {named!r}; a lambda is given one with tool(call, name='…')")
    name: str = re.sub(r"[\t\r\n]+", " ", clear)
    if len(name) > 512:
        raise DefinitionError(f"the name {name[:60]!r}… has {len(name)} characters; 512 is the most")
    description = told.pop("description", None) or ""
    if not isinstance(description, str):
        raise DefinitionError(f"the description of {name!r} must be text, not {type(description).__name__}")
    description, more = clean_text(description)
    try:
        schema, most = clean_schema(normalised(definition.schema, name))
        json.dumps(schema, allow_nan=False)
    except (RecursionError, ValueError, TypeError) as error:
        if isinstance(error, DefinitionError):
            raise
        raise DefinitionError(f"the input schema of {name!r} is not JSON: {error}") from None
    run, function = told.get("run"), definition.function
    if run is not None and not callable(run):
        raise DefinitionError(f"'run' of {name!r} must be a function, not {run!r}")
    if function is not None and function.call is not run:  # another one was given to run
        function = None
    kind = told.setdefault("kind", "read")
    if kind not in ("read", "action"):
        raise DefinitionError(f"the kind of {name!r} must be 'read' or 'action', not {kind!r}")
    told.setdefault("repeatable", kind == "read")
    told.setdefault("alone", kind == "action")
    for key in ("repeatable", "alone", "return_direct", "terminal", "polling"):
        if not isinstance(told.get(key, False), bool):
            raise DefinitionError(f"{key!r} of {name!r} must be true or false, not {told[key]!r}")
    found = [*definition.flags, *flags, *more, *most]
    for key in ("server", "category", "title", "version"):
        if told.get(key) is not None:
            (told[key],) = _texts([told[key]], key, name, found)
    for key, make in (("tags", tuple), ("examples", tuple), ("roles", frozenset)):
        told[key] = make(_texts(told.get(key), key, name, found))
    flags = tuple(dict.fromkeys(found))
    server = told["server"] = told.get("server") or None
    tool_id = f"{server}/{name}" if server else name
    return Tool(tool_id, name, description, schema, flags=flags, function=function, **told)


def _texts(value: Any, key: str, name: str, flags: list[str]) -> list[str]:
    """The texts of a mark, cleaned; a set is put in order, so that the digest is the same in every process."""
    if value is None:
        return []
    items = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [None]
    given = [item for item in items if isinstance(item, str)]
    if isinstance(value, Mapping) or len(given) < len(items):
        raise DefinitionError(f"{key!r} of {name!r} must be text, not {value!r}")
    texts = []
    for item in sorted(given) if isinstance(value, set | frozenset) else given:
        text, found = clean_text(item)
        texts.append(text)
        flags.extend(found)
    return texts


def definition_tokens(tool: Tool) -> int:
    """An estimate of what one definition costs in a request."""
    return ESTIMATE.of([tool.name, tool.description, tool.input_schema]) + 10


_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|[ap]\.m|etc|vs|cf|approx|incl|excl|no|nr|nos|max|min|resp|fig|figs|vol|ch|sec|eq|ed|pp|dept|"
    r"prof|gen|gov|sen|rep|inc|ltd|co|corp|est|ext|jr|sr|st|dr|mr|mrs|ms)|\b[A-Za-z])\.$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s+[^a-z\s])|[。！？]|\n\s*\n")


def first_sentence(text: str, limit: int = 160) -> str:
    """Up to the first end of a sentence (not inside "e.g." or "v2.0"), cut between words with an ellipsis."""
    end = len(text)
    for match in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(text[max(0, match.end() - 16) : match.end()]):
            end = match.end()
            break
    sentence = " ".join(text[:end].split())
    if len(sentence) <= limit:
        return sentence
    cut = sentence[: limit - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[limit // 2 :] else cut).rstrip(" ,;:.") + "…"
