"""Confidence judged on other data sets."""

import json
from dataclasses import replace

from toolsearch import Catalog, open_index
from toolsearch.search.confidence import Fit
from toolsearch_evals.confidence.calibrate import calibrate
from toolsearch_evals.confidence.elsewhere import Refitted, judge, judged_tables, steps
from toolsearch_evals.data.cases import Case, Dataset, load

MAIL = [
    {"name": "send_mail", "server": "post", "description": "Send an electronic mail."},
    {"name": "read_mail", "server": "post", "description": "Read the mails of a folder."},
]
SKY = [
    {"name": "get_forecast", "server": "sky", "description": "Weather forecast for a city."},
    {"name": "list_stars", "server": "sky", "description": "Stars that can be seen tonight."},
]
SURE = Fit(bias=-4.0, weights={"held": 9.0}, offset=0.0, slope=1.0)


def made(name: str, tools: list[dict[str, str]], *queries: tuple[str, str]) -> Dataset:
    cases = tuple(Case(str(n), query, ((gold,),)) for n, (query, gold) in enumerate(queries))
    return Dataset(name, tuple(tools), cases)


POST = made("post", MAIL, ("send an electronic mail", "post/send_mail"), ("mails of a folder", "post/read_mail"))
HEAVEN = made("heaven", SKY, ("weather forecast of paris", "sky/get_forecast"), ("stars tonight", "sky/list_stars"))


def test_requests_of_one_set_are_put_to_the_catalog_of_each_other() -> None:
    ticks: list[int] = []
    verdicts, errors = judge([POST, HEAVEN], lambda: open_index("keyword"), SURE, lambda: ticks.append(1))
    rows = {(row["requests"], row["to"]): row for row in verdicts}
    assert set(rows) == {
        ("post/cases", "post"), ("heaven/cases", "heaven"), ("post/cases", "heaven"), ("heaven/cases", "post"),
    }  # fmt: skip
    assert rows["post/cases", "post"]["found"] == 1
    assert rows["post/cases", "heaven"]["none"] == 1
    assert "named" not in rows["post/cases", "heaven"]
    for row in verdicts:
        assert row["found low"] <= row["found"] <= row["found high"]
        assert row["n"] == 2
    assert [row["set"] for row in errors] == ["post/cases", "heaven/cases"]
    assert all(0 <= row["error of first hits"] <= 1 and row["relevant"] == 1 for row in errors)
    assert len(ticks) == steps([POST, HEAVEN]) == 8
    assert judged_tables([], []) == ()


def test_several_files_of_requests_have_one_catalog_and_are_not_crossed() -> None:
    again = replace(POST, name="post/queries_agent", key="post/queries_agent")
    verdicts, _ = judge([POST, again], lambda: open_index("keyword"), SURE, lambda: None)
    assert [(row["requests"], row["to"]) for row in verdicts] == [
        ("post/cases", "post"),
        ("post/queries_agent", "post"),
    ]


def test_of_requests_that_get_none_it_is_counted_how_often_their_tool_is_named() -> None:
    unsure = Fit(bias=-6.0, weights={}, offset=0.0, slope=1.0)
    (row,), _ = judge([POST], lambda: open_index("keyword"), unsure, lambda: None)
    assert row["none"] == 1
    assert row["named"] == 1


def test_an_index_with_another_fit_says_what_that_fit_says() -> None:
    index = Refitted(open_index("keyword"), SURE)
    index.add(list(Catalog(MAIL)))
    one, many = index.search("send an electronic mail", 1), index.search("send an electronic mail", 9)
    assert len(one) == 1
    assert one.answerable == many.answerable
    assert one[0].confidence == SURE.relevant(one[0].signals or {})
    assert one.near == many.near


def test_the_report_judges_the_fits_on_other_sets() -> None:
    (whole,) = load("commons")
    kept = [case for split in ("train", "dev", "test") for case in [c for c in whole.cases if c.split == split][:40]]
    report, _ = calibrate(replace(whole, cases=tuple(kept)), ["keyword"], others=[POST, HEAVEN])
    assert [table.title for table in report.tables][-2:] == [
        "Verdicts on other sets",
        "Calibration error on other sets",
    ]
    assert report.parameters["judged on"] == ["post/cases", "heaven/cases"]
    assert json.dumps([table.rows for table in report.tables])
