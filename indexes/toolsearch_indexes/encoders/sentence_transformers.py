"""Any model that the package sentence-transformers loads, from this machine unless a download is allowed."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsearch.errors import SetupError
from toolsearch.support.threads import after_fork
from toolsearch_indexes.encoders.loading import Once, digest, model_folder, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SentenceTransformerEncoder"]

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"
_MARKER = "modules.json"
_PARTS = frozenset({".bin", ".json", ".model", ".safetensors", ".txt"})


class SentenceTransformerEncoder:
    """`model` is a folder, the import name of a package that ships one, or a name as on the Hugging Face hub.

    A name is looked for in the hub's cache on this machine. If it is not there and `allow_download` is False, that is a
    `SetupError` at once; the network is not used. Importing torch and loading take seconds and wait for the first
    `encode`, or for `warm_up`. If you pass no prompts, those of the model are used. `device` is torch's name for one;
    None takes the best available. A model is data: code that comes with it is not run, and weights are read as
    safetensors only.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = DEFAULT,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        device: str | None = None,
        allow_download: bool = False,
        batch: int = 32,
    ) -> None:
        packages = ("numpy", "torch", "sentence_transformers")
        require("SentenceTransformerEncoder", packages, "sentence-transformers")
        self._requested = os.fspath(model)
        self._folder = model_folder(model, _MARKER)
        if self._folder is None and not allow_download:
            raise SetupError(
                f"there is no model {self._requested!r} on this machine, and no download is allowed. Put it into the "
                f"cache of the Hugging Face hub with: hf download {self._requested} - or pass a folder with the model, "
                "or allow_download=True"
            )
        self._query_prompt = query_prompt
        self._document_prompt = document_prompt
        self._device = device
        self._batch = batch
        self._model = Once(self._load)
        self._name = Once(self._find_name)
        self._renew_lock()
        after_fork(self, SentenceTransformerEncoder._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()  # its tokenizer cannot be used twice at once

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._requested!r})"

    @property
    def name(self) -> str:
        return self._name()

    @property
    def width(self) -> int:
        return self._width_of(self._model())

    def warm_up(self) -> None:
        """Imports torch and loads the model now: seconds."""
        self.encode(["warm up"], query=True)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A row for each text, as the model returns it; zeros for an empty text."""
        import numpy as np

        model = self._model()
        rows = np.zeros((len(texts), self._width_of(model)), np.float32)
        filled = [row for row, text in enumerate(texts) if text.strip()]
        if filled:
            prompt = self._query_prompt if query else self._document_prompt
            encode = model.encode if prompt is not None else model.encode_query if query else model.encode_document
            options = {} if prompt is None else {"prompt": prompt}
            some = [texts[row] for row in filled]
            with self._lock:
                vectors = encode(
                    some, batch_size=self._batch, show_progress_bar=False, convert_to_numpy=True, **options
                )
            rows[filled] = np.asarray(vectors, np.float32)
        return rows

    def _load(self) -> Any:
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]

        place = os.fspath(self._folder) if self._folder is not None else self._requested
        try:
            return SentenceTransformer(
                place,
                device=self._device,
                local_files_only=self._folder is not None,
                trust_remote_code=False,  # a model is data: neither code of its own is run,
                model_kwargs={"use_safetensors": True},  # nor a pickle of weights read, which could hold some
            )
        except Exception as error:  # transformers, safetensors, torch and the hub raise classes of their own
            raise SetupError(f"the model {self._requested!r} cannot be loaded from {place!r}: {error}") from error

    def _find_name(self) -> str:
        """The model's name with the hub's commit, or with a digest of its files."""
        if self._folder is None:
            self._model()  # this downloads it
            self._folder = model_folder(self._requested, _MARKER)
        if self._folder is None:
            return self._requested
        folder = self._folder
        label = folder.resolve().name if Path(self._requested).exists() else self._requested
        version = folder.name[:12]
        if not re.fullmatch("[0-9a-f]{40}", folder.name):
            version = digest(path for path in folder.rglob("*") if path.suffix in _PARTS and path.is_file())
        if self._query_prompt is not None or self._document_prompt is not None:
            version = digest([], version, repr((self._query_prompt, self._document_prompt)))
        return f"{label}@{version}"

    def _width_of(self, model: Any) -> int:
        width = model.get_embedding_dimension() if hasattr(model, "get_embedding_dimension") else None
        width = width or model.get_sentence_embedding_dimension()
        if not isinstance(width, int):
            raise SetupError(f"the model {self._requested!r} states no width of its vectors: use CallableEncoder")
        return width
