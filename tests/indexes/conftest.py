"""A small encoder that every test of an index can hold in its head."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import pytest

from toolsearch.search.confidence import PROBE
from toolsearch_indexes.text import content_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class HashedWords:
    """Each word is a direction, chosen by its hash; a text is the sum of its words. It counts what it is asked."""

    def __init__(self, name: str = "hashed-words", width: int = 256) -> None:
        self.name, self.width = name, width
        self.asked: list[str] = []
        self.calls = 0

    def encode(self, texts: Sequence[str], *, query: bool = False) -> "NDArray[np.float32]":
        import numpy as np

        self.calls += 1
        self.asked += [text for text in texts if text != PROBE]  # with which an unknown model is told, once
        rows = np.zeros((len(texts), self.width), np.float32)
        for at, text in enumerate(texts):
            for word in content_words(text):
                seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest())
                rows[at] += np.random.default_rng(seed).standard_normal(self.width).astype(np.float32)
        return rows


@pytest.fixture
def hashed_words() -> HashedWords:
    return HashedWords()
