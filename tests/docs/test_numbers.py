"""Every measured figure of the pages has a mark that says which command makes it: `tests/figures/__init__.py`."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.figures.expressions import FIGURE, parsed, value, written
from tests.figures.pages import BLOCK, IMAGE, MADE, ONE, ROOT, Made, Page, commands, pages, same_but_times, trimmed
from tests.figures.runner import Failed, Runner, reports
from toolsearch.cli.commands import app

EVERY = pages()
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^(?:\|[^\n]*\n){3,}", re.MULTILINE)
OUTPUT = re.compile(
    r"\$ (?:toolsearch eval (?!datasets|init|derive|diff|runs)|make torture)(?:[^\n]*\\\n)*[^\n]*\n\n?[^$\n]"
)
MEASURED = re.compile(
    rf"\|[* ]*(?=[^|]*(?:\.\d|%|±|ms|\d,\d{{3}}))(?:{FIGURE})(?: ms| s)?(?:, (?:{FIGURE})(?: ms)?)*[* ]*(?=\|)"
)
MARK = re.compile(r"<!-- (?:numbers|cells|by hand):(?:(?!-->).)*-->\n(?:<!-- no-run:[^\n]*-->\n|\n)*$", re.DOTALL)
SUMMARY = ("What it saves", "Numbers")  # sections of README.md


def unmarked(text: str) -> Iterator[str]:
    """The measured outputs and tables of a page that no mark stands before, by their first line."""
    for fence in FENCE.finditer(text):
        if OUTPUT.search(fence["body"]) and not MARK.search(text[: fence.start()]):
            yield fence["body"].partition("\n")[0]
    outside = FENCE.sub(lambda fence: " " * len(fence[0]), text)
    for table in TABLE.finditer(outside):
        if len(MEASURED.findall(table[0])) >= 3 and not MARK.search(text[: table.start()]):
            yield table[0].partition("\n")[0]


def options(of: tuple[str, ...]) -> tuple[Any, list[str]]:
    """The command that these arguments name, and the arguments after its name."""
    command: Any = typer.main.get_command(app)
    rest = list(of)
    while hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.list_commands(None), f"`toolsearch {' '.join(of)}` names no command"
        command = command.get_command(None, name)
    return command, rest


def test_every_measured_output_and_table_says_what_makes_it(page: Path) -> None:
    assert list(unmarked(page.read_text("utf-8"))) == [], "put a mark before it: see tests/figures/__init__.py"


def test_every_figure_of_the_summary_says_what_makes_it() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for title in SUMMARY:
        section = readme.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        bare = ONE.sub("", IMAGE.sub("", re.sub(r"<!-- by hand:.*?<!-- /by hand -->", "", section, flags=re.DOTALL)))
        assert re.findall(r"\d+(?:\.\d+)? %(?! interval)|\b0\.\d+|[\d.]+[–-][\d.]+×|[\d.]+ ms", bare) == [], title


@pytest.mark.parametrize("named", commands(EVERY).values(), ids=lambda named: named.name)
def test_the_command_of_a_mark_exists_with_its_options(named) -> None:
    command, rest = options(named.arguments)
    command.make_context(named.name, [each.replace("SETS/", f"{ROOT}/") for each in rest], resilient_parsing=True)
    taken = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {each for each in rest if each.startswith("--")} <= taken
    assert not reports(named) or "--out" in taken


def test_every_expression_names_a_command_of_some_page() -> None:
    named = commands(EVERY)
    for page in EVERY:
        wanted = page.expressions()
        assert {name for each in wanted for name in each.command.split(",")} <= {*named}, page.name
        assert [each for each in wanted if not each.key] == [], page.name
        assert {mark["name"] for mark in MADE.finditer(page.text)} <= {*named}, page.name
        assert page.text.count("<!-- = ") == len(ONE.findall(page.text)), f"{page.name}: a mark follows no figure"


def test_no_mark_begins_a_line_of_text(page: Path) -> None:
    """A comment at the beginning of a line ends the paragraph."""
    assert re.findall(r"^ *(?:[-*] +)?<!-- (?:=|made:).*", page.read_text("utf-8"), re.MULTILINE) == []


def test_no_path_of_a_machine_is_in_a_page(page: Path) -> None:
    shown = " ".join(block["body"] for block in BLOCK.finditer(page.read_text("utf-8")))
    assert re.findall(r"(?:^| )/(?:home|Users|work|root|mnt|data)/\S+", shown) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "named", [each for each in commands(EVERY).values() if each.quick], ids=lambda named: named.name
)
def test_a_quick_command_gives_what_the_pages_show(named, tmp_path: Path) -> None:
    made = {named.name: Runner(kept=tmp_path).made(named)}
    assert [page.name for page in EVERY if page.remade(made) != page.text] == [], "run: make numbers"
    assert [wrong for page in EVERY for wrong in page.wrong] == []


PAGE = """
<!-- numbers: first skip="b" -->
```text
$ toolsearch eval ranking \\
    --split test

old
```

<!-- cells: @first R@5
| | n | index=x | index=y
cases=all
-
-->
| | n | x | y |
|---|---|---|---|
| all | 1 | **.100 ±–** | 5 % |
| by hand | 1 | .100 | – |

In .1<!-- = @first index=x cases=all R@5 --> of 1 January 2026<!-- made: first -->; −1 %<!-- = @second index=x R@5 -->.
"""
REPORT = {
    "tables": [
        {
            "title": "Ranking",
            "rows": [
                {"index": "x", "cases": "all", "R@5": 0.25, "R@5 ±": 0.0625, "n": 1234},
                {"index": "y", "cases": "all", "R@5": 1.0, "n": 7},
            ],
        }
    ]
}


def page_of(text: str) -> Page:
    return Page(ROOT / "README.md", text)


def test_a_page_is_made_again_from_what_its_commands_gave() -> None:
    page = page_of(PAGE.replace("n | index=x", " | index=x"))
    made = Made(" Head\n ───\n a 1\n b 2\n b 3\n c 4\n", REPORT, "2 May 2026, commit abc")
    text = page.remade({"first": made})
    assert page.wrong == []
    assert "    --split test\n\n Head\n ───\n a 1\n …\n c 4\n```" in text.replace("\n\nHead", "\n\n Head")
    assert "| all | 1 | **.250 ±.062** | 100 % |\n| by hand | 1 | .100 | – |" in text
    assert "In .2<!-- = @first" in text
    assert "2 May 2026, commit abc<!-- made: first -->" in text
    assert "−1 %<!-- = @second" in text, "a figure whose command was not run stays"
    assert page_of(text).remade({"first": made}) == text


def test_a_command_that_was_not_run_leaves_its_page_alone() -> None:
    assert page_of(PAGE).remade({}) == PAGE


@pytest.mark.parametrize(
    ("like", "number", "half", "text"),
    [
        (".730 ±.049", 0.75, 0.0512, ".750 ±.051"), ("0.73", 0.8, None, "0.80"), ("1.000", 0.98, None, ".980"),
        (".98", 1.0, None, "1.00"), ("96 %", 0.123, None, "12 %"), ("−74.7 %", 0.5, None, "50.0 %"),
        ("+.1", 0.25, None, "+.2"), ("5,648", 1234567.4, None, "1,234,567"), ("±.023", 1.0, 0.026, "±.026"),
        ("–", 0.5, 0.1, ".500 ±.100"), (".5", None, None, "–"), ("−.004 ±.009", -0.0001, 0.01, ".000 ±.010"),
        ("2,408 ±–", 2500.2, 300.4, "2,500 ±300"), ("−51.1 % ±–", 0.5, 0.02, "50.0 % ±2.0 %"),
        ("≤ 20", "12 [11, 14]", None, "12"), ("9 [0]", "5 [4, 6]", None, "5 [4, 6]"), ("13", "≤ 20", None, "≤ 20"),
        ("88 % ±4 %", 0.9, 0.05, "90 % ±5 %"), ("2,408 ±294", 2500.2, 300.4, "2,500 ±300"), ("1.9", 0.96, None, "1.0"),
    ],
)  # fmt: skip
def test_a_figure_keeps_its_form(like: str, number: float | str | None, half: float | None, text: str) -> None:
    assert written(like, number, half) == text


def test_a_figure_that_is_not_there_or_not_alone_is_said() -> None:
    for expression, told in (
        ("@first index=z R@5", "no row of 'first'"),
        ("@first cases=all R@5", "2 rows of 'first'"),
    ):
        with pytest.raises(ValueError, match=told):
            value(parsed(expression), {"first": REPORT})
    assert value(parsed("@first cases=all of=mean R@5"), {"first": REPORT}) == (0.625, None)
    with pytest.raises(ValueError, match="two keys"):
        parsed("@first R@5 R@15")
    page = page_of("0 %<!-- = @first index=z R@5 -->")
    assert page.remade({"first": Made("", REPORT)}) == page.text
    assert page_of("–<!-- = @first index=z R@5 -->").remade({"first": Made("", REPORT)}).startswith("–<")
    assert page.wrong == ["README.md: '0 %': no row of 'first' has 'R@5' and {'index': 'z'}"]


def test_an_output_is_cut_as_its_mark_says() -> None:
    output = "\n\nSaid\n\n\nTable\n ───\n a 1\n b 2\n c 3\n\nNote\n"
    assert trimmed(output, {"rows": "1"}) == "Said\n\nTable\n ───\n a 1\n …\n\nNote\n"
    assert trimmed(output, {"from": "Table", "to": "Note"}) == "Table\n ───\n a 1\n b 2\n c 3\n"
    assert trimmed(output, {"lines": "1"}) == "Said\n…\n"
    with pytest.raises(ValueError, match="no line of the output begins with 'Tables'"):
        trimmed(output, {"from": "Tables"})


def test_only_a_time_may_differ() -> None:
    assert same_but_times(" a .730 1.260 424", "a .730   2.001 424")
    assert not same_but_times("a .730 1.260 424", "a .731 1.260 424")
    assert not same_but_times("a 1.730 1.260", "a 1.731 1.261")


def test_what_is_not_marked_is_found() -> None:
    table = "| a | b | c |\n|---|---|---|\n| .123 | .456 ±.1 | 5 % |\n"
    block = "```console\n$ toolsearch eval ranking\n\n.5\n```\n"
    assert list(unmarked(f"Text.\n\n{table}\n{block}")) == ["$ toolsearch eval ranking", "| a | b | c |"]
    assert (
        list(unmarked(f"<!-- by hand: a script -->\n{table}\n<!-- numbers: x -->\n<!-- no-run: slow -->\n{block}"))
        == []
    )
    assert list(unmarked("```console\n$ toolsearch eval ranking\n$ toolsearch eval savings\n```\n")) == []


def test_a_command_is_run_once_and_again_if_forced_or_if_it_failed(tmp_path: Path, monkeypatch) -> None:
    (named,) = page_of("<!-- numbers: v -->\n```console\n$ toolsearch eval datasets list\n\nx\n```\n").commands()
    first = Runner(kept=tmp_path).made(named)
    assert "commons" in first.output
    assert first.report is None
    monkeypatch.setattr(sys, "executable", "no such program")
    assert Runner(kept=tmp_path).made(named) == first
    with pytest.raises((Failed, OSError)):
        Runner(kept=tmp_path, force=True).made(named)
    assert Runner(kept=tmp_path).made(named) == first


def test_what_needs_more_is_left_alone() -> None:
    def told(command: str, runner: Runner) -> str:
        (named,) = page_of(f"<!-- numbers: v -->\n```console\n$ toolsearch {command}\n```\n").commands()
        return runner.why_not(named)

    assert "SETS=FOLDER" in told("eval ranking --data SETS/azure_mcp", Runner())
    assert told("eval ranking --data SETS/azure_mcp", Runner(sets=ROOT)) == ""
    assert "TIMES=1" in told("eval speed", Runner())
    assert told("eval speed", Runner(times=True)) == ""
    assert "model" in told("eval agent --model m", Runner(times=True))
    assert told("eval savings", Runner()) == ""
