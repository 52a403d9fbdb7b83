"""The kit that proves an index: `check_index(MyIndex)`."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from time import sleep

from toolsearch import Catalog, QueryError, find
from toolsearch.protocols import ToolIndex
from toolsearch.support.checks import offers, shown
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.promises import BrokenPromise, check_maker, guarded, require

__all__ = ["HOSTILE_QUERIES", "check_index"]

_TOOLS: list[JsonObject] = [
    {"name": "create_issue", "server": "tracker", "description": "Open a new issue in a project"},
    {"name": "close_issue", "server": "tracker", "description": "Close an issue"},
    {"name": "send_mail", "server": "post", "description": "Send an electronic mail with attachments"},
    {"name": "search_mail", "server": "post", "description": "Search the mailbox"},
    {"name": "getWeather", "description": "Weather forecast for a city"},
    {"name": "rotate_key", "server": "vault", "description": "Replace a secret by a new one", "roles": ["admin"]},
    {"name": "empty", "description": ""},
]

# What models and users type: syntax of every kind, other scripts, nothing, too much.
EVERYTHING = 100  # hits: the catalogs of these checks are smaller
HOSTILE_QUERIES = [
    "", " ", "?!", "*", ".*", "(", "[a", "\\", "mail NOT search", 'a:"b', "send/mail?", "issue^2", "a AND", "~", "-",
    "the of and", "(\\w+\\s?)+$", "'; drop table tools; --", "\u0000", "\ud800", "天气", "🙂", "é" * 50,
    "x" * 20_000, "mail " * 5_000, "{}", "%s%n", "<|endoftext|>", "a|b|", "(?<=a+)b", "\u202eissue", "C++",
]  # fmt: skip


def check_index(make: Callable[[], ToolIndex]) -> None:
    """Raises `BrokenPromise`, saying which promise of `ToolIndex` is broken and how to see it; returns if all hold.

    `make` gives a new empty index each time: a class will do. Checked through `find`, as it will be used, and directly.
    """
    check_maker("check_index", make, "an index")
    catalog = Catalog(_TOOLS)
    for check in (_obeys, _finds, _survives, _forgets, _replaces, _does_not_depend_on_order, _serves_many_threads):
        with guarded("an ordinary call"):
            check(make, catalog)


def _filled(make: Callable[[], ToolIndex], catalog: Catalog) -> ToolIndex:
    index = make()
    require(offers(index, ToolIndex), f"{shown(index)} lacks a member of ToolIndex", "name, add, remove, search")
    name: object = index.name
    require(isinstance(name, str) and name.strip(), f"its name is {shown(name)}, not a text", "index.name")
    index.add(list(catalog))
    return index


def _call(query: str, limit: int, among: object = None) -> str:
    """The call of a search, to be tried by hand on an index with the tools of this kit."""
    return f"index.search({shown(query)}, {limit}{'' if among is None else f', {among!r}'})"


def _finds(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    for tool in catalog:
        hits = find(catalog, index, tool.id)
        first = [hit.tool for hit in hits][:1] == [tool]
        require(first, f"the exact id {tool.id!r} does not come first", f"find(catalog, index, {tool.id!r})")
    query = "open a new issue"
    found = [hit.tool.id for hit in find(catalog, index, query)]
    promise = "words of a name and description do not find the tool"
    require("tracker/create_issue" in found, promise, f"find(catalog, index, {query!r}) gave {found}")


def _obeys(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    query = "issue mail weather"
    require(not make().search(query, 5), "an empty index finds something", f"make().{_call(query, 5)[6:]}")
    for query in ("issue mail weather", "open a new issue in a project, or weather, or mail"):
        for limit in (1, 2, 100):
            _require_well_formed(index, query, limit)
        for scored in index.search(query, 100):
            only = frozenset([scored.id])
            found = [s.id for s in index.search(query, 1, only)]
            promise = f"`among` is not obeyed before ranking: {scored.id!r} is lost"
            require(found == [scored.id], promise, f"{_call(query, 1, only)} gave {found}")
    query, allowed = "issue mail weather secret", frozenset(["post/send_mail"])
    found = [s.id for s in index.search(query, 5, allowed)]
    require({*found} <= allowed, "`among` is not obeyed", f"{_call(query, 5, allowed)} gave {found}")
    nobody = frozenset[str]()
    require(not index.search(query, 5, nobody), "an empty `among` lets a tool through", _call(query, 5, nobody))
    promise = "a query with no known word finds something: never pad to the limit"
    require(not index.search("zzqx vvkp", 5), promise, _call("zzqx vvkp", 5))


def _require_well_formed(index: ToolIndex, query: str, limit: int) -> None:
    found = index.search(query, limit)
    scores = [scored.score for scored in found]
    see = f"{_call(query, limit)} gave {shown(list(found))}"
    require(len(found) <= limit, f"{len(found)} results for a limit of {limit}", see)
    require(len({s.id for s in found}) == len(found), "a tool comes twice", see)
    require(all(math.isfinite(each) and each > 0 for each in scores), "a score is not positive and finite", see)
    require(scores == sorted(scores, reverse=True), "scores do not descend", see)
    sure = all(s.confidence is None or 0 <= s.confidence <= 1 for s in found)
    require(sure, "a confidence is no probability", see)


def _survives(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    for query in HOSTILE_QUERIES:
        try:
            find(catalog, index, query)
            index.search(query, 3)
        except QueryError:
            continue
        except Exception as error:
            promise = f"the query {query[:40]!r} raises {type(error).__name__}: {error}"
            raise BrokenPromise(promise, f"{_call(query, 3)}; only QueryError may be raised") from error


def _forgets(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    mail = catalog["post/send_mail"]

    def found(query: str) -> list[str]:
        return [scored.id for scored in index.search(query, 5)]

    query = "electronic mail attachments"
    index.add([mail])
    twice = len(found(query)) > len({*found(query)})
    require(not twice, "adding a tool again makes it come twice", f"index.add([tool]) again, then {_call(query, 5)}")
    index.remove([mail.id, "never_there"])
    require(
        mail.id not in found(query), "a removed tool is found", f"index.remove([{mail.id!r}]), then {_call(query, 5)}"
    )
    query = "violin music"
    index.add(list(Catalog([{"name": "send_mail", "server": "post", "description": "Play violin music"}])))
    see = f"index.add with another description for {mail.id!r}, then {_call(query, 5)}"
    require(mail.id in found(query), "a changed tool is not found anew", see)
    query = "violin music issue weather"
    index.remove([tool.id for tool in catalog])
    require(not found(query), "an emptied index finds something", f"index.remove(all ids), then {_call(query, 5)}")


def _replaces(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    """An index in which a tool was changed answers as one that never had another."""
    changed = Catalog([{"name": "send_mail", "server": "post", "description": "Play violin music"}])
    tools = list({tool.id: tool for tool in (*catalog, *changed)}.values())
    replaced, fresh = _filled(make, catalog), make()
    replaced.add(list(changed))
    fresh.add(tools)
    for query in ("electronic", "with attachments", "violin music", "send a mail"):
        one, other = ([hit.tool.id for hit in find(Catalog(tools), index, query)] for index in (replaced, fresh))
        see = f"index.add with another description for 'post/send_mail', then {_call(query, 5)}"
        see = f"{see} gave {one}; an index that was filled with the new one only gives {other}"
        require(one == other, "a tool that is added again keeps something of the old one", see)


def _does_not_depend_on_order(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    forward, backward = make(), make()
    forward.add(list(catalog))
    for tool in reversed(list(catalog)):
        backward.add([tool])
    for query in ("issue", "mail", "open weather issue mail secret"):
        one, other = ([hit.tool.id for hit in find(catalog, index, query)] for index in (forward, backward))
        promise = f"the order of adding changes {query!r}"
        require(one == other, promise, f"added forwards it finds {one}, added backwards, one by one, {other}")


def _serves_many_threads(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    extra = Catalog([{"name": f"mail_{n}", "description": "One more mail tool"} for n in range(60)])
    known = {tool.id for tool in (*catalog, *extra)}
    failures: list[str] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                found = [scored.id for scored in index.search("open a new issue, or mail", EVERYTHING)]
                if len(set(found)) < len(found):
                    failures.append("a tool comes twice")
                if not known.issuperset(found):
                    failures.append(f"it finds {min(set(found) - known)!r}, which was never added")
                if "tracker/create_issue" not in found:
                    failures.append("it loses a tool that stays")
        except BaseException as error:  # whatever it is, it is reported below
            failures.append(f"it raises {error!r}")

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns more often, so that a race is seen
    try:
        for tool in extra:
            index.add([tool])
            sleep(0)
        for tool in extra:
            index.remove([tool.id])
            sleep(0)
    finally:
        sys.setswitchinterval(interval)
        done.set()
        for thread in threads:
            thread.join()
    if failures:
        raise BrokenPromise(
            f"searched while tools are added and removed, {failures[0]}",
            "call index.search in one thread, index.add and index.remove in another; hold a lock in all three",
        )
