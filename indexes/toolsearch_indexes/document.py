"""How a tool becomes text: its fields and their weights. The one place that decides."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.catalog import Tool
from toolsearch.schema import argument_texts

__all__ = ["FIELDS", "Field", "texts"]


@dataclass(frozen=True, slots=True)
class Field:
    """`weight`: what a word counts here. `pivot`: words up to which length costs nothing (Singhal et al., 1996).

    The pivots are constants, not averages over the catalog, so what a tool scores does not depend on its neighbours
    or on the order in which they came.
    """

    weight: float
    pivot: int


FIELDS = {
    "name": Field(3.0, 3),
    "description": Field(1.0, 25),
    "server": Field(1.0, 3),
    "examples": Field(1.0, 12),
    "arguments": Field(0.5, 5),
    "argument texts": Field(0.25, 60),
}


def texts(tool: Tool) -> dict[str, str]:
    """The text of each field of a tool."""
    names, told = argument_texts(tool.input_schema)
    return {
        "name": tool.name,
        "description": " ".join(filter(None, (tool.title, tool.description))),
        "server": " ".join(filter(None, (tool.server, tool.category, *tool.tags))),
        "examples": " ".join(tool.examples),
        "arguments": " ".join(names),
        "argument texts": " ".join(told),
    }
