"""The names of tools and prompts at the gateway: always with their server's, legal everywhere, never others later.

A name depends on its server and its tool alone, so that no server that is added changes it.
"""

from __future__ import annotations

import hashlib
import re

__all__ = ["MOST_CHARACTERS", "served_name"]

MOST_CHARACTERS = (
    47  # clients put their own prefix before a name, as in `mcp__toolsearch__`, and providers take 64 in all
)
_DIGITS = 8  # of the hash that tells a changed name from others
_SIGNS = re.compile(r"[_-]+")
_OWN = frozenset(["searchtools", "calltool", "callaction", "fetchresult"])  # the gateway's own names, however spelled
_ILLEGAL = re.compile(r"[^A-Za-z0-9-]+|_{2,}")


def served_name(server: str, name: str) -> str:
    """`server__name`, with letters, digits, `_` and `-` alone, a letter first, and `__` once.

    A name that has to be changed for that, or cut, ends with a hash of both, so no two tools have one name. It is the
    server's part that is cut first: names of tools differ at the end.
    """
    before, own = _legal(server), _legal(name)
    if not before[:1].isalpha():
        before = f"s{before}" if before else "server"
    plain = f"{before}__{own}"
    is_free = _SIGNS.sub("", plain).lower() not in _OWN
    if before == server and own == name and len(plain) <= MOST_CHARACTERS and is_free:
        return plain
    digest = hashlib.sha256(f"{server}\0{name}".encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    room = MOST_CHARACTERS - _DIGITS - 3
    own = own[-max(room - len(before), room * 2 // 3) :].strip("_-") or "tool"
    before = before[: room - len(own)].rstrip("_-") or "s"
    return f"{before}__{own}_{digest}"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("_", text).strip("_")
