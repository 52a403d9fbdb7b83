"""A sentence encoder as ONNX: onnxruntime and tokenizers, without torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders.loading import Once, digest, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OnnxEncoder"]


@dataclass(frozen=True)
class _Model:
    session: Any
    tokenizer: Any
    inputs: frozenset[str]
    width: int


class OnnxEncoder:
    """`model` and `tokenizer` are files: model.onnx, quantised or not, and the tokenizer.json that belongs to it.

    The model's first output is used. Token vectors are pooled over the attention mask ("mean", or "cls" for the first
    token) and normalised; an output with one vector per text is only normalised. Texts are cut at `max_tokens`.
    `threads` is how many threads onnxruntime uses for one call; None leaves that to onnxruntime. Missing files are a
    `SetupError` at once.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        tokenizer: str | os.PathLike[str],
        *,
        pooling: Literal["mean", "cls"] = "mean",
        query_prompt: str = "",
        document_prompt: str = "",
        max_tokens: int = 256,
        batch: int = 32,
        threads: int | None = None,
    ) -> None:
        require("OnnxEncoder", ("numpy", "onnxruntime", "tokenizers"), "onnx")
        self._files = (Path(model), Path(tokenizer))
        for file in self._files:
            if not file.is_file():
                raise SetupError(f"there is no file {str(file)!r}: OnnxEncoder takes a model.onnx and a tokenizer.json")
        self._pooling = pooling
        self._prompts = {True: query_prompt, False: document_prompt}
        self._max_tokens = max_tokens
        self._batch = batch
        self._threads = threads
        self._model = Once(self._load)
        self._name = Once(self._find_name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._files[0])!r})"

    @property
    def name(self) -> str:
        return self._name()

    @property
    def width(self) -> int:
        return self._model().width

    def warm_up(self) -> None:
        """Loads the model now."""
        self.encode(["warm up"], query=True)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A row of length 1 for each text, zeros for an empty one."""
        import numpy as np

        model = self._model()
        rows = np.zeros((len(texts), model.width), np.float32)
        # Texts of similar length together: a batch is as slow as its longest text.
        filled = sorted((row for row, text in enumerate(texts) if text.strip()), key=lambda row: len(texts[row]))
        for start in range(0, len(filled), self._batch):
            some = filled[start : start + self._batch]
            rows[some] = self._pooled(model, [self._prompts[query] + texts[row] for row in some])
        return rows

    def _pooled(self, model: _Model, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        tokens = model.tokenizer.encode_batch(texts)
        mask = np.array([each.attention_mask for each in tokens], np.int64)
        arrays = {"input_ids": np.array([each.ids for each in tokens], np.int64), "attention_mask": mask}
        if "token_type_ids" in model.inputs:
            arrays["token_type_ids"] = np.array([each.type_ids for each in tokens], np.int64)
        fed = {name: array for name, array in arrays.items() if name in model.inputs}
        output = np.asarray(model.session.run(None, fed)[0], np.float32)
        if output.ndim == 3:
            if self._pooling == "cls":
                output = output[:, 0]
            else:
                weights = mask[:, :, None].astype(np.float32)
                output = (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
        lengths = np.linalg.norm(output, axis=1, keepdims=True)
        pooled: NDArray[np.float32] = np.divide(output, lengths, out=np.zeros_like(output), where=lengths > 0)
        return pooled

    def _load(self) -> _Model:
        import onnxruntime  # pyright: ignore[reportMissingImports]
        from tokenizers import Tokenizer

        model, tokenizer_file = self._files
        try:
            options = onnxruntime.SessionOptions()
            if self._threads is not None:
                options.intra_op_num_threads = self._threads
            session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
            tokenizer = Tokenizer.from_file(str(tokenizer_file))
        except Exception as error:  # both raise classes of their own, and plain Exception
            raise SetupError(f"{str(model)!r} with {str(tokenizer_file)!r} cannot be loaded: {error}") from error
        inputs = frozenset(each.name for each in session.get_inputs())
        if unknown := inputs - {"input_ids", "attention_mask", "token_type_ids"}:
            raise SetupError(f"the model {str(model)!r} wants inputs this encoder does not know: {sorted(unknown)}")
        width = session.get_outputs()[0].shape[-1]
        if not isinstance(width, int):
            raise SetupError(f"the first output of {str(model)!r} states no width: {width!r}")
        padding = tokenizer.padding or {}
        padding_options = {
            key: padding[key] for key in ("direction", "pad_id", "pad_token", "pad_type_id") if key in padding
        }
        tokenizer.enable_padding(**padding_options)  # to the longest of a batch, whatever the file says
        tokenizer.enable_truncation(self._max_tokens)
        return _Model(session, tokenizer, inputs, width)

    def _find_name(self) -> str:
        model, _ = self._files
        settings = repr((self._pooling, self._max_tokens, self._prompts))
        return f"{model.resolve().parent.name}/{model.name}@{digest(self._files, settings)}"
