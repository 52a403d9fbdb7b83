"""The commands of `toolsearch`: parsing and printing only. Entry points add more: see `installed`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from toolsearch import Catalog, Settings, SetupError, ToolSearch, __version__
from toolsearch.catalog.examples import Examples
from toolsearch.catalog.exports import check_exports
from toolsearch.catalog.sanitising import FLAGS
from toolsearch.cli.enrich import enrich
from toolsearch.cli.installed import Commands
from toolsearch.cli.learned import learned
from toolsearch.cli.output import (
    FormatOption,
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
from toolsearch.cli.targets import Target, export_lines, exports_as_json, targets_of
from toolsearch.cli.tool_files import IndexOption, ToolFiles, catalog_of, fill

__all__ = ["app"]

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)


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
    searching = ToolSearch(catalog, index, settings=Settings.load())
    searching.wait()
    hits = searching.find(" ".join(words), limit)
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
    if verbose and searching.settings.index == "auto":
        warn(f"The index auto is {searching.tier}.")
    warn_of_unread(catalog)
    raise typer.Exit(0 if hits else 1)


@app.command(epilog="Example: toolsearch check --tools tools.json --tools more-tools.jsonl")
def check(
    tools: ToolFiles,
    target: Annotated[
        list[Target] | None,
        typer.Option(
            help="A provider to check the tools for: list those that it gets changed, and those that it cannot get. "
            "Repeat it for several.",
            show_default="none",
        ),
    ] = None,
    form: FormatOption = OutputForm.text,
) -> None:
    """List the definitions that cannot be used and the texts that look hostile.

    The exit code is 1 if there are any, if a tool cannot be sent to a target, or if a file goes on elsewhere.

    It is 2 if a file has no usable tool.
    """
    catalog = Catalog()
    try:
        fill(catalog, tools)
    except SetupError as error:
        warn_of_unread(catalog, told=str(error))
        raise
    targets = targets_of(target or [])
    exports = list(check_exports(catalog, targets))
    if form is OutputForm.json:
        print_json(check_as_json(catalog) | ({"targets": exports_as_json(exports, targets)} if targets else {}))
    else:
        show(repr(catalog))
        for line in export_lines(exports, targets):
            show_folded(line)
        for tool in catalog.suspicious:
            show_folded(f"suspicious  {tool.id}: {'; '.join(FLAGS[flag] for flag in tool.flags)}")
        warn_of_unread(catalog)
    is_wrong = catalog.suspicious or catalog.quarantined or catalog.notices or any(each.left_out for each in exports)
    raise typer.Exit(1 if is_wrong else 0)


app.command(epilog="Example: toolsearch enrich --tools tools.json --out queries.jsonl --ask 'my-model --plain'")(enrich)
app.command(epilog="Example: toolsearch learned learned.json --tenant acme --html learned.html")(learned)
