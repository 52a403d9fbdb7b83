"""`toolsearch doctor`: what it prints, and its exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from toolsearch import SetupError
from toolsearch_evals.cli.doctor_command import doctor

APP = typer.Typer(pretty_exceptions_enable=False)
APP.command()(doctor)
CLEAN = [
    {"name": "archive_mail", "server": "mail", "description": "Archive old mail."},
    {"name": "find_photo", "server": "photos", "description": "Find a photo by its place."},
]
BARE = {
    "name": "tag",
    "server": "mail",
    "description": "Tag a letter.",
    "input_schema": {"type": "object", "properties": {"tags": {"type": "array"}}},
}
NAMING = {"name": "keep", "server": "box", "description": "Keep papers; do not use archive_mail."}


def run(folder: Path, tools: list[dict[str, Any]], *options: str) -> Result:
    (folder / "tools.json").write_text(json.dumps(tools), "utf-8")
    return CliRunner().invoke(APP, [str(folder / "tools.json"), *options], env={"COLUMNS": "200"})


def test_clean_tools_give_0_and_what_they_cost(tmp_path: Path) -> None:
    done = run(tmp_path, CLEAN, "--need", "mail:archive_mail")
    assert done.exit_code == 0, done.output
    assert "2 tools of 2 servers take" in done.output
    assert "Nothing was found that is known to harm." in done.output
    assert "found, and can be called" in done.output


@pytest.mark.parametrize(
    ("tools", "options", "code"),
    [
        ([*CLEAN, BARE], (), 1),
        ([*CLEAN, BARE], ("--fail-on", "left"), 0),
        ([*CLEAN, BARE], ("--fail-on", "none"), 0),
        ([*CLEAN, BARE], ("--target", "anthropic"), 0),
        ([*CLEAN, NAMING], (), 0),
        ([*CLEAN, NAMING], ("--fail-on", "any"), 1),
        (CLEAN, ("--need", "mail:send_mail", "--fail-on", "none"), 1),
    ],
)
def test_the_exit_code_is_1_for_what_fail_on_names_and_for_a_need_that_is_not_met(
    tmp_path: Path, tools: list[dict[str, Any]], options: tuple[str, ...], code: int
) -> None:
    done = run(tmp_path, tools, *options)
    assert done.exit_code == code, done.output


def test_each_check_has_its_rates_beside_it_and_the_most_harmful_comes_first(tmp_path: Path) -> None:
    done = run(tmp_path, [NAMING, *CLEAN, {**BARE, "description": ""}], "--format", "json")
    report = json.loads(done.stdout)
    rows = report["tables"][0]["rows"]
    assert [row["check"] for row in rows] == ["refused", "silent", "shadowed", "names-another"]
    assert (rows[0]["harm"], rows[0]["through"], rows[0]["is_harmful"]) == (1.0, 0.0, True)
    assert rows[0]["alarms"].startswith("0 of 722; 0 of 2,521")
    assert rows[-1]["is_harmful"] is False
    assert {"server", "tools", "tokens", "share"} == {*report["tables"][3]["rows"][0]}


def test_a_page_is_printed_and_written(tmp_path: Path) -> None:
    done = run(tmp_path, [*CLEAN, BARE], "--format", "html", "--out", str(tmp_path / "out"))
    assert done.stdout.startswith("<!doctype html>")
    assert (tmp_path / "out" / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert "mail/tag" in done.stdout


def test_a_file_without_tools_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, [])
    assert isinstance(done.exception, SetupError)
    assert "holds no usable tool" in str(done.exception)


def test_each_of_several_files_without_servers_is_a_server_of_its_own(tmp_path: Path) -> None:
    same = "Search the issues of a project by words and labels."
    for name, tool in {"github": "search_issues", "copy": "searchIssues"}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"tools": [{"name": tool, "description": same}]}), "utf-8")
    files = [str(tmp_path / f"{name}.json") for name in ("github", "copy")]
    done = CliRunner().invoke(APP, [*files, "--need", "github:search_issues", "--format", "json"])
    report = json.loads(done.stdout)
    assert report["needs"][0]["tool"] == "github/search_issues"
    assert "look-alike" in [row["check"] for row in report["tables"][0]["rows"]]
