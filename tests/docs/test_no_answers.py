"""J04: the docs list the words of providers, each with our reason."""

import re
from pathlib import Path

from toolsearch.events.stops import REASONS, STOPS

PAGE = Path(__file__).parents[2] / "docs" / "loop.md"


def test_J04_the_table_of_words_is_that_of_the_code() -> None:
    section = PAGE.read_text("utf-8").partition("## Replies that are no answers")[2].partition("\n## ")[0]
    rows = [row.split("|") for row in section.splitlines() if row.startswith("| `")]
    listed = {row[1].strip(" `"): re.findall(r"`([^`]+)`", row[2]) for row in rows}
    assert listed.keys() == REASONS
    known = {word: reason for reason, words in listed.items() for word in words}
    assert known == dict(STOPS)
