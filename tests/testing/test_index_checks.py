"""The conformance kit: it passes what keeps the promises of `ToolIndex`, and names the one that is broken."""

import math
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

import pytest

from toolsearch import Catalog, QueryError, SetupError, Tool
from toolsearch.protocols import Scored, ToolIndex
from toolsearch.search.index import find, open_index
from toolsearch.testing import FixedIndex, check_index
from toolsearch_indexes.keyword import KeywordIndex


class Counting:
    """A small honest index: how many words of the query are in a tool's name and description."""

    name = "counting"

    def __init__(self) -> None:
        self.texts: dict[str, set[str]] = {}

    def add(self, tools: Sequence[Tool]) -> None:
        for tool in tools:
            self.texts[tool.id] = {*f"{tool.name} {tool.description}".lower().replace("_", " ").split()}

    def remove(self, ids: Sequence[str]) -> None:
        for tool_id in ids:
            self.texts.pop(tool_id, None)

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        words = set(query.lower().split())
        scores = {i: float(len(words & text)) for i, text in dict(self.texts).items() if among is None or i in among}
        best = sorted((i for i, score in scores.items() if score), key=lambda i: (-scores[i], i))
        return [Scored(i, scores[i]) for i in best[:limit]]


class Padding(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        found = super().search(query, limit, among)
        rest = [i for i in sorted(self.texts) if i not in {s.id for s in found} and (among is None or i in among)]
        return (found + [Scored(i, 0.001) for i in rest])[:limit]


class Unlimited(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return super().search(query, limit + 5, among)


class Indiscreet(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return super().search(query, limit)


class FilteringTooLate(Counting):
    """Asks an engine for the best `limit` and drops those not allowed."""

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return [s for s in super().search(query, limit) if among is None or s.id in among]


class Overconfident(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return [Scored(s.id, s.score, confidence=100.0) for s in super().search(query, limit, among)]


class AllowingAllWhenNone(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return super().search(query, limit, among or None)


class Ascending(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return super().search(query, limit, among)[::-1]


class Infinite(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return [Scored(s.id, math.inf) for s in super().search(query, limit, among)]


class Negative(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return [Scored(s.id, s.score - 99) for s in super().search(query, limit, among)]


class Repeating(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return [s for found in super().search(query, limit, among) for s in (found, found)][:limit]


class Deaf(Counting):
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return []


class Splitting(Counting):
    """Reads a query as syntax, as engines with a query language do."""

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        if query.count("(") != query.count(")"):
            raise ValueError("unbalanced parentheses")
        return super().search(query, limit, among)


class Unforgetting(Counting):
    def remove(self, ids: Sequence[str]) -> None:
        pass


class Strict(Counting):
    def remove(self, ids: Sequence[str]) -> None:
        for tool_id in ids:
            del self.texts[tool_id]


class Stale(Counting):
    def add(self, tools: Sequence[Tool]) -> None:
        super().add([t for t in tools if t.id not in self.texts])

    def remove(self, ids: Sequence[str]) -> None:
        for tool_id in ids:
            if tool_id in self.texts:
                self.texts[tool_id] = set()


class Doubling(Counting):
    """Adds a document for every `add`, as append-only indexes do; SA-35."""

    def __init__(self) -> None:
        super().__init__()
        self.added: list[str] = []

    def add(self, tools: Sequence[Tool]) -> None:
        super().add(tools)
        self.added += [tool.id for tool in tools]

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return [s for found in super().search(query, limit, among) for s in [found] * self.added.count(found.id)][
            :limit
        ]


class FirstComeFirst(Counting):
    """Ranks by order of registration, as engines that break ties by document number do."""

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        found = {s.id for s in super().search(query, 100, among)}
        order = [i for i in self.texts if i in found]
        return [Scored(i, 1.0 / (1 + place)) for place, i in enumerate(order)][:limit]


class Racing(Counting):
    """Walks over what another thread changes."""

    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        for _ in range(50):
            for _ in self.texts:
                sum(range(20))
        return super().search(query, limit, among)


class Rebuilding(Counting):
    """Empties itself before it takes what is new."""

    def add(self, tools: Sequence[Tool]) -> None:
        held, self.texts = self.texts, {}
        for tool_id, text in held.items():
            time.sleep(0)
            self.texts[tool_id] = text
        super().add(tools)


class Shared(Counting):
    """Keeps its documents in the class: a new index is not empty."""

    kept: dict[str, set[str]] = {}  # noqa: RUF012 - that is what is wrong with it

    def __init__(self) -> None:
        self.texts = self.kept


class Merging(Counting):
    """Adds the words of a changed tool to the old ones."""

    def add(self, tools: Sequence[Tool]) -> None:
        before = dict(self.texts)
        super().add(tools)
        for tool in tools:
            self.texts[tool.id] |= before.get(tool.id, set())


class Anonymous(Counting):
    name = None  # type: ignore[assignment]


class Careless(Counting):
    def remove(self, ids: Sequence[str]) -> None:
        raise KeyError("output")


class Nameless:
    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return []


@pytest.mark.parametrize(
    "make", [Counting, KeywordIndex, lambda: KeywordIndex(arrays_from=0), lambda: open_index("regex")]
)
def test_an_index_that_keeps_the_promises_passes(make: Callable[[], ToolIndex]) -> None:
    """SA-1."""
    check_index(make)


def test_an_index_may_refuse_a_query_by_a_query_error() -> None:
    class Refusing(Counting):
        def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
            if "(" in query:
                raise QueryError("no parentheses, please")
            return super().search(query, limit, among)

    check_index(Refusing)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Padding, "never pad"),
        (Unlimited, "results for a limit"),
        (Indiscreet, "`among` is not obeyed"),
        (FilteringTooLate, "`among` is not obeyed before ranking"),
        (Overconfident, "no probability"),
        (AllowingAllWhenNone, "an empty `among`"),
        (Ascending, "do not descend"),
        (Infinite, "not positive and finite"),
        (Negative, "not positive and finite"),
        (Repeating, "comes twice"),
        (Deaf, "do not find the tool"),
        (Splitting, "raises ValueError"),
        (Unforgetting, "a removed tool is found"),
        (Strict, "raises KeyError"),
        (Stale, "not found anew"),
        (Doubling, "come twice"),
        (FirstComeFirst, "the order of adding"),
        (Racing, "while tools are added and removed, it raises"),
        (Rebuilding, "while tools are added and removed, it loses a tool that stays"),
        (Shared, "an empty index finds something"),
        (Nameless, "lacks a member"),
        (Merging, "a tool that is added again keeps something of the old one"),
        (Anonymous, "its name is None, not a text"),
        (
            Careless,
            r"raises KeyError: 'output'. To see it: remove\(\) in line \d+ of .*test_index_checks.py, called by",
        ),
    ],
)
def test_a_broken_promise_is_named(broken: Callable[[], ToolIndex], promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_index(broken)


def test_a_fixed_index_says_what_is_written_down() -> None:
    catalog = Catalog([{"name": "a", "description": "x"}, {"name": "b", "description": "y"}])
    index = FixedIndex({"some words": ["b", "ghost", "a"]})
    index.add(list(catalog))
    assert isinstance(index, ToolIndex)
    assert [hit.tool.id for hit in find(catalog, index, "some words")] == ["b", "a"]
    assert [hit.tool.id for hit in find(catalog, index, "some words", among=frozenset(["a"]))] == ["a"]
    assert len(find(catalog, index, "other words")) == 0
    index.remove(["b"])
    assert [s.id for s in index.search("some words", 5)] == ["a"]


def test_what_makes_no_index_is_refused() -> None:
    with pytest.raises(SetupError, match="takes what makes an index, such as its class or a lambda, not 'keyword'"):
        check_index("keyword")  # type: ignore[arg-type]
