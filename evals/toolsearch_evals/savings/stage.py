"""Plays jobs: the conversations of a plan over a data set, each in its catalogs, on its wires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

from toolsearch import Catalog, Settings, SetupError, Tool
from toolsearch.tokens import counter
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.savings.catalogs import GrowingCatalog
from toolsearch_evals.savings.conversations import Conversation, conversations
from toolsearch_evals.savings.format_plugins import format_of
from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.jobs import Job
from toolsearch_evals.savings.noted import Notes, noting
from toolsearch_evals.savings.own_tokens import CatalogTokens, catalog_tokens
from toolsearch_evals.savings.plan import STATIC, SearchedArm, SweepPlan, sizes_of
from toolsearch_evals.savings.scripted import PlayedConversation, play
from toolsearch_evals.token_usage import TokenMeter, tokenizer

__all__ = ["Stage", "playable"]


class Stage:
    """What jobs are played with: the tools, the cases, the wires and the token counter.

    Raises `SetupError` for a wire that does not exist.
    """

    def __init__(
        self,
        dataset: Dataset,
        cases: Sequence[Case],
        plan: SweepPlan,
        formats: Mapping[str, WireFormat] | None = None,
    ) -> None:
        catalog = dataset.catalog()
        self.plan = plan
        self.tools: dict[str, Tool] = {tool.id: tool for tool in catalog}
        self.quarantined = [f"{entry.name}: {entry.reason}" for entry in catalog.quarantined]
        self._cases = cases
        self._forms = {wire: format_of(wire, formats) for wire in plan.wires}
        self.meter = TokenMeter(counter())  # of JSON
        self._meters = {wire: self._meter_of(form) for wire, form in self._forms.items()}
        self._arms = {each.arm: each for each in plan.searched()}
        self._drawn: dict[tuple[int, int, float], list[Conversation]] = {}
        self._catalog: tuple[object, GrowingCatalog] = None, GrowingCatalog([])  # the last one of `delivery`

    @cached_property
    def tokenizers(self) -> dict[str, str]:
        """By wire, how its tokens are counted."""
        return {
            wire: tokenizer(self.meter.counter, is_public=form.tokenizer_is_public) + self._of_what(form)
            for wire, form in self._forms.items()
        }

    def _meter_of(self, form: WireFormat) -> TokenMeter:
        return form.rendered(self.meter) if self.plan.tokens == "rendered" and form.rendered else self.meter

    def _of_what(self, form: WireFormat) -> str:
        """What is counted, in words, if that is asked for."""
        if self.plan.tokens != "rendered":
            return ""
        return (
            ": requests as the provider is said to render them" if form.rendered else ": JSON, no other form is known"
        )

    def draw(self, seed: int, turns: int, locality: float) -> list[Conversation]:
        """The conversations of a seed, so long and so local; `SetupError` if they cannot be made."""
        key = (seed, turns, locality)
        if key not in self._drawn:
            made = conversations(
                self._cases,
                self.tools,
                seed=seed,
                many=self.plan.conversations,
                turns=turns,
                locality=locality,
                smallest_catalog=sizes_of(self.plan, len(self.tools), turns)[0],
            )
            self._drawn[key] = list(islice(made, self.plan.conversations))
        return self._drawn[key]

    def definitions(self, wire: str) -> CatalogTokens:
        """What the definitions of all tools cost in a request on a wire."""
        return catalog_tokens(Catalog(self.tools.values()), self._forms[wire], self.meter)

    def note(self, jobs: Sequence[Job]) -> dict[Job, Notes]:
        """Plays jobs of one conversation once more, and notes what is said and what the tokens are spent on."""
        forms, notes = dict[Job, WireFormat](), dict[Job, Notes]()
        for job in jobs:
            settings = Settings() if job.arm == STATIC else self._arms[job.arm].settings
            forms[job], notes[job] = noting(self._forms[job.wire], (settings.search_tool, settings.call_tool))
        for _ in self.play(jobs, forms):
            pass
        return notes

    def play(
        self, jobs: Sequence[Job], forms: Mapping[Job, WireFormat] | None = None
    ) -> Iterator[tuple[Job, PlayedConversation]]:
        """Plays jobs of one conversation, from small catalogs to large ones; in `forms` of their own if given."""
        first = jobs[0]
        talk = self.draw(first.seed, first.turns, first.locality)[first.number]
        catalog = GrowingCatalog([self.tools[i] for i in talk.tools], self._arms.values())
        for job in jobs:
            catalog.grow(job.size)
            search = catalog.static() if job.arm == STATIC else catalog.searched(self._arm(job))
            played = play(
                search,
                talk.cases,
                forms[job] if forms else self._forms[job.wire],
                self._meters[job.wire],
                one_by_one=self.plan.one_by_one,
                recognised=self.plan.recognised,
            )
            yield job, played

    def _arm(self, job: Job) -> SearchedArm:
        """The arm of a job. Its sessions expect the turns that are played, if no setting says otherwise."""
        arm = self._arms[job.arm]
        if any(name == "expected_turns" for name, _ in self.plan.settings):
            return arm
        return arm._replace(settings=arm.settings.model_copy(update={"expected_turns": job.turns}))

    def delivery(self, job: Job, settings: Settings) -> str:
        """How a session with these settings delivers tools, in the catalog and on the wire of a job."""
        talk = self.draw(job.seed, job.turns, job.locality)[job.number]
        if self._catalog[0] != (job.talk, job.size):
            catalog = GrowingCatalog([self.tools[i] for i in talk.tools])
            catalog.grow(job.size)
            self._catalog = (job.talk, job.size), catalog
        return self._catalog[1].unsearched(settings).session(wire=self._forms[job.wire].wire).mode


def playable(plan: SweepPlan, dataset: Dataset, cases: Sequence[Case]) -> SweepPlan:
    """The plan without the longer conversations for which the data set has too few tools or cases; one length stays."""
    shortest, *longer = sorted({*plan.turns})
    few = {turns for turns in longer if not _can_be_made(replace(plan, turns=(shortest, turns)), dataset, cases, turns)}
    return replace(plan, turns=tuple(turns for turns in dict.fromkeys(plan.turns) if turns not in few))


def _can_be_made(plan: SweepPlan, dataset: Dataset, cases: Sequence[Case], turns: int) -> bool:
    stage = Stage(dataset, cases, plan)
    try:
        sizes_of(plan, len(stage.tools), turns)
        for seed in range(plan.seeds):
            for locality in plan.localities:
                stage.draw(seed, turns, locality)
    except SetupError:
        return False
    return True
