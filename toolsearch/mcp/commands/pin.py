"""`toolsearch pin`: what the servers of a configuration offer, compared with what was approved."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import SetupError, Tool
from toolsearch.mcp.config import read_config
from toolsearch.mcp.guards.configured import pins_of
from toolsearch.mcp.guards.definitions import said_by
from toolsearch.mcp.guards.reviewing import review, review_as_json, review_lines

__all__ = ["pin"]


class Form(StrEnum):
    """How the command prints what it found."""

    text = "text"
    json = "json"


def pin(
    configs: Annotated[list[str], typer.Argument(metavar="MCP.JSON", help="The configuration; several are merged.")],
    *,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOOL",
            help="Approve a tool that is held back: server/tool@digest, as its message has it, or a pattern such as "
            "server/tool or server/*. Repeat it for several.",
        ),
    ] = None,
    forget: Annotated[
        list[str] | None,
        typer.Option(metavar="TOOL", help="Drop the pin of a tool that its server does not offer any more."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; tools never seen count as held.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Hold tools that were never seen, too.")] = False,
    pins: Annotated[
        str | None, typer.Option(metavar="FILE", help="Keep the pins here, not in your state folder.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long to wait for the servers.")] = 20.0,
    form: Annotated[Form, typer.Option("--format", help="Print text for people, or JSON for programs.")] = Form.text,
) -> None:
    """Compares the tools of the servers with their pins, shows what changed, and approves what you name.

    A tool that was never seen is approved as it is. One that changed later is held back by the gateway until you
    approve it here. The exit code is 1 if a tool is held, or a name fits none or another definition, else 0.
    """
    if check and (accept or forget):
        raise SetupError("--check changes nothing, so it cannot be used with --accept or --forget")
    kept = pins_of(read_config(*configs), configs, pins, strict=strict)
    if forget:
        if unknown := [each for each in forget if each not in kept.ids()]:
            raise SetupError(
                f"there is no pin of {unknown[0]!r}: name the tools as `toolsearch pin --check` lists them"
            )
        kept.forget(forget)
    tools, unreachable = _offered(configs, seconds)
    found = review(kept, tools, unreachable, accept=accept or [], only_look=check)
    if form is Form.json:
        Console().out(json.dumps(review_as_json(found), indent=2, ensure_ascii=False), highlight=False)
    else:
        for line in review_lines(found):
            Console().print(Text(line), soft_wrap=True)
    if not found.is_settled:
        raise typer.Exit(1)


def _offered(configs: list[str], seconds: float) -> tuple[list[Tool], dict[str, str]]:
    """The tools of all servers, and what each says of its use; and why some gave none."""
    from toolsearch.mcp import Servers  # which imports the SDK: every other command would wait for that

    servers = Servers(*configs, connect_seconds=seconds, keep_denied=True).start()
    try:
        unreachable = {
            name: health.reason or health.state for name, health in servers.health().items() if health.state != "ready"
        }
        there = [name for name in servers.names if name not in unreachable]
        tools = [tool for tool in servers.catalog if tool.server in there]
        return [
            *tools,
            *(said_by(name, text) for name in there if (text := servers.offer(name).instructions)),
        ], unreachable
    finally:
        servers.close()
