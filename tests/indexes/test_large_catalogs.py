"""Search by meaning in a large catalog: by faiss if it is installed, in the background, and right meanwhile."""

import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from toolsearch import Tool
from toolsearch_indexes import faiss_matrix as module
from toolsearch_indexes import tool_vectors
from toolsearch_indexes.default import open_default
from toolsearch_indexes.faiss_matrix import FEW, FaissMatrix, codes_for
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.vector import VectorIndex
from toolsearch_indexes.vectors import VectorMatrix

faiss = pytest.importorskip("faiss")

WIDTH = 32
ROWS = 20_000
SECONDS = 60


def vectors(count: int, seed: int = 1) -> NDArray[np.float32]:
    """Rows of length 1 around a few hundred subjects, as the vectors of tools are."""
    rng = np.random.default_rng(seed)
    subjects = np.random.default_rng(7).standard_normal((300, WIDTH))
    rows = subjects[rng.integers(0, 300, count)] + 0.7 * rng.standard_normal((count, WIDTH))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


ALL = vectors(ROWS)
QUERIES = vectors(40, seed=2)


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


def names(places: Iterable[int]) -> list[str]:
    return [f"t{at}" for at in places]


def filled(rows: NDArray[np.float32] = ALL) -> FaissMatrix:
    matrix = FaissMatrix(WIDTH, 5_000)
    matrix.put(names(range(len(rows))), rows)
    matrix.refresh()
    until(lambda: matrix.is_approximate)
    return matrix


def nearest(matrix: VectorMatrix, query: NDArray[np.float32], limit: int, among: Any = None) -> list[str]:
    found, cosines = matrix.find_nearest(query[None], limit, among)
    return [found[at] for at in np.argsort(-cosines[0], kind="stable")[:limit]]


def missed(matrix: FaissMatrix, exact: VectorMatrix, among: frozenset[str] | None = None) -> float:
    """The share of the 30 nearest to each query that are not found."""
    pairs = [(nearest(exact, q, 30, among), nearest(matrix, q, 30, among)) for q in QUERIES]
    return sum(len(set(right) - set(found)) for right, found in pairs) / sum(len(right) for right, _ in pairs)


def exact(rows: NDArray[np.float32] = ALL) -> VectorMatrix:
    matrix = VectorMatrix(WIDTH)
    matrix.put(names(range(len(rows))), rows)
    return matrix


def test_next_to_nothing_is_missed_and_the_cosines_are_exact() -> None:
    matrix, right = filled(), exact()
    assert missed(matrix, right) < 0.005
    found, cosines = matrix.find_nearest(QUERIES[:3], 10, None, ["t19999"])
    assert "t19999" in found
    by_id = dict(zip(found, cosines.T.tolist(), strict=True))
    whole, others = right.find_nearest(QUERIES[:3], ROWS)
    assert all(by_id[i] == row for i, row in zip(whole, others.T.tolist(), strict=True) if i in by_id)


def test_the_answer_is_exact_until_faiss_has_read_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, make = threading.Event(), module._encoded

    def slow(rows: Any) -> Any:
        assert may_go_on.wait(SECONDS)
        return make(rows)

    monkeypatch.setattr(module, "_encoded", slow)
    matrix = FaissMatrix(WIDTH, 5_000)
    matrix.put(names(range(ROWS)), ALL)
    matrix.refresh()
    assert not matrix.is_approximate
    assert missed(matrix, exact()) == 0
    later = vectors(200, seed=9)
    matrix.put([f"later{n}" for n in range(200)], later)
    matrix.drop(names(range(100)))
    may_go_on.set()
    until(lambda: matrix.is_approximate)
    assert [nearest(matrix, row, 1) for row in later[:20]] == [[f"later{n}"] for n in range(20)]
    assert not set(nearest(matrix, ALL[5], 200)) & set(names(range(100)))


@pytest.mark.parametrize("allowed", [3, FEW, FEW + 1, 12_000])
@pytest.mark.parametrize("far", [False, True])
def test_what_a_caller_may_see_is_searched_exactly_if_it_is_little_and_well_if_it_is_much(
    allowed: int, far: bool
) -> None:
    """`far`: of the tools the caller may see none is near any query, so that codes cannot tell them apart."""
    matrix, right = filled(), exact()
    order = np.argsort((ALL @ QUERIES.T).max(axis=1) if far else np.random.default_rng(3).random(ROWS))
    among = frozenset(names(order[:allowed].tolist()))
    share = missed(matrix, right, among)
    assert share == 0 if allowed <= FEW else share < (0.02 if far else 0.005)
    assert all(set(nearest(matrix, q, 30, among)) <= among for q in QUERIES[:5])


def test_removed_rows_never_come_back_and_replaced_ones_are_found_anew() -> None:
    matrix, right = filled(), exact()
    query = QUERIES[0]
    for most in (30, 600):  # the second time, all that have near codes are gone
        gone = nearest(right, query, most)
        matrix.drop(gone)
        right.drop(gone)
        assert nearest(matrix, query, 30) == nearest(right, query, 30)
    moved = nearest(right, QUERIES[1], 3)
    matrix.put(moved, np.repeat(query[None], 3, axis=0))
    assert set(nearest(matrix, query, 3)) == set(moved)
    assert not set(nearest(matrix, QUERIES[1], 30)) & set(moved)
    assert matrix.is_approximate


def test_half_of_the_rows_may_go_and_as_many_come() -> None:
    matrix = filled()
    matrix.drop(names(range(11_000)))
    matrix.refresh()
    left = exact()
    left.drop(names(range(11_000)))
    assert missed(matrix, left) < 0.005
    matrix.put(names(range(11_000)), ALL[:11_000])
    matrix.refresh()
    until(lambda: matrix.is_approximate and not _is_at_work())
    assert missed(matrix, exact()) < 0.005
    matrix.drop(names(range(16_000)))
    matrix.refresh()
    assert not matrix.is_approximate, "there are too few"


def test_searches_are_right_while_rows_come_and_go_and_codes_are_made() -> None:
    matrix = filled(ALL[:6_000])
    failures: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                found = nearest(matrix, ALL[17], 5)
                assert found[0] == "t17"
                assert len(found) == 5
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for start in range(6_000, ROWS, 2_000):
        matrix.put(names(range(start, start + 2_000)), ALL[start : start + 2_000])
        matrix.refresh()
        matrix.drop(names(range(start, start + 500)))
    matrix.refresh()
    until(lambda: matrix.is_approximate and not _is_at_work())
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize(
    ("width", "codes"), [(256, 128), (384, 192), (1536, 384), (3072, 384), (255, 255), (769, None)]
)
def test_rows_of_any_width_are_coded_within_what_faiss_can_add_up(width: int, codes: int | None) -> None:
    assert codes_for(width) == codes


def test_rows_of_a_width_that_cannot_be_coded_are_searched_exactly() -> None:
    matrix = FaissMatrix(769, 10)
    matrix.put(names(range(20)), np.eye(20, 769, dtype=np.float32))
    matrix.refresh()
    assert not _is_at_work()
    assert nearest(matrix, np.eye(20, 769, dtype=np.float32)[7], 1) == ["t7"]


class Counted:
    """An encoder that gives each text the vector whose number it ends with."""

    name, width = "counted", WIDTH

    def encode(self, texts: Any, *, query: bool = False) -> NDArray[np.float32]:
        return ALL[[int((re.findall(r"\d+", text) or [0])[-1]) for text in texts]]


def tools(count: int) -> list[Tool]:
    return [Tool(id=f"t{n}", name=f"act_{n}", description=f"{n}") for n in range(count)]


@pytest.mark.parametrize("kind", [VectorIndex, HybridIndex])
def test_an_index_uses_faiss_from_a_size_on_by_itself(kind: Any) -> None:
    index, right = kind(Counted(), approximate_from=500), kind(Counted(), approximate_from=None)
    for each in (index, right):
        each.add(tools(800))
    until(lambda: index.is_approximate)
    for query in ("what 17 does", "act 612", "act 3. And what 599 does."):
        assert [(hit.id, hit.score) for hit in index.search(query, 5)] == [
            (hit.id, hit.score) for hit in right.search(query, 5)
        ]
    index.remove([f"t{n}" for n in range(400)])
    assert not index.is_approximate
    assert not right.is_approximate


def test_tools_that_are_encoded_in_the_background_are_read_by_faiss_at_the_end() -> None:
    index = HybridIndex(Counted(), in_background=True, approximate_from=100)
    index.add(tools(300))
    assert index.wait(SECONDS)
    until(lambda: index.is_approximate)


def test_auto_uses_faiss_for_a_large_catalog() -> None:
    index = open_default()
    assert isinstance(index, HybridIndex)
    some = tools(8_000)
    index.add(some[:-1])
    assert not _is_at_work()
    index.add(some[-1:])
    until(lambda: index.is_approximate)
    assert index.search("act 4321", 1)[0].id == "t4321"


def test_without_faiss_the_search_is_exact_and_nothing_is_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = tool_vectors.find_spec
    monkeypatch.setattr(tool_vectors, "find_spec", lambda name: None if name == "faiss" else find(name))
    index = VectorIndex(Counted(), approximate_from=100)
    index.add(tools(300))
    assert not _is_at_work()
    assert index.search("what 17 does", 1)[0].id == "t17"
    assert caplog.text == ""


def test_a_faiss_that_does_not_work_is_logged_once_and_done_without(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(module, "_faiss", broken)
    index = VectorIndex(Counted(), approximate_from=100)
    for start in (0, 300, 600):
        index.add(tools(900)[start : start + 300])
        until(lambda: not _is_at_work())
    assert index.search("what 17 does", 1)[0].id == "t17"
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["faiss cannot be used, so search by meaning stays exact"]


def test_on_a_mac_faiss_is_not_used_beside_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """H11: two OpenMP runtimes in one process may abort it there."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "torch", sys)
    index = VectorIndex(Counted(), approximate_from=100)
    index.add(tools(300))
    assert not _is_at_work()
    assert not index.is_approximate


def _is_at_work() -> bool:
    return any(thread.name == "toolsearch-faiss" for thread in threading.enumerate())


PROGRAM = """
import os, sys, time
sys.path.insert(0, {tests!r})
from test_large_catalogs import *
from test_large_catalogs import _is_at_work
"""


def program(code: str) -> None:
    started = PROGRAM.format(tests=str(Path(__file__).parent)) + code
    done = subprocess.run([sys.executable, "-c", started], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_was_forked_searches_with_codes_and_makes_new_ones() -> None:
    program("""
def child(check):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if check() else 3)
    end = time.monotonic() + 30
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        assert time.monotonic() < end, "the child hangs"
        time.sleep(0.01)

matrix = filled(ALL[:8_000])
def goes_on():
    assert nearest(matrix, ALL[17], 1) == ["t17"]
    matrix.put(names(range(8_000, ROWS)), ALL[8_000:])
    matrix.refresh()
    until(lambda: matrix.is_approximate and not _is_at_work())
    return nearest(matrix, ALL[15_017], 1) == ["t15017"]
child(goes_on)

late = FaissMatrix(WIDTH, 5_000)
late.put(names(range(ROWS)), ALL)
late.refresh()
def begins_anew():
    assert nearest(late, ALL[17], 1) == ["t17"]
    late.refresh()
    until(lambda: late.is_approximate)
    return nearest(late, ALL[17], 1) == ["t17"]
child(begins_anew)
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_lock_that_a_thread_holds_does_not_hang_a_process_that_is_forked_meanwhile() -> None:
    program("""
held, done = threading.Event(), threading.Event()
matrix, index = exact(ALL[:50]), HybridIndex(Counted(), in_background=True)
index.add(tools(40))
assert index.wait(30)

def hold():
    with matrix._changing, index._meaning._changes, index._meaning.vectors._changes, index._meaning._idle._cond:
        held.set()
        done.wait(60)

threading.Thread(target=hold).start()
held.wait()
pid = os.fork()
if pid == 0:
    matrix.put(["late"], ALL[60:61])
    index.add(tools(50)[40:])
    index.wait(30)
    os._exit(0 if nearest(matrix, ALL[60], 1) == ["late"] and index.search("what 45 does", 1)[0].id == "t45" else 3)
end = time.monotonic() + 60
while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
    time.sleep(0.01)
done.set()
if ended == (0, 0):
    os.kill(pid, 9)
assert ended == (pid, 0), ended
""")


def test_a_program_that_ends_meanwhile_ends_quietly() -> None:
    program("""
matrix = FaissMatrix(WIDTH, 5_000)
matrix.put(names(range(ROWS)), ALL)
matrix.refresh()
""")
