"""The catalog that holds the tools: ordered, unique ids, bad ones set aside, every change announced."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from toolsearch.catalog.definitions import parts
from toolsearch.catalog.marks import Kind, ToolOptions, check_options
from toolsearch.catalog.names import Names, provider_name
from toolsearch.catalog.tools import Tool, definition_of, from_definition, tool
from toolsearch.errors import DefinitionError, SetupError, UnknownTool
from toolsearch.support import checks
from toolsearch.support.text import clean

if TYPE_CHECKING:
    from toolsearch.catalog.examples import Examples

__all__ = ["Catalog", "Change", "Kind", "Quarantined", "Tool", "tool"]

log = logging.getLogger("toolsearch")


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
        checks.choice("on_collision", on_collision, "quarantine", "replace", "error")
        checks.text("server", server, none="for none")
        self._tools: dict[str, Tool] = {}
        self._shared: dict[str, set[str]] = {}  # plain name -> ids
        self._names = Names()
        self._quarantined: list[Quarantined] = []
        self._missing: dict[str, str] = {}
        self._reserved: frozenset[str] = frozenset()
        self._examples: Examples | None = None
        self._subscribers: list[Callable[[Change], None]] = []
        # Changes are made and told one after the other. While sources are read and listeners are told, look-ups go on:
        # a source may be slow, and a listener may ask a session, which looks things up in here.
        self._changing = threading.RLock()
        self._lock = threading.RLock()
        self._on_collision = on_collision
        self.version = 0
        if server:
            self.extend(tools, server=server)
        else:
            self.extend(tools)

    # -- changing ------------------------------------------------------------------------------------------------

    def add(self, source: Any, **options: Unpack[ToolOptions]) -> Tool | None:
        """Adds one tool: a function, a `Tool`, or a definition. None if it was quarantined."""
        added = self.extend([source], **options)
        return added[0] if added else None

    def extend(self, sources: Iterable[Any], **options: Unpack[ToolOptions]) -> list[Tool]:
        """Adds many tools with one notice, and returns those now in the catalog; `options` hold for each."""
        sources = _sources(sources, options)
        taken: dict[str, Tool] = {}
        added: dict[str, Tool] = {}
        removed: list[Tool] = []
        with self._changing:
            try:
                for source in sources:
                    for made in self._read(source, options):
                        before = self._tools.get(made.id)
                        if before is not None and before == made:
                            taken[made.id] = before
                        elif before is None or self._may_replace(before, source):
                            if before is not None and added.pop(before.id, None) is None:
                                removed.append(before)
                            with self._lock:
                                if before is not None:
                                    self._drop(before)
                                self._put(made)
                            added[made.id] = taken[made.id] = made
            finally:  # also when `sources` or a collision raised: what is in, every index must know of
                self._announce(tuple(added.values()), tuple(removed))
        return list(taken.values())

    def remove(self, tool_id: str) -> Tool:
        """Takes a tool out; raises `UnknownTool` if it is not there."""
        with self._changing:
            removed = self[tool_id]
            with self._lock:
                self._drop(removed)
            self._announce((), (removed,))
            return removed

    def replace(self, source: Any, **options: Unpack[ToolOptions]) -> Tool:
        """Puts a new definition in the place of the tool with its id, or adds it; raises `DefinitionError`."""
        made = source if isinstance(source, Tool) and not options else tool(source, **options)
        with self._changing:
            made = self._enriched(made)
            before = self._tools.get(made.id)
            self._check_reserved(made)
            with self._lock:
                # The same for model and index; what runs may be new.
                if before is not None and before == made and before.enriched == made.enriched:
                    self._tools[made.id] = made
                    return made
                if before is not None:
                    self._drop(before, keep_place=True)
                self._put(made)
            self._announce((made,), (before,) if before else ())
        return made

    def sync(self, sources: Iterable[Any], *, server: str, **options: object) -> None:
        """Makes the tools of one server exactly these: new ones are added, changed ones replaced, others removed."""
        checks.text("server", server, empty=False)
        sources = _sources(sources, options)
        with self._changing:
            made = {t.id: t for source in sources for t in self._read(source, {**options, "server": server})}
            before = {t.id: t for t in self._tools.values() if t.server == server}
            for other in [t for i, t in self._tools.items() if i in made and i not in before]:
                if self._may_replace(other, made[other.id]):
                    before[other.id] = other
                else:
                    del made[other.id]
            removed = [t for i, t in before.items() if made.get(i) != t]
            added = [t for i, t in made.items() if before.get(i) != t]
            with self._lock:
                for gone in removed:
                    self._drop(gone, keep_place=gone.id in made)
                for new in added:
                    self._put(new)
            self._announce(tuple(added), tuple(removed))

    def enrich(self, examples: Examples | None) -> tuple[str, ...]:
        """Puts example queries beside the tools, now and whenever a tool comes or changes; None takes all away.

        Those given last hold. Returns the ids of the tools whose entry is stale, written for another definition than
        theirs: such queries are not used.
        """
        checks.having("examples", examples, "Examples, as Examples.load(file) gives", "of", "stale", none="for none")
        with self._changing:
            self._examples = examples
            changed = []
            for held in self:
                queries = examples.of(held) if examples is not None else ()
                if queries != held.enriched:
                    changed.append((held, replace(held, enriched=queries)))
            with self._lock:
                self._tools.update((made.id, made) for _, made in changed)
            self._announce(tuple(made for _, made in changed), tuple(held for held, _ in changed))
            stale = () if examples is None else examples.stale(self)
        if stale:
            log.warning("the example queries of %d tools are stale, of %s first", len(stale), stale[0])
        return stale

    def mark_missing(self, server: str, reason: str | None) -> None:
        """Says that a server cannot be reached now (None: it can again), so that a search can tell the model."""
        with self._lock:
            if reason is None:
                self._missing.pop(server, None)
            else:
                self._missing[server] = reason

    def reserve(self, names: Iterable[str]) -> None:
        """Keeps names for a meta-tool; raises `SetupError` if a tool already has one, quarantines later ones."""
        with self._changing:
            wanted = self._reserved | frozenset(checks.names("names", names))
            for held in self._tools.values():
                if held.name in wanted:
                    raise SetupError(
                        f"the catalog's tool {held.id!r} is called like the built-in tool {held.name!r}: "
                        f"rename the built-in one with search_tool='…' or call_tool='…', or leave the tool out"
                    )
            self._reserved = wanted

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Calls `listener` after every change, in order; the returned function ends that."""
        checks.function("listener", listener, "that takes a Change")
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

    def _read(self, source: Any, options: Mapping[str, object]) -> list[Tool]:
        """The tools in one source; what is wrong with it is written down, not raised."""
        made: list[Tool] = []
        try:
            found = list(parts(source))
        except Exception as error:
            self._quarantine(source, error)
            return []
        for part in found:
            try:
                one = part if isinstance(part, Tool) and not options else from_definition(definition_of(part), options)
                assert one.digest  # of a `Tool` made by hand it is not known before that it is JSON
                self._check_reserved(one)
                made.append(self._enriched(one))
            except Exception as error:
                self._quarantine(part, error)
        return made

    def _enriched(self, made: Tool) -> Tool:
        """The tool with the queries that `enrich` has for it; those it brings itself stay where there are none."""
        queries = self._examples.of(made) if self._examples is not None else ()
        return replace(made, enriched=queries) if queries and queries != made.enriched else made

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
        told = [_counted(len(self), "tool")]
        if servers := self.servers:
            told.append(f"from {_counted(len(servers), 'server')}")
        aside = f", {len(self._quarantined)} quarantined" if self._quarantined else ""
        return f"Catalog({' '.join(told)}{aside})"

    def _repr_html_(self) -> str:
        from toolsearch.support.html import table

        rows = [(t.id, t.server or "", t.summary(), ", ".join(t.flags)) for t in self]
        return table(repr(self), ("id", "server", "summary", "flags"), rows, most=50)


def _sources(sources: Any, options: Mapping[str, object]) -> Iterable[Any]:
    """What is to be read one by one; raises `SetupError` for what holds no tools, and for options that do not exist."""
    check_options(options)
    if isinstance(sources, str | bytes):
        raise checks.wrong("tools", "functions, definitions, or lists of them", sources, more=": read a file first")
    if isinstance(sources, Mapping | Tool) or callable(sources):
        return [sources]
    if not isinstance(sources, Iterable):
        raise checks.wrong("tools", "functions, definitions, or lists of them", sources)
    return sources


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
