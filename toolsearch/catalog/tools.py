"""One tool: its name, what it does and takes, and how it may be run; made from a function or a definition."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Unpack, overload

from toolsearch.calls import LoadedTool
from toolsearch.catalog.definitions import Definition, read_definition
from toolsearch.catalog.functions import Function
from toolsearch.catalog.listings import parts
from toolsearch.catalog.marks import DEFAULT_MARKS, OPTION_NAMES, Kind, Marks, ToolOptions, check_options
from toolsearch.catalog.names import base_name, tool_id
from toolsearch.catalog.sanitising import TEXT_CHARACTERS, clean_schema, clean_text
from toolsearch.catalog.trust import check_trust, limited
from toolsearch.errors import DefinitionError, SetupError
from toolsearch.schemas.export import Exported, Target, check_export, exported
from toolsearch.schemas.json_schema import normalised, unchecked
from toolsearch.schemas.limits import check_size
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import plain_json
from toolsearch.tokens import ESTIMATE

__all__ = [
    "Shown",
    "Tool",
    "definition_of",
    "definition_tokens",
    "first_sentence",
    "from_definition",
    "loaded_of",
    "made_from",
    "shown_of",
    "tool",
]

LONGEST_NAME = 512  # characters


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool, immutable. Two tools are equal when their digests are: same texts, same schema, same marks.

    `id` never changes and is what permissions, metrics and labels use: "server/name", or the name where there is no
    server. `description` and the texts in `input_schema` are cleaned; `flags` names what was found in them.
    `marks` say how it may be run; each can be read from the tool too, as in `tool.kind`. `roles`: a caller needs one of
    them to see the tool. `run` does the work; without it the program runs the call itself.

    `unchecked` names what in the schema no call is checked against, because it cannot be read.

    `examples` are requests that the tool answers, written by its author. `enriched` are such requests from other
    sources, attached by `Catalog.enrich`: they are searched like the others, but are not part of the definition, of its
    digest, or of equality.
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
    unchecked: tuple[str, ...] = field(default=(), kw_only=True)
    marks: Marks = DEFAULT_MARKS
    roles: frozenset[str] = frozenset()
    version: str | None = None
    flags: tuple[str, ...] = ()
    run: Callable[..., Any] | None = None
    function: Function | None = None
    output_schema: Mapping[str, Any] | None = field(default=None, kw_only=True)
    annotations: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything a model or a policy can see: texts, both schemas, marks, hints."""
        marks, later_marks = self.marks.digested()
        texts = [self.id, self.name, self.title, self.description, self.input_schema, self.server]
        words = [self.category, self.tags, self.examples]
        seen = [*texts, *words, *marks, sorted(self.roles), self.version, *later_marks]
        # Where there are none, digests are what they were before these two counted.
        seen += [{"output_schema": output}] if (output := self._telling_output) else []
        seen += [{"annotations": hints}] if (hints := self._unread_hints) else []
        return hashlib.sha256(json.dumps(seen, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    @cached_property
    def searched_digest(self) -> str:
        """Changes whenever an index must take the tool again: with the digest, the flags, or the enriched queries."""
        texts = [" ".join((self.digest, *self.flags)), *self.enriched]
        return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest() if self.enriched else texts[0]

    @property
    def _telling_output(self) -> dict[str, object]:
        """The output schema without what says nothing: that the output is an object, as MCP has it always be."""
        silent: dict[str, object] = {"type": "object", "properties": {}}
        return {k: v for k, v in (self.output_schema or {}).items() if k not in silent or silent[k] != v}

    @property
    def _unread_hints(self) -> dict[str, object]:
        """The hints that no mark and no text says as well."""
        said = {"readOnlyHint": self.kind == "read", "idempotentHint": self.repeatable, "title": self.title}
        return {key: hint for key, hint in self.annotations.items() if key not in said or said[key] != hint}

    @property
    def kind(self) -> Kind:
        return self.marks.kind

    @property
    def repeatable(self) -> bool:
        return self.marks.repeatable

    @property
    def alone(self) -> bool:
        return self.marks.alone

    @property
    def return_direct(self) -> bool:
        return self.marks.return_direct

    @property
    def terminal(self) -> bool:
        return self.marks.terminal

    @property
    def polling(self) -> bool:
        return self.marks.polling

    @property
    def base_name(self) -> str:
        return base_name(self.name, self.server)

    def summary(self, limit: int = 160) -> str:
        """The first sentence, at most `limit` characters; an ellipsis shows that it was cut."""
        return first_sentence(self.description or self.fallback_description, limit)

    @property
    def fallback_description(self) -> str:
        """The description of a tool that has none of its own: its name in words."""
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-_./:]+", " ", self.base_name).strip().lower()
        return f"{spaced.capitalize()}." if spaced else self.name

    def exported(self, target: Target = "openai") -> Exported:
        """The schema as a kind of provider accepts it, for a loop or a framework that sends definitions by itself.

        Raises `NotExportable` for a tool that cannot be expressed: leave it out of the request.
        """
        return exported(self.input_schema, target)

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

    `built_in` tools belong to the session, as the search tool does. In the mode "native", `delivered` says that the
    definition stands in the conversation already: a wire that delivers natively does not list it again.
    """

    name: str
    tool: Tool
    built_in: bool = False
    delivered: bool = False


def loaded_of(shown: Shown) -> LoadedTool:
    """The definition of a tool as an answer brings it."""
    tool = shown.tool
    description = tool.description or tool.fallback_description
    return LoadedTool(tool.id, shown.name, description, tool.input_schema, tool.server or "")


def shown_of(loaded: LoadedTool) -> Shown:
    """The same, as `definition` of a wire takes it."""
    schema, server = loaded.input_schema, loaded.server or None
    tool = Tool(loaded.id, loaded.name, loaded.description, schema, server)
    return Shown(loaded.name, tool, delivered=True)


@overload
def tool(source: object, /, *, trust: Iterable[str] = (), **options: Unpack[ToolOptions]) -> Tool: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., object]], Tool]: ...
def tool(
    source: object = None, /, *, trust: Iterable[str] = (), **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """A tool from a function or a definition: `@tool`, `@tool(kind="action")`, or `tool(definition, run=call)`.

    Raises `DefinitionError` for what cannot be a tool, and `SetupError` for an option that does not exist. The tool can
    still be called like the function. `trust`: the marks that a definition of a server may set; see `Catalog.extend`.
    """
    check_options(options)
    if source is None:
        return lambda call: tool(call, **options)
    definitions = parts(source)
    if len(definitions) != 1:
        raise DefinitionError(f"this definition holds {len(definitions)} tools; pass it to Catalog instead")
    return made_from(definitions[0], options, trust=check_trust(trust))[0]


def made_from(
    part: object, options: Mapping[str, object], *, trust: frozenset[str] = frozenset()
) -> tuple[Tool, tuple[str, ...]]:
    """The tool of one part of a source, and sentences on what of it was left out; see `limited` about `trust`."""
    if isinstance(part, Tool) and not options:
        return part, ()
    definition = definition_of(part)
    if not isinstance(part, Tool):
        definition = limited(definition, of_server="server" in options, trust=trust)
    return from_definition(definition, options), definition.notices


def definition_of(part: object) -> Definition:
    """What one part of a source says of its tool. A finished tool is taken apart, so that options can replace some."""
    if not isinstance(part, Tool):
        return read_definition(part)
    options = {each.name: getattr(part, each.name) for each in fields(part) if each.name in OPTION_NAMES}
    return Definition(
        options | part.marks.to_options(), part.input_schema, part, part.function, part.flags,
        annotations=part.annotations, output_schema=part.output_schema,
    )  # fmt: skip


def from_definition(definition: Definition, options: Mapping[str, object]) -> Tool:
    """The tool a definition describes, cleaned and checked. An option that is None says nothing."""
    chosen = {**definition.options, **{key: value for key, value in options.items() if value is not None}}
    flags = [*definition.flags]
    name = _name(chosen.get("name"), flags)
    description = _description(chosen.get("description"), name, flags)
    schema, unread = _schema(definition.schema, name, flags)
    run, function = chosen.get("run"), definition.function
    if run is not None and not callable(run):
        raise DefinitionError(f"'run' of {name!r} must be a function, not {run!r}")
    if function is not None and function.call is not run:  # the options name another function to run
        function = None
    marks = Marks.from_options(chosen, name)
    server, category, title, version = (
        _text(chosen.get(key), key, name, flags) for key in ("server", "category", "title", "version")
    )
    if len(server or "") > LONGEST_NAME:
        raise DefinitionError(
            f"the server of {name!r} has {len(server or ''):,} characters; at most {LONGEST_NAME} are allowed"
        )
    tags, examples, roles = (_texts(chosen.get(key), key, name, flags) for key in ("tags", "examples", "roles"))
    return Tool(
        id=tool_id(name, server),
        name=name,
        description=description,
        input_schema=schema,
        server=server or None,
        title=title,
        category=category,
        tags=tuple(tags),
        examples=tuple(examples),
        marks=marks,
        roles=frozenset(roles),
        version=version,
        flags=tuple(dict.fromkeys(flags)),
        unchecked=unread,
        run=run,
        function=function,
        output_schema=_json_of(definition.output_schema, name),
        annotations=_hints(definition.annotations, name),
    )


def _hints(value: object, name: str) -> JsonObject:
    """MCP's hints under MCP's names; an SDK may write them with underscores, and list those that nobody gave."""
    hints = _json_of(value, name) or {}
    return {
        re.sub("_([a-z])", lambda match: match[1].upper(), key): hint for key, hint in hints.items() if hint is not None
    }


def _json_of(value: object, name: str) -> JsonObject | None:
    """A mapping as plain JSON; None for anything else."""
    try:
        check_size(f"the definition of {name!r}", value)
        return plain_json(value) if isinstance(value, Mapping) else None
    except RecursionError:
        raise DefinitionError(f"the definition of {name!r} is nested too deeply") from None


def _name(value: object, flags: list[str]) -> str:
    if not isinstance(value, str):
        raise DefinitionError(f"a tool needs a name, not {value!r}")
    visible, its_flags = clean_text(value)
    if not visible:
        raise DefinitionError(f"a tool needs a name, not {value!r}; name a lambda with tool(call, name='…')")
    name = re.sub(r"[\t\r\n]+", " ", visible)
    if len(name) > LONGEST_NAME:
        raise DefinitionError(f"the name {name[:60]!r}… has {len(name)} characters; at most {LONGEST_NAME} are allowed")
    flags.extend(its_flags)
    return name


def _description(value: object, name: str, flags: list[str]) -> str:
    description = value or ""
    if not isinstance(description, str):
        raise DefinitionError(f"the description of {name!r} must be text, not {type(description).__name__}")
    visible, its_flags = clean_text(description)
    flags.extend(its_flags)
    return visible


def _schema(source: object, name: str, flags: list[str]) -> tuple[JsonObject, tuple[str, ...]]:
    """The schema, regular and cleaned, and what in it cannot be read."""
    left_out: list[str] = []
    try:
        schema, its_flags = clean_schema(normalised(source, name, left_out))
        json.dumps(schema, allow_nan=False)
    except (RecursionError, ValueError, TypeError) as error:
        if isinstance(error, DefinitionError):
            raise
        raise DefinitionError(f"the input schema of {name!r} is not JSON: {error}") from None
    check_export(schema, name)
    flags.extend(its_flags)
    return schema, (*(f"{place}: what stands there is no schema" for place in left_out), *unchecked(schema, name))


def _text(value: object, key: str, name: str, flags: list[str]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise DefinitionError(f"{key!r} of {name!r} must be text, not {value!r}")
    return _texts(value, key, name, flags)[0]


def _texts(value: object, key: str, name: str, flags: list[str]) -> list[str]:
    """The texts of an option, cleaned; a set is put in order, so that the digest is the same in every process."""
    if value is None:
        return []
    items = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [None]
    strings = [item for item in items if isinstance(item, str)]
    if isinstance(value, Mapping) or len(strings) < len(items):
        raise DefinitionError(f"{key!r} of {name!r} must be a text or a list of texts, not {value!r}")
    check_size(f"{key!r} of {name!r}", [text[:TEXT_CHARACTERS] for text in strings])
    texts = []
    for item in sorted(strings) if isinstance(value, set | frozenset) else strings:
        visible, its_flags = clean_text(item)
        texts.append(visible)
        flags.extend(its_flags)
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
