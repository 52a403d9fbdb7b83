"""Two indexes case by case, and the notation an index is named by."""

from dataclasses import replace
from pathlib import Path

import pytest

from toolsearch import SetupError
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.ranking.compare import compare, sign_test

DEFINITIONS = (
    {"name": "send_mail", "description": "Sends a message to a person."},
    {"name": "water_plants", "description": "Gives the flowers something to drink."},
    {"name": "read_meter", "description": "Reads the electricity meter."},
)
CASES = (
    Case("1", "send_mail", (("send_mail",),), "identifier"),
    Case("2", "read.*meter$", (("read_meter",),), "pattern"),  # only a pattern finds it first
    Case("3", "^zzz", (("water_plants",),), "pattern"),
    Case("4", "sing a song", (), "unanswerable"),
)


def one(name: str, cases: tuple[Case, ...] = CASES) -> Dataset:
    return Dataset(name, DEFINITIONS, cases, Path(), f"{name}/cases")


def test_wins_losses_and_ties_add_up_and_swap_with_the_indexes() -> None:
    dev = [replace(load("commons")[0], cases=load("commons")[0].cases[:120])]
    there = compare(dev, "regex", "whoosh").tables[0].rows
    back = compare(dev, "whoosh", "regex").tables[0].rows
    for row, other in zip(there, back, strict=True):
        assert row["wins"] + row["losses"] + row["ties"] == row["n"]
        assert (row["wins"], row["losses"]) == (other["losses"], other["wins"])
        assert row["difference"] == pytest.approx(row["first"] - row["second"])
        assert row["difference"] == pytest.approx(-other["difference"])
        assert row["low"] <= row["difference"] <= row["high"]
        assert row["p"] == other["p"]


def test_the_cases_that_differ_are_shown_with_both_answers() -> None:
    pytest.importorskip("wordllama", reason="the extra 'vector' is not installed")
    cases = (Case("1", "something for thirsty roses", (("water_plants",),)), Case("2", "meter", (("read_meter",),)))
    report = compare([one("own", cases)], "keyword", "vector")
    assert report.kind == "compare"
    assert {row["measure"] for row in report.tables[0].rows} == {"R@5", "NDCG@10"}
    (shown,) = report.tables[1:]
    (row,) = shown.rows
    assert [card.label for card in report.cards] == ["R@5, difference", "NDCG@10, difference"]
    assert "n = 2; 0 wins, 1 losses." in report.cards[0].note
    assert shown.title == "Where vector does better"
    assert (row["id"], row["query"], row["needed"]) == ("1", cases[0].query, "water_plants")
    assert (row["first"], row["second"].partition(",")[0]) == ("nothing", "water_plants")


def test_requests_that_no_tool_can_meet_have_a_sentence_and_no_score() -> None:
    report = compare([one("own")], "keyword", "regex")
    assert report.tables[0].rows[0]["n"] == 3
    assert report.headline[-1].startswith("Of 1 requests that no tool can meet, keyword answers 0")
    with pytest.raises(SetupError, match="no case to compare"):
        compare([one("own", CASES[3:])], "keyword", "regex")


def test_where_no_case_differs_it_is_said() -> None:
    report = compare([one("own", CASES[:1])], "keyword", "regex")
    assert report.headline == ("R@5, own: both 1.000; no case differs.", "NDCG@10, own: both 1.000; no case differs.")


def test_several_sets_have_a_row_for_all_their_cases() -> None:
    report = compare([one("a"), one("b")], "keyword", "regex")
    assert (report.tables[0].rows[0]["dataset"], report.tables[0].rows[0]["n"]) == ("all of 2 sets", 6)


def test_an_index_is_not_compared_with_itself() -> None:
    with pytest.raises(SetupError, match="are the same index"):
        compare([one("own")], "keyword", "keyword")


def test_the_sign_test_is_exact_and_two_sided() -> None:
    assert sign_test(0, 0) == 1
    assert sign_test(5, 0) == sign_test(0, 5) == pytest.approx(2 / 32)
    assert sign_test(3, 3) == 1
    assert sign_test(8, 2) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert 0 <= sign_test(5_000, 3_000) < 1e-9


def test_an_encoder_is_named_behind_a_colon_and_its_model_behind_an_equals_sign() -> None:
    pytest.importorskip("wordllama", reason="the extra 'vector' is not installed")
    catalog = list(one("own").catalog())
    for notation in ("vector:static", "hybrid:static=wordllama"):
        index = open_backend(notation)
        index.add(catalog)
        assert index.search("flowers", 1)[0].id == "water_plants"


def test_a_model_in_a_folder_goes_by_its_last_part_in_reports(tmp_path: Path) -> None:
    (tmp_path / "small-model").mkdir()
    assert label(f"hybrid:static={tmp_path / 'small-model'}") == "hybrid:static=small-model"
    assert label("hybrid:static=potion") == "hybrid:static=potion"
    assert label("keyword") == "keyword"


@pytest.mark.parametrize(
    ("notation", "told"),
    [
        ("oracle", "there is no index 'oracle'; installed are: "),
        ("hybrid:oracle", "there is no encoder 'oracle'; installed are: "),
        ("hybrid:", "there is no encoder ''"),
        ("keyword:static", "the index 'keyword' takes no encoder"),
        ("hybrid:static=", "names no model after '='"),
        ("hybrid:static=no such folder", "no such folder"),
    ],
)
def test_a_notation_that_opens_nothing_says_why(notation: str, told: str) -> None:
    with pytest.raises(SetupError, match=told):
        open_backend(notation)
