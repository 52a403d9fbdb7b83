"""An encoder from a function."""

import numpy as np
import pytest

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import encoded
from toolsearch_indexes.encoders.callables import CallableEncoder


def test_a_function_of_texts_becomes_an_encoder() -> None:
    encoder = CallableEncoder(lambda texts: [[len(text), 1.0] for text in texts], "length v1", 2)
    assert (encoder.name, encoder.width) == ("length v1", 2)
    rows = encoder.encode(["abc"])
    assert rows.dtype == np.float32
    assert rows.tolist() == [[3.0, 1.0]]


def test_the_function_gets_a_list_and_is_not_called_for_nothing() -> None:
    seen: list[object] = []
    encoder = CallableEncoder(lambda texts: seen.append(texts) or np.ones((len(texts), 1)), "ones", 1)
    assert encoder.encode([]).shape == (0, 1)
    encoder.encode(("a", "b"))
    assert seen == [["a", "b"]]


@pytest.mark.parametrize("given", [None, "text", [["x"]], [[1.0], [1.0, 2.0]]])
def test_what_is_no_array_of_numbers_is_an_error_that_names_the_encoder(given: object) -> None:
    encoder = CallableEncoder(lambda texts: given, "odd", 1)
    problem = r"the encoder 'odd' (did not return an array of numbers: |gave an array of shape )"
    with pytest.raises(SetupError, match=problem):
        encoded(encoder, ["a"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"function": 3, "name": "x", "width": 1}, "a function of texts, not 3"),
        ({"function": list, "name": "", "width": 1}, "a name that says its model and version"),
        ({"function": list, "name": "x", "width": 0}, "'x' must be 1 or more, not 0"),
    ],
)
def test_what_cannot_work_is_refused_at_once(options: dict[str, object], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        CallableEncoder(**options)
