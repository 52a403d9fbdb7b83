"""Single conversations in a report: every token is accounted for, and the worst turns are shown as they were played."""

from dataclasses import replace

import pytest

from toolsearch_evals.data.cases import Dataset, load
from toolsearch_evals.savings.plan import STATIC, SweepPlan
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.sweep import SweepResult, sweep
from toolsearch_evals.savings.worked import waterfalls, worst_cases

COMMONS: Dataset = load("commons")[0]
PLAN = SweepPlan(
    sizes=(10, 120),
    seeds=1,
    conversations=4,
    indexes=("keyword",),
    modes=("append", "bridge"),
    wires=("openai_chat", "anthropic"),
)


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    return sweep(COMMONS, COMMONS.cases, PLAN)


def test_the_parts_of_a_conversation_are_all_of_its_tokens_new_and_cached(swept: SweepResult) -> None:
    """On each wire, with all tools sent and in each mode, the same as was counted when it was played."""
    assert swept.stage is not None
    first = next(iter(swept.played))
    jobs = [job for job in swept.played if job.talk == first.talk and job.size == 120]
    assert {(job.wire, job.arm.mode) for job in jobs} == {
        (wire, mode) for wire in ("openai_chat", "anthropic") for mode in ("static", "append", "bridge")
    }
    for job, notes in swept.stage.note(jobs).items():
        usage, spent = swept.played[job].usage, notes.spent(swept.stage.meter)
        assert sum(map(sum, spent.values())) == usage.total
        assert sum(cached for _, cached in spent.values()) == usage.cached
        is_static = job.arm == STATIC
        assert (sum(spent["answers of searches"]) == 0) is is_static
        assert (sum(spent["the search tool"]) == 0) is is_static
        assert (sum(spent["tool definitions"]) == 0) is (job.arm.mode == "bridge")
        assert spent["the user's words"][0] > 0
        assert len(notes.turns) == 3
        assert [turn[0].who for turn in notes.turns] == ["user"] * 3
        assert [turn[0].text for turn in notes.turns] == [turn.case.query for turn in swept.played[job].turns]


def test_a_waterfall_for_each_way_and_wire_adds_up_to_the_mean(swept: SweepResult) -> None:
    falls = waterfalls(swept)
    assert [dict(fall.choices)["wire"] for fall in falls] == ["openai_chat", "anthropic"] * 3
    assert [fall.title.partition(":")[0] for fall in falls[::2]] == [
        "All tools sent",
        "Searched (append, keyword)",
        "Searched (bridge, keyword)",
    ]
    mine = [
        each.usage.total
        for job, each in swept.played.items()
        if (job.size, job.wire, job.arm) == (120, "openai_chat", STATIC)
    ]
    assert falls[0].all_steps()[-1].total == pytest.approx(sum(mine[:3]) / 3)
    assert "120 tools, mean of 3 conversations of 3 turns" in falls[0].title


def test_the_worst_cases_say_what_was_needed_what_was_found_and_what_was_said(swept: SweepResult) -> None:
    (details,) = worst_cases(swept)
    turns = [
        turn
        for job, played in swept.played.items()
        if (job.size, job.wire, job.arm.mode) == (120, "openai_chat", "append")
        for turn in played.turns
        if turn.case.gold
    ]
    bad = {f"{turn.case.id}: {turn.case.query}" for turn in turns if not turn.served or turn.searches > 1}
    assert {each.title for each in details.each} <= bad
    assert len(details.each) == min(len(bad), 6) > 0
    met = [dict(each.facts)["outcome"].partition(";")[0] for each in details.each]
    assert met == sorted(met, reverse=True)  # "not met" first
    worst = details.each[0]
    assert worst.said[0].who == "user"
    assert worst.said[1].text.startswith("search_tools(")
    assert worst.said[-1].who == "model"
    needed, instead = dict(worst.facts)["needed"], dict(worst.facts)["found instead"].split(", ")
    assert not set(instead) & set(needed.replace("; ", " or ").split(" or "))


def test_what_cannot_be_played_again_is_left_out(swept: SweepResult) -> None:
    scored = replace(swept, stage=None)
    assert (waterfalls(scored), worst_cases(scored)) == ((), ())
    report = savings_report(scored, PLAN, COMMONS, "all")
    assert (report.waterfalls, report.cases) == ((), ())
    assert report.charts


def test_the_dearest_tools_are_listed_with_what_is_long_about_them(swept: SweepResult) -> None:
    tables = {table.title: table for table in savings_report(swept, PLAN, COMMONS, "all").tables}
    tokens = [row["tokens"] for row in tables["The dearest tools"].rows]
    assert tokens == sorted(tokens, reverse=True)
    assert tokens[0] > 200
