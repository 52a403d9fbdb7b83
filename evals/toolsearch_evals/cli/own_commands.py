"""`toolsearch eval init`: drafts of labelled cases for tools of one's own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import SetupError
from toolsearch.catalog import Examples
from toolsearch.catalog.enrichment import enrich
from toolsearch.catalog.examples import QUERIES
from toolsearch.cli.model_options import (
    BASE_URL,
    KEY_VARIABLE,
    AskOption,
    BaseUrlOption,
    KeyOption,
    ModelOption,
    model_asked,
)
from toolsearch.cli.tool_files import catalog_of
from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import error_console
from toolsearch_evals.data.drafts import draft_cases, tools_to_label, write_drafts
from toolsearch_evals.reports.report import counted

__all__ = ["init"]


@app.command(epilog=example("init tools.json --out own"))
def init(
    tools: Annotated[
        list[str],
        typer.Argument(metavar="TOOLS", help="Files of tools, as `toolsearch search --tools` reads; folders of them."),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder for the data set.")],
    examples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draft from the example queries of a file that `toolsearch enrich` wrote.",
            show_default="the examples in the tools' own definitions",
        ),
    ] = None,
    ask: AskOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = BASE_URL,
    key_variable: KeyOption = KEY_VARIABLE,
    queries: Annotated[int, typer.Option(min=1, max=QUERIES, help="The most drafts for a tool.")] = 2,
    most: Annotated[int, typer.Option(min=1, help="The most tools to draft for, drawn evenly from the servers.")] = 50,
    seed: Annotated[int, typer.Option(help="The seed that draws them.")] = 0,
) -> None:
    """Draft labelled cases for your own tools, which you then edit: from example queries, from a model, or empty forms.

    Writes tools.jsonl, cases.jsonl and a README on how to label. Nothing that exists is overwritten.
    """
    if examples is not None and (ask is not None or model is not None):
        raise SetupError("drafts come from a file or from a model: pass --examples, or one of --ask and --model")
    catalog = catalog_of(tools)
    chosen = tools_to_label(catalog, most, seed)
    texts = {tool.id: tool.examples[:queries] for tool in chosen}
    by = "the tool's author"
    if examples is not None:
        texts, by = _texts(Examples.load(examples), queries), "the example queries"
    elif ask is not None or model is not None:
        call, by = model_asked(ask, model, base_url, key_variable)
        made = enrich(chosen, call, queries=queries, by=by, date=datetime.now(UTC).date().isoformat())
        texts = _texts(made, queries)
        for tool_id, problem in made.problems.items():
            error_console().print(Text(f"{tool_id}: {problem}"))
    drafts = draft_cases(chosen, texts, by)
    files = write_drafts(catalog, drafts, out)
    console = Console()
    forms = len(drafts.lines) - drafts.written
    left = f", of which {len(chosen):,} have a draft (--most)" if len(chosen) < len(catalog) else ""
    labels = [counted(drafts.written, "draft")] if drafts.written else []
    told = " and ".join([*labels, f"{counted(forms, 'empty form')} to fill in"])
    console.print(Text(f"{', '.join(map(str, files))}: {counted(len(catalog), 'tool')}{left}; {told}."))
    console.print(Text(f"Read {out / 'README.md'}, edit the cases, then: toolsearch eval datasets check --data {out}"))


def _texts(examples: Examples, queries: int) -> dict[str, tuple[str, ...]]:
    return {tool_id: entry.queries[:queries] for tool_id, entry in examples.entries.items()}
