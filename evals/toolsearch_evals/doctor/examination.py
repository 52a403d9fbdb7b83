"""What was found in a set of tools: findings, what they cost in a request, and the tools that must be there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from toolsearch import Catalog, NotExportable, Tool, ToolIndex, find
from toolsearch.catalog.exports import PROVIDERS, Provider
from toolsearch.tokens import counter
from toolsearch_evals.backends import open_backend
from toolsearch_evals.doctor.definitions import all_findings
from toolsearch_evals.doctor.findings import Finding
from toolsearch_evals.doctor.rates import rates
from toolsearch_evals.savings.format_plugins import format_of
from toolsearch_evals.savings.own_play import OwnPlan, SearchAnswer, measure_answers, with_summary
from toolsearch_evals.savings.own_tokens import CatalogTokens, catalog_tokens, fixed_tokens
from toolsearch_evals.token_usage import TokenMeter, tokenizer

__all__ = ["Examination", "Need", "Tokens", "examine"]

FIRST = 5  # hits that a tool should be among


@dataclass(frozen=True, slots=True)
class Need:
    """A tool that must be there: whether a search finds it and a call can reach it, and if not, why not."""

    asked: str
    tool: str = ""
    problem: str = ""

    @property
    def is_met(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class Tokens:
    """What requests carry: all definitions, or with search the first request and the answers."""

    wire: str
    counted_by: str
    all: CatalogTokens
    first: int
    answer: SearchAnswer | None


@dataclass(frozen=True)
class Examination:
    """Everything that the doctor found out. `servers` has rows on servers that were started, if there were any."""

    catalog: Catalog
    findings: tuple[Finding, ...]
    tokens: Tokens | None
    needs: tuple[Need, ...] = ()
    servers: Sequence[dict[str, object]] = field(default=())

    @property
    def harmful(self) -> tuple[Finding, ...]:
        """The findings of checks whose harm was measured."""
        return tuple(each for each in self.findings if rates()[each.check].is_harmful)


def examine(
    catalog: Catalog,
    *,
    index: str = "keyword",
    wire: str = OwnPlan.wire,
    providers: Iterable[Provider] = PROVIDERS,
    needs: Iterable[str] = (),
    more: Iterable[Finding] = (),
    servers: Sequence[dict[str, object]] = (),
) -> Examination:
    """Looks at a catalog, which may be empty. `more` are findings on what it came from, such as its servers."""
    asked = list(providers)
    opened = open_backend(index)
    opened.add(list(catalog))
    found = [*more, *all_findings(catalog, opened, asked)]
    found.sort(key=lambda each: (-rates()[each.check].rank, list(rates()).index(each.check)))
    tokens = _tokens(catalog, index, wire) if len(catalog) else None
    met = tuple(_need(each, catalog, opened, asked, found) for each in needs)
    return Examination(catalog, tuple(found), tokens, met, servers)


def _tokens(catalog: Catalog, index: str, wire: str) -> Tokens:
    form, meter = format_of(wire), TokenMeter(counter())
    plan = OwnPlan(index=index, wire=wire)
    search = plan.search(catalog, "append")
    has_summaries = any(tool.description or tool.title for tool in catalog)
    answer = measure_answers(search, with_summary(catalog), form, meter, plan.seed) if has_summaries else None
    return Tokens(
        wire,
        tokenizer(meter.counter, is_public=form.tokenizer_is_public),
        catalog_tokens(catalog, form, meter),
        fixed_tokens(search, form, meter),
        answer,
    )


def _need(
    asked: str, catalog: Catalog, index: ToolIndex, providers: Sequence[Provider], found: Sequence[Finding]
) -> Need:
    server, _, name = asked.partition(":")
    tool = next((each for each in catalog if _is_asked(each, server, name, asked)), None)
    if tool is None:
        away = next((each for each in found if each.check == "fails" and each.where == server), None)
        set_aside = next((each for each in found if each.check == "unreadable" and each.where == name), None)
        near = ", ".join(each.id for each in catalog.near(name or asked))
        why = away or set_aside
        return Need(asked, "", why.text if why else f"there is no such tool{f'; near: {near}' if near else ''}")
    hits = find(catalog, index, tool.summary(300), FIRST)
    if tool.id not in [hit.tool.id for hit in hits]:
        before = ", ".join(hit.tool.id for hit in hits)
        return Need(asked, tool.id, f"its own summary does not find it, but {before or 'nothing'}")
    for provider in providers:
        try:
            tool.exported(provider)
        except NotExportable as error:
            return Need(asked, tool.id, f"it cannot be sent to {provider}: {error}")
    return Need(asked, tool.id)


def _is_asked(tool: Tool, server: str, name: str, asked: str) -> bool:
    """Whether a tool is "server:tool", or has this id or name."""
    return (name and tool.server == server and name in (tool.name, tool.base_name)) or asked in (tool.id, tool.name)
