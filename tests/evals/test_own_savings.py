"""Savings on tools of one's own, without labelled cases: what is counted, what is swept, where search pays."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolsearch import Catalog, SetupError
from toolsearch.tokens import counter
from toolsearch_evals.cli import app
from toolsearch_evals.cli.own_savings import OwnOptions, own_tools_report
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.own_play import OwnPlan, break_even_tokens, play_talks
from toolsearch_evals.savings.own_report import in_a_sentence, own_savings
from toolsearch_evals.savings.own_tokens import catalog_tokens, static_search
from toolsearch_evals.savings.scripted import SYSTEM
from toolsearch_evals.token_usage import TokenMeter

OPENAI = FORMATS["openai_chat"]
SMALL = OwnPlan(turns=(1, 3), modes=("append", "bridge"))
EVEN = {"break-even tools": 20.0, "break-even tokens": 2_000.0}
SUBJECTS = ("mail", "invoice", "ticket", "photo", "song", "flight", "recipe", "branch", "server", "parcel")
VERBS = ("send", "delete", "list", "archive")


def tools(count: int = 40, words: int = 30) -> list[dict[str, object]]:
    """Tools that their own summaries tell apart, half of them with a long schema."""
    made: list[dict[str, object]] = []
    for verb in VERBS:
        for subject in SUBJECTS:
            about = {"type": "string", "description": f"the {subject} to {verb}, " + "and more of it " * (words // 4)}
            properties = {subject: about} if verb in ("send", "list") else {}
            schema = {"type": "object", "properties": properties}
            text = f"{verb.capitalize()} one {subject} of the {subject} box."
            made.append({"name": f"{verb}_{subject}", "server": verb, "description": text, "input_schema": schema})
    return made[:count]


def meter() -> TokenMeter:
    return TokenMeter(counter())


def test_the_tokens_of_all_tools_are_those_of_a_real_request() -> None:
    catalog = Catalog(tools())
    told = catalog_tokens(catalog, OPENAI, meter())
    session = static_search(catalog).session()
    count = meter().tokens
    sent = count(OPENAI.request(OPENAI.wire.tools_for(session), SYSTEM, []))
    assert told.total == sent - count(OPENAI.request([], SYSTEM, []))
    assert [each.tokens for each in told.tools] == sorted((each.tokens for each in told.tools), reverse=True)
    assert sum(row["tools"] for row in told.by_server()) == 40
    assert abs(sum(row["share"] for row in told.by_server()) - 1) < 1e-9
    assert told.by_server()[0]["server"] in {"send", "list"}, "their schemas are long"


def test_what_is_long_about_a_tool_is_named() -> None:
    long = {"type": "string", "description": "word " * 200}
    catalog = Catalog(
        [
            {"name": "a", "description": "word " * 300},
            {"name": "b", "description": "Do.", "input_schema": {"type": "object", "properties": {"x": long, "y": {}}}},
            {"name": "c", "description": "Do.", "input_schema": {"type": "object", "properties": {"x": {}, "y": {}}}},
        ]
    )
    by_id = {each.id: each.long for each in catalog_tokens(catalog, OPENAI, meter()).tools}
    assert by_id["a"].startswith("its description (")
    assert by_id["b"].startswith("its parameter 'x' (")
    assert by_id["c"].startswith("its 2 parameters (")


@pytest.mark.parametrize("hit", [0.6, 0.8, 1.0])
def test_the_share_of_requests_met_is_the_one_asked_for_at_every_length(hit: float) -> None:
    plan = OwnPlan(turns=(1, 4), modes=("append",), hits=(hit,))
    static, searched = play_talks(Catalog(tools()), OPENAI, meter(), plan)
    for turns in (1, 2, 3, 4):
        assert searched.met(turns) == round(hit * plan.conversations * turns)
        assert static.met(turns) == plan.conversations * turns
    assert not [refused for each in searched.played for refused in each.refused]


def test_at_the_break_even_sending_all_costs_what_search_costs() -> None:
    """Played again with a catalog of about that size, the two prices are near each other."""
    catalog = Catalog(tools(words=200))
    definitions = catalog_tokens(catalog, OPENAI, meter()).total
    static, append, _ = play_talks(
        catalog, OPENAI, meter(), OwnPlan(turns=(3,), modes=("append", "bridge"), hits=(1.0,))
    )
    even = break_even_tokens(static, append, definitions, 3, SMALL)
    assert even is not None
    assert even < definitions
    assert sum(append.costs(3, SMALL)) < sum(static.costs(3, SMALL))
    few = Catalog(tools(round(40 * even / definitions), words=200))
    sent, searched, _ = play_talks(few, OPENAI, meter(), OwnPlan(turns=(3,), modes=("append", "bridge"), hits=(1.0,)))
    assert 0.75 < sum(searched.costs(3, SMALL)) / sum(sent.costs(3, SMALL)) < 1.25


def test_a_report_says_what_is_cheapest_at_which_length_and_how_it_was_counted() -> None:
    report = own_savings(Catalog(tools()), "mine", SMALL)
    rows = report.tables[0].rows
    assert [(row["turns"], row["found"]) for row in rows] == [(t, h) for t in (1, 3) for h in (0.6, 0.8, 1.0)]
    for row in rows:
        prices = {mode: row[f"{mode} price met"] for mode in ("append", "bridge")} | {
            "all sent": row["static price met"]
        }
        assert row["cheapest"] == min(prices, key=lambda mode: prices[mode])
    said = " ".join((*report.headline, *report.measured, *report.limits))
    assert "40 tools of 4 servers take" in said
    assert counter().name in said
    assert "5 conversations of 3 turns" in said
    assert "it is not measured" in said
    assert "`toolsearch eval init` drafts cases" in said


def test_a_mode_that_sends_all_of_a_small_catalog_says_so() -> None:
    report = own_savings(Catalog(tools(4)), "mine", OwnPlan(turns=(1,), modes=("auto",)))
    assert "every mode sends all of these tools" in " ".join(report.headline)
    assert report.tables[0].rows[0]["cheapest"] == "all sent"


def test_tools_without_a_description_cannot_be_asked_for() -> None:
    with pytest.raises(SetupError, match="none of the tools has a description"):
        own_savings(Catalog([{"name": "a"}, {"name": "b"}]), "mine", SMALL)


def file_of(folder: Path, count: int = 40) -> Path:
    file = folder / "mine.json"
    file.write_text(json.dumps({"tools": tools(count)}), "utf-8")
    return file


def test_the_command_takes_several_files_in_any_form(tmp_path: Path) -> None:
    more = tmp_path / "more" / "tools.jsonl"
    more.parent.mkdir()
    more.write_text('{"name": "water_plants", "description": "Water the plants."}\n', "utf-8")
    options = OwnOptions(["keyword"], ["bridge"], ["anthropic"])
    report = own_tools_report([str(file_of(tmp_path)), str(more)], options, SMALL)
    assert report.title == "What search would save on the tools of mine, more"
    assert report.tables[0].rows[0]["tools"] == 41
    assert "about " in report.headline[0], "Claude's tokenizer is not public"


def test_the_command_prints_one_page_and_writes_every_form(tmp_path: Path) -> None:
    arguments = ["savings", "--tools", str(file_of(tmp_path, 12)), "--index", "keyword", "--mode", "bridge"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    for table in ("Price of a request that is met", "What a request carries", "Tokens by server", "The dearest tools"):
        assert table in done.stdout
    assert len(done.stdout.splitlines()) < 90
    written = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert len(written["tools"]) == 12
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".json", ".csv", ".md", ".html"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--data", "x"], "--tools needs no cases"),
        (["--index", "keyword", "--index", "hybrid"], "takes one --index, not 2"),
        (["--wire", "morse"], "there is no wire 'morse'"),
        (["--mode", "osmosis"], "no delivery 'osmosis' to measure; there are: 'append', 'bridge', 'auto'"),
        (["--set", "results=2", "--set", "results=3"], "one value of each setting, not several of 'results'"),
    ],
)
def test_a_mistake_is_told(options: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=told):
        CliRunner().invoke(app, ["savings", "--tools", str(file_of(tmp_path)), *options], catch_exceptions=False)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--sizes", "5,10"], "--sizes counts with labelled cases only"),
        (["--split", "test", "--locality", "1"], "--locality, --split count with labelled cases only"),
        (["--cache", "cold,warm"], "takes one --cache, not 2"),
        (["--prices", "plain,gpt-5"], "takes one --prices, not 2"),
        (["--fail-under", "success=.5"], "leave out --run, --resume and --fail-under"),
    ],
)
def test_an_option_that_would_not_count_is_refused(options: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=told):
        CliRunner().invoke(app, ["savings", "--tools", str(file_of(tmp_path)), *options], catch_exceptions=False)


def test_turns_prices_and_cache_count_for_tools_without_cases(tmp_path: Path) -> None:
    arguments = ["savings", "--tools", str(file_of(tmp_path, 12)), "--index", "keyword", "--mode", "bridge"]
    arguments += ["--turns", "4,2", "--prices", "gpt-5", "--cache", "warm", "--conversations", "3", "--format", "json"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    told = json.loads(done.stdout)
    asked = {"turns": [2, 4], "prices": "gpt-5", "cache": "warm", "conversations": 3}
    assert {key: told["parameters"][key] for key in asked} == asked
    assert {row["turns"] for row in told["tables"][0]["rows"]} == {2, 4}
    assert any("gpt-5: " in sentence and "warm cache" in sentence for sentence in told["measured"])


def test_tools_without_a_server_leave_no_empty_brackets_in_a_title() -> None:
    """The title once ended in "()"."""
    alone = [{key: value for key, value in tool.items() if key != "server"} for tool in tools(12)]
    report = own_savings(Catalog(alone), "mine", SMALL)
    assert [table.full_title for table in report.tables] == [table.title for table in report.tables]


def test_a_saving_whose_interval_holds_nothing_is_not_called_sure() -> None:
    said = in_a_sentence({"turns": 10, "found": 0.8, "saving": -0.1, "saving ±": 0.3, "cheapest": "all sent"} | EVEN)
    assert "10% more" in said
    assert "(−40% to 20% saved: too near to call)" in said
    assert "too near" not in in_a_sentence(
        {"turns": 10, "found": 0.8, "saving": 0.4, "saving ±": 0.3, "cheapest": "x"} | EVEN
    )
