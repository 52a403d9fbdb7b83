"""Runs are folders: what was played is there, whatever happens, and a closed run stays as it is."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from toolsearch import SetupError
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.ranking.measures import Measure, hit
from toolsearch_evals.ranking.rank import ranking
from toolsearch_evals.reports.report import Column, Report, ReportTable
from toolsearch_evals.runs import Manifest, Run, read_run, schemas
from toolsearch_evals.runs.bars import missed, ranking_places, read_bars, savings_places
from toolsearch_evals.runs.manifest import command_text
from toolsearch_evals.runs.ranking_run import play_ranking, ranking_manifest, score_ranking
from toolsearch_evals.savings.savings_run import SAVINGS_RUNS

FILES = {"manifest.json": "manifest", "seal.json": "seal", "report.json": "report"}
LINES = {"units.jsonl": "unit", "events.jsonl": "event", "scores.jsonl": "score"}

TOOLS = ({"name": "open_ticket", "description": "Opens a ticket."}, {"name": "fly", "description": "Flies a kite."})
CASES = (
    Case("1", "open ticket", (("open_ticket",),), "lexical", "agent"),
    Case("2", "fly", (("fly",), ("open_ticket",)), steps=("fly a kite", "open a ticket")),
    Case("3", "sing \ud800", language="de"),
)
TICKETS = Dataset("tickets", TOOLS, CASES)


def follow_their_schemas(folder: Path) -> None:
    """Every file of a run and every line of it is as its published schema says."""
    for names, read in ((FILES, lambda text: [text]), (LINES, str.splitlines)):
        for file, name in names.items():
            validator = jsonschema.Draft202012Validator(dict(schemas.schema(name)))
            if (folder / file).exists():
                for text in read((folder / file).read_text("utf-8")):
                    validator.validate(json.loads(text))


def manifest(**changes: Any) -> Manifest:
    """Of a run of nothing in particular."""
    return replace(ranking_manifest("toolsearch eval ranking", [TICKETS], ["keyword"], "all"), **changes)


def report() -> Report:
    return Report("ranking", "A report", ("Done.",), {}, (ReportTable("All", (Column("n", "n"),), [{"n": 1}]),), (), ())


EVENT = {"turn": 0, "new": 10, "cached": 5, "written": 3, "billed": None}


@pytest.mark.parametrize("name", schemas.NAMES)
def test_a_published_schema_is_one_and_says_what_each_key_means(name: str) -> None:
    schema = schemas.schema(name)
    jsonschema.Draft202012Validator.check_schema(dict(schema))
    assert [key for key, value in schema["properties"].items() if not {"description", "const"} & {*value}] in (
        [],
        ["format"],
    )


def test_a_unit_is_kept_at_once_and_known_when_the_run_goes_on(tmp_path: Path) -> None:
    with Run.begin(tmp_path / "a", manifest()) as run:
        assert run.known("one") is None
        run.record("one", events=[EVENT], scores=[{"case": "1", "success": True}], result={"saved": 0.5})
        run.record("two", scores=[{"case": "2"}])
        kept = read_run(tmp_path / "a")
        assert kept.units == {"one": {"saved": 0.5}, "two": {}}
        with pytest.raises(SetupError, match=r"'one' .* is there already"):
            run.record("one")
    with Run.begin(tmp_path / "a", manifest(), resume=True) as run:
        assert (run.known("one"), run.known("two"), run.known("three")) == ({"saved": 0.5}, {}, None)
        run.record("three", scores=[{"case": "3"}])
        run.close(report())
    follow_their_schemas(tmp_path / "a")
    assert [line["unit"] for line in read_run(tmp_path / "a").scores()] == ["one", "two", "three"]


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_what_was_cut_off_in_the_middle_counts_as_not_there(tmp_path: Path, cut: int) -> None:
    """A unit is finished when its line is written to the end; without it, its other lines are dropped."""
    with Run.begin(tmp_path / "a", manifest()) as run:
        run.record("one", events=[EVENT], scores=[{"case": "1"}], result={"n": 1})
        run.record("two", events=[EVENT, EVENT], scores=[{"case": "2"}], result={"n": 2})
    units = tmp_path / "a" / "units.jsonl"
    units.write_bytes(units.read_bytes()[:-cut])
    stored = read_run(tmp_path / "a")
    assert (list(stored.units), len([*stored.events()]), len([*stored.scores()])) == (["one"], 1, 1)
    with Run.begin(tmp_path / "a", manifest(), resume=True) as run:
        assert run.known("two") is None
        run.record("two", events=[EVENT], scores=[{"case": "2"}], result={"n": 3})
    stored = read_run(tmp_path / "a")
    assert stored.units == {"one": {"n": 1}, "two": {"n": 3}}
    assert [line["unit"] for line in stored.events()] == ["one", "two"]
    follow_their_schemas(tmp_path / "a")


def test_a_closed_run_is_never_written_again(tmp_path: Path) -> None:
    with Run.begin(tmp_path / "a", manifest()) as run:
        run.record("one", scores=[{"case": "1"}])
        run.close(report())
    before = {file.name: file.read_bytes() for file in (tmp_path / "a").iterdir()}
    for resume in (False, True):
        with pytest.raises(SetupError, match=r"is closed, and a closed run is never changed"):
            Run.begin(tmp_path / "a", manifest(), resume=resume)
    done = CliRunner().invoke(app, ["ranking", "--index", "keyword", "--out", str(tmp_path / "a")])
    assert "holds a run, which is kept as it is" in str(done.exception)
    assert {file.name: file.read_bytes() for file in (tmp_path / "a").iterdir()} == before


@pytest.mark.parametrize("name", ["scores.jsonl", "manifest.json", "report.html", "seal.json"])
def test_reading_says_which_file_of_a_closed_run_was_changed(tmp_path: Path, name: str) -> None:
    with Run.begin(tmp_path / "a", manifest()) as run:
        run.record("one", scores=[{"case": "1"}])
        run.close(report())
    file = tmp_path / "a" / name
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert read_run(tmp_path / "a").require_unchanged().is_closed, "git may change the ends of lines"
    file.write_bytes(b"{}" if name == "seal.json" else file.read_bytes() + b" ")
    assert read_run(tmp_path / "a").changed == (name,)
    with pytest.raises(SetupError, match=f"'{name}' of the run .* changed after it was closed"):
        read_run(tmp_path / "a").require_unchanged()


def test_a_missing_file_of_a_closed_run_counts_as_changed(tmp_path: Path) -> None:
    with Run.begin(tmp_path / "a", manifest()) as run:
        run.close(report())
    (tmp_path / "a" / "events.jsonl").unlink()
    assert read_run(tmp_path / "a").changed == ("events.jsonl",)


def test_a_run_goes_on_only_where_one_was_begun_with_the_same_things(tmp_path: Path) -> None:
    Run.begin(tmp_path / "a", manifest()).stop()
    with pytest.raises(SetupError, match=r"begun and not finished \(0 units are there\): go on with --resume"):
        Run.begin(tmp_path / "a", manifest())
    more = replace(TICKETS, cases=CASES[:2])
    other = ranking_manifest("…", [more], ["keyword"], "test")
    with pytest.raises(SetupError, match=r"cannot go on: its data tickets/cases was .*; its settings split was 'all'"):
        Run.begin(tmp_path / "a", other, resume=True)
    Run.begin(tmp_path / "a", manifest(command="another", commit="c0ffee"), resume=True).stop()
    Run.begin(tmp_path / "new", manifest(), resume=True).stop()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine", "utf-8")
    with pytest.raises(SetupError, match=r"holds 'mine.txt' and is no run"):
        Run.begin(tmp_path / "notes", manifest())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not valid JSON"),
        ("[]", "has the format None, and this version reads 1"),
        ('{"format": 2}', "has the format 2, and this version reads 1"),
        ('{"format": 1, "kind": "ranking"}', "has no 'command' and no 'data'"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "manifest.json").write_text(text, "utf-8")
    with pytest.raises(SetupError, match=told):
        read_run(tmp_path)
    with pytest.raises(SetupError, match=r"there is no run in"):
        read_run(tmp_path / "elsewhere")


def test_hashes_change_with_what_is_measured_and_with_nothing_else() -> None:
    same = manifest(when="2020-01-01", commit="c0ffee", command="toolsearch eval ranking --split all")
    assert manifest().differences(same) == {}
    described = replace(TICKETS, definitions=({**TOOLS[0], "description": "Opens one."}, TOOLS[1]))
    turned = replace(TICKETS, definitions=TOOLS[::-1])
    labelled = replace(TICKETS, cases=(replace(CASES[0], gold=(("fly",),)), *CASES[1:]))
    kinds = replace(TICKETS, cases=tuple(replace(case, kind="other") for case in CASES))
    for dataset, differing in (
        (described, ["catalog tickets/cases"]),
        (turned, []),
        (labelled, ["data tickets/cases"]),
        (kinds, []),
    ):
        assert list(manifest().differences(ranking_manifest("", [dataset], ["keyword"], "all"))) == differing
    assert "index regex" in manifest().differences(ranking_manifest("", [TICKETS], ["regex"], "all"))
    with pytest.raises(SetupError, match=r"the data set 'tickets/cases' is there twice"):
        ranking_manifest("", [TICKETS, TICKETS], ["keyword"], "all")


def without_times(report: Report) -> Any:
    rows = [[{k: v for k, v in row.items() if k != "milliseconds"} for row in table.rows] for table in report.tables]
    return rows, report.headline, report.limits, dict(report.parameters)


def test_a_kept_ranking_has_the_report_of_one_that_is_not_kept_and_is_scored_again_without_searching(
    tmp_path: Path,
) -> None:
    plain = ranking([TICKETS], ["keyword", "regex"])
    indexes = ["keyword", "regex"]
    with Run.begin(tmp_path / "a", ranking_manifest("", [TICKETS], indexes, "all")) as run:
        kept = run.close(play_ranking(run, [TICKETS], indexes))
    assert without_times(kept) == without_times(plain)
    follow_their_schemas(tmp_path / "a")
    stored = read_run(tmp_path / "a")
    again = score_ranking(stored)
    assert [table.rows for table in again.tables] == [table.rows for table in kept.tables], "times included"
    assert again.headline == kept.headline
    half = Measure("half", lambda retrieved, gold: hit(retrieved, gold, 1) / 2, "Half of a hit.")
    assert score_ranking(stored, [half]).tables[0].rows[0]["half"] == 0.5


def test_a_ranking_goes_on_with_what_is_missing_only(tmp_path: Path) -> None:
    searched: list[str] = []

    def stop_after(number: int) -> Callable[[str], None]:
        def tick(done: str) -> None:
            searched.append(done)
            if len(searched) == number:
                raise KeyboardInterrupt

        return tick

    of = ranking_manifest("", [TICKETS], ["keyword"], "all")
    with pytest.raises(KeyboardInterrupt), Run.begin(tmp_path / "a", of) as run:
        play_ranking(run, [TICKETS], ["keyword"], tick=stop_after(2))
    before = list(read_run(tmp_path / "a").scores())
    assert [line["case"] for line in before] == ["1", "2"]
    with Run.begin(tmp_path / "a", of, resume=True) as run:
        done = run.close(play_ranking(run, [TICKETS], ["keyword"]))
    after = list(read_run(tmp_path / "a").scores())
    assert after[:2] == before, "seconds included: they were not searched again"
    assert without_times(done) == without_times(ranking([TICKETS], ["keyword"]))


@pytest.fixture
def tickets(tmp_path: Path) -> str:
    """A data set of 40 cases in a folder, and an index that takes a while."""
    folder = tmp_path / "tickets"
    folder.mkdir()
    (folder / "tools.jsonl").write_text("".join(json.dumps(each) + "\n" for each in TOOLS), "utf-8")
    cases = [{"id": str(at), "query": f"open ticket {at}", "gold": [["open_ticket"]]} for at in range(40)]
    (folder / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in cases), "utf-8")
    return str(folder)


SLOW = """
import time
from toolsearch_indexes.keyword import KeywordIndex

class Slow(KeywordIndex):
    def search(self, *given, **options):
        time.sleep(0.02)
        return super().search(*given, **options)
"""


@pytest.fixture
def slow(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which the index `slow` is installed."""
    info = tmp_path / "site" / "slow-1.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "site" / "slow_code.py").write_text(SLOW, "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[toolsearch.indexes]\nslow = slow_code:Slow\n", "utf-8")
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


@pytest.mark.skipif(os.name == "nt", reason="a test cannot send Ctrl-C to one process there")
def test_ctrl_c_loses_nothing_and_a_resumed_run_ends_with_the_same_report(
    tmp_path: Path, tickets: str, slow: dict[str, str]
) -> None:
    def toolsearch(*run: str) -> subprocess.Popen[str]:
        command = ["eval", "ranking", "--index", "slow", "--data", tickets, "--format", "json", "--run", *run]
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in the background
        program = [sys.executable, "-c", f"{heard}; from toolsearch.cli import main; main()", *command]
        pipe = subprocess.PIPE
        return subprocess.Popen(program, cwd=tmp_path, env=slow, stdout=pipe, stderr=pipe, encoding="utf-8")

    process = toolsearch("broken")
    units = tmp_path / "broken" / "units.jsonl"
    for _ in range(12_000):
        if units.exists() and units.read_bytes().count(b"\n") >= 5:
            break
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    kept = read_run(tmp_path / "broken")
    assert not kept.is_closed
    assert 5 <= len(kept.units) < 40
    assert f"Interrupted: {len(kept.units)} of 40 units are kept in broken" in told
    follow_their_schemas(tmp_path / "broken")

    ends = [process.communicate(timeout=120) for process in (toolsearch("broken", "--resume"), toolsearch("whole"))]
    resumed, unbroken = (without_the_clock(json.loads(told)) for told, _ in ends)
    assert resumed == unbroken
    stored = read_run(tmp_path / "broken").require_unchanged()
    assert stored.is_closed
    assert [*stored.units] == [*read_run(tmp_path / "whole").units]


def test_a_bar_that_is_missed_gives_the_exit_code_1(tickets: str, tmp_path: Path) -> None:
    few = ("ranking", "--index", "keyword", "--data", tickets)
    reached = CliRunner().invoke(app, [*few, "--fail-under", "R@15=0,NDCG@10=.0"])
    assert reached.exit_code == 0, reached.output
    missed = CliRunner().invoke(app, [*few, "--fail-under", "r@SHOWN=2, R@1=0", "--run", str(tmp_path / "a")])
    assert missed.exit_code == 1
    assert "tickets, keyword: R@shown is 1, and the bar is 2" in missed.stderr
    assert read_run(tmp_path / "a").is_closed, "a run that misses a bar is a run"


def test_an_unknown_measure_is_refused_before_anything_is_played(tickets: str, tmp_path: Path) -> None:
    few = ["ranking", "--index", "keyword", "--data", tickets, "--run", str(tmp_path / "a"), "--fail-under"]
    for bars, told in (
        ("succes=.8", r"there is no measure 'succes' to set a bar for; write NAME=VALUE with one of: R@1, R@3, "),
        ("R@5=much", r"the bar of 'R@5' is no number: 'much'"),
        ("R@5=nan", r"the bar of 'R@5' is no number: 'nan'"),
        (".8", r"'.8' is no bar; write NAME=VALUE with one of"),
    ):
        refused = CliRunner().invoke(app, [*few, bars])
        assert isinstance(refused.exception, SetupError)
        assert told in str(refused.exception)
    assert not (tmp_path / "a").exists()


def test_bars_are_held_against_what_matters_most() -> None:
    """Of a ranking, the means over all cases; of savings, the largest catalog; what is not known misses its bar."""
    places = ranking_places(ranking([TICKETS, replace(TICKETS, name="again")], ["keyword", "regex"]))
    assert list(places) == ["all of 2 sets, keyword", "all of 2 sets, regex"]
    known = SAVINGS_RUNS.with_bars()
    rows = [
        {"wire": wire, "mode": "append", "tools": tools, "saving": tools / 100, "success": None}
        for wire in ("openai_chat", "anthropic")
        for tools in (5, 50)
    ]
    saved = savings_places(replace(report(), tables=(ReportTable("All", (), rows),)))
    assert {place: values["saving"] for place, values in saved.items()} == {
        "50 tools, openai_chat": 0.5,
        "50 tools, anthropic": 0.5,
    }
    assert missed(read_bars("saving=.5", known), saved) == []
    assert missed(read_bars("success=.8", known), saved)[0] == (
        "50 tools, openai_chat: success is not known, and the bar is 0.8"
    )
    assert read_bars("cost_saving=.1,Success=.2", known) == (("cost saving", 0.1), ("success", 0.2))
    assert missed(read_bars("success=.8", known), {}) == ["There is nothing that a bar could be held against."]


def test_the_manifest_has_the_command_without_secrets_and_without_folders_of_the_machine(
    tickets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, folder in (("a", "tickets"), ("b", tickets)):
        arguments = [
            "ranking",
            "--index",
            "keyword",
            "--data",
            folder,
            "--run",
            name,
            "--format",
            "json",
            "--split",
            "dev",
        ]
        assert CliRunner().invoke(app, arguments).exit_code == 0
        told = "toolsearch eval ranking --data tickets --index keyword --split dev"
        assert read_run(Path(name)).manifest.command == told
    elsewhere = tmp_path.parent / "tools.json"
    assert command_text(["--data", elsewhere, "--token", "sk-abcdefghijklmnop1234"]) == (
        "--data '…/tools.json' --token [redacted]"
    )


def test_only_the_run_of_a_folder_goes_on(tickets: str) -> None:
    done = CliRunner().invoke(app, ["ranking", "--index", "keyword", "--data", tickets, "--resume"])
    assert str(done.exception) == "--resume goes on with the run of a folder: name it with --run"


def without_the_clock(report: dict[str, Any]) -> dict[str, Any]:
    for row in report["tables"][0]["rows"]:
        del row["milliseconds"]
    return {key: value for key, value in report.items() if key != "when"}
