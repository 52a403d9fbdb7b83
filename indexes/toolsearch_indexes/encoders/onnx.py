"""A sentence encoder as ONNX: onnxruntime and tokenizers, without torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolsearch.errors import SetupError
from toolsearch.support.checks import whole
from toolsearch_indexes.encoders.loading import Once, digest, require, usable_cores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OnnxEncoder"]

MOST_THREADS = 4


@dataclass(frozen=True)
class _Model:
    session: Any
    tokenizer: Any
    inputs: frozenset[str]
    width: int
    pad: int  # the id of a token that the attention mask leaves out


class OnnxEncoder:
    """`model` and `tokenizer` are files: model.onnx, quantised or not, and the tokenizer.json that belongs to it.

    In place of tokenizer.json it takes the vocab.txt of a model that reads lower-case words as BERT does. The model's
    first output is used. Token vectors are pooled over the attention mask ("mean", or "cls" for the first token) and
    normalised; an output with one vector per text is only normalised. Texts are cut at `max_tokens`.

    Texts of like length run together, up to `batch_tokens` tokens, and up to `threads` such batches at a time: by
    default as many as there are cores, at most four. Missing files are a `SetupError` at once.
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
        batch_tokens: int = 256,
        threads: int | None = None,
    ) -> None:
        require("OnnxEncoder", ("numpy", "onnxruntime", "tokenizers"), "onnx")
        self._files = (Path(model), Path(tokenizer))
        for file in self._files:
            if not file.is_file():
                raise SetupError(f"there is no file {str(file)!r}: OnnxEncoder takes a model.onnx and a tokenizer.json")
        whole("batch_tokens", batch_tokens)
        whole("threads", threads, none="for the number of cores, up to four")
        self._pooling = pooling
        self._prompts = {True: query_prompt, False: document_prompt}
        self._max_tokens = max_tokens
        self._batch_tokens = batch_tokens
        self._threads = threads or min(usable_cores(), MOST_THREADS)
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
        filled = [row for row, text in enumerate(texts) if text.strip()]
        tokens = model.tokenizer.encode_batch([self._prompts[query] + texts[row] for row in filled])
        ids = {row: each.ids for row, each in zip(filled, tokens, strict=True)}
        batches = list(self._batches(ids))
        threads = min(self._threads, len(batches))
        if threads < 2:
            pooled = [self._pooled(model, [ids[row] for row in batch]) for batch in batches]
        else:
            with ThreadPoolExecutor(threads) as pool:
                pooled = list(pool.map(lambda batch: self._pooled(model, [ids[row] for row in batch]), batches))
        for batch, vectors in zip(batches, pooled, strict=True):
            rows[batch] = vectors
        return rows

    def _batches(self, ids: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
        """The rows in batches. Texts of like length go together: a batch takes as long as if all were the longest."""
        batch: list[int] = []
        for row in sorted(ids, key=lambda row: len(ids[row])):
            if batch and len(ids[row]) * (len(batch) + 1) > self._batch_tokens:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    def _pooled(self, model: _Model, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        import numpy as np

        longest = max(map(len, ids))
        mask = np.array([[1] * len(each) + [0] * (longest - len(each)) for each in ids], np.int64)
        padded = np.array([[*each, *[model.pad] * (longest - len(each))] for each in ids], np.int64)
        arrays = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}
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

        model, tokenizer_file = self._files
        try:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1  # threads for batches gain more than threads within one, and never spin
            session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
            tokenizer = _tokenizer(tokenizer_file)
        except Exception as error:  # both raise classes of their own, and plain Exception
            raise SetupError(f"{str(model)!r} with {str(tokenizer_file)!r} cannot be loaded: {error}") from error
        inputs = frozenset(each.name for each in session.get_inputs())
        if unknown := inputs - {"input_ids", "attention_mask", "token_type_ids"}:
            raise SetupError(f"the model {str(model)!r} wants inputs this encoder does not know: {sorted(unknown)}")
        width = session.get_outputs()[0].shape[-1]
        if not isinstance(width, int):
            raise SetupError(f"the first output of {str(model)!r} states no width: {width!r}")
        pad = (tokenizer.padding or {}).get("pad_id", 0)
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens)
        return _Model(session, tokenizer, inputs, width, pad)

    def _find_name(self) -> str:
        model, _ = self._files
        settings = repr((self._pooling, self._max_tokens, self._prompts))
        return f"{model.resolve().parent.name}/{model.name}@{digest(self._files, settings)}"


def _tokenizer(file: Path) -> Any:
    """The tokenizer in a tokenizer.json, or BERT's for lower-case words with the vocabulary in a vocab.txt."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import BertProcessing

    if file.suffix != ".txt":
        return Tokenizer.from_file(str(file))
    tokenizer = Tokenizer(WordPiece.from_file(str(file), unk_token="[UNK]"))  # noqa: S106 it is no password
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    ids = tokenizer.get_vocab()
    last, first = ((token, ids[token]) for token in ("[SEP]", "[CLS]"))
    tokenizer.post_processor = BertProcessing(last, first)
    return tokenizer
