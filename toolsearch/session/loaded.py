"""The tools that one conversation has: pinned and found ones, their names, their order, and the limits on them.

Found tools are kept in the order of discovery, and each keeps the exact definition that was shown. The oldest leave
only when a limit is reached. Tools that are gone or changed at their source take effect at a compaction. Both are
reported in `notices`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolsearch.calls import Caller, LoadedTool, NativeDelivery
from toolsearch.catalog.names import provider_name
from toolsearch.catalog.tools import Shown, Tool, definition_tokens, loaded_of
from toolsearch.session.declared import DeclaredTools
from toolsearch.session.delivery import DELIVERIES, IN_TEXT, Delivery
from toolsearch.session.meta_tool import built_in_tools
from toolsearch.session.view import View
from toolsearch.session.visible_tools import VisibleTools
from toolsearch.support.json_types import JsonObject

__all__ = ["LoadedTools"]


class LoadedTools:
    """The tools of one conversation. Not thread-safe by itself: its session holds a lock.

    `mode` says how tools reach the model, and `built_in` are the session's own tools for that mode. `callable` are the
    ids of the tools that were shown last, and `refused` how often a loaded one was called since that was not among
    them. `room` and `most_tokens` limit how many found tools a request can carry.
    """

    def __init__(self, view: View, caller: Caller | None) -> None:
        self.caller = caller
        self.view = view
        self.mode: Delivery = "append"
        self.built_in: list[Tool] = []
        self.room = 0
        self.most_tokens: float = math.inf
        self.native: NativeDelivery | None = None  # of the wire, where it is known
        self.declared = DeclaredTools()
        self._delivered: dict[str, str] = {}  # in "native": ids of tools that answers have brought -> their digests
        self._reported_full = False
        self._places: tuple[Sequence[str], Sequence[str]] = (), ()  # that the text of the search tool may name
        self._roles = self._caller_roles  # for which it was written
        self.notices: list[str] = []
        self.found: dict[str, Tool] = {}  # as first shown, in the order of discovery
        self._away: list[str] = []  # ids of found tools that are gone, or hidden; they return as soon as they are back
        self._shown: list[Shown] | None = None
        self.refused: Counter[str] = Counter()
        self.aside: dict[str, str] = {}  # ids of tools that a provider refuses -> why
        self._names: dict[str, str] = {}  # tool id -> name; tools that have left keep theirs, a history may contain it
        self._ids: dict[str, str] = {}  # name -> tool id
        self.pinned = [live for t in view.pinned if (live := self.live(t.id)) is not None]
        for tool in self.pinned:
            self._give_name(tool)
        self._pinned_late: set[str] = set()  # pinned tools that came later, and were listed with the found ones
        self.callable = self.ids()

    def deliver(self, mode: Delivery, *, searches: bool | None = None) -> None:
        """Sets the mode, and what belongs to it; `searches`: whether "compact" does (None: if not all are listed)."""
        settings, self.mode = self.view.settings, mode
        if mode == "compact" and self._list_signatures() and searches is None:
            searches = False
        if mode != "static":
            self._places, self._roles = self.view.visible(self.caller).places, self._caller_roles
        self.built_in = built_in_tools(settings, mode, self._places, searches=searches is not False)
        self.search_tool = next((each for each in self.built_in if each.name == settings.search_tool), None)
        # In "bridge" found tools are not part of a request, so only their number is limited.
        others = 0 if mode in IN_TEXT else len(self.built_in) + len(self.pinned)
        self.room = self.room if mode == "compact" else settings.max_tools - others
        self.most_tokens = (mode == "append" and settings.max_tool_tokens) or math.inf

    def _list_signatures(self) -> bool:
        """Loads the tools whose signatures the instructions show; returns whether these are all."""
        listed = self.view.visible(self.caller).listed[: self.view.settings.most_in_directory]
        self.room = len(self.found) + len(listed) + self.view.settings.max_tools
        self.reveal(tool.id for tool in listed)
        self.callable = self.ids()
        return len(self.found) >= self.searchable

    def show(self) -> list[Shown]:
        """The tools of the next request, in order. Until the next time, these are the tools that can be called."""
        self._list_late_pins()
        if self.mode == "static" and (beyond := self.reveal_all()) and not self._reported_full:
            self._reported_full = True
            self.notices.append(f"not shown: {beyond} tools; a request carries {self.view.settings.max_tools}")
        self.take_back()
        self._forget_places()
        self.callable = frozenset(t.id for t in self.stay([*self.pinned, *self.found.values()]))
        self.refused.clear()
        self._shown = self._listed()
        return list(self._shown)

    def shown(self) -> list[Shown]:
        """The tools that were shown last; before the first time, those that can be called then."""
        return list(self._shown) if self._shown is not None else self._listed()

    def _listed(self) -> list[Shown]:
        in_request = () if self.mode in IN_TEXT else self.found.values()
        tools = [t for t in [*self.pinned, *in_request] if t.id in self.callable]
        built_in = [Shown(t.name, t, built_in=True) for t in self.built_in]
        return built_in + [Shown(self.name_of(t), t, delivered=self._is_delivered(t)) for t in tools]

    def _is_delivered(self, tool: Tool) -> bool:
        return self.mode == "native" and self._delivered.get(tool.id) == tool.digest

    def bring(self, ids: Iterable[str]) -> tuple[LoadedTool, ...]:
        """In the mode "native", the definitions of these found tools that the conversation has not; now it has them."""
        if self.mode != "native":
            return ()
        new = [tool for i in ids if (tool := self.found.get(i)) is not None and not self._is_delivered(tool)]
        self._delivered |= {tool.id: tool.digest for tool in new}
        self.declared.referred |= {tool.id: self.name_of(tool) for tool in new}
        return tuple(loaded_of(Shown(self.name_of(tool), tool)) for tool in new)

    def deferred(self) -> list[Shown]:
        """In the mode "native", all tools that can be found, for a wire that declares them; else none."""
        if self.mode != "native" or (self.native is not None and not self.native.declares):
            return []
        pinned = {tool.id for tool in self.pinned}
        seen = self.view.visible(self.caller)
        tools = [tool for tool in seen.all if tool.id not in pinned]
        most = self.native.most_declared if self.native is not None else None
        tools += self.stay(self.found.values())
        return self.declared.taking(tools, self.stay, self.name_of, most)

    def stay(self, tools: Iterable[Tool]) -> list[Tool]:
        """The tools without those that the caller may no longer see, asked of the very definition that is shown.

        A tool that has left or changed at its source stays as it was shown: that takes effect at a compaction.
        """
        visible = self.view.visible(self.caller)
        return [tool for tool in tools if self._stays(tool, visible)]

    def _stays(self, tool: Tool, visible: VisibleTools) -> bool:
        now = visible.roster.get(tool.id)
        if now is not None and visible.get(tool.id) is None:
            return False
        return now is tool or self.view.may_see(tool, self.caller)

    def _forget_places(self) -> None:
        """Writes the search tool's text anew if the caller lost the right to a place that it names."""
        visible = self.view.visible(self.caller)
        lost = [
            named
            for before, now, all_of_it in zip(self._places, visible.places, visible.roster.places, strict=True)
            for named in before
            if named in all_of_it and named not in now
        ]
        if self.built_in and (lost or self._roles != self._caller_roles):
            self.deliver(self.mode)

    @property
    def _caller_roles(self) -> frozenset[str]:
        return self.caller.roles if self.caller is not None else frozenset()

    def _list_late_pins(self) -> None:
        """Lists pinned tools that came after this conversation began at the end, once: what was shown keeps its place.

        In "bridge" nothing is added to a request; there they are listed after the next compaction.
        """
        if self.mode in IN_TEXT:
            return
        skip = self.ids() | self._pinned_late
        new = [t.id for t in self.view.pinned if t.id not in skip and self.live(t.id) is not None]
        if new:
            self._pinned_late.update(new)
            self.reveal(new)
            self.notices.append(f"pinned tools came: {', '.join(self._names[i] for i in new if i in self._names)}")

    def _take_late_pins(self) -> None:
        """At a compaction, pinned tools that came later take their place among the pinned ones, as far as they fit."""
        known = {t.id for t in self.pinned}
        late = [live for t in self.view.pinned if t.id not in known and (live := self.live(t.id)) is not None]
        if self.mode not in IN_TEXT:
            late = late[: max(0, self.room - 1)]
            self.room -= len(late)
        for tool in late:
            self._give_name(tool)
            self.found.pop(tool.id, None)
        self.pinned += late
        self._evict()

    def live(self, tool_id: str) -> Tool | None:
        """The current definition of a tool, if the caller may see it."""
        return self.view.live(tool_id, self.caller)

    def ids(self) -> frozenset[str]:
        """The ids of all tools here, pinned and found."""
        return frozenset([*(t.id for t in self.pinned), *self.found])

    def id_of(self, name: str) -> str | None:
        """The id of the tool that has this name in this conversation, even if the tool has left since."""
        return self._ids.get(name)

    def name_of(self, tool: Tool) -> str:
        """The name a model calls a tool by: the one it has already, or the one it would get."""
        if tool.id in self._names:
            return self._names[tool.id]
        if (declared := self.declared.name_of(tool.id)) is not None:
            return declared
        name = self.view.visible(self.caller).provider_name(tool)
        if self._ids.get(name, tool.id) != tool.id:
            name = provider_name(tool.name, tool.id, tool.server, shared=True)
        return name

    def names_of(self, ids: Iterable[str]) -> dict[str, str]:
        """The loaded ones of these tools: the id of each, and the name that the model calls it by."""
        names = {tool.id: self.name_of(tool) for tool in [*self.pinned, *self.found.values()]}
        return {i: names[i] for i in ids if i in names}

    def reveal(self, ids: Iterable[str], late: Sequence[str] = ()) -> list[str]:
        """Loads tools in this order, as many as fit; returns the names of the tools that had to leave for them.

        The tools in `late` are needed as well, so they leave last.
        """
        loaded = self.ids()
        new = [i for i in dict.fromkeys(ids) if i not in loaded][: self.room]
        for tool_id in new:
            if (tool := self.live(tool_id)) is not None:
                self._give_name(tool)
                self.found[tool_id] = tool
        self._away = [i for i in self._away if i not in self.found]
        return self._evict(new, late) if new else []

    def has_room_for(self, tools: Sequence[Tool]) -> bool:
        """Whether these tools can be loaded and no other one has to leave."""
        found = {**self.found, **{tool.id: tool for tool in tools}}
        if self.most_tokens < math.inf and sum(map(definition_tokens, found.values())) > self.most_tokens:
            return False
        return len(found) <= self.room

    def reveal_all(self) -> int:
        """Loads all visible tools, as many as a request can carry; returns how many it cannot."""
        loaded = self.ids()
        new = [t.id for t in self.view.visible(self.caller).all if t.id not in loaded]
        room = max(0, self.room - len(self.found))
        self.reveal(new[:room])
        return len(new[room:])

    def unload(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Takes found tools out of the next request; returns the ids of those that were there."""
        leaving = [i for i in dict.fromkeys(ids) if i in self.found or i in self._away]
        self._away = [i for i in self._away if i not in leaving]
        if names := [self._names[i] for i in leaving if self.found.pop(i, None) is not None]:
            self.notices.append(f"unloaded by the program: {', '.join(names)}")
        return tuple(leaving)

    def set_aside(self, names: Iterable[str], why: str) -> tuple[str, ...]:
        """Hides tools from this conversation for good, pinned ones too; returns their ids."""
        ids = dict.fromkeys(self._id_meant(name) for name in names)
        known = {tool.id: tool for tool in [*self.pinned, *self.found.values()]}
        tools = [tool for i in ids if (tool := known.get(i) or self.live(i)) is not None]
        gone = {tool.id: why for tool in tools}
        if tools:
            which = "them" if len(tools) > 1 else "it"
            told = ", ".join(self.name_of(tool) for tool in tools)
            self.notices.append(f"the provider refuses {told}: go on without {which}")
        self.aside, self.view = self.aside | gone, self.view.without(gone)
        self.found = {i: tool for i, tool in self.found.items() if i not in gone}
        self._away = [i for i in self._away if i not in gone]
        staying = [tool for tool in self.pinned if tool.id not in gone]
        self.room += 0 if self.mode == "bridge" else len(self.pinned) - len(staying)
        self.pinned, self.callable, self._shown = staying, self.callable - gone.keys(), None
        return tuple(gone)

    def _id_meant(self, name: str) -> str:
        """The id of the tool that was sent by a name; Gemini is sent an underscore before a digit."""
        plain = name.removeprefix("_")
        return self._ids.get(name) or self.declared.id_of(name) or self._ids.get(plain) or name

    def take_back(self) -> None:
        """Loads found tools again that were gone and are back, such as those of a server that was away.

        They take only the room that is left: no other tool leaves for them.
        """
        if not self._away:
            return
        back: list[str] = []
        tokens = sum(map(definition_tokens, self.found.values())) if self.most_tokens < math.inf else 0
        for tool in filter(None, map(self.live, self._away)):
            tokens += definition_tokens(tool) if self.most_tokens < math.inf else 0
            if len(self.found) + len(back) < self.room and tokens <= self.most_tokens:
                back.append(tool.id)
        if back:
            self.reveal(back)
            self.notices.append(f"available again: {', '.join(self._names[i] for i in back)}")

    def compact(self) -> list[str]:
        """Drops tools that are gone or hidden and updates changed ones; returns a sentence for each."""
        before = [*self.pinned, *self.found.values()]
        live = {t.id: now for t in before if (now := self.live(t.id)) is not None}
        changes = []
        for tool in before:
            if tool.id not in live:
                changes.append(f"{self._names[tool.id]} is no longer available")
            elif live[tool.id] != tool:
                changes.append(f"{self._names[tool.id]} has changed")
        self.pinned = [live[t.id] for t in self.pinned if t.id in live]
        self._away += [i for i in self.found if i not in live]
        self.found = {i: live[i] for i in self.found if i in live}
        self._take_late_pins()
        self._delivered.clear()
        self.declared = self.declared.anew()
        if self.mode == "compact":
            self.deliver(self.mode)
        return changes

    def export(self) -> JsonObject:
        """Names, found tools and the tools that were shown, as JSON-ready data."""
        return {
            "names": dict(self._names),
            "found": [[i, t.digest] for i, t in self.found.items()],
            **({"away": list(self._away)} if self._away else {}),
            **({"aside": dict(self.aside)} if self.aside else {}),
            "callable": sorted(self.callable),
            **({"delivered": dict(self._delivered)} if self._delivered else {}),
            **({"referred": referred} if (referred := dict(self.declared.referred)) else {}),
            "built_in": [[t.description, dict(t.input_schema)] for t in self.built_in],
        }

    def restore(self, state: JsonObject) -> None:
        """Restores what `export` returned, and the mode. `notices` name the tools that are gone or have changed.

        The built-in tools keep the descriptions that were shown.
        """
        if state["mode"] not in DELIVERIES:
            raise ValueError(f"the mode {state['mode']!r} is unknown")
        if aside := dict(state.get("aside", {})):
            self.aside, self.view = aside, self.view.without(aside)
            self.pinned = [tool for tool in self.pinned if tool.id not in aside]
        self.deliver(state["mode"], searches=state["mode"] != "compact" or len(state["built_in"]) > 1)
        self.found.clear()
        self.built_in = [
            replace(tool, description=description, input_schema=schema)
            for tool, (description, schema) in zip(self.built_in, state["built_in"], strict=True)
        ]
        texts = str(state["built_in"])  # the places that they name are not stored
        servers, categories = ([p for p in each if p in texts] for each in self.view.catalog.roster.places)
        self._places = servers, categories
        self._names = dict(state["names"])
        self._ids = {name: tool_id for tool_id, name in self._names.items()}
        for tool in self.pinned:
            self._give_name(tool)
        self._away = list(state.get("away", ()))
        self._delivered = dict(state.get("delivered", {}))
        self.declared.referred |= state.get("referred", {i: self._names[i] for i in self._delivered})
        pinned = {t.id for t in self.pinned}
        for tool_id, digest in state["found"]:
            if tool_id in pinned:  # it is pinned only since
                continue
            live = self.live(tool_id)
            if live is None:
                # The state may be another caller's: a tool that is only hidden from this one is not named.
                name = "a tool" if tool_id in self.view.catalog else self._names[tool_id]
                self.notices.append(f"{name} is no longer available and was unloaded")
                self._away.append(tool_id)
                continue
            if live.digest != digest:
                self.notices.append(f"{self._names[tool_id]} has changed since it was loaded")
            self.found[tool_id] = live
        self._evict()
        self.take_back()
        self.callable = frozenset(state["callable"])

    @property
    def searchable(self) -> int:
        """How many tools the caller can search for."""
        return sum(map(len, self.view.visible(self.caller).by_server.values()))

    def give_names(self, tools: Iterable[Tool]) -> None:
        """Names tools that are told but not loaded, so that each keeps its name in this conversation."""
        for tool in tools:
            self._give_name(tool)

    def _give_name(self, tool: Tool) -> None:
        """Names a tool, once per conversation; if another tool has the name already, it gets a suffix."""
        if tool.id not in self._names:
            name = self.name_of(tool)
            self._names[tool.id] = name
            self._ids[name] = tool.id

    def _evict(self, keep: Sequence[str] = (), late: Sequence[str] = ()) -> list[str]:
        """Unloads the oldest found tools until the limits hold; those in `keep` stay."""
        gone = []
        order = {tool_id: place for place, tool_id in enumerate(self.found)}
        sizes = {i: definition_tokens(t) for i, t in self.found.items()} if self.most_tokens < math.inf else {}
        for tool_id in sorted(self.found.keys() - set(keep), key=lambda i: (i in late, order[i])):
            if len(self.found) <= self.room and sum(sizes.values()) <= self.most_tokens:
                break
            del self.found[tool_id]
            sizes.pop(tool_id, None)
            gone.append(self._names[tool_id])
        if gone:
            self.notices.append(f"unloaded to stay within the limit: {', '.join(gone)}")
        return gone
