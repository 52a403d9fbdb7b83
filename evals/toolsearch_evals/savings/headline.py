"""What a report on savings says first: what a met request costs, from where on search is cheaper, what it misses."""

from __future__ import annotations

from toolsearch_evals.reports.report import counted
from toolsearch_evals.savings.break_even import BreakEven
from toolsearch_evals.savings.intervals import Crossing
from toolsearch_evals.savings.rows import SavingsRow, arm_of
from toolsearch_evals.savings.sweep import SweepResult

__all__ = ["headline"]


def headline(swept: SweepResult) -> tuple[str, ...]:
    """What a met request costs with each arm on the first wire; then, for its first arm, the tokens, where it breaks
    even, and what it misses.

    The sentence on tokens says how they were counted, and calls an estimate one.
    """
    swept = swept.first()
    first = swept.rows[0]
    mine = [row for row in swept.rows if arm_of(row) == arm_of(first) and row["wire"] == first["wire"]]
    largest = [row for row in swept.rows if (row["wire"], row["tools"]) == (first["wire"], mine[-1]["tools"])]
    whose = f" ({arm_of(first).in_words}, {first['wire']}.)"
    told = (
        _gain(mine[-1], swept.tokenizers[first["wire"]]),
        _begin(swept.break_evens[0], mine[0]),
        _success(mine[-1]) + whose,
    )
    return (*map(_price, largest), *told)


def _price(row: SavingsRow) -> str:
    """What a met request costs with one arm."""
    before, after = row["static cost a met request"], row["cost a met request"]
    start = f"{arm_of(row).in_words}, {counted(row['tools'], 'tool')}: "
    if before is None or after is None:
        return f"{start}no request was met, so a met request has no price."
    spread = f" ±{row['cost a met request ±']:,.0f}" if row["cost a met request ±"] is not None else ""
    return (
        f"{start}a request that is met costs as much as {after:,.0f}{spread} new input tokens when the tools are "
        f"searched for, and {before:,.0f} when all are sent: "
        f"{_more_or_less(1 - after / before)}{_ends(row['met saving low'], row['met saving high'])}."
    )


def _gain(row: SavingsRow, counted_by: str) -> str:
    turns = f"{row['turns']} turns" if row["turns"] > 1 else "one turn"
    about = "about " if "estimate" in counted_by else ""
    return (
        f"With {counted(row['tools'], 'tool')}, a conversation of {turns} takes {_fewer_or_more(row['saving'])} tokens"
        f"{_ends(row['saving low'], row['saving high'])} when the tools are searched for: {about}{row['tokens']:,.0f} "
        f"instead of {about}{row['static tokens']:,.0f}, by {counted_by.partition(':')[0]}. By price, where what is "
        f"sent again is cached, it costs {_more_or_less(row['cost saving'])}"
        f"{_ends(row['cost saving low'], row['cost saving high'])}."
    )


def _begin(even: BreakEven, few: SavingsRow) -> str:
    by_tokens, by_price, by_met = (_from(each, even.sizes) for each in (even.by_tokens, even.by_cost, even.by_met))
    begin = f"Counted in tokens, search is cheaper {by_tokens}; by price, {by_price}; by the price of a met request, "
    begin += f"{by_met}."
    if few["tools"] < even.sizes[1] and few["saving"] < 0:
        begin += f" With {counted(few['tools'], 'tool')} it takes {_fewer_or_more(few['saving'])} tokens."
    return begin


def _success(row: SavingsRow) -> str:
    if row["success"] is None:
        return "No request of these conversations can be met by a tool."
    by_wording = [
        f"{success:.0%} in {whose} words"
        for success, whose in (
            (row["success, user wording"], "a user's"),
            (row["success, agent wording"], "an agent's"),
        )
        if success is not None
    ]
    wordings = f"; {', '.join(by_wording)}" if by_wording else ""
    return (
        f"With {counted(row['tools'], 'tool')} and search, the right ones were found and called in "
        f"{row['success']:.0%} of the {counted(row['requests to meet'], 'request')} that can be met (95% interval "
        f"{row['success low']:.0%} to {row['success high']:.0%}{wordings}); sending every tool is assumed to succeed "
        f"{_share_of_time(row['static success'])}. With search, a conversation takes {row['requests']:.1f} requests "
        f"instead of {row['static requests']:.1f}."
    )


def _share_of_time(share: float) -> str:
    return "always" if share == 1 else f"in {share:.0%} of them"


def _ends(low: float | None, high: float | None) -> str:
    """The interval of a saving."""
    if low is None or high is None:
        return ""
    return f" (95% interval {low:.0%} to {high:.0%})".replace("-", "−")


def _more_or_less(saving: float) -> str:
    return f"{abs(saving):.0%} {'less' if saving >= 0 else 'more'}"


def _fewer_or_more(saving: float) -> str:
    return _more_or_less(saving).replace("less", "fewer")


def _from(where: Crossing, sizes: tuple[float, float]) -> str:
    """From how many tools on; a bound is called one."""
    if where.bound == "?":
        return "that is not known"
    if where.bound == ">":
        return f"at no size up to {where.at:,.0f} tools"
    if where.bound:
        return f"at every size from {where.at:,.0f} tools on"
    return f"from about {where.at:.0f} tools on ({where.in_words(*sizes).partition(' ')[2]})"
