"""What search would save on one's own tools, without labelled cases, as a report of one page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from toolsearch import Catalog
from toolsearch.tokens import counter
from toolsearch_evals.reports.report import Card, Column, Report, ReportTable, counted, shown
from toolsearch_evals.savings.format_plugins import format_of
from toolsearch_evals.savings.own_play import (
    OwnPlan,
    OwnTalks,
    SearchAnswer,
    break_even_tokens,
    measure_answers,
    play_talks,
    saving_half,
    with_summary,
)
from toolsearch_evals.savings.own_tokens import CatalogTokens, catalog_tokens, dearest_table, fixed_tokens
from toolsearch_evals.token_usage import TokenMeter, tokenizer

__all__ = ["in_a_sentence", "own_savings"]

MANY_TURNS, USUAL_HIT = 10, 0.8  # what the headline is about, where it was played
Row = dict[str, Any]


@dataclass(frozen=True)
class _Measured:
    """Everything that was counted, before it is put in words."""

    tokens: CatalogTokens
    talks: tuple[OwnTalks, ...]
    first: Mapping[str, int]  # tokens of tools and instructions in a first request, by mode
    answers: Mapping[str, SearchAnswer]
    counted_by: str


def own_savings(catalog: Catalog, name: str, plan: OwnPlan, tick: Callable[[str], None] = lambda _: None) -> Report:
    """Counts what a catalog costs in requests, and plays conversations over it with and without search.

    `name` is what the report calls the tools. Raises `SetupError` if no tool has a description.
    """
    form, meter = format_of(plan.wire), TokenMeter(counter())
    searches = {mode: plan.search(catalog, mode) for mode in plan.modes}
    answering = {mode: search for mode, search in searches.items() if search.session().mode != "static"}
    probed = with_summary(catalog)
    measured = _Measured(
        catalog_tokens(catalog, form, meter),
        tuple(play_talks(catalog, form, meter, plan, tick)),
        {mode: fixed_tokens(search, form, meter) for mode, search in searches.items()},
        {mode: measure_answers(each, probed, form, meter, plan.seed) for mode, each in answering.items()},
        tokenizer(meter.counter, is_public=form.tokenizer_is_public),
    )
    rows = _rows(measured, plan, len(catalog))
    return Report(
        kind="own savings",
        title=f"What search would save on the tools of {name}",
        headline=_headline(measured, rows, plan, catalog),
        parameters={
            "tools": name,
            "index": plan.index,
            "wire": plan.wire,
            "modes": plan.modes,
            "turns": plan.turns,
            "found": plan.hits,
            "conversations": plan.conversations,
            "seed": plan.seed,
            "prices": plan.prices.name,
            "cache": "warm" if plan.warm else "cold",
            "settings": [f"{key}={value}" for key, value in plan.settings],
        },
        tables=(
            _cost_table(rows, plan),
            _request_table(measured, plan),
            _server_table(measured.tokens),
            dearest_table(measured.tokens),
        ),
        measured=_how(measured, plan, probed=len(probed), tools=len(catalog)),
        cards=_cards(measured, _usual_row(rows), len(catalog)),
        limits=(*_LIMITS, *(f"Set aside: {entry.name}: {entry.reason}" for entry in catalog.quarantined)),
        data={
            "tokenizers": {plan.wire: measured.counted_by},
            "tools": [asdict(each) for each in measured.tokens.tools],
        },
    )


# -- rows --------------------------------------------------------------------------------------------------------------


def _rows(measured: _Measured, plan: OwnPlan, tools: int) -> list[Row]:
    """A row for each number of turns and each share of turns met."""
    static = measured.talks[0]
    rows = []
    for turns in plan.turns:
        before = sum(static.costs(turns, plan)) / static.met(turns)
        for hit in plan.hits:
            row: Row = {"turns": turns, "found": hit, "tools": tools, "definitions": measured.tokens.total}
            row |= {
                "conversations": plan.conversations,
                "static price met": before,
                "static tokens": static.tokens(turns),
            }
            prices: dict[str, float] = {"all sent": before}
            for each in (talk for talk in measured.talks[1:] if talk.hit == hit):
                met = each.met(turns)
                price = sum(each.costs(turns, plan)) / met if met else None
                row |= {f"{each.mode} price met": price, f"{each.mode} tokens": each.tokens(turns)}
                if not each.sends_all:
                    row[f"{each.mode} saving ±"] = saving_half(static, each, turns, plan)
                    even = break_even_tokens(static, each, measured.tokens.total, turns, plan)
                    row[f"{each.mode} break-even tokens"] = even
                    if price is not None:
                        prices[each.mode] = price
            rows.append(row | _cheapest(row, prices))
    return rows


def _cheapest(row: Row, prices: Mapping[str, float]) -> Row:
    """What is cheapest; and of the ways that search, the cheapest one's saving and break-even."""
    best = min(prices, key=lambda mode: prices[mode])
    searching = {mode: price for mode, price in prices.items() if mode != "all sent"}
    told: Row = {
        "cheapest": best,
        "saving": None,
        "saving ±": None,
        "break-even tokens": None,
        "break-even tools": None,
    }
    if searching:
        mode = min(searching, key=lambda each: searching[each])
        even = row[f"{mode} break-even tokens"]
        told |= {"saving": 1 - searching[mode] / prices["all sent"], "saving ±": row[f"{mode} saving ±"]}
        if even is not None:
            told |= {"break-even tokens": even, "break-even tools": even * row["tools"] / row["definitions"]}
    return told


def _cost_table(rows: Sequence[Row], plan: OwnPlan) -> ReportTable:
    columns = (
        Column("turns", "turns", "count"),
        Column("found", "found", "share"),
        Column("static price met", "all sent", "count"),
        *(Column(f"{mode} price met", mode, "count") for mode in plan.modes),
        Column("cheapest", "cheapest", is_result=True),
        Column("saving", "saved", "share", "saving ±"),
        Column("break-even tools", "pays from tools", "count"),
        Column("break-even tokens", "pays from tokens", "count"),
    )
    note = (
        "Found: the share of requests for which search finds the right tool; nobody knows yours without labelled "
        "cases, so three are shown. Prices are those of a request that is met, in new input tokens "
        f"({plan.prices.name} prices, a {'warm' if plan.warm else 'cold'} cache at first). Saved: by the "
        "cheapest way to search, against sending all. It pays from so many tools like these, or from so many tokens of "
        "definitions in a request."
    )
    return ReportTable("Price of a request that is met, by turns of a conversation", columns, rows, note)


def _request_table(measured: _Measured, plan: OwnPlan) -> ReportTable:
    rows: list[Row] = [{"way": "all sent", "first": measured.tokens.total}]
    for mode in plan.modes:
        answer = measured.answers.get(mode)
        told = asdict(answer) if answer is not None else {"note": "sends all of these tools"}
        rows.append({"way": mode, "first": measured.first[mode], **told})
    columns = (
        Column("way", "way"),
        Column("first", "tools and instructions", "count"),
        Column("answer", "a search's answer", "count"),
        Column("answer_high", "a long one", "count"),
        Column("added", "definitions it adds", "count"),
        Column("added_high", "many", "count"),
    )
    searched = next(iter(measured.answers.values()), None)
    note = "Tokens."
    if searched is not None:
        note += (
            f" Of an answer and what it adds: the median and the 90th percentile for {searched.searched} tools, each "
            "searched for by its own summary."
        )
    if len(measured.answers) < len(plan.modes):
        note += " A mode without an answer sends all of these tools, so nothing is searched."
    return ReportTable("What a request carries", columns, rows, note)


def _server_table(tokens: CatalogTokens) -> ReportTable:
    columns = (
        Column("server", "server"),
        Column("tools", "tools", "count"),
        Column("tokens", "tokens", "count"),
        Column("share", "share", "share"),
    )
    note = "Each definition counted by itself, so the sum differs a little from that of a request."
    return ReportTable("Tokens by server", columns, tokens.by_server(), note)


# -- words -------------------------------------------------------------------------------------------------------------


def _headline(measured: _Measured, rows: Sequence[Row], plan: OwnPlan, catalog: Catalog) -> tuple[str, ...]:
    about = "about " if "estimate" in measured.counted_by else ""
    servers = len({tool.server for tool in catalog if tool.server})
    whose = f" of {counted(servers, 'server')}" if servers else ""
    least = min(measured.first.values())
    told = [
        (
            f"{counted(len(catalog), 'tool')}{whose} take "
            f"{about}{measured.tokens.total:,} tokens in every request when all are sent ({plan.wire}, counted by "
            f"{measured.counted_by}). With search, the first request carries {about}{least:,}."
        )
    ]
    told.append(in_a_sentence(_usual_row(rows)))
    told.append(_dearest(measured.tokens))
    return tuple(told)


def _usual_row(rows: Sequence[Row]) -> Row:
    """The row that a reader looks at first."""
    return min(rows, key=lambda row: (abs(row["turns"] - MANY_TURNS), abs(row["found"] - USUAL_HIT)))


def _cards(measured: _Measured, row: Row, tools: int) -> tuple[Card, ...]:
    where = f"With {counted(row['turns'], 'turn')}, where {row['found']:.0%} are found."
    return (
        Card("All tools sent", f"{measured.tokens.total:,}", f"Tokens in every request, {counted(tools, 'tool')}."),
        Card("With search", f"{min(measured.first.values()):,}", "Tokens of tools and instructions at first."),
        Card("Price of a met request", f"{shown(row['saving'], 'share')} saved", where),
        Card(
            "Search pays from", f"{shown(row['break-even tools'], 'count')} tools", "Tools like these, by that price."
        ),
    )


def in_a_sentence(row: Row) -> str:
    """What is cheapest in the row that a reader looks at first, and how sure that is."""
    turns = (
        f"a conversation of {counted(row['turns'], 'turn')} in which search finds the right tool for {row['found']:.0%}"
    )
    if row["saving"] is None:
        return f"In {turns} of the requests, no way to search is left: every mode sends all of these tools."
    often = "of the requests"
    less = f"{abs(row['saving']):.0%} {'less' if row['saving'] > 0 else 'more'}"
    half = row["saving ±"]
    if half is not None and abs(row["saving"]) < half:
        often += f" ({row['saving'] - half:.0%} to {row['saving'] + half:.0%} saved: too near to call)".replace(
            "-", "−"
        )
    even = ""
    if row["break-even tools"] is not None:
        even = (
            f" Search pays from about {row['break-even tools']:,.0f} tools like these on "
            f"({row['break-even tokens']:,.0f} tokens of definitions)."
        )
    advice = f"cheapest is {row['cheapest']}" if row["cheapest"] != "all sent" else "sending all is cheapest"
    return (
        f"In {turns} {often}, {advice}: a request that is met costs {less} with search than with all tools sent.{even}"
    )


def _dearest(tokens: CatalogTokens) -> str:
    few = tokens.tools[: max(1, len(tokens.tools) // 10)]
    share = sum(each.tokens for each in few) / sum(each.tokens for each in tokens.tools)
    first = few[0]
    tools = f"The dearest {len(few)} tools have" if len(few) > 1 else "The dearest tool has"
    return f"{tools} {share:.0%} of the tokens; {first.id} alone takes {first.tokens:,}, most of it {first.long}."


def _how(measured: _Measured, plan: OwnPlan, *, probed: int, tools: int) -> tuple[str, ...]:
    return (
        (
            f"Tokenizer: {plan.wire}: {measured.counted_by}. The exact JSON of every request is counted; a provider "
            "writes definitions in a form of its own and counts that, so its bill differs."
        ),
        (
            f"{counted(plan.conversations, 'conversation')} of {max(plan.turns)} turns, drawn with the seed "
            f"{plan.seed}, are played through real sessions with every tool sent, and in each mode with each share of "
            f"requests met; the shorter ones are their beginnings. Each turn needs one of the {probed} tools (of "
            f"{tools}) that have a description, another one as long as there are some, and asks for it by its own "
            "summary, or by its name if the summary does not find it."
        ),
        (
            "Whether search finds what your users mean cannot be known without labelled cases, so it is not "
            "measured: in the given share of the turns the right tool is found; in the others the model searches "
            "three times in vain. With all tools sent, the right one is always called."
        ),
        f"Prices: {plan.prices.in_words} Each conversation begins with a {'warm' if plan.warm else 'cold'} cache.",
        (
            "Where search pays: the conversations with all tools sent are priced anew with fewer or more tokens of "
            "definitions, until a met request costs as much as with search in this catalog."
        ),
        "± is half of the 95 % interval: a seeded bootstrap over the conversations. What the tokens are is exact.",
    )


_LIMITS = (
    (
        "No labelled case was used, so this says what requests cost, not whether the right tool is found: "
        "`toolsearch eval init` drafts cases to measure that with."
    ),
    (
        "Each turn needs a new tool. Real conversations come back to the same ones, for which nothing is searched "
        "again; so search costs less there."
    ),
    "In a smaller catalog an answer may be shorter, so search may pay a little earlier than said.",
    (
        "Real models choose worse among many tools, which is not counted in favour of search, and may search when "
        "they need not, which is not counted against it."
    ),
)
