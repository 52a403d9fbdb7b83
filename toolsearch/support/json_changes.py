"""The difference between two states of a JSON object, and a state with a difference applied.

A difference says what has changed, key by key:

    {"+": {key: value}, "-": [key], "~": {key: difference}}          of an object: new or replaced, removed, changed
    {"@": [[place, removed, [item, …]], …]}                          of a list: items removed and put in at a place

Each part is left out if it is empty. The places of a list are applied in order, each to the list as it is by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolsearch.support.json_types import JsonObject

__all__ = ["changed", "difference"]

_PUT, _GONE, _INSIDE, _PLACES = "+", "-", "~", "@"


def difference(old: JsonObject, new: JsonObject) -> dict[str, Any]:
    """What `changed` needs to make `new` of `old`; empty if they are equal."""
    put: dict[str, Any] = {}
    inside: dict[str, Any] = {}
    for key, value in new.items():
        if key in old and _is_same(old[key], value):
            continue
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            inside[key] = difference(before, value)
        elif before and isinstance(before, list | tuple) and isinstance(value, list | tuple):
            inside[key] = {_PLACES: _splices(before, value)}
        else:
            put[key] = value
    gone = [key for key in old if key not in new]
    return {name: part for name, part in ((_PUT, put), (_GONE, gone), (_INSIDE, inside)) if part}


def changed(old: JsonObject, change: JsonObject) -> dict[str, Any]:
    """The state that a difference leads to; `old` stays as it is.

    Raises `KeyError`, `TypeError`, `ValueError` or `AttributeError` if the difference is not one of this state.
    """
    new = {**old, **change.get(_PUT, {})}
    for key in change.get(_GONE, ()):
        del new[key]
    for key, inner in change.get(_INSIDE, {}).items():
        new[key] = _spliced(old[key], inner[_PLACES]) if _PLACES in inner else changed(old[key], inner)
    return new


def _is_same(one: object, other: object) -> bool:
    return one == other and _key(one) == _key(other)


def _splices(old: Sequence[Any], new: Sequence[Any]) -> list[list[Any]]:
    """The places at which items of `old` leave and items of `new` come. Items that change their order do both."""
    remaining, coming = [*map(_key, old)], [*map(_key, new)]
    ahead, behind = set(coming), set(remaining)
    splices: list[list[Any]] = []
    at_old = at_new = 0
    while at_old < len(old) or at_new < len(new):
        if at_old < len(old) and at_new < len(new) and remaining[at_old] == coming[at_new]:
            at_old, at_new = at_old + 1, at_new + 1
            continue
        first, removed = at_new, at_old
        while at_old < len(old) and remaining[at_old] not in ahead:
            at_old += 1
        while at_new < len(new) and coming[at_new] not in behind:
            at_new += 1
        if (first, removed) == (at_new, at_old):  # both go on elsewhere: the rest is written anew
            at_old, at_new = len(old), len(new)
        splices.append([first, at_old - removed, list(new[first:at_new])])
    return splices


def _spliced(old: Sequence[Any], splices: Sequence[Sequence[Any]]) -> list[Any]:
    new = list(old)
    for place, removed, items in splices:
        if not 0 <= place <= len(new) - removed:
            raise ValueError(f"a list of {len(new)} items has no {removed} at place {place}")
        new[place : place + removed] = items
    return new


def _key(item: object) -> str:
    """An item as a text that equal ones share, and 1 and True do not."""
    return repr(item)
