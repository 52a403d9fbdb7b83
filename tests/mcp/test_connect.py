"""`toolsearch connect`: servers move behind the gateway, and nothing else of a client's file changes (group G)."""

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from toolsearch import SetupError
from toolsearch.mcp.clients import CLIENTS, Place, Records, client_named, connection
from toolsearch.mcp.clients.convert import converted, is_gateway
from toolsearch.mcp.clients.preview import without_secrets
from toolsearch.mcp.commands.connect import connect

PROGRAM = ["/opt/bin/toolsearch"]
SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up home folder, on Linux whatever the tests run on."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("TOOLSEARCH_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("sys.platform", "linux")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def run(*arguments: str, answer: str | None = None) -> tuple[int, str]:
    """The exit code and everything that is printed; an error of ours has the code 2, as the command line gives it."""
    app = typer.Typer()
    app.command()(connect)
    result = CliRunner().invoke(app, list(arguments), input=answer, env={"COLUMNS": "300"})
    if isinstance(result.exception, SetupError):
        return 2, f"{result.output}{result.exception}"
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def file_of(home: Path, client: str) -> Path:
    path = client_named(client).file(Place(os.environ, home, "linux", home))
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


SERVERS = {"gh": {"command": "npx", "args": ["-y", "gh-mcp"], "env": {"GITHUB_TOKEN": SECRET}}}
FILES = {
    "claude": json.dumps({"numStartups": 3, "mcpServers": SERVERS, "projects": {"/p": {"mcpServers": SERVERS}}}),
    "claude-desktop": json.dumps({"mcpServers": SERVERS}, indent=4),
    "cursor": json.dumps({"mcpServers": SERVERS}, indent="\t") + "\n",
    "vscode": "{\r\n  // servers\r\n  \"servers\": " + json.dumps(SERVERS) + ",\r\n  \"inputs\": [],\r\n}\r\n",
    "codex": f'model = "m" # mine\n\n[mcp_servers.gh]\ncommand = "npx"\nargs = ["-y", "gh-mcp"]\n'
    f'[mcp_servers.gh.env]\nGITHUB_TOKEN = "{SECRET}"\n\n[tui] # after\nx = 1\n',
    "gemini": "\ufeff" + json.dumps({"theme": "Ünï", "mcpServers": SERVERS}, ensure_ascii=False),
    "windsurf": json.dumps({"mcpServers": SERVERS}, indent=2),
    "zed": '// Zed\n{\n  "theme": "One", // mine\n  "context_servers": {\n    "gh": '
    + json.dumps({"source": "custom", **SERVERS["gh"]})
    + ',\n  },\n}\n',
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_servers_move_and_come_back_to_the_byte(home: Path, client: str) -> None:
    """LifeOS#2156, mcp-get#68: a configuration is never overwritten."""
    file = file_of(home, client)
    before = FILES[client].encode()
    file.write_bytes(before)
    code, said = run(client, "--yes")
    assert code == 0, said
    after = file.read_bytes().decode()
    entries = CLIENTS[client].entries(after, "it")
    assert list(entries) == ["toolsearch"]
    assert is_gateway(entries["toolsearch"])
    ours = home / ".config" / "toolsearch" / "mcp.json"
    assert json.loads(ours.read_text("utf-8"))["mcpServers"]["gh"] == SERVERS["gh"]
    assert SECRET not in said
    assert run(client, "--undo")[0] == 0
    assert file.read_bytes() == before
    assert not ours.exists()
    assert list((home / "state" / "connections").glob("*.*")) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_all_but_the_servers_keeps_its_bytes(home: Path, client: str) -> None:
    app = client_named(client)
    file = file_of(home, client)
    file.write_bytes(FILES[client].encode())
    change = connection(app, file, home / "ours.json", PROGRAM)
    assert change.before is not None
    key = "[mcp_servers.gh]" if app.form == "toml" else '"gh"'
    assert change.after.startswith(change.before[: change.before.index(key)].rstrip())
    rest = change.before[change.before.index("[tui]") if app.form == "toml" else change.before.rindex("}") :]
    assert change.after.endswith(rest)
    assert change.after.count("\r\n") == change.after.count("\n") * ("\r\n" in change.before)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_second_time_changes_nothing_and_new_servers_follow(home: Path, client: str) -> None:
    file = file_of(home, client)
    file.write_bytes(FILES[client].encode())
    run(client, "--yes")
    after = file.read_bytes()
    code, said = run(client)
    assert (code, "connected already" in said) == (0, True)
    assert file.read_bytes() == after
    app = client_named(client)
    more = app.changed(after.decode(), [], {"late": {"command": "late-server"}}, "it")
    file.write_bytes(more.encode())
    assert run(client, "--yes")[0] == 0
    assert list(app.entries(file.read_text("utf-8"), "it")) == ["toolsearch"]
    ours = json.loads((home / ".config" / "toolsearch" / "mcp.json").read_text("utf-8"))
    assert list(ours["mcpServers"]) == ["gh", "late"]
    assert run(client, "--undo")[0] == 0
    assert file.read_bytes() == more.encode()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_without_a_file_gets_one_and_loses_it_again(home: Path, client: str) -> None:
    file = file_of(home, client)
    code, told = run(client, "--yes")
    assert code == 0
    assert f"There is no file {file}, so no server moves" in told
    assert '"toolsearch": {"confirm": "auto"}' in told
    assert list(CLIENTS[client].entries(file.read_text("utf-8"), "it")) == ["toolsearch"]
    assert run(client, "--undo")[0] == 0
    assert not file.exists()


def test_a_file_that_is_named_has_to_be_there(home: Path) -> None:
    code, told = run("cursor", "--file", str(home / "misspelt.json"), "--yes")
    assert (code, "there is no file" in told, (home / "misspelt.json").exists()) == (2, True, False)


def test_the_undo_refuses_a_file_that_has_changed_since_and_shows_how(home: Path) -> None:
    file = file_of(home, "cursor")
    file.write_text(FILES["cursor"], "utf-8")
    run("cursor", "--yes")
    changed = file.read_text("utf-8").replace("{", '{"mine": 1, "apiKey": "hidden-value-1",', 1)
    file.write_text(changed, "utf-8")
    code, said = run("cursor", "--undo")
    assert code == 2
    assert "has changed since" in said
    assert '"mine": 1' in said
    assert "hidden-value-1" not in said
    assert file.read_text("utf-8") == changed


@pytest.mark.parametrize("client", CLIENTS)
def test_the_servers_go_back_into_a_file_that_has_changed_since(home: Path, client: str) -> None:
    """Claude Code writes to its file all the time."""
    app = client_named(client)
    file = file_of(home, client)
    file.write_bytes(FILES[client].encode())
    servers = app.entries(FILES[client], "it")
    run(client, "--yes")
    changed = app.changed(file.read_bytes().decode(), [], {"new": {"command": "new"}}, "it")
    changed = f"{changed}# mine\n" if app.form == "toml" else f"{changed}// mine\n"
    file.write_bytes(changed.encode())
    assert run(client, "--undo")[0] == 2
    code, said = run(client, "--undo", "--keep-changes")
    assert (code, "the servers are back" in said) == (0, True)
    now = file.read_bytes().decode()
    assert app.entries(now, "it") == {"new": {"command": "new"}, **servers}
    assert "mine" in now
    assert not (home / ".config" / "toolsearch" / "mcp.json").exists()


def test_nothing_happens_without_a_yes(home: Path) -> None:
    file = file_of(home, "cursor")
    file.write_text(FILES["cursor"], "utf-8")
    code, said = run("cursor")
    assert (code, "say --yes" in said) == (2, True)
    assert run("cursor", answer="n\n")[0] == 1
    assert file.read_text("utf-8") == FILES["cursor"]
    assert not (home / ".config" / "toolsearch").exists()
    assert not (home / "state").exists()
    assert run("cursor", answer="y\n")[0] == 0
    assert file.read_text("utf-8") != FILES["cursor"]


def test_a_file_that_changes_between_preview_and_change_is_left_alone(home: Path) -> None:
    file = file_of(home, "cursor")
    file.write_text(FILES["cursor"], "utf-8")
    change = connection(client_named("cursor"), file, home / "ours.json", PROGRAM)
    file.write_text("{}", "utf-8")
    with pytest.raises(SetupError, match="changed meanwhile"):
        Records().make(change)
    assert file.read_text("utf-8") == "{}"
    assert not (home / "ours.json").exists()


def test_copies_and_our_file_are_for_the_user_alone_and_the_client_keeps_its_mode_and_its_link(home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text(FILES["cursor"], "utf-8")
    real.chmod(0o640)
    file = file_of(home, "cursor")
    try:
        file.symlink_to(real)
    except OSError:
        file = real  # Windows lets few users make links
        return
    run("cursor", "--yes")
    assert file.is_symlink()
    assert "serve" in real.read_text("utf-8")
    if os.name == "posix":
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        private = [*(home / "state" / "connections").iterdir(), home / ".config" / "toolsearch" / "mcp.json"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
        assert stat.S_IMODE((home / "state" / "connections").stat().st_mode) == 0o700


def test_two_clients_share_one_file_and_the_undo_of_one_leaves_the_other(home: Path) -> None:
    for client in ("cursor", "windsurf"):
        file_of(home, client).write_text(FILES[client], "utf-8")
    file_of(home, "zed").write_text('{"context_servers": {"gh": {"command": "another-gh"}}}', "utf-8")
    for client in ("cursor", "windsurf", "zed"):
        assert run(client, "--yes")[0] == 0
    ours = home / ".config" / "toolsearch" / "mcp.json"
    assert list(json.loads(ours.read_text("utf-8"))["mcpServers"]) == ["gh", "gh-zed"]
    code, said = run("cursor", "--undo")
    assert (code, "another client needs it" in said) == (0, True)
    assert run("zed", "--undo")[0] == 0
    assert list(json.loads(ours.read_text("utf-8"))["mcpServers"]) == ["gh"]


def test_what_is_in_our_file_stays_there(home: Path) -> None:
    """hermes-agent#81050: what was there before comes back, what was changed there is not lost."""
    ours = home / "own.json"
    ours.write_text('{"toolsearch": {"deny": ["*/drop_*"]}, "mcpServers": {"a": {"command": "a"}}}', "utf-8")
    file = file_of(home, "cursor")
    file.write_text(FILES["cursor"], "utf-8")
    before = ours.read_bytes()
    assert run("cursor", "--yes", "--config", str(ours))[0] == 0
    assert list(json.loads(ours.read_text("utf-8"))["mcpServers"]) == ["a", "gh"]
    run("cursor", "--undo")
    assert ours.read_bytes() == before


def test_the_secrets_of_both_files_are_not_shown(home: Path) -> None:
    file = file_of(home, "cursor")
    entries = {
        "a": {"command": "x", "args": ["--api-key", "first-secret-1", "--token=second-secret-2"]},
        "b": {"url": "https://x.example/mcp?api_key=third-secret-3", "headers": {"X-Any": "fourth-secret-4"}},
        "c": {"command": "x", "env": {"PLAIN": "fifth-secret-5", "REF": "${env:REF}"}},
    }
    file.write_text(json.dumps({"primaryApiKey": "sixth-secret-6", "mcpServers": entries}, indent=2), "utf-8")
    code, said = run("cursor", "--yes")
    assert code == 0
    assert "secret-" not in said
    assert "x.example" in said
    assert "${REF}" in said


def test_the_secrets_of_a_file_of_toml_are_not_shown(home: Path) -> None:
    file = file_of(home, "codex")
    text = (
        '[mcp_servers.a]\ncommand = "x"\nargs = [\n  "--token",\n  "first-secret-1",\n]\n'
        'env = { KEY = "second-secret-2" }\n[mcp_servers.b]\nurl = "https://x.example"\n'
        '[mcp_servers.b.http_headers]\n"X-Any" = """third-secret-3"""\n'
    )
    file.write_text(text, "utf-8")
    code, said = run("codex", "--yes")
    assert (code, "secret-" in said) == (0, False)
    assert tomllib.loads(file.read_text("utf-8"))["mcp_servers"].keys() == {"toolsearch"}


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}'),
        ("cursor", '{"mcpServers": '),
        ("cursor", '{"mcpServers": ["a"]}'),
        ("cursor", '{"mcpServers": null}'),
        ("cursor", "[]"),
        ("codex", "[mcp_servers"),
        ("codex", 'mcp_servers = { a = { command = "x" } }'),
        ("codex", 'mcp_servers.a.command = "x"\n'),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(home: Path, client: str, text: str) -> None:
    file = file_of(home, client)
    file.write_text(text, "utf-8")
    code, said = run(client, "--yes")
    assert code == 2, said
    assert str(file) in said
    assert file.read_text("utf-8") == text
    assert not (home / ".config" / "toolsearch").exists()


def test_a_file_that_is_not_utf8_is_left_alone(home: Path) -> None:
    file = file_of(home, "cursor")
    file.write_bytes('{"mcpServers": {}}'.encode("utf-16"))
    assert run("cursor", "--yes")[0] == 2


def test_a_file_that_is_broken_since_shows_none_of_its_values(home: Path) -> None:
    file = file_of(home, "cursor")
    file.write_text(FILES["cursor"], "utf-8")
    run("cursor", "--yes")
    file.write_text('{"mcpServers": {"a": {"env": {"PLAIN": "first-secret-1", "B": "second-secret-2', "utf-8")
    code, said = run("cursor", "--undo")
    assert (code, "PLAIN" in said, "secret-" in said) == (2, True, False)


def test_comments_of_toml_have_no_secrets_in_a_preview() -> None:
    text = '# api_key = "first-secret-1"\na = 1 # password: second-secret-2\n# token=third-secret-3\n'
    assert "secret-" not in without_secrets(text, "toml")


TRICKY = """\
# about a
[mcp_servers.a] # [mcp_servers.not]
command = "x" # "
args = [
  "[mcp_servers.neither]",
  '''
[mcp_servers.b]
''',
  ["nested"],
]

  [mcp_servers.a.env]
  "K.x" = "v"

# about "b c"
[mcp_servers."b c"]
command = 'y\\'
enabled = false

[[list]]
x = \"\"\"
[mcp_servers.d]
\"\"\"\"
[profiles.p]
y = 1"""


def test_tables_of_toml_are_found_whatever_stands_in_texts_and_comments(home: Path) -> None:
    file = file_of(home, "codex")
    file.write_text(TRICKY, "utf-8")
    change = connection(client_named("codex"), file, home / "ours.json", PROGRAM)
    assert change.after.startswith("# about a\n[mcp_servers.toolsearch]\n")
    assert change.after.endswith(TRICKY[TRICKY.index("\n[[list]]") :])
    assert '# about "b c"' in change.after
    assert change.added["b c"] == {"command": "y\\", "disabled": True}
    assert change.moved.keys() == {"a", "b c"}


def test_comments_and_keys_of_servers_that_stay_keep_their_bytes(home: Path) -> None:
    text = """{
    "mcpServers": {
        // goes
        "goes": {"command": "x"},
        // stays, for a reason
        "stays" : {"command": "${config:x}", /* odd */ "n": 1.0},
        "goes2": {"command": "y"} // too
        // last word
    },
}"""
    file = file_of(home, "cursor")
    file.write_text(text, "utf-8")
    change = connection(client_named("cursor"), file, home / "ours.json", PROGRAM)
    kept = '        // stays, for a reason\n        "stays" : {"command": "${config:x}", /* odd */ "n": 1.0},'
    assert kept in change.after
    assert "// last word" in change.after
    assert list(CLIENTS["cursor"].entries(change.after, "it")) == ["stays", "toolsearch"]
    assert "known to the client alone" in change.stays["stays"]


@pytest.mark.parametrize(
    ("client", "theirs", "ours"),
    [
        (
            "vscode",
            {"type": "stdio", "command": "${userHome}/x", "env": {"A": "${env:A}", "B": "${input:my-key}"}},
            {"type": "stdio", "command": "${HOME}/x", "env": {"A": "${A}", "B": "${MY_KEY}"}},
        ),
        (
            "cursor",
            {"url": "https://x.example", "auth": {"CLIENT_ID": "i", "CLIENT_SECRET": "${env:S}", "scopes": ["r"]}},
            {"url": "https://x.example", "oauth": {"clientId": "i", "clientSecret": "${S}", "scopes": ["r"]}},
        ),
        ("cursor", {"command": "x", "args": ["${workspaceFolder}"]}, {"command": "x", "args": ["${ROOT}"]}),
        (
            "windsurf",
            {"serverUrl": "https://x.example", "disabledTools": ["drop"]},
            {"url": "https://x.example", "toolsearch": {"deny": ["drop"]}},
        ),
        (
            "gemini",
            {"httpUrl": "https://x.example", "headers": {"K": "$K"}, "includeTools": ["a"]},
            {
                "url": "https://x.example",
                "type": "http",
                "headers": {"K": "${K}"},
                "toolsearch": {"default": "deny", "allow": ["a"]},
            },
        ),
        ("gemini", {"url": "https://x.example"}, {"url": "https://x.example", "type": "sse"}),
        (
            "codex",
            {
                "url": "https://x.example",
                "bearer_token_env_var": "T",
                "http_headers": {"A": "b"},
                "env_http_headers": {"C": "D"},
                "tool_timeout_sec": 60,
                "enabled": False,
                "disabled_tools": ["drop"],
            },
            {
                "url": "https://x.example",
                "headers": {"A": "b", "C": "${D}", "Authorization": "Bearer ${T}"},
                "timeout": 60,
                "disabled": True,
                "toolsearch": {"deny": ["drop"]},
            },
        ),
        (
            "codex",
            {"command": "x", "env": {"A": "b"}, "env_vars": ["HOME", {"name": "C", "source": "local"}]},
            {"command": "x", "env": {"A": "b", "HOME": "${HOME}", "C": "${C}"}},
        ),
        (
            "zed",
            {
                "source": "custom",
                "enabled": False,
                "command": {"path": "x", "args": ["y"], "env": None},
                "remote": True,
            },
            {"command": "x", "args": ["y"], "disabled": True, "remote": True},
        ),
        ("claude", {"command": "x", "args": ["${A:-b}"], "mine": 1}, {"command": "x", "args": ["${A:-b}"], "mine": 1}),
    ],
)
def test_each_clients_form_becomes_ours(client: str, theirs: object, ours: object) -> None:
    """claude-code#40059, opencode#37421: keys and variables differ between clients; none is lost on the way."""
    assert converted(client_named(client), theirs, platform="linux").entry == ours


@pytest.mark.parametrize(
    ("client", "theirs"),
    [
        ("vscode", {"command": "x", "envFile": ".env"}),
        ("vscode", {"command": "${command:pick}"}),
        ("zed", {"source": "extension", "settings": {}}),
        ("zed", {"settings": {"a": 1}}),
        ("codex", {"command": "x", "env": {"A": "${B}"}}),
        ("claude-desktop", {"command": "x", "args": ["${B}"]}),
        ("cursor", "x"),
    ],
)
def test_a_server_that_would_not_work_with_us_stays_and_says_why(client: str, theirs: object) -> None:
    each = converted(client_named(client), theirs)
    assert each.entry is None
    assert len(each.notes) == 1


def test_what_vscode_asks_for_is_named(home: Path) -> None:
    inputs = [{"id": "gh-token", "type": "promptString", "description": "A token", "password": True}]
    entry = {"command": "x", "env": {"T": "${input:gh-token}"}}
    file_of(home, "vscode").write_text(json.dumps({"inputs": inputs, "servers": {"gh": entry}}), "utf-8")
    code, said = run("vscode", "--yes")
    assert code == 0
    assert "'gh-token' (A token): set the environment variable GH_TOKEN" in said


def test_a_server_that_may_ask_for_a_login_is_named_with_the_command(home: Path) -> None:
    entries = {
        "notes": {"url": "https://x.example"},
        "fixed": {"url": "https://y.example", "headers": {"authorization": "t"}},
    }
    file_of(home, "cursor").write_text(json.dumps({"mcpServers": entries}), "utf-8")
    code, said = run("cursor", "--yes")
    assert (code, "toolsearch login notes" in said, "login fixed" in said) == (0, True, False)


def test_secrets_that_move_within_a_project_are_named(home: Path) -> None:
    (home / "work" / ".cursor").mkdir()
    file = home / "work" / ".cursor" / "mcp.json"
    file.write_text(FILES["cursor"], "utf-8")
    assert "keep it out of version control" in run("cursor", "--project", "--yes")[1]
    assert "version control" not in run("cursor", "--project", "--undo")[1]


@pytest.mark.parametrize(
    ("settings", "on"),
    [
        ({"mcp": {"allowed": ["a"]}}, ["a"]),
        ({"mcp": {"excluded": ["a"]}}, ["b"]),
        ({"allowMCPServers": ["a", "b", "toolsearch"], "excludeMCPServers": ["b"]}, ["a"]),
    ],
)
def test_what_gemini_does_not_start_is_not_switched_on(home: Path, settings: dict[str, object], on: list[str]) -> None:
    servers = {"a": {"command": "a"}, "b": {"command": "b"}}
    file_of(home, "gemini").write_text(json.dumps({**settings, "mcpServers": servers}), "utf-8")
    code, said = run("gemini", "--yes")
    assert (code, "add 'toolsearch' to it" in said) == (0, settings == {"mcp": {"allowed": ["a"]}})
    ours = json.loads((home / ".config" / "toolsearch" / "mcp.json").read_text("utf-8"))["mcpServers"]
    assert [name for name, entry in ours.items() if not entry.get("disabled")] == on


def test_the_servers_of_a_project_start_in_its_folder(home: Path) -> None:
    folder = home / "work" / ".cursor"
    folder.mkdir()
    entry = {"command": "x", "args": ["${workspaceFolder}/a"], "cwd": "sub"}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"gh": entry}}), "utf-8")
    code, said = run("cursor", "--project", "--yes")
    assert code == 0
    ours = json.loads((home / "work" / "mcp.json").read_text("utf-8"))["mcpServers"]["gh"]
    assert ours == {"command": "x", "args": [f"{home / 'work'}/a"], "cwd": str(home / "work" / "sub")}
    assert "toolsearch connect cursor --project --undo" in said
    assert run("cursor", "--project", "--undo")[0] == 0


def test_the_folder_that_is_open_in_an_editor_reaches_the_gateway(home: Path) -> None:
    """toolport#239, mcp-router#210: folders are lost on the way."""
    entry = {"command": "x", "args": ["${workspaceFolder}"]}
    file = file_of(home, "cursor")
    file.write_text(json.dumps({"mcpServers": {"fs": entry}}), "utf-8")
    change = connection(client_named("cursor"), file, home / "ours.json", PROGRAM)
    left = CLIENTS["cursor"].entries(change.after, "it")["toolsearch"]
    assert left == {"command": PROGRAM[0], "args": ["serve", str(home / "ours.json"), "--root", "${workspaceFolder}"]}
    assert change.added == {"fs": {"command": "x", "args": ["${ROOT}"]}}


def test_another_configuration_that_is_served_already_is_named(home: Path) -> None:
    file_of(home, "cursor").write_text(FILES["cursor"], "utf-8")
    assert run("cursor", "--yes", "--config", str(home / "one.json"))[0] == 0
    code, said = run("cursor", "--yes")
    assert (code, "--config" in said) == (2, True)


def test_a_file_does_not_move_into_itself(home: Path) -> None:
    file = file_of(home, "cursor")
    file.write_text(FILES["cursor"], "utf-8")
    code, said = run("cursor", "--yes", "--config", str(home / "work" / ".." / ".cursor" / "mcp.json"))
    assert (code, "to itself" in said) == (2, True)
    assert file.read_text("utf-8") == FILES["cursor"]


def test_an_entry_of_the_gateway_with_options_of_the_user_stays_as_it_is(home: Path) -> None:
    gate = {"command": "toolsearch", "args": ["serve", "~/own.json", "--mode", "live"]}
    file = file_of(home, "cursor")
    file.write_text(json.dumps({"mcpServers": {"all": gate, "a": {"command": "a"}}}), "utf-8")
    assert run("cursor", "--yes", "--config", str(home / "own.json"))[0] == 0
    assert CLIENTS["cursor"].entries(file.read_text("utf-8"), "it") == {"all": gate}


def test_print_shows_the_entry_and_changes_nothing(home: Path) -> None:
    code, said = run("vscode", "--print", "--config", "ours.json")
    assert code == 0
    entry = json.loads(said)["servers"]["toolsearch"]
    assert entry["type"] == "stdio"
    assert entry["args"][-2:] == ["serve", str(home / "work" / "ours.json")]
    assert tomllib.loads(run("codex", "--print")[1])["mcp_servers"].keys() == {"toolsearch"}
    assert [path.name for path in home.iterdir()] == ["work"]


def test_without_a_client_all_are_listed(home: Path) -> None:
    code, said = run()
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == list(CLIENTS)
    code, said = run("emacs")
    assert (code, "known are: claude" in said) == (2, True)


@pytest.mark.parametrize(
    ("platform", "client", "file"),
    [
        ("linux", "claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("linux", "vscode", ".config/Code/User/mcp.json"),
        ("darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("win32", "vscode", "AppData/Roaming/Code/User/mcp.json"),
        ("linux", "zed", ".config/zed/settings.json"),
        ("darwin", "zed", ".config/zed/settings.json"),
        ("win32", "zed", "AppData/Roaming/Zed/settings.json"),
        ("win32", "claude", ".claude.json"),
        ("win32", "cursor", ".cursor/mcp.json"),
        ("win32", "codex", ".codex/config.toml"),
        ("darwin", "gemini", ".gemini/settings.json"),
        ("win32", "windsurf", ".codeium/windsurf/mcp_config.json"),
    ],
)
def test_the_place_of_each_file(platform: str, client: str, file: str) -> None:
    home = Path("/somewhere/of/mine")
    assert client_named(client).file(Place({}, home, platform, home)) == home / file


@pytest.mark.parametrize(
    ("entry", "is_ours"),
    [
        ({"command": "toolsearch", "args": ["serve", "x"]}, True),
        ({"command": r"C:\py\Scripts\toolsearch.exe", "args": ["serve", "x"]}, True),
        ({"command": "python", "args": ["-m", "toolsearch", "serve", "x", "--mode", "live"]}, True),
        ({"command": "uvx", "args": ["--from", "toolsearch-kit[mcp]", "toolsearch", "serve", "x"]}, True),
        ({"command": "serve", "args": ["toolsearch"]}, False),
        ({"command": "npx", "args": ["-y", "other-toolsearch"]}, False),
        ({"url": "https://x.example"}, False),
    ],
)
def test_an_entry_of_ours_is_known(entry: object, is_ours: bool) -> None:
    assert is_gateway(entry) == is_ours
