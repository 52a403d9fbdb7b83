"""Signals and shipped fits: every index that has one says how sure it is, and the others claim nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolsearch import Catalog, ToolSearch, find, open_index
from toolsearch.search.confidence import read_fits
from toolsearch_indexes.encoders import open_encoder
from toolsearch_indexes.fitted_confidence import SHIPPED, shipped_fit, with_confidence
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.keyword import KeywordIndex
from toolsearch_indexes.vector import VectorIndex

TOOLS = [
    {"name": "create_issue", "server": "tracker", "description": "Open a new issue in a project."},
    {"name": "close_issue", "server": "tracker", "description": "Close an issue that is solved."},
    {"name": "send_mail", "server": "post", "description": "Send an electronic mail with attachments."},
    {"name": "get_forecast", "server": "sky", "description": "Weather forecast for a city."},
]
FITTED = ["keyword", "vector", "hybrid", "whoosh", "tantivy", "faiss"]


def filled(index: Any) -> Any:
    index.add(list(Catalog(TOOLS)))
    return index


@pytest.mark.parametrize("name", FITTED)
def test_a_request_in_the_tools_own_words_is_found_and_a_senseless_one_is_not(name: str) -> None:
    index = filled(open_index(name))
    sure = find(Catalog(TOOLS), index, "send electronic mail with attachments")
    assert sure.verdict == "found"
    assert sure[0].tool.name == "send_mail"
    assert sure[0].confidence == max(hit.confidence or 0 for hit in sure) > 0.8
    assert find(Catalog(TOOLS), index, "forecast of tea prices in my spreadsheet").verdict != "found"
    assert find(Catalog(TOOLS), index, "zqxv wkjh").verdict == "none"


@pytest.mark.parametrize("name", FITTED)
def test_how_sure_a_search_is_does_not_depend_on_its_limit(name: str) -> None:
    index = filled(open_index(name))
    one, many = index.search("close the issue", 1), index.search("close the issue", 50)
    assert one[0] == many[0]
    assert one.answerable == many.answerable
    assert dict(one[0].signals or {}) == dict(many[0].signals or {})


def test_plain_words_have_confidence_in_the_regex_index_and_patterns_have_none() -> None:
    index = filled(open_index("regex"))
    assert find(Catalog(TOOLS), index, "send electronic mail").verdict == "found"
    hits = find(Catalog(TOOLS), index, "(send|post)_?mail")
    assert [hit.confidence for hit in hits] == [None]
    assert hits.verdict is None


def test_an_encoder_that_nothing_was_fitted_to_has_no_confidence(hashed_words: Any) -> None:
    """An unfitted backend reports none at all."""
    for index in (VectorIndex(hashed_words), HybridIndex(hashed_words)):
        hits = find(Catalog(TOOLS), filled(index), "send electronic mail")
        assert [hit.confidence for hit in hits] == [None] * len(hits)
        assert hits.verdict is None


class Renamed:
    """An encoder under another name, as a model in a folder has, with vectors a little off, as 8 bits make them."""

    name = "another name"

    def __init__(self, inner: Any) -> None:
        self._inner, self.width = inner, inner.width

    def encode(self, texts: Any, *, query: bool = False) -> Any:
        return self._inner.encode(texts, query=query) * 1.5 + 1e-4


@pytest.mark.parametrize("of", [VectorIndex, HybridIndex])
def test_a_model_under_another_name_has_the_confidence_that_was_fitted_to_it(of: Callable[..., Any]) -> None:
    renamed = find(Catalog(TOOLS), filled(of(Renamed(open_encoder("static")))), "send electronic mail")
    plain = find(Catalog(TOOLS), filled(of("static")), "send electronic mail")
    assert renamed.verdict == plain.verdict == "found"
    assert renamed[0].confidence == pytest.approx(plain[0].confidence, abs=0.01)


def test_an_encoder_that_fails_when_it_is_probed_is_probed_again(hashed_words: Any) -> None:
    class Failing:
        name, width = "failing", hashed_words.width
        answers = 1

        def encode(self, texts: Any, *, query: bool = False) -> Any:
            self.answers -= query
            if self.answers < 0:
                raise TimeoutError("busy")
            return hashed_words.encode(texts, query=query)

    index = filled(VectorIndex(encoder := Failing()))
    assert index.search("mail", 5), "one answer, for the query; the probe fails"
    encoder.answers = 9
    assert index.search("an issue", 5)
    assert encoder.answers == 7, "the query and the probe"
    assert index.search("the weather", 5)
    assert encoder.answers == 6, "the probe is kept"


@pytest.mark.parametrize("of", [VectorIndex, HybridIndex])
def test_an_encoder_that_takes_the_place_of_another_is_probed_itself(of: Callable[..., Any]) -> None:
    """Like case H01: an index that was emptied may go on with another model, but not with the other's fit."""
    tools = list(Catalog(TOOLS))
    encoder = Renamed(open_encoder("static"))
    index = filled(of(encoder))
    assert index.search("send electronic mail", 1)[0].confidence is not None
    index.remove([tool.id for tool in tools])
    encoder.name = "a third"
    encoder.encode = lambda texts, query=False: encoder._inner.encode(texts)[:, ::-1]  # type: ignore[method-assign]
    index.add(tools)
    assert index.search("send electronic mail", 1)[0].confidence is None


def test_a_model_whose_vectors_are_cut_to_half_does_not_have_the_confidence_of_the_whole() -> None:
    """Its vectors begin with the same numbers, but among half of them unrelated texts are nearer."""

    class Half(Renamed):
        def encode(self, texts: Any, *, query: bool = False) -> Any:
            return self._inner.encode(texts, query=query)[:, : self.width]

    encoder = Half(open_encoder("static"))
    encoder.width //= 2
    assert filled(VectorIndex(encoder)).search("send electronic mail", 1)[0].confidence is None


def test_scores_blended_otherwise_have_no_confidence() -> None:
    hits = find(Catalog(TOOLS), filled(HybridIndex(keyword_weight=0.3)), "send electronic mail")
    assert hits.verdict is None


def test_where_the_encoder_fails_the_words_say_how_sure_they_are() -> None:
    index = filled(HybridIndex())

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("down")

    index.encoder.encode = fails
    hits = find(Catalog(TOOLS), index, "send electronic mail")
    assert hits.degraded is not None
    assert hits.verdict == "found"


def test_repeating_a_word_makes_nothing_surer() -> None:
    stuffed = {"name": "do_all", "description": "mail mails mailing electronic mail send mail " * 8}
    catalog = Catalog([*TOOLS, stuffed])
    index = KeywordIndex()
    index.add(list(catalog))
    hits = find(catalog, index, "send a mail")
    assert hits[0].tool.name == "send_mail"
    assert (hits[0].confidence or 0) > (hits[1].confidence or 0)


@pytest.mark.parametrize("many", [1, 3, 40, 400])
def test_the_size_of_a_catalog_does_not_decide(many: int) -> None:
    others = [{"name": f"job_{n}", "description": f"Run the nightly job number {n}."} for n in range(many)]
    search = ToolSearch(Catalog([*TOOLS[2:3], *others]))
    assert search.find("send an electronic mail").verdict == "found"


def test_what_ships_says_what_it_was_fitted_to() -> None:
    fits = read_fits(SHIPPED)
    assert {each["index"] for each in fits} == set(FITTED)
    for each in fits:
        assert each["data set"] == "commons/cases"
        assert each["cases"] > each["unanswerable"] > 0
        assert each["date"]
        assert all(isinstance(weight, float) for weight in each["weights"].values())


@pytest.mark.parametrize(("index", "of"), [("keyword", KeywordIndex), ("vector", VectorIndex), ("hybrid", HybridIndex)])
def test_every_signal_that_was_fitted_is_given(index: str, of: Callable[[], Any]) -> None:
    made = filled(of())
    fit = shipped_fit(index, made.encoder.name if index != "keyword" else "")
    assert fit is not None
    (hit, *_) = made.search("close the issue", 5)
    assert set(hit.signals or {}) == set(fit.weights)


def test_the_nearest_tools_are_ranked_only_if_somebody_asks_for_them() -> None:
    ranked: list[str] = []

    def nearest() -> Iterator[str]:
        for tool_id in ("a", "b"):
            ranked.append(tool_id)
            yield tool_id

    answer = with_confidence([], 5, None, 3, near=nearest())
    assert ranked == []
    assert answer.near == answer.near == ("a", "b")
    assert ranked == ["a", "b"]
