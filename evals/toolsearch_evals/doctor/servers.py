"""The servers of a configuration, started: their tools, and what is wrong with how they start and end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from toolsearch import Catalog, SetupError
from toolsearch.catalog.files import servers_in
from toolsearch.mcp import Config, ServerEntry, ServerHealth
from toolsearch.support.redaction import excerpt
from toolsearch_evals.doctor.configuration import configuration_findings, secrets_given
from toolsearch_evals.doctor.findings import Finding
from toolsearch_evals.doctor.launching import Launch, launch

__all__ = ["Started", "configurations_in", "examine_servers"]

SLOW_SECONDS = 5.0
AT_ONCE = 4  # servers that are started side by side


@dataclass(frozen=True)
class Started:
    """The tools of all servers, findings on the configuration and the servers, and a row for each server."""

    catalog: Catalog
    findings: tuple[Finding, ...]
    rows: tuple[dict[str, object], ...]


def configurations_in(files: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those of the files that are configurations of servers, and the others."""
    configurations, others = list[str](), list[str]()
    for file in files:
        (others if servers_in(file) is None else configurations).append(file)
    return configurations, others


def examine_servers(config: Config, seconds: float) -> Started:
    """Connects to all servers, reads their tools, and starts those over stdio once more to see what they leave.

    Raises `MissingExtra` without the extra `mcp`.
    """
    from toolsearch.mcp import Servers

    with Servers(config, connect_seconds=seconds, keep_denied=True) as servers:
        health = servers.health()
        catalog = Catalog(servers.catalog, qualified=True)
        unread = [Finding("unreadable", each.name, each.reason) for each in servers.catalog.quarantined]
    ready = [config.servers[name] for name, each in health.items() if each.is_ready]
    over_stdio = [entry for entry in ready if entry.transport == "stdio"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        launches = {entry.name: pool.submit(_launched, entry, seconds) for entry in over_stdio}
    done = {name: each.result() for name, each in launches.items()}
    findings = [
        *unread,
        *configuration_findings(config.servers.values()),
        *_server_findings(health, done, config.masked),
    ]
    told = [replace(each, text=_without(each.text, config.secrets)) for each in findings]
    rows = [_row(name, each, done.get(name), config) for name, each in health.items()]
    return Started(catalog, tuple(told), tuple(rows))


def _launched(entry: ServerEntry, seconds: float) -> Launch | None:
    from mcp.client.stdio import get_default_environment

    from toolsearch.mcp.processes import parameters_of

    try:
        command = parameters_of(entry)
        started = [command.command, *command.args]
        return launch(started, {**get_default_environment(), **entry.env}, entry.cwd, seconds)
    except (OSError, SetupError):
        return None


def _without(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets; it has been redacted where it repeats what others wrote."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[redacted]")
    return text


def _server_findings(
    health: Mapping[str, ServerHealth], launches: Mapping[str, Launch | None], masked: Callable[[str], str]
) -> Iterator[Finding]:
    for name, each in health.items():
        if each.state in ("failed", "connecting"):
            yield Finding("fails", name, each.reason or "it did not answer in time", name)
        elif each.state == "needs login":
            yield Finding("fails", name, each.reason or f"it needs a login: toolsearch login {name}", name)
        elif each.is_ready and not each.tools:
            yield Finding("fails", name, "it is ready, and has no tool", name)
        if (started := launches.get(name)) is None:
            continue
        if started.seconds is not None and started.seconds > SLOW_SECONDS:
            yield Finding("slow", name, f"it took {started.seconds:.1f} seconds to answer", name)
        if started.noise:
            yield Finding(
                "noise", name, f"it writes to standard output: {excerpt(started.noise[0], 80, masked)!r}", name
            )
        if started.left:
            kept = "itself" if not started.ended else "what it started"
            yield Finding("left-behind", name, f"{started.left} left after its input ended: {kept}", name)


def _row(name: str, health: ServerHealth, started: Launch | None, config: Config) -> dict[str, object]:
    return {
        "server": name,
        "state": _without(f"{health.state}{f': {health.reason}' if health.reason else ''}", config.secrets),
        "tools": health.tools,
        "seconds": started.seconds if started else health.seconds,
        "given": ", ".join(secrets_given(config.servers[name])),
        "noise": len(started.noise) if started else None,
        "left": started.left if started else None,
    }
