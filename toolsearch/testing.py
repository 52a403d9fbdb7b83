"""Public test doubles, and the kit that proves an index: `check_index(MyIndex)`."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from time import sleep
from typing import Any

from toolsearch.calls import ToolCall
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.tools import Tool
from toolsearch.errors import QueryError, SetupError
from toolsearch.events.facts import Reply, TextDelta, Usage
from toolsearch.events.requests import CallModel
from toolsearch.protocols import Scored, ToolIndex
from toolsearch.search.index import MOST_HITS, find
from toolsearch.support.checks import shown

__all__ = ["FixedIndex", "ScriptedModel", "check_index"]


class FixedIndex:
    """An index whose answers are written down: query -> tool ids, best first. For tests of what is around an index."""

    name = "fixed"

    def __init__(self, answers: Mapping[str, Sequence[str]]) -> None:
        self.answers = dict(answers)
        self.ids: set[str] = set()

    def add(self, tools: Sequence[Tool]) -> None:
        self.ids |= {tool.id for tool in tools}

    def remove(self, ids: Sequence[str]) -> None:
        self.ids -= set(ids)

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        """The written ids that are indexed and allowed, scored by place."""
        ids = [i for i in self.answers.get(query, ()) if i in self.ids and (among is None or i in among)]
        return [Scored(i, 1 / (place + 1)) for place, i in enumerate(ids[:limit])]


class ScriptedModel:
    """A model whose replies are written down, for tests of what is around a model.

    Each step of the script is a text (the answer), a list of calls (`("name", {arguments})`, or with an id
    `("id", "name", {…})`), a `Reply`, an exception to raise, or a function from the `CallModel` to one of these. After
    the last one the model says "Done.". With `pieces`, texts come in as deltas of so many characters. `requests` are
    the `CallModel`s it was asked with. `usage` is what each call costs.
    """

    name = "scripted"

    def __init__(self, *script: Any, pieces: int = 0, usage: Usage = Usage(100, 0, 10)) -> None:  # noqa: B008
        self._script = list(script)
        self._pieces = pieces
        self._usage = usage
        self._lock = threading.Lock()
        self.requests: list[CallModel] = []

    def __call__(self, request: CallModel) -> Any:
        with self._lock:
            step = self._script[len(self.requests)] if len(self.requests) < len(self._script) else "Done."
            number = len(self.requests)
            self.requests.append(request)
        step = step(request) if callable(step) and not isinstance(step, type) else step
        reply = self._reply(step, number)
        return self._streamed(reply) if self._pieces else reply

    def _reply(self, step: Any, number: int) -> Reply:
        if isinstance(step, type):
            step = step()
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Reply):
            return step
        if isinstance(step, str):
            return Reply(step, usage=self._usage, model=self.name, stop="stop")
        calls = []
        for place, call in enumerate(step):
            call_id, name, arguments = call if len(call) == 3 else (f"c{number}_{place}", *call)
            calls.append(ToolCall(call_id, name, arguments))
        return Reply(calls=tuple(calls), usage=self._usage, model=self.name, stop="tool_calls")

    def _streamed(self, reply: Reply) -> Iterator[TextDelta | Reply]:
        for start in range(0, len(reply.text), self._pieces):
            yield TextDelta(reply.text[start : start + self._pieces])
        yield reply


_TOOLS: list[dict[str, Any]] = [
    {"name": "create_issue", "server": "tracker", "description": "Open a new issue in a project"},
    {"name": "close_issue", "server": "tracker", "description": "Close an issue"},
    {"name": "send_mail", "server": "post", "description": "Send an electronic mail with attachments"},
    {"name": "search_mail", "server": "post", "description": "Search the mailbox"},
    {"name": "getWeather", "description": "Weather forecast for a city"},
    {"name": "rotate_key", "server": "vault", "description": "Replace a secret by a new one", "roles": ["admin"]},
    {"name": "empty", "description": ""},
]

# What models and users type: syntax of every kind, other scripts, nothing, too much.
HOSTILE_QUERIES = [
    "", " ", "?!", "*", ".*", "(", "[a", "\\", "mail NOT search", 'a:"b', "send/mail?", "issue^2", "a AND", "~", "-",
    "the of and", "(\\w+\\s?)+$", "'; drop table tools; --", "\u0000", "\ud800", "天气", "🙂", "é" * 50,
    "x" * 20_000, "mail " * 5_000, "{}", "%s%n", "<|endoftext|>", "a|b|", "(?<=a+)b", "\u202eissue", "C++",
]  # fmt: skip


def check_index(make: Callable[[], ToolIndex]) -> None:
    """Raises `AssertionError`, saying which promise of `ToolIndex` is broken; returns if all hold.

    `make` gives a new empty index each time: a class will do. Checked through `find`, as it will be used, and directly.
    """
    if not callable(make):
        raise SetupError(f"check_index takes what makes an index, such as its class or a lambda, not {shown(make)}")
    catalog = Catalog(_TOOLS)
    assert not catalog.quarantined, catalog.quarantined
    for check in (_obeys, _finds, _survives, _forgets, _does_not_depend_on_order, _serves_many_threads):
        try:
            check(make, catalog)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"an ordinary call raises {type(error).__name__}: {error}") from error


def _filled(make: Callable[[], ToolIndex], catalog: Catalog) -> ToolIndex:
    index = make()
    assert isinstance(index, ToolIndex), f"{index!r} lacks a member of the protocol"
    index.add(list(catalog))
    return index


def _finds(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    for tool in catalog:
        hits = find(catalog, index, tool.id)
        assert [h.tool for h in hits][:1] == [tool], f"the exact id {tool.id!r} does not come first"
    hits = find(catalog, index, "open a new issue")
    assert "tracker/create_issue" in [h.tool.id for h in hits], "words of a name and description do not find the tool"


def _obeys(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    assert not make().search("issue mail weather", 5), "an empty index finds something"
    for query in ("issue mail weather", "open a new issue in a project, or weather, or mail"):
        for limit in (1, 2, 100):
            found = index.search(query, limit)
            assert len(found) <= limit, f"{len(found)} results for a limit of {limit}"
            assert len({s.id for s in found}) == len(found), "a tool comes twice"
            assert all(math.isfinite(s.score) and s.score > 0 for s in found), "a score is not positive and finite"
            assert [s.score for s in found] == sorted((s.score for s in found), reverse=True), "scores do not descend"
            assert all(s.confidence is None or 0 <= s.confidence <= 1 for s in found), "a confidence is no probability"
        for scored in index.search(query, 100):
            only = index.search(query, 1, frozenset([scored.id]))
            assert [s.id for s in only] == [scored.id], f"`among` is not obeyed before ranking: {scored.id!r} is lost"
    allowed = frozenset(["post/send_mail"])
    assert {s.id for s in index.search("issue mail weather secret", 5, allowed)} <= allowed, "`among` is not obeyed"
    assert not index.search("issue mail weather secret", 5, frozenset()), "an empty `among` lets a tool through"
    assert not index.search("zzqx vvkp", 5), "a query with no known word finds something: never pad to the limit"


def _survives(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    for query in HOSTILE_QUERIES:
        try:
            find(catalog, index, query)
            index.search(query, 3)
        except QueryError:
            continue
        except Exception as error:
            raise AssertionError(f"the query {query[:40]!r} raises {type(error).__name__}: {error}") from error


def _forgets(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    index.add([catalog["post/send_mail"]])
    assert len(index.search("electronic mail attachments", 5)) == len(
        {s.id for s in index.search("electronic mail attachments", 5)}
    ), "adding a tool again makes it come twice"
    index.remove(["post/send_mail", "never_there"])
    assert "post/send_mail" not in [s.id for s in index.search("electronic mail attachments", 5)], (
        "a removed tool is found"
    )
    changed = Catalog([{"name": "send_mail", "server": "post", "description": "Play violin music"}])["post/send_mail"]
    index.add([changed])
    assert "post/send_mail" in [s.id for s in index.search("violin music", 5)], "a changed tool is not found anew"
    index.remove([t.id for t in catalog])
    assert not index.search("violin music issue weather", 5), "an emptied index finds something"


def _does_not_depend_on_order(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    forward, backward = make(), make()
    forward.add(list(catalog))
    for tool in reversed(list(catalog)):
        backward.add([tool])
    for query in ("issue", "mail", "open weather issue mail secret"):
        one, other = (find(catalog, index, query) for index in (forward, backward))
        assert [h.tool.id for h in one] == [h.tool.id for h in other], f"the order of adding changes {query!r}"


def _serves_many_threads(make: Callable[[], ToolIndex], catalog: Catalog) -> None:
    index = _filled(make, catalog)
    extra = Catalog([{"name": f"mail_{n}", "description": "One more mail tool"} for n in range(60)])
    known = {tool.id for tool in (*catalog, *extra)}
    failures: list[str] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                found = [scored.id for scored in index.search("open a new issue, or mail", MOST_HITS)]
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
    assert not failures, f"searched while tools are added and removed, {failures[0]}"
