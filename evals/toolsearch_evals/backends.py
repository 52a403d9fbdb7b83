"""The indexes under test by notation: "keyword", "hybrid:sentence-transformers", "vector:static=FOLDER".

Before the colon is an index by its entry point, behind it the encoder it takes, behind "=" the encoder's model: a
folder, a package, a name. In reports a model in a folder goes by the folder's last part, so that no machine is named.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from toolsearch import SetupError, ToolIndex, open_index
from toolsearch.support.plugins import plugin

__all__ = ["check_notation", "installed", "label", "open_backend"]


def open_backend(notation: str, wrapped: Callable[[Any], Any] = lambda encoder: encoder) -> ToolIndex:
    """A new, empty index. One encoder serves all indexes of this process that name it; `wrapped` may put one around it.

    Raises `SetupError` for an unknown name, and for an encoder where the index takes none.
    """
    check_notation(notation)
    name, encoder, model = _parts(notation)
    if not encoder:
        return open_index(name)
    made: ToolIndex = plugin("index", "toolsearch.indexes", name).load()(encoder=wrapped(_encoder(encoder, model)))
    return made


def check_notation(notation: str) -> None:
    """Raises `SetupError` for what cannot be opened, without importing a package that an encoder needs."""
    name, encoder, model = _parts(notation)
    point = plugin("index", "toolsearch.indexes", name)
    if not encoder and ":" not in notation:
        return
    plugin("encoder", "toolsearch.encoders", encoder)
    if "encoder" not in inspect.signature(point.load()).parameters:
        raise SetupError(f"the index {name!r} takes no encoder, so {notation!r} cannot be opened; write {name!r}")
    if "=" in notation and not model:
        raise SetupError(f"{notation!r} names no model behind '='")


def installed() -> list[str]:
    """The names of all indexes there are, without "auto", which is one of the others."""
    return sorted(point.name for point in entry_points(group="toolsearch.indexes") if point.name != "auto")


def label(notation: str) -> str:
    """The notation as reports show it."""
    name, encoder, model = _parts(notation)
    if not model:
        return notation
    return f"{name}:{encoder}={Path(model).resolve().name if Path(model).exists() else model}"


def _parts(notation: str) -> tuple[str, str, str]:
    name, _, behind = notation.partition(":")
    encoder, _, model = behind.partition("=")
    return name, encoder, model


@cache
def _encoder(name: str, model: str) -> Any:
    made = plugin("encoder", "toolsearch.encoders", name).load()
    return made(model) if model else made()
