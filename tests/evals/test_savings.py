"""Savings: whole conversations on the real session, from many sides."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from toolsearch import SetupError, ToolSearch
from toolsearch.tokens import counter
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.reports.forms import as_json
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.scripted import PlayedConversation, answer, content_words, play
from toolsearch_evals.savings.spring import spring_report
from toolsearch_evals.savings.sweep import SweepPlan, SweepResult, conversations_of, sweep
from toolsearch_evals.token_usage import TokenMeter, compact

SMALL = SweepPlan(
    indexes=("keyword",),
    modes=("append", "bridge"),
    wires=("openai_chat", "anthropic"),
    sizes=(5, 40, 300),
    seeds=1,
    conversations=3,
    turns=(6,),
)


@pytest.fixture(scope="module")
def commons() -> Dataset:
    return load("commons")[0]


@pytest.fixture(scope="module")
def swept(commons: Dataset) -> SweepResult:
    return sweep(commons, commons.cases, SMALL)


class Recorded(TokenMeter):
    """Counts, and keeps the requests as text."""

    def __init__(self) -> None:
        super().__init__(counter())
        self.requests: list[str] = []

    def pieces(self, request: Any, write: Any = compact) -> list[str]:
        messages = request["input"] if "input" in request else request["messages"][1:]
        if messages:  # else it is only the start of one
            self.requests.append(json.dumps(request))
        return super().pieces(request, write)


def played(
    commons: Dataset, cases: list[Case], wire: str = "openai_chat", **options: Any
) -> tuple[PlayedConversation, list[str]]:
    meter = Recorded()
    one_by_one = options.pop("one_by_one", False)
    search = ToolSearch(commons.catalog(), "keyword", run=answer, **{"mode": "append", **options})
    return play(search, cases, FORMATS[wire], meter, one_by_one=one_by_one), meter.requests


REFUND = Case("r", "refund a payment", (("stripe/create_refund",),))
NOTHING = Case("n", "fold my laundry", kind="unanswerable")
TWO = Case(
    "t",
    "look up and tell",
    (("weather/get_forecast",), ("slack/slack_post_message",)),
    steps=("weather forecast", "post message to slack channel"),
)


def test_totals_are_of_whole_conversations_and_small_catalogs_may_lose(swept: SweepResult) -> None:
    """E07"""
    for wire in SMALL.wires:
        small, middle, large = [r for r in swept.rows if (r["wire"], r["mode"]) == (wire, "append")]
        assert small["saving"] < 0 < middle["saving"] < large["saving"]
        assert small["cost saving"] < 0 < large["cost saving"]
        for row in (small, middle, large):
            assert row["tokens"] == pytest.approx(row["uncached"] + row["cached"] + row["output"])
            assert row["requests"] > row["static requests"] > 6
    for even in swept.break_evens:
        assert even.tokens is not None
        assert 5 < even.tokens < 50
        assert even.cost is not None
        assert even.tokens < even.cost
        low, high = even.by_tokens.low, even.by_tokens.high
        assert low is not None
        assert high is not None
        assert low <= even.tokens <= high
        assert 500 < (even.tokens_definitions.measured or 0) < 6_000


def test_a_met_request_bears_the_price_of_those_that_were_not_met(swept: SweepResult) -> None:
    for row in swept.rows:
        met, of = round((row["success"] or 0) * row["requests to meet"]), row["requests to meet"]
        assert row["cost a met request"] == pytest.approx(row["cost"] * row["conversations"] / met)
        assert row["static cost a met request"] == pytest.approx(row["static cost"] * row["conversations"] / of)
        low, high = row["cost a met request low"] or 0, row["cost a met request high"] or 0
        assert low < (row["cost a met request"] or 0) < high


def test_success_is_told_by_wording_with_its_numbers_and_intervals(commons: Dataset, swept: SweepResult) -> None:
    for row in swept.rows:
        assert row["requests to meet"] == row["agent requests"] + row["user requests"]
        for wording in ("agent", "user"):
            share, low, high = (row[f"success, {wording} wording{end}"] for end in ("", " low", " high"))  # type: ignore[literal-required]
            assert 0 <= low <= share <= high <= 1
    tables = savings_report(swept, SMALL, commons, "all").tables
    (table,) = [table for table in tables if table.title == "Right tools called, by wording"]
    assert [column.head for column in table.columns[-8:]] == [
        "agent's requests", "met", "from", "to", "user's requests", "met", "from", "to",
    ]  # fmt: skip


def test_a_sweep_in_which_nothing_is_met_has_no_price_of_a_met_request() -> None:
    definitions = ({"name": "open_ticket", "server": "desk"}, {"name": "close_ticket", "server": "desk"})
    nothing = Dataset("desk", definitions, (Case("1", "zzyzx qwrtp", (("desk/open_ticket",),)),))
    plan = replace(SMALL, sizes=(2,), conversations=1, turns=(1,))
    found = sweep(nothing, nothing.cases, plan)
    assert {row["cost a met request"] for row in found.rows} == {None}
    assert {even.met for even in found.break_evens} == {None}
    report = savings_report(found, plan, nothing, "all")
    assert "no request was met, so a met request has no price" in report.headline[0]


def test_settings_of_the_product_are_played_as_arms(commons: Dataset) -> None:
    plan = replace(
        SMALL,
        sizes=(100,),  # in a small catalog a search that loads less names more
        conversations=1,
        modes=("append",),
        wires=("openai_chat",),
        settings=(("results", "1"), ("results", "5"), ("not_loaded", "refuse")),
    )
    found = sweep(commons, commons.cases, plan)
    assert [row["settings"] for row in found.rows] == ["results=1", "results=5"]
    assert found.rows[0]["tokens"] < found.rows[1]["tokens"]
    report = savings_report(found, plan, commons, "all")
    assert report.parameters["settings"] == ["results=1", "results=5", "not_loaded=refuse"]
    assert "settings" in [column.head for column in report.tables[0].columns]
    assert [line.name for line in report.charts[0].lines] == ["results=1", "results=5"]
    assert conversations_of(plan, 673) == 3
    assert found.rows[0]["different cases"] == 6


def test_search_results_and_the_search_tool_itself_are_in_the_requests(commons: Dataset) -> None:
    """E07"""
    talk, requests = played(commons, [REFUND, NOTHING])
    assert len(requests) == len(talk.requests) == 3 + 2
    assert all('"search_tools"' in request for request in requests)
    assert all("More tools exist than are listed" in request for request in requests)
    assert "create_refund" not in requests[0]
    assert "Loaded 2 tools" in requests[1]
    assert '"name": "create_refund"' in requests[1]
    assert talk.usage.cached > 0
    assert [turn.served for turn in talk.turns] == [True, False]
    assert talk.searches == 2


def test_a_tool_of_an_earlier_turn_is_called_without_a_search(commons: Dataset) -> None:
    talk, requests = played(commons, [REFUND, REFUND])
    assert [turn.searches for turn in talk.turns] == [1, 0]
    assert [len(turn.requests) for turn in talk.turns] == [3, 2]
    assert len(requests) == 5


def test_a_miss_costs_two_more_searches_and_then_the_turn_has_failed(commons: Dataset) -> None:
    case = Case("m", "please zzyzx the qwrtp", (("stripe/create_refund",),))
    talk, requests = played(commons, [case])
    assert (talk.turns[0].served, talk.turns[0].searches, len(talk.turns[0].requests)) == (False, 3, 4)
    assert r"\"limit\": 20" in requests[2]
    assert r"zzyzx qwrtp" in requests[3]


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_a_tool_that_comes_with_the_message_is_called_without_a_search(commons: Dataset, mode: str) -> None:
    talk, requests = played(commons, [REFUND, NOTHING], mode=mode, preselect=1)
    assert [(turn.served, turn.searches, len(turn.requests)) for turn in talk.turns] == [(True, 0, 2), (False, 1, 2)]
    assert "refund a payment\\n\\n[Loaded for this message" in requests[0]


def test_several_needed_tools_are_searched_in_one_call_and_called_as_asked(commons: Dataset) -> None:
    together, _ = played(commons, [TWO])
    apart, _ = played(commons, [TWO], one_by_one=True)
    assert together.turns[0].served
    assert apart.turns[0].served
    assert (together.searches, len(together.requests)) == (1, 3)
    assert (apart.searches, len(apart.requests)) == (1, 4)


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("mode", ["append", "bridge", "static"])
def test_every_mode_and_wire_serves_what_is_found(commons: Dataset, wire: str, mode: str) -> None:
    talk, requests = played(commons, [REFUND, NOTHING, TWO], wire, mode=mode, max_tools=800)
    assert [turn.served for turn in talk.turns] == [True, False, True]
    assert talk.refused == []
    assert ("search_tools" in requests[0]) == (mode != "static")
    assert talk.searches == (0 if mode == "static" else 3)


def test_no_call_of_the_sweep_is_refused(swept: SweepResult) -> None:
    assert swept.refused == []
    assert swept.quarantined == []


def test_the_same_seed_gives_the_same_report(commons: Dataset, swept: SweepResult) -> None:
    def told(of: SweepResult) -> str:
        return as_json(replace(savings_report(of, SMALL, commons, "all"), when="now"))

    assert told(sweep(commons, commons.cases, SMALL)) == told(swept)


@pytest.mark.parametrize(
    ("tokenizer", "told"),
    [
        ("o200k_base", r": [\d,]+ instead of [\d,]+, by o200k_base\."),
        ("characters / 4 (estimate)", r": about [\d,]+ instead of about [\d,]+, by characters / 4 \(estimate\)\."),
    ],
)
def test_the_sentence_on_tokens_names_the_tokenizer_and_calls_an_estimate_one(
    commons: Dataset, swept: SweepResult, tokenizer: str, told: str
) -> None:
    by_it = replace(swept, tokenizers=dict.fromkeys(swept.tokenizers, tokenizer))
    assert re.search(told, savings_report(by_it, SMALL, commons, "all").headline[-3])


def test_the_bar_counts_as_many_conversations_as_are_played(commons: Dataset) -> None:
    plan = replace(SMALL, sizes=(5, 20), conversations=2, turns=(1,))
    done: list[str] = []
    sweep(commons, commons.cases, plan, done.append)
    assert len(done) == conversations_of(plan, len(commons.definitions))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sizes": (5, 100_000)}, "a catalog of 100000 tools cannot be made: the data set has"),
        ({"wires": ("morse",)}, "no wire 'morse'"),
        ({"indexes": ("oracle",)}, "no index 'oracle'"),
        ({"turns": (5_000,)}, "5000 turns cannot be made"),
        ({"settings": (("result", "2"),)}, "there is no setting 'result'; did you mean 'results'"),
        ({"settings": (("results", "many"),)}, "the setting 'results' cannot be 'many'"),
        ({"settings": (("mode", "bridge"),)}, "pass --mode instead of --set mode="),
        ({"modes": ("lazy",)}, "there is no delivery 'lazy' to measure; there are: 'append', 'bridge', 'auto'"),
        ({"caches": ("hot",)}, "a cache cannot be 'hot' at first; it is 'cold' or 'warm'"),
        ({"prices": ("gpt5",)}, "there are no prices 'gpt5'; did you mean 'gpt-5'"),
        ({"static_success": (0.0,)}, "it is above 0, up to 1"),
        ({"turns": (3, 500)}, "500 turns need a catalog of 750 tools: pass a larger size"),
    ],
)
def test_a_plan_that_cannot_be_played_says_why(commons: Dataset, change: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        sweep(commons, commons.cases, replace(SMALL, **change))


def test_what_is_left_of_a_query_are_its_words_of_content() -> None:
    assert content_words("Could you please refund the last payment?") == "refund last payment"
    assert content_words("who are you") == "who are you"


def test_the_published_setting_is_played_beside_its_figures(commons: Dataset) -> None:
    report = spring_report(commons, replace(SMALL, modes=("append",)))
    assert {row["tools"] for row in report.tables[0].rows} == {28}
    assert {row["wire"] for row in report.tables[0].rows} == {"openai_chat", "anthropic"}
    assert all(0.2 < row["saving"] < 0.8 for row in report.tables[0].rows)
    assert [round(row["saving"], 2) for row in report.tables[1].rows] == [0.6, 0.34, 0.64, 0.57, 0.47, 0.63]
