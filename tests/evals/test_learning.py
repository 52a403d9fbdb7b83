"""The simulated month: the same seed is the same month, what is told apart, and that harm is counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolsearch import Learned, SetupError
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.learning.months import learning
from toolsearch_evals.learning.simulated_month import DAYS, KNOWN, Habits, Need, simulate_month

FEW = Habits(tenants=2, users=2, needs=4, requests=4)
NEEDS = [Need(frozenset([f"tool {n}"]), (f"do thing {n} for me", f"thing number {n} please")) for n in range(6)]
DEFINITIONS = (
    {"name": "set_mode", "description": "Set the mode of a climate device."},
    {"name": "roll_dice", "description": "Roll dice."},
    {"name": "create_issue", "description": "Create an issue."},
)
CASES = (
    Case("1", "brr it is freezing in here", (("set_mode",),)),
    Case("2", "mode of the climate device", (("set_mode",),)),
    Case("3", "throw a six", (("roll_dice",),)),
    Case("4", "roll the dice", (("roll_dice",),)),
    Case("5", "fly me to the moon"),
    Case("6", "do both", (("set_mode",), ("roll_dice",))),
)
HOUSE = Dataset("house", DEFINITIONS, CASES, Path("nowhere"), "house/cases")


def row(report: Any, requests: str) -> dict[str, Any]:
    return next(dict(each) for each in report.tables[0].rows if each["requests"] == requests)


def test_the_same_seed_is_the_same_month_and_another_is_another() -> None:
    asked = simulate_month(NEEDS, ["impossible"], FEW, 1)
    assert asked == simulate_month(NEEDS, ["impossible"], FEW, 1)
    assert asked != simulate_month(NEEDS, ["impossible"], FEW, 2)
    assert len(asked) == DAYS * FEW.tenants * FEW.requests
    assert [request.day for request in asked] == sorted(request.day for request in asked)


def test_a_request_is_known_by_what_its_tenant_has_asked_before() -> None:
    said: dict[tuple[str, frozenset[str]], list[str]] = {}
    for request in simulate_month(NEEDS, ["impossible"], FEW, 3):
        if not request.fitting:
            assert request.known == "unanswerable"
            continue
        before = said.setdefault((request.tenant, request.fitting), [])
        assert (request.query in before) == (request.known == "repeated")
        assert (not before) == (request.known == "new")
        before.append(request.query)


def test_use_helps_what_is_asked_again_and_what_is_new_stays_as_it_was() -> None:
    report = learning(HOUSE, ["keyword"], "all", FEW, seeds=2)
    again, new = row(report, "repeated"), row(report, "new")
    assert again["with"] > again["without"]
    assert new["with"] == new["without"]
    whole = row(report, "all")
    assert whole["n"] == sum(row(report, known)["n"] for known in KNOWN)
    assert round(whole["n"] * (whole["with"] - whole["without"])) == whole["helped"] - whole["harmed"]
    assert len(report.tables[1].rows) == 4 * (1 + len(KNOWN))


def test_what_nobody_learns_helps_and_harms_nobody() -> None:
    report = learning(HOUSE, ["keyword"], "all", FEW, seeds=1, make=lambda clock: Learned(clock=clock, weight=0))
    whole = row(report, "all")
    assert (whole["helped"], whole["harmed"], whole["with"]) == (0, 0, whole["without"])


def test_a_set_without_single_needs_cannot_be_measured() -> None:
    with pytest.raises(SetupError, match="no case that one tool answers"):
        learning(Dataset("x", DEFINITIONS, CASES[4:], Path("nowhere"), "x/cases"), ["keyword"], "all", FEW)


def test_the_command_measures_the_set_that_ships(tmp_path: Path) -> None:
    few = ["--seeds", "1", "--tenants", "1", "--needs", "5", "--requests", "2"]
    done = CliRunner().invoke(app, ["learning", *few, "--format", "json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["parameters"]["needs"] == 5
    assert "simulation" in " ".join(told["limits"])


# -- example queries in a data set -------------------------------------------------------------------------------------


def shelf(folder: Path) -> Path:
    (folder / "tools.jsonl").write_text("".join(json.dumps(d) + "\n" for d in DEFINITIONS), "utf-8")
    cases = [{"id": c.id, "query": c.query, "gold": [list(group) for group in c.gold]} for c in CASES]
    (folder / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases), "utf-8")
    return folder


def test_ranking_takes_the_sets_own_queries_or_those_of_a_file(tmp_path: Path) -> None:
    data = str(shelf(tmp_path))
    queries = {"tool": "set_mode", "queries": ["it is freezing"]}
    (tmp_path / "examples.jsonl").write_text(json.dumps(queries) + "\n", "utf-8")
    found = []
    for more in ([], ["--enriched"], ["--examples", str(tmp_path / "examples.jsonl")]):
        done = CliRunner().invoke(app, ["ranking", "--data", data, "--index", "keyword", "--format", "json", *more])
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        found.append((told["tables"][0]["rows"][0]["R@5"], told["parameters"].get("tools with example queries")))
    assert found[0][0] < found[1][0]
    assert found[1] == found[2]
    assert (found[0][1], found[1][1]) == (None, 1)


def test_queries_that_fit_no_tool_are_a_mistake_and_so_are_both_at_once(tmp_path: Path) -> None:
    data = str(shelf(tmp_path))
    (tmp_path / "other.jsonl").write_text('{"tool": "nothing", "queries": ["one thing"]}\n', "utf-8")
    other = ["--examples", str(tmp_path / "other.jsonl")]
    for more, told in (
        (["--enriched"], "no examples.jsonl"),
        (other, "no tool that"),
        ([*other, "--enriched"], "one of"),
    ):
        done = CliRunner().invoke(app, ["ranking", "--data", data, *more])
        assert isinstance(done.exception, SetupError)
        assert told in str(done.exception)


def test_the_queries_that_ship_are_for_every_tool_and_none_is_a_case() -> None:
    (commons,) = load("commons")
    entries = commons.examples().entries
    assert entries.keys() == {tool.id for tool in commons.catalog()}
    asked = {case.query.casefold() for case in commons.cases}
    assert not any(query.casefold() in asked for entry in entries.values() for query in entry.queries)
