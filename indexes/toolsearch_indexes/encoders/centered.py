"""What all texts of a model have in common, taken off its vectors.

Some models give any two texts a cosine of .7 or more: the E5 family, and several that endpoints serve. All their
vectors lie in one corner, and what tells texts apart is in the rest. Indexes read a cosine about 0 as "nothing to do
with each other"; taking off the mean vector makes it so (Mu, Viswanath, 2018: "All-but-the-Top").

Models for several languages also tell in which one a text is, and by that keep a request from the tool that meets it.
Where the same texts are given in several languages, the directions between their means go too (Yang et al., 2021: "A
Simple and Effective Method To Eliminate the Self Language Bias in Multilingual Representations").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import Encoder, encoded, opened
from toolsearch_indexes.encoders.loading import Once, digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NEUTRAL", "CenteredEncoder"]

# About as many things as there are lines, requests and statements alike, so that their mean is about none of them.
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


NOTHING = 1e-3  # of a length of 1: what is left of a vector and is shorter is rounding


class CenteredEncoder:
    """`encoder`, with the mean of neutral texts taken off each vector: one mean for documents, one for queries.

    `languages` are lists of texts that say the same in one language each; what tells these apart is taken off too. All
    these texts are encoded with the first text; nothing depends on the catalog. Put a `CachedEncoder` around this one,
    not into it. An encoder whose width is less than the number of languages is a `SetupError` then.
    """

    def __init__(self, encoder: str | Encoder, *, languages: Sequence[Sequence[str]] = ()) -> None:
        self._encoder = opened(encoder)
        self._languages = _texts(languages)
        self._common = Once(lambda: {query: self._find(query) for query in (False, True)})
        self._texts = digest([], *NEUTRAL, *(text for language in self._languages for text in language))

    @property
    def name(self) -> str:
        return f"{self._encoder.name} centered@{self._texts}"

    @property
    def width(self) -> int:
        return self._encoder.width

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A row for each text, not of length 1; zeros for a text without a direction."""
        import numpy as np

        rows = encoded(self._encoder, texts, query=query)
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
        apart = directions[sizes > NOTHING]  # beyond the rank, a direction is any
        if len(apart) == len(mean):
            raise SetupError(
                f"the encoder {self._encoder.name!r} gives {len(mean)} numbers, and what tells {len(means)} languages "
                f"apart takes as many: pass at most {len(mean)} languages"
            )
        return mean, apart


def _texts(languages: Sequence[Sequence[str]]) -> list[list[str]]:
    """The texts by language, or `SetupError` where they cannot say the same."""
    given = [[] if isinstance(language, str) else list(language) for language in languages]
    texts = all(isinstance(text, str) for language in given for text in language)
    if not (texts and all(given)) or len({len(language) for language in given}) > 1:
        raise SetupError(f"languages are lists of texts that say the same, as many in each, not {languages!r:.200}")
    return given
