"""The option `--target` of `toolsearch check`, and what it prints: what becomes of each tool for each provider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from toolsearch.catalog.exports import PROVIDERS, ExportCheck, Provider

__all__ = ["Target", "export_lines", "exports_as_json", "targets_of"]


class Target(StrEnum):
    """A provider, or all of them."""

    openai = "openai"
    anthropic = "anthropic"
    gemini = "gemini"
    ollama = "ollama"
    all = "all"


def targets_of(chosen: Sequence[Target]) -> list[Provider]:
    """The providers, each once, in their usual order."""
    return [name for name in PROVIDERS if Target.all in chosen or name in chosen]


def export_lines(exports: Sequence[ExportCheck], targets: Sequence[str]) -> Iterator[str]:
    """One line for each provider, and one for each tool that it gets changed, or not at all."""
    for target in targets:
        of_target = [each for each in exports if each.target == target]
        left_out = [each for each in of_target if each.left_out]
        changed = [each for each in of_target if each.changes]
        yield f"{target}: {len(changed)} changed, {len(left_out)} left out"
        yield from (f"  left out  {each.tool.id}: {each.left_out}" for each in left_out)
        yield from (f"  changed   {each.tool.id}: {'; '.join(each.changes)}" for each in changed)


def exports_as_json(exports: Sequence[ExportCheck], targets: Sequence[str]) -> dict[str, object]:
    """The same for other programs, by provider."""
    return {
        target: {
            "changed": [
                {"id": each.tool.id, "changes": list(each.changes)}
                for each in exports
                if each.target == target and each.changes
            ],
            "left_out": [
                {"id": each.tool.id, "reason": each.left_out}
                for each in exports
                if each.target == target and each.left_out
            ],
        }
        for target in targets
    }
