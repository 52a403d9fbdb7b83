"""Kept runs are scored again without playing, and compared unit by unit."""

import csv
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.evals.test_runs import follow_their_schemas
from toolsearch import SetupError
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.ranking.compare import sign_test
from toolsearch_evals.runs import Run, StoredRun, read_run
from toolsearch_evals.runs.diff import diff_runs, difference_places
from toolsearch_evals.runs.kinds import AGENT, RANKING
from toolsearch_evals.runs.manifest import Manifest
from toolsearch_evals.runs.paired import EXACT, paired_difference
from toolsearch_evals.runs.ranking_run import play_ranking, ranking_manifest
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.savings_run import SAVINGS_RUNS, memory_of, savings_manifest, score_savings
from toolsearch_evals.savings.sweep import SweepPlan, sweep

VERBS = ("open", "close", "read", "send", "count", "paint", "fold", "weigh", "rent", "print", "wash", "sell")
TOOLS = tuple({"name": f"{verb}_thing", "description": f"Can {verb} a thing."} for verb in VERBS)
CASES = tuple(Case(verb, f"please {verb} it", ((f"{verb}_thing",),)) for verb in VERBS)
DATASET = Dataset("things", TOOLS, (*CASES, Case("sing", "hum a tune")))
PLAN = SweepPlan(
    indexes=("keyword",), wires=("openai_chat",), sizes=(4, 12), seeds=1, conversations=4, turns=(2,)
)  # fmt: skip

Pairs = list[tuple[float, float]]


# ---------------------------------------------------------------------------------------------------- the statistics


def all_swaps(first: Pairs, second: Pairs) -> float:
    """The p of a permutation test, from its definition."""

    def distance(one: Pairs, other: Pairs) -> float:
        ratios = [sum(above for above, _ in each) / sum(below for _, below in each) for each in (one, other)]
        return abs(ratios[1] - ratios[0])

    pairs = list(zip(first, second, strict=True))
    distances = []
    for swapped in product((False, True), repeat=len(pairs)):
        turned = [pair[::-1] if swap else pair for pair, swap in zip(pairs, swapped, strict=True)]
        distances.append(distance([a for a, _ in turned], [b for _, b in turned]))
    return sum(each >= distances[0] - 1e-12 for each in distances) / len(distances)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([(1, 1), (0, 1), (0, 1), (1, 1)], [(1, 1), (1, 1), (1, 1), (1, 1)]),
        ([(0.2, 1), (0.5, 1), (0.1, 1)], [(0.3, 1), (0.1, 1), (0.9, 1)]),
        ([(10, 40), (5, 10), (3, 3), (0, 9)], [(30, 45), (6, 11), (2, 4), (1, 2)]),
    ],
)
def test_with_few_units_every_swap_is_tried(first: Pairs, second: Pairs) -> None:
    found = paired_difference(first, second)
    assert found.is_exact
    assert found.p == pytest.approx(all_swaps(first, second))


def test_of_wins_and_losses_alone_the_permutation_test_is_the_sign_test() -> None:
    for wins, losses in ((5, 1), (4, 4), (12, 0)):
        first = [(0.0, 1.0)] * wins + [(1.0, 1.0)] * losses + [(1.0, 1.0)] * 7
        second = [(1.0, 1.0)] * wins + [(0.0, 1.0)] * losses + [(1.0, 1.0)] * 7
        found = paired_difference(first, second)
        assert (found.rises, found.falls, found.n) == (wins, losses, wins + losses + 7)
        assert found.p == pytest.approx(sign_test(wins, losses))


def test_with_many_units_the_swaps_are_drawn_and_give_the_same_p_each_time() -> None:
    wins, losses = 20, 8
    first = [(0.0, 1.0)] * wins + [(1.0, 1.0)] * losses
    second = [(1.0, 1.0)] * wins + [(0.0, 1.0)] * losses
    found = paired_difference(first, second)
    assert wins + losses > EXACT
    assert not found.is_exact
    assert found == paired_difference(first, second)
    assert found.p == pytest.approx(sign_test(wins, losses), abs=0.01)
    assert found.low is not None
    assert found.low < found.difference < found.high  # type: ignore[operator]


def test_a_share_is_a_sum_over_a_sum_and_not_a_mean_of_shares() -> None:
    found = paired_difference([(90, 100), (0, 1)], [(80, 100), (1, 1)])
    assert (found.first, found.second) == (90 / 101, 81 / 101)
    assert (found.rises, found.falls) == (1, 1)


def test_nothing_is_known_of_a_share_of_nothing() -> None:
    found = paired_difference([(0, 0), (0, 0)], [(1, 1), (0, 0)])
    assert (found.first, found.second, found.difference, found.low) == (None, 1, None, None)
    same = paired_difference([(1, 2)], [(1, 2)])
    assert (same.difference, same.p, same.is_exact, same.low, same.high) == (0, 1, True, None, None), "one unit"


# ------------------------------------------------------------------------------------------------------------ ranking


def ranked(folder: Path, *indexes: str, dataset: Dataset = DATASET) -> StoredRun:
    with Run.begin(folder, ranking_manifest("", [dataset], indexes, "all")) as run:
        run.close(play_ranking(run, [dataset], indexes))
    return read_run(folder)


def test_two_rankings_are_compared_case_by_case(tmp_path: Path) -> None:
    worse = tuple({**tool, "description": "", "name": tool["name"].replace("fold", "crease")} for tool in TOOLS)
    labelled = tuple(replace(case, gold=tuple(case.gold)) for case in DATASET.cases)
    one = ranked(tmp_path / "one", "keyword", "regex")
    other = ranked(tmp_path / "other", "keyword", dataset=replace(DATASET, definitions=worse, cases=labelled))
    report = diff_runs(one, other, RANKING)
    rows = {row["measure"]: row for row in report.tables[0].rows}
    assert {row["group"] for row in report.tables[0].rows} == {"keyword"}, "only one run has the index regex"
    assert (rows["R@1"]["n"], rows["R@1"]["falls"]) == (12, 1)
    assert rows["R@1"]["difference"] == pytest.approx(-1 / 12)
    assert rows["R@1"]["p"] == 1
    assert rows["false answers"]["n"] == 1
    (case,) = report.data["changed_cases"]
    assert (case["case"], case["first"], case["second"]) == ("things/cases fold", "fold_thing", "nothing")
    assert [row["what"] for row in _table(report, "What else differs").rows] == [
        "catalog things/cases",
        "index regex",
        "settings indexes",
    ]
    assert report.headline[0].startswith("R@5, keyword: 1.000, then .917; difference −.083 ±")
    assert difference_places(report)["keyword, difference"]["R@5"] == pytest.approx(-1 / 12)


def _table(report: Any, title: str) -> Any:
    return next(table for table in report.tables if table.title == title)


def test_two_runs_of_one_index_each_are_compared_whatever_the_indexes(tmp_path: Path) -> None:
    one, other = ranked(tmp_path / "one", "keyword"), ranked(tmp_path / "other", "regex")
    assert diff_runs(one, other, RANKING).tables[0].rows[0]["group"] == "keyword → regex"
    both = ranked(tmp_path / "both", "whoosh", "regex")
    with pytest.raises(SetupError, match=r"has 'keyword', and '.*both' has 'whoosh', 'regex': there is nothing"):
        diff_runs(one, both, RANKING)


def test_runs_on_other_cases_or_of_another_kind_are_not_compared(tmp_path: Path) -> None:
    one = ranked(tmp_path / "one", "keyword")
    fewer = ranked(tmp_path / "fewer", "keyword", dataset=replace(DATASET, cases=CASES[:5]))
    with pytest.raises(SetupError, match=r"are runs on different cases of 'things/cases': they cannot be compared\."):
        diff_runs(one, fewer, RANKING)
    with pytest.raises(SetupError, match=r"is a run of 'ranking', and .* one of 'savings': they cannot be compared"):
        diff_runs(one, swept(tmp_path / "swept")[0], RANKING)


def test_of_an_unfinished_run_what_both_have_is_compared(tmp_path: Path) -> None:
    one = ranked(tmp_path / "one", "keyword")

    def stop(done: str) -> None:
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        Run.begin(tmp_path / "part", ranking_manifest("", [DATASET], ["keyword"], "all")) as run,
    ):
        play_ranking(run, [DATASET], ["keyword"], tick=stop)
    report = diff_runs(one, read_run(tmp_path / "part"), RANKING)
    assert report.tables[0].rows[0]["n"] == 1
    assert report.headline[-1] == "part is not finished (1 unit so far): what both have is compared."


# ------------------------------------------------------------------------------------------------------------ savings


def swept(folder: Path, plan: SweepPlan = PLAN) -> tuple[StoredRun, Any]:
    with Run.begin(folder, savings_manifest("", DATASET, plan, "all")) as run:
        memory = memory_of(run, DATASET.cases)
        found = sweep(DATASET, DATASET.cases, plan, known=memory.known, keep=memory.keep)
        report = run.close(savings_report(found, plan, DATASET, "all"))
    return read_run(folder), report


def test_a_kept_sweep_follows_its_schemas_and_has_every_request(tmp_path: Path) -> None:
    stored, report = swept(tmp_path / "a")
    follow_their_schemas(tmp_path / "a")
    plain = sweep(DATASET, DATASET.cases, PLAN)
    assert report.tables[0].rows == savings_report(plain, PLAN, DATASET, "all").tables[0].rows
    row = next(row for row in report.tables[0].rows if row["tools"] == 12)
    events = [line for line in stored.events() if "n12 openai_chat append" in line["unit"]]
    spent = sum(line["new"] + line["cached"] + line["written"] for line in events)
    assert spent / 4 == pytest.approx(row["tokens"])
    assert len(events) / 4 == pytest.approx(row["requests"])


def test_a_sweep_that_goes_on_plays_only_what_is_missing_and_ends_with_the_same_report(tmp_path: Path) -> None:
    _, whole = swept(tmp_path / "whole")
    done: list[str] = []

    def tick(what: str) -> None:
        done.append(what)
        if len(done) == 5:
            raise KeyboardInterrupt

    of = savings_manifest("", DATASET, PLAN, "all")
    with Run.begin(tmp_path / "a", of) as run, pytest.raises(KeyboardInterrupt):
        sweep(DATASET, DATASET.cases, PLAN, tick, keep=memory_of(run, DATASET.cases).keep)
    before = (tmp_path / "a" / "units.jsonl").read_bytes()
    assert before.count(b"\n") == 5
    with pytest.raises(SetupError, match=r"is not finished: 11 of its conversations are missing"):
        score_savings(read_run(tmp_path / "a"), DATASET, {})
    with Run.begin(tmp_path / "a", of, resume=True) as run:
        memory = memory_of(run, DATASET.cases)
        found = sweep(DATASET, DATASET.cases, PLAN, known=memory.known, keep=memory.keep)
        resumed = run.close(savings_report(found, PLAN, DATASET, "all"))
    assert (tmp_path / "a" / "units.jsonl").read_bytes().startswith(before)
    assert [table.rows for table in resumed.tables] == [table.rows for table in whole.tables]
    assert resumed.headline == whole.headline


def test_savings_are_priced_again_without_playing(tmp_path: Path) -> None:
    stored, report = swept(tmp_path / "a")
    assert score_savings(stored, DATASET, {}).tables[0].rows == report.tables[0].rows
    dearer = replace(PLAN, cached_weight=0.5)
    again = score_savings(stored, DATASET, {"cached_weight": 0.5})
    plain = sweep(DATASET, DATASET.cases, dearer)
    assert again.tables[0].rows == savings_report(plain, dearer, DATASET, "all").tables[0].rows
    assert again.when == report.when
    with pytest.raises(SetupError, match=r"is one of 'things/cases' as it was; 'things/cases' is another data set or"):
        score_savings(stored, replace(DATASET, definitions=TOOLS[::2]), {})


def test_two_sweeps_are_compared_conversation_by_conversation(tmp_path: Path) -> None:
    one, report = swept(tmp_path / "one")
    other, shorter = swept(tmp_path / "other", replace(PLAN, settings=(("results", "1"),)))
    compared = diff_runs(one, other, SAVINGS_RUNS)
    rows = {row["measure"]: row for row in compared.tables[0].rows}
    largest, then = (next(row for row in r.tables[0].rows if row["tools"] == 12) for r in (report, shorter))
    assert rows["saving"]["first"] == pytest.approx(largest["saving"])
    assert rows["saving"]["second"] == pytest.approx(then["saving"])
    assert rows["cost saving"]["second"] == pytest.approx(then["cost saving"])
    assert rows["cost a met request"]["second"] == pytest.approx(then["cost a met request"])
    assert rows["success"]["first"] == pytest.approx(largest["success"])
    assert rows["tokens"]["n"] == 4
    assert {"settings settings"} == {row["what"] for row in _table(compared, "What else differs").rows}


# -------------------------------------------------------------------------------------------------------- real models


def test_two_runs_of_real_models_are_compared_task_by_task(tmp_path: Path) -> None:
    def played(folder: Path, *met: bool) -> StoredRun:
        with Run.begin(folder, Manifest("agent", "", {"tasks": "0" * 64}, {}, {})) as run:
            for at, success in enumerate(met):
                score = {"case": f"task {at}", "repeat": 0, "tools": 20, "arm": "append", "success": success}
                score |= {"error": None, "new": 100, "cached": 0, "written": 5, "dollars": None, "seconds": 1.5}
                run.record(f"20 append task {at} 0", scores=[score])
        follow_their_schemas(folder)
        return read_run(folder)

    one, other = played(tmp_path / "one", True, True, False), played(tmp_path / "other", False, True, False)
    report = diff_runs(one, other, AGENT)
    rows = {row["measure"]: row for row in report.tables[0].rows}
    assert list(rows) == ["success", "tokens", "seconds"]
    assert rows["success"]["difference"] == pytest.approx(-1 / 3)
    (case,) = report.data["changed_cases"]
    assert (case["case"], case["first"], case["second"]) == ("task 0", "met", "not met")


# ---------------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("things").mkdir()
    Path("things/tools.jsonl").write_text("".join(json.dumps(tool) + "\n" for tool in TOOLS), "utf-8")
    cases = [{"id": case.id, "query": case.query, "gold": case.gold} for case in DATASET.cases]
    Path("things/cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases), "utf-8")


def told(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.usefixtures("things")
def test_runs_are_played_listed_scored_and_compared_by_commands() -> None:
    few = ("--sizes", "4,12", "--seeds", "1", "--conversations", "3", "--turns", "2", "--wire", "openai_chat")
    savings = ("savings", "--data", "things", "--index", "keyword", *few)
    told(*savings, "--run", "runs/first", "--fail-under", "success=.01,saving=-9")
    missed = told(*savings, "--set", "results=1", "--run", "runs/second", "--fail-under", "cost_saving=.99", code=1)
    assert "cost saving is " in missed
    assert ", and the bar is 0.99" in missed
    told("ranking", "--data", "things", "--index", "keyword", "--run", "runs/third")

    listed = told("runs", "list")
    assert [line.split()[0] for line in listed.splitlines() if not line.startswith(" ")] == ["first", "second", "third"]
    assert "savings, 20" in listed
    assert "closed" in listed
    Path("runs/third/scores.jsonl").write_text("", "utf-8")
    Path("runs/fourth").mkdir()
    Path("runs/fourth/manifest.json").write_text("{", "utf-8")
    listed = told("runs", "list")
    assert "changed after it was closed: scores.jsonl" in listed
    assert "fourth  cannot be read: the manifest of 'runs/fourth' is not valid JSON" in listed.replace("\\", "/")
    assert "There is no run in 'things'." in told("runs", "list", "things")

    again = json.loads(told("score", "runs/first", "--data", "things", "--format", "json"))
    kept = json.loads(Path("runs/first/report.json").read_text("utf-8"))
    assert again["tables"] == kept["tables"]
    dearer = json.loads(told("score", "runs/first", "--data", "things", "--cached-weight", "1", "--format", "json"))
    assert dearer["tables"][0]["rows"][0]["cost"] > kept["tables"][0]["rows"][0]["cost"]
    other = ("--cache", "warm", "--prices", "gpt-5", "--static-success", ".9", "--format", "csv")
    lines = [*csv.DictReader(told("score", "runs/first", "--data", "things", *other).splitlines())]
    assert {(line["cache"], line["profile"], line["static success"]) for line in lines} == {("warm", "gpt-5", "0.9")}
    told("score", "runs/first", "--data", "things", "--fail-under", "success=1.1", code=1)

    compared = json.loads(told("diff", "runs/first", "runs/second", "--fail-under", "success=-1", "--format", "json"))
    assert compared["tables"][0]["rows"][0]["measure"] == "success"
    assert "success is 0, and the bar is 0.5" in told(
        "diff", "runs/first", "runs/first", "--fail-under", "success=.5", code=1
    )


@pytest.mark.usefixtures("things")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["diff", "things", "things"], "there is no run in 'things': a run's folder has a manifest.json"),
        (["score", "nowhere"], "there is no run in 'nowhere'"),
        (["runs", "list", "nowhere"], "there is no folder 'nowhere'"),
        (["savings", "--data", "things", "--fail-under", "R@5=.5"], "there is no measure 'R@5' to set a bar for"),
        (["savings", "--data", "things", "--preset", "spring", "--run", "a"], "a preset is not kept as a run"),
        (["diff", "a", "a", "--fail-under", "tokens=5"], "with one of: success, saving, cost saving"),
        (["score", "odd"], "is a run of 'odd', which cannot be read again; those of 'ranking', 'savings', 'agent' can"),
    ],
)
def test_a_mistake_is_told(arguments: list[str], said: str) -> None:
    Run.begin(Path("odd"), Manifest("odd", "", {}, {}, {})).stop()
    if arguments[:2] == ["diff", "a"]:
        Run.begin(Path("a"), savings_manifest("", DATASET, PLAN, "all")).stop()
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, SetupError)
    assert said in str(done.exception)


def test_a_run_of_a_real_model_is_scored_and_compared_by_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = ("agent", "--scripted", "--tools", "20", "--task", "rooms-1", "--fail-under")
    told(*few, "success=1", "--run", "runs/first")
    assert "20 tools, append: success is 1, and the bar is 1.1" in told(*few, "success=1.1", code=1)
    told("score", "runs/first", "--fail-under", "success=1.1", code=1)
    told("diff", "runs/first", "runs/first", "--fail-under", "success=0")
