"""The index `auto`: `hybrid` where its default encoder is installed, else `keyword`, which needs nothing."""

from __future__ import annotations

import logging

from toolsearch.errors import MissingExtra
from toolsearch.protocols import ToolIndex
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.keyword import KeywordIndex

__all__ = ["open_auto"]

log = logging.getLogger("toolsearch")


def open_auto() -> ToolIndex:
    """A new index. What is missing is found without an import; an encoder that is there and broken is an error."""
    try:
        return HybridIndex()
    except MissingExtra as missing:
        log.info("the index 'auto' is 'keyword': %s", missing)
        return KeywordIndex()
