"""The note for the system message of a conversation: how to find tools, which are always there, and what there is."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.session.delivery import IN_TEXT
from toolsearch.session.directory import names_by_server, place_name, servers_and_counts
from toolsearch.session.loaded import LoadedTools
from toolsearch.session.signatures import signature
from toolsearch.session.view import View
from toolsearch.support.json_types import JsonObject

__all__ = ["Instructions"]


@dataclass(frozen=True, slots=True)
class _Directory:
    """What there was when a conversation began, in words, and what a caller must be able to see to read it.

    `ids` are the tools that it names, `servers` the servers, `roles` those of the caller for whom it was written.
    """

    text: str = ""
    ids: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


class Instructions:
    """The note of one conversation. Not thread-safe by itself: its session holds a lock.

    The directory keeps its bytes until a compaction, whatever the catalog does. It is written anew as soon as the
    caller has lost the right to see what it names.
    """

    def __init__(self, view: View, tools: LoadedTools) -> None:
        self._tools, self._settings = tools, view.settings
        self._directory = self._written()

    def text(self) -> str:
        """The note; empty in the mode "static"."""
        if self._tools.mode == "static":
            return ""
        lines = [] if self._tools.search_tool is None else [self._how_to_search()]
        if pinned := self._tools.stay(self._tools.pinned):
            lines.append("Always listed; call them directly and do not search for them:")
            lines += [f"- {self._tools.name_of(t)}: {t.summary()}" for t in pinned]
        if self._directory.text and not self._may_stay():
            self.write_anew()
        return "\n".join([*lines, *filter(None, [self._directory.text])])

    def _how_to_search(self) -> str:
        search, call = self._settings.search_tool, " or ".join(self._settings.doors)
        return (
            f"More tools exist than are listed. Find them with {search}: when no listed tool fits, search for what is "
            f"missing, one short query per capability, several in one call. "
            + (f"Then call what was found through {call}. " if self._tools.mode in IN_TEXT else "")
            + "If nothing fits, search once more in other words; if that finds nothing either, say so."
        )

    @property
    def _roles(self) -> tuple[str, ...]:
        """The caller's roles, sorted."""
        caller = self._tools.caller
        return () if caller is None else tuple(sorted(caller.roles))

    @property
    def has_directory(self) -> bool:
        return bool(self._directory.text)

    def write_anew(self) -> None:
        """Writes the directory of what there is now."""
        self._directory = self._written()

    def _may_stay(self) -> bool:
        """Whether the caller may still see what the directory names; what has left the catalog may stay in it."""
        seen, told = self._tools.view.visible(self._tools.caller), self._directory
        if told.roles != self._roles:
            return False
        hidden = any(i in seen.roster.tools and seen.get(i) is None for i in told.ids)
        return not hidden and not any(s in seen.roster.places[0] and s not in seen.places[0] for s in told.servers)

    def _written(self) -> _Directory:
        most, roles = self._settings.most_in_directory, self._roles
        if self._tools.mode == "compact":
            return self._signatures()
        if not most or self._tools.mode == "static":
            return _Directory(roles=roles)
        seen, search = self._tools.view.visible(self._tools.caller), self._settings.search_tool
        if not seen.listed:
            return _Directory(roles=roles)
        if len(seen.listed) <= most:
            self._tools.give_names(seen.listed)
            names = names_by_server(seen.by_server, self._tools.name_of)
            text = f'All tools that {search} can load; the query "select:NAME,NAME" loads some by their names:\n{names}'
            return _Directory(text, tuple(tool.id for tool in seen.listed), roles=roles)
        places = servers_and_counts(seen.by_server, self._settings.answer_tokens)
        text = f'What {search} can find, with the number of tools; the query "server:NAME" lists their names:\n{places}'
        return _Directory(text, servers=tuple(filter(None, seen.by_server)), roles=roles)

    def _signatures(self) -> _Directory:
        """The tools that are loaded, each in a line."""
        tools = self._tools.stay(self._tools.found.values())
        if not tools:
            return _Directory(roles=self._roles)
        self._tools.give_names(tools)
        by_server: dict[str, list[str]] = {}
        for tool in tools:
            by_server.setdefault(tool.server or "", []).append(signature(self._tools.name_of(tool), tool))
        lines = [
            line for server, told in by_server.items() for line in (f"{place_name(server)}:" * bool(server), *told)
        ]
        text = (
            f"Tools to call through {self._settings.call_tool}, with their arguments; ? marks one that may be left "
            "out. The answer to a call that does not fit has the whole schema.\n"
        )
        ids = tuple(tool.id for tool in tools)
        return _Directory(text + "\n".join(filter(None, lines)), ids, roles=self._roles)

    def export(self) -> JsonObject:
        """The directory as JSON-ready data for `restore`; nothing if there is none."""
        told = self._directory
        if not told.text:
            return {}
        parts = {"text": told.text, "ids": list(told.ids), "servers": list(told.servers), "roles": list(told.roles)}
        return {"directory": parts}

    def restore(self, state: JsonObject) -> None:
        """Restores what `export` returned. Who began without a directory has none until a compaction."""
        told = state.get("directory")
        if told is None:
            self._directory = _Directory(roles=self._roles)
            return
        lists = (tuple(map(str, told[key])) for key in ("ids", "servers", "roles"))
        self._directory = _Directory(str(told["text"]), *lists)
