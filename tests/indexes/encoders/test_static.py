"""The static encoder gives what the packages of its two formats give, from their files alone."""

import json
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import encoded, open_encoder
from toolsearch_indexes.encoders.static import StaticEncoder

tokenizers = pytest.importorskip("tokenizers", reason="the extra 'static' is not installed")
safetensors = pytest.importorskip("safetensors.numpy", reason="the extra 'static' is not installed")
needs_wordllama = pytest.mark.skipif(find_spec("wordllama") is None, reason="the package wordllama is not installed")

TEXTS = [
    "List the open issues of a repository.",
    "",
    " ",
    "send_email: To, Cc, Bcc 📧",
    "Wie wird das Wetter morgen in Köln?",
    "明日の天気",
    "a " * 3_000,
    "x" * 5_000,
]
WORDS = ["[UNK]", "the", "open", "issues", "list", "mail"]


def wordllama_folder() -> Path:
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture(scope="module")
def wordllama() -> StaticEncoder:
    return StaticEncoder()


@needs_wordllama
def test_by_name_it_is_the_model_in_the_package_wordllama(wordllama: StaticEncoder) -> None:
    encoder = open_encoder("static")
    assert isinstance(encoder, StaticEncoder)
    assert encoder.name == wordllama.name == "wordllama-l2_supercat_256@e057aee0e6b6"
    assert encoder.width == 256


@needs_wordllama
def test_a_few_texts_are_encoded_as_among_many(wordllama: StaticEncoder) -> None:
    """A few are tokenized one by one, many together."""
    few = ["List the open issues.", "Wie wird das Wetter?", ""]
    many = wordllama.encode([*few, *(f"text {i}" for i in range(50))])
    assert np.array_equal(wordllama.encode(few), many[: len(few)])


@needs_wordllama
def test_it_gives_what_wordllama_gives(wordllama: StaticEncoder, tmp_path: Path) -> None:
    """In a process of its own: importing wordllama sets up logging for everybody."""
    program = f"""
import sys, pathlib, numpy, wordllama
folder = pathlib.Path(wordllama.__file__).parent  # given as its cache, the tokenizer is found without a download
model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
numpy.save(sys.argv[1], model.embed({TEXTS!r}))
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "theirs.npy")], check=True, capture_output=True)
    np.testing.assert_allclose(wordllama.encode(TEXTS), np.load(tmp_path / "theirs.npy"), rtol=1e-4, atol=1e-5)


@needs_wordllama
def test_like_meanings_are_near(wordllama: StaticEncoder) -> None:
    mail, weather, query = encoded(
        wordllama, ["Send an e-mail message to a recipient", "Get the weather forecast for a city", "write a mail"]
    )
    assert mail @ query > weather @ query + 0.1


@needs_wordllama
def test_a_text_gives_the_same_vector_alone_and_among_others(wordllama: StaticEncoder) -> None:
    together = wordllama.encode(TEXTS * 300)  # more than one batch
    for row, text in enumerate(TEXTS):
        assert (wordllama.encode([text], query=True)[0] == together[len(TEXTS) * 299 + row]).all()


@needs_wordllama
def test_texts_without_tokens_are_zeros(wordllama: StaticEncoder) -> None:
    assert not wordllama.encode([""]).any()
    assert wordllama.encode([]).shape == (0, 256)


@needs_wordllama
def test_hostile_texts_are_encoded_like_others(wordllama: StaticEncoder) -> None:
    hostile = ["\ud800", "\0", "\u202e", "é" * 20_000, "<unk></s>", "\U0010ffff", "a" * 20_000]
    assert np.isfinite(encoded(wordllama, hostile, query=True)).all()


@needs_wordllama
def test_threads_that_ask_at_the_same_time_get_the_same() -> None:
    encoder = StaticEncoder()
    got: list[bytes] = []
    threads = [threading.Thread(target=lambda: got.append(encoder.encode(TEXTS).tobytes())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert len(set(got)) == 1


@needs_wordllama
def test_a_folder_laid_out_as_wordllama_does_is_read_too(tmp_path: Path, wordllama: StaticEncoder) -> None:
    for part in ("weights", "tokenizers"):
        shutil.copytree(wordllama_folder() / part, tmp_path / part, ignore=shutil.ignore_patterns("*.py", "*.pyc"))
    assert StaticEncoder(tmp_path).name == wordllama.name
    (tmp_path / "tokenizers" / "l2_supercat_tokenizer_config.json").unlink()
    with pytest.raises(SetupError, match=r"the tokenizer of .* is missing"):
        StaticEncoder(tmp_path)


def test_without_the_package_the_error_has_the_install_line() -> None:
    program = """
import importlib.util
spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "wordllama" else spec(name, *rest)
from toolsearch_indexes.encoders import open_encoder
open_encoder("static")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    told = (
        "the static encoder needs the package 'wordllama'. Install it with: pip install 'toolsearch-kit[static]' "
        "(from a clone: pip install '.[static]')"
    )
    assert f"toolsearch.errors.MissingExtra: {told}" in done.stderr


def model2vec_folder(folder: Path, *, config: dict[str, object] | None, **tensors: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    model = tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=9)  # as some exports have it; a static model pads nothing
    tokenizer.save(str(folder / "tokenizer.json"))
    safetensors.save_file(tensors, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def table(rows: int = len(WORDS), dtype: type = np.float32) -> np.ndarray:
    return (np.random.default_rng(3).normal(size=(rows, 4)) * 50).astype(dtype)


def test_a_model2vec_folder_gives_the_mean_of_its_known_tokens(tmp_path: Path) -> None:
    vectors = table()
    encoder = StaticEncoder(model2vec_folder(tmp_path / "small", config={}, embeddings=vectors))
    assert encoder.name.startswith("small@")
    assert encoder.width == 4
    rows = encoder.encode(["list open issues", "list nothing known here", "nothing known"])
    np.testing.assert_allclose(rows, [vectors[[4, 2, 3]].mean(axis=0), vectors[4], np.zeros(4)], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("max_length", [None, 3, 512])
@pytest.mark.parametrize("clustered", [False, True])
def test_it_gives_what_model2vec_gives(dtype: type, max_length: int | None, clustered: bool, tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec", reason="the package model2vec is not installed")
    more = {}
    if clustered:
        more["mapping"] = np.array([0, 1, 1, 2, 2, 0])
        more["weights"] = np.array([1, 0.1, 2, 3, 0.5, 1], np.float32)
    vectors = table(3 if clustered else len(WORDS), dtype)
    folder = model2vec_folder(tmp_path, config={"max_length": max_length}, embeddings=vectors, **more)
    texts = ["list the open issues", "mail mail list", "nothing known", "", "the open unheard mail " * 400]
    theirs = model2vec.StaticModel.from_pretrained(str(folder)).encode(texts)
    ours = StaticEncoder(folder).encode(texts)
    tolerance = 1e-2 if dtype is np.float16 else 1e-5  # theirs adds halves up in halves
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * 50)


def test_a_static_embedding_of_sentence_transformers_is_read_from_its_folder(tmp_path: Path) -> None:
    vectors = table()
    model2vec_folder(tmp_path / "0_StaticEmbedding", config=None, **{"embedding.weight": vectors})
    rows = StaticEncoder(tmp_path).encode(["open mail"])
    np.testing.assert_allclose(rows, [vectors[[2, 5]].mean(axis=0)], rtol=1e-6)


def test_another_table_is_another_name(tmp_path: Path) -> None:
    one = StaticEncoder(model2vec_folder(tmp_path / "a" / "m", config={}, embeddings=table()))
    other = StaticEncoder(model2vec_folder(tmp_path / "b" / "m", config={}, embeddings=table() + 1))
    assert one.name.partition("@")[0] == other.name.partition("@")[0]
    assert one.name != other.name


def test_what_is_not_on_this_machine_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(SetupError, match=r"no static model 'someone/potion' on this machine: .* never downloads"):
        StaticEncoder("someone/potion")


def test_a_neural_model_is_refused_with_the_encoder_to_take(tmp_path: Path) -> None:
    folder = model2vec_folder(tmp_path, config={}, **{"encoder.layer.0.weight": table()})
    with pytest.raises(SetupError, match=r"holds 'encoder\.layer\.0\.weight', but no table 'embeddings'.*OnnxEncoder"):
        StaticEncoder(folder).encode(["a"])


def test_a_table_too_short_for_its_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has 5 rows for the 6 tokens of its tokenizer"):
        StaticEncoder(model2vec_folder(tmp_path, config={}, embeddings=table(5))).encode(["a"])


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_file_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    folder = model2vec_folder(tmp_path, config={}, embeddings=table())
    (folder / name).write_bytes(b"\x00damaged")
    with pytest.raises(SetupError, match="cannot be read"):
        StaticEncoder(folder).encode(["a"])
