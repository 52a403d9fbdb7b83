"""What a report on savings says about how it was measured, and what it does not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolsearch_evals.reports.report import counted
from toolsearch_evals.savings.plan import ROOM
from toolsearch_evals.savings.runs import Pricing
from toolsearch_evals.savings.sweep import SweepPlan, SweepResult

__all__ = ["limits", "measured"]


def measured(plan: SweepPlan, tokenizers: Mapping[str, str]) -> tuple[str, ...]:
    """How it was measured, in sentences."""
    turns = _listed(plan.turns)
    return (
        (
            "A scripted model plays whole conversations through real sessions and real wires. Every request (tools, "
            "system message, messages) is counted, and so is everything that the model writes. This includes search "
            "calls, search results, the search tool's own definition and the instructions. " + _COUNTED[plan.tokens]
        ),
        "Tokenizer: " + "; ".join(f"{wire}: {name}" for wire, name in tokenizers.items()) + ".",
        (
            f"A conversation is a system message and {turns} cases of the data set in succession, unanswerable "
            f"ones in their natural share; {_stays(plan.localities)} The catalog of size N holds what the conversation "
            "needs and the first of a seeded order of the others; "
            f"{plan.conversations} conversations for each of {plan.seeds} seeds, the same at every size. Sizes with "
            f"fewer than {ROOM:g} tools for each turn are left out, unless they are asked for."
        ),
        (
            "With search, the model calls what is loaded already, and searches for the rest with the case's own "
            "words (one query a step where the case has steps). A right tool that an answer only names is recognised "
            f"in {plan.recognised:.0%} of the cases, and loaded by its name. A miss costs a second search with a "
            "larger limit and a third with the content words alone; then the turn has failed. An unanswerable "
            "request costs one search."
        ),
        *_priced(plan),
    )


def _priced(plan: SweepPlan) -> tuple[str, ...]:
    calls = "one by one, a request for each" if plan.one_by_one else "together in one reply"
    return (
        (
            "All tools sent: every definition is in every request, and the right tool is called at once. How many of "
            f"these requests are met is an assumption, applied afterwards: {_listed(plan.static_success, '.0%')} of "
            "those that can be."
        ),
        (
            f"Tools needed in one turn are called {calls}. Arguments are the smallest that fit the schema; every "
            "tool returns the same small record."
        ),
        (
            "Cached is what a request shares, from its first byte on, with the one before it: tools, then system, "
            "then messages. A cold cache holds nothing of the first request, a warm one its tools and its system "
            "message. Prices: " + " ".join(each.profile.in_words for each in _profiles(plan))
        ),
        (
            "A met request is one whose needed tools were all called. Its price is that of all conversations, with "
            "the requests that were not met or cannot be, over the number of those met. Intervals of 95 % are a seeded "
            "bootstrap over the conversations, the same with and without search; those of shares are Wilson's. "
            "Break-evens are interpolated on the difference between the two costs. Where search is cheaper at all "
            "sizes, or at none, only a bound is given."
        ),
    )


_COUNTED = {
    "json": (
        "What is counted is the exact JSON that is sent. A provider writes definitions in a form of its own and counts "
        "that, so its bill differs; `--tokens rendered` counts such a form where one is known."
    ),
    "rendered": (
        "What is counted is not the JSON that is sent, but what OpenAI is publicly known to make of it: definitions as "
        "TypeScript, messages between marks. It is a reconstruction. For other wires no such form is known, and their "
        "JSON is counted."
    ),
}


def _listed(values: Sequence[float], form: str = "g") -> str:
    return " or ".join(format(value, form) for value in values)


def _stays(localities: Sequence[float]) -> str:
    if set(localities) == {0}:
        return "each turn is independent of the others, so nothing that was found is likely to be used again."
    return f"a turn stays with the servers of its conversation with a chance of {_listed(localities, '.0%')}."


def _profiles(plan: SweepPlan) -> list[Pricing]:
    return list({each.profile: each for each in plan.pricings()}.values())


def limits(swept: SweepResult, plan: SweepPlan) -> tuple[str, ...]:
    """What it does not show, in sentences."""
    different = max(row["different cases"] for row in swept.rows)
    told = [
        f"The conversations hold {counted(different, 'different case')}; a rate of few cases says little about others.",
        (
            "The scripted model never mistakes a tool. Real models choose worse the more tools they are shown, "
            "for which `--static-success` gives a curve; and they may search when they need not, which is not counted "
            "against search."
        ),
        (
            "A turn that fails takes more searches and requests than one that is met, so failed turns make the saving "
            "look worse, not better; the price of a met request counts them in full."
        ),
        (
            f"That a model recognises a right name in {plan.recognised:.0%} of the cases is a guess; "
            "`--recognised` plays another."
        ),
        (
            "Searches use the cases' own words. A real model words its own queries, and the figures for agent wording "
            "are closer to that than those for user wording."
        ),
        (
            "Caches keep what they have for the whole conversation; their lifetime is not counted. Prices and the "
            "rules of caches are collected by hand, and change."
        ),
        (
            "A case whose tools would not fit into the smallest catalog together with those of the others is put off "
            "to a later conversation; with very small catalogs, that makes requests for several tools rarer."
        ),
    ]
    if swept.refused:
        told.append(f"{len(swept.refused)} calls were refused by the session, the first: {swept.refused[0]}")
    told += [f"Set aside, and so in no catalog: {entry}" for entry in swept.quarantined]
    return tuple(told)
