"""Larger catalogs for measuring speed and scale: recombined from a given one by a seed, and always marked as derived.

Servers are copied under coined names. In each copy the tools' verbs and objects, and three words in ten of their
descriptions, come from tools of another server. The same seed gives the same tools, and a larger catalog begins with
the smaller one.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

from toolsearch import SetupError, Tool
from toolsearch_evals.data.cases import Dataset

__all__ = ["derive_tools", "derived_notes", "write_derived_set"]

MIXED = 0.3  # of the words of a derived description come from another tool
MARK = "derived.json"
_KEPT = ("cases.jsonl", "examples.jsonl", "queries*.jsonl")  # what a derived set copies unchanged
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_SYLLABLES = tuple(a + b for a in "b br d f g k l m n p r s t v z".split() for b in "aeiou")


def derive_tools(tools: Sequence[Tool], size: int, seed: int) -> tuple[list[Tool], int]:
    """`size` tools, first the given ones and then tools derived from them; and the number of derived tools."""
    if not tools:
        raise SetupError("there are no tools to derive others from")
    if size < 1:
        raise SetupError(f"a catalog of {size} tools cannot be made; pass 1 or more")
    made = list({each.id: each for each in tools}.values())
    given = min(size, len(made))
    more = _more(made, random.Random(seed))
    return made[:given] + [next(more)[0] for _ in range(size - given)], size - given


def write_derived_set(dataset: Dataset, size: int, seed: int, folder: Path) -> list[Path]:
    """Writes a derived data set of `size` tools: tools, unchanged cases, a card and a mark. Returns the files.

    Raises `SetupError` if the set has that many tools already, and for a folder that holds another data set.
    """
    catalog = dataset.catalog()
    if dataset.folder is None:
        raise SetupError(f"{dataset.name!r} is made by a function; only a data set in a folder can be derived from")
    if size <= len(catalog):
        raise SetupError(f"{dataset.name!r} has {len(catalog)} tools already; {size} need not be derived. Pass more.")
    if (folder / "tools.jsonl").exists() and not (folder / MARK).exists():
        raise SetupError(f"the folder {str(folder)!r} holds a data set that was not derived; name another with --out")
    given = [dict(definition) for definition in dataset.definitions]
    more = _more(list(catalog), random.Random(seed))
    lines = given + [_definition(*next(more), dataset.ids_are_names) for _ in range(size - len(catalog))]
    texts = {"tools.jsonl": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)}
    kept = [file for pattern in _KEPT for file in sorted(dataset.folder.glob(pattern))]
    for file in kept:
        texts[file.name] = file.read_text("utf-8")
    numbers = {"from": dataset.name, "seed": seed, "tools": size, "given": len(catalog)}
    texts["CARD.md"] = _CARD.format(**numbers, made=size - len(catalog))
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    texts[MARK] = json.dumps({"derived": True, **numbers, "files": files}, indent=1) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8", newline="\n")
    return [folder / name for name in texts]


def derived_notes(datasets: Sequence[Dataset]) -> tuple[str, ...]:
    """A sentence for each data set with derived tools, for a report's limits."""
    return tuple(
        f"Of the {len(each.definitions):,} tools of {each.name}, {count:,} are derived: made up from the others by "
        "`toolsearch eval derive`, and named by no label."
        for each in {id(d.definitions): d for d in datasets}.values()
        if (count := each.derived)
    )


def _more(tools: Sequence[Tool], rng: random.Random) -> Iterator[tuple[Tool, Tool]]:
    """Derived tools without end, each with the one it was made from, server by server."""
    servers: dict[str | None, list[Tool]] = {}
    for each in tools:
        servers.setdefault(each.server, []).append(each)
    taken = {each.server for each in tools}
    for group in cycle(servers.values()):
        others = rng.choice(list(servers.values()))
        server = _coined(rng, taken)
        names: set[str] = set()
        for like in group:
            other = rng.choice(others)
            name = _swapped(like.name, other.name, rng)
            while name in names:
                name = f"{name}_{rng.randrange(10)}"
            names.add(name)
            description = _mixed(like, other, server, rng)
            yield replace(like, id=f"{server}/{name}", name=name, server=server, description=description), like


def _coined(rng: random.Random, taken: set[str | None]) -> str:
    """A server name that no other has, as real products also bring a word of their own into a catalog."""
    name = ""
    while not name or name in taken:
        name += "".join(rng.choice(_SYLLABLES) for _ in range(1 if name else 3))
    taken.add(name)
    return name


def _swapped(like: str, other: str, rng: random.Random) -> str:
    """The verb of one name with the object of the other, in the style of the first."""
    own, foreign = (_PART.findall(name) or ["do"] for name in (like, other))
    if rng.random() < 0.5:
        own, foreign = foreign, own
    parts: list[str] = [own[0], *(foreign[1:] or foreign)]
    between = next((mark for mark in like if mark in "_-."), "" if re.search("[a-z][A-Z]", like) else "_")
    if between:
        return between.join(parts).lower()[:200]
    return (parts[0].lower() + "".join(part.capitalize() for part in parts[1:]))[:200]


def _mixed(like: Tool, other: Tool, server: str, rng: random.Random) -> str:
    foreign = re.findall(r"\w+", other.description) or [other.name]
    own = set(_PART.findall((like.server or "").lower()))
    words = like.description.split()
    words = [server.capitalize() if word.strip(".,;:()'").lower() in own else word for word in words]
    return " ".join(rng.choice(foreign) if rng.random() < MIXED else word for word in words)


def _definition(made: Tool, like: Tool, ids_are_names: bool) -> dict[str, Any]:
    names = {"name": made.id, "native_name": made.name} if ids_are_names else {"name": made.name}
    return {
        "server": made.server,
        **names,
        "description": made.description,
        "input_schema": made.input_schema,
        "annotations": {"readOnlyHint": made.kind == "read"},
        **({"category": made.category} if made.category else {}),
        "_meta": {"derived": True, "from": like.id},
    }


_CARD = """\
# Derived from {from}

**These tools are derived**, not written and not collected: {made} of {tools} were made up by a command from the {given}
of `{from}`, for measuring speed and scale.

    toolsearch eval derive --dataset {from} --size {tools} --seed {seed}

Servers are copied under coined names; verbs, objects and three words in ten of each description come from tools of
another server. Each such tool has `"derived": true` in its `_meta`, next to the id of the tool it was made from.

The cases are those of `{from}`, and their labels name only its tools. A derived tool may look like a labelled one, so
a ranking on this set shows how an index copes with many look-alikes, not how good it is.
"""
