"""A first look: a few real searches, then a small sweep that shows what search saves. Offline, within a minute."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from toolsearch import ToolSearch
from toolsearch_evals.cli.terminal import bars, progress, show
from toolsearch_evals.data.cases import Dataset
from toolsearch_evals.reports.report import Report
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.sweep import SweepPlan, conversations_of, sweep

__all__ = ["demo"]

SEARCHES = (
    ("in plain words", "refund a payment"),
    ("with typing mistakes", "retyr the faild pipline job"),
    ("in other words than the tool's name", "bands I listened to the most this past year"),
    ("several exact names at once", "select:create_issue,slack_post_message"),
    ("what no tool can do", "fold my laundry"),
)
PLAN = SweepPlan(
    indexes=("keyword",), modes=("append", "bridge"), wires=("openai_chat",), sizes=(5, 10, 20, 50, 100, 200), seeds=2
)


def demo(dataset: Dataset, console: Console, errors: Console, plan: SweepPlan = PLAN) -> Report:
    """Prints the searches, the table and a bar chart. Returns the report of the sweep."""
    search = ToolSearch(dataset.catalog(), "keyword")
    console.print(Text(f"{len(search.catalog)} tools of {len(search.catalog.servers)} servers", style="bold"))
    for what, query in SEARCHES:
        hits = search.find(query, 3)
        console.print(Text(f"\n{query!r}", style="bold").append(f"  ({what})", style="dim"))
        for hit in hits:
            score = "exact" if hit.exact else f"{hit.score:.2f}"
            words = ", ".join(match.word for match in hit.matched)
            line = Text(f"  {score:>6}  {hit.tool.id} ").append(f"[{words}] ", style="dim").append(hit.tool.summary())
            console.print(line, no_wrap=True, overflow="ellipsis")
        if not hits:
            console.print(Text("  nothing fits"))
    with progress(conversations_of(plan, len(search.catalog)), errors) as tick:
        swept = sweep(dataset, dataset.cases, plan, tick)
    report = savings_report(swept, plan, dataset, "all")
    show(report, console, tables=2)
    first = swept.rows[0]
    bars([row for row in swept.first().rows if (row["wire"], row["mode"]) == (first["wire"], first["mode"])], console)
    return report
