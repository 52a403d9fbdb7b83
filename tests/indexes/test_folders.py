"""Folders of indexes after kills and accidents: rolled back or made anew, and what is not the index's own stays."""

import logging
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("faiss")
pytest.importorskip("tantivy")
pytest.importorskip("whoosh")

from tests.torture.damage import WAYS, damage
from toolsearch import Catalog, SetupError, ToolSearch
from toolsearch_indexes.faiss import FaissIndex
from toolsearch_indexes.on_disk import LOCK, MARK, Folder
from toolsearch_indexes.tantivy import TantivyIndex
from toolsearch_indexes.whoosh import WhooshIndex

FOREIGN = {"thesis.doc": "mine", "movie.mkv.part": "half", "tools_1.seg": "not yours", "notes/a.txt": "b"}


def catalog(version: int = 0, tools: int = 30) -> Catalog:
    """A third of the tools are others in each version."""
    return Catalog(
        [
            {"name": f"tool_{n}", "server": "s", "description": f"Does thing{n} version{version if n % 3 == 0 else 0}"}
            for n in range(tools)
        ]
    )


class Kind:
    """One engine: how its index is opened in a folder, and written there."""

    def __init__(self, name: str, encoder: Any = None) -> None:
        self.name, self.encoder = name, encoder

    def open(self, folder: Path) -> Any:
        if self.name == "faiss":
            return FaissIndex.load(folder, self.encoder)
        return {"whoosh": WhooshIndex, "tantivy": TantivyIndex}[self.name](folder)

    def write(self, folder: Path, version: int = 0) -> Any:
        index = self.open(folder)
        index.add(list(catalog(version)))
        if self.name == "faiss":
            index.save(folder)
        return index

    def check(self, folder: Path, version: int = 0) -> None:
        """A search over the folder has the right answers."""
        index = self.open(folder)
        search = ToolSearch(catalog(version), index=index)
        for n in range(0, 30, 7):
            assert [hit.tool.id for hit in search.find(f"thing{n}", 1)] == [f"s/tool_{n}"]

    def __repr__(self) -> str:
        return self.name


@pytest.fixture(params=["whoosh", "tantivy", "faiss"])
def kind(request: pytest.FixtureRequest, hashed_words: Any) -> Kind:
    return Kind(request.param, hashed_words)


def put_foreign_files(folder: Path) -> None:
    for name, text in FOREIGN.items():
        for place in (folder, folder / "index"):
            if place.exists():
                (place / name).parent.mkdir(exist_ok=True)
                (place / name).write_text(text)


def has_foreign_files(folder: Path) -> bool:
    places = [place for place in (folder, folder / "index") if place.exists()]
    return all((place / name).read_text() == text for place in places for name, text in FOREIGN.items())


def cut_mark(folder: Path) -> None:
    mark = folder / MARK
    mark.write_bytes(mark.read_bytes()[:20])


def cut_files(folder: Path) -> None:
    for file in [*folder.iterdir(), *(folder / "index").glob("*")]:
        if file.is_file() and file.name not in (MARK, LOCK, *FOREIGN):
            file.write_bytes(file.read_bytes()[:-3])


def age_mark(folder: Path) -> None:
    mark = folder / MARK
    mark.write_text(mark.read_text().replace('"recipe": "', '"recipe": "an older '))


def lose_mark(folder: Path) -> None:
    (folder / MARK).unlink()


@pytest.mark.parametrize("accident", [None, cut_mark, cut_files, age_mark, lose_mark])
def test_D16_what_is_not_the_indexs_own_stays(
    kind: Kind, accident: Callable[[Path], None] | None, tmp_path: Path
) -> None:
    """D16, D7: `thesis.doc` was gone after `faiss.save` and after a write of whoosh."""
    kind.write(tmp_path)
    put_foreign_files(tmp_path)
    for version in (1, 2):
        if accident is not None:
            accident(tmp_path)
        kind.write(tmp_path, version)
        kind.check(tmp_path, version)
        assert has_foreign_files(tmp_path)


def test_D16_a_lost_mark_means_made_anew(kind: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """D16: it was a SetupError, "holds files that are not an index". Without its lock too, nobody knows what it is."""
    kind.write(tmp_path)
    lose_mark(tmp_path)
    with caplog.at_level(logging.WARNING, "toolsearch"):
        kind.write(tmp_path, 1)
    assert "is made anew: its mark is gone" in caplog.text
    kind.check(tmp_path, 1)
    lose_mark(tmp_path)
    (tmp_path / LOCK).unlink()
    with pytest.raises(SetupError, match="holds files that are not an index"):
        kind.open(tmp_path)


def test_writes_leave_nothing_behind(kind: Kind, tmp_path: Path) -> None:
    """Only a mark that names a file lets it be removed; so each write names its files before it writes them."""
    sizes = []
    for version in range(8):
        kind.write(tmp_path, version)
        sizes.append(sum(1 for file in tmp_path.rglob("*") if file.is_file()))
    assert max(sizes) <= 4 * sizes[0]
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.95])
def test_D7_a_commit_of_tantivy_that_a_kill_left_half_done_is_rolled_back(tmp_path: Path, share: float) -> None:
    """D7: its files met those of the next commit (FileAlreadyExists), and then its writer's lock (LockBusy)."""
    tantivy, before, after = Kind("tantivy"), tmp_path / "before", tmp_path / "after"
    tantivy.write(before)
    shutil.copytree(before, after)
    tantivy.write(after, 1)
    known = {file.name for file in (before / "index").iterdir()}
    new = sorted(file for file in (after / "index").iterdir() if file.name not in known)
    assert any(file.suffix == ".del" for file in new)
    for file in new[int(len(new) * share) :]:  # all but the last step: the list of what is committed, and our mark
        shutil.copy(file, before / "index")
    if share < 0.9:
        shutil.copy(after / "index" / ".managed.json", before / "index")
    for version in (1, 2, 3):
        tantivy.check(before, version)


def test_D7_an_engine_that_cannot_go_on_makes_its_folder_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """D7: whatever tantivy raises while it commits, and every later process is whole."""
    tantivy = Kind("tantivy")
    index = tantivy.write(tmp_path)
    for file in (tmp_path / "index").glob("*.store"):
        file.unlink()  # its documents, which a merge or a commit with removals reads
    (tmp_path / "index" / "meta.json").write_text("{}")
    with caplog.at_level(logging.WARNING, "toolsearch"):
        index.add(list(catalog(1)))
        tantivy.check(tmp_path, 1)
    assert "is made anew" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a kill is played by a forked process that ends")
@pytest.mark.parametrize("at", range(9))
def test_D7_a_folder_is_whole_or_made_anew_wherever_its_writer_is_killed(tmp_path: Path, at: int) -> None:
    """Killed before each of its steps on the disk; then the next writer leaves its own files and the foreign ones."""
    folder = Folder(tmp_path, "engine", "1")
    with folder.writing():
        folder.save({"a-1": b"one", "b-1": b"two"})
    (tmp_path / "thesis.doc").write_text("mine")
    child = os.fork()
    if child == 0:
        try:
            _write_and_die(tmp_path, at)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    again = Folder(tmp_path, "engine", "1")
    assert again.load() in ({"a-1": b"one", "b-1": b"two"}, {"a-2": b"three", "b-1": b"four"}, None)
    with again.writing():
        again.save({"a-3": b"five"})
    assert {file.name for file in tmp_path.iterdir()} == {MARK, LOCK, "a-3", "thesis.doc"}


def _write_and_die(folder: Path, at: int) -> None:
    steps = [0]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **more: Any) -> Any:
            if steps[0] == at:
                os._exit(9)
            steps[0] += 1
            return real(*given, **more)

        return step

    for name in ("replace", "write_bytes", "unlink"):
        setattr(Path, name, dying(getattr(Path, name)))  # in this process only, which ends
    writer = Folder(folder, "engine", "1")
    writer.load()
    with writer.writing():
        writer.save({"a-2": b"three", "b-1": b"four"})


@pytest.mark.parametrize("seed", range(4))
def test_D7_damaged_files_give_the_right_answers_or_say_what_to_do(kind: Kind, tmp_path: Path, seed: int) -> None:
    """D7, D16: any file, the mark and the lock too, is changed, cut, emptied or lost."""
    whole, folder, rng = tmp_path / "whole", tmp_path / "folder", random.Random(seed)
    kind.write(whole)
    for _ in range(8):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        file = rng.choice(sorted(each for each in folder.rglob("*") if each.is_file()))
        damage(file, rng.randrange(WAYS), rng)
        kind.check(folder)
        kind.check(folder)


def test_a_disk_that_fails_is_a_clear_error_and_leaves_the_index_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: no error of the system escapes, and no half a file stays."""
    whoosh = Kind("whoosh")
    index = whoosh.write(tmp_path)
    names = {file.name for file in tmp_path.iterdir()}
    real = Path.write_bytes

    def full(file: Path, content: bytes) -> int:
        if file.name.startswith(MARK):
            return real(file, content)
        real(file, content[:5])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(SetupError, match=r"cannot be written: .*No space left"):
            index.add(list(catalog(1)))
    assert {file.name for file in tmp_path.iterdir()} == names
    whoosh.check(tmp_path)
    whoosh.check(tmp_path, 1)


def test_the_names_in_a_mark_are_names_of_files_in_the_folder(tmp_path: Path) -> None:
    """A mark that was tampered with removes nothing elsewhere."""
    inner = tmp_path / "inner"
    folder = Folder(inner, "engine", "1")
    with folder.writing():
        folder.save({"a": b"one"})
    outside = tmp_path / "outside"
    outside.write_text("mine")
    mark = inner / MARK
    mark.write_text(mark.read_text().replace('"a"', '"../outside"'))
    again = Folder(inner, "engine", "1")
    again.load()
    with again.writing():
        again.save({"b": b"two"})
        again.clear(more=["../outside", str(outside)])
    assert outside.read_text() == "mine"
