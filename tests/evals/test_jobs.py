"""Jobs: what is played once is priced many times, kept, taken up again, and played in several processes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from toolsearch import SetupError, ToolSearch
from toolsearch.tokens import counter
from toolsearch_evals.backends import open_backend
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.savings.conversations import conversations
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.jobs import Job, jobs_of, talks_of
from toolsearch_evals.savings.plan import STATIC, SweepPlan
from toolsearch_evals.savings.played import PlayedConversation
from toolsearch_evals.savings.scripted import answer, play
from toolsearch_evals.savings.stage import playable
from toolsearch_evals.savings.sweep import rows_of, sweep
from toolsearch_evals.token_usage import TokenMeter, compact

PLAN = SweepPlan(
    indexes=("keyword",),
    modes=("append", "bridge", "auto"),
    wires=("openai_chat", "anthropic"),
    sizes=(8, 60),
    seeds=1,
    conversations=2,
    settings=(("results", "1"), ("results", "3")),
)


@pytest.fixture(scope="module")
def commons() -> Dataset:
    return load("commons")[0]


@pytest.fixture(scope="module")
def played(commons: Dataset) -> dict[Job, PlayedConversation]:
    return dict(sweep(commons, commons.cases, PLAN).played)


def test_each_job_has_a_key_of_its_own_and_those_of_a_conversation_are_together(commons: Dataset) -> None:
    plan = replace(PLAN, turns=(3, 10), localities=(0.0, 0.5), seeds=2)
    jobs = jobs_of(plan, len(commons.definitions))
    assert len({job.key for job in jobs}) == len(jobs) == (2 + 1) * 2 * 2 * 2 * (1 + 3 * 2) * 2
    assert "s0 c1 t3 l0.5 n60 openai_chat append, keyword, results=3" in [job.key for job in jobs]
    talks = talks_of(jobs)
    assert len(talks) == 2 * 2 * 2 * 2
    assert all(len({job.talk for job in jobs}) == 1 for jobs in talks)


def test_what_was_played_is_the_same_from_its_json(commons: Dataset, played: dict[Job, PlayedConversation]) -> None:
    cases = {case.id: case for case in commons.cases}
    again = {
        job: PlayedConversation.from_json(json.loads(json.dumps(each.as_json())), cases) for job, each in played.items()
    }
    assert again == played
    assert rows_of(PLAN, again) == rows_of(PLAN, played)


def test_what_is_known_is_not_played_again(commons: Dataset, played: dict[Job, PlayedConversation]) -> None:
    first = {job.key: each for job, each in list(played.items())[:20]}
    kept: dict[str, PlayedConversation] = {}
    told: list[str] = []
    again = sweep(
        commons,
        commons.cases,
        PLAN,
        told.append,
        known=first.get,
        keep=lambda job, each: kept.update({job.key: each}),
    )
    assert again.played == played
    assert not kept.keys() & first.keys()
    assert len(kept) == len(played) - 20
    assert len(told) == len(played)


def test_several_processes_play_the_same(commons: Dataset) -> None:
    plan = replace(PLAN, sizes=(8,), modes=("append",), settings=(), wires=("openai_chat",))
    few = replace(commons, definitions=commons.definitions[:30])
    told: list[str] = []
    several = sweep(few, few.cases, plan, told.append, processes=2)
    assert several.rows == sweep(few, few.cases, plan).rows
    assert len(told) == len(several.played)


@pytest.mark.parametrize("index", ["keyword", "hybrid"])
def test_a_catalog_that_grew_is_searched_as_one_made_anew_and_static_counts_as_one_by_one(
    commons: Dataset, index: str
) -> None:
    """The shared catalog and index of a conversation, and what is remembered of tools, change no count."""
    plan = replace(PLAN, indexes=(index,), sizes=(8, 70), conversations=1, settings=(), wires=("openai_chat",))
    swept = sweep(commons, commons.cases, plan)
    tools = {tool.id: tool for tool in commons.catalog()}
    (talk,) = conversations(commons.cases, tools, seed=0, many=1, turns=3, locality=0, smallest_catalog=8)
    by_arm = {each.arm: each for each in plan.searched()}
    for job, before in swept.played.items():
        some = [tools[i] for i in talk.tools[: job.size]]
        if job.arm == STATIC:
            search = ToolSearch(some, "keyword", run=answer, mode="static", max_tools=200)
        else:
            search = ToolSearch(some, open_backend(index), run=answer, settings=by_arm[job.arm].settings)
        assert play(search, talk.cases, FORMATS[job.wire], TokenMeter(counter())) == before, job.key


class Whole(TokenMeter):
    """Keeps the requests, to count them otherwise."""

    def __init__(self) -> None:
        super().__init__(counter())
        self.sent: list[dict[str, Any]] = []

    def pieces(self, request: Any, write: Any = compact) -> list[str]:
        self.sent.append({key: list(value) if isinstance(value, list) else value for key, value in request.items()})
        return super().pieces(request, write)


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("mode", ["static", "append", "bridge"])
def test_every_request_is_kept_with_what_it_shares_and_how_it_begins(commons: Dataset, wire: str, mode: str) -> None:
    """E07"""
    meter, plain = Whole(), TokenMeter(counter())
    cases = [Case("r", "refund a payment", (("stripe/create_refund",),)), Case("n", "fold my laundry")]
    search = ToolSearch(commons.catalog(), "keyword", run=answer, mode=mode, max_tools=800)  # type: ignore[arg-type]
    requests = play(search, cases, FORMATS[wire], meter).requests
    said = "input" if wire == "openai_responses" else "messages"
    sent = [each for each in meter.sent if any(message.get("role") == "user" for message in each[said])]
    assert len(sent) == len(requests)
    before = None
    for request, body in zip(requests, sent, strict=True):
        usage = plain.request(body, before)
        assert (request.input, request.shared) == (usage.total, usage.cached)
        changed = before is not None and body["tools"] != before["tools"]
        assert request.tools_changed == changed
        tools_and_system = len(json.dumps({k: v for k, v in body.items() if k != said})) // 8
        assert tools_and_system < request.fixed < request.input
        assert request.output > 10
        before = body
    assert any(request.tools_changed for request in requests) == (mode == "append")
    assert len({request.fixed for request in requests}) == (2 if mode == "append" else 1)


def servers_of(cases: tuple[Case, ...]) -> set[str]:
    return {group[0].partition("/")[0] for case in cases for group in case.gold}


def test_a_local_conversation_stays_with_its_servers(commons: Dataset) -> None:
    tools = {tool.id: tool for tool in commons.catalog()}
    many: dict[float, float] = {}
    for locality in (0, 0.5, 1):
        drawn = list(
            conversations(commons.cases, tools, seed=1, many=20, turns=6, locality=locality, smallest_catalog=20)
        )
        many[locality] = sum(len(servers_of(talk.cases)) for talk in drawn) / len(drawn)
        hopeless = sum(not case.gold for talk in drawn for case in talk.cases)
        assert 8 <= hopeless <= 27, "unanswerable requests in their natural share"
        assert all(len(set(talk.cases)) == 6 for talk in drawn)
    assert many[1] < 2 < many[0.5] < many[0]


def test_a_conversation_that_cannot_be_made_is_said_before_anything_is_played(commons: Dataset) -> None:
    told: list[str] = []
    with pytest.raises(SetupError, match="900 turns cannot be made"):
        sweep(commons, commons.cases, replace(PLAN, turns=(900,)), told.append)
    assert told == []


def test_longer_conversations_than_a_data_set_allows_are_left_out_but_never_all(commons: Dataset) -> None:
    few = replace(commons, cases=tuple(case for case in commons.cases if case.gold)[:6])
    plan = replace(PLAN, turns=(10, 3))
    assert playable(plan, commons, commons.cases) == plan
    assert playable(plan, few, few.cases).turns == (3,)
    assert playable(replace(plan, sizes=(8,)), commons, commons.cases).turns == (3,)
    assert playable(replace(plan, turns=(10,)), few, few.cases).turns == (10,)
