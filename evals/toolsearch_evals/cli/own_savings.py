"""What `toolsearch eval savings --tools` does: savings on tools of one's own, without labelled cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolsearch import SetupError
from toolsearch.cli.tool_files import catalog_of
from toolsearch_evals.cli.options import default_index, error_console
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.reports.report import Report
from toolsearch_evals.savings.own_play import OwnPlan
from toolsearch_evals.savings.own_report import own_savings

__all__ = ["OwnOptions", "own_tools_report"]


@dataclass(frozen=True)
class OwnOptions:
    """The options of `eval savings` that count for tools of one's own; `has_cases` if a data set is named too."""

    index: Sequence[str] | None = None
    mode: Sequence[str] | None = None
    wire: Sequence[str] | None = None
    settings: tuple[tuple[str, str], ...] = ()
    has_cases: bool = False


def own_tools_report(files: Sequence[str], options: OwnOptions, plan: OwnPlan | None = None) -> Report:
    """The report on the tools of these files, with one index, one wire, and the modes asked for, or all."""
    if options.has_cases:
        raise SetupError("--tools needs no cases; to measure on labelled ones, pass --data or --dataset alone")
    for what, asked in (("index", options.index), ("wire", options.wire)):
        if asked and len(asked) > 1:
            raise SetupError(f"--tools takes one --{what}, not {len(asked)}: {', '.join(asked)}")
    names = [name for name, _ in options.settings]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SetupError(f"--tools takes one value of each setting, not several of {twice!r}")
    if others := [name for name in options.mode or () if name not in OwnPlan.modes]:
        raise SetupError(f"there is no delivery {others[0]!r} to measure; there are: {_in_words(OwnPlan.modes)}")
    catalog = catalog_of(list(files))
    chosen = replace(
        plan or OwnPlan(),
        index=options.index[0] if options.index else default_index(),
        modes=tuple(options.mode) if options.mode else OwnPlan.modes,
        wire=options.wire[0] if options.wire else OwnPlan.wire,
        settings=options.settings,
    )
    with progress(chosen.plays, error_console()) as tick:
        return own_savings(catalog, _name_of(files), chosen, tick)


def _in_words(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _name_of(files: Sequence[str]) -> str:
    """What to call the tools: their files, or the folders of files that are just called tools."""
    names = []
    for file in files:
        path = Path(file).resolve()
        names.append("standard input" if file == "-" else path.parent.name if path.stem == "tools" else path.stem)
    return ", ".join(dict.fromkeys(names))
