"""The indexes under test by notation: "keyword", "hybrid:sentence-transformers", "vector:static=FOLDER".

The part before the colon names an index by its entry point. After the colon comes the encoder that the index takes, and
after "=" the encoder's model: a folder, a package or a name. Reports show only the last part of a model's folder, so
that they name no machine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from toolsearch import SetupError, ToolIndex
from toolsearch.support.plugins import plugin

__all__ = ["check_notation", "installed_indexes", "label", "open_backend"]


def open_backend(notation: str, wrapped: Callable[[Any], Any] = lambda encoder: encoder) -> ToolIndex:
    """A new, empty index. All indexes of this process that name an encoder share it; `wrapped` may wrap it.

    Raises `SetupError` for an unknown name, and if an encoder is named for an index that takes none.
    """
    check_notation(notation)
    name, encoder, model = _parts(notation)
    make = plugin("index", "toolsearch.indexes", name).load()
    options: dict[str, Any] = {"encoder": wrapped(_encoder(encoder, model))} if encoder else {}
    if "in_background" in inspect.signature(make).parameters:  # what is measured is the index when it is ready
        options["in_background"] = False
    index: ToolIndex = make(**options)
    return index


def check_notation(notation: str) -> None:
    """Raises `SetupError` for a notation that cannot be opened. Imports no package that an encoder needs."""
    name, encoder, model = _parts(notation)
    point = plugin("index", "toolsearch.indexes", name)
    if not encoder and ":" not in notation:
        return
    plugin("encoder", "toolsearch.encoders", encoder)
    if "encoder" not in inspect.signature(point.load()).parameters:
        raise SetupError(f"the index {name!r} takes no encoder, so {notation!r} cannot be opened; write {name!r}")
    if "=" in notation and not model:
        raise SetupError(f"{notation!r} names no model after '='")


def installed_indexes() -> list[str]:
    """The names of all installed indexes, except "auto", which opens one of the others, and "best", which is slow."""
    return sorted(
        point.name for point in entry_points(group="toolsearch.indexes") if point.name not in ("auto", "best")
    )


def label(notation: str) -> str:
    """The notation as reports show it, without the path of a model's folder."""
    name, encoder, model = _parts(notation)
    if not model:
        return notation
    return f"{name}:{encoder}={Path(model).resolve().name if Path(model).exists() else model}"


def _parts(notation: str) -> tuple[str, str, str]:
    name, _, encoding = notation.partition(":")
    encoder, _, model = encoding.partition("=")
    return name, encoder, model


@cache
def _encoder(name: str, model: str) -> Any:
    make = plugin("encoder", "toolsearch.encoders", name).load()
    return make(model) if model else make()
