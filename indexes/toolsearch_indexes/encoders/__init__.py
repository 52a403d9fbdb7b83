"""Text to vectors: checks around an encoder, and encoders by name from entry points `toolsearch.encoders`.

static         a table of word vectors (model2vec, wordllama)   multilingual   a model for a hundred languages
minilm         a model for English, from packages               onnx, sentence_transformers   other models
openai         an endpoint
callables      any function of texts
cache          keeps the vectors of any encoder on disk         centered       removes what all its vectors share
loading        what encoders share: where a model's files are, and loading them once

Importing this package imports no encoder and no numpy. An encoder looks for its files when it is made and says at once
what is missing; it loads its model when it is first used, once, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolsearch.errors import SetupError, ToolSearchError
from toolsearch.protocols import Encoder
from toolsearch.support.plugins import plugin
from toolsearch.support.text import clean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Encoder",
    "EncoderError",
    "OutputError",
    "as_rows",
    "encoded",
    "not_finite",
    "open_encoder",
    "unit_rows",
    "warm_up",
]

_SHOWN = 60  # characters of a text in an error


class EncoderError(ToolSearchError, RuntimeError):
    """A well set up encoder cannot answer now: its endpoint is down or too busy. Trying again later may help."""


class OutputError(SetupError):
    """An encoder's output is no array of numbers, or has another shape."""


def as_rows(encoder: Encoder, output: object, texts: int) -> NDArray[np.float32]:
    """An encoder's output for so many texts as an array; raises `OutputError` if it is none or has another shape."""
    import numpy as np

    try:
        with np.errstate(over="ignore"):  # `unit_rows` marks values that are not finite
            rows = np.asarray(output, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise OutputError(f"the encoder {encoder.name!r} did not return an array of numbers: {error}") from error
    if rows.shape != (wanted := (texts, encoder.width)):
        raise OutputError(f"the encoder {encoder.name!r} gave an array of shape {rows.shape}, not {wanted}")
    return rows


def encoded(encoder: Encoder, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
    """As `unit_rows`, but raises `SetupError` if any row holds values that are not finite."""
    import numpy as np

    rows = unit_rows(encoder, texts, query=query)
    if np.isnan(rows[:, :1]).any():  # a row is all of NaN, or has none
        place = int(np.isnan(rows[:, 0]).argmax())
        raise not_finite(encoder, None if query else texts[place])
    return rows


def unit_rows(encoder: Encoder, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
    """An encoder's output, checked and with rows of length 1; a text without a direction gives a row of zeros.

    A text for which the encoder gives values that are not finite has a row of NaN, so that it spoils no other. Lone
    surrogates, which no tokenizer takes, are replaced first. Raises `OutputError`, naming the encoder, if its output
    is not an array of numbers or has a wrong shape, and `SetupError` if `texts` is a single text.
    """
    if isinstance(texts, str):
        raise SetupError(f"pass a list of texts to encode, not the text {texts[:40]!r}")
    import numpy as np

    try:
        output = encoder.encode([clean(text) for text in texts], query=query)
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a library in Rust gives up
        raise RuntimeError(f"the encoder {encoder.name!r} gave up: {error}") from error
    rows = as_rows(encoder, output, len(texts))
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    # By the largest value first, so that no square overflows or vanishes.
    largest[largest == 0] = 1
    largest[~np.isfinite(largest)] = np.nan
    rows = rows / largest
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = rows / lengths
    return unit


def not_finite(encoder: Encoder, text: str | None) -> SetupError:
    """The error for a text whose vector cannot be used; None for a query, which no log shows."""
    named = "" if text is None else f" for the text {text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'!r}"
    return SetupError(f"the encoder {encoder.name!r} gave values that are not finite{named}")


def warm_up(encoder: Encoder) -> None:
    """Loads what the encoder needs now rather than with the first search; this also checks its output."""
    encoded(encoder, ["warm up"], query=True)


def open_encoder(name: str) -> Encoder:
    """A new encoder by the name of its entry point, or `SetupError` listing the names."""
    encoder: Encoder = plugin("encoder", "toolsearch.encoders", name).load()()
    return encoder


def as_encoder(encoder: str | Encoder) -> Encoder:
    """An encoder by its name, or the object itself; raises `SetupError` if it is not an encoder."""
    if isinstance(encoder, str):
        return open_encoder(encoder)
    if isinstance(encoder, type):
        raise SetupError(f"pass an encoder by its name, or an object as in {encoder.__name__}(…), not the class itself")
    if not callable(getattr(encoder, "encode", None)):
        raise SetupError(f"the encoder {encoder!r} has no method `encode`; see Encoder in toolsearch.protocols")
    return encoder
