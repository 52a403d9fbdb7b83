"""Words and meaning together, and what is said when one of them is missing."""

import logging
import math
import re
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from toolsearch import Catalog, Hits, SetupError, Tool, ToolSearch, find
from toolsearch.testing import check_index
from toolsearch_indexes.encoders import EncoderError
from toolsearch_indexes.encoders.static import StaticEncoder
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.keyword import KeywordIndex

OFFICE = [
    {"name": "send_mail", "description": "Send an electronic mail"},
    {"name": "search_mail", "description": "Search the mailbox"},
    {"name": "get_weather", "description": "Weather forecast for a city"},
    {"name": "create_issue", "description": "Open a new issue in a project"},
    {"name": "delete_pipeline", "description": "Delete a pipeline"},
    {"name": "create_pipeline", "description": "Create a pipeline"},
    {"name": "resize_image", "description": "Change the size of an image"},
]


def filled(index: Any, tools: Sequence[dict[str, Any]] = OFFICE) -> tuple[Catalog, Any]:
    catalog = Catalog(tools)
    index.add(list(catalog))
    return catalog, index


def names(hits: Hits) -> list[str]:
    return [hit.tool.id for hit in hits]


def fail(texts: Sequence[str], *, query: bool = False) -> Any:
    raise TimeoutError("no answer")


def test_it_keeps_every_promise_of_an_index(hashed_words):
    check_index(lambda: HybridIndex(type(hashed_words)()))


def test_it_keeps_every_promise_with_the_static_encoder():
    check_index(HybridIndex)


def test_a_synonym_is_understood():
    """Case A27: by meaning, where no table of words says so; and the number in the request does not hurt."""
    catalog, index = filled(HybridIndex())
    assert names(find(catalog, index, "erase pipeline 88 for good"))[0] == "delete_pipeline"
    assert names(find(catalog, index, "shrink that graphic"))[0] == "resize_image"
    _, by_words = filled(KeywordIndex())
    assert not find(catalog, by_words, "shrink that graphic")


def test_a_hit_says_which_words_were_found_and_whether_the_meaning_was():
    catalog, index = filled(HybridIndex())
    hit = find(catalog, index, "erase that pipeline")[0]
    assert [(match.word, match.fields) for match in hit.matched] == [
        ("pipeline", ("name", "description")),
        ("erase", ("name", "description")),
        ("erase that pipeline", ("meaning",)),
    ]
    assert 0 < hit.score <= 1
    (match,) = find(catalog, index, "shrink that graphic")[0].matched
    assert match.fields == ("meaning",)


def test_letters_without_meaning_find_nothing():
    catalog, index = filled(HybridIndex())
    assert not find(catalog, index, "zzqx vvkp")
    assert not find(catalog, index, "?!")


def test_a_name_in_words_comes_first_however_often_others_say_it():
    stuffed = {"name": "other", "description": "send mail, send mail, send a mail, mail sending, mails sent. " * 3}
    catalog, index = filled(HybridIndex(), [*OFFICE, stuffed])
    assert names(find(catalog, index, "please send mail"))[0] == "send_mail"


def test_the_encoder_is_given_the_typed_and_the_repaired_spelling_as_the_tools_spell_it(hashed_words):
    catalog, index = filled(HybridIndex(hashed_words))
    hashed_words.asked.clear()
    hits = find(catalog, index, "the Weathr forcast, please")
    assert names(hits)[0] == "get_weather"
    assert hashed_words.asked == ["the Weathr forcast, please", "the weather forecast, please"]
    assert [match.word for match in hits[0].matched][:2] == ["weathr", "forcast"]


def test_each_sentence_of_a_request_finds_its_tool():
    wordy = [
        {
            "name": f"archive_{n}",
            "description": "Open a project, send it to a city and search the mailbox of the project",
        }
        for n in range(6)
    ]
    catalog, index = filled(HybridIndex(), [*OFFICE, *wordy])
    hits = find(catalog, index, "Tell me the weather forecast for Rome. Then resize the image.", 3)
    assert {"get_weather", "resize_image"} <= set(names(hits))


def test_a_query_of_many_sentences_is_searched_in_bounded_time(hashed_words):
    _, index = filled(HybridIndex(hashed_words))
    hashed_words.asked.clear()
    assert index.search("send mail. " * 1_000, 5)
    assert len(hashed_words.asked) < 10


def test_where_the_encoder_fails_words_are_searched_and_the_answer_says_so(hashed_words, caplog):
    catalog, index = filled(HybridIndex(hashed_words))
    encode, hashed_words.encode = hashed_words.encode, fail
    with caplog.at_level(logging.WARNING, "toolsearch"):
        hits = find(catalog, index, "a weather forecast")
    assert names(hits) == ["get_weather"]
    assert hits.degraded == "searched by words only: TimeoutError"
    assert hits.degraded in repr(hits)
    assert "searched by words only" in hits._repr_html_()
    assert "meaning" not in {field for match in hits[0].matched for field in match.fields}
    assert "hashed-words" in caplog.text
    hashed_words.encode = encode
    assert find(catalog, index, "a weather forecast").degraded is None


def test_tools_that_cannot_be_encoded_are_found_by_words_until_they_can(hashed_words, caplog):
    encode, hashed_words.encode = hashed_words.encode, fail
    search = ToolSearch(OFFICE, index=HybridIndex(hashed_words))
    hashed_words.encode = encode
    assert "7 tools are found by their words only" in caplog.text
    hits = search.find("a weather forecast")
    assert names(hits) == ["get_weather"]
    assert hits.degraded == "7 tools are searched by words only: they could not be encoded"
    search.catalog.remove("send_mail")
    search.catalog.add({"name": "play_music"})
    hits = search.find("a weather forecast")
    assert hits.degraded is None
    assert hits[0].matched[-1].fields == ("meaning",)


@pytest.mark.parametrize("error", [SetupError("http://secret.example: 429"), EncoderError("http://secret.example")])
def test_an_encoder_that_fails_for_good_later_leaves_the_words_and_tells_no_address(hashed_words, error):
    catalog, index = filled(HybridIndex(hashed_words))

    def refused(texts: Sequence[str], *, query: bool = False) -> Any:
        raise error

    hashed_words.encode = refused
    hits = find(catalog, index, "a weather forecast")
    assert names(hits) == ["get_weather"]
    assert hits.degraded == f"searched by words only: {type(error).__name__}"


class Picky:
    """The static encoder, which refuses texts with a word, and counts how often it is asked."""

    def __init__(self, word: str, error: Exception | None = None) -> None:
        self.inner, self.word, self.error, self.calls = StaticEncoder(), word, error or ValueError("refused"), 0
        self.name, self.width = self.inner.name, self.inner.width

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        self.calls += 1
        if not query and any(self.word in text for text in texts):
            raise self.error
        return self.inner.encode(texts, query=query)


@pytest.mark.parametrize("error", [ValueError("refused"), SetupError("not finite")])
def test_a_tool_that_the_encoder_refuses_waits_alone_and_the_others_keep_meaning_and_confidence(error):
    many = [{"name": f"box_{n}", "description": f"Open the box number {n}"} for n in range(600)]
    encoder = Picky("poison", error)
    bad = {"name": "poison", "description": "poison the weather"}
    catalog, index = filled(HybridIndex(encoder), [OFFICE[4], bad, *many, *OFFICE[:4], *OFFICE[5:]])
    hits = find(catalog, index, "make this picture smaller", nothing_below=0)
    assert hits[0].tool.id == "resize_image"
    assert hits[0].confidence is not None
    assert hits.degraded == "1 tool is searched by words only: it could not be encoded"
    poison = next(hit for hit in find(catalog, index, "poison the weather") if hit.tool.id == "poison")
    assert poison.confidence is None
    assert find(catalog, index, "a weather forecast", 5, frozenset(["get_weather"])).degraded is None
    encoder.calls = 0
    index.add(list(Catalog([{"name": "play_music"}])))
    assert encoder.calls == 2  # the waiting tool once, and the new one
    encoder.word = "\0"
    index.add([])
    assert find(catalog, index, "poison").degraded is None


def test_an_encoder_that_does_not_answer_is_not_asked_for_every_tool():
    encoder = Picky("", EncoderError("down"))
    filled(HybridIndex(encoder))
    assert encoder.calls == 2


def test_a_missing_encoder_is_an_error_and_no_silent_fallback():
    with pytest.raises(SetupError, match="there is no encoder 'no-such-encoder'"):
        HybridIndex("no-such-encoder")


def test_an_encoder_that_is_set_up_wrongly_is_an_error_and_no_fallback(hashed_words):
    hashed_words.width = 3
    encode = hashed_words.encode
    hashed_words.encode = lambda texts, *, query=False: encode(texts)[:, :2]
    index = HybridIndex(hashed_words)
    with pytest.raises(SetupError, match="'hashed-words' gave an array of shape"):
        index.add(list(Catalog(OFFICE)))
    with pytest.raises(SetupError, match="'hashed-words' gave an array of shape"):
        index.search("mail", 5)


@pytest.mark.parametrize("weight", [50, -0.1, math.nan, "0.4", None, True])
def test_the_weight_of_words_must_be_a_share(hashed_words, weight):
    with pytest.raises(
        SetupError, match=re.escape(f"keyword_weight must be a share of at least 0 and at most 1, not {weight!r}")
    ):
        HybridIndex(hashed_words, keyword_weight=weight)


def test_the_weight_of_words_is_a_share(hashed_words):
    catalog, words = filled(KeywordIndex())
    _, index = filled(HybridIndex(hashed_words, keyword_weight=1))
    for query in ("send mail", "open an issue in a project"):
        expected = names(find(catalog, words, query))
        assert names(find(catalog, index, query))[: len(expected)] == expected


def test_filters_apply_to_both_halves(hashed_words):
    catalog, index = filled(HybridIndex(hashed_words))
    allowed = frozenset(["search_mail", "get_weather"])
    assert set(names(find(catalog, index, "send mail about the weather", 5, allowed))) == allowed
    assert not find(catalog, index, "open an issue", 5, frozenset(["get_weather"]))


def test_a_removed_or_changed_tool_leaves_nothing_behind(hashed_words):
    catalog, index = filled(HybridIndex(hashed_words))
    index.remove(["get_weather", "never_there"])
    assert not find(catalog, index, "weather forecast")
    changed: list[Tool] = list(Catalog([{"name": "send_mail", "description": "Play violin music"}]))
    index.add(changed)
    assert [scored.id for scored in index.search("violin", 5)] == ["send_mail"]
    assert "send_mail" not in [scored.id for scored in index.search("electronic", 5)]
    assert len(index) == len(OFFICE) - 1


def test_searches_while_tools_come_and_go_find_what_stays(hashed_words):
    """Case H09, with both halves changing."""
    catalog, index = filled(HybridIndex(hashed_words))
    coming = list(Catalog([{"name": f"extra_{n}", "description": f"Weather of town {n}"} for n in range(500)]))
    known = {tool.id for tool in [*catalog, *coming]}
    failures: list[Any] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                found = [scored.id for scored in index.search("weather forecast for a city", 5)]
                if found[:1] != ["get_weather"] or not known.issuperset(found):
                    failures.append(found)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for start in range(0, 500, 100):
            index.add(coming[start : start + 100])
            index.remove([tool.id for tool in coming[max(0, start - 50) : start + 50]])
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
