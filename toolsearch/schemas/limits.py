"""The budget of a foreign schema. It is measured first, so that all who walk it later need bounded time.

Reading, cleaning, export, the texts for an index, compilation and validation all go through a schema in time that is
linear in what is measured here. The limits are far above what people write: the largest schema of our data sets has
some 30 kB.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolsearch.errors import DefinitionError

__all__ = ["SCHEMA_CHARACTERS", "SCHEMA_DEPTH", "SCHEMA_VALUES", "check_size"]

SCHEMA_CHARACTERS = 500_000  # of a schema as JSON, about
SCHEMA_VALUES = 50_000  # objects, lists, texts, numbers, and so on, in one schema
SCHEMA_DEPTH = 128  # levels of objects and lists


def check_size(what: str, value: object, depth: int = SCHEMA_DEPTH) -> int:
    """How many characters a JSON value has, about. Raises `DefinitionError` for one above the limits.

    `what` it is begins the sentence.

    A value that contains itself is above them too.
    """
    characters = values = 0
    waiting = [(value, 0)]
    while waiting:
        item, level = waiting.pop()
        values += 1
        if isinstance(item, Mapping):
            waiting += [(inner, level + 1) for inner in item.values()]
            characters += sum(len(key) + 6 if isinstance(key, str) else 10 for key in item)
        elif isinstance(item, list | tuple):
            waiting += [(inner, level + 1) for inner in item]
            characters += 2 * len(item)
        else:
            characters += _length(item)
        if level > depth:
            raise DefinitionError(f"{what} is nested too deeply: at most {depth} levels are read")
        if characters > SCHEMA_CHARACTERS or values + len(waiting) > SCHEMA_VALUES:
            raise DefinitionError(
                f"{what} is too large: at most {SCHEMA_CHARACTERS:,} characters and {SCHEMA_VALUES:,} values are read"
            )
    return characters


def _length(value: object) -> int:
    if isinstance(value, str):
        return len(value) + 2
    return value.bit_length() // 3 if isinstance(value, int) else 8
