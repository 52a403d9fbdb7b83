"""Removes from a model's vectors what all of them have in common.

Some models give any two texts a cosine of 0.7 or more: the E5 family, and several that endpoints serve. All their
vectors lie in one corner, and the differences between texts are in the rest. Indexes read a cosine about 0 as "nothing
to do with each other"; subtracting the mean vector makes it so (Mu, Viswanath, 2018: "All-but-the-Top").

The vectors of models for several languages also show which language a text is in, and that keeps a request from the
tool that meets it. If the same texts are given in several languages, the directions between their means are removed too
(Yang et al., 2021: "A Simple and Effective Method To Eliminate the Self Language Bias in Multilingual
Representations").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import Encoder, as_encoder, encoded, unit_rows
from toolsearch_indexes.encoders.loading import Once, digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NEUTRAL", "CenteredEncoder"]

# Requests and statements, each about something else, so that their mean is about none of them.
NEUTRAL = (
    "What is the weather like in Paris tomorrow?",
    "Send a message to my colleague about the meeting.",
    "The history of the Roman empire spans many centuries.",
    "Create a new file in the project folder.",
    "List all customers who bought something last month.",
    "He plays the guitar in a small band.",
    "Delete the old backups from the server.",
    "How do I bake bread without yeast?",
    "Convert an image to another format.",
    "The stock market fell sharply on Monday.",
    "Show the status of the build.",
    "Translate this sentence into another language.",
    "A cat sleeps on the warm windowsill.",
    "Book a table for two at a restaurant.",
    "Update the price of a product in the shop.",
    "Photosynthesis turns light into chemical energy.",
    "Play some quiet music in the kitchen.",
    "Get the details of an order by its number.",
    "Search for papers about machine learning.",
    "Turn off the lights in the bedroom.",
    "Approve a request for vacation.",
    "The train leaves at half past seven.",
    "Run a query against the database.",
    "Find a flight to Tokyo under five hundred dollars.",
)


NOTHING = 1e-3  # a remainder shorter than this, of a vector of length 1, is rounding


class CenteredEncoder:
    """`encoder`, with the mean of neutral texts subtracted from each vector: one mean for documents, one for queries.

    `languages` are lists of texts that say the same, each list in one language; the directions in which these differ
    are removed too. All these texts are encoded together with the first text; nothing depends on the catalog. Put a
    `CachedEncoder` around this encoder, not into it. With languages, an encoder whose width is less than their number
    is a `SetupError`.
    """

    def __init__(self, encoder: str | Encoder, *, languages: Sequence[Sequence[str]] = ()) -> None:
        self._encoder = as_encoder(encoder)
        self._languages = _texts(languages)
        self._common = Once(lambda: {query: self._find(query) for query in (False, True)})
        self._texts = digest([], *NEUTRAL, *(text for language in self._languages for text in language))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._encoder!r}, languages={len(self._languages)})"

    @property
    def name(self) -> str:
        return f"{self._encoder.name} centered@{self._texts}"

    @property
    def width(self) -> int:
        return self._encoder.width

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A row for each text, not of length 1; zeros for a text without a direction, NaN where `encoder` has some."""
        import numpy as np

        rows = unit_rows(self._encoder, texts, query=query)
        mean, apart = self._common()[query]
        some = rows.any(axis=1)
        rest = rows[some] - mean
        rest -= rest @ apart.T @ apart
        rest[np.linalg.norm(rest, axis=1) < NOTHING] = 0
        rows[some] = rest
        return rows

    def _find(self, query: bool) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The mean of the neutral texts, (width,), and the directions in which languages differ, (n, width)."""
        import numpy as np

        mean = encoded(self._encoder, NEUTRAL, query=query).mean(axis=0)
        if len(self._languages) < 2:
            return mean, np.zeros((0, len(mean)), np.float32)
        means = np.stack([encoded(self._encoder, texts, query=query).mean(axis=0) for texts in self._languages])
        _, sizes, directions = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
        apart = directions[sizes > NOTHING]  # beyond the rank, directions are arbitrary
        if len(apart) == len(mean):
            raise SetupError(
                f"the encoder {self._encoder.name!r} gives {len(mean)} numbers, and what tells {len(means)} languages "
                f"apart takes as many: pass at most {len(mean)} languages"
            )
        return mean, apart


def _texts(languages: Sequence[Sequence[str]]) -> list[list[str]]:
    """The texts by language, or `SetupError` if they cannot say the same."""
    by_language = [[] if isinstance(language, str) else list(language) for language in languages]
    texts = all(isinstance(text, str) for language in by_language for text in language)
    if not (texts and all(by_language)) or len({len(language) for language in by_language}) > 1:
        raise SetupError(f"languages are lists of texts that say the same, as many in each, not {languages!r:.200}")
    return by_language
