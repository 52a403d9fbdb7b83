"""D1: a change of a catalog is seen whole or not at all, and nobody sees a tool while it is being added."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolsearch import Agent, Caller, Catalog, Change, Hits, ToolCall, ToolSearch, find
from toolsearch.layers import rules
from toolsearch.protocols import Scored
from toolsearch.testing import ScriptedModel

EVE, ADMIN = Caller("eve", ["user"], "other"), Caller("root", ["admin"], "acme")
RAN: list[str] = []


def secret(name: str, **more: Any) -> dict[str, Any]:
    """A tool for admins, which notes that it ran."""
    return {
        "name": name, "description": f"Wipe the disk, {name}.", "server": "vault", "roles": ["admin"],
        "run": lambda: RAN.append(name), **more,
    }  # fmt: skip


def public(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Wipe the glass, {name}.", "server": "shop", "run": lambda: "clean", **more}


class Pause:
    """Stops a change in its middle until the test has looked."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self, change: Change | None = None) -> None:
        self.reached.set()
        assert self.go_on.wait(30)

    def source(self, *tools: Any) -> Iterator[Any]:
        """The tools one by one, with a pause before the end, as from a server that is slow with its last page."""
        yield from tools
        self()

    def during(self, change: Callable[[], object], look: Callable[[], None]) -> None:
        """Looks while the change is at its pause, and once more when it is done."""
        thread = threading.Thread(target=change)
        thread.start()
        assert self.reached.wait(30)
        try:
            look()
        finally:
            self.go_on.set()
            thread.join()
        look()


def probe(search: ToolSearch, *names: str, agent_layers: list[Any] | None = None) -> str:
    """All that eve can learn of these names, in a loop of her own and through an agent: everything she reads."""
    session = search.session("eve", caller=EVE)
    read: list[object] = [session.tools(), session.instructions(), search.find("wipe the disk", 20, caller=EVE)]
    calls = [*names, *(f"vault/{name}" for name in names), *(name[:-1] for name in names)]
    read += [session.handle(ToolCall("1", name, {})).status for name in calls]
    queries = ("wipe the disk", *(f"select:{name}" for name in names))
    read += [session.handle(ToolCall("2", "search_tools", {"queries": [q]})).data["loaded"] for q in queries]
    session.load([f"vault/{name}" for name in names])
    read += [session.preselect("wipe the disk"), session.tools(), session.loaded]
    model = ScriptedModel([(names[0], {})], [(f"vault/{names[0]}", {})], "end")
    Agent(model, search, layers=agent_layers or []).run("Wipe it", caller=EVE)
    read += [request.tools for request in model.requests]
    return repr(read)


def two_secrets(pause: Pause) -> dict[str, Callable[[Catalog], object]]:
    """Every way to bring in tools that only admins may see, with a pause while the source is read."""
    return {
        "extend": lambda catalog: catalog.extend(pause.source(secret("wipe_a"), secret("wipe_b"))),
        "sync": lambda catalog: catalog.sync(pause.source(secret("wipe_a"), secret("wipe_b")), server="vault"),
        "new catalog": lambda catalog: Catalog(pause.source(secret("wipe_a"), secret("wipe_b"))),
    }


@pytest.mark.parametrize("how", two_secrets(Pause()))
@pytest.mark.parametrize("policy", ["show", "run"])
@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_nobody_sees_a_tool_while_its_source_is_read(how: str, policy: str, mode: str) -> None:
    RAN.clear()
    pause, catalog = Pause(), Catalog([public("wipe_glass")])
    search = ToolSearch(catalog, "keyword", not_loaded=policy, mode=mode)
    probe(search, "wipe_a", "wipe_b")  # what eve may see is computed now: it must not stand for what comes later

    def look() -> None:
        assert "vault" not in probe(search, "wipe_a", "wipe_b")

    pause.during(lambda: two_secrets(pause)[how](catalog), look)
    assert not RAN
    if how != "new catalog":
        assert search.session(caller=ADMIN).handle(ToolCall("1", "search_tools", {"query": "select:wipe_a"})).ok


def test_a_rule_as_visible_hides_a_tool_while_its_source_is_read() -> None:
    RAN.clear()
    rule = rules(roles={"vault/*": ["admin"]})
    for layers in ([], [rule]):
        pause, catalog = Pause(), Catalog([public("wipe_glass")])
        search = ToolSearch(catalog, "keyword", visible=rule, not_loaded="run")
        probe(search, "wipe_a")

        def look(search: ToolSearch = search, layers: list[Any] = layers) -> None:
            assert "vault" not in probe(search, "wipe_a", agent_layers=layers)

        pause.during(lambda p=pause, c=catalog: c.extend(p.source(secret("wipe_a", roles=[]))), look)  # type: ignore[misc]
    assert not RAN


class Enriched:
    """Example queries for every tool."""

    def of(self, tool: Any) -> tuple[str, ...]:
        return (f"how do I {tool.name}",)

    def stale(self, catalog: Any) -> tuple[str, ...]:
        return ()


CHANGES: dict[str, Callable[[Catalog], object]] = {
    "add": lambda catalog: catalog.add(secret("wipe_a")),
    "extend": lambda catalog: catalog.extend([public("wipe_more"), secret("wipe_a"), secret("wipe_b")]),
    "sync": lambda catalog: catalog.sync([secret("wipe_a"), secret("wipe_b")], server="vault"),
    "replace": lambda catalog: catalog.replace(secret("wipe_open", server="vault")),
    "sync that hides": lambda catalog: catalog.sync([secret("wipe_open")], server="vault"),
    "remove": lambda catalog: catalog.remove("vault/wipe_open"),
    "reserve": lambda catalog: catalog.reserve(["wipe_open"]),
    "enrich": lambda catalog: catalog.enrich(Enriched()),  # type: ignore[arg-type]
    "a bad one between": lambda catalog: catalog.extend([{"name": ""}, secret("wipe_a"), {"name": "x", "kind": 5}]),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("first", [True, False])
def test_nobody_sees_a_tool_while_a_listener_keeps_the_change(what: str, first: bool) -> None:
    """The listener stops the change before the index has heard of it, and after."""
    RAN.clear()
    pause = Pause()
    catalog = Catalog([public("wipe_glass"), secret("wipe_open", roles=[])])
    if first:
        catalog.subscribe(pause)
    search = ToolSearch(catalog, "keyword", not_loaded="run")
    if not first:
        catalog.subscribe(pause)
    probe(search, "wipe_glass")
    RAN.clear()

    def look() -> None:
        seen = probe(search, "wipe_a", "wipe_b", "wipe_open")
        assert "vault/wipe_a" not in seen
        assert "vault/wipe_b" not in seen

    pause.during(lambda: CHANGES[what](catalog), look)
    still_open = {"wipe_open"} if what in ("add", "extend", "sync", "enrich", "a bad one between") else set[str]()
    assert {*RAN} <= still_open
    assert ("vault/wipe_open" in catalog) == (what not in ("remove", "reserve", "sync"))


def test_a_look_up_in_the_middle_of_a_change_sees_one_state() -> None:
    """The ids, the names, the provider's names and the version belong together, from the first to the last look."""
    pause, catalog = Pause(), Catalog([public("read", server="a")])
    before = catalog.roster
    seen: list[object] = []

    def look() -> None:
        now = catalog.roster
        (tool,) = now.exact("a/read")
        names = (now.provider_name(tool), [t.id for t in now.named("READ")], [t.id for t in now.near("reed")])
        seen.append((now.version, len(now), *names))

    pause.during(lambda: catalog.extend(pause.source(public("read", server="b"))), look)
    assert seen[0] == (1, 1, "read", ["a/read"], ["a/read"])
    assert seen[1][:2] == (2, 2)  # type: ignore[index]
    assert seen[1][3:] == (["a/read", "b/read"], ["a/read", "b/read"])  # type: ignore[index]
    assert (before.version, [t.id for t in before], [t.id for t in before.named("read")]) == (1, ["a/read"], ["a/read"])


class Meanwhile:
    """An index that finds everything, and lets a change happen while it searches."""

    name = "meanwhile"

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.change: Callable[[], object] = lambda: None

    def add(self, tools: Any) -> None:
        self.ids += [tool.id for tool in tools]

    def remove(self, ids: Any) -> None:
        self.ids = [each for each in self.ids if each not in ids]

    def search(self, query: str, limit: int, among: Any = None) -> list[Scored]:
        change, self.change = self.change, lambda: None
        change()
        return [Scored(each, 1.0) for each in self.ids if among is None or each in among]


@pytest.mark.parametrize("others", [[], [secret("wipe_old")]])
def test_what_a_search_returns_is_what_was_judged_whatever_changes_meanwhile(others: list[Any]) -> None:
    """A tool that comes, and one that is replaced by one for admins, between the judgement and the answer."""
    index, catalog = Meanwhile(), Catalog([public("wipe_glass"), *others])
    search = ToolSearch(catalog, index)
    hidden = secret("wipe_glass", server="shop")
    index.change = lambda: (catalog.extend([secret("wipe_a")]), catalog.replace(hidden))
    hits: Hits = search.find("wipe", 20, caller=EVE)
    assert [(hit.tool.id, hit.tool.roles) for hit in hits] == [("shop/wipe_glass", frozenset())]
    assert not search.find("wipe", 20, caller=EVE)


def test_a_hit_that_was_hidden_since_is_not_loaded() -> None:
    """Loading asks anew, of the tool that it loads."""
    RAN.clear()
    catalog = Catalog([secret("wipe_open", roles=[])])
    index = Meanwhile()
    search = ToolSearch(catalog, index)
    session = search.session(caller=EVE)
    index.change = lambda: catalog.replace(secret("wipe_open"))
    session.handle(ToolCall("1", "search_tools", {"query": "wipe"}))
    assert [each.name for each in session.tools()] == ["search_tools"]
    assert session.handle(ToolCall("2", "wipe_open", {})).status == "unknown"
    assert not RAN


def test_a_search_without_a_view_sees_one_state_too() -> None:
    index, catalog = Meanwhile(), Catalog([public("wipe_glass")])
    index.add(catalog)
    index.change = lambda: (catalog.add(secret("wipe_a")), index.add(catalog))
    assert [hit.tool.id for hit in find(catalog, index, "wipe")] == ["shop/wipe_glass"]


def test_a_change_from_within_a_source_is_not_lost() -> None:
    catalog = Catalog([public("wipe_glass")])

    def source() -> Iterator[Any]:
        yield public("first")
        catalog.add(public("from_within"))
        yield public("second")

    catalog.extend(source())
    assert [t.name for t in catalog] == ["wipe_glass", "from_within", "first", "second"]
    assert catalog.version == 3


def test_a_thousand_changes_never_show_a_reader_a_secret() -> None:
    """Readers without a pause, while tools for admins come and go: what `auth_race2` showed, without a clock."""
    RAN.clear()
    catalog = Catalog([public("wipe_glass")])
    search = ToolSearch(catalog, "keyword", not_loaded="run")
    done = threading.Event()
    seen: list[str] = []

    def read() -> None:
        session = search.session("eve", caller=EVE)
        while not done.is_set():
            seen.extend(
                call.status for call in [session.handle(ToolCall("1", "wipe_0", {}))] if call.status != "unknown"
            )
            seen.extend(hit.tool.id for hit in search.find("wipe disk", caller=EVE) if hit.tool.roles)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(40):
        catalog.extend(secret(f"wipe_{n}") for n in range(20))
        catalog.sync([secret("wipe_0")], server="vault")
        catalog.sync([], server="vault")
    done.set()
    reader.join()
    assert not RAN
    assert not seen
