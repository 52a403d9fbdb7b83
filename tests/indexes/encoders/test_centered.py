"""What all texts of an encoder have in common, taken off."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsearch import Catalog, SetupError, find
from toolsearch_indexes.encoders import encoded
from toolsearch_indexes.encoders.cache import CachedEncoder
from toolsearch_indexes.encoders.centered import NEUTRAL, CenteredEncoder
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.vector import VectorIndex


class Corner:
    """An encoder all of whose vectors lie in one corner: a long part in common, one for queries, and a letter."""

    name, width = "corner", 29

    def __init__(self) -> None:
        self.asked: list[tuple[bool, list[str]]] = []

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        self.asked.append((query, list(texts)))
        rows = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                row[26 + query] = 3
                row[ord(text.strip().lower()[0]) % 26] = 1
        return rows


def cosine(encoder: Any, document: str, query: str) -> float:
    return float(encoded(encoder, [document])[0] @ encoded(encoder, [query], query=True)[0])


def test_texts_of_nothing_in_common_have_a_cosine_about_0_and_like_ones_about_1() -> None:
    documents = encoded(Corner(), ["zebra", "quartz"])
    assert documents[0] @ documents[1] > 0.85
    centered = CenteredEncoder(Corner())
    documents = encoded(centered, ["zebra", "quartz"])
    assert abs(documents[0] @ documents[1]) < 0.3
    assert cosine(centered, "zebra", "zoo") > 0.7
    assert abs(cosine(centered, "zebra", "quartz")) < 0.3


def test_documents_and_queries_each_lose_a_mean_of_their_own() -> None:
    centered = CenteredEncoder(Corner())
    assert centered.encode(["zebra"])[0][26] == pytest.approx(0, abs=1e-6)
    assert centered.encode(["zebra"], query=True)[0][27] == pytest.approx(0, abs=1e-6)


def test_an_empty_text_is_like_nothing() -> None:
    assert not encoded(CenteredEncoder(Corner()), [" ", ""]).any()


def test_the_neutral_texts_are_encoded_once_whatever_the_number_of_threads() -> None:
    inner = Corner()
    centered = CenteredEncoder(inner)
    assert inner.asked == []
    threads = [threading.Thread(target=centered.encode, args=(["a"],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(texts == list(NEUTRAL) for _, texts in inner.asked) == 2


def test_its_name_tells_it_from_the_encoder_within_so_that_kept_vectors_are_not_mixed(tmp_path: Path) -> None:
    inner = Corner()
    assert CenteredEncoder(inner).name.startswith("corner centered@")
    plain, centered = CachedEncoder(inner, tmp_path), CachedEncoder(CenteredEncoder(inner), tmp_path)
    assert not np.allclose(plain.encode(["zebra"]), centered.encode(["zebra"]))
    assert np.allclose(centered.encode(["zebra"]), encoded(CenteredEncoder(inner), ["zebra"]))


def test_an_encoder_that_tells_nothing_apart_leaves_the_words() -> None:
    class Same(Corner):
        def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
            return np.ones((len(texts), self.width), np.float32)

    index = HybridIndex(CenteredEncoder(Same()))
    catalog = Catalog([{"name": "send_mail"}, {"name": "get_weather"}])
    index.add(list(catalog))
    assert [hit.tool.id for hit in find(catalog, index, "mail")] == ["send_mail"]


def test_an_index_warns_once_of_an_encoder_that_finds_all_tools_alike(caplog: pytest.LogCaptureFixture) -> None:
    tools = list(Catalog([{"name": f"{chr(97 + n)}_tool"} for n in range(25)]))
    for encoder, told in ((Corner(), 1), (CenteredEncoder(Corner()), 0)):
        caplog.clear()
        index = VectorIndex(encoder)
        with caplog.at_level(logging.WARNING, "toolsearch"):
            index.add(tools)
            index.remove([tool.id for tool in tools])
            index.add(tools)
        assert sum("CenteredEncoder" in record.getMessage() for record in caplog.records) == told


def test_what_only_says_in_which_language_a_text_is_goes_too() -> None:
    """With a word for "a" before it, as the other language has, a text means the same."""

    class Bilingual(Corner):
        def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
            rows = super().encode([text.removeprefix("un ") for text in texts], query=query)
            rows[[text.startswith("un ") for text in texts], 28] = 2
            return rows

    words = ["apple", "bread", "cheese", "dates", "eggs", "figs"]
    apart = CenteredEncoder(Bilingual())
    together = CenteredEncoder(Bilingual(), languages=[words, [f"un {word}" for word in words]])
    assert cosine(apart, "garlic", "un garlic") < 0.6
    assert cosine(together, "garlic", "un garlic") > 0.9
    assert cosine(together, "garlic", "un honey") < 0.5
    assert together.name != apart.name


def test_languages_that_an_encoder_does_not_tell_apart_take_nothing_off() -> None:
    """Between equal means every direction is as good as any other, so none is a difference of languages."""
    words = ["apple", "bread", "cheese"]
    plain = CenteredEncoder(Corner()).encode(["garlic", "honey"])
    for languages in ([words], [words, words], [words, words, words], [[" "], [""]]):
        assert np.allclose(CenteredEncoder(Corner(), languages=languages).encode(["garlic", "honey"]), plain)


@pytest.mark.parametrize("languages", [[[], []], [["a"], []], ["ab", "cd"], [["a"], ["b", "c"]], [["a"], [3]]])
def test_languages_that_cannot_say_the_same_are_refused_at_once(languages: Any) -> None:
    with pytest.raises(SetupError, match="languages are lists of texts that say the same, as many in each"):
        CenteredEncoder(Corner(), languages=languages)


def test_more_languages_than_an_encoder_has_numbers_are_an_error_and_leave_no_empty_vectors() -> None:
    class Narrow(Corner):
        name, width = "narrow", 2

        def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
            return np.array([[text[0] in "aA", text[0] in "bB"] for text in texts], np.float32)

    with pytest.raises(SetupError, match="'narrow' gives 2 numbers, and what tells 3 languages apart takes as many"):
        CenteredEncoder(Narrow(), languages=[["a"], ["b"], ["c"]]).encode(["a"])


def test_tools_that_are_alike_are_no_reason_to_warn_of_the_encoder(caplog: pytest.LogCaptureFixture) -> None:
    """Case A04's catalog, whose tools differ by a number."""
    tools = list(Catalog([{"name": f"forge_op_{n}", "description": "Repository operation"} for n in range(30)]))
    with caplog.at_level(logging.WARNING, "toolsearch"):
        VectorIndex(CenteredEncoder(Corner())).add(tools)
        VectorIndex("static").add(tools)
    assert caplog.records == []


def test_the_warning_comes_where_tools_are_added_one_by_one_too_and_for_each_encoder(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools = list(Catalog([{"name": f"{chr(97 + n)}_tool"} for n in range(25)]))
    inner = Corner()
    index = VectorIndex(inner)
    with caplog.at_level(logging.WARNING, "toolsearch"):
        for name in ("corner", "corner 2"):
            inner.name = name
            for tool in tools:
                index.add([tool])
            index.remove([tool.id for tool in tools])
    told = [record.getMessage() for record in caplog.records]
    assert [message.split("'")[1] for message in told] == ["corner", "corner 2"]


def test_an_encoder_that_fails_when_it_is_asked_about_other_texts_keeps_the_tools() -> None:
    class Failing(Corner):
        def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
            if texts[0] == NEUTRAL[0]:
                raise TimeoutError("busy")
            return super().encode(texts, query=query)

    index = VectorIndex(Failing())
    index.add(list(Catalog([{"name": f"{chr(97 + n)}_tool"} for n in range(25)])))
    assert len(index) == 25
    assert index.search("a", 1)


def test_an_encoder_around_another_takes_its_name_too_and_nothing_that_is_none(tmp_path: Path) -> None:
    assert CenteredEncoder("static").name.startswith("wordllama")
    assert CachedEncoder("static", tmp_path).name.startswith("wordllama")
    for make in (CenteredEncoder, CachedEncoder, VectorIndex):
        with pytest.raises(SetupError, match=r"as in CenteredEncoder\(…\), not the class itself"):
            make(CenteredEncoder)  # type: ignore[arg-type]
        with pytest.raises(SetupError, match="the encoder 5 has no method `encode`"):
            make(5)  # type: ignore[arg-type]
