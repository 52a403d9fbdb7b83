"""`toolsearch learned` and `toolsearch enrich --suggest`: what they show, and what the first one forgets."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolsearch import Learned, SetupError
from toolsearch.cli.commands import app

DAY = 86_400.0
TWINS = [
    {"name": "getBuildLog", "server": "ci", "description": "Get the console output of a build."},
    {"name": "getConsoleText", "server": "ci", "description": "Get the console output of a build."},
    {"name": "roll_dice", "server": "games", "description": "Roll two dice."},
]


def kept(folder: Path) -> str:
    now = [0.0]
    learned = Learned(clock=lambda: now[0], without_tenant=True)
    learned.teach("brr it is cold", "house/set_mode", tenant="acme", user="ana")
    now[0] = 10 * DAY
    learned.teach("make a <b>ticket</b>", "tracker/create_issue", tenant="acme")
    learned.teach("roll them", "roll_dice")
    file = folder / "learned.json"
    file.write_text(json.dumps(learned.export()), "utf-8")
    return str(file)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_lessons_are_a_table_for_people_and_json_for_programs(tmp_path: Path) -> None:
    file = kept(tmp_path)
    done = run("learned", file)
    assert done.exit_code == 0, done.output
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["query", "tool", "weight", "times", "users", "last", "tenant"]
    assert len(lines) == 3
    assert any(line.startswith("brr it is cold") and "1970-01-01" in line and "acme" in line for line in lines)
    told = json.loads(run("learned", file, "--tenant", "acme", "--since", "1970-01-05", "--format", "json").stdout)
    assert [each["tool"] for each in told] == ["tracker/create_issue"]


def test_the_page_is_one_file_in_which_no_query_is_markup(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("learned", kept(tmp_path), "--html", str(page)).exit_code == 0
    text = page.read_text("utf-8")
    assert "&lt;b&gt;ticket" in text
    assert "<b>ticket" not in text
    assert "http" not in text


def test_what_is_forgotten_leaves_the_file_and_all_else_stays(tmp_path: Path) -> None:
    file = kept(tmp_path)
    done = run("learned", file, "--tool", "house/set_mode", "--forget")
    assert (done.exit_code, "1 lessons are forgotten, 2 are left" in " ".join(done.stdout.split())) == (0, True)
    assert run("learned", file, "--tool", "house/set_mode").exit_code == 1
    assert len(json.loads(run("learned", file, "--format", "json").stdout)) == 2


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--forget"], "--forget needs to know what"),
        (["--since", "yesterday"], "is not a day"),
    ],
)
def test_what_cannot_be_done_is_said(more: list[str], told: str, tmp_path: Path) -> None:
    done = run("learned", kept(tmp_path), *more)
    assert isinstance(done.exception, SetupError)
    assert told in str(done.exception)


@pytest.mark.parametrize(("content", "told"), [(None, "there is no file"), ("[]", "not an export of Learned")])
def test_a_file_that_holds_no_lessons_is_named(content: str | None, told: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_text(content, "utf-8")
    done = run("learned", str(file))
    assert told in str(done.exception)


# -- suggestions -------------------------------------------------------------------------------------------------------


def tools(folder: Path) -> str:
    (folder / "tools.json").write_text(json.dumps(TWINS), "utf-8")
    return str(folder / "tools.json")


def test_enrich_suggests_without_a_model_what_to_write_queries_for(tmp_path: Path) -> None:
    suggested = ("enrich", "--suggest", "--tools", tools(tmp_path), "--index", "keyword")
    done = run(*suggested)
    assert done.exit_code == 0, done.output
    assert "1 of 3 tools need example queries most." in done.stdout
    assert "ci/getConsoleText: ci/getBuildLog comes before it" in done.stdout
    told = json.loads(run(*suggested, "--format", "json").stdout)
    assert [each["tool"] for each in told["suggested"]] == ["ci/getConsoleText"]
    assert told["suggested"][0]["probe"] == "Get the console output of a build."


def test_with_a_model_queries_are_written_for_just_these(tmp_path: Path) -> None:
    """The model answers for one tool, the only one that it is asked about."""
    (tmp_path / "model.py").write_text("""print('{"1": ["why did the build break"]}')""", "utf-8")
    out = tmp_path / "queries.jsonl"
    ask = f'"{Path(sys.executable).as_posix()}" "{(tmp_path / "model.py").as_posix()}"'
    more = ["--index", "keyword", "--out", str(out), "--ask", ask, "--queries", "1"]
    done = run("enrich", "--suggest", "--tools", tools(tmp_path), *more)
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["tool"] for line in out.read_text("utf-8").splitlines()] == ["ci/getConsoleText"]


def test_a_time_with_a_zone_means_that_zone(tmp_path: Path) -> None:
    """The lessons of `kept` are of 1970-01-01, 00:00, and of 1970-01-11."""
    file = kept(tmp_path)
    count = {day: run("learned", file, "--since", day).stdout.count("1970-") for day in (
        "1970-01-01T01:00:00+02:00", "1970-01-01T00:00:00-01:00", "0001-01-01", "9999-12-31"
    )}  # fmt: skip
    assert list(count.values()) == [3, 2, 3, 0]
