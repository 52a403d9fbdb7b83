"""What a definition may say of its own tool: a server describes it, and the program decides what may be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from toolsearch.catalog.definitions import Definition
from toolsearch.catalog.marks import MARK_NAMES
from toolsearch.errors import SetupError
from toolsearch.support import checks

__all__ = ["TRUSTABLE", "check_trust", "limited"]

TRUSTABLE = ("server", "roles", *MARK_NAMES)
_DEFAULTS: Mapping[str, object] = {"kind": "read"}
_STRICTER: Mapping[str, object] = {"kind": "action", "alone": True, "repeatable": False}


def check_trust(trust: object) -> frozenset[str]:
    """The names in `trust`. Raises `SetupError` for one that is not in `TRUSTABLE`."""
    names = frozenset(checks.names("trust", trust))
    if unknown := names - set(TRUSTABLE):
        known = ", ".join(map(repr, TRUSTABLE))
        raise SetupError(f"trust names {min(unknown)!r}, which is none of {known}")
    return names


def limited(definition: Definition, *, of_server: bool, trust: Iterable[str]) -> Definition:
    """The definition without what its source may not decide, unless the program trusts it with that.

    A definition is a server's if the program says of which (`of_server`), if it is an object of an SDK, or if it has
    the form of MCP; but not if it brings a function, which no server can send. Of a server's marks only those count
    that ask for more care than the default. MCP's own hints count too: a tool without them has no restriction either.
    """
    trusted = frozenset(trust)
    options = dict(definition.options)
    if "server" in trusted and definition.claimed_server:
        options.setdefault("server", definition.claimed_server)
    if callable(options.get("run")) or not (of_server or _is_remote(definition.source)):
        return replace(definition, options=options)
    said = {key: options.pop(key) for key in ("roles", *MARK_NAMES) if key in options and key not in trusted}
    options |= {key: value for key, value in definition.hinted.items() if key in said}
    options |= {key: value for key, value in said.items() if key in _STRICTER and value == _STRICTER[key]}
    ignored = [key for key, value in said.items() if value not in (options.get(key), _DEFAULTS.get(key, False), [], ())]
    notices = [
        f"{key!r} of {options.get('name')!r} is what a server says of its tool, and does not count: pass {key}=… "
        f"yourself, or trust=[{key!r}]"
        for key in ignored
    ]
    return replace(definition, options=options, notices=(*definition.notices, *notices))


def _is_remote(source: object) -> bool:
    """Whether a source is an object of an SDK, or a dict in the form of MCP."""
    return "inputSchema" in source if isinstance(source, Mapping) else not callable(source)
