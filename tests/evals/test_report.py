"""Reports: one value, many forms, nothing loaded from elsewhere, nothing unescaped."""

import ast
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import toolsearch_evals
from toolsearch import SetupError
from toolsearch_evals.data.cases import load
from toolsearch_evals.reports.chart import Chart, ChartLine, svg
from toolsearch_evals.reports.forms import FORMS, write
from toolsearch_evals.reports.report import Column, Report, ReportTable, environment, shown
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.sweep import SweepPlan, sweep

PACKAGE = Path(toolsearch_evals.__path__[0])
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Strict(HTMLParser):
    """Fails on a tag that is not closed; keeps the tags, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    @classmethod
    def read(cls, text: str) -> "Strict":
        parser = cls()
        parser.feed(text)
        parser.close()
        assert parser.open == []
        return parser


@pytest.fixture(scope="module")
def report() -> Report:
    commons = load("commons")[0]
    plan = SweepPlan(sizes=(5, 20, 60), seeds=1, conversations=2, turns=2, indexes=("keyword", "regex"))
    return savings_report(sweep(commons, commons.cases, plan), plan, commons, "all")


HOSTILE = "<script>alert(1)</script> | \" & '"


def hostile() -> Report:
    table = ReportTable(
        HOSTILE, (Column("a", HOSTILE), Column("b", "b", "share")), [{"a": HOSTILE, "b": -0.5}], HOSTILE
    )
    chart = Chart(HOSTILE, HOSTILE, HOSTILE, (ChartLine(HOSTILE, ((1, 1), (10, 10)), 1),), ((5, HOSTILE),))
    return Report("k", HOSTILE, (HOSTILE,), {HOSTILE: HOSTILE}, (table,), (HOSTILE,), (HOSTILE,), (chart,))


def test_the_page_is_well_formed_and_loads_nothing(report: Report) -> None:
    page = FORMS["html"](report)
    tags = Strict.read(page).seen
    assert not re.search(r"https?:|//|@import|url\(", page.replace("<!doctype html>", ""))
    assert {tag for tag, _ in tags}.isdisjoint({"script", "link", "img", "iframe", "object", "embed"})
    assert all(not {"src", "href", "xlink:href", "onload", "onclick"} & attrs.keys() for _, attrs in tags)
    assert "prefers-color-scheme:dark" in page
    assert 'name="viewport"' in page


def test_the_page_and_markdown_escape_everything() -> None:
    page = FORMS["html"](hostile())
    assert "<script" not in page
    assert "script" not in {tag for tag, _ in Strict.read(page).seen}
    markdown = FORMS["md"](hostile())
    assert r"&lt;script>alert(1)&lt;/script> \|" in markdown


def test_a_break_even_says_whose_it_is(report: Report) -> None:
    for chart in report.charts:
        for at, label in chart.marks:
            assert re.fullmatch(rf"even at {at:.0f} \((keyword|regex|keyword and regex|regex and keyword)\)", label)


def test_the_notes_of_the_page_show_code_as_code(report: Report) -> None:
    told = FORMS["html"](replace(report, measured=("Run `a < b` twice.",), limits=()))
    assert "<li>Run <code>a &lt; b</code> twice.</li>" in told


def test_the_chart_has_a_point_for_every_row_and_marks_the_break_even(report: Report) -> None:
    rows = report.tables[0].rows
    for chart in report.charts:
        static, *arms = chart.lines
        wire = chart.title.partition(":")[0]
        mine = [row for row in rows if row["wire"] == wire]
        assert sum(len(line.points) for line in arms) == len(mine)
        assert [x for x, _ in static.points] == [5, 20, 60]
        drawn = svg(chart)
        assert drawn.count("<circle") == len(mine) + 3
        assert drawn.count('class="mark"') == len(chart.marks) > 0
    assert len(report.charts) == 4


def test_a_chart_of_one_point_can_be_drawn() -> None:
    Strict.read(svg(Chart("t", "x", "y", (ChartLine("one", ((28, 500.0),), 0),))))


def test_the_json_holds_everything_and_no_name_of_the_machine(report: Report) -> None:
    told = json.loads(FORMS["json"](report))
    assert {
        "format",
        "when",
        "parameters",
        "environment",
        "tokenizers",
        "break_even",
        "measured",
        "limits",
    } <= told.keys()
    assert told["parameters"]["seeds"] == 1
    assert told["environment"]["toolsearch"]
    assert told["tables"][0]["rows"] == [dict(row) for row in report.tables[0].rows]
    assert told["tokenizers"]["anthropic"].startswith("estimate")
    assert environment().keys() == {"toolsearch", "python", "platform", "processors", "packages"}


def test_csv_and_markdown_have_the_rows_of_the_first_table(report: Report) -> None:
    read = list(csv.DictReader(io.StringIO(FORMS["csv"](report))))
    assert len(read) == len(report.tables[0].rows)
    assert {"wire", "tools", "saving", "uncached", "cached", "output"} <= read[0].keys()
    assert FORMS["md"](report).count("\n| openai_chat |") >= len(read) / 2


def test_the_headline_says_what_is_saved_from_where_on_and_what_it_costs(report: Report) -> None:
    *met, gain, begin, price = report.headline
    assert [told.split(":")[0] for told in met] == ["append, keyword, 60 tools", "append, regex, 60 tools"]
    assert all("a request that is met costs as much as" in told for told in met)
    assert "With 60 tools" in gain
    assert "fewer tokens" in gain
    assert "cheaper from about" in begin
    assert "With 5 tools it takes" in begin
    assert "more tokens" in begin
    assert "right ones were found and called in" in price


def test_every_report_names_its_tokenizer_in_every_form(report: Report) -> None:
    for form in ("json", "md", "html"):
        assert "o200k_base" in FORMS[form](report)
        assert "not public" in FORMS[form](report)


def test_what_is_not_known_is_a_dash() -> None:
    assert shown(None, "score") == shown(None, "share") == "–"
    assert shown(0.0, "score") == ".000"
    assert shown(-0.125, "share") == "−12.5 %"
    assert shown(1234.5, "count") == "1,234"
    assert [shown(value, "score") for value in (-0.0415, 10.5, 1.0)] == ["−.042", "10.500", "1.000"]


def test_a_value_is_shown_with_its_spread_where_there_is_one() -> None:
    column = Column("found", "found", "score", "±")
    assert column.cell({"found": 0.783, "±": 0.041}) == ".783 ±.041"
    assert column.cell({"found": 0.783, "±": None}) == ".783"
    assert Column("found", "found", "score").cell({"found": 0.5, "": 1}) == ".500"


def test_a_report_is_written_in_all_forms_or_says_why_not(report: Report, tmp_path: Path) -> None:
    files = write(report, tmp_path / "deep" / "er")
    assert {file.name for file in files} == {"report.json", "report.csv", "report.md", "report.html"}
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="cannot be written"):
        write(replace(report, charts=()), tmp_path / "file" / "sub")


@pytest.mark.parametrize("folder", [p.parent for p in PACKAGE.rglob("__init__.py")], ids=lambda folder: folder.name)
def test_the_map_of_each_package_names_every_module(folder: Path) -> None:
    doc = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    inner = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert inner - {"__init__"} <= set(re.findall(r"[a-z_]+", doc))
