"""What the doctor finds in a configuration without starting anything: secrets, plain connections, no versions."""

from typing import Any

import pytest

from toolsearch.mcp import read_config
from toolsearch_evals.doctor.configuration import configuration_findings
from toolsearch_evals.doctor.configured import CLEAN, configuration_trials

KEY = "ghp_0123456789abcdefghij0123456789abcdef"


def found(**entries: dict[str, Any]) -> dict[str, str]:
    """What is said, by "check server"."""
    config = read_config({"mcpServers": entries}, environ={})
    return {f"{each.check} {each.where}": each.text for each in configuration_findings(config.servers.values())}


def test_nothing_is_said_of_entries_as_documentations_write_them_with_versions() -> None:
    assert found(**CLEAN) == {}


def test_each_planted_defect_is_found_in_each_entry_that_can_have_it() -> None:
    tried = list(configuration_trials())
    assert len(tried) == 13
    assert [trial.defect.name for trial in tried if trial.found < trial.planted] == []


def test_a_secret_among_arguments_can_be_read_by_others_on_linux() -> None:
    harms = [trial.harm for trial in configuration_trials() if trial.defect.check == "secret-in-arguments"]
    assert {each.lost for each in harms} <= {1.0, 0.0}, "0 where the system does not tell"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--api-key", "abcdef0123"], "the value of --api-key"),
        (["--api-key=abcdef0123"], "the value of --api-key"),
        (["-e", "GITHUB_TOKEN=abcdef0123"], "the value of GITHUB_TOKEN"),
        (["--header", f"Authorization: Bearer {KEY}"], "the value of --header"),
        (["--password", "${DB_PASSWORD}"], "the value of ${DB_PASSWORD}"),
        (["postgres://me:abcdef@db/x"], "a secret"),
        (["-e", "GITHUB_TOKEN"], ""),
        (["--max-tokens", "4096"], ""),
        (["--token-file", "/run/secrets/token"], ""),
        (["--api-key", "YOUR_API_KEY"], ""),
        (["--author", "me", "${HOME}/x"], ""),
        (["--api-key", "my-api-key"], ""),
        (["--api-key", "my-0a1b2c3d4e"], "the value of --api-key"),
        (["--api-key", "${NOT_SET:-0a1b2c3d4e}"], "the value of --api-key"),
    ],
)
def test_a_secret_among_arguments_is_named_and_never_shown(args: list[str], told: str) -> None:
    texts = found(one={"command": "own-server", "args": args})
    assert texts == ({"secret-in-arguments one": f"among its arguments stands {told}"} if told else {})


@pytest.mark.parametrize(
    ("command", "args", "package"),
    [
        ("npx", ["-y", "@scope/server"], "@scope/server"),
        ("npx", ["-y", "@scope/server@latest"], "@scope/server@latest"),
        ("npx", ["-p", "server", "run-it"], "server"),
        ("npx", ["--package=server", "run-it"], "server"),
        ("C:\\node\\npx.cmd", ["server"], "server"),
        ("cmd", ["/c", "npx", "server"], "server"),
        ("uvx", ["mcp-server-time"], "mcp-server-time"),
        ("uvx", ["--from", "git+https://example.com/a/b", "b"], "git+https://example.com/a/b"),
        ("uvx", ["--with", "x", "mcp-server-git"], "mcp-server-git"),
        ("pnpm", ["dlx", "server"], "server"),
        ("docker", ["run", "-i", "-e", "KEY", "mcp/fetch"], "mcp/fetch"),
        ("docker", ["run", "--rm", "example.com:5000/mcp/fetch:latest"], "example.com:5000/mcp/fetch:latest"),
        ("npx", ["@scope/server@1.2.3"], ""),
        ("npx", ["./server.js"], ""),
        ("uvx", ["mcp-server-time==1.0"], ""),
        ("uvx", ["mcp-server-time@1.0"], ""),
        ("docker", ["run", "example.com:5000/mcp/fetch:1.0"], ""),
        ("docker", ["compose", "up"], ""),
        ("python", ["-m", "server"], ""),
        ("npm", ["start"], ""),
    ],
)
def test_a_package_without_a_version_is_named(command: str, args: list[str], package: str) -> None:
    texts = found(one={"command": command, "args": args})
    assert texts == ({"unpinned one": f"{package} may be another program at the next start"} if package else {})


def test_a_secret_in_an_address_in_the_file_or_without_encryption_is_named() -> None:
    texts = found(
        query={"url": f"https://mcp.example.com/mcp?api_key={KEY}"},
        full={"url": "https://mcp.example.org/mcp", "headers": {"Authorization": f"Bearer {KEY}"}},
        variable={"url": "https://mcp.example.net/mcp", "headers": {"Authorization": "Bearer ${EXAMPLE_TOKEN}"}},
        plain={"url": "http://mcp.example.com/mcp"},
        loopback={"url": "http://127.0.0.1:9/mcp"},
        odd={"url": "https://[x/mcp"},
        off={"url": "http://mcp.example.com/mcp", "disabled": True},
    )
    assert [*texts] == ["secret-in-url query", "secret-in-file full", "plain-http plain"]
    assert KEY not in " ".join(texts.values())


def test_one_secret_for_two_programs_is_named_and_for_two_servers_of_one_host_is_not() -> None:
    both = {"Authorization": "Bearer ${SHARED_TOKEN}"}
    one, other = ({"url": f"https://a.example.com/{at}", "headers": both} for at in (1, 2))
    assert found(a=one, b=other) == {}
    texts = found(
        a=one,
        b={"command": "own-server", "env": {"KEY": "${SHARED_TOKEN}", "LEVEL": "${LOG_LEVEL}"}},
        c={"command": "other-server", "env": {"LEVEL": "${LOG_LEVEL}"}},
    )
    assert texts == {
        "shared-secret a": "${SHARED_TOKEN} is given to a and b",
        "shared-secret b": "${SHARED_TOKEN} is given to a and b",
    }
