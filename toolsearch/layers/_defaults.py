"""The layers an agent has by default. A layer of the program with the same name takes the place of a default one."""

from __future__ import annotations

from collections.abc import Collection

from toolsearch import layers
from toolsearch.protocols import Layer

__all__ = ["DEFAULTS", "default_layers"]

DEFAULTS = ("logs", "limits", "truncate")  # outermost first


def default_layers(own: Collection[object] = ()) -> list[Layer]:
    """The default layers, outermost first, without those whose name one of the program's own layers has."""
    names = {getattr(layer, "name", None) for layer in own}
    return [getattr(layers, name)() for name in DEFAULTS if name not in names]
