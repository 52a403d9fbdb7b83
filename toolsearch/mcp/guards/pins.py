"""Pins: the definition of each tool as it was approved. A tool whose definition changed later is held back.

A server can show a harmless definition first, and another one once it is trusted. So what is approved is remembered,
whole: a held tool is neither shown nor run, the difference can be read, and one command releases it.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from toolsearch import SetupError, Tool
from toolsearch.mcp.guards.definitions import changed_parts, differences, pinned_definition
from toolsearch.mcp.guards.pin_files import Entries, PinFile, Stamp, pins_file
from toolsearch.mcp.guards.policy import is_like
from toolsearch.support import checks
from toolsearch.support.redaction import visible

__all__ = ["Held", "PinMode", "Pins", "asked_for"]

log = logging.getLogger("toolsearch")

PinMode = Literal["first", "strict", "off"]
DIGITS = 12  # of a digest in a command
_UNKNOWN: Stamp = (0, 0, 0)  # after a change: another process may have written right behind it
_WITH_DIGEST = re.compile(r"(?P<id>.+)@(?P<digest>[0-9a-f]{8,64})", re.DOTALL)


@dataclass(frozen=True)
class Held:
    """A tool that is held back, as its server describes it now.

    `parts` are what changed, in words; empty for a tool that was never approved. `diff` are the lines that went and
    came, for people: they are the server's texts, and not for a model. `command` releases exactly this definition.
    """

    tool: Tool
    parts: tuple[str, ...]
    diff: tuple[str, ...] = field(repr=False)
    command: str

    @property
    def is_new(self) -> bool:
        return not self.parts

    @property
    def reason(self) -> str:
        """Why, and what to do, for a model, a log or a person: nothing that a changed definition says stands here."""
        what = "it is new and was not approved yet" if self.is_new else f"its {_listed(self.parts)} changed"
        return (
            f"{visible(self.tool.id)!r} is held back: {what}. Do not call it again. "
            f"A person can look at it and release it with: {self.command}"
        )


class Pins:
    """The pins of one configuration, in a file that may change at any time. Safe for threads and processes.

    `mode`: with "first", a tool that was never seen is approved as it is; with "strict", it is held until somebody
    approves it; with "off", nothing is held. `servers` sets another mode for some servers.
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        *,
        mode: PinMode = "first",
        servers: Mapping[str, PinMode] | None = None,
        command: str = "toolsearch pin mcp.json",
    ) -> None:
        """Raises `SetupError` if the file is damaged. `command` shows the report of these pins, for messages."""
        self._file = PinFile(Path(file))
        self._mode, self._modes, self._command = mode, dict(servers or {}), command
        self._lock = threading.Lock()
        self._stamp: Stamp = self._file.stamp()
        self._entries = self._file.read()
        self._unwritten: Entries = {}

    @classmethod
    def load(
        cls,
        file: str | os.PathLike[str] | None = None,
        *configs: str | os.PathLike[str],
        mode: object = "first",
        servers: Mapping[str, object] | None = None,
    ) -> Pins:
        """The pins of these configurations, in their own file in the user's state folder, or in `file`.

        `mode`, and those of single `servers`, are values of the option `pin`: "first", "strict", "off", true for
        "first", false for "off", or None for the default. Raises `SetupError` for others, and for a damaged file.
        """
        command = shlex.join(["toolsearch", "pin", *map(str, configs or ["mcp.json"])])
        if file is not None:
            command += f" --pins {shlex.quote(str(file))}"
        modes: dict[str, PinMode] = {}
        for name, value in (servers or {}).items():
            if (each := _mode(value, name)) is not None:
                modes[name] = each
        path = pins_file(*configs) if file is None else Path(file)
        return cls(path, mode=_mode(mode) or "first", servers=modes, command=command)

    @property
    def path(self) -> Path:
        return self._file.path

    def check(self, tool: Tool) -> Held | None:
        """Why a tool is held back; None if it may be shown and run. One that was never seen may be pinned by this."""
        return self.check_all([tool]).get(tool.id)

    def check_all(self, tools: Iterable[Tool], *, pin_new: bool = True) -> dict[str, Held]:
        """The tools that are held back, by id; the file is written once for all that are pinned now.

        Without `pin_new` nothing is written, and tools that were never seen are among them.
        """
        with self._lock:
            self._reread()
            new: list[Tool] = []
            held: dict[str, Held] = {}
            for tool in tools:
                mode = self._modes.get(tool.server or "", self._mode)
                if mode == "off":
                    continue
                entry = self._entries.get(tool.id)
                if entry is None and mode == "first" and pin_new:
                    new.append(tool)
                elif entry is None or entry["digest"] != tool.digest:
                    self._compare(tool, entry, held)
            if new:
                self._put(new, replace=False)
                for tool in new:  # another process may have pinned it meanwhile
                    if self._entries[tool.id]["digest"] != tool.digest:
                        self._compare(tool, self._entries[tool.id], held)
        return held

    def accept(self, tools: Iterable[Tool]) -> None:
        """Approves tools as they are. Raises `OSError` if the file cannot be written."""
        with self._lock:
            self._put(list(tools), replace=True)

    def forget(self, tool_ids: Iterable[str]) -> None:
        """Drops pins; a tool that comes back is one that was never seen. Raises `OSError`, as `accept`."""
        with self._lock, self._file.changing() as entries:
            for tool_id in tool_ids:
                entries.pop(tool_id, None)
            self._entries = dict(entries)
            self._stamp = _UNKNOWN

    def ids(self) -> tuple[str, ...]:
        """The ids of all pinned tools, sorted."""
        with self._lock:
            self._reread()
            return tuple(sorted(self._entries))

    def server_of(self, tool_id: str) -> str | None:
        """The server of a pinned tool."""
        entry = self._entries.get(tool_id)
        return None if entry is None else entry["definition"].get("server")

    def changed(self) -> bool:
        """Whether somebody wrote the file since it was last read: `check_all` may answer differently now."""
        return self._file.stamp() != self._stamp

    def _compare(self, tool: Tool, entry: Mapping[str, Any] | None, held: dict[str, Held]) -> None:
        definition = pinned_definition(tool)
        old: Mapping[str, Any] = {} if entry is None else entry["definition"]
        if old == definition:  # only how a digest is made changed
            return
        command = f"{self._command} --accept {shlex.quote(visible(tool.id) + '@' + tool.digest[:DIGITS])}"
        parts = () if entry is None else changed_parts(old, definition)
        held[tool.id] = Held(tool, parts, differences(old, definition), command)

    def _put(self, tools: list[Tool], *, replace: bool) -> None:
        wanted = {tool.id: {"digest": tool.digest, "definition": pinned_definition(tool)} for tool in tools}
        try:
            with self._file.changing() as entries:
                first = self._unwritten if replace else {**self._unwritten, **wanted}
                entries.update({key: first[key] for key in first.keys() - entries.keys()})
                entries.update(wanted if replace else {})
                written = dict(entries)
        except OSError as error:
            if replace:
                raise
            if not self._unwritten:
                log.warning("pins cannot be written to %s, and are kept for this run only: %s", self.path, error)
            self._unwritten |= wanted
            self._entries = {**self._unwritten, **self._entries}
        else:
            self._entries, self._unwritten, self._stamp = written, {}, _UNKNOWN

    def _reread(self) -> None:
        """Reads the file again if it was written. One that became unreadable leaves the pins as they are."""
        if (stamp := self._file.stamp()) == self._stamp:
            return
        try:
            self._entries = {**self._unwritten, **self._file.read()}
        except SetupError as error:
            log.warning("%s; until then, the pins that were read before hold", error)
        self._stamp = stamp


def asked_for(tool: Tool, pattern: str) -> bool | None:
    """Whether `--accept PATTERN` names a tool; None if it names another definition of it than the present one."""
    if is_like(tool.id, pattern) or is_like(f"{tool.server}/{tool.name}", pattern):
        return True
    match = _WITH_DIGEST.fullmatch(pattern)
    if match is None or not is_like(visible(tool.id), match["id"]):
        return False
    return True if tool.digest.startswith(match["digest"]) else None


def _mode(value: object, server: str | None = None) -> PinMode | None:
    if value is None or isinstance(value, bool):
        return None if value is None else "first" if value else "off"
    checks.choice("pin" if server is None else f"pin of the server {server!r}", value, *get_args(PinMode))
    return cast("PinMode", value)


def _listed(parts: tuple[str, ...]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
