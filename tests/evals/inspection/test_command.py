"""`toolsearch inspect` as a command."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tests.evals.inspection.conftest import definitions
from toolsearch import SetupError
from toolsearch_evals.cli.inspect_command import inspect

app = typer.Typer()
app.command()(inspect)


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_page_is_written_and_named(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(store).startswith("inspect.html: 3 conversations with 4 turns")
    assert (tmp_path / "inspect.html").read_text("utf-8").startswith("<!doctype html>")
    run(store, "--against", store, "--out", tmp_path / "two.html")
    assert "side by side" not in (tmp_path / "inspect.html").read_text("utf-8")
    assert '"pairs":[[0,0],[1,1],[2,2]]' in (tmp_path / "two.html").read_text("utf-8")


def test_the_data_are_printed_as_json_and_the_tables_in_the_terminal(store: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(definitions()), "utf-8")
    data = json.loads(run(store, "--format", "json", "--tools", tools, "--conversation", "desk-2"))
    assert [each["id"] for each in data["conversations"]] == ["desk-2"]
    assert data["damaged"] == {"places": 0, "first": []}
    assert len(data["never found"]) == 10
    shown = run(store, "--format", "table")
    assert "Queries that found nothing" in shown
    assert "paint the fence" in shown
    assert "bo@example.org" not in run(store, "--format", "json")
    assert "bo@example.org" in run(store, "--format", "json", "--as-recorded")


def test_what_cannot_be_read_is_told_on_the_error_stream(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    file.write_bytes(store.with_name("turns.jsonl").read_bytes() + b"{\n")
    done = CliRunner().invoke(app, [str(file), "--format", "json"])
    assert "turns.jsonl: not read: 1 place." in " ".join(done.stderr.split())
    assert json.loads(done.stdout)["damaged"]["places"] == 1


def test_options_that_do_not_go_together_say_so(store: Path, tmp_path: Path) -> None:
    for options, told in (
        (["--against", store, "--tools", "x.json"], "--tools is for one trace"),
        (["--format", "table", "--out", tmp_path / "a"], "tables are for the terminal"),
        (["--out", tmp_path / "none" / "a.html"], "there is no folder"),
    ):
        with pytest.raises(SetupError, match=told):
            run(store, *options)
