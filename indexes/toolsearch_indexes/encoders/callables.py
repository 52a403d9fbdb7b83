"""An encoder from any function of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import as_rows
from toolsearch_indexes.encoders.loading import require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CallableEncoder"]


class CallableEncoder:
    """`function` takes a list of texts and returns a row of `width` numbers for each: an array, or lists of numbers.

    Put the model and its version in `name`: stored vectors are found again by it. `query_function`, if given, encodes
    the texts to search with. The functions may be called from several threads at once.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        name: str,
        width: int,
        *,
        query_function: Callable[[list[str]], Any] | None = None,
    ) -> None:
        require("CallableEncoder", ("numpy",), "numpy")
        if not callable(function):
            raise SetupError(f"an encoder needs a function of texts, not {function!r}")
        if not name:
            raise SetupError("an encoder needs a name that says its model and version")
        if width < 1:
            raise SetupError(f"the width of the encoder {name!r} must be 1 or more, not {width!r}")
        self.name = name
        self.width = width
        self._function = function
        self._query_function = query_function or function

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, width={self.width})"

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, self.width), np.float32)
        return as_rows(self, (self._query_function if query else self._function)(list(texts)), len(texts))
