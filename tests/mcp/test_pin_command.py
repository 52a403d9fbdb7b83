"""`toolsearch pin` with real servers."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.servers import SECRET, entry
from toolsearch import SetupError
from toolsearch.mcp.commands.pin import pin

APP = typer.Typer()
APP.command()(pin)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLSEARCH_STATE", str(tmp_path / "state"))
    return tmp_path / "mcp.json"


def write(config: Path, **servers: dict[str, Any]) -> None:
    config.write_text(json.dumps({"mcpServers": servers}), "utf-8")


def shop(day: str) -> dict[str, Any]:
    """A server whose descriptions have this word in them."""
    plain = entry("plain", tools=1)
    return {**plain, "args": [*plain["args"], "--name", day]}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(APP, [str(each) for each in arguments], catch_exceptions=True)


def test_a_definition_that_changes_is_held_shown_and_released_by_the_command_it_names(config: Path) -> None:
    write(config, shop=shop("Monday"), dead=entry("dying", secret=SECRET))
    first = run(config)
    assert (first.exit_code, first.output.splitlines()[0]) == (0, "1 tool new, and approved as they are: shop/read_0")
    assert "no tools of 'dead': " in first.output  # it costs its own tools only
    assert SECRET not in first.output
    write(config, shop=shop("Tuesday"))
    held = run(config, "--format", "json")
    assert held.exit_code == 1
    (told,) = json.loads(held.stdout)["held"]
    assert told["diff"] == [
        "description:",
        "  - Reads invoice number 0 of Monday.",
        "  + Reads invoice number 0 of Tuesday.",
    ]
    release = told["command"].removeprefix("toolsearch pin ").split()
    assert release[:2] == [str(config), "--accept"]
    write(config, shop=shop("Wednesday"))  # not what was read before
    refused = run(*release)
    assert refused.exit_code == 1
    assert "of another definition than the present one" in refused.output
    write(config, shop=shop("Tuesday"))
    assert "approved: shop/read_0" in (accepted := run(*release)).output
    assert accepted.exit_code == 0


def test_a_look_for_ci_writes_nothing_and_holds_what_was_never_seen(config: Path) -> None:
    write(config, shop=entry("plain", tools=2))
    pins = config.with_name("pins.json")
    found = run(config, "--check", "--pins", pins)
    assert found.exit_code == 1
    assert "held back: shop/read_1 (new)" in found.output
    assert not pins.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check", "--accept", "*"], "--check changes nothing"),
        (["--forget", "shop/read_9"], "there is no pin of 'shop/read_9'"),
    ],
)
def test_a_mistake_is_one_line(config: Path, arguments: list[str], message: str) -> None:
    write(config)
    result = run(config, *arguments)
    assert isinstance(result.exception, SetupError)
    assert message in str(result.exception)
