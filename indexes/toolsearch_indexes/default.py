"""The default index, `auto`: `hybrid` if its default encoder is installed, else `keyword`, which needs no package."""

from __future__ import annotations

import logging

from toolsearch.errors import MissingExtra
from toolsearch.protocols import ToolIndex
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.keyword import KeywordIndex

__all__ = ["open_default"]

log = logging.getLogger("toolsearch")


def open_default() -> ToolIndex:
    """A new index. Finds out without an import what is missing; an encoder that is installed but broken is an error."""
    try:
        index: HybridIndex | KeywordIndex = HybridIndex()
        log.info("the index 'auto' is 'hybrid': %s", index.tier)
    except MissingExtra as missing:
        index = KeywordIndex()
        log.info("the index 'auto' is 'keyword': %s: %s", index.tier, missing)
    return index
