"""Reports and runs in a notebook: as HTML, as data frames, as plots."""

import base64
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from toolsearch import MissingExtra, SetupError
from toolsearch_evals.reports import Card, Chart, ChartLine, Column, Report, ReportTable
from toolsearch_evals.runs import Manifest, Run, StoredRun, read_run
from toolsearch_evals.runs.reading import file_hash

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\" ' & \ud800"
ROWS = [{"a": "x", "b": 0.25, "n": 1}, {"a": None, "b": 1, "n": 2, "late": "only here"}]
LOW_HIGH = ((1.0, 3.0), None)


def report(text: str = "plain", rows: int = 2) -> Report:
    table = ReportTable(text, (Column("a", text), Column("b", "share", "share")), [{"a": text, "b": 0.5}] * rows, text)
    lines = (
        ChartLine(text, ((5, 2.0), (50, 20.0)), 0),
        ChartLine(f"{text} 2", ((5, 3.0), (50, 6.0)), 1, intervals=LOW_HIGH),
    )
    chart = Chart(text, text, text, lines, ((10, text), (40, text)), choices=((text, text),), scales=("log", "linear"))
    return Report(
        "test", text, (text,), {}, (table, table), (text,), (text,), charts=(chart,), cards=(Card(text, text, text),)
    )


def run(folder: Path) -> StoredRun:
    manifest = Manifest("ranking", f"toolsearch {HOSTILE[:-1]}", {"own": "1"}, {"own": "2"}, {"keyword": "3"})
    with Run.begin(folder, manifest) as kept:
        for number in (1, 2):
            score = {"unit": f"u{number}", "case": f"c{number}", "score": number / 2}
            kept.record(f"u{number}", events=[{"unit": f"u{number}", "turn": 1}], scores=[score], result={"n": number})
    return read_run(folder)


class Tags(HTMLParser):
    """All tags, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.names: set[str] = set()
        html.encode("utf-8")
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.names |= {name for name, _ in attrs}


def test_a_report_shows_cards_headline_and_its_first_table_open() -> None:
    html = report()._repr_html_()
    assert html.count("<table>") == 3  # cards, and two tables
    assert html.count("<details>") == 1
    assert html.index("50.0 %") < html.index("<details>")


def test_a_report_of_many_rows_stays_small() -> None:
    html = report(rows=2_000)._repr_html_()
    assert "… and 1,980 more" in html
    assert len(html) < 20_000


@pytest.mark.parametrize("what", ["report", "table", "run"])
def test_what_is_shown_is_escaped_and_has_no_script(what: str, tmp_path: Path) -> None:
    hostile = report(HOSTILE)
    each = {"report": hostile, "table": hostile.tables[0], "run": run(tmp_path / "one")}[what]
    tags = Tags(each._repr_html_())
    assert tags.seen <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert tags.names <= {"style"}


def test_a_report_and_a_table_are_short_as_text() -> None:
    assert repr(report()) == "Report('test', 'plain', 2 tables)\nplain"
    assert repr(report().tables[0]) == "ReportTable('plain', 2 rows)"


def test_a_run_shows_what_it_is_of_and_whether_it_is_closed(tmp_path: Path) -> None:
    html = run(tmp_path / "one")._repr_html_()
    assert "Run one" in html
    assert "ranking" in html
    assert "keyword" in html
    assert "not closed" in html
    sealed = {"manifest.json": file_hash(tmp_path / "one" / "manifest.json"), "scores.jsonl": "0"}
    (tmp_path / "one" / "seal.json").write_text(json.dumps({"files": sealed}), "utf-8")
    html = read_run(tmp_path / "one")._repr_html_()
    assert "Changed after it was closed: scores.jsonl." in html
    assert "not closed" not in html


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_rows_become_a_data_frame(library: str) -> None:
    """Every key is a column, and what a row does not have is missing; numbers stay numbers."""
    pytest.importorskip(library, reason=f"needs {library}, which the extra dev has")
    table = ReportTable("t", (Column("a", "a"),), ROWS)
    whole = replace(report(), tables=(table,))
    for frame in (getattr(table, f"to_{library}")(), getattr(whole, f"to_{library}")()):
        assert list(frame.columns) == ["a", "b", "n", "late"]
        assert frame["b"].sum() == 1.25
        assert list(frame["n"]) == [1, 2]
        assert list(frame["late"])[1] == "only here"
    assert getattr(replace(table, rows=()), f"to_{library}")().shape == (0, 0)


def test_a_column_of_mixed_types_becomes_text_in_polars() -> None:
    pytest.importorskip("polars", reason="needs polars, which the extra dev has")
    rows = [{"a": 1, "b": [1]}, {"a": "x", "b": None}, {"a": None, "b": [2, 3]}]
    frame = ReportTable("t", (Column("a", "a"),), rows).to_polars()
    assert frame["a"].to_list() == ["1", "x", None]
    assert frame["b"].to_list() == [[1], None, [2, 3]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_run_becomes_a_data_frame(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"needs {library}, which the extra dev has")
    stored = run(tmp_path / "one")
    frames = {of: getattr(stored, f"to_{library}")(of) for of in ("scores", "events", "units")}
    assert list(frames["scores"]["score"]) == [0.5, 1.0]
    assert list(frames["events"]["turn"]) == [1, 1]
    assert list(frames["units"]["n"]) == [1, 2]
    with pytest.raises(SetupError, match="pass 'scores', 'events' or 'units'"):
        getattr(stored, f"to_{library}")("turns")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_the_library_the_install_line_is_said(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'toolsearch-kit\[{library}\]'"):
        getattr(report(), f"to_{library}")()


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_without_altair_the_install_line_is_said(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in {"altair", "vl_convert"} - {package}:
        there = ModuleType(each)
        there.__spec__ = ModuleSpec(each, None)
        monkeypatch.setitem(sys.modules, each, there)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install 'toolsearch-kit\[plots\]'"):
        report().plots()


def test_a_report_without_charts_says_so() -> None:
    with pytest.raises(SetupError, match="this report has no charts"):
        replace(report(), charts=()).plots()


def test_plots_are_charts_of_altair_that_can_be_put_together() -> None:
    altair = pytest.importorskip("altair", reason="needs altair, which the extra dev has")
    pytest.importorskip("vl_convert", reason="needs vl-convert-python, which the extra dev has")
    plots = report("<b>&").plots()
    assert len(plots) == 1
    assert isinstance(plots[0], altair.LayerChart)
    both = altair.hconcat(plots[0], plots[0]).to_dict()
    values = [row for data in both["datasets"].values() for row in data] if "datasets" in both else []
    values += plots[0].to_dict()["layer"][0]["data"]["values"] if not values else []
    assert {(row["x"], row["y"]) for row in values if "y" in row} == {(5, 2.0), (50, 20.0), (5, 3.0), (50, 6.0)}
    assert {(row["low"], row["high"]) for row in values if row.get("low")} == {(1.0, 3.0)}


def test_plots_are_shown_as_pictures_that_load_and_run_nothing() -> None:
    pytest.importorskip("altair", reason="needs altair, which the extra dev has")
    pytest.importorskip("vl_convert", reason="needs vl-convert-python, which the extra dev has")
    html = report(HOSTILE.replace("\ud800", "")).plots()[:1]._repr_html_()
    tags = Tags(html)
    assert tags.seen == {"img"}
    assert tags.names == {"alt", "src"}
    picture = base64.b64decode(re.findall(r"base64,([^\"]+)", html)[0]).decode("utf-8")
    assert picture.startswith("<svg")
    assert "<script" not in picture
    assert "onerror=alert(2)>" not in picture
    assert set(re.findall(r"https?://[^\"]+", picture)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
