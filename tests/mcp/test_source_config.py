"""`mcp.json` as clients write it: variables, folders, transports, options, secrets, and entries that cannot work."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolsearch import SetupError
from toolsearch.mcp import ServerEntry, read_config
from toolsearch.mcp.options import OF_A_SERVER, OF_ALL

ENVIRON = {"TOKEN": "tok-1234567890", "HOST": "example.com", "EMPTY": ""}


def entry_of(entry: object, **options: object) -> ServerEntry:
    return read_config({"mcpServers": {"one": entry}}, environ=ENVIRON, **options).servers["one"]


def test_a_command_is_read_with_its_arguments_environment_and_folder(tmp_path: Path) -> None:
    entry = entry_of(
        {"command": "npx", "args": ["-y", "pkg", 8080], "env": {"LEVEL": 3}, "cwd": "sub", "timeout": 30}, root=tmp_path
    )
    assert (entry.transport, entry.command, entry.args) == ("stdio", "npx", ("-y", "pkg", "8080"))
    assert (entry.env, entry.cwd, entry.timeout) == ({"LEVEL": "3"}, str(tmp_path / "sub"), 30)


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "https://example.com/mcp"}, "http"),
        ({"url": "https://example.com/sse"}, "sse"),
        ({"url": "https://example.com/mcp", "type": "sse"}, "sse"),
        ({"url": "https://example.com/sse", "transport": "streamable-http"}, "http"),
        ({"url": "https://example.com/mcp", "type": "streamableHttp"}, "http"),
        ({"httpUrl": "https://example.com/sse"}, "http"),
        ({"serverUrl": "https://example.com/mcp"}, "http"),
        ({"command": "server", "type": "stdio"}, "stdio"),
    ],
)
def test_the_transport_is_what_the_entry_says_or_what_its_address_looks_like(entry: object, transport: str) -> None:
    assert entry_of(entry).transport == transport


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("${HOST}", "example.com"),
        ("${env:HOST}", "example.com"),
        ("${MISSING:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY}", ""),
        ("${MISSING:-}", ""),
        ("a${HOST}b${HOST}", "aexample.combexample.com"),
        ("$HOST", "$HOST"),
    ],
)
def test_variables_are_replaced_everywhere(written: str, read: str) -> None:
    assert entry_of({"command": "x", "args": [written]}).args == (read,)
    assert entry_of({"command": "x", "env": {"A": written}}).env == {"A": read}
    assert entry_of({"url": "https://e.com", "headers": {"A": written}}).headers == {"A": read}
    assert entry_of({"url": f"https://e.com/{written}"}).url == f"https://e.com/{read}"


def test_the_root_is_that_of_the_program(tmp_path: Path) -> None:
    entry = entry_of({"command": "x", "args": ["${ROOT}/data", "${workspaceFolder}"]}, root=tmp_path)
    assert entry.args == (f"{tmp_path}/data", str(tmp_path))
    assert entry_of({"command": "x", "args": ["${ROOT}"]}).args == (str(Path.cwd()),)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"url": "https://[x/mcp"}, "is no address"),
        ("npx server", "its entry must be an object, not 'npx server'"),
        ({}, "it has no 'command'"),
        ({"command": ["npx"]}, "it has no 'command', which must be a text"),
        ({"command": "x", "args": "-y"}, "its 'args' must be a list of texts"),
        ({"command": "x", "env": ["A=1"]}, "its 'env' must be an object of texts"),
        ({"command": "x", "env": {"A": ["1"]}}, "'A' in its 'env' must be a text"),
        ({"command": "x", "args": ["${MISSING}"]}, "the variable 'MISSING' is not set in the environment"),
        ({"command": "x", "args": ["${input:token}"]}, "'${input:token}' cannot be replaced"),
        ({"url": "example.com"}, "begin with http:// or https://"),
        ({"url": "https://example.com", "type": "carrier pigeon"}, "its transport 'carrier pigeon' is none of"),
    ],
)
def test_an_entry_that_cannot_work_says_why_and_costs_no_other(entry: object, problem: str) -> None:
    config = read_config({"mcpServers": {"bad": entry, "good": {"command": "x"}}}, environ=ENVIRON)
    assert problem in config.servers["bad"].problem
    assert config.servers["good"].problem == ""


@pytest.mark.parametrize("key", ["mcpServers", "servers", "context_servers", "mcp_servers"])
def test_files_of_several_clients_are_read_and_the_later_one_counts(tmp_path: Path, key: str) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text("\ufeff" + json.dumps({key: {"one": {"command": "a"}, "two": {"command": "b"}}}), "utf-8")
    second.write_text(json.dumps({"mcpServers": {"two": {"command": "c"}}}), "utf-8")
    config = read_config(first, str(second), {"three": {"command": "d"}})
    assert {name: entry.command for name, entry in config.servers.items()} == {"one": "a", "two": "c", "three": "d"}


def test_comments_and_trailing_commas_are_read_as_clients_read_them(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(
        '{\n  // ours\n  "servers": {"one": {"url": "https://e.com//x", /* later */ "headers": {"A": "b,}"},},},\n}',
        "utf-8",
    )
    one = read_config(file).servers["one"]
    assert (one.url, one.headers) == ("https://e.com//x", {"A": "b,}"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no file"),
        ("{", "cannot be read as JSON"),
        ("[]", "holds list, not servers by name"),
        ('{"name": "x"}', "names no servers: it needs the key 'mcpServers'"),
        ('{"mcpServers": ["a"]}', "'mcpServers' must be an object of servers by name, not list"),
    ],
)
def test_a_file_that_is_none_raises(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "mcp.json"
    if text is not None:
        file.write_text(text, "utf-8")
    with pytest.raises(SetupError, match=message):
        read_config(file)


def test_options_of_an_entry_stand_over_those_of_the_file() -> None:
    config = read_config(
        {
            "toolsearch": {"session": "client", "idle_seconds": 5},
            "mcpServers": {"one": {"command": "x", "toolsearch": {"session": "shared", "required": True}}},
        }
    )
    one = config.servers["one"]
    assert one.options == {"session": "shared", "idle_seconds": 5, "required": True}
    assert one.required
    assert config.options == {"session": "client", "idle_seconds": 5}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"denny": ["x"]}, "server 'one': there is no option 'denny' under 'toolsearch'; did you mean 'deny'?"),
        ({"Deny": ["x"]}, "server 'one': there is no option 'Deny' under 'toolsearch'; did you mean 'deny'?"),
        ({"confirm": "always"}, "server 'one': the option 'confirm' is for all servers: write it under 'toolsearch'"),
        ({"session": "clients"}, "server 'one': session must be 'shared' or 'client', not 'clients'"),
        ({"required": "yes"}, "server 'one': required must be True or False, not 'yes'"),
        ({"roles": {"admin": True}}, "server 'one': roles must be a text or a list of texts, not {'admin': True}"),
        (["deny"], "server 'one': 'toolsearch' must be an object of options, not ['deny']"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(own: object, message: str) -> None:
    with pytest.raises(SetupError, match=re.escape(message)):
        entry_of({"command": "x", "disabled": True, "toolsearch": own})


@pytest.mark.parametrize("key", ["mcpServers", None], ids=["under mcpServers", "by name"])
def test_an_option_for_all_servers_that_would_be_ignored_is_refused(key: str | None) -> None:
    servers = {"one": {"command": "x"}}
    with pytest.raises(SetupError, match="there is no option 'confrm' under 'toolsearch'; did you mean 'confirm'"):
        read_config({"toolsearch": {"confrm": "never"}, **({key: servers} if key else servers)})


def test_an_option_at_the_wrong_level_is_named(caplog: pytest.LogCaptureFixture) -> None:
    read_config({"allow": ["one/x"], "mcpServers": {"one": {"command": "x", "deny": ["y"]}}})
    told = [each.getMessage() for each in caplog.records]
    assert [each[: each.index(".")] for each in told] == [
        "the configuration: 'allow' does nothing there",
        "the entry of the server 'one': 'deny' does nothing there",
    ]


def test_every_option_in_the_docs_is_known() -> None:
    """The rows of the tables of options in docs/mcp.md and docs/gateway.md, and the words of a policy."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    of_a_server = (docs / "mcp.md").read_text("utf-8").partition("| option, under")[2].partition("\n\n")[0]
    of_the_gateway = (docs / "gateway.md").read_text("utf-8").partition("| option | under")[2].partition("\n\n")[0]
    first = {name for row in of_a_server.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    second = {name for row in of_the_gateway.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[2])}
    assert first | {"allow", "ask", "deny", "default", "pin", "unhinted"} == OF_A_SERVER
    assert second - {"toolsearch"} <= OF_ALL
    assert second >= OF_ALL - OF_A_SERVER


@pytest.mark.parametrize(
    ("written", "seconds"), [(30, 30), (0.5, 0.5), (60_000, 60), ("x", None), (0, None), (True, None)]
)
def test_a_time_limit_of_a_thousand_or_more_is_in_milliseconds(written: object, seconds: float | None) -> None:
    assert entry_of({"command": "x", "timeout": written}).timeout == seconds


def test_secrets_are_known_wherever_they_stand_and_plain_values_are_none() -> None:
    config = read_config(
        {
            "a": {"command": "x", "args": ["--key=${TOKEN}"], "env": {"API_KEY": "k-9876543210", "MODE": "production"}},
            "b": {"url": "https://e.com", "headers": {"Authorization": "Bearer abc-def-ghi", "Accept": "text/plain"}},
        },
        environ=ENVIRON,
    )
    text = "x tok-1234567890 k-9876543210 abc-def-ghi text/plain"
    assert config.masked(text) == "x [redacted] [redacted] [redacted] text/plain"
    assert not {"tok-1234567890", "k-9876543210", "abc-def-ghi"} & {*repr(config).replace("'", " ").split()}


def test_a_disabled_server_is_known_and_not_started() -> None:
    assert entry_of({"command": "x", "disabled": True}).disabled
    assert entry_of({"command": "x", "enabled": False}).disabled
    assert not entry_of({"command": "x"}).disabled


@pytest.mark.parametrize("package", ["mcp", "mcp_types", "anyio", "httpx2"])
def test_without_the_sdk_the_error_has_the_install_line_and_a_configuration_is_still_read(package: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from toolsearch.mcp import read_config\n"
        "print(*read_config({'one': {'command': 'x'}}).servers)\n"
        "from toolsearch.mcp import Servers"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["one"]
    assert "needs the package 'mcp'. Install it with: pip install 'toolsearch-kit[mcp]'" in done.stderr
