"""Tools and the catalog that holds them: ordered, unique ids, bad ones set aside, every change announced."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack, overload

from toolsearch.calls import clean
from toolsearch.errors import DefinitionError, SetupError, UnknownTool
from toolsearch.functions import Function
from toolsearch.hygiene import clean_schema, clean_text
from toolsearch.names import Names, base_name, provider_name
from toolsearch.read import Definition, parts, read
from toolsearch.schema import normalised

__all__ = ["Catalog", "Change", "Kind", "Quarantined", "Tool", "tool"]

log = logging.getLogger("toolsearch")

Kind = Literal["read", "action"]


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool, immutable. Two tools are equal when their digests are: same texts, same schema, same marks.

    `id` never changes and is what permissions, metrics and labels use: "server/name", or the name where there is no
    server. `description` and the texts in `input_schema` are cleaned; `flags` names what was found in them.
    `kind` is "action" for a tool that changes something; `alone` (default: every action) runs by itself in a round;
    `repeatable` may run again after a crash; `return_direct` and `terminal` are for the loop. `roles`: a caller needs
    one of them to see the tool. `run` does the work; without it the program runs the call itself.
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
    kind: Kind = "read"
    repeatable: bool = True
    alone: bool = False
    return_direct: bool = False
    terminal: bool = False
    roles: frozenset[str] = frozenset()
    version: str | None = None
    flags: tuple[str, ...] = ()
    run: Callable[..., Any] | None = None
    function: Function | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything a model or a policy can see: texts, schema, marks."""
        seen: list[Any] = [self.id, self.name, self.title, self.description, self.input_schema, self.server]
        seen += [
            self.category,
            self.tags,
            self.examples,
            self.kind,
            self.repeatable,
            self.alone,
            self.return_direct,
            self.terminal,
        ]
        seen += [sorted(self.roles), self.version]
        return hashlib.sha256(json.dumps(seen, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

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
    return _made(_definition(found[0]), marks)


def _definition(part: Any) -> Definition:
    return Definition.of(part) if isinstance(part, Tool) else read(part)


def _made(definition: Definition, marks: Mapping[str, Any]) -> Tool:
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
    for key in ("repeatable", "alone", "return_direct", "terminal"):
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


_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|no|nr|max|min|resp|St|Dr|Mr|Mrs|Ms)|\b[A-Za-z])\.$"
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


@dataclass(frozen=True)
class Quarantined:
    """A definition that was set aside: what it called itself, why, and the thing itself."""

    name: str
    reason: str
    source: Any = field(repr=False, compare=False)


@dataclass(frozen=True)
class Change:
    """One step of a catalog. A replaced tool is in both."""

    added: tuple[Tool, ...] = ()
    removed: tuple[Tool, ...] = ()


class Catalog:
    """Tools by id, in the order they came.

    What cannot be used is quarantined with a reason and never breaks the rest. The same tool twice counts once. A
    different tool under an id already taken is a collision: `on_collision="quarantine"` keeps the first,
    "replace" the last, "error" raises `DefinitionError`.

    Safe to share between threads. `subscribe` is told of every change; `version` counts them.
    """

    def __init__(
        self,
        tools: Iterable[Any] = (),
        *,
        server: str | None = None,
        on_collision: Literal["quarantine", "replace", "error"] = "quarantine",
    ) -> None:
        if on_collision not in ("quarantine", "replace", "error"):
            raise SetupError(f"on_collision must be 'quarantine', 'replace' or 'error', not {on_collision!r}")
        self._tools: dict[str, Tool] = {}
        self._shared: dict[str, set[str]] = {}  # plain name -> ids
        self._names = Names()
        self._quarantined: list[Quarantined] = []
        self._missing: dict[str, str] = {}
        self._reserved: frozenset[str] = frozenset()
        self._subscribers: list[Callable[[Change], None]] = []
        self._lock = threading.RLock()
        self._on_collision = on_collision
        self.version = 0
        if server:
            self.extend(tools, server=server)
        else:
            self.extend(tools)

    # -- changing ------------------------------------------------------------------------------------------------

    def add(self, source: Any, **marks: Unpack[Marks]) -> Tool | None:
        """Adds one tool: a function, a `Tool`, or a definition. None if it was quarantined."""
        added = self.extend([source], **marks)
        return added[0] if added else None

    def extend(self, sources: Iterable[Any], **marks: Unpack[Marks]) -> list[Tool]:
        """Adds many tools with one notice, and returns those now in the catalog; `marks` hold for each."""
        if isinstance(sources, Mapping | str):
            sources = [sources]
        taken: dict[str, Tool] = {}
        added: dict[str, Tool] = {}
        removed: list[Tool] = []
        with self._lock:
            try:
                for source in sources:
                    for made in self._read(source, marks):
                        before = self._tools.get(made.id)
                        if before is not None and before == made:
                            taken[made.id] = before
                        elif before is None or self._may_replace(before, source):
                            if before is not None:
                                self._drop(before)
                                if added.pop(before.id, None) is None:
                                    removed.append(before)
                            self._put(made)
                            added[made.id] = taken[made.id] = made
            finally:  # also when `sources` or a collision raised: what is in, every index must know of
                self._announce(tuple(added.values()), tuple(removed))
        return list(taken.values())

    def remove(self, tool_id: str) -> Tool:
        """Takes a tool out; raises `UnknownTool` if it is not there."""
        with self._lock:
            removed = self[tool_id]
            self._drop(removed)
            self._announce((), (removed,))
            return removed

    def replace(self, source: Any, **marks: Unpack[Marks]) -> Tool:
        """Puts a new definition in the place of the tool with its id, or adds it; raises `DefinitionError`."""
        made = source if isinstance(source, Tool) and not marks else tool(source, **marks)
        with self._lock:
            before = self._tools.get(made.id)
            self._check_reserved(made)
            if before == made:  # the same for model and index; what runs may be new
                self._tools[made.id] = made
                return made
            if before is not None:
                self._drop(before, keep_place=True)
            self._put(made)
            self._announce((made,), (before,) if before else ())
        return made

    def sync(self, sources: Iterable[Any], *, server: str, **marks: Any) -> None:
        """Makes the tools of one server exactly these: new ones are added, changed ones replaced, others removed."""
        with self._lock:
            made = {t.id: t for source in sources for t in self._read(source, {**marks, "server": server})}
            before = {t.id: t for t in self._tools.values() if t.server == server}
            for other in [t for i, t in self._tools.items() if i in made and i not in before]:
                if self._may_replace(other, made[other.id]):
                    before[other.id] = other
                else:
                    del made[other.id]
            removed = [t for i, t in before.items() if made.get(i) != t]
            added = [t for i, t in made.items() if before.get(i) != t]
            for gone in removed:
                self._drop(gone, keep_place=gone.id in made)
            for new in added:
                self._put(new)
            self._announce(tuple(added), tuple(removed))

    def mark_missing(self, server: str, reason: str | None) -> None:
        """Says that a server cannot be reached now (None: it can again), so that a search can tell the model."""
        with self._lock:
            if reason is None:
                self._missing.pop(server, None)
            else:
                self._missing[server] = reason

    def reserve(self, names: Iterable[str]) -> None:
        """Keeps names for a meta-tool; raises `SetupError` if a tool already has one, quarantines later ones."""
        with self._lock:
            wanted = self._reserved | frozenset(names)
            for held in self._tools.values():
                if held.name in wanted:
                    raise SetupError(
                        f"the catalog's tool {held.id!r} is called like the built-in tool {held.name!r}: "
                        f"rename the built-in one with search_tool='…' or call_tool='…', or leave the tool out"
                    )
            self._reserved = wanted

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Calls `listener` after every change, in order; the returned function ends that."""
        with self._lock:
            self._subscribers.append(listener)

        def end() -> None:
            with self._lock:
                if listener in self._subscribers:
                    self._subscribers.remove(listener)

        return end

    # -- looking -------------------------------------------------------------------------------------------------

    def __getitem__(self, tool_id: str) -> Tool:
        try:
            return self._tools[tool_id]
        except KeyError:
            near = self.near(str(tool_id))
            hint = f"; near names: {', '.join(repr(t.id) for t in near)}" if near else ""
            raise UnknownTool(f"there is no tool {tool_id!r} in the catalog{hint}") from None

    def get(self, tool_id: str) -> Tool | None:
        return self._tools.get(tool_id)

    def __contains__(self, tool_id: object) -> bool:
        return (tool_id.id if isinstance(tool_id, Tool) else tool_id) in self._tools

    def __iter__(self) -> Iterator[Tool]:
        with self._lock:
            return iter(list(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        return tuple(self._quarantined)

    @property
    def missing(self) -> Mapping[str, str]:
        """Servers that cannot be reached now, and why."""
        return dict(self._missing)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(sorted({t.server for t in self if t.server}))

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(sorted({t.category for t in self if t.category}))

    @property
    def suspicious(self) -> tuple[Tool, ...]:
        """Tools whose texts were flagged; `toolsearch check` lists them."""
        return tuple(t for t in self if t.flags)

    def named(self, name: str) -> list[Tool]:
        """Tools with this id, name, base name or provider name, in any case and punctuation, by id."""
        with self._lock:
            return [self._tools[i] for i in self._names.exact(name)]

    def near(self, name: str, limit: int = 3, among: Any = None) -> list[Tool]:
        """The tools with the most similar names, best first."""
        with self._lock:
            return [self._tools[i] for i in self._names.near(name, limit, among)]

    def provider_name(self, tool_id: str, among: Container[str] | None = None) -> str:
        """The name a model sees: legal for every provider and distinct, whatever the order of registration.

        With `among`, tools outside it are as if they were not there: a name does not tell that they are.
        """
        with self._lock:
            held = self[tool_id]
            namesakes = [i for i in self._shared[held.name] if among is None or i in among]
        shared = len(namesakes) > 1 and held.id != held.name
        name = provider_name(held.name, held.id, held.server, shared=shared)
        if name != held.name and name in self._shared:  # somebody's plain name is what this one would be given
            name = provider_name(held.name, held.id, held.server, shared=shared, digits=32)
        return name

    # -- inside --------------------------------------------------------------------------------------------------

    def _read(self, source: Any, marks: Mapping[str, Any]) -> list[Tool]:
        """The tools in one source; what is wrong with it is written down, not raised."""
        made: list[Tool] = []
        try:
            found = list(parts(source))
        except Exception as error:
            self._quarantine(source, error)
            return []
        for part in found:
            try:
                one = part if isinstance(part, Tool) and not marks else _made(_definition(part), marks)
                assert one.digest  # of a `Tool` made by hand it is not known before that it is JSON
                self._check_reserved(one)
                made.append(one)
            except Exception as error:
                self._quarantine(part, error)
        return made

    def _check_reserved(self, made: Tool) -> None:
        if made.name in self._reserved:
            raise DefinitionError(
                f"{made.name!r} is the name of a built-in tool; rename that one with search_tool='…' or call_tool='…'"
            )

    def _quarantine(self, source: Any, error: Exception) -> None:
        known = isinstance(error, DefinitionError)
        reason = str(error) if known else f"reading the definition failed: {type(error).__name__}: {error}"
        try:
            name = source.get("name") if isinstance(source, Mapping) else getattr(source, "__name__", None)
            shown = name if isinstance(name, str) else repr(source)
        except Exception:
            shown = f"<{type(source).__name__}>"
        entry = Quarantined(clean(shown[:80]), clean(reason[:1_000]), source)
        if entry not in self._quarantined:  # a source that is read again says nothing new
            self._quarantined.append(entry)
            log.warning("quarantined %r: %s", entry.name, entry.reason)

    def _may_replace(self, before: Tool, source: Any) -> bool:
        if self._on_collision == "replace":
            return True
        error = DefinitionError(f"the id {before.id!r} is taken by a different tool; give one of them a server")
        if self._on_collision == "error":
            raise error
        self._quarantine(source, error)
        return False

    def _put(self, made: Tool) -> None:
        self._tools[made.id] = made
        self._shared.setdefault(made.name, set()).add(made.id)
        server = provider_name(made.name, made.id, made.server, shared=True)
        own = provider_name(made.name, made.id, made.server, shared=False)
        self._names.add(made.id, (made.id, made.name, made.base_name, own, server))

    def _drop(self, held: Tool, *, keep_place: bool = False) -> None:
        if not keep_place:
            del self._tools[held.id]
        self._names.remove(held.id)
        ids = self._shared[held.name]
        ids.discard(held.id)
        if not ids:
            del self._shared[held.name]

    def _announce(self, added: tuple[Tool, ...], removed: tuple[Tool, ...]) -> None:
        if not added and not removed:
            return
        self.version += 1
        for listener in list(self._subscribers):
            try:
                listener(Change(added, removed))
            except Exception:
                log.exception("a listener of the catalog failed")

    def __repr__(self) -> str:
        aside = f", {len(self._quarantined)} quarantined" if self._quarantined else ""
        return f"Catalog({len(self)} tools from {len(self.servers)} servers{aside})"

    def _repr_html_(self) -> str:
        from toolsearch.html import table

        rows = [(t.id, t.server or "", t.summary(), ", ".join(t.flags)) for t in self]
        return table(repr(self), ("id", "server", "summary", "flags"), rows, most=50)
