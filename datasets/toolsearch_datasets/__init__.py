"""The data sets that ship with toolsearch, and where their files lie."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["manifest", "names", "path"]

_HERE = Path(__file__).parent


@cache
def manifest() -> dict[str, dict[str, Any]]:
    """By name: title, licence, provenance, counts, and `files` with the SHA-256 of each."""
    with (_HERE / "manifest.toml").open("rb") as file:
        return {entry["name"]: entry for entry in tomllib.load(file)["dataset"]}


def names() -> tuple[str, ...]:
    """The data sets there are, in the order of the manifest."""
    return tuple(manifest())


def path(name: str) -> Path:
    """The folder of a data set: `tools.jsonl`, `cases.jsonl`, `CARD.md`, and perhaps `examples.jsonl`.

    Raises `LookupError` for an unknown name.
    """
    if name not in manifest():
        raise LookupError(f"there is no data set {name!r}; there are: {', '.join(map(repr, names()))}")
    return _HERE / name
