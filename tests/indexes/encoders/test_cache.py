"""Vectors on disk: found again by what they depend on, shared, and never garbage, whatever happened to the file."""

import logging
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import encoded
from toolsearch_indexes.encoders.cache import FILE, CachedEncoder, default_folder
from toolsearch_indexes.encoders.callables import CallableEncoder

TEXTS = [f"text {n}" for n in range(40)]


def numbers(texts: list[str]) -> np.ndarray:
    return np.array([[len(text), sum(map(ord, text)) % 97, 1.0] for text in texts])


class Counted(CallableEncoder):
    """A function as an encoder that also notes what it was asked."""

    def __init__(self, name: str = "numbers v1") -> None:
        self.asked: list[str] = []
        super().__init__(lambda texts: self.asked.extend(texts) or numbers(texts), name, 3)


def kept(folder: Path) -> int:
    connection = sqlite3.connect(folder / FILE)
    try:
        return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
    finally:
        connection.close()


def test_what_was_encoded_once_is_not_encoded_again(tmp_path: Path) -> None:
    first, second = Counted(), Counted()
    before = CachedEncoder(first, tmp_path).encode(TEXTS)
    after = CachedEncoder(second, tmp_path).encode(TEXTS[::-1])
    assert first.asked == TEXTS
    assert second.asked == []
    assert (before == after[::-1]).all()


def test_vectors_are_those_of_the_encoder_of_length_one_and_float32(tmp_path: Path) -> None:
    cached = CachedEncoder(Counted(), tmp_path)
    for _ in range(2):
        rows = cached.encode(["b", "", "a", "b"])
        assert rows.dtype == np.float32
        assert (rows == encoded(Counted(), ["b", "", "a", "b"])).all()
    assert (cached.name, cached.width) == ("numbers v1", 3)
    assert cached.encode([]).shape == (0, 3)


def test_a_text_that_stands_twice_is_encoded_once(tmp_path: Path) -> None:
    counted = Counted()
    CachedEncoder(counted, tmp_path).encode(["a", "b", "a"])
    assert counted.asked == ["a", "b"]


def test_only_new_texts_are_encoded(tmp_path: Path) -> None:
    counted = Counted()
    cached = CachedEncoder(counted, tmp_path)
    cached.encode(["a", "b"])
    cached.encode(["b", "c", "a"])
    assert counted.asked == ["a", "b", "c"]


@pytest.mark.parametrize("other", ["name", "recipe", "text", "role"])
def test_a_vector_is_found_only_for_all_it_depends_on(other: str, tmp_path: Path) -> None:
    CachedEncoder(Counted(), tmp_path).encode(["a"])
    counted = Counted("numbers v2" if other == "name" else "numbers v1")
    cached = CachedEncoder(counted, tmp_path, recipe="2" if other == "recipe" else "1", queries=True)
    text = "b" if other == "text" else "a"
    cached.encode([text], query=other == "role")
    assert counted.asked == [text]


def test_another_width_under_the_same_name_is_encoded_anew(tmp_path: Path) -> None:
    CachedEncoder(Counted(), tmp_path).encode(["a"])
    wider = CallableEncoder(lambda texts: np.ones((len(texts), 5)), "numbers v1", 5)
    assert CachedEncoder(wider, tmp_path).encode(["a"]).shape == (1, 5)


def test_queries_are_kept_only_when_asked_for(tmp_path: Path) -> None:
    counted = Counted()
    for _ in range(2):
        CachedEncoder(counted, tmp_path).encode(["q"], query=True)
    assert counted.asked == ["q", "q"]
    assert not (tmp_path / FILE).exists()
    for _ in range(2):
        CachedEncoder(counted, tmp_path, queries=True).encode(["q"], query=True)
    assert counted.asked == ["q", "q", "q"]


def test_texts_are_not_stored(tmp_path: Path) -> None:
    CachedEncoder(Counted(), tmp_path).encode(["a secret project"])
    assert b"secret" not in (tmp_path / FILE).read_bytes()


def test_the_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    CachedEncoder(Counted(), tmp_path / "new" / "folder").encode(["a"])
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "new" / "folder").stat().st_mode) == 0o700


def test_vectors_that_are_wrong_are_never_kept(tmp_path: Path) -> None:
    answers = iter([np.full((1, 3), np.nan), numbers(["a"])])
    cached = CachedEncoder(CallableEncoder(lambda texts: next(answers), "x", 3), tmp_path)
    with pytest.raises(SetupError, match="not finite"):
        cached.encode(["a"])
    assert np.isfinite(cached.encode(["a"])).all()


def test_beyond_the_limit_the_oldest_leave(tmp_path: Path) -> None:
    cached = CachedEncoder(Counted(), tmp_path, batch=5, max_vectors=10)
    cached.encode(TEXTS)
    assert kept(tmp_path) == 10
    counted = Counted()
    CachedEncoder(counted, tmp_path, max_vectors=10).encode(TEXTS[-10:])
    assert counted.asked == []


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(exclude_categories=[]), max_size=8), max_size=12))
def test_any_text_comes_back_as_the_encoder_gives_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    """Lone surrogates too."""
    folder = tmp_path_factory.mktemp("cache")
    expected = encoded(Counted(), texts)
    for _ in range(2):
        assert (CachedEncoder(Counted(), folder).encode(texts) == expected).all()


# --- other threads, other processes, crashes


def test_threads_share_one_encoder(tmp_path: Path) -> None:
    cached = CachedEncoder(Counted(), tmp_path, batch=3)
    expected = encoded(Counted(), TEXTS)
    wrong: list[int] = []

    def use(start: int) -> None:
        for n in range(start, len(TEXTS), 4):
            some = TEXTS[: n + 1]
            if not (cached.encode(some) == expected[: n + 1]).all():
                wrong.append(n)

    threads = [threading.Thread(target=use, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert kept(tmp_path) == len(TEXTS)


# Encodes texts in batches of ten, a line of output after each.
PROGRAM = """
import sys, time, numpy as np
from pathlib import Path
from toolsearch_indexes.encoders.cache import CachedEncoder
from toolsearch_indexes.encoders.callables import CallableEncoder

def numbers(texts):
    print("batch", flush=True)
    time.sleep(float(sys.argv[2]))
    return np.array([[len(text), sum(map(ord, text)) % 97, 1.0] for text in texts])

first, last = int(sys.argv[3]), int(sys.argv[4])
texts = [f"text {n}" for n in range(first, last)]
CachedEncoder(CallableEncoder(numbers, "numbers v1", 3), sys.argv[1], batch=10).encode(texts)
"""


def process(folder: Path, seconds: float, first: int, last: int) -> subprocess.Popen[str]:
    arguments = [str(folder), str(seconds), str(first), str(last)]
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_that_start_together_on_an_empty_folder_lose_nothing(tmp_path: Path) -> None:
    started = [process(tmp_path / "cache", 0.001, n * 150, n * 150 + 200) for n in range(4)]
    for each in started:
        _, told = each.communicate(timeout=60)
        assert (each.returncode, told) == (0, "")
    counted = Counted()
    texts = [f"text {n}" for n in range(650)]
    assert (CachedEncoder(counted, tmp_path / "cache").encode(texts) == encoded(Counted(), texts)).all()
    assert counted.asked == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
@pytest.mark.parametrize("batches", [2, 3, 7])
def test_a_process_killed_in_the_middle_loses_its_running_batch_at_most(batches: int, tmp_path: Path) -> None:
    running = process(tmp_path, 0.02, 0, 1_000)
    assert running.stdout is not None
    for _ in range(batches + 1):  # when the line comes, the batches before it are stored
        assert running.stdout.readline() == "batch\n"
    running.send_signal(signal.SIGKILL)
    running.communicate()
    counted = Counted()
    texts = [f"text {n}" for n in range(1_000)]
    assert (CachedEncoder(counted, tmp_path).encode(texts) == encoded(Counted(), texts)).all()
    assert len(counted.asked) <= 1_000 - 10 * batches
    assert counted.asked == texts[-len(counted.asked) :]  # whole batches from the front were kept


# --- damage


def filled(folder: Path) -> Path:
    CachedEncoder(Counted(), folder).encode(TEXTS)
    return folder / FILE


def assert_it_heals(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Right vectors at once, one line that tells, the damaged file kept aside, and a cache that works again."""
    expected = encoded(Counted(), TEXTS)
    with caplog.at_level(logging.WARNING, "toolsearch"):
        assert (CachedEncoder(Counted(), folder).encode(TEXTS) == expected).all()
    (line,) = caplog.messages
    assert "is damaged" in line
    assert "set aside as vectors.sqlite3.damaged-" in line
    assert len(list(folder.glob(f"{FILE}.damaged-*"))) == 1
    counted = Counted()
    assert (CachedEncoder(counted, folder).encode(TEXTS) == expected).all()
    assert counted.asked == []


@pytest.mark.parametrize("junk", [b"not a database" * 100, b"\0" * 5_000, b"SQLite format 3\0" + b"\xff" * 4_080])
def test_a_file_that_is_no_database_is_set_aside_and_rebuilt(
    junk: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path).write_bytes(junk)
    assert_it_heals(tmp_path, caplog)


def test_a_file_cut_short_is_set_aside_and_rebuilt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = filled(tmp_path)
    file.write_bytes(file.read_bytes()[: 4_096 + 100])
    assert_it_heals(tmp_path, caplog)


def test_a_database_without_its_table_is_set_aside_and_rebuilt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connection = sqlite3.connect(filled(tmp_path))
    connection.execute("DROP TABLE vectors")
    connection.close()
    assert_it_heals(tmp_path, caplog)


def test_an_empty_file_is_filled(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    filled(tmp_path)
    assert kept(tmp_path) == len(TEXTS)


@pytest.mark.parametrize(
    "change", ["x'00' || substr(vector, 2)", "substr(vector, 2)", "'text'", "x'0000c07f' || substr(vector, 5)"]
)
def test_a_vector_that_changed_on_disk_is_encoded_again(change: str, tmp_path: Path) -> None:
    connection = sqlite3.connect(filled(tmp_path))
    connection.execute(f"UPDATE vectors SET vector = {change} WHERE id % 2")
    connection.commit()
    connection.close()
    counted = Counted()
    assert (CachedEncoder(counted, tmp_path).encode(TEXTS) == encoded(Counted(), TEXTS)).all()
    assert len(counted.asked) == len(TEXTS) / 2
    counted = Counted()
    CachedEncoder(counted, tmp_path).encode(TEXTS)
    assert counted.asked == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=1, max_size=40)), min_size=1, max_size=6))
def test_whatever_bytes_change_no_garbage_is_served(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, bytes]]
) -> None:
    """D13: one handler says what is damage, for this file and for that of a store."""
    folder = tmp_path_factory.mktemp("cache")
    file = filled(folder)
    content = bytearray(file.read_bytes())
    for place, new in changes:
        content[place % len(content) : place % len(content) + len(new)] = new
    file.write_bytes(content)
    expected = encoded(Counted(), TEXTS)
    try:
        assert (CachedEncoder(Counted(), folder).encode(TEXTS) == expected).all()
    except SetupError:  # the version number was hit
        assert int.from_bytes(content[60:64], "big") > 1


def test_a_file_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = filled(tmp_path)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version=2")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(
        SetupError, match=r"has format 2, written by a newer toolsearch; this one reads 1. Pass another"
    ):
        CachedEncoder(Counted(), tmp_path).encode(TEXTS)
    assert file.read_bytes() == before


def test_where_nothing_can_be_written_it_works_without_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    cached = CachedEncoder(Counted(), tmp_path / "file" / "folder")
    with caplog.at_level(logging.WARNING, "toolsearch"):
        for _ in range(2):
            assert (cached.encode(TEXTS) == encoded(Counted(), TEXTS)).all()
    (line,) = caplog.messages
    assert "cannot be used, vectors are computed again" in line


def test_a_wrong_limit_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="1 or more, not 0"):
        CachedEncoder(Counted(), tmp_path, batch=0)


# --- where


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the rules of XDG are for other systems")
def test_the_default_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "toolsearch" / "vectors"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for void in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", void)
        assert default_folder() == tmp_path / "home" / ".cache" / "toolsearch" / "vectors"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == tmp_path / "home" / ".cache" / "toolsearch" / "vectors"


@pytest.mark.skipif(sys.platform != "linux", reason="one system is enough to show that the default is used")
def test_without_a_folder_the_default_one_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    CachedEncoder(Counted()).encode(["a"])
    assert kept(tmp_path / "toolsearch" / "vectors") == 1
