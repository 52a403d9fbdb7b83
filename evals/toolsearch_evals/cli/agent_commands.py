"""`toolsearch eval agent`: tasks with a real model, over any endpoint."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import typer
from rich.text import Text

from toolsearch import SetupError
from toolsearch.tokens import counter
from toolsearch_evals.agent.agent_run import agent_manifest, facts_of, report_of
from toolsearch_evals.agent.endpoint import Endpoint, WireName
from toolsearch_evals.agent.evaluation import AgentPlan, Budget, Outcome, Unkept, evaluate, read_budget, units_of
from toolsearch_evals.agent.loopback import ScriptedProvider
from toolsearch_evals.agent.play import Asked
from toolsearch_evals.agent.probe import ADAPTERS, ProbeResult, probe
from toolsearch_evals.cli.agent_options import (
    AdapterOption,
    AgentIndexOption,
    AgentModeOption,
    AgentSeedOption,
    BaseUrlOption,
    BudgetOption,
    ConcurrencyOption,
    KeyVariableOption,
    ModelOption,
    PriceOption,
    ProbeOnlyOption,
    RepeatsOption,
    RequestOption,
    ScriptedOption,
    StreamOption,
    TaskOption,
    TimeoutOption,
    ToolsOption,
    WireOption,
    read_arms,
    read_options,
    read_prices,
    read_wire,
)
from toolsearch_evals.cli.app import app, example
from toolsearch_evals.cli.options import (
    FormatOption,
    OutOption,
    ReportForm,
    SettingsOption,
    default_index,
    error_console,
    print_report,
    read_sizes,
)
from toolsearch_evals.cli.run_options import FailUnderOption, ResumeOption, RunOption, check_bars, command_of, kept_run
from toolsearch_evals.cli.terminal import progress
from toolsearch_evals.reports.report import Report
from toolsearch_evals.runs.bars import agent_places, read_bars
from toolsearch_evals.runs.kinds import AGENT
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["agent"]


@app.command(epilog=example("agent --model gpt-5-mini --budget '$2' --run mini"))
def agent(
    *,
    context: typer.Context,
    model: ModelOption = "",
    base_url: BaseUrlOption = None,
    wire: WireOption = None,
    key_variable: KeyVariableOption = "",
    scripted: ScriptedOption = False,
    adapter: AdapterOption = "auto",
    probe_only: ProbeOnlyOption = False,
    tools: ToolsOption = "20,100",
    mode: AgentModeOption = None,
    index: AgentIndexOption = None,
    settings: SettingsOption = None,
    task: TaskOption = None,
    repeats: RepeatsOption = 1,
    seed: AgentSeedOption = 0,
    budget: BudgetOption = "",
    price: PriceOption = "",
    option: RequestOption = None,
    stream: StreamOption = True,
    timeout: TimeoutOption = 120.0,
    concurrency: ConcurrencyOption = 1,
    run: RunOption = None,
    resume: ResumeOption = False,
    fail_under: FailUnderOption = "",
    out: OutOption = None,
    form: FormatOption = ReportForm.table,
) -> None:
    """Play tasks with a real model, with all tools sent and with search, and check what became of the world.

    The exit code is 1 if tasks are missing, because a budget is used up or the endpoint failed, or if a bar is missed.
    """
    plan = AgentPlan(
        arms=read_arms(mode or ["static", "append"], index or default_index(), settings),
        sizes=tuple(dict.fromkeys(read_sizes(tools))),
        tasks=tuple(task or ()),
        repeats=repeats,
        seed=seed,
        budget=read_budget(budget) if budget else Budget(),
        concurrency=concurrency,
    )
    bars = read_bars(fail_under, AGENT.with_bars())
    units_of(plan)  # so that a mistake is said before anything is asked
    name, form_of_requests, options = _model_name(model, scripted), read_wire(wire, model), read_options(option)
    with _address(base_url, form_of_requests, scripted) as url:
        endpoint = Endpoint(name, form_of_requests, url, key_variable, stream, timeout, options)
        asked, probed = _asked(endpoint, adapter, price)
        if probe_only:
            return
        outcome, report = _played(plan, asked, probed, run, command_of(context), resume=resume)
    print_report(report, form, out)
    check_bars(bars, agent_places(report))
    if outcome.missing:
        raise typer.Exit(1)


def _model_name(model: str, scripted: bool) -> str:
    if not model and not scripted:
        raise SetupError("say which model to ask: pass --model NAME, or --scripted to try the command")
    return model or "scripted"


@contextmanager
def _address(base_url: str | None, wire: WireName, scripted: bool) -> Generator[str | None]:
    """The address to ask; with `scripted`, that of a provider which is there meanwhile."""
    if not scripted:
        yield base_url
        return
    if base_url is not None:
        raise SetupError("--scripted asks a model on this machine: leave out --base-url")
    with ScriptedProvider() as provider:
        yield provider.url


def _asked(endpoint: Endpoint, adapter: str, price: str) -> tuple[Asked, ProbeResult | None]:
    """How to ask the endpoint, as it was found out or as was said; what was found out is told."""
    if adapter not in ("auto", *ADAPTERS):
        raise SetupError(f"there is no adapter {adapter!r}; pass auto, {', '.join(ADAPTERS)}")
    prices, source = read_prices(price)
    asked = Asked(endpoint, endpoint.client(), TokenMeter(counter()), "tools", prices, source)
    chosen = next((each for each in ADAPTERS if each == adapter), None)
    if chosen in ("schema", "json"):
        return replace(asked, adapter=chosen), None
    try:
        probed = probe(endpoint, asked.client, asked.tokens)
    except Exception as error:  # whatever a client raises
        raise SetupError(f"the endpoint cannot be used: {asked.told(f'{type(error).__name__}: {error}')}") from None
    error_console().print(Text(probed.sentence), soft_wrap=True)
    if chosen == "tools" and probed.adapter != "tools":
        raise SetupError("--adapter tools would measure nothing there: leave it out, so that tools are sent as text")
    return replace(asked, adapter=probed.adapter), probed


def _played(
    plan: AgentPlan, asked: Asked, probed: ProbeResult | None, run: Path | None, command: str, *, resume: bool
) -> tuple[Outcome, Report]:
    """Plays the plan; in a run, which is closed if nothing is missing."""
    found = {} if probed is None else probed.as_json()
    facts, total = facts_of(plan, asked, found), len(units_of(plan))
    if run is None and not resume:
        with progress(total, error_console()) as tick:
            outcome = evaluate(plan, asked, Unkept(), tick)
        return outcome, report_of(outcome, facts)
    with kept_run(run, agent_manifest(command, plan, asked, found), total, resume=resume) as kept:
        with progress(total, error_console()) as tick:
            outcome = evaluate(plan, asked, kept, tick)
        report = report_of(outcome, facts)
        if not outcome.missing:
            return outcome, kept.close(report)
    error_console().print(Text(f"What was played is kept in {run}: go on with --resume."), soft_wrap=True)
    return outcome, report
