"""keyword, whoosh and tantivy give the same hits with the same scores, whatever is asked and however it is spelled."""

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolsearch_datasets
from toolsearch import Catalog, Tool
from toolsearch_indexes import spelling
from toolsearch_indexes.keyword import KeywordIndex
from toolsearch_indexes.tantivy import TantivyIndex
from toolsearch_indexes.whoosh import WhooshIndex

ENGINES = [KeywordIndex, WhooshIndex, TantivyIndex]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
COMMONS = toolsearch_datasets.path("commons")


def lines(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (COMMONS / file).read_text("utf-8").splitlines()]


@cache
def commons() -> tuple[list[Tool], list[Any]]:
    tools = list(Catalog(lines("tools.jsonl")))
    made: list[Any] = [engine() for engine in ENGINES]
    for index in made:
        index.add(tools)
    return tools, made


def misspelt(text: str, rng: random.Random) -> str:
    """One slip of the pen in one word."""
    words = text.split()
    place = rng.randrange(len(words))
    word = words[place]
    if len(word) > 3:
        at = rng.randrange(len(word) - 1)
        words[place] = rng.choice(
            [
                word[:at] + word[at + 1 :],
                word[:at] + rng.choice(LETTERS) + word[at:],
                word[:at] + rng.choice(LETTERS) + word[at + 1 :],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            ]
        )
    return " ".join(words)


def joined(text: str, rng: random.Random) -> str:
    words = text.split()
    at = rng.randrange(len(words))
    return " ".join([*words[:at], "".join(words[at : at + 2]), *words[at + 2 :]])


def split(text: str, rng: random.Random) -> str:
    words = text.split()
    at = rng.randrange(len(words))
    middle = len(words[at]) // 2
    return " ".join([*words[:at], words[at][:middle], words[at][middle:], *words[at + 1 :]])


def agree(made: Sequence[Any], query: str, limit: int, among: frozenset[str] | None = None) -> None:
    expected, *others = [index.search(query, limit, among) for index in made]
    for found in others:
        assert found == expected, query


@pytest.mark.parametrize("change", [str, misspelt, joined, split], ids=["as written", "misspelt", "joined", "split"])
def test_on_the_queries_of_commons(change: Any) -> None:
    """SA-26, SA-27: one reading of a query, one repair of its spelling, one score, to the last digit."""
    tools, made = commons()
    rng = random.Random(7)
    some = frozenset(rng.sample([tool.id for tool in tools], 40))
    for case in lines("cases.jsonl")[::9]:
        query = case["query"] if change is str else change(case["query"], rng)
        agree(made, query, 10)
        agree(made, query, 4, some)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from("weather wether weath whether mail mails email issue white board whiteboard calendar".split()),
        max_size=5,
    ),
    st.integers(0, 2**32),
)
def test_on_any_words_with_any_slips(words: list[str], seed: int) -> None:
    made: list[Any] = [engine() for engine in ENGINES]
    rng = random.Random(seed)
    vocabulary = "weather weath mail email white board calendar issues violin".split()
    tools = [
        Tool(id=f"t{n}", name=f"t{n}", description=" ".join(rng.choices(vocabulary, k=rng.randrange(1, 5))))
        for n in range(12)
    ]
    query = misspelt(" ".join(words), rng) if words else ""
    for index in made:
        index.add(tools)
    agree(made, query, 5)
    for index in made:
        index.remove([tool.id for tool in tools[:9]])
    agree(made, query, 5)
    for index in made:
        index.add([Tool(id="t1", name="t1", description="whether the wether weathers the weather")])
    agree(made, query, 5)


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_words_that_other_processes_write_are_guesses_and_those_they_remove_are_not(
    engine: Any, tmp_path: Path
) -> None:
    """I11: what a folder is opened with, and what is written into it meanwhile by somebody else."""
    tools = {tool.id: tool for tool in Catalog([{"name": "violin"}, {"name": "harbour"}, {"name": "weather"}])}
    ours, theirs = engine(tmp_path), engine(tmp_path)
    ours.add([tools["violin"]])

    def found(query: str) -> list[str]:
        assert ours.search(query, 5) == theirs.search(query, 5) == engine(tmp_path).search(query, 5)
        return [scored.id for scored in theirs.search(query, 5)]

    assert found("voilin") == ["violin"]
    assert found("harbuor") == []
    ours.add([tools["harbour"]])
    assert found("harbuor") == ["harbour"]
    theirs.add([tools["weather"]])
    assert found("weathr") == ["weather"]
    theirs.remove(["harbour"])
    assert found("harbuor") == []
    assert len(ours) == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_many_tools_at_once_after_a_first_repair_are_known_too(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "MORE", 20)
    index = engine()
    index.add(list(Catalog([{"name": "violin"}])))
    assert [scored.id for scored in index.search("voilin", 5)] == ["violin"]
    index.add([Tool(id=f"t{n}", name=f"v{LETTERS[n // 26 % 26]}{LETTERS[n % 26]}mno") for n in range(26**2)])
    assert [scored.id for scored in index.search("voilin", 5)] == ["violin"]
    assert [scored.id for scored in index.search("vbbmnno", 5)] == ["t27"]
    index.add([Tool(id=f"s{n}", name=f"w{LETTERS[n // 26 % 26]}{LETTERS[n % 26]}mno{n}") for n in range(1_100)])
    assert [scored.id for scored in index.search("voilin", 5)] == ["violin"]
    assert "s30" in [scored.id for scored in index.search("wbemnno", 1_200)]


@pytest.mark.parametrize("engine", ENGINES)
def test_equally_good_tools_are_in_order_of_id_however_many_there_are(engine: Any) -> None:
    """Where more are equally good than are read one by one."""
    index = engine()
    index.add([Tool(id=f"t{n:04}", name="play", description="Play the violin") for n in reversed(range(1_500))])
    assert [scored.id for scored in index.search("violin", 5)] == [f"t{n:04}" for n in range(5)]
