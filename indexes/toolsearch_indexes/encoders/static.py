"""Static encoders: each token has a vector, a text is their mean. A tenth of a millisecond a query, and no network.

Two kinds of files are read: those of model2vec (also as sentence-transformers stores a StaticEmbedding), and those the
package wordllama ships, whose own loader looks for one of them at the wrong place and then wants a download.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from toolsearch.errors import MissingExtra, SetupError
from toolsearch_indexes.encoders.loading import Once, digest, model_folder, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["StaticEncoder"]

_BATCH = 1_024  # texts tokenized together
_FEW = 8  # texts that are sooner read one by one than by threads
_MAX_TOKENS = 512  # model2vec's own limit, where the model's config states none


@dataclass(frozen=True)
class _Files:
    weights: Path
    tokenizer: Path
    config: Path | None
    tensor: str
    label: str

    @property
    def all(self) -> list[Path]:
        return [self.weights, self.tokenizer, *([self.config] if self.config else [])]


@dataclass(frozen=True)
class _Model:
    name: str
    tokenizer: Any
    table: NDArray[np.float32]  # a row for each token, or for each cluster of tokens
    mapping: NDArray[np.int64] | None  # token -> row, in a model whose vocabulary is clustered
    weights: NDArray[np.float32] | None  # of each token, in such a model
    dropped: int | None  # the token for what is unknown, which is left out
    max_characters: int | None


class StaticEncoder:
    """A model2vec or wordllama model.

    `model` is "wordllama" for the model in that package (256 wide), a folder, the import name of another package that
    ships a model2vec model, or the name of a model in the cache of the Hugging Face hub. Nothing is downloaded: a
    missing model is a `SetupError` at once, or `MissingExtra` if installing a package is enough.
    """

    def __init__(self, model: str | os.PathLike[str] = "wordllama") -> None:
        require("the static encoder", ("numpy", "tokenizers", "safetensors"), "static")
        self._files = _files(model)
        self._model = Once(self._load)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._files.label!r})"

    @property
    def name(self) -> str:
        return self._model().name

    @property
    def width(self) -> int:
        return int(self._model().table.shape[1])

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A mean for each text, not normalised; zeros for a text without tokens. Queries are encoded like documents."""
        import numpy as np

        model = self._model()
        rows = np.zeros((len(texts), model.table.shape[1]), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = [text[: model.max_characters] for text in texts[start : start + _BATCH]]
            for row, tokens in enumerate(_tokens(model.tokenizer, batch), start):
                ids = np.asarray(tokens.ids, np.int64)
                if model.dropped is not None:
                    ids = ids[ids != model.dropped]
                if len(ids):
                    vectors = model.table[ids if model.mapping is None else model.mapping[ids]]
                    vectors = vectors if model.weights is None else vectors * model.weights[ids, None]
                    rows[row] = vectors.sum(axis=0) / len(ids)
        return rows

    def _load(self) -> _Model:
        """The model in these files as they are now; encoders of this process that use the same files share it."""
        key = tuple((str(file), stat.st_mtime_ns, stat.st_size) for file in self._files.all for stat in [file.stat()])
        with _loading:
            model = _loaded.get(key)
            if model is None:
                model = _loaded[key] = self._read()
            return model

    def _read(self) -> _Model:
        import numpy as np
        from safetensors import SafetensorError, safe_open
        from tokenizers import Tokenizer

        files = self._files
        try:
            with safe_open(files.weights, framework="np") as opened:
                names = opened.keys()
                tensors = {name: opened.get_tensor(name) for name in names}
            tokenizer = Tokenizer.from_file(str(files.tokenizer))
            config = json.loads(files.config.read_text("utf-8")) if files.config else {}
        except (SafetensorError, OSError, ValueError, TypeError) as error:
            raise SetupError(f"the static model {str(files.weights.parent)!r} cannot be read: {error}") from error
        except Exception as error:  # tokenizers raises no class of its own
            raise SetupError(f"{str(files.tokenizer)!r} cannot be read as a tokenizer: {error}") from error
        if files.tensor not in tensors or tensors[files.tensor].ndim != 2:
            others = ", ".join(map(repr, sorted(tensors)[:5]))
            raise SetupError(
                f"{str(files.weights)!r} holds {others}, but no table {files.tensor!r}: it is not a static model. For "
                "a neural one use SentenceTransformerEncoder or OnnxEncoder"
            )
        table = tensors[files.tensor].astype(np.float32)
        mapping = tensors["mapping"].astype(np.int64) if "mapping" in tensors else None
        weights = tensors["weights"].astype(np.float32) if "weights" in tensors else None
        tokens = tokenizer.get_vocab()
        last = max(tokens.values(), default=-1)
        short = [part for part in (weights, table if mapping is None else mapping) if part is not None]
        if any(len(part) <= last for part in short):
            rows = min(map(len, short))
            raise SetupError(f"{str(files.weights)!r} has {rows} rows for the {last + 1} tokens of its tokenizer")
        tokenizer.no_padding()
        tokenizer.no_truncation()
        model2vec = files.config is not None
        max_characters = None
        if model2vec and (max_tokens := config.get("max_length", _MAX_TOKENS)) is not None:
            tokenizer.enable_truncation(max_tokens)
            max_characters = max_tokens * int(np.median([len(token) for token in tokens]))
        return _Model(
            name=f"{files.label}@{digest(files.all)}",
            tokenizer=tokenizer,
            table=table,
            mapping=mapping,
            weights=weights,
            dropped=_unknown(tokenizer) if model2vec else None,
            max_characters=max_characters,
        )


_loading = threading.Lock()
_loaded: WeakValueDictionary[Any, _Model] = WeakValueDictionary()


def _tokens(tokenizer: Any, texts: list[str]) -> Iterable[Any]:
    """The tokens of each text. A few texts are read one by one: to wake threads for them takes longer."""
    batches = [texts] if len(texts) > _FEW else [[text] for text in texts]
    return (each for batch in batches for each in tokenizer.encode_batch_fast(batch, add_special_tokens=False))


def _unknown(tokenizer: Any) -> int | None:
    """The id of the token for what is unknown, which model2vec leaves out of the mean."""
    model = json.loads(tokenizer.to_str())["model"]
    token = model.get("unk_token")
    if token is None:
        unknown: int | None = model.get("unk_id")
        return unknown
    token_id: int | None = tokenizer.token_to_id(token)
    return token_id


def _files(model: str | os.PathLike[str]) -> _Files:
    """The files of a model, or `SetupError` with what to do."""
    if model == "wordllama":  # even if the working directory has a folder of that name
        folder = model_folder("wordllama", "wordllama.py")
        if folder is None:
            raise MissingExtra("the static encoder", "wordllama", "static")
        return _wordllama(folder)
    folder = Path(model)
    if (folder / "weights").is_dir() and (folder / "tokenizers").is_dir():
        return _wordllama(folder)
    place = model_folder(model, "model.safetensors")
    if place is None and (whole := model_folder(model, "0_StaticEmbedding/model.safetensors")) is not None:
        place = whole / "0_StaticEmbedding"
    if place is None:
        raise SetupError(
            f"there is no static model {os.fspath(model)!r} on this machine: pass a folder with model.safetensors, "
            "tokenizer.json and config.json, or a name that is in the cache of the Hugging Face hub (put it there "
            "with: hf download NAME). The encoder itself never downloads"
        )
    if not (place / "tokenizer.json").is_file():
        raise SetupError(f"the static model {str(place)!r} has no tokenizer.json")
    config = place / "config.json"
    stored = place.name == "0_StaticEmbedding" or not config.is_file()  # as sentence-transformers stores it
    label = Path(model).name if Path(model).exists() else os.fspath(model)
    return _Files(
        place / "model.safetensors",
        place / "tokenizer.json",
        None if stored else config,
        "embedding.weight" if stored else "embeddings",
        label,
    )


def _wordllama(folder: Path) -> _Files:
    weights = sorted((folder / "weights").glob("*_*.safetensors"))
    if len(weights) != 1:
        raise SetupError(f"{str(folder / 'weights')!r} holds {len(weights)} models, not one")
    label = weights[0].stem
    tokenizer = folder / "tokenizers" / f"{label.rpartition('_')[0]}_tokenizer_config.json"
    if not tokenizer.is_file():
        raise SetupError(f"the tokenizer of {str(weights[0])!r} is missing: there is no {str(tokenizer)!r}")
    return _Files(weights[0], tokenizer, None, "embedding.weight", f"wordllama-{label}")
