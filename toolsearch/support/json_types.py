"""Names for JSON as types: what is inside is checked where it is read, not by the type checker."""

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["JsonObject"]

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object: text keys, and any JSON value for each."""
