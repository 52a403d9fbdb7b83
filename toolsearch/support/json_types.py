"""Names for JSON as types: what is inside is checked where it is read, not by the type checker."""

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["JsonObject", "KeptDict", "KeptList"]

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object: text keys, and any JSON value for each."""


class KeptDict(dict[str, Any]):
    """An object of plain JSON that nobody changes, so that nobody copies it; see `large_values`."""


class KeptList(list[Any]):
    """A list of plain JSON that nobody changes, so that nobody copies it; see `large_values`."""
