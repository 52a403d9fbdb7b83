"""What others write (models, endpoints, whoever edits a file) neither runs, nor lies, nor ends in a traceback."""

import copy
import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from toolsearch import SetupError
from toolsearch.layers import retry
from toolsearch.support.json_types import JsonObject
from toolsearch.testing import Failure
from toolsearch.tokens import counter
from toolsearch_evals.agent.endpoint import Endpoint
from toolsearch_evals.agent.evaluation import AgentPlan, evaluate
from toolsearch_evals.agent.loopback import ScriptedProvider
from toolsearch_evals.agent.play import Arm, Asked
from toolsearch_evals.agent.rows import rows_of, token_check
from toolsearch_evals.cli import app
from toolsearch_evals.cli.terminal import progress, show
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.ranking.compare import compare
from toolsearch_evals.ranking.measures import interval
from toolsearch_evals.reports.forms import as_csv, as_markdown
from toolsearch_evals.reports.report import Column, Report, ReportTable
from toolsearch_evals.runs import Manifest, Run, read_run
from toolsearch_evals.runs.bars import read_bars
from toolsearch_evals.runs.manifest import command_text
from toolsearch_evals.runs.paired import paired_difference
from toolsearch_evals.token_usage import TokenMeter

HOSTILE = (
    '=HYPERLINK("//e","x")',
    "@SUM(1)",
    "+1",
    "-1",
    "\t=1",
    "![p](//e/p.png)",
    "[x](//e)",
    "a|b\r\nc",
    "\x1b]0;e\x07",
    "[/x]",
)


def manifest(**changes: Any) -> Manifest:
    return Manifest(**{"kind": "ranking", "command": "x", "data": {}, "catalog": {}, "index": {}, **changes})


# -- texts -----------------------------------------------------------------------------------------------------------


def hostile_report() -> Report:
    rows = [{"name": text, "n": -1} for text in HOSTILE]
    table = ReportTable("Tools", (Column("name", "name"), Column("n", "n", "count")), rows)
    return Report("x", HOSTILE[5], HOSTILE, {}, (table,), HOSTILE, HOSTILE)


def test_no_text_of_a_csv_is_a_formula_and_numbers_stay_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(hostile_report()), newline="")))
    assert not [row["name"] for row in rows if row["name"][0] in "=+-@\t\r"]
    assert {row["n"] for row in rows} == {"-1"}


def test_markdown_fetches_nothing_and_a_row_stays_a_row() -> None:
    text = as_markdown(hostile_report())
    assert "](" not in text
    assert "![" not in text
    assert not {"\x1b", "\x07", "\r"} & {*text}
    table = text.partition("## Tools\n\n")[2].partition("\n\n")[0].splitlines()
    assert len(table) == 2 + len(HOSTILE)


def test_a_terminal_gets_no_control_characters_and_a_progress_line_reads_no_markup() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, legacy_windows=False)
    show(hostile_report(), console)
    assert "\x1b" not in out.getvalue()
    assert "\x07" not in out.getvalue()
    with progress(len(HOSTILE), console) as tick:
        for text in HOSTILE:
            tick(text)
    assert "\x07" not in out.getvalue()


@pytest.mark.parametrize(
    "url",
    ["https://h/v1?key=geheim", "https://geheim@h/v1", "https://u:geheim@h", "https://h/geheim/v1", "HTTPS://h?geheim"],
)
def test_a_key_in_an_address_is_in_no_run(url: str) -> None:
    told = command_text(["toolsearch", "eval", "agent", "--base-url", url, f"--option=a={url}"])
    assert "geheim" not in told
    assert told.lower().count("https://h") == 2


# -- files of a run --------------------------------------------------------------------------------------------------


def test_one_process_alone_plays_a_run(tmp_path: Path) -> None:
    """Two that go on with the same run would cut and write each other's lines."""
    with Run.begin(tmp_path / "a", manifest()) as run:
        run.record("one", scores=[{"case": "1"}])
        with pytest.raises(SetupError, match="is being played by another process"):
            Run.begin(tmp_path / "a", manifest(), resume=True)
        run.record("two", scores=[{"case": "2"}])
    with Run.begin(tmp_path / "a", manifest(), resume=True) as run:
        assert run.finished == 2
        run.record("three", scores=[{"case": "3"}])
    lines = [json.loads(line) for line in (tmp_path / "a" / "units.jsonl").read_text().splitlines()]
    assert lines[-1]["scores_end"] == (tmp_path / "a" / "scores.jsonl").stat().st_size


def _add(line: str) -> Callable[[Path], object]:
    def add(folder: Path) -> None:
        with (folder / "units.jsonl").open("a") as file:
            file.write(f"{line}\n")

    return add


def _edit(name: str, change: Callable[[JsonObject], JsonObject]) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        first, *others = (folder / name).read_text("utf-8").splitlines() if name != "manifest.json" else [""]
        read = json.loads(first or (folder / name).read_text("utf-8"))
        (folder / name).write_text("\n".join([json.dumps(change(read)), *others, ""]), "utf-8")

    return edit


DAMAGES: dict[str, Callable[[Path], object]] = {
    "bytes": lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe{}"),
    "deep": lambda folder: (folder / "manifest.json").write_text("[" * 100_000),
    "data": _edit("manifest.json", lambda read: {**read, "data": []}),
    "kind": _edit("manifest.json", lambda read: {**read, "kind": [1]}),
    "facts": _edit("manifest.json", lambda read: {**read, "facts": {}}),
    "array": _add("[1]"),
    "no unit": _add('{"x": 1}'),
    "torn": lambda folder: (folder / "scores.jsonl").write_bytes((folder / "scores.jsonl").read_bytes()[:-50]),
    "gone": lambda folder: (folder / "scores.jsonl").unlink(),
    "key": _edit("scores.jsonl", lambda read: {k: v for k, v in read.items() if k != "retrieved"}),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was interrupted at its very end."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tools.jsonl").write_text('{"name": "fly", "description": "Flies a kite."}\n')
    (folder / "cases.jsonl").write_text('{"id": "[/x]", "query": "kite", "gold": [["fly"]]}\n')
    ran = CliRunner().invoke(
        app, ["ranking", "--data", str(folder), "--index", "keyword", "--run", str(folder / "whole")]
    )
    assert ran.exit_code == 0, ran.output
    for name in ("seal.json", "report.json"):
        (folder / "whole" / name).unlink()
    return folder / "whole"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_said_to_be_damaged(played: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(played, tmp_path / "a")
    DAMAGES[damage](tmp_path / "a")
    ran = CliRunner().invoke(app, ["score", str(tmp_path / "a")])
    assert isinstance(ran.exception, SetupError), (ran.output, ran.exception)
    assert str(tmp_path / "a") in str(ran.exception)


def test_a_seal_that_seals_nothing_is_no_seal(tmp_path: Path) -> None:
    with Run.begin(tmp_path / "a", manifest()) as run:
        run.close(hostile_report())
    assert not read_run(tmp_path / "a").changed
    (tmp_path / "a" / "seal.json").write_text('{"files": {}}')
    assert read_run(tmp_path / "a").changed == ("seal.json",)


def test_nothing_played_is_nothing_to_score(tmp_path: Path) -> None:
    Run.begin(tmp_path / "a", manifest()).stop()
    ran = CliRunner().invoke(app, ["score", str(tmp_path / "a")])
    assert isinstance(ran.exception, SetupError)
    assert "nothing to score" in str(ran.exception)


@pytest.mark.parametrize("text", [",", " ", ", ,"])
def test_a_bar_that_is_none_fails(text: str) -> None:
    with pytest.raises(SetupError, match="sets no bar"):
        read_bars(text, ["success"])


# -- figures ---------------------------------------------------------------------------------------------------------


def test_one_unit_has_no_interval_and_one_case_tells_nothing_of_others() -> None:
    found = paired_difference([(0.2, 1)], [(0.9, 1)])
    assert (found.low, found.high) == (None, None)
    assert interval([0.5]) == (0.0, 1.0)
    tools = [{"name": name, "description": name} for name in ("fly", "swim")]
    report = compare([Dataset("d", tuple(tools), (Case("1", "fly", (("fly",),)),))], "keyword", "regex")
    assert {(row["low"], row["high"]) for row in report.tables[0].rows} == {(-1.0, 1.0)}


def test_one_conversation_that_meets_nothing_has_no_interval_and_no_break_even_by_what_is_met(tmp_path: Path) -> None:
    lines = [{"name": f"tool_{at}", "description": f"Does number {at}. " * 20} for at in range(30)]
    (tmp_path / "tools.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (tmp_path / "cases.jsonl").write_text('{"id": "1", "query": "sing", "gold": []}\n')
    command = ["savings", "--data", str(tmp_path), "--index", "keyword", "--mode", "append", "--sizes", "10,30"]
    command += ["--seeds", "1", "--conversations", "1", "--turns", "1", "--format", "json"]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 0, ran.output
    report = json.loads(ran.stdout)
    assert {row["saving low"] for row in report["tables"][0]["rows"]} == {None}
    assert not [sentence for sentence in report["headline"] if "interval" in sentence]
    assert "by the price of a met request, that is not known" in " ".join(report["headline"])


# -- endpoints -------------------------------------------------------------------------------------------------------


class OddProvider(ScriptedProvider):
    """Says that more was cached than was sent, calls a tool with NaN, and refuses tools with the key in its words."""

    secret = ""

    def refusal(self, number: int, body: JsonObject) -> Failure | None:
        return Failure(400, f"no tools for {self.secret}") if self.secret and "tools" in body else None

    def changed(self, reply: JsonObject) -> JsonObject:
        made: Any = copy.deepcopy(reply)
        made["usage"]["prompt_tokens_details"] = {"cached_tokens": 10 * made["usage"]["prompt_tokens"]}
        for call in made["choices"][0]["message"].get("tool_calls") or ():
            call["function"]["arguments"] = '{"number": NaN, "more": [Infinity]}'
        return made


def test_what_a_model_and_its_provider_make_up_is_kept_and_no_share_is_over_one(tmp_path: Path) -> None:
    plan = AgentPlan(arms=(Arm("static"),), sizes=(20,), tasks=("rooms-3",))
    with OddProvider() as provider, Run.begin(tmp_path / "a", manifest(kind="agent")) as run:
        endpoint = Endpoint("scripted", "openai_chat", provider.url, stream=False)
        asked = Asked(endpoint, endpoint.client(), TokenMeter(counter()), retry=retry(2, 0.0))
        outcome = evaluate(plan, asked, run)
    (row,) = rows_of(outcome.scores)
    assert row["success"] == 0
    assert row["cached share"] == 1
    assert token_check(outcome.scores)[0]["billed"] == outcome.scores[0]["cached"]
    assert [json.loads(line) for line in (tmp_path / "a" / "scores.jsonl").read_text().splitlines()]


def test_a_refusal_of_tools_tells_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "geheim-0815")
    with OddProvider() as provider:
        provider.secret = "geheim-0815"
        ran = CliRunner().invoke(app, ["agent", "--model", "m", "--base-url", provider.url, "--whole", "--probe-only"])
    assert "refuses tools" in ran.output
    assert "geheim" not in ran.output


def test_a_command_that_is_no_text_can_be_kept() -> None:
    """An argument that is not UTF-8 comes with lone surrogates, which no file can hold."""
    kept = command_text(["eval", "ranking", "--data", "caf\udce9"])
    assert kept.encode("utf-8").startswith(b"eval ranking --data ")
