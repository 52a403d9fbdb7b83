"""The index `faiss`: what a large catalog needs of it, what faiss alone gets wrong, and its folder."""

import hashlib
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from toolsearch import Catalog, SetupError, Tool
from toolsearch.protocols import Scored
from toolsearch.testing import check_index
from toolsearch_indexes import faiss_matrix as module
from toolsearch_indexes.faiss import FaissIndex
from toolsearch_indexes.vector import VectorIndex

FROM = 100  # tools: as a large catalog has thousands
SECONDS = 60
exact_or_not = pytest.mark.parametrize("approximate_from", [None, FROM], ids=["exact", "approximate"])


class Grams:
    """A small deterministic encoder: hashed three-letter pieces with a sign."""

    def __init__(self, width: int = 64, name: str = "grams") -> None:
        self.name, self.width = name, width

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(rows, texts, strict=True):
            spaced = f" {text.lower()} "
            for at in range(len(spaced) - 2):
                number = int.from_bytes(hashlib.blake2b(spaced[at : at + 3].encode(), digest_size=4).digest(), "big")
                row[number % self.width] += 1 if number >> 20 & 1 else -1
        return rows


SUBJECTS = "mail issue invoice calendar secret weather pipeline cluster photo ticket violin harbour".split()
VERBS = "send open list delete rotate forecast run scale upload assign tune moor".split()


def many(number: int, prefix: str = "t") -> list[Tool]:
    return [
        Tool(
            id=f"{prefix}{n}",
            name=f"{VERBS[n // 12 % 12]}_{SUBJECTS[n % 12]}_{n}",
            description=f"{VERBS[n // 12 % 12]} the {SUBJECTS[n % 12]}, number {n * 7919 % 1009}",
        )
        for n in range(number)
    ]


def filled(tools: list[Tool], approximate_from: int | None = FROM) -> FaissIndex:
    """An index of these tools, approximate where it shall be."""
    index = FaissIndex(Grams(), approximate_from=approximate_from)
    index.add(tools)
    if approximate_from is not None and len(tools) >= approximate_from:
        wait_for_codes(index)
    return index


def wait_for_codes(index: VectorIndex) -> None:
    end = time.monotonic() + SECONDS
    while not index.is_approximate:
        assert time.monotonic() < end, "faiss has read nothing"
        time.sleep(0.005)


def ids(found: list[Scored]) -> list[str]:
    return [scored.id for scored in found]


@exact_or_not
def test_it_keeps_the_promises_of_an_index(approximate_from: int | None) -> None:
    check_index(
        lambda: FaissIndex(Grams(), near_alone=0.6, approximate_from=approximate_from)
    )  # 64 numbers tell little apart


@exact_or_not
def test_a_removed_tool_shifts_nobody(approximate_from: int | None) -> None:
    """H06: add t0 … t3, remove t0, search what t1 is about."""
    subjects = ["violin", "harbour", "weather", "invoice"]
    index = filled(
        [Tool(id=f"t{n}", name=s, description=f"About {s}") for n, s in enumerate(subjects)], approximate_from
    )
    index.remove(["t0"])
    for n in (1, 2, 3):
        assert ids(index.search(f"about {subjects[n]}", 1)) == [f"t{n}"]
    assert "t0" not in ids(index.search("about violin", 4))


@exact_or_not
def test_removed_tools_never_come_back_and_the_answer_is_still_full(approximate_from: int | None) -> None:
    """H07: a graph cannot remove, and its best hits may all be gone."""
    index = filled(many(600), approximate_from)
    gone = ids(index.search("send the mail", 60))
    assert len(gone) == 60
    index.remove(gone)
    found = ids(index.search("send the mail", 20))
    assert len(found) == 20
    assert not set(found) & set(gone)
    index.remove([f"t{n}" for n in range(590)])
    assert set(ids(index.search("send the mail", 20))) <= {f"t{n}" for n in range(590, 600)}
    index.remove([f"t{n}" for n in range(600)])
    assert index.search("send the mail", 20) == []
    index.add(many(600))
    assert ids(index.search("send the mail", 60)) == gone


def test_tools_that_come_later_are_found_at_once_and_replaced_ones_anew() -> None:
    index = filled(many(600))
    new = Tool(id="new", name="moor_ship", description="Moor a ship at the quay")
    index.add([new])
    assert ids(index.search("moor a ship at the quay", 1)) == ["new"]
    index.add([Tool(id="new", name="play_violin", description="Play the violin softly")])
    assert ids(index.search("play the violin softly", 1)) == ["new"]
    assert index.search("moor a ship at the quay", 1)[0].id != "new"
    assert len(index) == 601
    index.add(many(500, "later"))
    assert {"t23", "later23"} <= set(ids(index.search("open the harbour, number 519", 30)))


@pytest.mark.parametrize("allowed", [3, 40, 700])
def test_the_best_of_those_a_caller_may_see_fill_the_answer(allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 30)  # so that faiss itself is asked with a small catalog
    tools = many(900)
    index, exact = filled(tools), VectorIndex(Grams())
    exact.add(tools)
    last = frozenset(ids(exact.search("rotate the secret", 900))[-allowed:])
    found, expected = index.search("rotate the secret", 3, last), exact.search("rotate the secret", 3, last)
    assert len(found) == len(expected) == 3
    assert set(ids(found)) <= last
    index.remove(ids(found))
    left = len(last) - 3
    assert len(index.search("rotate the secret", 3, last)) == min(3, left)
    assert index.search("rotate the secret", 3, frozenset()) == []
    assert index.search("rotate the secret", 3, frozenset(["elsewhere"])) == []


def test_approximate_answers_are_nearly_those_of_exact_search() -> None:
    tools = many(3_000)
    index, exact = filled(tools), VectorIndex(Grams())
    exact.add(tools)
    queries = [f"{verb} the {subject}" for verb in VERBS[:6] for subject in SUBJECTS[:6]]
    shared = [len(set(ids(index.search(q, 10))) & set(ids(exact.search(q, 10)))) for q in queries]
    assert sum(shared) / (10 * len(queries)) > 0.9
    assert index.search(queries[0], 1)[0] == exact.search(queries[0], 1)[0], "the cosine is that of the vectors"


def test_faiss_is_used_from_a_size_on_and_no_longer_below_it() -> None:
    index = FaissIndex(Grams(), approximate_from=150)
    index.add(many(149))
    assert not any(thread.name == "toolsearch-faiss" for thread in threading.enumerate())
    index.add(many(400)[149:])
    wait_for_codes(index)
    index.remove([f"t{n}" for n in range(300)])
    assert not index.is_approximate
    assert len(ids(index.search("send the mail", 100))) > 0


@exact_or_not
def test_ids_and_vectors_stay_in_step_while_threads_search(approximate_from: int | None) -> None:
    """H09: 8 threads search, 1 adds and removes 500 tools."""
    index = filled(many(400), approximate_from)
    failures: list[BaseException] = []
    done = threading.Event()
    known = {f"t{n}" for n in range(400)} | {f"x{n}" for n in range(500)}

    def search() -> None:
        try:
            while not done.is_set():
                found = index.search("send the mail", 10)
                assert len(found) == 10
                assert set(ids(found)) <= known
                assert ids(index.search("tune the violin, number 231", 1, frozenset(["t130", "x1"])))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    extra = many(500, "x")
    for start in range(0, 500, 25):
        index.add(extra[start : start + 25])
    for start in range(0, 500, 25):
        index.remove([tool.id for tool in extra[start : start + 25]])
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(index) == 400


@exact_or_not
def test_a_saved_index_gives_the_same_answers_and_encodes_nothing_again(
    approximate_from: int | None, tmp_path: Path
) -> None:
    """I11's twin for vectors."""
    index = filled(many(500), approximate_from)
    index.remove(["t7", "t12"])
    queries = ["send the mail", "tune the violin", "unheardof words", "zzqx"]
    index.save(tmp_path)

    class Told(Grams):
        def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
            assert query, f"encoded again: {texts}"
            return super().encode(texts, query=query)

    again = FaissIndex.load(tmp_path, Told(), approximate_from=approximate_from)
    assert len(again) == 498
    again.add([tool for tool in many(500) if tool.id not in ("t7", "t12")])
    assert [again.search(q, 10) for q in queries] == [index.search(q, 10) for q in queries]
    assert again.search("send the mail", 1) == index.search("send the mail", 1)
    again.save(tmp_path)
    third = FaissIndex.load(tmp_path, Grams(), approximate_from=approximate_from)
    assert [third.search(q, 10) for q in queries] == [again.search(q, 10) for q in queries]


@pytest.mark.parametrize(("encoder", "told"), [(Grams(128), "128"), (Grams(64, "other"), "'other'")])
def test_vectors_of_another_encoder_are_refused_when_they_are_loaded(encoder: Grams, told: str, tmp_path: Path) -> None:
    """H01: both numbers, both models, and what to do; not at the first query."""
    filled(many(5)).save(tmp_path)
    with pytest.raises(SetupError, match=rf"64 numbers by 'grams', but the encoder is .*{told}.* index the tools anew"):
        FaissIndex.load(tmp_path, encoder)


def test_an_encoder_that_changes_its_width_is_refused() -> None:
    """H01."""
    encoder = Grams()
    index = FaissIndex(encoder)
    index.add(many(50))
    encoder.width = 128
    with pytest.raises(SetupError, match=r"64 numbers .* gives 128"):
        index.search("send the mail", 5)
    with pytest.raises(SetupError, match=r"64 numbers .* gives 128"):
        index.add(many(3, "more"))


def test_a_damaged_folder_is_logged_and_gives_an_empty_index(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """I05's twin for vectors."""
    filled(many(200)).save(tmp_path)
    (tmp_path / "rows.npy").write_bytes((tmp_path / "rows.npy").read_bytes()[:100])
    with caplog.at_level(logging.WARNING, "toolsearch"):
        index = FaissIndex.load(tmp_path, Grams())
    assert "'rows.npy' is damaged" in caplog.text
    assert len(index) == 0
    index.add(many(200))
    index.save(tmp_path)
    assert len(FaissIndex.load(tmp_path, Grams())) == 200


def test_an_empty_index_can_be_saved(tmp_path: Path) -> None:
    FaissIndex(Grams()).save(tmp_path)
    index = FaissIndex.load(tmp_path, Grams())
    assert index.search("mail", 5) == []
    index.add(many(3))
    assert len(index.search("send the mail", 5)) == 3


@pytest.mark.parametrize("number", [0, -5, 1.5, "many"])
def test_a_size_that_is_none_is_refused(number: Any) -> None:
    with pytest.raises(SetupError, match="approximate_from must be a whole number of at least 1, or None for exact"):
        FaissIndex(Grams(), approximate_from=number)


def python(code: str) -> Any:
    told = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


def test_neither_faiss_nor_torch_is_imported_before_it_is_used() -> None:
    """H11: two OpenMP runtimes in one process may abort it."""
    code = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import toolsearch, toolsearch_indexes.vector, toolsearch_indexes.faiss
from toolsearch import Catalog
from test_faiss import FaissIndex, Grams, filled, many
index = FaissIndex(Grams())
index.add(many(100))
index.search("send the mail", 5)
before = [name for name in ("faiss", "torch") if name in sys.modules]
filled(many(100))
print(json.dumps([before, [name for name in ("faiss", "torch") if name in sys.modules]]))
"""
    assert python(code) == [[], ["faiss"]]


def test_without_the_package_the_message_holds_the_install_line() -> None:
    code = """
import importlib.util, json, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "faiss" else find(name, *more)
from toolsearch import open_index
try:
    open_index("faiss")
except ImportError as error:
    print(json.dumps(str(error)))
"""
    assert (
        python(code) == "the index 'faiss' needs the package 'faiss-cpu'. Install it with: "
        "pip install 'toolsearch-kit[faiss]' (from a clone: pip install '.[faiss]')"
    )


def test_a_catalog_keeps_it_current() -> None:
    from toolsearch import ToolSearch

    catalog = Catalog([{"name": "send_mail", "description": "Send a mail"}])
    search = ToolSearch(catalog, index=FaissIndex(Grams()))
    catalog.add({"name": "play_violin", "description": "Play the violin"})
    assert search.find("playing violins")[0].tool.id == "play_violin"
    catalog.remove("play_violin")
    assert "play_violin" not in [hit.tool.id for hit in search.find("playing violins")]
