"""The commands of `toolsearch eval`: they run, they write, and a mistake is one line with exit code 2."""

import io
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

from toolsearch.cli.main import main
from toolsearch_evals.cli import app
from toolsearch_evals.cli.demo import PLAN, demo
from toolsearch_evals.data.cases import load


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


SMALL = ("--sizes", "5,40", "--seeds", "1", "--conversations", "2", "--turns", "2", "--index", "keyword")


def test_savings_prints_a_table_and_writes_every_form(tmp_path: Path) -> None:
    out = run("savings", *SMALL, "--out", str(tmp_path))
    assert "What tool search saves" in out
    assert "Break-even" in out
    assert "Right tools called, by wording" in out
    assert "Where the tokens go" not in out, "it is too wide for a terminal"
    assert max(map(len, out.splitlines())) <= 100
    assert "Where the tokens go" in (tmp_path / "report.md").read_text("utf-8")
    assert {file.suffix for file in tmp_path.iterdir()} == {".json", ".csv", ".md", ".html"}


def test_a_report_can_be_piped_as_json() -> None:
    told = json.loads(
        run("savings", *SMALL, "--wire", "anthropic", "--mode", "bridge", "--set", "results=2", "--format", "json")
    )
    assert {row["wire"] for row in told["tables"][0]["rows"]} == {"anthropic"}
    assert told["parameters"]["modes"] == ["bridge"]
    assert told["parameters"]["settings"] == ["results=2"]
    ranked = json.loads(run("ranking", "--index", "keyword", "--split", "dev", "--format", "json"))
    assert ranked["tables"][0]["rows"][0]["cases"] == "all"


def test_the_published_setting_has_a_preset() -> None:
    assert "Spring published" in run("savings", "--preset", "spring", "--seeds", "1", "--index", "keyword")


def test_speed_and_import_cost_run() -> None:
    assert "keyword at 60 tools" in run("speed", "--sizes", "60", "--queries", "3", "--index", "keyword")
    assert "times the CPU" in run("import-cost", "--runs", "1")


def test_indexes_are_compared_and_the_cases_that_differ_written(tmp_path: Path) -> None:
    out = run("compare", "whoosh", "keyword", "--split", "dev", "--out", str(tmp_path))
    assert "whoosh against keyword" in out
    assert max(map(len, out.splitlines())) < 100, "whole answers are in the files, not in the terminal"
    written = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert written["parameters"]["indexes"] == ["whoosh", "keyword"]


def test_a_derived_set_can_be_measured_on(tmp_path: Path) -> None:
    run("derive", "--size", "1500", "--seed", "1", "--out", str(tmp_path / "more"))
    assert "1,500 tools" in run("datasets", "check", "--data", str(tmp_path / "more"))
    out = run("speed", "--data", str(tmp_path / "more"), "--sizes", "60", "--queries", "2", "--index", "keyword")
    assert "keyword at 60 tools" in out


def test_data_sets_are_listed_and_checked(tmp_path: Path) -> None:
    assert run("datasets", "list").startswith("commons: ")
    assert "in order" in run("datasets", "check")
    (tmp_path / "tools.jsonl").write_text('{"name": "ping"}\n', "utf-8")
    (tmp_path / "queries.jsonl").write_text('{"id": "1", "query": "ping", "gold": ["pong"]}\n', "utf-8")
    assert "names 'pong', which is not a tool of the set" in run("datasets", "check", "--data", str(tmp_path), code=1)


def test_the_demo_searches_and_shows_a_table_and_a_chart() -> None:
    said = io.StringIO()
    plan = replace(PLAN, sizes=(5, 50), seeds=1, conversations=2)
    report = demo(load("commons")[0], Console(file=said, width=80), Console(file=io.StringIO()), plan)
    told = said.getvalue()
    for shown in ("stripe/create_refund", "gitlab/retry_pipeline_job", "slack/slack_post_message", "█", "fewer tokens"):
        assert shown in told
    assert max(map(len, told.splitlines())) <= 80
    assert report.kind == "savings"


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(path, each, id=" ".join(path)) for path, each in commands(get_command(app))]
)
def test_the_help_of_a_command_shows_defaults_and_ends_with_an_example_that_parses(
    path: tuple[str, ...], command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = run(*path, "--help")
    assert said.strip().splitlines()[-1].strip() == command.epilog
    words = shlex.split(command.epilog)
    assert words[: 3 + len(path)] == ["Example:", "toolsearch", "eval", *path]
    command.make_context(path[-1], words[3 + len(path) :])
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name not in ("data", "help") and not parameter.required:
            assert parameter.show_default, f"{path}: --{parameter.name} shows no default"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ranking", "--index", "oracle"], "there is no index 'oracle'; installed are: "),
        (["ranking", "--dataset", "nope"], "there is no data set 'nope'; shipped are: 'commons'"),
        (["ranking", "--data", "missing"], "no folder 'missing'"),
        (["ranking", "--samples", "missing.json"], "there is no file 'missing.json'"),
        (["savings", "--sizes", "9000"], "a catalog of 9000 tools cannot be made"),
        (["savings", "--wire", "morse"], "there is no wire 'morse'; there are: 'openai_chat', 'anthropic'"),
        (["savings", "--mode", "osmosis"], "there is no delivery 'osmosis' to measure; there are: 'append'"),
        (["savings", "--set", "results"], "'results' is not a setting and its value, such as results=2"),
        (["savings", "--set", "results=0"], "the setting 'results' cannot be '0'"),
        (["savings", "--dataset", "commons", "--dataset", "commons"], "measured on one data set, not on 2"),
        (["speed", "--sizes", "many"], "'many' are not whole numbers"),
        (["ranking", "--index", "keyword:static"], "the index 'keyword' takes no encoder"),
        (["compare", "keyword", "keyword"], "are the same index"),
        (["compare", "keyword", "oracle"], "there is no index 'oracle'"),
        (["derive", "--size", "5", "--out", "more"], "5 need not be derived"),
        (["ranking", "--data", "."], "has no tools.jsonl"),
        (["ranking", "--data", "bare"], "'bare' has no labelled case"),
        (["calibrate", "--fits", "nowhere/fits.json"], "there is no folder 'nowhere' to write 'fits.json' into"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "tools.jsonl").write_text('{"name": "send"}\n', "utf-8")
    monkeypatch.setattr("sys.argv", ["toolsearch", "eval", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told_lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert told in told_lines[-1]
    assert "Traceback" not in "".join(told_lines)
