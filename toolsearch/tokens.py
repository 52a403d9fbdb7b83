"""Counting tokens offline: exactly if a vocabulary is on this machine, else by an estimate that says so."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import tempfile
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["ESTIMATE", "TokenCounter", "counter"]

# SHA-256 of the vocabularies as OpenAI publishes them, from tiktoken's own source.
_SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


@dataclass(frozen=True)
class TokenCounter:
    """Counts the tokens of text. `name` says how; `exact` is False for an estimate."""

    name: str
    exact: bool
    count: Callable[[str], int]

    def of(self, payload: object) -> int:
        """Tokens of a request, or of a part of it, as the compact JSON that is sent; text is counted as it stands."""
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        return self.count(text)


def _estimate(text: str) -> int:
    return -(-len(text) // 4)


ESTIMATE = TokenCounter("characters / 4 (estimate)", False, _estimate)


@cache
def counter(vocabulary: str = "o200k_base") -> TokenCounter:
    """The best counter that needs no network: tiktoken with a vocabulary already on disk, else `ESTIMATE`.

    It is looked for once per process: in tiktoken's cache, then in the package bpe-openai (both in the extra `tokens`).
    Text such as "<|endoftext|>" is counted as ordinary text.
    """
    if vocabulary not in _SHA256:
        raise ValueError(f"there is no vocabulary {vocabulary!r}; known are {', '.join(map(repr, _SHA256))}")
    try:
        import tiktoken
        from tiktoken_ext import openai_public
    except ImportError:
        return ESTIMATE
    data = _cached(vocabulary) or _packaged(vocabulary)
    if data is None:
        return ESTIMATE
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in data.splitlines() if line)}
    parameters = _without_download(getattr(openai_public, vocabulary), ranks)
    encoding = tiktoken.Encoding(**parameters)
    return TokenCounter(vocabulary, True, lambda text: len(encoding.encode_ordinary(text)))


def _without_download(make: object, ranks: dict[bytes, int]) -> dict[str, Any]:
    """The parameters of an encoding as tiktoken states them, its loader replaced by ranks already read."""
    if not isinstance(make, types.FunctionType):
        raise TypeError(f"tiktoken makes encodings by functions, not by {make!r}")
    scope = {**make.__globals__, "load_tiktoken_bpe": lambda *_, **__: ranks}
    parameters: dict[str, Any] = types.FunctionType(make.__code__, scope)()
    return parameters


def _cached(vocabulary: str) -> bytes | None:
    """The file that tiktoken downloaded earlier, named after the SHA-1 of its address."""
    url = f"https://openaipublic.blob.core.windows.net/encodings/{vocabulary}.tiktoken"
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    path = (
        Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache")
        / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    )
    return _verified(path.read_bytes(), vocabulary) if path.is_file() else None


def _packaged(vocabulary: str) -> bytes | None:
    spec = find_spec("bpe_openai")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "data" / f"{vocabulary}.tiktoken.gz"
        if path.is_file():
            return _verified(gzip.decompress(path.read_bytes()), vocabulary)
    return None


def _verified(data: bytes, vocabulary: str) -> bytes | None:
    return data if hashlib.sha256(data).hexdigest() == _SHA256[vocabulary] else None
