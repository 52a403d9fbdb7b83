"""`toolsearch doctor mcp.json`: real servers are started; those that fail, make noise or leave processes are named."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.mcp import servers
from toolsearch_evals.cli.doctor_command import doctor

pytest.importorskip("mcp", reason="the extra mcp is not installed")

APP = typer.Typer(pretty_exceptions_enable=False)
APP.command()(doctor)
MARKER = "doctor-left-this"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("doctor") / "mcp.json"
    entries = {
        "plain": servers.entry("plain", tools=3),
        "noisy": servers.entry("raw", noise="text", bad="no-schema"),
        "dead": {**servers.entry("dying", at="start"), "env": {"API_KEY": servers.SECRET}},
        "clinging": servers.entry("clinging", child=True, marker=MARKER),
        "lacking": {"command": "no-such-program"},
    }
    file.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    options = ["--format", "json", "--need", "plain:read_0", "--need", "dead:x", "--out", str(file.parent / "out")]
    done = CliRunner().invoke(APP, [str(file), *options])
    assert done.exit_code == 1, done.output
    made: dict[str, Any] = json.loads(done.stdout)
    return made | {"page": (file.parent / "out" / "report.html").read_text("utf-8")}


def table(report: dict[str, Any], title: str) -> list[dict[str, Any]]:
    return next(each["rows"] for each in report["tables"] if each["title"] == title)


def test_each_server_has_a_row_with_its_state_and_what_it_left(report: dict[str, Any]) -> None:
    rows = {row["server"]: row for row in table(report, "Servers")}
    assert {name: row["tools"] for name, row in rows.items()} == {
        "plain": 3, "noisy": rows["noisy"]["tools"], "dead": 0, "clinging": 1, "lacking": 0,
    }  # fmt: skip
    assert rows["plain"]["state"] == "ready"
    assert (rows["plain"]["noise"], rows["plain"]["left"]) == (0, 0)
    assert rows["noisy"]["noise"] > 0
    assert rows["clinging"]["left"] == (1 if sys.platform == "linux" else rows["clinging"]["left"])
    assert rows["dead"]["given"] == "the value of API_KEY"
    assert rows["lacking"]["state"].startswith("failed: there is no command 'no-such-program'")


def test_findings_name_what_failed_and_no_secret_is_shown(report: dict[str, Any]) -> None:
    where = {(row["check"], row["where"]) for row in table(report, "Where")}
    assert {("fails", "dead"), ("fails", "lacking"), ("noise", "noisy"), ("secret-in-file", "dead")} <= where
    assert servers.SECRET not in json.dumps(report)
    assert servers.SECRET not in report["page"]


def test_a_need_of_a_server_that_failed_says_why(report: dict[str, Any]) -> None:
    met, unmet = report["needs"]
    assert (met["tool"], met["problem"]) == ("plain/read_0", "")
    assert unmet["problem"].startswith("it ended")


def test_nothing_is_left_of_what_was_started(report: dict[str, Any]) -> None:
    assert report
    assert servers.processes_with(MARKER) == []


@pytest.mark.skipif(shutil.which("true") is None, reason="there is no command that ends at once")
def test_a_configuration_of_which_no_server_starts_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"ends": {"command": "true"}}}), "utf-8")
    done = CliRunner().invoke(APP, [str(file), "--seconds", "3"])
    assert done.exit_code == 1
    assert "There is no usable tool." in done.output


@pytest.mark.parametrize("text", ['{"mcpServers": {}}', '{"mcpServers": {"off": {"command": "x", "disabled": true}}}'])
def test_a_configuration_without_servers_has_no_findings(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text, "utf-8")
    done = CliRunner().invoke(APP, [str(file), "--fail-on", "any"])
    assert done.exit_code == 0, done.output
    assert "There is no usable tool." in done.output


@pytest.mark.parametrize("form", ["// ours\n%s", '{"mcpServers": { // ours\n%s', "%s"])
def test_a_dead_server_is_found_in_a_file_with_comments_and_trailing_commas(tmp_path: Path, form: str) -> None:
    text = json.dumps({"mcpServers": {"live": servers.entry("plain", tools=1), "dead": {"command": "no-such-program"}}})
    whole = text.removeprefix('{"mcpServers": {') if "mcpServers" in form else text
    file = tmp_path / "mcp.json"
    file.write_text(form % f"{whole[:-1]},}}", "utf-8")
    done = CliRunner().invoke(APP, [str(file), "--format", "json"])
    assert done.exit_code == 1, done.output
    report = json.loads(done.stdout)
    assert [row["server"] for row in table(report, "Servers")] == ["live", "dead"]
    assert ("fails", "dead") in {(row["check"], row["where"]) for row in table(report, "Where")}
    remedies = {row["check"]: row["remedy"] for row in table(report, "What to do")}
    assert remedies["fails"].startswith("do what the reason says; else start its command by hand")
