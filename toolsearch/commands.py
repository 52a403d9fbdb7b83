"""The commands of `toolsearch`: parsing and printing only. More come from entry points `toolsearch.commands`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolsearch.catalog import Catalog
from toolsearch.errors import SetupError
from toolsearch.files import read_tools
from toolsearch.hygiene import FLAGS
from toolsearch.search import ToolSearch
from toolsearch.settings import Settings

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def about() -> None:
    """Search a catalog of tools, and measure what that saves an agent."""


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What the tool should do, or its name.")],
    tools: Annotated[str, typer.Option(help="JSON or JSON Lines: definitions, an OpenAI array, a tools/list result.")],
    index: Annotated[str | None, typer.Option(help="The search backend; default: the setting `index`.")] = None,
    limit: Annotated[int, typer.Option(help="Most tools to show.")] = 5,
) -> None:
    """Search the tools of a file."""
    catalog = Catalog(read_tools(tools))
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
        console.print(_plain(f"Similar names: {', '.join(t.id for t in hits.near)}"))
    _tell_quarantined(catalog)


@app.command()
def check(
    tools: Annotated[str, typer.Option(help="JSON or JSON Lines: definitions, an OpenAI array, a tools/list result.")],
) -> None:
    """List the definitions that cannot be used and the texts that look hostile; exit code 1 if there are any."""

    catalog = Catalog(read_tools(tools))
    console = Console()
    console.print(_plain(repr(catalog)))
    for tool in catalog.suspicious:
        console.print(_plain(f"suspicious  {tool.id}: {'; '.join(FLAGS[flag] for flag in tool.flags)}"))
    _tell_quarantined(catalog)
    raise typer.Exit(1 if catalog.suspicious or catalog.quarantined else 0)


def _plain(text: str) -> Text:
    """Text of tools is data: nothing in it is markup."""
    return Text(text)


def _tell_quarantined(catalog: Catalog) -> None:
    for entry in catalog.quarantined:
        Console(stderr=True).print(_plain(f"quarantined {entry.name}: {entry.reason}"))


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
