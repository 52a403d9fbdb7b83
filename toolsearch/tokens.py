"""Counting tokens offline: exactly if a vocabulary is on this machine, else by an estimate that says so.

Counting takes time in proportion to the text, whatever it holds, and never raises. The tokenizer takes the square of
the time for a long run of letters, spaces or signs, which an ordinary text does not have; so such a run is counted in
pieces, which makes at most a token or two a piece more.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import tempfile
import types
import unicodedata
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = ["ESTIMATE", "MEDIA_TOKENS", "TokenCounter", "counter"]

# SHA-256 of the vocabularies as OpenAI publishes them, from tiktoken's own source.
_SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

PIECE = 500  # characters
MEDIA_TOKENS = 1_000  # for an image or a file; providers count these by rules of their own

# An image or a file in the JSON of a request: long Base64 in an address, in a member of such a name, or in a list.
_LONG = 1_000  # characters; what is shorter costs no more as text
_BASE64 = rf"(?:[A-Za-z0-9+/=_-]|\\[nr]){{{_LONG},}}+"
_MEDIA = re.compile(rf'("(?:data|blob|base64|b64_json|file_data)":"|;base64,){_BASE64}|([\[,]"){_BASE64}(?="|\Z)')
_MAY_HOLD_MEDIA = re.compile(r';base64,|"(?:data|blob|base64|b64_json|file_data)":"|"images":\[')


@dataclass(frozen=True)
class TokenCounter:
    """Counts the tokens of text. `name` says how; `exact` is False for an estimate."""

    name: str
    exact: bool
    count: Callable[[str], int]

    def of(self, payload: object) -> int:
        """Tokens of a request, or of a part of it, as the compact JSON that is sent; text is counted as it stands.

        An image or another file in it counts `MEDIA_TOKENS`, however large: no model reads its data as text.
        """
        return self.count(payload) if isinstance(payload, str) else self.of_json(_compact(payload))

    def of_json(self, text: str) -> int:
        """As `of`, for the JSON of a request, or for a part of that text."""
        if _MAY_HOLD_MEDIA.search(text) is None:
            return self.count(text)
        rest, media = _MEDIA.subn(r"\1\2", text)
        return self.count(rest) + MEDIA_TOKENS * media


def _compact(payload: object) -> str:
    try:
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":"), default=_shown)
    except Exception:  # keys that are no text, a circle, too deep, a value that cannot be shown
        try:
            return repr(payload)
        except Exception:
            return type(payload).__name__


def _shown(value: object) -> str:
    """What JSON cannot hold, as text; bytes as Base64, as clients send them."""
    return base64.b64encode(value).decode() if isinstance(value, bytes | bytearray) else str(value)


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
    return TokenCounter(vocabulary, True, _bounded(encoding.encode_ordinary))


def _bounded(encode: Callable[[str], Sized]) -> Callable[[str], int]:
    """Counts by an encoding, in linear time; what it raises becomes the estimate."""

    def count(text: str) -> int:
        try:
            return sum(len(encode(piece)) for piece in _pieces(text))
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:  # what a library in Rust raises where it gives up is no Exception
            return _estimate(text)

    return count


def _pieces(text: str) -> Iterator[str]:
    """The text, cut within each long run of characters that a tokenizer may take for one word."""
    cuts = [0]
    if len(text) > 2 * PIECE:
        is_run = _run().fullmatch
        for at in range(0, len(text) - PIECE + 1, PIECE):  # a run of two pieces covers one of these whole
            if is_run(text, at, at + PIECE):
                cuts += [at, at + PIECE]
    return (text[start:end] for start, end in pairwise(dict.fromkeys([*cuts, len(text)])))


@cache
def _run() -> re.Pattern[str]:
    """Only letters and their marks, only spaces, or only signs: what tokenizers divide a text into."""
    marks = "".join(c for c in map(chr, range(0x0300, 0x11000)) if unicodedata.category(c)[0] == "M")
    return re.compile(rf"(?:[^\W\d_]|[{marks}\U000e0100-\U000e01ef])++|\s++|(?:[^\w\s]|_)++")


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
    try:
        return _verified(path.read_bytes(), vocabulary)
    except OSError:  # there is none, or another user of this machine owns it
        return None


def _packaged(vocabulary: str) -> bytes | None:
    spec = find_spec("bpe_openai")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "data" / f"{vocabulary}.tiktoken.gz"
        if path.is_file():
            return _verified(gzip.decompress(path.read_bytes()), vocabulary)
    return None


def _verified(data: bytes, vocabulary: str) -> bytes | None:
    return data if hashlib.sha256(data).hexdigest() == _SHA256[vocabulary] else None
