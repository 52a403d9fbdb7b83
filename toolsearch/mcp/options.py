"""The options of ours in an `mcp.json`: a misspelt one is refused, for it would protect nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from difflib import get_close_matches

from toolsearch import SetupError
from toolsearch.support import checks

__all__ = ["checked_options", "warn_of_misplaced"]

log = logging.getLogger("toolsearch.mcp")

OF_A_SERVER = frozenset(
    "allow ask connect_seconds connections default deny idle_seconds pin protocol refresh_seconds required roles "
    "search_tool session trust unhinted".split()
)
OF_ALL = OF_A_SERVER | frozenset(
    "cache confirm index log mode pins result_tokens search_seconds sessions".split()
)  # the latter are those of the gateway
_TELLING = ("allow", "ask", "deny", "default", "confirm", "mode")  # words that are looked for at the wrong level


def checked_options(value: object, server: str | None = None) -> Mapping[str, object]:
    """What stands under "toolsearch" in the entry of a server, or at the top of the file; nothing is no option.

    Raises `SetupError` for what is no object, for an unknown option, for one that stands in an entry and is for all
    servers, and for a `session`, `required`, `roles` or `trust` that would be ignored.
    """
    at = "" if server is None else f"server {server!r}: "
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise checks.wrong(f"{at}'toolsearch'", "an object of options", value)
    known = OF_ALL if server is None else OF_A_SERVER
    for name in value:
        if name not in known:
            raise SetupError(f"{at}{_unknown(str(name), known)}")
    if value.get("session") is not None:
        checks.choice(f"{at}session", value["session"], "shared", "client")
    if value.get("required") is not None:
        checks.flag(f"{at}required", value["required"])
    for name in ("roles", "trust"):
        _check_texts(f"{at}{name}", value.get(name))
    return value


def _unknown(name: str, known: frozenset[str]) -> str:
    if name in OF_ALL:
        return f"the option {name!r} is for all servers: write it under 'toolsearch' at the top of the configuration"
    near = get_close_matches(name.casefold(), sorted(known), 1)
    meant = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(known))}"
    return f"there is no option {name!r} under 'toolsearch'; {meant}"


def _check_texts(option: str, value: object) -> None:
    items = [value] if value is None or isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(each is None or isinstance(each, str) for each in items):
        raise checks.wrong(option, "a text or a list of texts", value)


def warn_of_misplaced(table: Mapping[str, object], place: str) -> None:
    """Warns of a key beside "toolsearch" that was probably meant to stand inside: there it does nothing."""
    for name in _TELLING:
        if name in table and not isinstance(table[name], Mapping):
            log.warning(
                "%s: %r does nothing there. If it is meant for toolsearch, write it as \"toolsearch\": {\"%s\": …}",
                place, name, name,
            )  # fmt: skip
