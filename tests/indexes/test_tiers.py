"""What an index says of itself: what it understands, and what a better one would bring, by figures from the docs."""

import logging
import re
from pathlib import Path

import pytest

from toolsearch import Catalog, ToolSearch
from toolsearch_indexes.default import open_default
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.keyword import KeywordIndex

PAGE = (Path(__file__).parents[2] / "docs" / "choose-an-index.md").read_text("utf-8")


def recall(index: str) -> str:
    """The recall on the public sets that the page's first table states, with two decimals."""
    (row,) = (
        line for line in PAGE.splitlines() if line.startswith(f'| `"{index}"` |') and re.search(r"\| \.\d{3} \|", line)
    )
    return f"{float(re.findall(r'[|] ([.][0-9]{3}) [|]', row)[0]):.2f}".removeprefix("0")


def test_keyword_says_what_meaning_would_bring() -> None:
    assert f"R@5 {recall('keyword')} -> {recall('hybrid')} on public sets" in KeywordIndex.tier
    assert "pip install 'toolsearch-kit[vector]'" in KeywordIndex.tier


def test_hybrid_with_word_vectors_says_what_the_best_would_bring() -> None:
    tier = HybridIndex().tier
    assert f"R@5 {recall('hybrid')} -> {recall('best')} on public sets" in tier
    assert "pip install 'toolsearch-kit[best]'" in tier


def test_a_search_says_which_tier_it_is_and_so_does_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        index = open_default()
    assert f"the index 'auto' is {index.name!r}: {index.tier}" in caplog.text  # type: ignore[attr-defined]
    assert ToolSearch(Catalog([]), index="keyword").tier.startswith("keyword: words only; ")


def test_an_index_that_says_nothing_of_itself_has_its_name_as_tier() -> None:
    assert ToolSearch(Catalog([]), index="regex").tier == "regex"
    assert ToolSearch(Catalog([]), index="regex").wait() is True
