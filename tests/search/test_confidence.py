"""How sure a search is: the verdict on every kind of answer, the thresholds, and what a model reads of it."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, Scored, Settings, SetupError, Tool, ToolCall, ToolSearch
from toolsearch.protocols import Ranking
from toolsearch.search.confidence import DEPTH, Fit, evidence, read_fits, verdict
from toolsearch.search.index import Hits, find

TOOLS = [
    {"name": "open_ticket", "description": "Open a ticket."},
    {"name": "close_ticket", "description": "Close a ticket."},
    {"name": "send_mail", "description": "Send a mail."},
    {"name": "read_mail", "description": "Read mails."},
]


class Sure:
    """An index that is as sure of its hits as it is told: by tool the confidence, in the order of the catalog."""

    name = "sure"

    def __init__(self, *confidences: float | None, answerable: float | None = None) -> None:
        self.confidences, self.answerable = confidences, answerable

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> Ranking:
        found = [
            Scored(str(each["name"]), 1 - at / 10, confidence=p)
            for at, (each, p) in enumerate(zip(TOOLS, self.confidences, strict=False))
        ]
        return Ranking(found, answerable=self.answerable)


def searched(*confidences: float | None, answerable: float | None = None, query: str = "q", **bars: float) -> Hits:
    return find(Catalog(TOOLS), Sure(*confidences, answerable=answerable), query, **bars)


def answered(*confidences: float | None, answerable: float | None = None, **options: Any) -> str:
    session = ToolSearch(Catalog(TOOLS), Sure(*confidences, answerable=answerable), **options).session()
    return session.handle(ToolCall("1", "search_tools", {"queries": ["q"]})).content


@pytest.mark.parametrize(
    ("confidences", "answerable", "expected"),
    [
        ((0.8, 0.1), 0.9, "found"),
        ((0.1, 0.85), 0.9, "found"),
        ((0.79, 0.5), 0.9, "weak"),
        ((0.1, 0.05), 0.2, "weak"),
        ((0.1, 0.05), 0.19, "none"),
        ((0.1, 0.05), None, "none"),
        ((0.15, 0.15), None, "weak"),
        ((0.9, None), None, "found"),
        ((0.1, None), None, None),
        ((None, None), None, None),
        ((), None, "none"),
    ],
)
def test_the_verdict_is_what_the_confidences_come_to(
    confidences: tuple[float | None, ...], answerable: float | None, expected: str | None
) -> None:
    """SA-28: found from .8, none below .2; nothing is claimed where no confidence is known."""
    hits = searched(*confidences, answerable=answerable)
    assert hits.verdict == expected
    assert bool(hits) == (expected != "none")


def test_what_a_query_names_is_found() -> None:
    hits = searched(0.01, query="send_mail", answerable=0.01)
    assert hits.verdict == "found"
    assert hits[0].tool.id == "send_mail"


def test_of_names_that_no_tool_has_nothing_is_claimed() -> None:
    assert searched(0.9, query="select:no_such_thing").verdict is None


def test_where_nothing_fits_the_nearest_are_named_and_no_hit_is() -> None:
    """SA-9."""
    hits = searched(0.05, 0.04, 0.03, 0.02, answerable=0.1)
    assert len(hits) == 0
    assert [tool.id for tool in hits.near] == ["open_ticket", "close_ticket", "send_mail", "read_mail"]
    assert "Nothing fits; nearest: open_ticket" in hits._repr_html_()
    assert "none" in repr(hits).splitlines()[0]


def test_the_thresholds_are_settings() -> None:
    search = ToolSearch(Catalog(TOOLS), Sure(0.6, 0.1, answerable=0.5), sure_from=0.5, nothing_below=0.3)
    assert search.find("q").verdict == "found"
    assert (
        ToolSearch(Catalog(TOOLS), Sure(0.6, answerable=0.5), sure_from=0.9, nothing_below=0.6).find("q").verdict
        == "none"
    )


def test_with_none_at_zero_every_search_answers() -> None:
    hits = searched(0.01, 0.01, answerable=0.001, nothing_below=0.0)
    assert hits.verdict == "weak"
    assert len(hits) == 2


@pytest.mark.parametrize("options", [{"found": 1.1}, {"none": -0.1}, {"found": 0.1}, {"none": "much"}])
def test_thresholds_are_probabilities_in_order(options: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match=r"found|none"):
        Settings.of(**options)


def test_a_model_is_told_when_what_was_found_may_not_fit() -> None:
    """Only where the best hit is more likely wrong than right: else it stands under most right ones."""
    assert "These may not fit: check before you call, or search in other words." in answered(0.3, 0.1, answerable=0.8)
    assert "may not fit" not in answered(0.5, 0.1, answerable=0.8)
    assert "may not fit" not in answered(0.9, 0.1, answerable=0.8)
    assert "may not fit" not in answered(None, None)


def test_without_any_hit_the_verdict_is_none_even_with_none_at_zero() -> None:
    assert searched(nothing_below=0.0).verdict == "none"
    assert searched(answerable=0.9).verdict == "none"


def test_the_caution_stays_where_all_that_was_found_is_loaded_already() -> None:
    session = ToolSearch(Catalog(TOOLS), Sure(0.3, answerable=0.8)).session()
    caution = "These may not fit: check before you call, or search in other words."
    for query in ("q", "other", "q"):
        answer = session.handle(ToolCall("1", "search_tools", {"queries": [query]})).content
        assert answer.endswith(caution)
    assert "Call one now" in answer


def test_the_caution_says_which_query_it_is_for() -> None:
    session = ToolSearch(Catalog(TOOLS), Sure(0.3, answerable=0.8)).session()
    session.handle(ToolCall("1", "search_tools", {"queries": ["select:send_mail"]}))
    answer = session.handle(ToolCall("2", "search_tools", {"queries": ["select:send_mail", "q"]})).content
    assert 'Those for "q" may not fit' in answer


def test_where_calls_of_what_is_not_loaded_are_refused_the_nearest_are_to_be_searched_for() -> None:
    answer = answered(0.05, answerable=0.05, not_loaded="refuse")
    assert "Nearest: open_ticket (search for one by its name if it does fit)." in answer


def test_a_model_is_told_that_nothing_fits_and_may_take_the_nearest_by_name() -> None:
    session = ToolSearch(Catalog(TOOLS), Sure(0.05, 0.01, answerable=0.05)).session()
    answer = session.handle(ToolCall("1", "search_tools", {"queries": ["q"]}))
    assert answer.data["loaded"] == []
    assert (
        'Nothing fits "q". Nearest: open_ticket, close_ticket (call one by its name if it does fit).' in answer.content
    )
    assert session.handle(ToolCall("2", "open_ticket", {})).status == "not_loaded"
    assert [tool.id for tool in session.loaded] == ["open_ticket"]


def test_searches_that_come_to_nothing_are_braked() -> None:
    session = ToolSearch(Catalog(TOOLS), Sure(0.05, answerable=0.05)).session()
    texts = [session.handle(ToolCall(str(n), "search_tools", {"queries": [f"q{n}"]})).content for n in range(3)]
    assert "in a row that found nothing" in texts[-1]


# -- the model -------------------------------------------------------------------------------------------------------

FIT = Fit(bias=-2.0, weights={"held": 4.0, "ahead": 1.0}, offset=0.5, slope=0.8)


def test_a_fit_makes_signals_a_probability() -> None:
    assert FIT.relevant({"held": 1.0, "ahead": 0.0}) == round(1 / (1 + math.exp(-2.0)), 6)
    assert FIT.relevant({}) == round(1 / (1 + math.exp(2.0)), 6)
    assert FIT.relevant({"held": 1e6}) < 1
    assert FIT.relevant({"held": -1e6}) > 0


def test_a_search_is_as_sure_as_its_first_ten_hits_together() -> None:
    assert evidence([0.5]) == pytest.approx(0)
    assert evidence([0.5, 0.5]) == pytest.approx(math.log(3))
    assert evidence([0.1] * DEPTH) == evidence([0.1] * (DEPTH + 5))
    assert FIT.answerable([0.9]) > FIT.answerable([0.1]) > FIT.answerable([]) == 0


def test_several_doubtful_hits_make_one_of_them_likely() -> None:
    assert verdict([0.3] * 5, None) == "weak"
    assert verdict([0.01] * 5, None) == "none"


def test_fits_are_read_by_index_and_encoder(tmp_path: Path) -> None:
    file = tmp_path / "fits.json"
    entry = {"index": "mine", "bias": 1.0, "weights": {}, "offset": 0.0, "slope": 1.0}
    file.write_text(json.dumps({"format": 1, "fits": [entry, {**entry, "encoder": "a-model", "bias": 2.0}]}), "utf-8")
    assert [each["encoder"] for each in read_fits(file)] == ["", "a-model"]
    assert Fit.load(file, "mine") == Fit(1.0, {}, 0.0, 1.0)
    assert Fit.load(file, "mine", "a-model") == Fit(2.0, {}, 0.0, 1.0)
    assert Fit.load(file, "mine", "another") is None
    assert Fit.load(str(file), "mine") == Fit.load(file, "mine")


def test_a_model_by_another_name_is_known_by_its_probe(tmp_path: Path) -> None:
    """Weights in 8 bits, or on another processor, change the numbers a little; another model changes them all."""
    file = tmp_path / "fits.json"
    entry = {"index": "mine", "encoder": "hub/a-model@1", "probe": [0.1, -0.2, 0.05]}
    plain = {"index": "mine", "bias": 1.0, "weights": {}, "offset": 0.0, "slope": 1.0}
    file.write_text(json.dumps({"format": 1, "fits": [plain, {**plain, **entry, "bias": 2.0}]}), "utf-8")
    known = Fit(2.0, {}, 0.0, 1.0)
    assert Fit.load(file, "mine", "hub/a-model@1") == known
    assert Fit.load(file, "mine", "a-folder@2", (0.099, -0.201, 0.052)) == known
    assert Fit.load(file, "mine", "a-folder@2", (0.1, 0.2, 0.05)) is None
    assert Fit.load(file, "mine", "a-folder@2", (0.14, -0.28, 0.07)) is None, "as of the same model, cut to half"
    assert Fit.load(file, "mine", "a-folder@2", (0.1, -0.2)) is None
    assert Fit.load(file, "mine", "a-folder@2", (0.0, 0.0, 0.0)) is None
    assert Fit.load(file, "mine", "a-folder@2") is None
    assert Fit.load(file, "other", "a-folder@2", (0.1, -0.2, 0.05)) is None
    assert Fit.load(file, "mine") == Fit(1.0, {}, 0.0, 1.0)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2, "fits": []}', '{"format": 1, "fits": [1]}'])
def test_a_file_that_holds_no_fits_is_an_error_that_names_it(text: str, tmp_path: Path) -> None:
    file = tmp_path / "fits.json"
    file.write_text(text, "utf-8")
    with pytest.raises(SetupError, match=r"fits\.json"):
        read_fits(file)
    with pytest.raises(SetupError, match="cannot be read"):
        read_fits(tmp_path / "missing.json")
