"""Text to vectors: the one protocol, and encoders by name from entry points `toolsearch.encoders`.

static      a table of word vectors: model2vec, wordllama       callables   any function
sentence_transformers, onnx   a neural model in this process    openai      an endpoint
cache       vectors kept on disk, around any of them

Importing this package imports no encoder and no numpy. An encoder looks for its files when it is made and says at once
what is missing; it loads its model when it is first asked, once, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from toolsearch.errors import SetupError, ToolSearchError
from toolsearch.support.plugins import plugin
from toolsearch.support.text import clean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Encoder", "EncoderError", "as_rows", "encoded", "open_encoder", "warm_up"]


class EncoderError(ToolSearchError, RuntimeError):
    """An encoder that is set up well cannot answer now: its endpoint is down or too busy. Trying later may help."""


class Encoder(Protocol):
    """Texts in, vectors out.

    `name` says model and version or digest, so that vectors of two models are never mixed. `name` and `width` may load
    the model; both stay the same from then on. All three may be used from several threads at once. The protocol cannot
    be asked for with `isinstance`: Python 3.11 would load the model to answer.
    """

    @property
    def name(self) -> str: ...
    @property
    def width(self) -> int: ...
    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A row for each text, (len(texts), width), float32. `query` is True for what is searched with."""
        ...


def as_rows(encoder: Encoder, given: object, many: int) -> NDArray[np.float32]:
    """What an encoder gave for so many texts, as an array; `SetupError` for what is none, or has another shape."""
    import numpy as np

    try:
        with np.errstate(over="ignore"):  # `encoded` tells of what is not finite
            rows = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise SetupError(f"the encoder {encoder.name!r} gave what is no array of numbers: {error}") from error
    if rows.shape != (wanted := (many, encoder.width)):
        raise SetupError(f"the encoder {encoder.name!r} gave an array of shape {rows.shape} where {wanted} is due")
    return rows


def encoded(encoder: Encoder, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
    """What an encoder gives, checked and with rows of length 1; a text without a direction gives a row of zeros.

    Lone surrogates, which no tokenizer takes, are replaced first. Raises `SetupError` naming the encoder for what is no
    array of numbers, a wrong shape or values that are not finite, and for one text where a list of them is due.
    """
    if isinstance(texts, str):
        raise SetupError(f"pass a list of texts to encode, not the text {texts[:40]!r}")
    import numpy as np

    rows = as_rows(encoder, encoder.encode([clean(text) for text in texts], query=query), len(texts))
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    if not np.isfinite(largest).all():
        raise SetupError(f"the encoder {encoder.name!r} gave values that are not finite")
    # By the largest value first, so that no square overflows or vanishes.
    largest[largest == 0] = 1
    rows = rows / largest
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = rows / lengths
    return unit


def warm_up(encoder: Encoder) -> None:
    """Load what the encoder needs now rather than with the first search; also the first check of what it gives."""
    encoded(encoder, ["warm up"], query=True)


def open_encoder(name: str) -> Encoder:
    """A new encoder by the name of its entry point, or `SetupError` listing the names."""
    made: Encoder = plugin("encoder", "toolsearch.encoders", name).load()()
    return made


def opened(encoder: str | Encoder) -> Encoder:
    """An encoder by its name, or as it is; raises `SetupError` for what is none."""
    if isinstance(encoder, str):
        return open_encoder(encoder)
    if isinstance(encoder, type):
        raise SetupError(f"pass an encoder by its name, or an object as in {encoder.__name__}(…), not the class itself")
    if not callable(getattr(encoder, "encode", None)):
        raise SetupError(f"the encoder {encoder!r} has no method `encode`; see the Encoder protocol")
    return encoder
