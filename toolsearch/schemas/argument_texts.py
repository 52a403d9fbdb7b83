"""What a schema says of the arguments in words, for an index."""

from __future__ import annotations

from collections.abc import Mapping

from toolsearch.support.json_types import JsonObject

__all__ = ["TEXT_CHARACTERS", "argument_texts"]

TEXT_CHARACTERS = 50_000  # of one tool; beyond them nothing more is taken
_DEEPEST = 12


def argument_texts(schema: JsonObject) -> tuple[list[str], list[str]]:
    """The names of all arguments, nested ones too, and the texts about them: descriptions, enum values, examples."""
    reader = _Reader()
    reader.walk(schema, 0)
    return reader.names, reader.texts


class _Reader:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.texts: list[str] = []
        self.left = TEXT_CHARACTERS

    def walk(self, node: object, depth: int) -> None:
        if isinstance(node, list):
            for item in node:
                self.walk(item, depth)
        if not isinstance(node, Mapping) or depth > _DEEPEST or self.left <= 0:
            return
        for key, value in node.items():
            if key == "properties" and isinstance(value, Mapping):
                for name in value:
                    self._take(self.names, str(name))
                for item in value.values():
                    self.walk(item, depth + 1)
            elif key == "description" and isinstance(value, str) and depth:
                self._take(self.texts, value)
            elif key in ("enum", "examples") and isinstance(value, list):
                for each in value[:200]:
                    if isinstance(each, str | int):
                        self._take(self.texts, str(each))
            elif key in ("$defs", "definitions") and isinstance(value, Mapping):
                for item in value.values():
                    self.walk(item, depth + 1)
            elif key in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
                self.walk(value, depth + 1)

    def _take(self, to: list[str], text: str) -> None:
        if self.left > 0:
            to.append(text[: self.left])
            self.left -= len(text) + 1
