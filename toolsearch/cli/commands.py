"""The commands of `toolsearch`: parsing and printing only. More come from entry points `toolsearch.cli.commands`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolsearch import __version__
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.enrichment import enrich as ask_for_queries
from toolsearch.catalog.examples import QUERIES, Examples
from toolsearch.catalog.files import read_tools
from toolsearch.catalog.quarantine import Quarantined
from toolsearch.catalog.sanitising import FLAGS
from toolsearch.catalog.text_models import command, endpoint
from toolsearch.errors import SetupError
from toolsearch.settings import Settings
from toolsearch.tool_search import ToolSearch

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Files = Annotated[
    list[str],
    typer.Option(
        "--tools", help="JSON or JSON Lines: definitions, an OpenAI array, a tools/list result. May be repeated."
    ),
]


def _show_version(asked: bool) -> None:
    if asked:
        Console().print(_plain(f"toolsearch {__version__}"))
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Search a catalog of tools, and measure what that saves an agent."""


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What the tool should do, or its name.")],
    tools: Files,
    index: Annotated[str | None, typer.Option(help="The search backend; default: the setting `index`.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most tools to show.")] = 5,
    examples: Annotated[str | None, typer.Option(help="Example queries, from `toolsearch enrich`.")] = None,
) -> None:
    """Search the tools of one or more files."""
    catalog = Catalog()
    for file in tools:
        definitions, known = read_tools(file), len(catalog.quarantined)
        if not catalog.extend(definitions):
            raise SetupError(_explain_unusable(file, definitions, catalog.quarantined[known:]))
    if examples is not None and (stale := catalog.enrich(Examples.load(examples))):
        _tell(f"stale, so not used: {', '.join(stale)}")
    hits = ToolSearch(catalog, index, settings=Settings.load()).find(query, limit)
    table = Table(title=f"{query!r} in {catalog!r} by {hits.index_name}", title_justify="left")
    for head in ("score", "tool", "summary", "matched"):
        table.add_column(head, justify="right" if head == "score" else "left")
    for hit in hits:
        matched = ", ".join(f"{m.word} ({', '.join(m.fields)})" for m in hit.matched)
        table.add_row(hit.shown_score, *map(_plain, (hit.tool.id, hit.tool.summary(), matched)))
    console = Console()
    console.print(table if hits else _plain(hits.problem or f"Nothing fits {query!r}."))
    if hits.unknown:
        console.print(_plain(f"No tool is called {', '.join(map(repr, hits.unknown))}."))
    if hits.near:
        console.print(_plain(f"Nearest: {', '.join(t.id for t in hits.near)}"))
    _tell_quarantined(catalog)


@app.command()
def check(
    tools: Files,
) -> None:
    """List the definitions that cannot be used and the texts that look hostile; exit code 1 if there are any."""
    catalog = Catalog()
    for file in tools:
        catalog.extend(read_tools(file))
    console = Console()
    console.print(_plain(repr(catalog)))
    for tool in catalog.suspicious:
        console.print(_plain(f"suspicious  {tool.id}: {'; '.join(FLAGS[flag] for flag in tool.flags)}"))
    _tell_quarantined(catalog)
    raise typer.Exit(1 if catalog.suspicious or catalog.quarantined else 0)


@app.command()
def enrich(
    tools: Annotated[
        str, typer.Argument(help="JSON or JSON Lines: definitions, an OpenAI array, a tools/list result.")
    ],
    *,
    out: Annotated[str, typer.Option(help="The file of queries; what it holds is not asked for again.")],
    ask: Annotated[
        str | None, typer.Option(help="A command that reads a prompt from its input and prints the answer.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Or a model behind an OpenAI-compatible chat endpoint.")] = None,
    base_url: Annotated[str, typer.Option(help="That endpoint.")] = "https://api.openai.com/v1",
    key_variable: Annotated[str, typer.Option(help="The environment variable with its key.")] = "OPENAI_API_KEY",
    queries: Annotated[int, typer.Option(min=1, max=QUERIES, help="Queries for each tool.")] = 3,
) -> None:
    """Ask a model for requests that users would make of each tool, into a file to review; exit code 1 if any lacks."""
    if (ask is None) == (model is None):
        raise SetupError("say who is asked: either --ask 'a command' or --model a-name")
    catalog = Catalog(read_tools(tools))
    known = Examples.load(out) if Path(out).exists() else Examples()
    if ask is not None:
        try:
            words = shlex.split(ask)
        except ValueError as error:
            raise SetupError(f"--ask {ask!r} is no command: {error}") from None
        asked, by = command(words), words[0]
    else:
        asked, by = endpoint(str(model), base_url=base_url, key=os.environ.get(key_variable, "")), str(model)
    today = datetime.now(UTC).date().isoformat()
    made = ask_for_queries(
        catalog, asked, queries=queries, known=known, by=by, date=today, each=lambda so_far: so_far.save(out)
    )
    new = sum(known.entries.get(i) != entry for i, entry in made.entries.items())
    Console().print(_plain(f"{out}: {len(made)} tools, {new} of them new. Review it before you use it."))
    for tool_id, problem in made.problems.items():
        _tell(f"{tool_id}: {problem}")
    _tell_quarantined(catalog)
    raise typer.Exit(1 if made.problems else 0)


def _tell(text: str) -> None:
    Console(stderr=True).print(_plain(text))


def _plain(text: str) -> Text:
    """Text of tools is data: nothing in it is markup."""
    return Text(text)


def _tell_quarantined(catalog: Catalog) -> None:
    for entry in catalog.quarantined:
        _tell(f"quarantined {entry.name}: {entry.reason}")


def _explain_unusable(file: str, definitions: list[Any], quarantined: Sequence[Quarantined]) -> str:
    """One sentence on a file none of whose definitions can be used: what it seems to be, and what to pass instead."""
    start = f"the file {file!r} holds no usable tool: "
    if not definitions:
        return f"{start}it is an empty list"
    first = definitions[0]
    if isinstance(first, dict) and len(definitions) == 1 and (shape := _shape(first)):
        return start + shape
    if all(isinstance(each, dict) and "title" in each and "name" not in each for each in definitions):
        return f"{start}its entries look like JSON schemas, which have a title; give each a 'name'"
    reason = quarantined[0].reason if quarantined else "nothing in it is a definition"
    return f"{start}{reason}. `toolsearch check --tools {shlex.quote(file)}` lists every definition and its reason"


def _shape(whole: dict[str, Any]) -> str | None:
    """What a JSON object is that is neither a definition nor an answer to `tools/list`, if it is of a known kind."""
    parts = list(whole.values())
    if any(isinstance(whole.get(key), dict) for key in ("mcpServers", "servers")):
        return (
            "it is the configuration of an MCP client, which says how to reach servers and not which tools they "
            "have; pass what a server answers to tools/list"
        )
    if "openapi" in whole or "swagger" in whole:
        return "it is an OpenAPI description of an HTTP API; pass a list of tool definitions"
    if parts and all(isinstance(part, list) or (isinstance(part, dict) and "tools" in part) for part in parts):
        return "it has a list of tools for each server; save each list as a file and repeat --tools"
    if parts and all(isinstance(part, dict) for part in parts):
        return "it has definitions by name; pass a list of them, each with its 'name'"
    return None


def _mount(command: EntryPoint) -> None:
    """Adds an installed command; one that cannot be loaded says why when it is called, and harms no other."""
    try:
        app.add_typer(command.load(), name=command.name)
    except Exception as error:
        reason = f"the command {command.name!r} cannot be loaded: {type(error).__name__}: {error}"

        @app.command(command.name, help=reason, context_settings={"ignore_unknown_options": True})
        def broken(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
            raise SetupError(reason)


for _command in entry_points(group="toolsearch.commands"):
    _mount(_command)
