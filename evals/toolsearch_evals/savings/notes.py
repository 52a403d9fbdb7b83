"""What a report on savings says about how it was measured, and what it does not show."""

from __future__ import annotations

from collections.abc import Mapping

from toolsearch_evals.savings.sweep import SweepPlan, SweepResult

__all__ = ["limits", "measured"]


def measured(plan: SweepPlan, tokenizers: Mapping[str, str]) -> tuple[str, ...]:
    """How it was measured, in sentences."""
    calls = "one by one, a request for each" if plan.one_by_one else "together in one reply"
    return (
        (
            "A scripted model plays whole conversations through real sessions and the real wires. The exact JSON of "
            "every request (tools, system message, messages) is counted, and so is everything that the model writes. "
            "This includes search calls, search results, the search tool's own definition and the instructions. A "
            "provider writes definitions in a form of its own and counts that, so its bill differs."
        ),
        "Tokenizer: " + "; ".join(f"{wire}: {name}" for wire, name in tokenizers.items()) + ".",
        (
            f"A conversation is a system message and {plan.turns[0]} cases of the data set in succession, unanswerable "
            "ones in their natural share. The catalog of size N holds what the conversation needs and the first of "
            f"a seeded order of the others; {plan.conversations} conversations for each of {plan.seeds} seeds, the "
            "same at every size."
        ),
        (
            "With search, the model calls what is loaded already, and searches for the rest with the case's own "
            "words (one query a step where the case has steps). A right tool that an answer only names is recognised "
            f"in {plan.recognised:.0%} of the cases, and loaded by its name. A miss costs a second search with a "
            "larger limit and a third with the content words alone; then the turn has failed. An unanswerable "
            "request costs one search."
        ),
        (
            "All tools sent: every definition is in every request, and the right tool is assumed to be called at once, "
            "always."
        ),
        (
            f"Tools needed in one turn are called {calls}. Arguments are the smallest that fit the schema; every "
            "tool returns the same small record."
        ),
        (
            "Cached is what a request shares, from its first byte on, with the one before it: tools, then system, "
            f"then messages. By price, a cached token counts {plan.cached_weight:g} and a written one "
            f"{plan.output_weight:g} of a new input token."
        ),
        (
            "A met request is one whose needed tools were all called. Its price is that of all conversations, with "
            "the requests that were not met or cannot be, over the number of those met; its 95 % interval is a "
            "seeded bootstrap over the conversations. The intervals of shares are Wilson's. Break-evens are "
            "interpolated on the difference between the two costs."
        ),
    )


def limits(swept: SweepResult, plan: SweepPlan) -> tuple[str, ...]:
    """What it does not show, in sentences."""
    told = [
        (
            "The scripted model never mistakes a tool. Real models choose worse the more tools they are shown, "
            "which is not counted in favour of search here; and they may search when they need not, which is not "
            "counted against it."
        ),
        (
            "A turn that fails takes more searches and requests than one that is met, so a low success lowers the "
            "saving; the price of a met request counts it in full."
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
            "Prices differ by provider; writing to a cache, its least length and its lifetime are not counted. Each "
            "conversation begins with a cold cache."
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
