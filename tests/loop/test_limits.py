"""The limits of a turn: PG-9 to PG-15, SA-43, NA-1, BK-2; cases C06, C07, C10."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from toolsearch import Caller, Catalog, SetupError, ToolCall, ToolSearch, tool
from toolsearch.events.facts import Answers, Ending, ModelCalled, Noted, Reply, RunEnded, Usage
from toolsearch.events.journal import stored
from toolsearch.events.requests import CallModel, Finished
from toolsearch.layers import limits
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


class Desk:
    """Two tools, and what they were called with."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.search = ToolSearch(
            [
                tool(self.look, name="look", server="desk", description="Look at something"),
                tool(self.job_status, polling=True),
            ],
            mode="static",
        )

    def look(self, at: int = 0, how: str = "") -> str:
        self.ran.append(f"look {at} {how}".strip())
        return f"seen {at}"

    def job_status(self, job: str) -> str:
        """The state of a job."""
        self.ran.append(f"job {job}")
        return "done" if len(self.ran) > 5 else "running"

    def agent(self, model: ScriptedModel, **options: Any) -> Agent:
        return Agent(model, self.search, layers=[limits(**options)])


def for_ever(*calls: Any) -> Any:
    """A model that makes these calls, one a round, again and again."""
    turns = itertools.cycle(calls)
    return ScriptedModel(*[lambda _: [next(turns)] for _ in range(200)])


def new_every_time() -> Any:
    numbers = itertools.count()
    return ScriptedModel(*[lambda _: [("look", {"at": next(numbers)})] for _ in range(200)])


def answers(agent: Agent, session: str) -> list[tuple[str, str]]:
    """Status and text of every answer, in order."""
    transcript = agent.conversation(session).transcript
    return [(r.status, r.content) for m in transcript if isinstance(m, Answers) for r in m.results]


def statuses(agent: Agent, session: str) -> list[str]:
    return [status for status, _ in answers(agent, session)]


def outcomes(agent: Agent, session: str) -> list[str]:
    return [fact.note["outcome"] for fact in agent.conversation(session).journal if isinstance(fact, Noted)]


# -- rounds ------------------------------------------------------------------------------------------------------


def test_sixteen_rounds_run_two_wrap_up_and_the_nineteenth_ends_the_turn(drive: Any) -> None:
    """PG-10, PG-14: by the defaults, which every agent has."""
    desk = Desk()
    model = new_every_time()
    agent = Agent(model, desk.search)
    result = drive(agent, "Look at everything", conversation_id="s")
    assert isinstance(result, Finished)
    assert result.reason == "round limit"
    assert len(desk.ran) == 16
    assert statuses(agent, "s") == ["ok"] * 16 + ["limit"] * 3
    assert outcomes(agent, "s") == ["wrap-up", "wrap-up", "hard-stop"]
    said = answers(agent, "s")
    assert "answer now" in said[16][1]
    assert said[16] == said[17]
    assert "ends here" in said[18][1]
    assert len({tuple(shown.name for shown in request.tools) for request in model.requests}) == 1, "tools never change"


def test_a_model_that_wraps_up_when_it_is_told_to_has_answered(drive: Any) -> None:
    desk = Desk()

    def step(request: CallModel) -> Any:
        last = request.transcript[-1]
        wraps = isinstance(last, Answers) and last.results[0].status == "limit"
        return "I saw two." if wraps else [("look", {"at": len(request.transcript)})]

    agent = desk.agent(ScriptedModel(*[step] * 9), soft=2, hard=4)
    result = drive(agent, "Look", conversation_id="s")
    assert (result.reason, result.text) == ("answered", "I saw two.")
    assert len(desk.ran) == 2


def test_every_call_of_a_round_that_wraps_up_is_answered_and_none_runs(drive: Any) -> None:
    """PG-14: unknown tools and searches as well."""
    desk = Desk()
    many = [("look", {"at": 1}), ("no_such", {}), ("job_status", {"job": "a"})]
    agent = desk.agent(ScriptedModel(many, many, "Enough."), soft=1, hard=5)
    drive(agent, "Look", conversation_id="s")
    assert statuses(agent, "s") == ["ok", "unknown", "ok", "limit", "limit", "limit"]
    assert outcomes(agent, "s") == ["wrap-up"], "one outcome a round, as PG-19 counts them"


def test_a_turn_that_is_cancelled_in_its_last_round_is_cancelled_not_stopped(drive: Any) -> None:
    """PG-10: cancelled goes before a hard stop, even if nothing waits for the inbox between the two."""
    desk = Desk()

    def last(_: CallModel) -> Any:
        agent.cancel("s")
        return [("look", {"at": 3})]

    agent = desk.agent(ScriptedModel([("look", {"at": 1})], [("look", {"at": 2})], last), soft=1, hard=2)
    result = drive(agent, "Look", conversation_id="s")
    assert result.reason == "cancelled"
    assert agent.conversation("s").transcript, "the conversation is whole"
    assert drive(agent, "Go on", conversation_id="s").reason == "answered", "and goes on"


def test_each_message_of_the_user_begins_with_all_limits_unused(drive: Any) -> None:
    """PG-9, SA-43: a turn is what follows a message of the user."""
    desk = Desk()
    agent = desk.agent(ScriptedModel([("look", {})], [("look", {})], "One.", [("look", {})], "Two."), identical=1)
    drive(agent, "Look", conversation_id="s")
    drive(agent, "Look again", conversation_id="s")
    assert statuses(agent, "s") == ["ok", "limit", "ok"]


def test_two_turns_at_once_do_not_count_for_each_other() -> None:
    """PG-9: the scope is one conversation's turn."""
    desk = Desk()
    together = threading.Barrier(2)

    def step(request: CallModel) -> Any:
        together.wait(20)
        return [("look", {"at": 1})] if len(request.transcript) < 6 else "Done."

    agent = Agent(_each_alone(step), desk.search, layers=[limits(identical=3)])
    threads = [threading.Thread(target=agent.run, args=("Look",), kwargs={"conversation_id": name}) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert statuses(agent, "a") == statuses(agent, "b") == ["ok"] * 3


def _each_alone(step: Any) -> Any:
    """A model without a script, so that two conversations cannot take each other's lines."""

    def model(request: CallModel) -> Any:
        return ScriptedModel(step)(request)

    return model


def test_the_calls_after_the_last_step_do_not_run_and_the_turn_ends_with_their_text(drive: Any) -> None:
    """NA-1, BK-2: a ceiling of steps is a normal end."""
    desk = Desk()
    model = ScriptedModel(*[_said_and_called(n) for n in range(9)])
    agent = desk.agent(model, steps=3)
    result = drive(agent, "Look", conversation_id="s")
    assert (result.reason, result.text) == ("step limit", "Looking at 3.")
    assert desk.ran == ["look 0", "look 1", "look 2"]
    assert statuses(agent, "s") == ["ok"] * 3 + ["limit"]
    assert len(model.requests) == 4
    assert drive(agent, "Go on", conversation_id="s").reason == "step limit", "the next turn begins with no step used"
    assert len(desk.ran) == 6


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_after_the_last_step_the_model_may_still_answer(drive: Any, steps: int) -> None:
    """BK-2: as many rounds of tools as allowed and then an answer is an answered turn."""
    desk = Desk()
    model = ScriptedModel(*[[("look", {"at": n})] for n in range(steps)], "All seen.")
    result = drive(desk.agent(model, steps=steps), "Look", conversation_id="s")
    assert (result.reason, result.text) == ("answered", "All seen.")
    assert len(desk.ran) == steps


SILENT = [
    ({"soft": 1, "hard": 1}, "round limit", "more steps"),
    ({"steps": 1}, "step limit", "more steps"),
    ({"calls": 1, "excess": "end"}, "call limit", "more calls"),
    ({"per_tool": 1, "excess": "end"}, "call limit", "more calls"),
    ({"identical": 1, "excess": "end"}, "repeated call", "repeating"),
    ({"unknown": 1}, "unknown tools", "do not exist"),
    ({"tokens": 150, "excess": "end"}, "token budget", "budget"),
    ({"cost": 150.0, "price": lambda call: 110.0, "excess": "end"}, "cost budget", "budget"),
]


@pytest.mark.parametrize("blank", ["", "  \n"])
@pytest.mark.parametrize(("options", "reason", "why"), SILENT)
def test_a_limited_turn_never_ends_without_a_word(
    drive: Any, options: dict[str, Any], reason: str, why: str, blank: str
) -> None:
    """PG-10: the user reads what happened; the reason stays one for programs."""
    desk = Desk()
    named = "no_such" if reason == "unknown tools" else "look"
    silent = Reply(blank, (ToolCall("", named, {"at": 1}),), usage=Usage(100, 0, 10))
    agent = desk.agent(ScriptedModel(*[silent] * 9), **options)
    result = drive(agent, "Look", conversation_id="s")
    assert result.reason == reason
    assert why in result.text
    assert "Ask me to go on" in result.text
    ended = [fact for fact in agent.conversation("s").journal if isinstance(fact, RunEnded)]
    assert [(fact.reason, fact.text) for fact in ended] == [(reason, result.text)]


def test_a_limited_turn_ends_with_what_the_model_said_last_if_it_said_anything(drive: Any) -> None:
    """PG-10: a reply without a word does not hide an earlier one."""
    desk = Desk()
    agent = desk.agent(ScriptedModel(_said_and_called(0), [("look", {"at": 1})], [("look", {"at": 2})]), steps=2)
    assert drive(agent, "Look", conversation_id="s").text == "Looking at 0."


def test_with_the_same_soft_and_hard_limit_the_reply_after_the_last_round_is_the_answer(drive: Any) -> None:
    """BK-2: ten rounds run; the calls of the eleventh reply do not, and its text is what the user gets."""
    desk = Desk()
    agent = desk.agent(ScriptedModel(*[_said_and_called(n) for n in range(20)]), soft=10, hard=10)
    result = drive(agent, "Look", conversation_id="s")
    assert (result.reason, result.text) == ("round limit", "Looking at 10.")
    assert len(desk.ran) == 10


def _said_and_called(number: int) -> Any:
    return Reply(f"Looking at {number}.", (ToolCall(f"c{number}", "look", {"at": number}),))


# -- repetition --------------------------------------------------------------------------------------------------


def test_the_fourth_call_with_the_same_arguments_is_answered_however_they_are_written(drive: Any) -> None:
    """PG-11, C10: successes count; neither the order of keys, nor spaces, nor JSON text instead of an object help."""
    desk = Desk()
    spelled = [{"at": 1, "how": "far"}, {"how": "far", "at": 1}, '{"how":  "far", "at": 1}', '{"at":1,"how":"far"}']
    agent = desk.agent(ScriptedModel(*[[("look", each)] for each in spelled], [("look", {"at": 2, "how": "far"})]))
    drive(agent, "Look", conversation_id="s")
    assert statuses(agent, "s") == ["ok", "ok", "ok", "limit", "ok"]
    assert "same arguments" in answers(agent, "s")[3][1]
    assert outcomes(agent, "s") == ["repeated"]


def test_repetitions_within_one_round_count_in_the_models_order(drive: Any) -> None:
    desk = Desk()
    agent = desk.agent(ScriptedModel([("look", {"at": 1})] * 5))
    drive(agent, "Look", conversation_id="s")
    assert statuses(agent, "s") == ["ok", "ok", "ok", "limit", "limit"]


@pytest.mark.parametrize("polling", [(), ("desk/look",), ("look",)])
def test_a_tool_that_polls_may_be_called_again_with_the_same_arguments(drive: Any, polling: tuple[str, ...]) -> None:
    """C10: by the mark of the tool, or by its id or name as an option."""
    desk = Desk()
    call = ("look", {"at": 1}) if polling else ("job_status", {"job": "a"})
    agent = desk.agent(ScriptedModel(*[[call]] * 6, "It is done."), polling=polling)
    result = drive(agent, "Wait for it", conversation_id="s")
    assert statuses(agent, "s") == ["ok"] * 6
    assert result.text == "It is done."


def test_calls_that_failed_or_were_wrong_are_repetitions_too(drive: Any) -> None:
    """C07 turned round: a guard that counts successes does not forget failures."""
    desk = Desk()
    agent = desk.agent(ScriptedModel(*[[("look", {"at": "no number"})]] * 5))
    drive(agent, "Look", conversation_id="s")
    assert statuses(agent, "s") == ["invalid_arguments"] * 3 + ["limit"] * 2


# -- searches ----------------------------------------------------------------------------------------------------

MANY = [{"name": f"calendar_{n}", "description": f"List calendar events of kind {n}"} for n in range(20)]


def test_a_model_that_only_ever_searches_for_the_same_comes_to_an_end(drive: Any) -> None:
    """C06: when nothing new is left it is told what is loaded, and from the fourth time on nothing is searched."""
    agent = Agent(for_ever(("search_tools", {"queries": ["calendar events"]})), ToolSearch(MANY[:6], mode="append"))
    result = drive(agent, "What is on?", conversation_id="s")
    assert result.reason == "round limit"
    said = answers(agent, "s")
    assert "Loaded 4 tools" in said[1][1]
    assert "You have searched for this already" in said[2][1]
    assert [status for status, _ in said] == ["ok"] * 3 + ["limit"] * 16
    assert "loaded" in said[3][1]


def test_searches_that_find_something_every_time_are_limited_too(drive: Any) -> None:
    """C07: the cap counts successes; the round limit holds whatever is said."""
    words = itertools.count()
    model = ScriptedModel(*[lambda _: [("search_tools", {"queries": [f"calendar {next(words)}"]})]] * 60)
    agent = Agent(model, ToolSearch(MANY, mode="append"), layers=[limits(searches=5)])
    result = drive(agent, "What is on?", conversation_id="s")
    assert statuses(agent, "s") == ["ok"] * 5 + ["limit"] * 14
    assert "Do not search again" in answers(agent, "s")[5][1]
    assert set(outcomes(agent, "s")[:11]) == {"search-limit"}
    assert result.reason == "round limit"


def test_a_search_too_many_can_end_the_turn_with_a_reason(drive: Any) -> None:
    """C06, C07 with the other policy."""
    words = itertools.count()
    model = ScriptedModel(*[lambda _: [("search_tools", {"queries": [f"calendar {next(words)}"]})]] * 60)
    agent = Agent(model, ToolSearch(MANY, mode="append"), layers=[limits(searches=5, excess="end")])
    assert drive(agent, "What is on?", conversation_id="s").reason == "search limit"
    assert len(model.requests) == 6


# -- calls -------------------------------------------------------------------------------------------------------


def test_forty_calls_a_tool_and_a_hundred_and_fifty_in_all(drive: Any) -> None:
    """SA-43: the defaults, in one turn of big rounds."""
    tools = [tool(lambda at: at, name=f"look_{n}", description="Look") for n in range(5)]
    rounds = [[(f"look_{n}", {"at": at}) for at in range(41)] for n in range(4)]
    agent = Agent(ScriptedModel(*rounds), ToolSearch(tools, mode="static"))
    drive(agent, "Look", conversation_id="s")
    got = statuses(agent, "s")
    assert got[:41] == got[41:82] == got[82:123] == ["ok"] * 40 + ["limit"]
    assert got[123:] == ["ok"] * 30 + ["limit"] * 11, "that makes 150"


@pytest.mark.parametrize(
    ("options", "ran"),
    [
        ({"tools": {"look": 2}}, 2),
        ({"tools": {"desk/look": 6}}, 6),
        ({"tools": {"look": None}}, 9),
        ({"per_tool": None}, 9),
        ({"calls": 4}, 3),
        ({"calls": 4, "uncounted": ["desk/look"]}, 9),
        ({"uncounted": ["look"]}, 9),
        ({"calls": None}, 3),
    ],
)
def test_a_tool_may_have_a_limit_of_its_own_or_none_or_not_count_at_all(
    drive: Any, options: dict[str, Any], ran: int
) -> None:
    """SA-43: override, unlimited, exclusion."""
    desk = Desk()
    agent = desk.agent(
        ScriptedModel([("job_status", {"job": "a"})], *[[("look", {"at": n})] for n in range(9)]),
        **{"per_tool": 3} | options,
    )
    drive(agent, "Look", conversation_id="s")
    assert sum(each.startswith("look") for each in desk.ran) == ran


def test_the_other_calls_of_the_round_run_beside_one_that_is_too_much(drive: Any) -> None:
    """SA-43, RETURN_ERROR_RESPONSE."""
    desk = Desk()
    agent = desk.agent(
        ScriptedModel([("look", {"at": n}) for n in range(3)] + [("job_status", {"job": "a"})]), per_tool=2
    )
    result = drive(agent, "Look", conversation_id="s")
    assert statuses(agent, "s") == ["ok", "ok", "limit", "ok"]
    assert result.reason == "answered"


def test_with_the_policy_end_nothing_of_the_round_runs_and_the_reason_is_told(drive: Any) -> None:
    """SA-43, THROW: the results so far are in the transcript, whole."""
    desk = Desk()
    model = ScriptedModel([("look", {"at": 0})], [("look", {"at": 1}), ("job_status", {"job": "a"})])
    agent = desk.agent(model, per_tool=1, excess="end")
    result = drive(agent, "Look", conversation_id="s")
    assert result.reason == "call limit"
    assert desk.ran == ["look 0"]
    assert statuses(agent, "s") == ["ok", "limit", "limit"]
    assert len(model.requests) == 2
    assert drive(agent, "And now?", conversation_id="s").reason == "answered"


# -- budgets -----------------------------------------------------------------------------------------------------


def test_a_budget_of_tokens_is_told_once_and_then_ends_the_turn(drive: Any) -> None:
    desk = Desk()
    model = for_ever(("look", {"at": 1}), ("look", {"at": 2}))
    agent = desk.agent(model, tokens=250)  # each call of the model costs 110
    result = drive(agent, "Look", conversation_id="s")
    assert result.reason == "token budget"
    assert statuses(agent, "s") == ["ok", "ok", "limit", "limit"]
    assert outcomes(agent, "s") == ["wrap-up", "hard-stop"]
    assert "330 of 250 tokens" in answers(agent, "s")[2][1]


def test_a_budget_of_money_ends_the_turn_at_once_with_the_policy_end(drive: Any) -> None:
    desk = Desk()

    def price(call: ModelCalled) -> float | None:
        return None if call.model == "unknown" else call.usage.input_tokens * 0.001

    agent = desk.agent(for_ever(("look", {})), cost=0.15, price=price, excess="end")
    result = drive(agent, "Look", conversation_id="s")
    assert result.reason == "cost budget"
    assert statuses(agent, "s") == ["ok", "limit"]


def test_an_answer_is_never_taken_back_for_its_price(drive: Any) -> None:
    desk = Desk()
    agent = desk.agent(ScriptedModel("Here.", usage=Usage(10_000, 0, 10_000)), tokens=5)
    assert drive(agent, "Look").text == "Here."


def test_a_price_that_cannot_be_computed_lets_nothing_run(drive: Any) -> None:
    """A gate fails closed."""
    desk = Desk()

    def price(_: ModelCalled) -> float:
        raise LookupError("no price table")

    agent = desk.agent(ScriptedModel([("look", {})]), cost=1.0, price=price)
    drive(agent, "Look", conversation_id="s")
    assert not desk.ran
    assert statuses(agent, "s") == ["denied"]


# -- as a layer --------------------------------------------------------------------------------------------------


def test_what_was_counted_survives_a_restart(drive: Any) -> None:
    """PG-9: the count is read from the journal, so another process has no more than this one had."""
    desk = Desk()
    layers = [limits(identical=3)]

    def crash(_: CallModel) -> Any:
        raise KeyboardInterrupt

    first = Agent(ScriptedModel(*[[("look", {})]] * 3, crash), desk.search, layers=layers)
    with pytest.raises(KeyboardInterrupt):
        drive(first, "Look", conversation_id="s")
    journal = [stored(fact) for fact in first.conversation("s").journal if not isinstance(fact, RunEnded)]
    second = Agent(ScriptedModel([("look", {})]), desk.search, layers=layers)
    second.store.append("s", 0, journal)
    drive(second, conversation_id="s")
    assert statuses(second, "s") == ["ok", "ok", "ok", "limit"]


def test_an_agent_has_limits_unless_it_is_given_others_or_none() -> None:
    desk = Desk()
    names = [[layer.name for layer in agent.parts.layers].count("limits") for agent in (
        Agent(ScriptedModel(), desk.search),
        Agent(ScriptedModel(), desk.search, layers=[limits(soft=1)]),
        Agent(ScriptedModel(), desk.search, defaults=False),
    )]  # fmt: skip
    assert names == [1, 1, 0]
    assert Agent(ScriptedModel(), desk.search, layers=[limits(soft=1)]).parts.layers[-1].soft == 1


def test_the_end_is_a_fact_that_names_the_layer(drive: Any) -> None:
    desk = Desk()
    agent = desk.agent(for_ever(("look", {})), soft=1, hard=1)
    drive(agent, "Look", conversation_id="s", caller=Caller("ana"))
    journal = agent.conversation("s", caller=Caller("ana")).journal
    assert [fact for fact in journal if isinstance(fact, Ending)] == [Ending("round limit", by="limits")]
    assert [fact.reason for fact in journal if isinstance(fact, RunEnded)] == ["round limit"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"soft": 0}, "soft must be a whole number of at least 1"),
        ({"calls": 1.5}, "calls must be"),
        ({"tools": {"look": 0}}, r"tools\['look'\]"),
        ({"hard": 3}, r"hard \(3\) must be at least soft \(16\)"),
        ({"polling": "look"}, r"polling must be a collection of names, as in \['look'\]"),
        ({"cost": 1.0}, "needs price="),
        ({"cost": -1.0}, "cost must be a number above 0"),
        ({"excess": "throw"}, "'answer' or 'end'"),
    ],
)
def test_a_limit_that_cannot_be_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SetupError, match=named):
        limits(**options)


def test_the_mark_polling_comes_with_a_definition_like_any_other() -> None:
    catalog = Catalog([{"name": "job_status", "polling": True}, {"name": "look"}])
    assert catalog["job_status"].polling
    assert not catalog["look"].polling


def test_K10_unknown_names_that_vary_reach_a_limit(drive: Any) -> None:
    """K10: 19 model calls until the round limit ended the turn; now the model is told, and then the turn ends."""
    model = ScriptedModel(*[[(f"fetch_{n}", {"n": n})] for n in range(26)])
    made = Agent(model, ToolSearch([{"name": "get_invoice", "run": lambda: 1}], mode="static"))
    result = drive(made, "Fetch", conversation_id="s")
    assert (result.reason, len(model.requests)) == ("unknown tools", 11)
    statuses = [answer.status for answer in made.conversation("s").turn.results.values()]
    assert statuses == ["unknown"] * 5 + ["limit"] * 6
    told = made.conversation("s").turn.results
    assert "answer now with what you have" in list(told.values())[5].content


def test_K10_with_end_the_turn_ends_at_the_limit(drive: Any) -> None:
    model = ScriptedModel(*[[(f"fetch_{n}", {"n": n})] for n in range(26)])
    layer = limits(identical=2, excess="end")
    made = Agent(model, ToolSearch([{"name": "get_invoice"}], mode="static"), layers=[layer])
    assert (drive(made, "Fetch").reason, len(model.requests)) == ("unknown tools", 6)


def test_K10_many_unknown_names_in_one_reply_count_one_by_one(drive: Any) -> None:
    model = ScriptedModel([(f"fetch_{n}", {"n": n}) for n in range(8)], "There is no such tool.")
    made = Agent(model, ToolSearch([{"name": "get_invoice"}], mode="static"))
    assert drive(made, "Fetch", conversation_id="s").reason == "answered"
    statuses = [answer.status for answer in made.conversation("s").turn.results.values()]
    assert statuses == ["unknown"] * 5 + ["limit"] * 3


def test_K10_a_call_that_a_tool_has_begins_the_count_anew(drive: Any) -> None:
    step = [[(f"fetch_{n}", {})] for n in range(5)]
    known = [("get_invoice", {})]
    tools = [{"name": "get_invoice", "run": lambda: 1}]
    made = Agent(ScriptedModel(*step, known, *step, "Done."), ToolSearch(tools, mode="static"))
    assert drive(made, "Fetch", conversation_id="s").reason == "answered"
    assert not [r for r in made.conversation("s").turn.results.values() if r.status == "limit"]


def test_K10_without_the_limit_nothing_is_counted(drive: Any) -> None:
    model = ScriptedModel(*[[(f"fetch_{n}", {"n": n})] for n in range(26)])
    made = Agent(model, ToolSearch([{"name": "get_invoice"}], mode="static"), layers=[limits(unknown=None)])
    assert drive(made, "Fetch").reason == "round limit"
