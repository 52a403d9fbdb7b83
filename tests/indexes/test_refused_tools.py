"""An encoder that fails for one text costs one tool, which the log names, on every index by meaning."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Catalog, SetupError, ToolSearch
from toolsearch_indexes.encoders.cache import CachedEncoder
from toolsearch_indexes.encoders.centered import CenteredEncoder
from toolsearch_indexes.faiss import FaissIndex
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.text import content_words
from toolsearch_indexes.tool_vectors import ToolVectors
from toolsearch_indexes.vector import VectorIndex

WIDTH = 32
Fail = Callable[[], Any]


class Panic(BaseException):
    """What a library in Rust raises."""


def raising(error: BaseException) -> Fail:
    def fail() -> Any:
        raise error

    return fail


FAILURES: dict[str, Fail] = {
    "infinite": lambda: [np.inf, *[0.0] * (WIDTH - 1)],
    "not a number": lambda: [np.nan] * WIDTH,
    "null": lambda: [None] * WIDTH,
    "too large": lambda: [1e300] * WIDTH,
    "too short": lambda: [1.0],
    "no row": lambda: "row",
    "ValueError": raising(ValueError("no such text")),
    "RecursionError": raising(RecursionError()),
    "SetupError": raising(SetupError("status 400: the text is too long")),
    "OSError": raising(OSError("cannot be read")),
    "panic": raising(Panic("called `Option::unwrap()` on a `None` value")),
}
indexes = pytest.mark.parametrize("kind", [VectorIndex, FaissIndex, HybridIndex])
failures = pytest.mark.parametrize("failure", FAILURES)


class Haunted:
    """Words as directions; of a text with "ghost" it makes nothing. It counts its calls."""

    name, width = "haunted", WIDTH

    def __init__(self, fail: Fail) -> None:
        self.fail, self.calls = fail, 0

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        self.calls += 1
        return [self.fail() if "ghost" in text else self.row(text) for text in texts]

    @staticmethod
    def row(text: str) -> list[float]:
        row = np.zeros(WIDTH)
        for word in content_words(text):
            row[sum(map(ord, word)) % WIDTH] += 1
        return row.tolist()


def found(search: ToolSearch, query: str) -> list[str]:
    return [hit.tool.name for hit in search.find(query)]


@indexes
@failures
def test_one_text_that_fails_costs_one_tool_which_the_log_names(kind: Any, failure: str, caplog: Any) -> None:
    """K28: not all tools, not the tools that come with it later, and words still find it where there are words."""
    search = ToolSearch([{"name": "write_note"}, {"name": "ghost"}], kind(Haunted(FAILURES[failure])))
    assert found(search, "write a note") == ["write_note"]
    assert "'ghost'" in caplog.text
    assert "'write_note'" not in caplog.text
    caplog.clear()
    search.catalog.extend([{"name": "ghost_two"}, {"name": "play_music"}, {"name": "paint_wall"}])
    assert found(search, "play some music") == ["play_music"]
    assert found(search, "paint the wall") == ["paint_wall"]
    assert "'ghost_two'" in caplog.text
    search.catalog.add({"name": "ghost_three", "description": "It haunts an attic."})  # alone
    assert "'ghost_three'" in caplog.text
    assert found(search, "ghost_three")[0] == "ghost_three"
    assert found(search, "it haunts an attic") == (["ghost_three"] if kind is HybridIndex else [])


@indexes
@failures
def test_a_catalog_of_refused_tools_only_is_searched_all_the_same(kind: Any, failure: str, caplog: Any) -> None:
    """K28: what no tool got past the encoder is no reason to raise, unless its arrays are wrong altogether."""
    index = kind(Haunted(FAILURES[failure]))
    if failure in ("too short", "no row"):
        with pytest.raises(SetupError, match="'haunted'"):
            ToolSearch([{"name": "ghost"}], index)
        return
    search = ToolSearch([{"name": "ghost"}], index)
    assert "'ghost'" in caplog.text
    for query in ("a ghost", "ghost story", "write a note"):
        search.find(query)
    search.catalog.add({"name": "write_note"})
    assert found(search, "write a note") == ["write_note"]


@indexes
def test_a_tool_that_is_refused_after_a_change_keeps_no_old_vector(kind: Any) -> None:
    """K28: and is encoded when it changes again."""
    search = ToolSearch([{"name": "note", "description": "Write."}, {"name": "play_music"}], kind(Haunted(list)))
    search.catalog.replace({"name": "note", "description": "A ghost."})
    assert found(search, "write") == []
    search.catalog.replace({"name": "note", "description": "Paint a wall."})
    assert found(search, "paint the wall") == ["note"]


@indexes
@failures
def test_behind_a_cache_one_text_costs_one_tool_and_the_rest_is_kept(
    kind: Any, failure: str, tmp_path: Path, caplog: Any
) -> None:
    """K28: the vectors of the other texts are stored, and those of the refused tool are asked for again."""
    given = [{"name": "ghost"}, *({"name": f"note_{n}", "description": f"Write note {n}."} for n in range(300))]
    encoder = Haunted(FAILURES[failure])
    search = ToolSearch(given, kind(CachedEncoder(encoder, tmp_path)))
    assert len(search.find("write a note")) == 5
    assert "'ghost'" in caplog.text
    encoder.calls = 0
    again = ToolSearch(given[1:], kind(CachedEncoder(encoder, tmp_path)))
    assert encoder.calls == 0
    assert found(again, "write a note") == found(search, "write a note")
    encoder.fail = lambda: encoder.row("ghost")
    assert "ghost" in found(ToolSearch(given, kind(CachedEncoder(encoder, tmp_path))), "ghost")


def test_a_centered_encoder_hands_on_that_one_text_failed() -> None:
    """K28."""
    search = ToolSearch(
        [{"name": "write_note"}, {"name": "ghost"}], VectorIndex(CenteredEncoder(Haunted(FAILURES["infinite"])))
    )
    assert "write_note" in found(search, "write a note")


@pytest.mark.parametrize("failure", ["infinite", "ValueError"])
def test_one_bad_tool_in_hundreds_costs_few_calls(failure: str) -> None:
    """K28: batches are halved, not encoded tool by tool."""
    encoder = Haunted(FAILURES[failure])
    tools = [{"name": f"note_{n}"} for n in range(255)]
    refused = ToolVectors(encoder).add(list(Catalog([*tools, {"name": "ghost"}])))
    assert list(refused) == ["ghost"]
    assert encoder.calls <= 18


@given(st.lists(st.booleans(), max_size=40), st.sampled_from(sorted(set(FAILURES) - {"too short", "no row"})))
@settings(deadline=None, max_examples=60)
def test_exactly_the_bad_tools_are_refused(bad: list[bool], failure: str) -> None:
    """K28, whatever their number and places."""
    names = [f"{'ghost' if is_bad else 'note'}_{n}" for n, is_bad in enumerate(bad)]
    vectors = ToolVectors(Haunted(FAILURES[failure]))
    refused = vectors.add(list(Catalog([{"name": name} for name in names])))
    assert list(refused) == [name for name in names if name.startswith("ghost")]
    assert len(vectors) == bad.count(False)


@indexes
def test_an_encoder_that_fails_for_every_text_is_an_error_and_not_every_tools_fault(kind: Any) -> None:
    """K28: the other side."""
    encoder = Haunted(FAILURES["infinite"])
    encoder.row = lambda text: FAILURES["infinite"]()  # type: ignore[method-assign]
    with pytest.raises(SetupError, match="not finite"):
        ToolSearch([{"name": "write_note"}, {"name": "play_music"}], kind(encoder))
