"""What an index folder and the cache of vectors store: read again by later versions, under names that cannot change.

The folders in `stored/`, a zip file each, were written by 0.1.0. To write them anew, after words, weights or a format
have changed on purpose: `python tests/indexes/test_stored.py`.
"""

import hashlib
import io
import json
import pickle
import shutil
import sqlite3
import tempfile
import zipfile
import zlib
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsearch import Catalog, Tool
from toolsearch_indexes.encoders.cache import CachedEncoder
from toolsearch_indexes.encoders.callables import CallableEncoder

STORED = Path(__file__).with_name("stored")
MARK = "toolsearch-index.json"
DEFINITIONS: list[dict[str, Any]] = [
    {"name": "send_mail", "server": "post", "description": "Send an electronic mail with attachments"},
    {"name": "create_issue", "server": "tracker", "description": "Open a new issue in a project"},
    {"name": "getWeather", "description": "Weather forecast for a city", "tags": ["sky"]},
]
TEXTS = ["a", "text", "another text"]


def tools() -> list[Tool]:
    return list(Catalog(DEFINITIONS))


class Letters(CallableEncoder):
    """Counts letters, in 26 numbers, and notes the texts it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(self._count, "letters v1", 26)

    def _count(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[text.lower().count(chr(97 + at)) for at in range(26)] for text in texts], np.float32)


def engine(name: str, folder: Path) -> Any:
    """A words engine over a folder."""
    if name == "whoosh":
        return pytest.importorskip("toolsearch_indexes.whoosh").WhooshIndex(folder)
    return pytest.importorskip("toolsearch_indexes.tantivy").TantivyIndex(folder)


def faiss_class() -> Any:
    pytest.importorskip("faiss")
    return pytest.importorskip("toolsearch_indexes.faiss").FaissIndex


def store(name: str, folder: Path) -> None:
    """Writes what `stored/` holds under this name."""
    if name == "cache":
        CachedEncoder(Letters(), folder).encode(TEXTS)
    elif name == "faiss":
        index = faiss_class()(Letters())
        index.add(tools())
        index.save(folder)
    else:
        engine(name, folder).add(tools())


def unpack(name: str, folder: Path) -> None:
    with zipfile.ZipFile(STORED / f"{name}.zip") as archive:
        archive.extractall(folder)


def stored_file(name: str, file: str) -> bytes:
    with zipfile.ZipFile(STORED / f"{name}.zip") as archive:
        return archive.read(file)


@pytest.fixture
def copied(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / "stored"
    unpack(request.param, folder)
    return folder


def mark(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / MARK).read_bytes())
    return loaded


def skip_other_versions(package: str) -> None:
    """The files of an engine are the engine's own: another version of it may store them otherwise."""
    stored = json.loads((STORED / "versions.json").read_bytes())[package]
    if version(package) != stored:
        pytest.skip(f"stored by {package} {stored}, this is {version(package)}")


# -- what 0.1.0 stored ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("copied", "name", "package"),
    [("whoosh", "whoosh", "Whoosh"), ("tantivy", "tantivy", "tantivy")],
    indirect=["copied"],
)
def test_what_an_engine_for_words_stored_is_read_and_not_written_again(copied: Path, name: str, package: str) -> None:
    pytest.importorskip(f"toolsearch_indexes.{name}")
    skip_other_versions(package)
    before = (copied / MARK).read_bytes()
    index = engine(name, copied)
    assert len(index) == 3
    answers = index.search("send a mail", 5)
    index.add(tools())
    assert (copied / MARK).read_bytes() == before
    fresh = engine(name, copied.parent / "fresh")
    fresh.add(tools())
    assert answers == fresh.search("send a mail", 5)
    assert [hit.id for hit in answers] == ["post/send_mail"]


@pytest.mark.parametrize("copied", ["faiss"], indirect=True)
def test_what_faiss_stored_is_read_and_not_encoded_again(copied: Path) -> None:
    """The folder also holds a graph, which versions after 0.1.0 neither read nor write."""
    encoder = Letters()
    index = faiss_class().load(copied, encoder)
    index.add(tools())
    assert encoder.asked == []
    assert len(index) == 3
    assert index.search("send an electronic mail", 1)[0].id == "post/send_mail"
    index.save(copied)
    assert not (copied / "hnsw.faiss").exists()


@pytest.mark.parametrize("copied", ["cache"], indirect=True)
def test_what_the_cache_of_vectors_stored_is_found_again(copied: Path) -> None:
    encoder = Letters()
    rows = CachedEncoder(encoder, copied).encode(TEXTS)
    assert encoder.asked == []
    assert np.allclose(rows[0], np.eye(26)[0])


# -- the names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["whoosh", "tantivy", "faiss"])
def test_the_mark_of_a_folder_has_these_keys(name: str, tmp_path: Path) -> None:
    pytest.importorskip(f"toolsearch_indexes.{name}")
    store(name, tmp_path)
    stored = mark(tmp_path)
    assert set(stored) == {"engine", "recipe", "files"}
    assert stored["engine"] == name
    old, new = json.loads(stored_file(name, MARK))["recipe"], stored["recipe"]
    if name == "whoosh":  # its last word is the version of whoosh
        old, new = old.rpartition(" ")[0], new.rpartition(" ")[0]
    assert new == old
    assert all(isinstance(checksum, int) for checksum in stored["files"].values())
    assert (tmp_path / "toolsearch-index.lock").exists()


def test_whoosh_stores_these_fields(tmp_path: Path) -> None:
    module: Any = pytest.importorskip("toolsearch_indexes.whoosh")
    store("whoosh", tmp_path)
    assert "_tools_1.toc" in mark(tmp_path)["files"]
    reader = module.whoosh.index.open_dir(tmp_path, "tools", schema=module._schema()).reader()
    assert sorted(reader.schema.names()) == ["digest", "fields", "id", "words"]
    fields = reader.stored_fields(0)
    assert set(fields) == {"fields"}
    assert fields["fields"] == {
        "send": 3, "mail": 3, "sendmail": 1, "electron": 2, "an": 2, "with": 2, "attach": 2, "post": 4,
        "=mail send": 1, "=mail post send": 1, "@post": 4,
    }  # fmt: skip


def test_no_name_of_ours_is_read_from_what_whoosh_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoosh pickles its schema, and with it the name of our class for words; what is stored must not depend on it."""
    module: Any = pytest.importorskip("toolsearch_indexes.whoosh")
    unpack("whoosh", tmp_path / "copy")
    found: list[str] = []

    class Watched(pickle.Unpickler):
        def find_class(self, module_name: str, name: str) -> Any:
            found.append(f"{module_name}.{name}")
            return super().find_class(module_name, name)

    monkeypatch.setattr(module.whoosh.index.pickle, "loads", lambda data: Watched(io.BytesIO(data)).load())
    assert len(module.WhooshIndex(tmp_path / "copy")) == 3
    assert not [name for name in found if name.startswith("toolsearch")]


def test_tantivy_stores_these_fields(tmp_path: Path) -> None:
    pytest.importorskip("toolsearch_indexes.tantivy")
    store("tantivy", tmp_path)
    schema = json.loads((tmp_path / "index" / "meta.json").read_bytes())["schema"]
    assert [field["name"] for field in schema] == ["id", "key", *(f"w{level}" for level in range(16)), "number", "held"]


def test_faiss_stores_these_files_and_keys(tmp_path: Path) -> None:
    faiss_class()
    store("faiss", tmp_path)
    assert set(mark(tmp_path)["files"]) == {"rows.npy", "tools.json", "words.json.z"}
    about = json.loads((tmp_path / "tools.json").read_bytes())
    assert set(about) == {"encoder", "width", "ids", "digests"}
    assert about == json.loads(stored_file("faiss", "tools.json"))  # the digests of the texts too
    assert (tmp_path / "rows.npy").read_bytes() == stored_file("faiss", "rows.npy")
    words = json.loads(zlib.decompress((tmp_path / "words.json.z").read_bytes()))
    assert sorted(words) == ["getWeather", "post/send_mail", "tracker/create_issue"]


def test_the_cache_of_vectors_stores_these_columns_and_keys(tmp_path: Path) -> None:
    store("cache", tmp_path)
    with closing(sqlite3.connect(tmp_path / "vectors.sqlite3")) as connection:
        assert [row[1] for row in connection.execute("PRAGMA table_info(vectors)")] == [
            "id", "key", "vector", "checksum",
        ]  # fmt: skip
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        keys = {key for (key,) in connection.execute("SELECT key FROM vectors")}
    head = b'[1, "letters v1", 26, "length 1", "document", "1"]\n'
    assert keys == {hashlib.sha256(head + text.encode()).digest() for text in TEXTS}


if __name__ == "__main__":
    for each in ("whoosh", "tantivy", "faiss", "cache"):
        with tempfile.TemporaryDirectory() as written:
            store(each, Path(written))
            shutil.make_archive(str(STORED / each), "zip", written)
    versions = {package: version(package) for package in ("Whoosh", "tantivy")}
    (STORED / "versions.json").write_text(json.dumps(versions) + "\n")
