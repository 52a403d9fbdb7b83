"""Fitting confidence: what is fitted to what, how it is judged, and the file it is kept in."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsearch import Catalog, SetupError, open_index
from toolsearch.search.confidence import Fit, read_fits
from toolsearch.testing import FixedIndex
from toolsearch_evals.confidence.calibrate import _CachingEncoder, _probe, calibrate, searches
from toolsearch_evals.confidence.fitting import LabelledSearch, fit, write_fits
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.ranking.measures import wilson
from toolsearch_evals.reports.forms import FORMS

SHIPPED = Path(__file__).resolve().parents[2] / "indexes" / "toolsearch_indexes" / "calibration.json"


class Silent:
    """An encoder that has no direction for any text."""

    name, width = "silent", 2

    def encode(self, texts: Any, *, query: bool = False) -> Any:
        return [[0.0, 0.0] for _ in texts]


def small(**splits: int) -> Dataset:
    """The first cases of the shipped set by split."""
    (whole,) = load("commons")
    kept = [case for split, many in splits.items() for case in [c for c in whole.cases if c.split == split][:many]]
    return replace(whole, cases=tuple(kept))


def some(signal: float, relevant: bool, *, gold: bool = True, **more: Any) -> LabelledSearch:
    case = Case("1", "q", (("a",),) if gold else ())
    return LabelledSearch(case, ({"held": signal}, {"held": signal / 2}), (relevant, False), **more)


def test_what_goes_with_relevance_raises_it() -> None:
    found = [some(0.9, True), some(0.8, True), some(0.7, False), some(0.2, False), some(0.1, False, gold=False)] * 20
    made = fit(found)
    assert made.weights["held"] > 0
    assert made.relevant({"held": 0.95}) > 0.7
    assert made.relevant({"held": 0.1}) < 0.3
    assert made.answerable([0.9]) > 0.5 > made.answerable([0.02])


def test_queries_that_name_a_tool_teach_nothing() -> None:
    found = [some(0.9, True), some(0.1, False, gold=False)] * 20
    assert fit([*found, *[some(0.0, True, named=True)] * 100]) == fit(found)


def test_requests_made_unanswerable_share_the_weight_of_those_that_are() -> None:
    """They are many; were each as heavy as a real one, the fit would take most requests for unanswerable."""
    found = [some(0.5 + n / 100, n % 3 > 0) for n in range(40)] + [some(0.3, False, gold=False)] * 8
    with_more = [*found, *[some(0.4, False, left_out=True)] * 40]
    mean = [
        sum(made.relevant({"held": 0.5 + n / 100}) for n in range(40)) / 40 for made in map(fit, (found, with_more))
    ]
    assert abs(mean[0] - mean[1]) < 0.1


def test_each_request_that_can_be_met_is_searched_again_without_its_tools() -> None:
    catalog = Catalog([{"name": "send_mail", "description": "Send a mail."}, {"name": "read_mail"}, {"name": "rain"}])
    index = open_index("keyword")
    index.add(list(catalog))
    cases = [
        Case("1", "mail a letter", (("send_mail",),)),
        Case("2", "mail a parcel"),
        Case("3", "read_mail", (("rain",),)),
    ]
    found = searches(catalog, index, cases, lambda: None)
    assert [(each.case.id, each.left_out, each.named) for each in found] == [
        ("1", False, False), ("1", True, False), ("2", False, False), ("3", False, True),
    ]  # fmt: skip
    assert any(found[0].relevant)
    assert not any(found[1].relevant)
    assert len(index.search("mail a letter", 5)) == 2, "the tools are back"


def test_the_report_says_how_often_which_verdict_is_given_on_the_test_split() -> None:
    """SA-28: calibration error on the test split, unanswerable ones that are found, answerable ones that are not."""
    report, (entry,) = calibrate(small(train=20, dev=120, test=60), ["keyword"])
    rows = {row["requests"]: row for row in report.tables[0].rows}
    assert rows["answerable"]["n"] + rows["unanswerable"]["n"] == 60
    for row in rows.values():
        assert row["found"] + row["weak"] + row["none"] == pytest.approx(1)
        assert row["found low"] <= row["found"] <= row["found high"]
    assert report.tables[1].rows[0]["calibration error"] < 0.3
    assert entry["splits"] == ["train", "dev"]
    assert entry["cases"] == 140
    for form in FORMS.values():
        assert "calibration error" in form(report) or "first is right" in form(report)


def test_a_fit_of_an_index_with_an_encoder_holds_what_tells_the_model_under_another_name() -> None:
    _, (entry, words) = calibrate(small(train=20, dev=40, test=20), ["vector:static", "keyword"])
    assert len(entry["probe"]) == 16
    assert entry["encoder"].startswith("wordllama")
    assert "probe" not in words


def test_vectors_are_remembered_of_an_encoder_that_uses_its_array_again() -> None:
    class Reusing:
        name, width = "reusing", 2
        array = np.zeros((9, 2), np.float32)

        def encode(self, texts: Any, *, query: bool = False) -> Any:
            self.array[: len(texts)] = [[len(text), 1] for text in texts]
            return self.array[: len(texts)]

    remembered = _CachingEncoder(Reusing())
    remembered.encode(["a"])
    assert np.array_equal(remembered.encode(["four", "a"]), [[4, 1], [1, 1]])

    class Short(Reusing):
        def encode(self, texts: Any, *, query: bool = False) -> Any:
            return self.array[:1]

    with pytest.raises(SetupError, match="'reusing' gave 1 rows for 2 texts"):
        _CachingEncoder(Short()).encode(["a", "b"])


@pytest.mark.parametrize("encoder", [None, "static", Silent()])
def test_what_tells_no_model_is_no_probe(encoder: Any) -> None:
    index = FixedIndex({})
    index.encoder = encoder  # type: ignore[attr-defined]
    assert _probe(index) == {}


def test_what_ships_holds_the_limits_on_the_test_split_and_can_be_fitted_again(tmp_path: Path) -> None:
    """SA-28: of the unanswerable requests at most 10 % are found, of the answerable ones at most 5 % are not."""
    report, entries = calibrate(load("commons")[0], ["keyword", "hybrid"])
    for row in report.tables[0].rows:
        if row["requests"] == "unanswerable":
            assert row["found"] <= 0.10, row["index"]
        if row["requests"] == "answerable":
            assert row["none"] <= 0.05, row["index"]
    assert all(row["calibration error"] < 0.1 for row in report.tables[1].rows if row["said"] == "all")
    again = tmp_path / "calibration.json"
    shutil.copy(SHIPPED, again)
    write_fits(entries, again)
    assert again.read_bytes() == SHIPPED.read_bytes(), (
        "fit again: toolsearch eval calibrate --index keyword --index vector --index hybrid --index whoosh "
        "--index tantivy --index faiss --fits indexes/toolsearch_indexes/calibration.json"
    )


@pytest.mark.parametrize(
    ("change", "kept_date"), [(lambda e: e, True), (lambda e: {**e, "bias": 2.0}, False)], ids=["the same", "another"]
)
def test_a_fit_that_is_the_same_keeps_its_date_and_others_stay(
    change: Callable[[dict[str, Any]], dict[str, Any]], kept_date: bool, tmp_path: Path
) -> None:
    file = tmp_path / "fits.json"
    entry = {
        "index": "mine",
        "encoder": "",
        "date": "2020-01-01",
        "bias": 1.0,
        "weights": {},
        "offset": 0.0,
        "slope": 1.0,
    }
    write_fits([{**entry, "index": "other"}, entry], file)
    write_fits([change({**entry, "date": "2021-01-01"})], file)
    mine, other = read_fits(file)
    assert (mine["date"] == "2020-01-01") == kept_date
    assert other["index"] == "other"
    assert Fit.load(file, "other") == Fit(1.0, {}, 0.0, 1.0)
    assert json.loads(file.read_text("utf-8"))["format"] == 1


def test_a_set_without_splits_cannot_be_fitted_on() -> None:
    (whole,) = load("commons")
    cases = tuple(replace(case, split="") for case in whole.cases)
    with pytest.raises(SetupError, match="no splits"):
        calibrate(replace(whole, cases=cases), ["keyword"])


def test_an_index_without_signals_cannot_be_fitted() -> None:
    catalog = Catalog([{"name": "send_mail", "description": "Send a mail."}])
    index = open_index("regex")
    index.add(list(catalog))
    with pytest.raises(SetupError, match="no signals"):
        searches(catalog, index, [Case("1", "(send|post).*mail")], lambda: None)


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert wilson(0, 10) == pytest.approx((0, 0.2775), abs=1e-3)
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-3)
    assert wilson(10, 10)[1] == 1


def test_an_index_that_uses_the_fits_of_others_is_refused_with_their_names() -> None:
    with pytest.raises(SetupError, match=r"'best' has no fit of its own.* hybrid:minilm and hybrid:multilingual"):
        calibrate(small(train=1, dev=1, test=1), ["keyword", "best"])
