"""What `toolsearch eval savings --tools` does: savings on tools of one's own, without labelled cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from toolsearch import SetupError
from toolsearch.cli.tool_files import catalog_of
from toolsearch_evals.cli.options import default_index, error_console, read_settings
from toolsearch_evals.cli.savings_options import read_axes
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.reports.report import Report
from toolsearch_evals.savings.own_play import OwnPlan
from toolsearch_evals.savings.own_report import own_savings
from toolsearch_evals.savings.plan import CACHES
from toolsearch_evals.savings.prices import PLAIN, PriceProfile, profile_of

__all__ = ["OwnOptions", "own_options", "own_tools_report"]

_USUAL_AXES = {"turns": "1", "locality": "0", "cache": CACHES[0], "prices": PLAIN.name, "static_success": "1"}
_COUNTING = {
    *("tools", "index", "mode", "wire", "settings", "conversations", "turns"),
    *("cache", "prices", "cached_weight", "output_weight", "out", "form"),
}


@dataclass(frozen=True)
class OwnOptions:
    """The options of `eval savings` that count for tools of one's own; `has_cases` if a data set is named too."""

    index: Sequence[str] | None = None
    mode: Sequence[str] | None = None
    wire: Sequence[str] | None = None
    settings: tuple[tuple[str, str], ...] = ()
    turns: tuple[int, ...] = OwnPlan.turns
    caches: Sequence[str] = (CACHES[0],)
    prices: Sequence[PriceProfile] = (PLAIN,)
    conversations: int = OwnPlan.conversations
    has_cases: bool = False


def own_options(context: typer.Context) -> OwnOptions:
    """The options as given to the command. Raises `SetupError` for one that only counts with labelled cases."""
    given = {name: value for name, value in context.params.items() if _is_given(context, name)}
    if given.keys() & {"run", "resume", "fail_under"}:
        raise SetupError("without cases nothing is met or kept: leave out --run, --resume and --fail-under")
    has_cases = bool(given.keys() & {"data", "dataset"})
    if not has_cases and (idle := sorted(given.keys() - _COUNTING)):
        named = ", ".join(f"--{name.replace('_', '-')}" for name in idle)
        counts = "counts" if len(idle) == 1 else "count"
        raise SetupError(f"{named} {counts} with labelled cases only: leave out, or measure on cases with --data")
    axes = read_axes(**{name: str(given.get(name, usual)) for name, usual in _USUAL_AXES.items()})
    return OwnOptions(
        given.get("index"),
        given.get("mode"),
        given.get("wire"),
        read_settings(given.get("settings")),
        turns=tuple(sorted(axes["turns"])) if "turns" in given else OwnPlan.turns,
        caches=axes["caches"],
        prices=[profile_of(name, _plain(given)) for name in axes["prices"]],
        conversations=given.get("conversations", OwnPlan.conversations),
        has_cases=has_cases,
    )


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _plain(given: Mapping[str, Any]) -> PriceProfile:
    """The plain prices, with the weights that were given."""
    return replace(
        PLAIN,
        cached=given.get("cached_weight", PLAIN.cached),
        output=given.get("output_weight", PLAIN.output),
    )


def own_tools_report(files: Sequence[str], options: OwnOptions, plan: OwnPlan | None = None) -> Report:
    """The report on the tools of these files, with one index, one wire, and the modes asked for, or all."""
    if options.has_cases:
        raise SetupError("--tools needs no cases; to measure on labelled ones, pass --data or --dataset alone")
    one_of = {"index": options.index, "wire": options.wire, "cache": options.caches}
    one_of["prices"] = [each.name for each in options.prices]
    for what, asked in one_of.items():
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
        warm=options.caches[0] != CACHES[0],
        prices=options.prices[0],
    )
    if plan is None:
        chosen = replace(chosen, turns=options.turns, conversations=options.conversations)
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
