"""Descriptions that name another server's tool, and what sanitising has flagged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from toolsearch import Catalog, Tool
from toolsearch.catalog.names import folded
from toolsearch.catalog.sanitising import FLAGS, LOOK_ALIKE
from toolsearch_evals.doctor.findings import Finding

__all__ = ["flagged", "look_alikes", "names_of_others"]

_WORD = re.compile(r"[A-Za-z][\w.-]*\w")
_CLOSE = 0.6  # of the words of two descriptions are in both
_MOST_ALIKE = 50  # tools of one name are compared with each other
_SEVERAL_WORDS = re.compile(r"[a-z0-9][A-Z]|[_.-]")  # what no sentence has by chance


def flagged(tools: Iterable[Tool]) -> Iterator[Finding]:
    """The flags of sanitising as findings, under the same names; but see `look_alikes`."""
    for tool in tools:
        yield from (Finding(f, tool.id, FLAGS[f], tool.server or "") for f in tool.flags if f != LOOK_ALIKE)


def look_alikes(catalog: Catalog) -> Iterator[Finding]:
    """Tools of two servers with the same name, but for case and signs, that say nearly the same.

    The name alone says little: many services have a `create_issue`.
    """
    by_fold: dict[str, list[Tool]] = {}
    for tool in catalog:
        by_fold.setdefault(folded(tool.base_name), []).append(tool)
    for alike in by_fold.values():
        for tool in alike if len(alike) <= _MOST_ALIKE else ():
            others = [each for each in alike if each.server != tool.server and _is_close(each, tool)]
            if others:
                yield Finding("look-alike", tool.id, f"{others[0].id} says nearly the same", tool.server or "")


def _is_close(one: Tool, other: Tool) -> bool:
    first, second = ({*_WORD.findall(tool.description.lower())} for tool in (one, other))
    return bool(first) and len(first & second) >= _CLOSE * len(first | second)


def names_of_others(catalog: Catalog) -> Iterator[Finding]:
    """Tools whose texts have the name of another server's tool, in a spelling that no sentence has by chance."""
    owners: dict[str, set[str]] = {}
    folds: dict[str, set[str]] = {}
    for tool in catalog:
        owners.setdefault(tool.base_name, set()).add(tool.server or "")
        folds.setdefault(tool.server or "", set()).add(folded(tool.base_name))
    known = {name for name in owners if _SEVERAL_WORDS.search(name)}
    for tool in catalog:
        server = tool.server or ""
        for word in dict.fromkeys(_WORD.findall(" ".join(_texts(tool)))):
            if word in known and server not in owners[word] and folded(word) not in folds[server]:
                others = sorted(owners[word])
                whose = f"a tool of {others[0]}" if others[0] else "a tool without a server"
                yield Finding("names-another", tool.id, f"it names {word}, {whose}", server)
                break


def _texts(tool: Tool) -> Iterator[str]:
    """The description, and those of the arguments."""
    yield tool.description
    properties = tool.input_schema.get("properties")
    for argument in properties.values() if isinstance(properties, Mapping) else ():
        if isinstance(argument, Mapping) and isinstance(argument.get("description"), str):
            yield argument["description"]
