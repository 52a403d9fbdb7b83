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

from toolsearch import Catalog, Settings, SetupError, ToolSearch, __version__
from toolsearch.catalog.enrichment import enrich as ask_for_queries
from toolsearch.catalog.examples import QUERIES, Examples
from toolsearch.catalog.sanitising import FLAGS
from toolsearch.catalog.text_models import command, endpoint
from toolsearch.cli.output import (
    OutputForm,
    check_as_json,
    hit_lines,
    hits_as_json,
    print_json,
    show,
    show_folded,
    warn,
    warn_of_unread,
)
from toolsearch.cli.tool_files import ToolFiles, catalog_of, fill

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

IndexOption = Annotated[
    str | None, typer.Option(help="The index to search with.", show_default="the setting index, which is auto")
]
FormatOption = Annotated[OutputForm, typer.Option("--format", help="Print text for people, or JSON for programs.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        show(f"toolsearch {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Search files of tools, check them, write example queries for them, and measure what search finds and saves."""


@app.command(epilog="Example: toolsearch search send a mail --tools tools.json")
def search(
    words: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="What the tool should do, in your words, or its name.")
    ],
    *,
    tools: ToolFiles,
    index: IndexOption = None,
    limit: Annotated[int, typer.Option(min=1, help="The most tools to show.")] = 5,
    examples: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A file of example queries that `toolsearch enrich` wrote, to search too.",
            show_default="none",
        ),
    ] = None,
    form: FormatOption = OutputForm.text,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the score of each tool, and the words that matched.")
    ] = False,
) -> None:
    """Search the tools of one or more files.

    Each line has the probability that the tool fits, its id, and its first sentence.

    The exit code is 1 if nothing fits, and 2 if a file or the query cannot be used.
    """
    catalog = catalog_of(tools)
    if examples is not None and (stale := catalog.enrich(Examples.load(examples))):
        warn(f"stale, so not used: {', '.join(stale)}")
    hits = ToolSearch(catalog, index, settings=Settings.load()).find(" ".join(words), limit)
    if hits.problem:
        raise SetupError(hits.problem)
    if form is OutputForm.json:
        print_json(hits_as_json(hits, catalog))
        raise typer.Exit(0 if hits else 1)
    show_folded(f"{hits.query!r} in {catalog!r} by {hits.index_name}" if hits else f"Nothing fits {hits.query!r}.")
    for line in hit_lines(hits, Console().width, verbose=verbose):
        show(line)
    if hits.unknown:
        show_folded(f"No tool is named {', '.join(map(repr, hits.unknown))}.")
    if hits.near:
        show_folded(f"Nearest: {', '.join(t.id for t in hits.near)}")
    for note in filter(None, (hits.hint, hits.degraded)):
        warn(note)
    warn_of_unread(catalog)
    raise typer.Exit(0 if hits else 1)


@app.command(epilog="Example: toolsearch check --tools tools.json --tools more-tools.jsonl")
def check(tools: ToolFiles, form: FormatOption = OutputForm.text) -> None:
    """List the definitions that cannot be used and the texts that look hostile.

    The exit code is 1 if there are any, or if a file goes on elsewhere.

    It is 2 if a file has no usable tool.
    """
    catalog = Catalog()
    try:
        fill(catalog, tools)
    except SetupError as error:
        warn_of_unread(catalog, told=str(error))
        raise
    if form is OutputForm.json:
        print_json(check_as_json(catalog))
    else:
        show(repr(catalog))
        for tool in catalog.suspicious:
            show_folded(f"suspicious  {tool.id}: {'; '.join(FLAGS[flag] for flag in tool.flags)}")
        warn_of_unread(catalog)
    raise typer.Exit(1 if catalog.suspicious or catalog.quarantined or catalog.notices else 0)


@app.command(epilog="Example: toolsearch enrich --tools tools.json --out queries.jsonl --ask 'my-model --plain'")
def enrich(
    *,
    tools: ToolFiles,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="The file to write. If it exists, the model is asked only about tools without current queries in it.",
        ),
    ],
    ask: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="A command that reads the prompt from standard input and prints the answer.",
            show_default="none",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Instead of --ask: a model behind an OpenAI-compatible chat endpoint.",
            show_default="none",
        ),
    ] = None,
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="The address of the endpoint.")
    ] = "https://api.openai.com/v1",
    key_variable: Annotated[
        str, typer.Option(metavar="NAME", help="The environment variable that holds the key.")
    ] = "OPENAI_API_KEY",
    queries: Annotated[int, typer.Option(min=1, max=QUERIES, help="How many queries to write for each tool.")] = 3,
) -> None:
    """Ask a model for requests that each tool could meet, and write them to a file for you to review.

    The exit code is 1 if some tool got no query.
    """
    if (ask is None) == (model is None):
        raise SetupError("say what to ask: pass either --ask 'a command' or --model a-name")
    catalog = catalog_of(tools)
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
    show_folded(f"{out}: {len(examples)} tools, {new} of them new. Review it before you use it.")
    for tool_id, problem in examples.problems.items():
        warn(f"{tool_id}: {problem}")
    warn_of_unread(catalog)
    raise typer.Exit(1 if examples.problems else 0)


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
