"""The command `toolsearch enrich`: the tools that need example queries most, and queries for them from a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from toolsearch import Catalog, Settings, SetupError, Suggestion, Tool, ToolSearch
from toolsearch.catalog.enrichment import enrich as ask_for_queries
from toolsearch.catalog.examples import QUERIES, Examples
from toolsearch.cli.model_options import (
    BASE_URL,
    KEY_VARIABLE,
    AskOption,
    BaseUrlOption,
    KeyOption,
    ModelOption,
    check_one_model,
    model_asked,
)
from toolsearch.cli.output import (
    FormatOption,
    OutputForm,
    print_json,
    show,
    show_folded,
    suggestion_lines,
    suggestions_as_json,
    warn,
    warn_of_unread,
)
from toolsearch.cli.tool_files import IndexOption, ToolFiles, catalog_of

__all__ = ["enrich"]

Out = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The file to write. If it exists, the model is asked only about tools without current queries in it.",
        show_default="none",
    ),
]
Suggest = Annotated[
    bool,
    typer.Option(
        "--suggest",
        help="Name the tools that their own summary does not find, or for which it finds another one first. With a "
        "model, write queries for just these.",
    ),
]
Queries = Annotated[int, typer.Option(min=1, max=QUERIES, help="How many queries to write for each tool.")]


def enrich(
    *,
    tools: ToolFiles,
    out: Out = None,
    suggested: Suggest = False,
    index: IndexOption = None,
    form: FormatOption = OutputForm.text,
    ask: AskOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = BASE_URL,
    key_variable: KeyOption = KEY_VARIABLE,
    queries: Queries = 3,
) -> None:
    """Ask a model for requests that each tool could meet, and write them to a file for you to review.

    With --suggest and no model, only name the tools that need such requests most.

    The exit code is 1 if some tool got no query.
    """
    if not suggested or ask is not None or model is not None:
        check_one_model(ask, model)
        if out is None:
            raise SetupError("say where to write the queries: pass --out FILE")
    catalog = catalog_of(tools)
    chosen = list(catalog)
    if suggested:
        suggestions = ToolSearch(catalog, index, settings=Settings.load()).suggest()
        _show(suggestions, catalog, form)
        chosen = [catalog[each.tool] for each in suggestions]
    problems: Mapping[str, str] = {}
    if out is not None and (ask is not None or model is not None):
        model_call, by = model_asked(ask, model, base_url, key_variable)
        done, problems = _write(chosen, out, model_call, by, queries)
        (warn if form is OutputForm.json else show_folded)(done)  # JSON stays alone on standard output
    for tool_id, problem in problems.items():
        warn(f"{tool_id}: {problem}")
    warn_of_unread(catalog)
    raise typer.Exit(1 if problems else 0)


def _write(
    tools: Sequence[Tool], out: str, model_call: Callable[[str], str], by: str, queries: int
) -> tuple[str, Mapping[str, str]]:
    """Asks about these tools and writes the file; returns what was done, and why some tools got no query."""
    known = Examples.load(out) if Path(out).exists() else Examples()
    today = datetime.now(UTC).date().isoformat()
    examples = ask_for_queries(
        tools, model_call, queries=queries, known=known, by=by, date=today, each=lambda so_far: so_far.save(out)
    )
    new = sum(known.entries.get(i) != entry for i, entry in examples.entries.items())
    done = f"{out}: {len(examples)} tools, {new} of them new. Review it before you use it."
    return done, examples.problems


def _show(suggestions: Sequence[Suggestion], catalog: Catalog, form: OutputForm) -> None:
    if form is OutputForm.json:
        print_json(suggestions_as_json(suggestions, catalog))
        return
    if not suggestions:
        show_folded(f"Each of the {len(catalog)} tools is found by its own summary: none needs example queries most.")
        return
    show_folded(f"{len(suggestions)} of {len(catalog)} tools need example queries most.")
    for line in suggestion_lines(suggestions):
        show(line)
