"""What tools are called: base names, names a provider accepts, exact look-ups and near misses."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable
from difflib import SequenceMatcher

__all__ = ["LEGAL", "Names", "base_name", "provider_name", "squashed"]

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what OpenAI and Anthropic both accept
SIMILAR = 0.5  # share of common letters; a name with fewer is not offered for another
_OTHER = re.compile("[^a-z0-9]+")
_SEPARATORS = str.maketrans("-. ", "___")
_PREFIX = re.compile(r".*(?:__|/|::|:|\.)(?=[^\W_])")


def squashed(text: str) -> str:
    """Letters and digits alone, case-folded: `Create-Issue` and `create_issue` are spelled the same."""
    if text.isascii():
        return _OTHER.sub("", text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum() or unicodedata.category(c)[0] == "M")  # marks: some are vowels


def base_name(name: str, server: str | None = None) -> str:
    """The name without its namespace: `mcp__kit__ask_helper`, `kit/ask_helper`, `ask_helper_mcp_kit`: ask_helper."""
    prefix = _PREFIX.match(name)  # not `sub`, which looks at every place and takes the square of a name's length
    short = name[prefix.end() :] if prefix else name
    if "_mcp_" in short:
        short = short.partition("_mcp_")[0] or short
    if server and _flat(short).startswith(f"{_flat(server)}_"):
        short = short[len(server) :].lstrip("-_. ") or short
    return short


def _flat(name: str) -> str:
    return name.lower().translate(_SEPARATORS)


def provider_name(name: str, tool_id: str, server: str | None, *, shared: bool, digits: int = 8) -> str:
    """The name sent to a provider: a legal name that no other tool has stays; any other gets a hash of the tool's id.

    It depends only on the tool and on whether its plain name is `shared`, so the order of registration does not matter.
    """
    if LEGAL.fullmatch(name) and not shared:
        return name
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{server}_{name}" if shared and server else name).strip("_") or "tool"
    return f"{readable[: 63 - digits]}_{hashlib.sha256(tool_id.encode()).hexdigest()[:digits]}"


class Names:
    """All names of a catalog's tools, kept up to date one tool at a time."""

    def __init__(self) -> None:
        self._exact: dict[str, set[str]] = {}
        self._trigrams: dict[str, set[str]] = {}
        self._spelled: dict[str, tuple[str, ...]] = {}

    def add(self, tool_id: str, spellings: Iterable[str]) -> None:
        """`spellings` are the id, the name and the base name; all lead to the tool, in any case and punctuation."""
        self._spelled[tool_id] = keys = tuple(dict.fromkeys(filter(None, map(squashed, spellings))))
        for key in keys:
            self._exact.setdefault(key, set()).add(tool_id)
        for trigram in _trigrams(keys):
            self._trigrams.setdefault(trigram, set()).add(tool_id)

    def remove(self, tool_id: str) -> None:
        keys = self._spelled.pop(tool_id, ())
        for table, entries in ((self._exact, keys), (self._trigrams, _trigrams(keys))):
            for entry in entries:
                if (ids := table.get(entry)) is not None:
                    ids.discard(tool_id)
                    if not ids:
                        del table[entry]

    def exact(self, text: str) -> list[str]:
        """Ids of the tools with this spelling, sorted."""
        return sorted(self._exact.get(squashed(text), ()))

    def near(self, text: str, limit: int = 3, among: Container[str] | None = None) -> list[str]:
        """Ids of the tools with the most similar names, best first; empty if none is similar.

        Names that share trigrams are compared letter by letter. Trigrams of very many names are skipped once rarer ones
        have found enough candidates, so that a look-up stays quick in a large catalog.
        """
        key = squashed(text[:64])
        wanted = _trigrams([key])
        holders = sorted((self._trigrams[t] for t in wanted if t in self._trigrams), key=len)
        shared: Counter[str] = Counter()
        for ids in holders:
            if len(shared) > 200 and len(ids) > 500:
                break
            shared.update(ids if among is None else (i for i in ids if i in among))
        closest = sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:100]
        alike = sorted((-max(_dice(wanted, _trigrams([s])) for s in self._spelled[i]), i) for i, _ in closest)[:10]
        scored = sorted((-max(SequenceMatcher(None, key, s).ratio() for s in self._spelled[i]), i) for _, i in alike)
        return [i for score, i in scored if -score >= SIMILAR][:limit]


def _dice(one: set[str], other: set[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _trigrams(keys: Iterable[str]) -> set[str]:
    return {f"^{key}$"[i : i + 3] for key in keys for i in range(len(key))}
