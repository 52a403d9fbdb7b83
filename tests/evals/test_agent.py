"""`toolsearch eval agent`: the real SDKs against a provider on this machine, one that fails in all the usual ways."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from toolsearch import SetupError
from toolsearch.layers import Price, retry
from toolsearch.support.json_types import JsonObject
from toolsearch.testing import Failure
from toolsearch.tokens import counter
from toolsearch_evals.agent.agent_run import agent_manifest, facts_of, report_of, score_agent
from toolsearch_evals.agent.endpoint import Endpoint, WireName
from toolsearch_evals.agent.evaluation import AgentPlan, Budget, Outcome, Unkept, evaluate, read_budget
from toolsearch_evals.agent.loopback import ScriptedProvider
from toolsearch_evals.agent.play import Arm, Asked
from toolsearch_evals.agent.probe import Adapter, ProbeResult, probe
from toolsearch_evals.agent.report import agent_report
from toolsearch_evals.agent.rows import against_static, rows_of, token_check
from toolsearch_evals.cli import app
from toolsearch_evals.cli.agent_options import read_arms, read_options, read_prices
from toolsearch_evals.reports.forms import as_json, write
from toolsearch_evals.runs.folder import Run
from toolsearch_evals.runs.reading import read_run
from toolsearch_evals.runs.schemas import schema
from toolsearch_evals.token_usage import TokenMeter

TOKENS = TokenMeter(counter())
SOME = ("rooms-3", "tracker-1", "both-1", "stock-7")
ARMS = (Arm("static"), Arm("append"), Arm("bridge"))
SECRET = "sk-not-to-be-seen-0123456789"
every_wire = pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])

Fault = Callable[[int, JsonObject], Failure | None]


class FailingProvider(ScriptedProvider):
    """Fails as `fault` says, which gets a request's number; breaks the streams of the `broken` numbers off."""

    def __init__(
        self, fault: Fault = lambda number, body: None, broken: Sequence[int] = (), keep: int = 2, **options: Any
    ) -> None:
        super().__init__(**options)
        self.fault, self.broken, self.keep = fault, broken, keep

    def refusal(self, number: int, body: JsonObject) -> Failure | None:
        return self.fault(number, body)

    def stream(self, number: int, events: Iterator[str]) -> Iterator[str]:
        yield from islice(events, self.keep if number in self.broken else None)


def at(provider: ScriptedProvider, wire: WireName = "openai_chat", **options: Any) -> Endpoint:
    """An endpoint that is this provider."""
    return Endpoint("scripted", wire, provider.url, **options)


def asked(endpoint: Endpoint, adapter: Adapter = "tools", **more: Any) -> Asked:
    """Asked twice at most, without waiting."""
    return Asked(endpoint, endpoint.client(), TOKENS, adapter, retry=retry(2, 0.0), **more)


def probed(endpoint: Endpoint) -> ProbeResult:
    return probe(endpoint, endpoint.client(), TOKENS)


def plan_of(*tasks: str, arms: tuple[Arm, ...] = (Arm("append"),), **more: Any) -> AgentPlan:
    return AgentPlan(arms=arms, sizes=(20,), tasks=tasks or SOME, **more)


def unmet(outcome: Outcome) -> list[str]:
    return [f"{each['case']} {each['arm']}: {each['problems']}" for each in outcome.scores if not each["success"]]


# -- what is played ------------------------------------------------------------------------------------------------


@every_wire
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_model_that_knows_the_solutions_meets_every_task(wire: WireName, stream: bool) -> None:
    with ScriptedProvider() as provider:
        outcome = evaluate(plan_of(arms=ARMS), asked(at(provider, wire, stream=stream)), Unkept())
    assert (unmet(outcome), outcome.missing, outcome.stopped) == ([], [], "")
    assert len(outcome.scores) == len(SOME) * len(ARMS)
    assert all(each["right tools"] and not each["wrong calls"] for each in outcome.scores)
    assert all((each["searches"] > 0) is (each["arm"] != "static") for each in outcome.scores)
    assert all((each["first seconds"] is not None) is stream for each in outcome.scores)
    assert len(provider.requests) == sum(each["requests"] for each in outcome.scores)


@every_wire
def test_what_is_billed_stands_beside_what_is_counted(wire: WireName) -> None:
    with ScriptedProvider() as provider:
        outcome = evaluate(plan_of(arms=ARMS[:2]), asked(at(provider, wire)), Unkept())
    for row in token_check(outcome.scores):
        assert row["billed"] == row["counted"] > 0
        assert row["difference"] == 0
        assert row["billed requests"] == row["requests"]
    static, append = rows_of(outcome.scores)
    assert static["input"] > append["input"] > 0
    assert static["cached share"] > 0.3  # the same tools at the front of each request


def test_a_setting_reaches_the_sessions() -> None:
    arms = read_arms(["static", "append"], "keyword", ["results=1", "results=3", "named=0"])
    assert [arm.label for arm in arms] == ["static", "append (results=1)", "append (results=3)"]
    with ScriptedProvider() as provider:
        outcome = evaluate(plan_of("rooms-1", arms=arms), asked(at(provider)), Unkept())
    static, one, three = outcome.scores
    assert static["new"] != one["new"] < three["new"]


def test_repeats_and_sizes_are_units_of_their_own() -> None:
    with ScriptedProvider() as provider:
        plan = AgentPlan(arms=ARMS[:1], sizes=(20, 60), tasks=("rooms-1",), repeats=2, concurrency=3)
        outcome = evaluate(plan, asked(at(provider)), Unkept())
    assert [(each["tools"], each["repeat"]) for each in outcome.scores] == [(20, 0), (60, 0), (20, 1), (60, 1)]
    assert [(row["n"], row["distinct tasks"]) for row in rows_of(outcome.scores)] == [(2, 1), (2, 1)]


@pytest.mark.parametrize(
    "plan",
    [plan_of("no-such"), AgentPlan(sizes=(3,)), AgentPlan(arms=(Arm("append", settings={"resluts": "2"}),))],
    ids=["task", "size", "setting"],
)
def test_a_mistake_in_the_plan_is_said_before_anything_is_asked(plan: AgentPlan) -> None:
    with ScriptedProvider() as provider:
        with pytest.raises(SetupError):
            evaluate(plan, asked(at(provider)), Unkept())
        assert provider.requests == []


# -- the probe -----------------------------------------------------------------------------------------------------


@every_wire
def test_an_endpoint_that_reads_tools_is_known_by_its_call(wire: WireName) -> None:
    with ScriptedProvider() as provider:
        found = probed(at(provider, wire))
    assert (found.verdict, found.adapter, found.sentence) == ("reads tools", "tools", "This endpoint reads tools.")
    assert (found.billed_without, found.billed_with) == (found.counted_without, found.counted_with)
    assert len(provider.requests) == 2


@every_wire
def test_an_endpoint_that_drops_tools_is_found_out_and_gets_them_as_text(wire: WireName) -> None:
    with ScriptedProvider(drops_tools=True) as provider:
        endpoint = at(provider, wire)
        found = probed(endpoint)
        assert found.verdict == "drops tools"
        assert found.sentence.startswith("This endpoint drops tools: with a tool of about")
        assert found.billed_with == found.billed_without
        assert found.adapter == ("schema" if wire == "openai_chat" else "json")
        outcome = evaluate(plan_of(arms=ARMS), asked(endpoint, found.adapter), Unkept())
    assert unmet(outcome) == []
    assert all("tools" not in body for body in provider.requests[4:])


def test_an_endpoint_without_schemas_gets_tools_as_text_alone() -> None:
    def fault(number: int, body: JsonObject) -> Failure | None:
        return Failure(400, "no such option") if "response_format" in body else None

    with FailingProvider(fault, drops_tools=True) as provider:
        found = probed(at(provider))
        assert (found.verdict, found.adapter) == ("drops tools", "json")
        assert unmet(evaluate(plan_of("rooms-3"), asked(at(provider), "json"), Unkept())) == []


def test_an_endpoint_that_refuses_tools_gets_them_as_text() -> None:
    def fault(number: int, body: JsonObject) -> Failure | None:
        return Failure(400, "scripted does not support tools") if "tools" in body else None

    with FailingProvider(fault) as provider:
        found = probed(at(provider))
    assert (found.verdict, found.adapter) == ("refuses tools", "schema")
    assert "does not support tools" in found.sentence


class LazyProvider(ScriptedProvider):
    """Reads the tools, and calls none; with `silent` it does not say what it read."""

    silent = False

    def changed(self, reply: JsonObject) -> JsonObject:
        choice = {**reply["choices"][0], "message": {"role": "assistant", "content": "4711, I see."}}
        return {k: v for k, v in {**reply, "choices": [choice]}.items() if not (self.silent and k == "usage")}


def test_a_model_that_reads_tools_and_calls_none_is_told_apart_by_its_bill() -> None:
    with LazyProvider() as provider:
        found = probed(at(provider, stream=False))
        assert (found.verdict, found.adapter) == ("ignores tools", "tools")
        provider.silent = True
        found = probed(at(provider, stream=False))
        assert (found.verdict, found.adapter, found.billed_with) == ("unknown", "json", None)


def test_an_endpoint_that_bills_nothing_gets_a_dash_and_our_count() -> None:
    with LazyProvider() as provider:
        provider.silent = True
        outcome = evaluate(plan_of("rooms-1"), asked(at(provider, stream=False)), Unkept())
    (row,), (checked,) = rows_of(outcome.scores), token_check(outcome.scores)
    assert (row["input"], row["dollars"], checked["billed"], checked["difference"]) == (None, None, None, None)
    assert row["counted"] > 0
    assert "did not say what it billed" in " ".join(agent_report(outcome.scores, {"model": "m", "probe": ""}).headline)


# -- what goes wrong -----------------------------------------------------------------------------------------------


@every_wire
def test_a_provider_that_is_busy_is_asked_again_as_soon_as_it_says(wire: WireName) -> None:
    busy = Failure(429, "slow down", {"Retry-After": "0"})
    with FailingProvider(lambda number, _: busy if number in (2, 3) else None) as provider:
        endpoint = at(provider, wire)
        # Without the header it would be asked again after half a minute, which is more than the longest wait.
        again = Asked(endpoint, endpoint.client(), TOKENS, retry=retry(3, 30.0, longest=20.0))
        outcome = evaluate(plan_of("rooms-3"), again, Unkept())
    (score,) = outcome.scores
    assert (score["success"], score["failed requests"], score["error"]) == (True, 2, None)
    assert score["requests"] == len(provider.requests) == score["rounds"] + 2


def test_a_provider_that_wants_too_long_a_wait_is_an_error_that_stays_in_the_denominator() -> None:
    """F03."""
    busy = Failure(429, "come back tomorrow", {"Retry-After": "86400"})
    with FailingProvider(lambda number, _: busy if number == 1 else None) as provider:
        outcome = evaluate(plan_of("rooms-1", "rooms-3"), asked(at(provider)), Unkept())
    (row,) = rows_of(outcome.scores)
    assert (row["n"], row["success"], row["errors"]) == (2, 0.5, 1)
    assert "RateLimitError" in str(outcome.scores[0]["error"])
    assert len(provider.requests) == 1 + outcome.scores[1]["requests"]


@every_wire
@pytest.mark.parametrize("keep", [0, 2, 4])
def test_a_stream_that_breaks_off_is_asked_for_again(wire: WireName, keep: int) -> None:
    with FailingProvider(broken=(2, 5), keep=keep) as provider:
        outcome = evaluate(plan_of("rooms-3"), asked(at(provider, wire)), Unkept())
    assert unmet(outcome) == []
    assert len(provider.requests) >= outcome.scores[0]["rounds"] > 2


def test_a_provider_that_takes_no_more_tools_fails_what_needs_more() -> None:
    with ScriptedProvider() as provider:
        plan = AgentPlan(arms=ARMS[:2], sizes=(150,), tasks=("rooms-1", "stock-6"))
        outcome = evaluate(plan, asked(at(provider)), Unkept())
    static, append = rows_of(outcome.scores)
    assert (static["errors"], static["success"], append["errors"], append["success"]) == (2, 0.0, 0, 1.0)
    assert "maximum length 128, not 150" in str(outcome.scores[0]["error"])


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {}}]}],
        [{"role": "tool", "tool_call_id": "a", "content": "x"}],
        [{"role": "user", "content": ""}],
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "n", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "x"}]},
        ],
    ],
)
def test_the_scripted_provider_refuses_what_a_real_one_would(messages: list[dict[str, Any]]) -> None:
    with ScriptedProvider() as provider:
        answer = provider.answer("/v1/messages", {}, json.dumps({"messages": messages, "max_tokens": 9}).encode())
    assert answer.status == 400
    assert len(provider.refusals) == 1


def scores_of(results: str) -> list[JsonObject]:
    """Hand-made scores, one a letter: "o" met, "w" wrong, "e" an error of the endpoint."""
    base = {"tools": 20, "arm": "append", "mode": "append", "repeat": 0, "right tools": True, "wrong calls": 0}
    base |= {"searches": 1, "rounds": 3, "failed requests": 0, "requests": 3, "billed requests": 3, "counted": 900}
    base |= {"counted where billed": 900, "new": 900, "cached": 100, "written": 10, "seconds": 1.0, "dollars": 0.01}
    base |= {"first seconds": 0.2, "problems": [], "calls": [], "reason": "answered"}
    return [
        {**base, "case": f"t{n}", "success": r == "o", "error": "InternalServerError: boom" if r == "e" else None}
        for n, r in enumerate(results)
    ]


def test_errors_stay_in_the_denominator_and_are_counted_apart() -> None:
    """F03: 6 of 10 with 2 errors, and not 6 of 8."""
    report = agent_report(scores_of("ooooooweew"), {"model": "m", "probe": ""})
    row = report.tables[0].rows[0]
    assert (row["n"], row["success"], row["errors"]) == (10, 0.6, 2)
    assert (round(row["success low"], 3), round(row["success high"], 3)) == (0.313, 0.832)  # Wilson
    assert "60% of 10 tasks met" in report.headline[0]
    assert "2 errors of the endpoint count as not met" in report.headline[0]
    assert row["dollars a 1,000 met"] == pytest.approx(1_000 * 0.10 / 6)  # a met task bears what the others cost
    assert row["dollars a 1,000 met low"] < row["dollars a 1,000 met"] < row["dollars a 1,000 met high"]


def test_calls_that_are_made_again_and_again_stand_once() -> None:
    calls = [{"tool": "a", "status": "ok"}, *[{"tool": "b", "status": "limit"}] * 3, {"tool": "", "status": "unknown"}]
    calls = [{**call, "arguments": {}} for call in calls]
    report = agent_report([{**scores_of("w")[0], "calls": calls}], {"model": "m", "probe": ""})
    assert report.tables[-1].rows[0]["called"] == "a, b (limit) × 3, ? (unknown)"


def test_arms_are_compared_over_the_tasks_that_both_have_played() -> None:
    static = [{**each, "arm": "static", "mode": "static", "new": 8_000} for each in scores_of("oooow")]
    searched = scores_of("oooew")[:4]
    (row,) = against_static([*static, *searched])
    assert (row["n"], row["more met"], row["met by search alone"], row["met by all sent alone"]) == (4, -0.25, 0, 1)
    assert row["input saved"] == pytest.approx(1 - 1_000 / 8_100)
    (same,) = against_static([*static, *scores_of("oooow")])
    assert same["more met low"] < same["more met"] == 0 < same["more met high"]  # five pairs leave much doubt


def test_an_endpoint_that_is_away_ends_the_evaluation_and_can_be_gone_on_with(tmp_path: Path) -> None:
    away = [True]

    def fault(number: int, body: JsonObject) -> Failure | None:
        return Failure(503, "away") if away[0] and number > 4 else None

    plan = plan_of("rooms-1", *SOME, "rooms-4", "rooms-5", "stock-6")
    with FailingProvider(fault) as provider:
        endpoint = asked(at(provider))
        manifest = agent_manifest("c", plan, endpoint, {})
        with Run.begin(tmp_path / "run", manifest) as run:
            outcome = evaluate(plan, endpoint, run)
        assert outcome.stopped.startswith("the endpoint failed 5 times in a row (InternalServerError")
        assert [each["case"] for each in outcome.scores] == ["rooms-1"]
        assert "7 of 8 tasks are missing" in report_of(outcome, facts_of(plan, endpoint, {})).headline[0]
        away[0] = False
        with Run.begin(tmp_path / "run", manifest, resume=True) as run:
            outcome = evaluate(plan, endpoint, run)
        assert (unmet(outcome), outcome.missing) == ([], [])


def test_a_budget_in_tokens_ends_it_and_says_what_is_missing(tmp_path: Path) -> None:
    with ScriptedProvider() as provider:
        endpoint = asked(at(provider))
        plan = plan_of("rooms-1", "rooms-3", "both-3", "stock-7", budget=Budget(tokens=6_000))
        manifest = agent_manifest("c", plan, endpoint, {})
        with Run.begin(tmp_path / "run", manifest) as run:
            outcome = evaluate(plan, endpoint, run)
        sent = len(provider.requests)
        assert outcome.stopped == "the budget of 6,000 tokens is used up"
        assert [each["case"] for each in outcome.scores] == ["rooms-1", "rooms-3"]
        assert unmet(outcome) == []
        report = report_of(outcome, facts_of(plan, endpoint, {}))
        assert report.headline[0].startswith("Not whole: the budget of 6,000 tokens is used up. 2 of 4 tasks")
        with Run.begin(tmp_path / "run", manifest, resume=True) as run:  # what was spent counts when it goes on
            assert evaluate(plan, endpoint, run).stopped == outcome.stopped
        assert len(provider.requests) == sent
        with Run.begin(tmp_path / "run", manifest, resume=True) as run:
            more = plan_of("rooms-1", "rooms-3", "both-3", "stock-7", budget=Budget(tokens=60_000))
            outcome = evaluate(more, endpoint, run)
            run.close(report_of(outcome, facts_of(more, endpoint, {})))
    assert (unmet(outcome), outcome.missing) == ([], [])
    assert len(list(read_run(tmp_path / "run").scores())) == 4  # the task that was cut off was played again


def test_a_budget_in_dollars_needs_a_price() -> None:
    with ScriptedProvider() as provider:
        endpoint = at(provider)
        plan = plan_of("rooms-1", "rooms-3", "both-3", budget=Budget(dollars=0.004))
        with pytest.raises(SetupError, match=r"the price of the model 'scripted' is not known: pass --price"):
            evaluate(plan, asked(endpoint), Unkept())
        assert provider.requests == []
        outcome = evaluate(plan, asked(endpoint, prices={"*": Price(1.0, 0.1, 5.0)}), Unkept())
    assert outcome.stopped == "the budget of $0.004 is used up"
    assert 1 <= len(outcome.scores) < 3
    assert 0 < sum(each["dollars"] for each in outcome.scores) <= 0.006


def test_an_interrupted_run_goes_on_and_ends_with_the_same_report(tmp_path: Path) -> None:
    def figures(report: Any) -> list[Any]:
        timed = ("seconds", "first")
        rows = [row for table in report.tables for row in table.rows]
        return [{k: v for k, v in row.items() if not k.startswith(timed)} for row in rows]

    plan = plan_of(arms=ARMS[:2])
    with ScriptedProvider() as provider:
        endpoint = asked(at(provider))
        manifest, facts = agent_manifest("c", plan, endpoint, {}), facts_of(plan, endpoint, {})
        played: list[str] = []

        def interrupt(done: str) -> None:
            played.append(done)
            if len(played) == 3:
                raise KeyboardInterrupt

        with Run.begin(tmp_path / "run", manifest) as run, pytest.raises(KeyboardInterrupt):
            evaluate(plan, endpoint, run, interrupt)
        with Run.begin(tmp_path / "run", manifest, resume=True) as run:
            evaluate(plan, endpoint, run, played.append)
            broken = run.close(report_of(evaluate(plan, endpoint, run), facts))
        assert len(played) == len(SOME) * 2
    with ScriptedProvider() as provider:
        whole = report_of(evaluate(plan, asked(at(provider)), Unkept()), facts)
    assert figures(broken) == figures(whole)
    assert figures(score_agent(read_run(tmp_path / "run"))) == figures(whole)


def test_a_run_folder_has_every_request_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    wrong = Failure(400, f"your key {SECRET} may not do this")
    with FailingProvider(lambda number, _: wrong if number == 3 else None) as provider:
        endpoint = asked(at(provider, key_variable="MY_KEY"))
        plan = plan_of("rooms-3", "rooms-1")
        with Run.begin(tmp_path / "run", agent_manifest("c", plan, endpoint, {})) as run:
            outcome = evaluate(plan, endpoint, run)
            report = run.close(report_of(outcome, facts_of(plan, endpoint, {})))
    assert "your key … may not do this" in str(outcome.scores[0]["error"])
    stored = read_run(tmp_path / "run")
    for name, lines in (("event", stored.events()), ("score", stored.scores())):
        for line in lines:
            jsonschema.validate(line, schema(name))
    assert len(list(stored.events())) == len(provider.requests)
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert len(files) >= 8
    assert not [file for file in files if SECRET in file.read_text("utf-8")]
    assert SECRET not in as_json(report)
    assert SECRET not in repr(endpoint.endpoint)


def test_the_report_is_written_in_every_form(tmp_path: Path) -> None:
    with LazyProvider() as provider:
        plan = plan_of(arms=ARMS[:2])
        endpoint = asked(at(provider, stream=False), prices={"*": Price(1.0, 0.1, 5.0)})
        report = report_of(evaluate(plan, endpoint, Unkept()), facts_of(plan, endpoint, {}))
    texts = [file.read_text("utf-8") for file in write(report, tmp_path)]
    assert len(texts) == 4
    assert all("rooms-3" in text for text in texts if "{" in text[:1] or "<" in text[:1] or "#" in text[:1])
    assert [table.title for table in report.tables][-1] == "Tasks not met"
    assert json.loads(texts[0])["kind"] == "agent"
    assert [card.label for card in report.cards][:2] == ["Tasks met", "Input tokens saved"]
    ((first, *_),) = [details.each for details in report.cases]
    assert ("ended", "answered") in first.facts
    assert [said.who for said in first.said] == ["user", "model"]


# -- the command ---------------------------------------------------------------------------------------------------


def command(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["agent", *arguments])


def test_the_command_plays_the_scripted_model_keeps_a_run_and_does_not_change_it(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    options = ["--scripted", "--task", "rooms-1", "--tools", "20", "--index", "keyword", "--run", run]
    done = command(*options)
    assert done.exit_code == 0, done.output
    assert "static, 20 tools: 100% of 1 task met" in " ".join(done.output.split())
    assert "This endpoint reads tools." in done.output
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
    assert manifest["kind"] == "agent"
    assert manifest["settings"]["endpoint"] == "a server on this machine"
    again = command(*options, "--resume")
    assert isinstance(again.exception, SetupError)
    assert "closed" in str(again.exception)


def test_the_command_says_what_is_missing_and_exits_with_1() -> None:
    done = command(
        "--scripted", "--task", "rooms-3", "--task", "both-3", "--tools", "20", "--mode", "append", "--index",
        "keyword", "--budget", "4000 tokens",
    )  # fmt: skip
    assert done.exit_code == 1
    assert "Not whole: the budget of 4,000 tokens is used up." in " ".join(done.output.split())


def test_the_command_refuses_to_measure_nothing_at_an_endpoint_that_drops_tools() -> None:
    with ScriptedProvider(drops_tools=True) as provider:
        there = ("--model", "m", "--base-url", provider.url, "--index", "keyword", "--task", "rooms-1", "--tools", "20")
        done = command(*there, "--adapter", "tools")
        assert isinstance(done.exception, SetupError)
        assert "This endpoint drops tools" in done.output
        assert len(provider.requests) == 3
        assert "This endpoint drops tools" in command(*there, "--probe-only").output
        assert command(*there, "--mode", "append", "--wire", "openai_chat").exit_code == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "say which model to ask"),
        (["--model", "gpt-5"], "the variable OPENAI_API_KEY is not set"),
        (["--model", "claude-x"], "the variable ANTHROPIC_API_KEY is not set"),
        (["--model", "m", "--base-url", "localhost:80"], "does not begin with http"),
        (["--model", "m", "--wire", "soap"], "there is no wire 'soap'"),
        (["--scripted", "--base-url", "http://x"], "leave out --base-url"),
        (["--scripted", "--adapter", "magic"], "there is no adapter 'magic'"),
        (["--scripted", "--mode", "native"], "there is no mode 'native'"),
        (["--scripted", "--task", "nothing"], "there is no task 'nothing'"),
        (["--scripted", "--tools", "5"], "a catalog of 5 tools cannot be made"),
        (["--scripted", "--set", "resluts=2"], "did you mean 'results'"),
        (["--scripted", "--set", "mode=static"], "pass --mode instead"),
        (["--scripted", "--budget", "5"], "says no amount with its unit"),
        (["--scripted", "--budget", "$5"], "the price of the model 'scripted' is not known"),
        (["--scripted", "--price", "1,2"], "is not three numbers"),
        (["--scripted", "--option", "api_key=x"], "a key is read from the environment only"),
        (["--scripted", "--option", "hot"], "is not an option of a request"),
        (["--scripted", "--resume"], "name it with --run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence(options: list[str], problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    done = command(*options)
    assert isinstance(done.exception, SetupError), done.output
    assert problem in str(done.exception)


def test_an_endpoint_that_cannot_be_used_is_a_mistake_that_shows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with FailingProvider(lambda *_: Failure(401, f"wrong key {SECRET}")) as provider:
        done = command("--model", "m", "--base-url", provider.url)
    assert isinstance(done.exception, SetupError)
    assert "the endpoint cannot be used: AuthenticationError" in str(done.exception)
    assert SECRET not in str(done.exception) + done.output


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("$2.50", Budget(dollars=2.5)),
        ("2 usd", Budget(dollars=2.0)),
        ("0.5 dollars", Budget(dollars=0.5)),
        ("300,000 tokens", Budget(tokens=300_000)),
        ("1 token", Budget(tokens=1)),
    ],
)
def test_a_budget_has_a_unit(text: str, budget: Budget) -> None:
    assert read_budget(text) == budget


def test_options_and_prices_are_read() -> None:
    read = read_options(["temperature=0", "reasoning_effort=low", 'stop=["a"]', "top_p=null"])
    assert read == {"temperature": 0, "reasoning_effort": "low", "stop": ["a"], "top_p": None}
    prices, source = read_prices("0.25,0.025,2")
    assert prices["*"].cached == 0.025
    assert source == "--price 0.25,0.025,2"
