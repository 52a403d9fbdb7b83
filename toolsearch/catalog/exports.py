"""What becomes of tools on their way to a provider, found out before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from toolsearch.catalog.tools import Tool
from toolsearch.errors import NotExportable
from toolsearch.schemas.export import Target, exported
from toolsearch.schemas.targets import RULES

__all__ = ["PROVIDERS", "ExportCheck", "Provider", "check_exports"]

Provider: TypeAlias = Target
PROVIDERS: tuple[Provider, ...] = ("openai", "anthropic", "gemini", "ollama")


@dataclass(frozen=True)
class ExportCheck:
    """What becomes of one tool for one provider: what of it is changed, or why it is `left_out` of every request."""

    tool: Tool
    target: Provider
    changes: tuple[str, ...] = ()
    left_out: str = ""


def check_exports(tools: Iterable[Tool], targets: Iterable[Provider]) -> Iterator[ExportCheck]:
    """The tools that a provider gets changed, or not at all; those that it gets as they are have no entry."""
    checked = list(tools)
    for target in targets:
        for tool in checked:
            try:
                made = exported(tool.input_schema, target)
            except NotExportable as error:
                yield ExportCheck(tool, target, left_out=str(error))
                continue
            most = RULES[target].description_characters
            length = len(f"{tool.description} {made.note}".strip())
            cut = (f"the description has {length:,} characters, of which {most:,} are sent",) if length > most else ()
            if changes := (*made.losses, *cut):
                yield ExportCheck(tool, target, changes)
