"""Names of arguments that every provider accepts, made from those that one refuses.

Anthropic refuses a whole request for one argument with another name. The names are the same for every provider, so that
what a model calls is mapped back without knowing which one it was.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["renamed"]

_LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LONGEST = 64


def renamed(names: Iterable[str]) -> dict[str, str]:
    """New names, and the names that they stand for: all that are not legal. A new name is like no other one.

    It depends on nothing but the names, and not on their order: `filter[app]` becomes `filter_app`, and has a hash at
    its end only where that could be another one.
    """
    known = list(dict.fromkeys(names))
    odd = [name for name in known if not _LEGAL.fullmatch(name)]
    if not odd:
        return {}
    taken = set(known) - set(odd)
    plain = {name: re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") for name in odd}
    often = Counter(plain.values())
    made: dict[str, str] = {}
    for name in sorted(odd):
        new = plain[name]
        if not new or len(new) > _LONGEST or often[new] > 1 or new in taken or new in made:
            new = _with_hash(new, name, taken | made.keys())
        made[new] = name
    return made


def _with_hash(plain: str, name: str, taken: set[str]) -> str:
    """A name with a short hash of the original at its end."""
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    for length in (8, 16, 32):
        new = f"{plain[: _LONGEST - length - 1] or 'argument'}_{digest[:length]}"
        if new not in taken:
            return new
    return f"argument_{digest[:55]}"
