"""How a tool becomes text: its fields and their weights. The one place that decides."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.catalog import Tool
from toolsearch.schemas.argument_texts import argument_texts
from toolsearch_indexes.text import sentences, spellings

__all__ = ["EXAMPLES_COST", "FIELDS", "PASSAGES", "Field", "kept", "passages", "texts"]


@dataclass(frozen=True, slots=True)
class Field:
    """`weight`: what a word counts here. `pivot`: how many words cost nothing (Singhal et al., 1996).

    The pivots are constants, not averages over the catalog, so a tool's score does not depend on the other tools or on
    the order in which they were added.
    """

    weight: float
    pivot: int


# Heavier example queries win a point or two where every tool has some, and lose more for the tools that have none.
FIELDS = {
    "name": Field(3.0, 3),
    "description": Field(1.0, 25),
    "server": Field(1.0, 3),
    "examples": Field(1.0, 12),
    "enriched": Field(1.0, 12),
    "arguments": Field(0.5, 5),
    "argument texts": Field(0.25, 60),
}

# What each text weighs in the mean that is a tool's vector. Several texts are better than one long one: the name and
# the first sentence say what a tool is for, the rest what it is about. Measured; see docs/choose-an-index.md.
PASSAGES = {"all": 1.0, "first sentence": 0.5, "name": 0.5, "arguments": 0.6, "examples": 1.0, "enriched": 1.0}

# What example queries cost a tool at most, of what its words and its vector score; see `kept`.
EXAMPLES_COST = {"words": 0.25, "meaning": 0.06}


def kept(tool: Tool, kind: str) -> float:
    """The share of its scores that a tool keeps: 1 without example queries, the less the more of them it has.

    Example queries make a tool more like any request, not only like those that it serves. Where only some tools have
    queries, the others would lose their places to them.
    """
    queries = len(tool.examples) + len(tool.enriched)
    return 1 - EXAMPLES_COST[kind] * queries / (queries + 1)


def texts(tool: Tool) -> dict[str, str]:
    """The text of each field of a tool."""
    names, descriptions = argument_texts(tool.input_schema)
    return {
        "name": tool.name,
        "description": " ".join(filter(None, (tool.title, tool.description))),
        "server": " ".join(filter(None, (tool.server, tool.category, *tool.tags))),
        "examples": " ".join(tool.examples),
        "enriched": " ".join(tool.enriched),
        "arguments": " ".join(names),
        "argument texts": " ".join(descriptions),
    }


def passages(tool: Tool) -> dict[str, str]:
    """The texts whose weighted mean is a tool's vector, by their names in `PASSAGES`; empty ones are left out.

    Identifiers are split into words here, as tokenizers of language models know no `getUserById`.
    """
    field = texts(tool)
    name, server = _spelled(tool.base_name), _spelled(tool.server or "")
    by_kind = {
        "all": f"{server} {name}. {field['description']}".strip(),
        "first sentence": f"{name}. {next(iter(sentences(field['description'])), '')}".strip(),
        "name": f"{server} {name}".strip(),
        "arguments": f"{_spelled(field['arguments'])} {field['argument texts']}".strip(),
        "examples": field["examples"],
        "enriched": field["enriched"],
    }
    return {kind: text for kind, text in by_kind.items() if text}


def _spelled(name: str) -> str:
    """An identifier as words; a name in another script stays as it is."""
    return " ".join(spellings(name)) if name.isascii() else name
