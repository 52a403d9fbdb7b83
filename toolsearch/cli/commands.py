"""The commands of `toolsearch`: parsing and printing only. Entry points `toolsearch.commands` add more."""

from __future__ import annotations

import os
import shlex
from datetime import UTC, datetime
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolsearch import Settings, SetupError, ToolSearch, __version__
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.enrichment import enrich as ask_for_queries
from toolsearch.catalog.examples import QUERIES, Examples
from toolsearch.catalog.files import add_file, read_tools
from toolsearch.catalog.sanitising import FLAGS
from toolsearch.catalog.text_models import command, endpoint

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Files = Annotated[
    list[str],
    typer.Option(
        "--tools",
        help="A file of tools, JSON or JSON Lines: definitions, an OpenAI array, or the answer to tools/list. Repeat "
        "it for several files.",
    ),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        Console().print(_plain(f"toolsearch {__version__}"))
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Search files of tools, check them, write example queries for them, and measure what search finds and saves."""


@app.command(epilog="Example: toolsearch search 'send a mail' --tools tools.json")
def search(
    query: Annotated[str, typer.Argument(help="What the tool should do, in your words, or its name.")],
    tools: Files,
    index: Annotated[str | None, typer.Option(help="The index to search with. Default: the setting `index`.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most tools to show.")] = 5,
    examples: Annotated[
        str | None, typer.Option(help="A file of example queries that `toolsearch enrich` wrote, to search too.")
    ] = None,
) -> None:
    """Search the tools of one or more files."""
    catalog = Catalog()
    for file in tools:
        add_file(catalog, file)
    if examples is not None and (stale := catalog.enrich(Examples.load(examples))):
        _warn(f"stale, so not used: {', '.join(stale)}")
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
        console.print(_plain(f"No tool is named {', '.join(map(repr, hits.unknown))}."))
    if hits.near:
        console.print(_plain(f"Nearest: {', '.join(t.id for t in hits.near)}"))
    _warn_of_quarantined(catalog)


@app.command(epilog="Example: toolsearch check --tools tools.json")
def check(
    tools: Files,
) -> None:
    """List the definitions that cannot be used and the texts that look hostile. The exit code is 1 if there are any."""
    catalog = Catalog()
    for file in tools:
        add_file(catalog, file)
    console = Console()
    console.print(_plain(repr(catalog)))
    for tool in catalog.suspicious:
        console.print(_plain(f"suspicious  {tool.id}: {'; '.join(FLAGS[flag] for flag in tool.flags)}"))
    _warn_of_quarantined(catalog)
    raise typer.Exit(1 if catalog.suspicious or catalog.quarantined else 0)


@app.command(epilog="Example: toolsearch enrich tools.json --out queries.jsonl --ask 'my-model --plain'")
def enrich(
    tools: Annotated[
        str,
        typer.Argument(
            help="A file of tools, JSON or JSON Lines: definitions, an OpenAI array, or the answer to tools/list."
        ),
    ],
    *,
    out: Annotated[
        str,
        typer.Option(
            help="The file to write. If it exists, the model is asked only about tools without current queries in it."
        ),
    ],
    ask: Annotated[
        str | None, typer.Option(help="A command that reads the prompt from standard input and prints the answer.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Instead of --ask: a model behind an OpenAI-compatible chat endpoint.")
    ] = None,
    base_url: Annotated[str, typer.Option(help="The address of the endpoint.")] = "https://api.openai.com/v1",
    key_variable: Annotated[str, typer.Option(help="The environment variable that holds the key.")] = "OPENAI_API_KEY",
    queries: Annotated[int, typer.Option(min=1, max=QUERIES, help="How many queries to write for each tool.")] = 3,
) -> None:
    """Ask a model for requests that each tool could meet, and write them to a file for you to review.

    The exit code is 1 if some tool got no query.
    """
    if (ask is None) == (model is None):
        raise SetupError("say what to ask: pass either --ask 'a command' or --model a-name")
    catalog = Catalog(read_tools(tools))
    known = Examples.load(out) if Path(out).exists() else Examples()
    if ask is not None:
        try:
            words = shlex.split(ask)
        except ValueError as error:
            raise SetupError(f"--ask {ask!r} is not a command: {error}") from None
        model_call, by = command(words), words[0]
    else:
        model_call, by = endpoint(str(model), base_url=base_url, key=os.environ.get(key_variable, "")), str(model)
    today = datetime.now(UTC).date().isoformat()
    examples = ask_for_queries(
        catalog, model_call, queries=queries, known=known, by=by, date=today, each=lambda so_far: so_far.save(out)
    )
    new = sum(known.entries.get(i) != entry for i, entry in examples.entries.items())
    Console().print(_plain(f"{out}: {len(examples)} tools, {new} of them new. Review it before you use it."))
    for tool_id, problem in examples.problems.items():
        _warn(f"{tool_id}: {problem}")
    _warn_of_quarantined(catalog)
    raise typer.Exit(1 if examples.problems else 0)


def _warn(text: str) -> None:
    Console(stderr=True).print(_plain(text))


def _plain(text: str) -> Text:
    """The texts of tools are data: nothing in them is markup."""
    return Text(text)


def _warn_of_quarantined(catalog: Catalog) -> None:
    for entry in catalog.quarantined:
        _warn(f"quarantined {entry.name}: {entry.reason}")


def _mount(command: EntryPoint) -> None:
    """Adds an installed command. One that cannot be loaded says why when it is called; the others still work."""
    try:
        app.add_typer(command.load(), name=command.name)
    except Exception as error:
        reason = f"the command {command.name!r} cannot be loaded: {type(error).__name__}: {error}"

        @app.command(command.name, help=reason, context_settings={"ignore_unknown_options": True})
        def broken(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
            raise SetupError(reason)


for _command in entry_points(group="toolsearch.commands"):
    _mount(_command)
