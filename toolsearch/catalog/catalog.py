"""The catalog that holds the tools: in order, with unique ids, bad ones set aside, every change announced."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Unpack

from toolsearch.catalog.listings import unwrapped
from toolsearch.catalog.marks import ToolOptions
from toolsearch.catalog.quarantine import Notices, Quarantine, Quarantined, log_unchecked
from toolsearch.catalog.roster import Roster
from toolsearch.catalog.sources import check_json, check_some, remedy_for, sources_in
from toolsearch.catalog.tools import Tool, definition_of, from_definition, tool
from toolsearch.errors import DefinitionError, SetupError, UnknownTool
from toolsearch.support import checks

if TYPE_CHECKING:
    from toolsearch.catalog.examples import Examples

__all__ = ["Catalog", "Change"]

log = logging.getLogger("toolsearch")


@dataclass(frozen=True)
class Change:
    """One change of a catalog. A tool that was replaced is in `removed`, the new one in `added`."""

    added: tuple[Tool, ...] = ()
    removed: tuple[Tool, ...] = ()


@dataclass
class _Step:
    """A change as it is made, one tool after the other."""

    added: dict[str, Tool] = field(default_factory=dict)
    removed: list[Tool] = field(default_factory=list)

    def note(self, new: Tool, before: Tool | None) -> None:
        """A tool came, perhaps in the place of another; one that came in this step itself was never announced."""
        if before is not None and self.added.pop(before.id, None) is None:
            self.removed.append(before)
        self.added[new.id] = new


class Catalog:
    """Tools by id, in the order they came.

    A definition that cannot be used is quarantined with the reason and never breaks the rest. The same tool added twice
    counts once. A different tool under an id already taken is a collision: `on_collision="quarantine"` keeps the first,
    "replace" keeps the last, "error" raises `DefinitionError`.

    Safe to share between threads. Listeners given to `subscribe` hear of every change; `version` counts the changes.
    """

    def __init__(
        self,
        tools: Iterable[object] = (),
        *,
        server: str | None = None,
        on_collision: Literal["quarantine", "replace", "error"] = "quarantine",
    ) -> None:
        checks.choice("on_collision", on_collision, "quarantine", "replace", "error")
        checks.text("server", server, none=True)
        self._roster = Roster()
        self._quarantine = Quarantine()
        self._notices = Notices()
        self._missing: dict[str, str] = {}
        self._reserved: frozenset[str] = frozenset()
        self._examples: Examples | None = None
        self._subscribers: list[Callable[[Change], None]] = []
        # Changes are made and announced one after the other. Look-ups go on while sources are read and listeners run: a
        # source may be slow, and a listener may ask a session, which looks things up in this catalog.
        self._changing = threading.RLock()
        self._lock = threading.RLock()
        self._on_collision = on_collision
        self.version = 0
        if server:
            self.extend(tools, server=server)
        else:
            self.extend(tools)

    @classmethod
    def from_file(
        cls,
        *files: str | os.PathLike[str],
        server: str | None = None,
        on_collision: Literal["quarantine", "replace", "error"] = "quarantine",
    ) -> Catalog:
        """The tools in files, or folders of them; see `read_tools`. Raises `SetupError` for a file without any."""
        from toolsearch.catalog.files import add_file

        catalog = cls(server=server, on_collision=on_collision)
        for file in files:
            add_file(catalog, file, server)
        return catalog

    # -- changing ------------------------------------------------------------------------------------------------

    def add(self, source: object, **options: Unpack[ToolOptions]) -> Tool | None:
        """Adds one tool: a function, a `Tool`, or a definition. None if it was quarantined."""
        added = self.extend([source], **options)
        return added[0] if added else None

    def extend(self, sources: Iterable[object], **options: Unpack[ToolOptions]) -> list[Tool]:
        """Adds many tools in one change, and returns those now in the catalog; `options` apply to each.

        Raises `SetupError` if there are sources, and none of them is a definition or holds one.
        """
        sources = sources_in(sources, options)
        present: dict[str, Tool] = {}
        faults: list[Exception] = []
        step = _Step()
        with self._changing:
            try:
                for source in sources:
                    for new in self._read(source, options, faults):
                        if (member := self._take(new, source, step)) is not None:
                            present[member.id] = member
            finally:  # also when `sources` or a collision raised: every index must know of what is in
                self._announce(tuple(step.added.values()), tuple(step.removed))
            self._notices.tell_of_pages()
        check_some(present, faults)
        return list(present.values())

    def remove(self, tool_id: str) -> Tool:
        """Takes a tool out; raises `UnknownTool` if it is not there."""
        with self._changing:
            removed = self[tool_id]
            with self._lock:
                self._roster.drop(removed)
            self._announce((), (removed,))
            return removed

    def replace(self, source: object, **options: Unpack[ToolOptions]) -> Tool:
        """Puts a new definition in the place of the tool with its id, or adds it; raises `DefinitionError`."""
        new = source if isinstance(source, Tool) and not options else tool(source, **options)
        check_json(new)
        with self._changing:
            new = self._with_queries(new)
            before = self._roster.tools.get(new.id)
            self._check_reserved(new)
            with self._lock:
                # The same for model and index; what runs may be new.
                if before is not None and before == new and before.enriched == new.enriched:
                    self._roster.tools[new.id] = new
                    return new
                if before is not None:
                    self._roster.drop(before, keep_place=True)
                self._roster.put(new)
            self._announce((new,), (before,) if before else ())
        return new

    def sync(self, sources: Iterable[object], *, server: str, **options: object) -> None:
        """Makes the tools of one server exactly these: new ones are added, changed ones replaced, others removed.

        Raises `SetupError`, and changes nothing, if there are sources and none of them is a definition or holds one.
        """
        checks.text("server", server, empty=False)
        sources = sources_in(sources, options)
        with self._changing:
            faults: list[Exception] = []
            wanted = {t.id: t for source in sources for t in self._read(source, {**options, "server": server}, faults)}
            self._notices.tell_of_pages()
            check_some(wanted, faults)
            before = {t.id: t for t in self._roster.tools.values() if t.server == server}
            for other in [t for i, t in self._roster.tools.items() if i in wanted and i not in before]:
                if self._may_replace(other, wanted[other.id]):
                    before[other.id] = other
                else:
                    del wanted[other.id]
            removed = [t for i, t in before.items() if wanted.get(i) != t]
            added = [t for i, t in wanted.items() if before.get(i) != t]
            with self._lock:
                for gone in removed:
                    self._roster.drop(gone, keep_place=gone.id in wanted)
                for new in added:
                    self._roster.put(new)
            self._announce(tuple(added), tuple(removed))

    def enrich(self, examples: Examples | None) -> tuple[str, ...]:
        """Attaches example queries to the tools, now and whenever a tool comes or changes; None removes them all.

        A later call replaces the examples of an earlier one. Returns the ids of the tools whose entry is stale, that is
        written for another definition than the present one: such queries are not used.
        """
        checks.having("examples", examples, "Examples, as Examples.load(file) gives", "of", "stale", none=True)
        with self._changing:
            self._examples = examples
            changed = []
            for before in self:
                queries = examples.of(before) if examples is not None else ()
                if queries != before.enriched:
                    changed.append((before, replace(before, enriched=queries)))
            with self._lock:
                self._roster.tools.update((new.id, new) for _, new in changed)
            self._announce(tuple(new for _, new in changed), tuple(before for before, _ in changed))
            stale = () if examples is None else examples.stale(self)
        if stale:
            log.warning(
                "the example queries of %d tools are stale and not used, those of %s first", len(stale), stale[0]
            )
        return stale

    def mark_missing(self, server: str, reason: str | None) -> None:
        """Records why a server cannot be reached now (None: it can again), so that a search can tell the model."""
        with self._lock:
            if reason is None:
                self._missing.pop(server, None)
            else:
                self._missing[server] = reason

    def reserve(self, names: Iterable[str]) -> None:
        """Keeps names free for built-in tools: a later tool with one is quarantined.

        Raises `SetupError` if a tool already has one of the names.
        """
        with self._changing:
            wanted = self._reserved | frozenset(checks.names("names", names))
            for each in self._roster.tools.values():
                if each.name in wanted:
                    raise SetupError(
                        f"the tool {each.id!r} of the catalog has the name of the built-in tool {each.name!r}: "
                        f"rename the built-in one with search_tool='…' or call_tool='…', or leave the tool out"
                    )
            self._reserved = wanted

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Calls `listener` after every change, in order, until the returned function is called."""
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
            return self._roster.tools[tool_id]
        except KeyError:
            near = self.near(str(tool_id))
            hint = f"; near names: {', '.join(repr(t.id) for t in near)}" if near else ""
            raise UnknownTool(f"there is no tool {tool_id!r} in the catalog{hint}") from None

    def get(self, tool_id: str) -> Tool | None:
        return self._roster.tools.get(tool_id)

    def __contains__(self, tool_id: object) -> bool:
        return (tool_id.id if isinstance(tool_id, Tool) else tool_id) in self._roster.tools

    def __iter__(self) -> Iterator[Tool]:
        with self._lock:
            return iter(list(self._roster.tools.values()))

    def __len__(self) -> int:
        return len(self._roster.tools)

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        return self._quarantine.entries

    @property
    def notices(self) -> tuple[str, ...]:
        """What was left out of the sources though their tools are here: an unreadable mark, the next page of a list."""
        return self._notices.texts

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
            return self._roster.named(name)

    def near(self, name: str, limit: int = 3, among: Container[str] | None = None) -> list[Tool]:
        """The tools with the most similar names, best first."""
        with self._lock:
            return self._roster.near(name, limit, among)

    def provider_name(self, tool_id: str, among: Container[str] | None = None) -> str:
        """The name a model sees: legal for every provider and distinct, whatever the order of registration.

        With `among`, tools outside it are ignored: a name does not reveal that they exist.
        """
        with self._lock:
            return self._roster.provider_name(self[tool_id], among)

    # -- inside --------------------------------------------------------------------------------------------------

    def _take(self, new: Tool, source: object, step: _Step) -> Tool | None:
        """Puts one tool in, where its id is free or may be taken; returns the tool that is then there, if it fits."""
        before = self._roster.tools.get(new.id)
        if before is not None and before == new:
            return before
        if before is not None and not self._may_replace(before, source):
            return None
        with self._lock:
            if before is not None:
                self._roster.drop(before)
            self._roster.put(new)
        step.note(new, before)
        return new

    def _read(self, source: object, options: Mapping[str, object], faults: list[Exception]) -> list[Tool]:
        """The tools in one source; what is wrong with it is quarantined, not raised, and added to `faults`."""
        tools: list[Tool] = []
        try:
            listing = unwrapped(source)
        except Exception as error:
            self._quarantine.add(source, error)
            faults.append(error)
            return []
        if listing.is_list:
            self._notices.page(str(options.get("server", "")), listing.goes_on)
        for part in listing.parts:
            try:
                definition = definition_of(part)
                new = part if isinstance(part, Tool) and not options else from_definition(definition, options)
                self._notices.left_out(definition.notices)
                check_json(new)
                self._check_reserved(new)
                tools.append(self._with_queries(new))
            except Exception as error:
                self._quarantine.add(part, error)
                faults.append(error)
        return tools

    def _with_queries(self, new: Tool) -> Tool:
        """The tool with the queries that `enrich` has for it, or unchanged where there are none."""
        queries = self._examples.of(new) if self._examples is not None else ()
        return replace(new, enriched=queries) if queries and queries != new.enriched else new

    def _check_reserved(self, new: Tool) -> None:
        if new.name in self._reserved:
            raise DefinitionError(
                f"{new.name!r} is the name of a built-in tool; rename that one with search_tool='…' or call_tool='…'"
            )

    def _may_replace(self, before: Tool, source: object) -> bool:
        if self._on_collision == "replace":
            return True
        error = DefinitionError(f"the id {before.id!r} is taken by a different tool{remedy_for(before)}")
        if self._on_collision == "error":
            raise error
        self._quarantine.add(source, error)
        return False

    def _announce(self, added: tuple[Tool, ...], removed: tuple[Tool, ...]) -> None:
        if not added and not removed:
            return
        self.version += 1
        log_unchecked(added, removed)
        for listener in list(self._subscribers):
            try:
                listener(Change(added, removed))
            except Exception:
                log.exception("a listener of the catalog failed")

    def __repr__(self) -> str:
        servers = f" from {_counted(len(self.servers), 'server')}" if self.servers else ""
        quarantined = f", {len(self._quarantine)} quarantined" if self._quarantine else ""
        return f"Catalog({_counted(len(self), 'tool')}{servers}{quarantined})"

    def _repr_html_(self) -> str:
        from toolsearch.support.html import table

        rows = [(t.id, t.server or "", t.summary(), ", ".join(t.flags)) for t in self]
        return table(repr(self), ("id", "server", "summary", "flags"), rows, most=50)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
