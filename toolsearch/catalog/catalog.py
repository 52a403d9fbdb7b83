"""The catalog that holds the tools: in order, with unique ids, bad ones set aside, every change announced."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from toolsearch.calls import Caller
from toolsearch.catalog.changes import Change, CurrentRoster, Step
from toolsearch.catalog.marks import ToolOptions
from toolsearch.catalog.missing import MissingServer, missing_server
from toolsearch.catalog.quarantine import Notices, Quarantine, Quarantined, log_look_alikes, log_unchecked
from toolsearch.catalog.reserved import Reserved
from toolsearch.catalog.roster import Roster
from toolsearch.catalog.sources import check_json, check_some, read_source, remedy_for, sources_in
from toolsearch.catalog.tools import Tool, tool
from toolsearch.catalog.trust import check_trust
from toolsearch.errors import DefinitionError, UnknownTool
from toolsearch.support import checks
from toolsearch.support.text import counted

if TYPE_CHECKING:
    from toolsearch.catalog.examples import Examples

__all__ = ["Catalog", "Change"]

log = logging.getLogger("toolsearch")


class Catalog:
    """Tools by id, in the order they came.

    A definition that cannot be used is quarantined with the reason and never breaks the rest. The same tool added twice
    counts once. A different tool under an id already taken is a collision: `on_collision="quarantine"` keeps the first,
    "replace" keeps the last, "error" raises `DefinitionError`. With `qualified`, models see a server's tools as
    `server__tool`, and no tool that comes later changes that; its own name leads to it too, while it is unique.

    Safe to share between threads. A change is made in one step: a look-up sees all of it or nothing. Listeners
    given to `subscribe` hear of every change; `version` counts the changes.
    """

    def __init__(
        self,
        tools: Iterable[object] = (),
        *,
        server: str | None = None,
        on_collision: Literal["quarantine", "replace", "error"] = "quarantine",
        trust: Iterable[str] = (),
        qualified: bool = False,
    ) -> None:
        checks.choice("on_collision", on_collision, "quarantine", "replace", "error")
        checks.text("server", server, none=True)
        self._current = CurrentRoster(qualified=qualified)
        self._quarantine = Quarantine()
        self._notices = Notices()
        self._missing: dict[str, MissingServer] = {}
        self._reserved = Reserved()
        self._examples: Examples | None = None
        self._subscribers: list[Callable[[Change], None]] = []
        # Changes are made and announced one after the other. Look-ups do not wait for this lock: they see the roster of
        # the moment while a source is read, which may be slow, and while listeners run, which may look things up.
        self._changing = threading.RLock()
        self._on_collision = on_collision
        if server:
            self.extend(tools, server=server, trust=trust)
        else:
            self.extend(tools, trust=trust)

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

    def add(self, source: object, *, trust: Iterable[str] = (), **options: Unpack[ToolOptions]) -> Tool | None:
        """Adds one tool: a function, a `Tool`, or a definition. None if it was quarantined."""
        added = self.extend([source], trust=trust, **options)
        return added[0] if added else None

    def extend(
        self, sources: Iterable[object], *, trust: Iterable[str] = (), **options: Unpack[ToolOptions]
    ) -> list[Tool]:
        """Adds many tools in one change, and returns those now in the catalog; `options` apply to each.

        `trust` names what the definitions of a server may decide of its tools: marks, "roles", "server". Without it a
        server can only ask for more care. A definition is a server's with the option `server`, in the form of MCP, or
        as an object of an SDK, unless it brings a function.

        Raises `SetupError` if there are sources, and none of them is a definition or holds one.
        """
        sources, trusted = sources_in(sources, options), check_trust(trust)
        read: list[tuple[Tool, object]] = []
        present: dict[str, Tool] = {}
        faults: list[Exception] = []
        with self._changing:
            try:
                for source in sources:
                    read += self._read(source, options, trusted, faults)
            finally:  # also when `sources` raised: what came before is in, and every index must know of it
                with self._step() as step:
                    for new, source in read:
                        if (member := self._take(new, source, step)) is not None:
                            present[member.id] = member
            self._notices.tell_of_pages()
        check_some(present, faults)
        return list(present.values())

    def remove(self, tool_id: str) -> Tool:
        """Takes a tool out; raises `UnknownTool` if it is not there."""
        with self._step() as step:
            removed = self[tool_id]
            step.drop(removed)
            return removed

    def replace(self, source: object, *, trust: Iterable[str] = (), **options: Unpack[ToolOptions]) -> Tool:
        """Puts a new definition in the place of the tool with its id, or adds it; raises `DefinitionError`."""
        new = source if isinstance(source, Tool) and not options else tool(source, trust=trust, **options)
        check_json(new)
        with self._step() as step:
            if (problem := self._reserved.problem_of(new)) is not None:
                raise problem
            new = self._with_queries(new)
            step.put(new)
        return new

    def sync(self, sources: Iterable[object], *, server: str, trust: Iterable[str] = (), **options: object) -> None:
        """Makes the tools of one server exactly these: new ones are added, changed ones replaced, others removed.

        Raises `SetupError`, and changes nothing, if there are sources and none of them is a definition or holds one.
        """
        checks.text("server", server, empty=False)
        sources, trusted = sources_in(sources, options), check_trust(trust)
        options = {**options, "server": server}
        with self._changing:
            faults: list[Exception] = []
            read = [each for source in sources for each in self._read(source, options, trusted, faults)]
            self._notices.tell_of_pages()
            check_some({new.id: new for new, _ in read}, faults)
            with self._step() as step:
                self._exchange(server, read, step)

    def _exchange(self, server: str, read: Iterable[tuple[Tool, object]], step: Step) -> None:
        """Puts these tools of a server in the place of those it had."""
        wanted = {t.id: self._with_queries(t) for t, part in read if self._is_free(t, part, step)}
        for other in step.before:
            if other.server == server and other.id not in wanted:
                step.drop(other)
            elif other.server != server and other.id in wanted and not self._may_replace(other, wanted[other.id], step):
                del wanted[other.id]
        for new in wanted.values():
            if step.get(new.id) != new:
                step.put(new)

    def enrich(self, examples: Examples | None) -> tuple[str, ...]:
        """Attaches example queries to the tools, now and whenever a tool comes or changes; None removes them all.

        A later call replaces the examples of an earlier one. Returns the ids of the tools whose entry is stale, that is
        written for another definition than the present one: such queries are not used.
        """
        checks.having("examples", examples, "Examples, as Examples.load(file) gives", "of", "stale", none=True)
        with self._step() as step:
            self._examples = examples
            for before in step.before:
                queries = examples.of(before) if examples is not None else ()
                if queries != before.enriched:
                    step.put(replace(before, enriched=queries))
        stale = () if examples is None else examples.stale(self)
        if stale:
            log.warning(
                "the example queries of %d tools are stale and not used, those of %s first", len(stale), stale[0]
            )
        return stale

    def mark_missing(self, server: str, reason: str | None, *, roles: Iterable[str] = ()) -> None:
        """Records why a server cannot be reached now (None: it can again), so that a search can tell the model.

        Only callers who may see a tool of the server are told; with `roles`, only those of them who have one.
        """
        with self._changing:
            others = {name: each for name, each in self._missing.items() if name != server}
            self._missing = others if reason is None else {**others, server: missing_server(reason, roles)}

    def reserve(self, names: Iterable[str]) -> None:
        """Keeps names free for built-in tools, in any spelling: a tool with one of them is quarantined.

        Raises `SetupError` if it is one of the program's own, without a server: that can be given another name.
        """
        with self._step() as step:
            self._reserved, taken = self._reserved.also(checks.names("names", names), step.before)
            for tool, problem in taken:
                step.drop(tool)
                step.refused.append((tool, problem))

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Calls `listener` after every change, in order, until the returned function is called."""
        checks.function("listener", listener, "that takes a Change")
        self._subscribers = [*self._subscribers, listener]

        def end() -> None:
            self._subscribers = [each for each in self._subscribers if each is not listener]

        return end

    # -- looking -------------------------------------------------------------------------------------------------

    @property
    def roster(self) -> Roster:
        """The tools as they are now. It never changes: take it once to look several things up in one state."""
        return self._current.take()

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._current.version

    def __getitem__(self, tool_id: str) -> Tool:
        if (found := self.get(tool_id)) is not None:
            return found
        near = ", ".join(repr(t.id) for t in self.near(str(tool_id)))
        raise UnknownTool(f"there is no tool {tool_id!r} in the catalog{f'; near names: {near}' if near else ''}")

    def get(self, tool_id: str) -> Tool | None:
        return self._current.get(tool_id)

    def __contains__(self, tool_id: object) -> bool:
        key = tool_id.id if isinstance(tool_id, Tool) else tool_id
        return isinstance(key, str) and self.get(key) is not None

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.roster)

    def __len__(self) -> int:
        return len(self._current)

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
        return {server: each.reason for server, each in self._missing.items()}

    def missing_for(self, caller: Caller | None) -> dict[str, str]:
        """As `missing`, without the servers whose `roles` the caller does not have."""
        return {server: each.reason for server, each in self._missing.items() if each.may_be_told(caller)}

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
        """Tools with this id, name or provider name, by id.

        Where no tool has it to the letter: those that have it in another case, with other signs between its words, or
        as base name; where there are none either, those with the same letters and digits.
        """
        return self.roster.named(name)

    def near(self, name: str, limit: int = 3, among: Collection[str] | None = None) -> list[Tool]:
        """The tools with the most similar names, best first."""
        return self.roster.near(name, limit, among)

    def provider_name(self, tool_id: str, among: Collection[str] | None = None) -> str:
        """The name a model sees: legal for every provider and distinct, whatever the order of registration.

        With `among`, tools outside it are ignored: a name does not reveal that they exist.
        """
        return self.roster.provider_name(self[tool_id], among)

    # -- inside --------------------------------------------------------------------------------------------------

    @contextmanager
    def _step(self) -> Generator[Step]:
        """A change: made aside, put in place at once, and announced; also as far as it came before it raised."""
        with self._changing:
            step, version = self._current.begin(), self.version
            try:
                yield step
            finally:
                change = self._current.put_in_place(step)
                for source, error in step.refused:
                    self._quarantine.add(source, error)
                log_look_alikes(step.look_alikes)
                if self.version > version:
                    self._announce(change)

    def _take(self, new: Tool, source: object, step: Step) -> Tool | None:
        """Puts one tool in, where its id is free or may be taken; returns the tool that is then there, if it fits."""
        if not self._is_free(new, source, step):
            return None
        new = self._with_queries(new)
        before = step.get(new.id)
        if before is not None and before == new:
            return before
        if before is not None and not self._may_replace(before, source, step):
            return None
        step.put(new)
        return new

    def _read(
        self, source: object, options: Mapping[str, object], trust: frozenset[str], faults: list[Exception]
    ) -> list[tuple[Tool, object]]:
        """The tools in one source. What is wrong with it is quarantined, not raised, and added to `faults`."""
        read = read_source(source, options, trust)
        for part, error in read.faults:
            self._quarantine.add(part, error)
            faults.append(error)
        if read.page is not None:
            self._notices.page(str(options.get("server", "")), read.page)
        self._notices.left_out(read.notices)
        return read.tools

    def _with_queries(self, new: Tool) -> Tool:
        """The tool with the queries that `enrich` has for it, or unchanged where there are none."""
        queries = self._examples.of(new) if self._examples is not None else ()
        return replace(new, enriched=queries) if queries and queries != new.enriched else new

    def _is_free(self, new: Tool, source: object, step: Step) -> bool:
        """Whether the name is not that of a built-in tool; a tool that has one is refused."""
        if (problem := self._reserved.problem_of(new)) is not None:
            step.refused.append((source, problem))
        return problem is None

    def _may_replace(self, before: Tool, source: object, step: Step) -> bool:
        if self._on_collision == "replace":
            return True
        error = DefinitionError(f"the id {before.id!r} is taken by a different tool{remedy_for(before)}")
        if self._on_collision == "error":
            raise error
        step.refused.append((source, error))
        return False

    def _announce(self, change: Change) -> None:
        log_unchecked(change.added, change.removed)
        for listener in self._subscribers:
            try:
                listener(change)
            except Exception:
                log.exception("a listener of the catalog failed")

    def __repr__(self) -> str:
        servers = f" from {counted(len(self.servers), 'server')}" if self.servers else ""
        quarantined = f", {len(self._quarantine)} quarantined" if self._quarantine else ""
        return f"Catalog({counted(len(self), 'tool')}{servers}{quarantined})"

    def _repr_html_(self) -> str:
        from toolsearch.support.html import table

        rows = [(t.id, t.server or "", t.summary(), ", ".join(t.flags)) for t in self]
        return table(repr(self), ("id", "server", "summary", "flags"), rows, most=50)
