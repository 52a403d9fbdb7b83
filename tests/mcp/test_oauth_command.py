"""`toolsearch login`: a browser opens because a person ran the command, and only then."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.oauth_servers import Protected, protected_server
from toolsearch import SetupError
from toolsearch.mcp.commands.login import login


@pytest.fixture(scope="module")
def running() -> Iterator[Protected]:
    with protected_server() as protected:
        yield protected


@pytest.fixture
def opened(running: Protected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that were opened in a browser: each is agreed to at once."""
    pages: list[str] = []

    def open_page(address: str) -> bool:
        pages.append(address)
        running.approve(address)
        return True

    monkeypatch.setattr("webbrowser.open", open_page)
    monkeypatch.setenv("TOOLSEARCH_LOGINS", "file")
    monkeypatch.setenv("TOOLSEARCH_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NOTES_CLIENT", "ours")
    monkeypatch.chdir(tmp_path)
    servers = {
        "notes": {"url": running.url},
        "registered": {
            "url": running.url,
            "oauth": {"clientId": "${NOTES_CLIENT}", "callbackPort": 39418, "scopes": ["notes:read", "notes:write"]},
        },
        "program": {"command": "x"},
        "with-token": {"url": running.url, "headers": {"Authorization": "Bearer t"}},
        "broken": {"url": running.url, "oauth": {"clientId": "${NO_SUCH_VARIABLE}"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    running.authorization.counts.clear()
    running.authorization.clients.clear()
    return pages


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(login)
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "300"})
    if isinstance(result.exception, SetupError):
        return 2, f"{result.output}{result.exception}"
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_log_in_list_and_log_out(opened: list[str], running: Protected) -> None:
    assert run("--list") == (0, "")
    code, said = run("notes")
    assert code == 0, said
    assert f"Logged in. notes  {running.url}  renews itself, kept in a file" in said
    assert len(opened) == 1
    assert opened[0] in said
    assert run("--list")[1].split() == ["notes", running.url, "renews", "itself,", "kept", "in", "a", "file"]
    assert run("notes", "--logout") == (0, "Logged out of 'notes'.\n")
    assert run("notes", "--logout") == (0, "Nobody was logged in to 'notes'.\n")


def test_a_client_of_the_entry_is_used_with_its_rights_and_its_port(opened: list[str], running: Protected) -> None:
    running.authorization.clients["ours"] = {"redirect_uris": ["http://127.0.0.1:39418/callback"]}
    code, said = run("registered")
    assert code == 0, said
    assert "client_id=ours" in opened[0]
    assert "notes%3Awrite" in opened[0]
    assert running.authorization.counts["register"] == 0


def test_no_browser_is_opened_where_none_may(
    opened: list[str], running: Protected, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = run("notes", "--no-browser", "--seconds", "1")
    assert (code, opened) == (2, [])
    assert f"{running.authorization.issuer}/oauth/start?" in said
    assert "run toolsearch login notes again" in said


@pytest.mark.skipif(sys.platform == "win32", reason="the event loop of Windows does not listen to a terminal")
def test_the_answer_can_be_pasted_where_the_browser_is_on_another_machine(
    opened: list[str], running: Protected, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    import httpx2

    from toolsearch.mcp.commands.login import _shows
    from toolsearch.mcp.oauth.login import log_in
    from toolsearch.mcp.oauth.store import LoginStore

    end, begin = os.pipe()
    shows = _shows(open_page=False)

    def show(address: str, redirect: object) -> None:
        shows(address, redirect)  # type: ignore[arg-type]
        back = httpx2.get(address, follow_redirects=False).headers["location"]
        os.write(begin, b"http://127.0.0.1/callback?code=x&state=wrong\n")
        asyncio.get_running_loop().call_later(0.1, os.write, begin, f"{back}\n".encode())

    with os.fdopen(end) as reading:
        monkeypatch.setattr(sys, "stdin", reading)
        shown = asyncio.run(log_in("notes", running.url, show, store=LoginStore(), seconds=20))
    os.close(begin)
    assert (shown.renewable, opened) == (True, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the server"),
        (["nobody"], "'nobody'; it has: 'notes', 'registered'"),
        (["program"], "'env' of its entry"),
        (["with-token"], "take it out first"),
        (["broken"], "NO_SUCH_VARIABLE"),
        (["notes", "--config", "elsewhere.json"], "elsewhere.json"),
    ],
)
def test_what_cannot_be_logged_in_to_says_why(opened: list[str], arguments: list[str], said: str) -> None:
    code, output = run(*arguments)
    assert (code, said in output, opened) == (2, True, []), output


def test_a_failure_is_told_in_one_line_without_the_log_of_the_sdk(
    opened: list[str], running: Protected, capfd: pytest.CaptureFixture[str]
) -> None:
    running.authorization.refuses = "access_denied"
    try:
        code, said = run("notes")
    finally:
        running.authorization.refuses = ""
    assert (code, "access_denied" in said) == (2, True)
    assert "Traceback" not in said + "".join(capfd.readouterr())
