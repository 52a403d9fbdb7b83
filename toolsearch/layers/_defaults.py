"""The layers an agent has without being told: one of the same name in its list takes a default's place."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from toolsearch import layers

__all__ = ["DEFAULTS", "default_layers"]

DEFAULTS = ("logs", "limits", "truncate")  # outermost first


def default_layers(given: Collection[Any] = ()) -> list[Any]:
    """The default layers, outermost first, but for those whose name a given layer has."""
    names = {getattr(layer, "name", None) for layer in given}
    return [getattr(layers, name)() for name in DEFAULTS if name not in names]
