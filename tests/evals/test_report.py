"""Reports: one value, many forms, nothing loaded from elsewhere, nothing unescaped."""

import ast
import csv
import io
import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

import toolsearch_evals
from toolsearch import SetupError
from toolsearch.layers import PRICES
from toolsearch_evals.data.cases import load
from toolsearch_evals.reports.chart import TONES, Chart, ChartLine, svg
from toolsearch_evals.reports.forms import FORMS, write
from toolsearch_evals.reports.report import Card, Column, Detail, Details, Report, ReportTable, Said, environment, shown
from toolsearch_evals.reports.waterfall import Step, Waterfall, waterfall_svg
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
    plan = SweepPlan(
        sizes=(5, 20, 60),
        seeds=1,
        conversations=2,
        turns=(2,),
        indexes=("keyword", "regex"),
        wires=("openai_chat", "anthropic"),
    )
    return savings_report(sweep(commons, commons.cases, plan), plan, commons, "all")


HOSTILE = "<script>alert(1)</script> | \" & '"


def hostile() -> Report:
    table = ReportTable(
        HOSTILE, (Column("a", HOSTILE), Column("b", "b", "share")), [{"a": HOSTILE, "b": -0.5}], HOSTILE
    )
    line = ChartLine(HOSTILE, ((1, 1), (10, 10)), 1)
    chart = Chart(HOSTILE, HOSTILE, HOSTILE, (line,), ((5, HOSTILE),), x_unit=HOSTILE, choices=((HOSTILE, HOSTILE),))
    other = replace(chart, choices=((HOSTILE, f"{HOSTILE} 2"),))
    fall = Waterfall(HOSTILE, (HOSTILE, HOSTILE), (Step(HOSTILE, (1, 2)),), HOSTILE, choices=((HOSTILE, HOSTILE),))
    return Report(
        "k",
        HOSTILE,
        (HOSTILE,),
        {HOSTILE: HOSTILE},
        (table,),
        (HOSTILE,),
        (HOSTILE,),
        (chart, other),
        cards=(Card(HOSTILE, HOSTILE, HOSTILE),),
        waterfalls=(fall,),
        cases=(Details(HOSTILE, (Detail(HOSTILE, ((HOSTILE, HOSTILE),), (Said(HOSTILE, HOSTILE),)),), HOSTILE),),
    )


def test_the_page_is_well_formed_and_loads_nothing(report: Report) -> None:
    page = FORMS["html"](report)
    tags = Strict.read(page).seen
    assert not re.search(r"https?:|//|@import|url\(", page.replace("<!doctype html>", ""))
    assert {tag for tag, _ in tags}.isdisjoint({"link", "img", "iframe", "object", "embed", "form", "base"})
    assert all(not {"src", "xlink:href", "onload", "onclick", "style"} & attrs.keys() for _, attrs in tags)
    assert all(attrs.get("href", "#").startswith("#") for _, attrs in tags)
    assert "prefers-color-scheme:dark" in page
    assert 'name="viewport"' in page


def test_only_the_script_of_the_page_may_run() -> None:
    """Its hash is in the policy, which allows nothing else; what a definition says is in no script."""
    page = FORMS["html"](hostile())
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (*styles, *scripts)]
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src {hashes[0]}",
        f"script-src {hashes[1]}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert len(hashes) == 2
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", scripts[0])


def test_the_page_and_markdown_escape_everything() -> None:
    page = FORMS["html"](hostile())
    assert page.count("alert(1)") == page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 20
    assert [tag for tag, _ in Strict.read(page).seen].count("script") == 1
    markdown = FORMS["md"](hostile())
    assert r"&lt;script>alert(1)&lt;/script> \|" in markdown
    assert "<script" not in re.sub(r"^    .*$", "", markdown, flags=re.MULTILINE)  # what is indented is code


def test_a_page_holds_less_than_500_kb_and_says_what_is_left_out() -> None:
    rows = [{"a": f"{at} " + "x" * 2_000, "b": 0.5} for at in range(2_000)]
    table = ReportTable("long", (Column("a", "a"), Column("b", "b", "share")), rows)
    chart = Chart("many", "x", "y", tuple(ChartLine(f"line {at}", ((1, 1), (10, 10)), at) for at in range(900)))
    case = Detail("case", (("query", "x" * 9_000),), (Said("user", "x" * 9_000),) * 30)
    page = FORMS["html"](
        replace(hostile(), tables=(table,), charts=(chart,) * 9, cases=(Details("worst", (case,) * 50),))
    )
    Strict.read(page)
    assert len(page.encode()) < 500_000
    assert re.search(r"[\d,]+ more rows would make the page too large", page)
    assert re.search(r"\d+ charts more would make the page too large", page)
    assert "50 more cases would make the page too large" in page
    assert '<rect class="bar' in page  # there is no table of what a waterfall shows
    assert "more characters)" in page
    assert json.loads(FORMS["json"](replace(hostile(), tables=(table,))))["tables"][0]["rows"] == rows


def test_a_lone_surrogate_or_a_null_does_not_break_any_form(tmp_path: Path) -> None:
    odd = "\ud800 and \x00 \u202e"
    table = ReportTable(odd, (Column("a", odd),), [{"a": odd}])
    write(replace(hostile(), title=odd, tables=(table,)), tmp_path)
    for form in FORMS:
        assert "? and " in (tmp_path / f"report.{form}").read_text("utf-8") or form == "json"


def test_cards_and_cases_are_in_every_form_but_the_csv() -> None:
    cases = Details("Worst cases", (Detail("case 1", (("needed", "a/b"),), (Said("user", "do <it>"),)),), "Why.")
    report = replace(hostile(), cards=(Card("saved", "87 %", "n = 5"),), cases=(cases,))
    page, markdown, told = FORMS["html"](report), FORMS["md"](report), json.loads(FORMS["json"](report))
    assert '<dt>saved</dt><dd class="value">87 %</dd><dd class="sure">n = 5</dd>' in page
    assert '<li class="user"><b>user</b><pre>do &lt;it&gt;</pre></li>' in page
    assert "- saved: 87 % (n = 5)" in markdown
    assert "### case 1\n\n- needed: a/b\n\nuser:\n\n    do <it>\n" in markdown
    assert told["cards"] == [{"label": "saved", "value": "87 %", "note": "n = 5"}]
    assert told["cases"][0]["each"][0]["said"] == [{"who": "user", "text": "do <it>"}]
    assert FORMS["csv"](report) == FORMS["csv"](hostile())


def test_charts_that_differ_in_a_choice_share_one_switch(report: Report) -> None:
    page = FORMS["html"](report)
    assert re.findall(r"<legend>([^<]+)", page) == ["wire", "scale"]
    assert re.findall(r'<figure data-c data-c0="([^"]+)"', page) == [
        dict(each.choices)["wire"] for each in (*report.charts, *report.waterfalls)
    ]
    assert page.count('data-c1="log"') == page.count('data-c1="linear"') == 8
    one = replace(report, charts=tuple(replace(each, scales=("log",)) for each in report.charts[:4]), waterfalls=())
    assert "<legend>" not in FORMS["html"](one)


def test_every_chart_has_its_values_as_a_table(report: Report) -> None:
    page = FORMS["html"](report)
    assert page.count('<details class="values">') == len(report.charts) + len(report.waterfalls)
    for chart in report.charts:
        assert len(chart.rows()) == 3
        assert all(f"<td>{escape(cell)}</td>" in page for row in chart.rows() for cell in row)


def test_a_table_and_a_section_can_be_found_by_assistive_technology(report: Report) -> None:
    """One h1, no level left out, every table with a caption and column heads, every link to a place on the page."""
    page = FORMS["html"](report)
    seen = Strict.read(page).seen
    levels = [int(tag[1]) for tag, _ in seen if re.fullmatch(r"h\d", tag)]
    assert levels.count(1) == 1
    assert set(levels) == {1, 2}
    tags = [tag for tag, _ in seen]
    assert tags.count("table") == tags.count("caption")
    assert all(attrs.get("scope") == "col" for tag, attrs in seen if tag == "th")
    ids = [attrs["id"] for _, attrs in seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [attrs["href"] for _, attrs in seen if "href" in attrs]
    assert len(named) > 5
    assert {f"#{each}" for each in ids} >= set(named)
    assert not [
        attrs for tag, attrs in seen if tag == "svg" and "aria-label" not in attrs and "aria-hidden" not in attrs
    ]


def test_colours_can_be_told_from_the_paper() -> None:
    """WCAG: 4.5 for text, 3 for lines, in light, in dark and on paper; each line has a dash of its own."""
    style = (PACKAGE / "reports" / "page.css").read_text("utf-8")
    palettes = re.findall(r":root\{[^}]+\}", style)
    assert len(palettes) == 3
    for palette in palettes:
        colours = dict(re.findall(r"--(\w+):(#[0-9a-f]+)", palette))
        for name, ground, least in (
            ("ink", "paper", 7), ("soft", "paper", 4.5), ("soft", "wash", 4.5), ("t5", "paper", 4.5),
            ("t1", "paper", 4.5), ("edge", "paper", 3), *((f"t{at}", "paper", 3) for at in range(TONES)),
        ):  # fmt: skip
            assert contrast(colours[name], colours[ground]) >= least, (name, ground)
    dashes = [re.findall(rf"\.line\.tone{at}\{{stroke-dasharray:([\d ]+)", style) for at in range(TONES)]
    assert len({str(dash) for dash in dashes}) == TONES
    assert "transition" not in style
    assert "animation" not in style


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""

    def light(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_break_even_says_whose_it_is(report: Report) -> None:
    for chart in report.charts:
        for at, label in chart.marks:
            assert re.fullmatch(rf"even at {at:.0f} \((keyword|regex|keyword and regex|regex and keyword)\)", label)


def test_the_scales_of_a_chart_put_the_same_values_elsewhere(report: Report) -> None:
    tokens = report.charts[2]
    even, log = (svg(tokens, scale) for scale in ("linear", "log"))
    assert re.findall("<title>[^<]+", even) == re.findall("<title>[^<]+", log)
    assert re.findall('class="dot[^>]+', even) != re.findall('class="dot[^>]+', log)
    assert ">0</text>" in even
    assert ">0</text>" not in log


def test_a_waterfall_adds_up() -> None:
    fall = Waterfall("Where", ("new", "cached"), (Step("definitions", (10, 90)), Step("results", (5, 0))))
    drawn = waterfall_svg(fall)
    Strict.read(drawn)
    assert fall.rows()[-1] == ["in all", "15", "90", "105"]
    assert drawn.count("<rect") == 5  # of the results, nothing is cached
    ends = [
        (float(x), float(x) + float(wide)) for x, wide in re.findall(r'x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)
    ]
    assert [ends[1][0], ends[2][0]] == pytest.approx([ends[0][1], ends[1][1]], abs=0.2)
    assert ends[-1][1] == pytest.approx(ends[2][1], abs=0.2)
    Strict.read(waterfall_svg(Waterfall("nothing", ("new",), ())))


def test_waterfalls_side_by_side_have_one_scale(report: Report) -> None:
    """A fifth of the tokens once had a bar as long as all of them."""
    for wire in {falls.choices for falls in report.waterfalls}:
        mine = [falls for falls in report.waterfalls if falls.choices == wire]
        assert {falls.reach for falls in mine} == {max(falls.all_steps()[-1].total for falls in mine)}
    half, whole = (Waterfall("", ("new",), (Step("a", (value,)),), reach=100) for value in (50, 100))
    wide, wider = (float(re.findall(r'width="([\d.]+)"', waterfall_svg(each))[0]) for each in (half, whole))
    assert wider == pytest.approx(2 * wide, abs=0.2)


def test_a_text_that_was_measured_never_becomes_a_part_of_the_title() -> None:
    """A title once ended in "(keyword, ≤ 20)"."""
    columns = (Column("index", "index"), Column("even", "break-even", is_result=True), Column("note", "note"))
    table = ReportTable("Break-even", columns, [{"index": "keyword", "even": "≤ 20", "note": ""}] * 2)
    assert table.full_title == "Break-even (keyword)"
    assert [columns[at].key for at in table.distinct_columns()] == ["even"]


def test_the_notes_of_the_page_show_code_as_code(report: Report) -> None:
    told = FORMS["html"](replace(report, measured=("Run `a < b` twice.",), limits=()))
    assert "<li>Run <code>a &lt; b</code> twice.</li>" in told


def test_the_chart_has_a_point_for_every_row_and_marks_the_break_even(report: Report) -> None:
    rows = report.tables[0].rows
    for chart in report.charts:
        wire = dict(chart.choices)["wire"]
        mine = [row for row in rows if row["wire"] == wire]
        arms = [line for line in chart.lines if line.tone]
        assert sum(len(line.points) for line in arms) == len(mine)
        drawn = svg(chart)
        assert drawn.count('class="dot') == drawn.count("<title>") == sum(len(line.points) for line in chart.lines)
        assert drawn.count('class="mark"') == len(chart.marks)
        assert [x for x, _ in chart.lines[0].points] == [5, 20, 60]
    assert len(report.charts) == 8
    saved, met, tokens, price = report.charts[:4]
    assert saved.lines[0].points[0] == (5, rows[0]["saving"])
    assert met.lines[0].interval(0) == (rows[0]["success low"], rows[0]["success high"])
    assert tokens.lines[0].points[0] == (5, rows[0]["static tokens"])
    assert price.lines[1].points[0] == (5, rows[0]["cost a met request"])
    assert saved.marks == tokens.marks != ()


def test_the_cards_say_what_the_table_says(report: Report) -> None:
    row = next(
        row for row in reversed(report.tables[0].rows) if row["wire"] == "openai_chat" and row["index"] == "keyword"
    )
    saved, even, met, requests = report.cards
    assert saved.value == f"{row['saving']:.0%}".replace("%", " %")
    assert "60 tools, append, keyword, openai_chat" in saved.note
    assert even.value == f"{report.data['break_even'][0]['tokens']} tools"
    assert met.value == f"{row['success']:.0%}".replace("%", " %")
    assert f"n = {row['requests to meet']}" in met.note
    assert requests.value == f"{row['requests']:.1f}"
    assert report.title == "What tool search saves: commons, 673 tools"


def test_dollars_are_those_of_the_dated_prices(report: Report) -> None:
    dollars = {table.title: table for table in report.tables}["Dollars for 1,000 conversations"]
    row = dollars.rows[0]
    of = next(each for each in report.tables[0].rows if each["tools"] == 60)
    price = PRICES[row["model"]]
    tokens = of["uncached"] * price.input + of["cached"] * price.cached + of["output"] * price.output
    assert row["dollars"] == pytest.approx(tokens / 1_000)
    assert row["date"] == price.date
    assert dollars.cells()[0][-2].lstrip("−").startswith("$")
    assert {(row["wire"], row["model"].partition("-")[0]) for row in dollars.rows} == {
        ("openai_chat", "gpt"),
        ("anthropic", "claude"),
    }


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
    assert [shown(value, "dollars") for value in (1234.5, -0.016)] == ["$1,234.50", "−$0.02"]
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
