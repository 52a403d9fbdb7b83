"""A second annotator: the sheet shows no label, and the agreement is Cohen's kappa, with its interval."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolsearch import SetupError
from toolsearch_evals.backends import open_backend
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.ranking.agreement import Judged, agreement_report, agreement_rows, read_labels, sheet_of

TOOLS = tuple({"name": name, "description": f"{name} a thing"} for name in ("send", "read", "roll", "water"))
CASES = (
    Case("1", "send it", (("send",),), kind="lexical"),
    Case("2", "read or roll a thing", (("read", "roll"),), kind="lexical"),
    Case("3", "fly a thing", kind="unanswerable"),
)
SET = Dataset("tiny", TOOLS, CASES)
IDS = ("send", "read", "roll", "water")


def judged(*chosen: str) -> list[Judged]:
    """The three cases, with the names that were chosen for each, separated by spaces."""
    return [Judged(case, IDS, frozenset(names.split())) for case, names in zip(CASES, chosen, strict=True)]


def test_a_sheet_has_candidates_in_random_order_and_no_label() -> None:
    index = open_backend("keyword")
    index.add(list(SET.catalog()))
    lines = sheet_of(SET, [index], 2, seed=3, without=["1"])
    assert {line["id"] for line in lines} == {"2", "3"}
    for line in lines:
        assert line.keys() == {"id", "query", "candidates", "chosen"}
        assert line["chosen"] is None
    assert lines == sheet_of(SET, [index], 2, seed=3, without=["1"])
    orders = {tuple(each["id"] for each in sheet_of(SET, [index], 3, seed=seed)[0]["candidates"]) for seed in range(9)}
    assert len(orders) > 1
    with pytest.raises(SetupError, match="3 cases cannot be drawn: 'tiny/cases' has 2"):
        sheet_of(SET, [index], 3, seed=1, without=["1"])


def test_full_agreement_is_one_and_has_no_interval_of_kappa() -> None:
    whole = agreement_rows(judged("send", "read roll", ""))[0]
    assert (whole["kappa"], whole["kappa low"]) == (1.0, None)
    assert (whole["same set"], whole["needs met"], whole["answerable"]) == (1.0, 1.0, 1.0)
    assert whole["same set low"] < 0.5, "three cases prove little"


def test_kappa_is_cohens() -> None:
    """Of 12 pairs, 3 are labelled and 3 chosen, 2 of them alike: (10/12 - .625) / .375."""
    whole = agreement_rows(judged("send", "read water", ""))[0]
    assert whole["kappa"] == pytest.approx((10 / 12 - 0.625) / 0.375)
    assert (whole["same set"], whole["needs met"]) == (pytest.approx(2 / 3), 1.0)
    assert whole["kappa low"] <= whole["kappa"] <= whole["kappa high"]


def test_a_choice_where_no_tool_does_it_is_a_disagreement_and_kinds_have_rows() -> None:
    rows = {row["kind"]: row for row in agreement_rows(judged("send", "roll", "water"))}
    assert rows["unanswerable"]["answerable"] == 0
    assert rows["lexical"]["needs met"] == 1
    assert rows["unanswerable"]["kappa"] == 0


def test_what_the_pool_lacks_counts_for_neither_side() -> None:
    one = Judged(CASES[0], ("read", "roll"), frozenset())
    assert (one.is_same, one.meets, one.is_pooled) == (True, True, False)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"id": "9", "candidates": [], "chosen": []}, "'9', is not a case"),
        ({"id": "1", "candidates": ["send"], "chosen": None}, "is not filled in"),
        ({"id": "1", "candidates": [{"id": "send"}], "chosen": ["sned"]}, "'sned' is not one of its candidates"),
        ({"id": "1", "candidates": ["send"]}, "has no 'chosen'"),
    ],
)
def test_a_sheet_that_is_filled_in_wrongly_is_told(line: dict[str, object], told: str, tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps(line) + "\n", "utf-8")
    with pytest.raises(SetupError, match=told):
        read_labels(SET, file)


def test_the_commands_write_a_sheet_and_compare_it(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.jsonl"
    command = ["datasets", "sheet", "--cases", "4", "--index", "keyword", "--out", str(sheet)]
    assert CliRunner().invoke(app, command, catch_exceptions=False).exit_code == 0
    with pytest.raises(SetupError, match="exists already"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    rows = [json.loads(line) for line in sheet.read_text("utf-8").splitlines()]
    assert all(len(row["candidates"]) <= 20 for row in rows)
    sheet.write_text("".join(json.dumps({**row, "chosen": []}) + "\n" for row in rows), "utf-8")
    done = CliRunner().invoke(app, ["datasets", "agreement", str(sheet)], catch_exceptions=False)
    assert "4 cases:" in done.stdout


def test_the_agreement_that_ships_is_read_and_names_who_annotated() -> None:
    (commons,) = load("commons")
    assert commons.folder is not None
    file = commons.folder / "agreement" / "labels.jsonl"
    report = agreement_report(commons, read_labels(commons, file), file.name)
    assert report.tables[0].rows[0]["n"] == 150
    assert all(json.loads(line)["by"] for line in file.read_text("utf-8").splitlines())
