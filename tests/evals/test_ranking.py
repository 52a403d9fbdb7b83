"""The ranking report: buckets, failures, and the request that no tool can meet."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, Scored, SetupError, Tool, ToolIndex
from toolsearch_evals.backends import open_backend
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.ranking.answers import AnswerReader
from toolsearch_evals.ranking.measures import JudgedCase
from toolsearch_evals.ranking.misses import miss_rows, misses_table
from toolsearch_evals.ranking.rank import buckets, in_split, judge, ranking
from toolsearch_evals.reports.forms import FORMS
from toolsearch_evals.reports.report import Report


class Fixed:
    """An index that gives every query the same answer, or fails."""

    name = "fixed"

    def __init__(self, *ids: str) -> None:
        self.ids = ids

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> list[Scored]:
        if "boom" in query:
            raise RuntimeError("the backend is down")
        return [Scored(i, 1.0 - at / 10) for at, i in enumerate(self.ids)]


CATALOG = Catalog([{"name": "open_ticket", "description": "Opens a ticket."}, {"name": "close_ticket"}])


def test_a_ranker_that_always_answers_is_seen_on_unanswerable_requests() -> None:
    """F08"""
    definitions = ({"name": "open_ticket", "description": "Opens a ticket, resets nothing."},)
    cases = (
        Case("1", "reset my SSO"),
        Case("2", "what is the weather on Mars"),
        Case("3", "open ticket", (("open_ticket",),)),
    )
    report = ranking([Dataset("tickets", definitions, cases, Path(), "tickets/cases")], ["keyword"])
    row = report.tables[0].rows[0]
    assert row["n_unanswerable"] == 2
    assert row["unanswerable answered"] == 0.5
    assert "50% of the unanswerable requests" in report.headline[0]


def test_a_broken_backend_is_an_error_and_not_an_empty_answer() -> None:
    """F03, F11"""
    index: ToolIndex = Fixed("open_ticket")
    found = judge(CATALOG, index, Case("1", "boom", (("open_ticket",),)))
    assert found.error == "RuntimeError: the backend is down"
    assert judge(CATALOG, index, Case("2", "please open one", (("open_ticket",),))).error is None


def test_the_misses_are_listed_case_by_case_with_what_was_found_instead() -> None:
    definitions = tuple({"name": name, "description": "Opens a ticket."} for name in ("a", "b", "c"))
    cases = (
        Case("hit", "open a ticket", (("a",),)),
        Case("miss", "find it", (("a",), ("b", "c")), kind="multi", wording="user"),
        Case("none", "nothing fits"),
    )
    judged = [
        JudgedCase(cases[0], ("a",)),
        JudgedCase(cases[1], ("a", "v", "w", "x", "y", "z", "c"), shown=("a", "c")),
        JudgedCase(cases[2], ("a",)),
        JudgedCase(replace(cases[1], id="down"), error="RuntimeError: down"),
    ]
    failed, late = miss_rows({"dataset": "s", "index": "i"}, judged)
    assert failed["case"] == "down"
    assert failed["instead"] == "RuntimeError: down"
    assert late == {
        "dataset": "s", "index": "i", "case": "miss", "kind": "multi", "wording": "user", "language": "en",
        "query": "find it", "missed": "b or c", "instead": "v, w, x", "place": 7, "named": "yes",
    }  # fmt: skip
    report = ranking([Dataset("tools", definitions, cases, Path(), "tools/cases")], ["keyword"])
    listed = {table.title: table for table in report.tables}["Misses, case by case"]
    assert [row["case"] for row in listed.rows] == ["miss"]
    assert listed.of_cases
    assert "miss" in FORMS["html"](report)
    assert report.title == "How well the indexes rank: tools"


def test_a_table_of_cases_is_cut_in_markdown_and_whole_in_json() -> None:
    rows = [{"dataset": "s", "case": f"case-{at}."} for at in range(50)]
    report = Report("k", "t", (), {}, (misses_table(rows),), (), ())
    assert FORMS["md"](report).count("case-") == 20
    assert "30 more are in the JSON form." in FORMS["md"](report)
    assert FORMS["json"](report).count("case-") == 50


def test_the_cards_show_the_measures_of_one_index_or_one_measure_of_several() -> None:
    definitions = ({"name": "open_ticket", "description": "Opens a ticket."},)
    cases = (Case("1", "open a ticket", (("open_ticket",),)), Case("2", "fly to Mars"))
    tickets = [Dataset("tickets", definitions, cases, Path(), "tickets/cases")]
    one, two = ranking(tickets, ["keyword"]), ranking(tickets, ["keyword", "regex"])
    row = one.tables[0].rows[0]
    assert [card.label for card in one.cards] == ["R@5, keyword, tickets", "hit@5", "R@shown", "False answers"]
    assert one.cards[0].value == f"{row['R@5']:.3f}"
    assert f"n = {row['n_scored']}." in one.cards[0].note
    assert [card.label for card in two.cards] == ["R@5, keyword, tickets", "R@5, regex, tickets"]


def test_user_and_agent_wording_and_every_kind_have_rows_of_their_own() -> None:
    """F11"""
    report = ranking(load("commons"), ["keyword"], "dev")
    rows = {row["cases"]: row for row in report.tables[0].rows}
    assert {"all", "user wording", "agent wording", "typo", "paraphrase", "unanswerable"} <= rows.keys()
    assert rows["unanswerable"]["n_scored"] == 0
    assert rows["unanswerable"]["R@5"] is None
    assert rows["identifier"]["R@5"] == 1
    assert rows["all"]["n"] == rows["user wording"]["n"] + rows["agent wording"]["n"]
    assert 0.5 < rows["all"]["R@1"] <= rows["all"]["R@5"] <= rows["all"]["R@10"] <= 1


def test_single_tool_requests_have_a_bucket_and_one_for_each_language() -> None:
    gold = (("open_ticket",),)
    cases = (
        Case("1", "open ticket", gold),
        Case("2", "open ticket", (*gold, ("close_ticket",))),
        Case("3", "Karte aufmachen", gold, language="de"),
        Case("4", "sing"),
    )
    definitions = ({"name": "open_ticket"}, {"name": "close_ticket"})
    report = ranking([Dataset("tickets", definitions, cases, Path(), "tickets/cases")], ["keyword"])
    rows = {row["cases"]: row for row in report.tables[0].rows}
    assert list(rows) == ["all", "single", "de", "en", "single, de", "single, en"]
    assert (rows["single"]["n"], rows["single"]["hit@5"]) == (2, 0.5)
    assert (rows["single, en"]["hit@5"], rows["single, de"]["hit@5"]) == (1, 0)


def test_languages_of_a_few_cases_are_one_bucket() -> None:
    languages = ["en"] * 12 + ["de"] * 10 + ["fr", "ja"]
    cases = [Case(str(at), "open ticket", (("open_ticket",),), language=each) for at, each in enumerate(languages)]
    found = {name: len(of) for name, of in buckets(cases, lambda case: case)}
    assert found == {
        "all": 24, "de": 10, "en": 12, "others": 2,
        "single, de": 10, "single, en": 12, "single, others": 2,
    }  # fmt: skip


def test_recall_and_hits_stand_with_their_intervals_in_every_form() -> None:
    report = ranking(load("commons"), ["keyword"], "dev")
    row = report.tables[0].rows[0]
    assert row["R@5 low"] < row["R@5"] < row["R@5 high"]
    assert row["R@5 ±"] == pytest.approx((row["R@5 high"] - row["R@5 low"]) / 2)
    assert report == replace(ranking(load("commons"), ["keyword"], "dev"), when=report.when, tables=report.tables)
    told = f"{row['R@5']:.3f} ±{row['R@5 ±']:.3f}".replace("0.", ".")
    for form in ("md", "html"):
        assert told in FORMS[form](report)
    assert {"R@5 low", "hit@5 high"} <= {*csv.reader(FORMS["csv"](report).splitlines()).__next__()}
    assert f"±{row['R@5 ±']:.3f} of the needed tools" in report.headline[0]
    unanswerable = next(row for row in report.tables[0].rows if row["cases"] == "unanswerable")
    assert unanswerable["R@5 ±"] is None


def test_the_mean_over_sets_is_surer_than_each_set() -> None:
    commons = load("commons")[0]
    twice = [commons, replace(commons, name="again")]
    mean, first, *_ = (r for r in ranking(twice, ["keyword"], "dev").tables[0].rows if r["cases"] == "all")
    assert mean["R@5 ±"] == pytest.approx(first["R@5 ±"] / 2**0.5)


def test_an_index_with_an_encoder_is_ranked_by_notation() -> None:
    pytest.importorskip("wordllama", reason="the extra 'vector' is not installed")
    few = replace(load("commons")[0], cases=load("commons")[0].cases[:6])
    report = ranking([few], ["hybrid:static=wordllama"])
    assert report.tables[0].rows[0]["index"] == "hybrid:static=wordllama"


def test_searching_step_by_step_is_reported_beside_the_whole_request() -> None:
    report = ranking(load("commons"), ["keyword"], "test")
    whole, steps = report.tables[1].rows
    assert whole["n"] == steps["n"] > 0
    assert steps["coverage"] > whole["coverage"]


def test_several_sets_count_alike_in_the_macro_mean() -> None:
    def one(name: str, gold: str, times: int) -> Dataset:
        cases = tuple(Case(str(at), "open ticket", ((gold,),)) for at in range(times))
        return Dataset(name, ({"name": "open_ticket"}, {"name": "fly"}), cases, Path(), f"{name}/cases")

    report = ranking([one("a", "open_ticket", 1), one("b", "fly", 9)], ["keyword"])
    assert report.tables[0].rows[0]["dataset"] == "mean of 2 sets"
    assert report.tables[0].rows[0]["R@5"] == 0.5


def right(of: int, wrong: int, kind: str = "", first: int = 0) -> tuple[Case, ...]:
    needs = [(("open_ticket",),)] * (of - wrong) + [(("fly",),)] * wrong
    return tuple(Case(str(first + at), "open ticket", gold, kind) for at, gold in enumerate(needs))


TWO_TOOLS = ({"name": "open_ticket"}, {"name": "fly"})


def row_of(report: Report, **wanted: str) -> Any:
    (row,) = [row for row in report.tables[0].rows if wanted.items() <= row.items()]
    return row


def test_of_several_sets_both_means_are_told_each_with_its_number_of_cases_and_interval() -> None:
    """K23: 36 of 40 and 1 of 3."""
    sets = [Dataset("first", TWO_TOOLS, right(40, 4)), Dataset("second", TWO_TOOLS, right(3, 2))]
    report = ranking(sets, ["keyword", "regex"])
    for index in ("keyword", "regex"):
        macro = row_of(report, dataset="mean of 2 sets", index=index)
        micro = row_of(report, dataset="all of 2 sets", index=index)
        assert (macro["mean"], round(macro["R@5"], 3), macro["n"]) == ("macro", 0.617, 43)
        assert (micro["mean"], round(micro["R@5"], 3), micro["n"]) == ("micro", 0.860, 43)
        for row in (macro, micro):
            assert 0 <= row["R@5 low"] < row["R@5"] < row["R@5 high"] <= 1
            assert any(
                f"{row['R@5']:.3f} ±{row['R@5 ±']:.3f}" in line and "43 cases" in line for line in report.headline
            )
    assert [line.split(": ")[0] for line in report.headline] == [
        f"{name} of 2 sets, {index}, {mean} mean"
        for name, mean in (("mean", "macro"), ("all", "micro"))
        for index in ("keyword", "regex")
    ]
    for form in FORMS.values():
        told = form(report)
        assert "mean of 2 sets" in told
        assert "all of 2 sets" in told


def test_of_one_set_the_mean_of_its_kinds_stands_beside_that_of_its_cases() -> None:
    """K23: the same cases as kinds of one set."""
    unanswerable = Case("u", "open ticket", (), "unanswerable")
    cases = (*right(40, 4, "first"), *right(3, 2, "second", 40), unanswerable)
    report = ranking([Dataset("one", TWO_TOOLS, cases)], ["keyword"])
    micro, macro = row_of(report, cases="all"), row_of(report, cases="mean of 2 kinds")
    assert (micro["mean"], round(micro["R@5"], 3), micro["n_scored"]) == ("micro", 0.860, 43)
    assert (macro["mean"], round(macro["R@5"], 3), macro["n_scored"]) == ("macro", 0.617, 43)
    assert macro["R@5 low"] < macro["R@5"] < macro["R@5 high"]
    assert "one, keyword, micro mean: 0.860" in report.headline[0]
    assert "one, mean of 2 kinds, keyword, macro mean: 0.617" in report.headline[1]


def test_a_set_of_one_kind_has_one_mean() -> None:
    report = ranking([Dataset("one", TWO_TOOLS, right(9, 1, "only"))], ["keyword"])
    assert {row["mean"] for row in report.tables[0].rows} == {"micro"}
    assert len(report.headline) == 1


def test_a_need_that_the_labels_repeat_counts_once() -> None:
    """K22: in the buckets too, where the case needs a single tool."""
    cases = [Case("1", "open ticket", (("open_ticket",),) * 2), Case("2", "fly", (("fly",), ("close_ticket",)))]
    assert "single" in dict(buckets(cases, lambda case: case))
    assert cases[0].repeated == (("open_ticket",),)


def test_a_split_holds_its_cases_and_those_without_one() -> None:
    cases = [Case("1", "a", split="dev"), Case("2", "b", split="test"), Case("3", "c"), Case("4", "d", split="train")]
    assert [case.id for case in in_split(cases, "dev")] == ["1", "3"]
    assert [case.id for case in in_split(cases, "train")] == ["3", "4"]
    assert len(in_split(cases, "all")) == 4
    with pytest.raises(SetupError, match="no split 'holdout'"):
        in_split(cases, "holdout")


def test_what_an_answer_shows_and_costs_stands_beside_the_recall() -> None:
    report = ranking(load("commons"), ["keyword"], "dev")
    rows = {row["cases"]: row for row in report.tables[0].rows}
    row = rows["all"]
    assert row["R@5"] < row["R@15"]
    assert 0.5 < row["R@shown"] <= 1
    assert 100 < row["tokens a search"] < 5_000
    assert f"{row['R@shown']:.3f} among those that a search shows" in report.headline[0]
    assert rows["unanswerable"]["R@shown"] is None
    kinds = rows["mean of 6 kinds"]
    assert row["R@shown"] < kinds["R@shown"] <= 1
    heads = [column.head for column in report.tables[0].columns]
    assert {"R@15", "R@ shown", "tokens a search"} <= {*heads}


def test_an_answer_is_read_as_a_model_reads_it_with_the_definitions_that_it_adds() -> None:
    wordy = {"name": "open_ticket", "description": "Opens a ticket. " + "It does so with care. " * 100}
    reader = AnswerReader(Catalog([wordy, {"name": "fly"}]), open_backend("keyword"))
    first, again = reader.read("open a ticket"), reader.read("open a ticket")
    assert first is not None
    assert first == again, "each search is the first one of a conversation"
    assert first.shown == ("open_ticket", "fly"), "in a small catalog all others are named"
    assert 300 < first.tokens < 400, "the description is sent shortened"
    nothing = reader.read("zzyzx qwrtp")
    assert nothing is not None
    assert set(nothing.shown) == {"open_ticket", "fly"}
    assert nothing.tokens < 100
    assert AnswerReader(CATALOG, Fixed("open_ticket")).read("boom") is None


def test_a_search_that_failed_shows_nothing_and_costs_nothing() -> None:
    cases = (Case("1", "boom", (("open_ticket",),)), Case("2", "open ticket", (("open_ticket",),)))
    index = Fixed("open_ticket")
    judged = [judge(CATALOG, index, case, AnswerReader(CATALOG, index)) for case in cases]
    assert [each.shown for each in judged] == [(), ("open_ticket",)]
    assert judged[0].tokens is None
