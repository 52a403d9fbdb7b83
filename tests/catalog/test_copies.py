"""A change of a catalog copies the tools only where somebody may look at the state before it."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolsearch import Catalog, ToolSearch
from toolsearch.catalog.names import Names


def definition(name: str, server: str = "shop") -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "server": server}


def copies(work: Callable[[], object]) -> int:
    """How often a whole catalog is copied."""
    counted = 0

    def count(frame: Any, event: str, argument: object) -> None:
        nonlocal counted
        counted += event == "call" and frame.f_code is Names.copy.__code__

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


def changed_one_by_one(catalog: Catalog, look: Callable[[], object]) -> None:
    for n in range(100):
        catalog.add(definition(f"t{n}"))
        look()
    for n in range(0, 100, 2):
        catalog.replace({**definition(f"t{n}"), "kind": "action"})
        look()
    for n in range(0, 100, 3):
        catalog.remove(f"shop/t{n}")
        look()


def test_tools_that_change_one_by_one_copy_nothing() -> None:
    catalog = Catalog()
    heard = []
    catalog.subscribe(heard.append)

    def look() -> None:
        assert ("shop/t1" in catalog, catalog.get("shop/t200"), len(catalog) > 0) == (catalog.version > 1, None, True)

    assert copies(lambda: changed_one_by_one(catalog, look)) == 0
    assert len(heard) == catalog.version == 184
    assert [t.id for t in catalog] == [f"shop/t{n}" for n in range(100) if n % 3]
    assert [t.id for t in catalog.named("T50")] == ["shop/t50"]
    assert not catalog.named("t51")


def test_a_search_over_the_catalog_copies_it_once() -> None:
    catalog = Catalog([definition("first")])
    search = ToolSearch(catalog, "keyword")
    assert copies(lambda: changed_one_by_one(catalog, lambda: None)) == 1
    assert search.find("does t50")[0].tool.id == "shop/t50"


def test_a_roster_that_was_taken_never_changes() -> None:
    catalog = Catalog([definition("first")])
    taken = [catalog.roster]
    count = copies(lambda: changed_one_by_one(catalog, lambda: taken.append(catalog.roster)))
    assert count == catalog.version - 1, "each change, and nothing else"
    for roster in taken:
        ids = [t.id for t in roster]
        assert len(ids) == len(roster)
        assert [t.id for name in ids for t in roster.exact(name)] == ids
    assert [roster.version for roster in taken] == [*range(1, catalog.version + 1)]
    assert [t.id for t in taken[0]] == ["shop/first"]
    assert not taken[0].named("t0")


@pytest.mark.parametrize("many", [1, 1_000])
def test_what_reads_while_tools_come_one_by_one_sees_whole_states(many: int) -> None:
    """Names, flags and tools of a roster belong together, however small the change and whoever looks."""
    catalog = Catalog()
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            roster = catalog.roster
            tools = [*roster]
            wrong.extend(t.id for t in tools if [s.id for s in roster.exact(t.id)] != [t.id])
            wrong.extend(t.id for t in tools if t.server == "mall" and not t.flags)
            wrong.extend([] if len(tools) == len(roster) else [roster.version])

    def pages() -> Iterator[list[dict[str, Any]]]:
        for n in range(0, 300, many):
            page = range(n, min(300, n + many))
            yield [each for i in page for each in (definition(f"t_{i}"), definition(f"T_{i}", "mall"))]

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for page in pages():
        catalog.extend(page)
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_the_same_tool_with_another_function_stays_a_look_alike() -> None:
    """D3: the flag belongs to the state of the catalog, not to the definition."""
    catalog = Catalog([definition("send-money"), definition("send_money", "mall")])
    before = catalog["mall/send_money"]
    assert before.flags
    catalog.replace({**definition("send_money", "mall"), "run": lambda: "sent"})
    assert catalog["mall/send_money"].run is not None
    assert catalog["mall/send_money"].flags == before.flags
