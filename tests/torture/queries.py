"""Fuzzed queries over every index, and indexes that must agree while the catalog changes under them.

What a model or a user types is data: no query raises, gives a tool twice, breaks the order of scores, or leaves the
category that was asked for; and the time stays bounded. After any changes, an index answers as one that is made anew.
"""

from __future__ import annotations

import json
import logging
import math
import random
from collections.abc import Callable
from importlib.metadata import entry_points
from time import perf_counter

import toolsearch_datasets
from tests.torture import Outcome
from toolsearch import Catalog, Tool, ToolSearch
from toolsearch.search.index import Hits

SHARES = {"keyword": 0.4, "regex": 0.25, "hybrid": 0.1, "whoosh": 0.1, "tantivy": 0.07, "vector": 0.05, "faiss": 0.03}
SLOW_SECONDS = 2.0  # a violation, even on a busy machine
MOVED = 0.02  # of the answers, at most, in which like tools stand behind others
LIMITS = (1, 3, 5, 20, 0, -1, 1_000)
SIGNS = "ab.*+?()[]{}|^$\\dws0123,-=<>!:P"
ODD = (
    "select:", "SELECT:", "select:,,", " ", "", "\n", "*", " OR ", "AND NOT", "~1", "^2", "field:x", "name:a*", '"',
    '""', "a" * 5_000, "a " * 3_000, "(a+)+$" + "a" * 50, "(?:a|aa)+b", "(a|b|ab)*c" * 5, "x" * 2_000 + "?", ".{1000}",
)  # fmt: skip
CHANGES = 120  # of a catalog, between two comparisons of indexes


def queries(count: int, seed: int = 1) -> Outcome:
    """`count` queries over all installed indexes, then indexes under a changing catalog against fresh ones."""
    rng = random.Random(seed)
    outcome = Outcome()
    definitions = _definitions()
    logging.getLogger("toolsearch").setLevel(logging.CRITICAL)
    try:
        for index in _indexes():
            _fuzz(ToolSearch(definitions, index), index, max(1, int(count * SHARES[index])), rng, outcome)
        for index in _indexes():
            _agreement(index, definitions, max(20, count // 200), rng, outcome)
    finally:
        logging.getLogger("toolsearch").setLevel(logging.NOTSET)
    return outcome


def _definitions() -> list[dict[str, object]]:
    text = (toolsearch_datasets.path("commons") / "tools.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _indexes() -> list[str]:
    return sorted(point.name for point in entry_points(group="toolsearch.indexes") if point.name in SHARES)


def _fuzz(search: ToolSearch, index: str, count: int, rng: random.Random, outcome: Outcome) -> None:
    ask = _asker(search, rng)
    categories = [None, None, None, *search.catalog.categories[:3], "nope"]
    search.find("warm up")
    seconds: list[float] = []
    moved = 0
    for number in range(count):
        query, limit, category = ask(), rng.choice(LIMITS), rng.choice(categories)
        began = perf_counter()
        try:
            hits = search.find(query, limit, category=category)
        except Exception as error:
            outcome.violations.append(f"{index}: {query[:80]!r} raised {type(error).__name__}: {error}")
            continue
        seconds.append(perf_counter() - began)
        ids = [hit.tool.id for hit in hits]
        moved += [hit.score for hit in hits] != sorted((hit.score for hit in hits), reverse=True)
        broken = _broken(query, limit, category, hits) or (
            "not the same twice"
            if number % 20 == 0 and [hit.tool.id for hit in search.find(query, limit, category=category)] != ids
            else ""
        )
        if seconds[-1] > SLOW_SECONDS:
            broken = f"{seconds[-1]:.1f} seconds"
        if broken:
            outcome.violations.append(f"{index}: {query[:80]!r} with limit {limit}, category {category!r}: {broken}")
    if moved > MOVED * count + 1:  # only tools like others leave the order of scores
        outcome.violations.append(f"{index}: {moved} of {count} answers are not in the order of their scores")
    seconds.sort()
    outcome.figures |= {
        f"{index}: queries": count,
        f"{index}: like tools moved": moved,
        f"{index}: worst ms": round(1_000 * seconds[-1], 1) if seconds else 0,
        f"{index}: median ms": round(1_000 * seconds[len(seconds) // 2], 2) if seconds else 0,
    }


def _broken(query: str, limit: int, category: str | None, hits: Hits) -> str:
    """What an answer breaks, as words; empty if nothing."""
    ids = [hit.tool.id for hit in hits]
    named = [hit for hit in hits if hit.exact]
    scores = [hit.score for hit in hits]
    if len(set(ids)) < len(ids):
        return "a tool twice"
    if any(math.isnan(score) for score in scores) or any(math.isinf(hit.score) and not hit.exact for hit in hits):
        return f"scores that are not finite: {scores[:5]}"
    if [hit.exact for hit in hits] != [True] * len(named) + [False] * (len(hits) - len(named)):
        return "a named tool behind another"
    if len(hits) > max(len(named), limit, 1):
        return f"{len(hits)} hits"
    if category is not None and any((hit.tool.category or "").casefold() != category.casefold() for hit in hits):
        return "a tool of another category"
    return "a problem beside hits" if hits.problem and hits else ""


def _asker(search: ToolSearch, rng: random.Random) -> Callable[[], str]:
    """A function that makes up queries: words, noise, patterns, syntax of engines, misspelt words, names."""
    words = sorted({word for tool in search.catalog for word in f"{tool.name} {tool.description}".split()})
    ids = [tool.id for tool in search.catalog]

    def noise() -> str:
        ranges = ((32, 127), (128, 0x3000), (0xD800, 0xE000), (0x1F300, 0x1F700), (0x200B, 0x200C), (0, 1))
        return "".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randrange(1, 80)))

    def misspelt() -> str:
        letters = list(rng.choice(words))
        for _ in range(2):
            letters.insert(rng.randrange(len(letters) + 1), rng.choice("aeiou_-"))
        return "".join(letters)

    ways: tuple[Callable[[], str], ...] = (
        lambda: " ".join(rng.choices(words, k=rng.randrange(1, 12))),
        lambda: " ".join(rng.choices(words, k=rng.randrange(1, 12))),
        noise,
        lambda: "".join(rng.choices(SIGNS, k=rng.randrange(1, 60))),
        lambda: rng.choice((*ODD, "select:" + ",".join(rng.sample(ids, 3)), " ".join(words[:500]))),
        misspelt,
        lambda: rng.choice(ids).swapcase(),
        lambda: rng.choice(words)[: rng.randrange(1, 9)],
    )

    def ask() -> str:
        return rng.choice(ways)()

    return ask


def _agreement(
    index: str, definitions: list[dict[str, object]], count: int, rng: random.Random, outcome: Outcome
) -> None:
    """Changes a catalog of a few hundred tools at random, and compares with an index made anew of what is left."""
    catalog = Catalog(rng.sample(definitions, 150))
    search = ToolSearch(catalog, index)
    for _ in range(CHANGES):
        _change(catalog, definitions, rng)
    fresh = ToolSearch(Catalog(list(catalog)), index)
    ask = _asker(search, rng)
    differ = 0
    for _ in range(count):
        query = ask()
        mine, theirs = ([(hit.tool.id, round(hit.score, 4)) for hit in each.find(query)] for each in (search, fresh))
        if mine != theirs:
            differ += 1
            outcome.violations.append(f"{index}: {query[:80]!r} after changes gives {mine}, made anew {theirs}")
    outcome.figures |= {f"{index}: compared after changes": count, f"{index}: differ": differ}


def _change(catalog: Catalog, definitions: list[dict[str, object]], rng: random.Random) -> None:
    present: list[Tool] = list(catalog)
    ids = {tool.id for tool in present}
    absent = [each for each in definitions if f"{each.get('server')}/{each['name']}" not in ids]
    way = rng.randrange(4)
    if way == 0 and absent:
        catalog.add(rng.choice(absent))
    elif way == 1 and len(present) > 50:
        catalog.remove(rng.choice(present).id)
    elif way == 2 and absent:
        catalog.extend(rng.sample(absent, min(5, len(absent))))
    else:
        known = {f"{each.get('server')}/{each['name']}": each for each in definitions}
        tool = rng.choice(present)
        if definition := known.get(tool.id):
            more = rng.choice(definitions).get("description", "")
            catalog.replace({**definition, "description": f"{definition.get('description', '')} {more}"})
