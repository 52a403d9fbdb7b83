"""The rates of the doctor's checks: what is planted is found, costs what is said, and the file that ships fits."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import toolsearch_datasets
from toolsearch import Catalog
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.doctor.alarms import Alarms, alarms
from toolsearch_evals.doctor.findings import CHECKS
from toolsearch_evals.doctor.planting import DEFECTS
from toolsearch_evals.doctor.rates import FILE, Rate, rates
from toolsearch_evals.doctor.trials import Harm, Searched

SERVERS = ("github", "gitlab", "jira", "stripe", "gmail", "outlook")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Six servers of commons, with their cases."""
    commons = load("commons")[0]
    folder = tmp_path_factory.mktemp("some") / "some"
    folder.mkdir()
    tools = [line for line in commons.definitions if line["server"] in SERVERS]
    ids = {f"{tool['server']}/{tool['name']}" for tool in tools}
    kept = {case.id for case in commons.cases if case.gold and all(ids.issuperset(group) for group in case.gold)}
    lines = (toolsearch_datasets.path("commons") / "cases.jsonl").read_text("utf-8").splitlines()
    (folder / "tools.jsonl").write_text("\n".join(map(json.dumps, tools)), "utf-8")
    (folder / "cases.jsonl").write_text("\n".join(line for line in lines if json.loads(line)["id"] in kept), "utf-8")
    return load(folder)[0]


@pytest.fixture(scope="module")
def out(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes."""
    folder = tmp_path_factory.mktemp("out")
    options = ["--planted", "24", "--planted-in", str(data.folder), "--out", str(folder)]
    done = CliRunner().invoke(app, ["doctor-checks", *options])
    assert done.exit_code == 0, done.output
    assert "What the doctor's checks are worth" in done.output
    return folder


@pytest.fixture(scope="module")
def tried(out: Path) -> dict[str, dict[str, Any]]:
    """What came of each defect, by its name."""
    tables = json.loads((out / "report.json").read_text("utf-8"))["tables"]
    return {row["defect"]: row for row in next(each["rows"] for each in tables if each["title"] == "Defects")}


def test_each_planted_defect_is_found_but_for_instructions_in_new_words(tried: dict[str, dict[str, Any]]) -> None:
    shares = {name: [int(part) for part in row["found"].split(" of ")] for name, row in tried.items()}
    assert {*shares} >= {defect.name for defect in DEFECTS}
    assert [name for name, (found, planted) in shares.items() if found < 0.8 * planted] == ["an instruction"]


def test_what_is_refused_is_refused_as_it_is_and_not_as_toolsearch_sends_it(tried: dict[str, dict[str, Any]]) -> None:
    refused = [row for row in tried.values() if row["check"] == "refused"]
    assert [(row["lost"], row["through"]) for row in refused] == [(1.0, 0.0)] * 5


def test_a_call_that_keeps_to_the_rest_of_a_contradiction_is_refused(tried: dict[str, dict[str, Any]]) -> None:
    called = [row["lost"] for row in tried.values() if row["check"] == "contradiction"]
    assert len(called) == 3
    assert min(called) > 0.9


def test_a_tool_without_words_is_found_less_often_than_before(tried: dict[str, dict[str, Any]]) -> None:
    assert tried["no description"]["lost"] > 0.05
    assert tried["no object"]["lost"] > tried["no description"]["lost"]


def test_a_server_that_leaves_processes_is_found_and_noise_alone_ends_no_connection(
    tried: dict[str, dict[str, Any]],
) -> None:
    assert tried["deaf to the end"]["found"] == "3 of 3"
    assert tried["deaf to the end"]["through"] == 0.0
    assert (tried["noise"]["found"], tried["noise"]["lost"]) == ("3 of 3", 0.0)


def test_alarms_are_judged_by_labels_and_by_what_is_hostile_on_purpose() -> None:
    tools = [{"name": name, "server": "box", "description": ""} for name in ("keep_paper", "lend_paper", "sell")]
    hidden = "Sum. <!-- a comment -->"
    tools += [{"name": "sum", "server": server, "description": hidden} for server in ("community_scripts", "a")]
    cases = [Case("1", "keep my paper", (("box/keep_paper",),)), Case("2", "my cup of tea", (("box/lend_paper",),))]
    found = alarms(Searched(Catalog(tools), "keyword"), cases)
    assert found["hidden-comment"] == Alarms(5, 2, 1)
    assert found["silent"] == Alarms(5, 3, 1, 1), "one is found all the same, one is not, and one has no case"


def test_the_rates_that_ship_know_every_check_and_every_defect() -> None:
    shipped = json.loads(resources.files("toolsearch_evals.doctor").joinpath(FILE).read_text("utf-8"))
    again = "run `toolsearch eval doctor-checks --out FOLDER` again, and keep its rates.json"
    assert shipped["made"]["defects"][: len(DEFECTS)] == [defect.name for defect in DEFECTS], again
    assert {*shipped["checks"]} == {*CHECKS}, again
    refused = rates()["refused"].harm
    assert refused is not None
    assert (refused.lost, refused.low > 0.9) == (1.0, True)


def test_the_rank_of_a_check_is_its_harm_by_the_share_of_what_it_named_with_need() -> None:
    harm = Harm(100, 0.5, 0.4, 0.6)
    assert Rate(harm).rank == 0.5
    assert Rate(harm, shipped=Alarms(90, 4, 1), published=Alarms(90, 8, 2, 4)).rank == pytest.approx(0.5 * 5 / 8)
    assert Rate(Harm(100, 0.1, 0.0, 0.2)).rank == 0
    assert not Rate(Harm(100, 0.1, 0.0, 0.2)).is_harmful
    assert Rate(harm, through=0.0).is_harmful
    assert not Rate(harm, through=0.0).is_left


def test_the_command_writes_the_rates_beside_its_report(out: Path) -> None:
    written = json.loads((out / FILE).read_text("utf-8"))
    assert {*written["checks"]} == {*CHECKS}
    assert written["made"]["planted in"] == "some"
    assert json.loads((out / "report.json").read_text("utf-8"))["kind"] == "doctor checks"
