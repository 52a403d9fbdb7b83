"""An agent as a tool of another: one answer, one bill, and questions that reach a person."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Caller, SetupError, ToolSearch, tool
from toolsearch.delegation import delegate, delegation
from toolsearch.events.facts import (
    Answers,
    ModelCalled,
    Reply,
    TextDelta,
    ToolApproved,
    ToolReturned,
    ToolStarted,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.requests import Answer, Approve, Call, CallModel, Deny, Finished, Paused
from toolsearch.layers import approval, interaction, limits, retry, timeout, usage
from toolsearch.layers._usage import Price, Quota, cost
from toolsearch.loop.agent import Agent
from toolsearch.stores import SqliteStore
from toolsearch.testing import ScriptedModel

TASK = [("h1", "helper", {"task": "Find out"})]


class Pays:
    """A tool that counts."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []
        self.tool = tool(self.pay, kind="action")

    def pay(self, who: str, amount: int = 1) -> str:
        """Pay somebody."""
        self.paid.append((who, amount))
        return f"paid {amount} to {who}"


ASK = tool({"name": "ask", "input_schema": {"type": "object", "properties": {"question": {"type": "string"}}}})


def agent(*script: Any, tools: Any = (), **options: Any) -> Agent:
    return Agent(ScriptedModel(*script), ToolSearch(tools, mode="static"), **options)


def parent_of(child: Agent, *script: Any, layers: Any = None, **options: Any) -> Agent:
    made = [delegation()] if layers is None else layers
    return agent(*(script or (TASK, "So it is.")), tools=[delegate(child, "helper", "Helps.")], layers=made, **options)


def returned(parent: Agent, session: str, call_id: str = "h1") -> ToolReturned:
    journal = parent.conversation(session).journal
    return next(e for e in journal if isinstance(e, ToolReturned) and e.call_id == call_id)


# -- a task, and an answer -----------------------------------------------------------------------------------------


def test_an_agent_is_a_tool_that_takes_a_task_and_answers(drive: Any) -> None:
    """NA-4: the kind of tool that is an agent. Its conversation is the parent's id and the call's."""
    child = agent("It is 42.")
    parent = parent_of(child)
    assert parent.parts.search.catalog["helper"].input_schema["required"] == ["task"]
    result = drive(parent, "What is it?", conversation_id="desk")
    assert (result.text, result.reason) == ("So it is.", "answered")
    assert returned(parent, "desk").content == "It is 42."
    assert child.conversation("desk/h1").turn.said == "Find out"


def test_what_the_tool_hands_a_layer_is_the_childs_result(drive: Any) -> None:
    seen: list[Any] = []

    class Looks:
        def around_tool(self, call: Call) -> Any:
            result = yield call
            seen.append(result.data)
            return result

    child = agent("It is 42.")
    drive(parent_of(child, layers=[Looks()]), "What is it?", conversation_id="desk")
    assert seen == [Finished("It is 42.", "answered", None, "desk/h1", Usage(100, 0, 10, 1))]


def test_a_child_acts_for_the_same_caller_and_sees_at_most_what_the_caller_may(drive: Any) -> None:
    secret = tool({"name": "secret", "roles": ["boss"]}, run=lambda: "the secret")
    answers = []
    for roles in ((), ("boss",)):
        child = agent([("s1", "secret", {})], lambda request: request.transcript[-1].results[0].status, tools=[secret])
        parent = parent_of(child)
        drive(parent, "What is it?", conversation_id="desk", caller=Caller("ana", roles, "acme"))
        answers.append(returned(parent, "desk").content)
    assert answers == ["unknown", "ok"]


def test_what_goes_wrong_in_a_child_is_an_answer(drive: Any) -> None:
    parent = parent_of(agent(ConnectionError("gone")))
    result = drive(parent, "What is it?", conversation_id="desk")
    assert (result.reason, returned(parent, "desk").status) == ("answered", "failed")
    assert "ConnectionError: gone" in returned(parent, "desk").content


def test_a_child_that_ends_without_a_word_says_why(drive: Any) -> None:
    child = agent(
        *[[("look", {})]] * 9, tools=[tool({"name": "look"}, run=lambda: "x")], layers=[limits(soft=1, hard=2)]
    )
    parent = parent_of(child)
    drive(parent, "What is it?", conversation_id="desk")
    assert returned(parent, "desk").status == "failed"
    assert "round limit. Ask it for less" in returned(parent, "desk").content


def test_an_async_child_runs_in_arun_and_is_a_clear_answer_in_run(drive: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def model(request: CallModel) -> Reply:
        return Reply("It is 42.")

    child = Agent(model, ToolSearch([], mode="static"))
    parent = parent_of(child)
    drive(parent, "What is it?", conversation_id="desk")
    told = returned(parent, "desk")
    if drive.is_async:
        assert (told.status, told.content) == ("ok", "It is 42.")
    else:
        assert told.status == "failed"
        assert "arun" in told.content


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: delegate("helper", "helper", "Helps."), "agent must be an Agent, not 'helper'"),  # type: ignore[arg-type]
        (lambda: delegate(agent(), "helper", "Helps.", depth=0), "depth must be a whole number of at least 1, not 0"),
    ],
)
def test_what_cannot_be_delegated_to_is_an_error(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(SetupError, match=why):
        make()


def test_children_run_one_by_one_unless_they_are_told_otherwise() -> None:
    """NA-5: a step with an agent in it goes one by one."""
    assert delegate(agent(), "helper", "Helps.").alone
    assert not tool(delegate(agent(), "helper", "Helps."), alone=False).alone


def test_two_children_may_run_together(drive: Any) -> None:
    both = threading.Barrier(2, timeout=20)

    def waits(request: CallModel) -> str:
        both.wait()
        return "met"

    helpers = [tool(delegate(agent(waits), name, "Helps."), alone=False) for name in ("one", "two")]
    parent = agent([("a", "one", {"task": "x"}), ("b", "two", {"task": "x"})], "Fine.", tools=helpers)
    drive(parent, "Go", conversation_id="desk")
    assert [returned(parent, "desk", i).content for i in ("a", "b")] == ["met", "met"]


# -- depth ---------------------------------------------------------------------------------------------------------


def test_agents_call_each_other_five_deep_and_no_deeper(drive: Any) -> None:
    """NA-4: the limit is told to the model that asks, with what to do instead."""
    said: list[str] = []

    def deeper(request: CallModel) -> Any:
        last = request.transcript[-1]
        if isinstance(last, UserSaid):
            return [("helper", {"task": "deeper"})]
        assert isinstance(last, Answers)
        said.append(last.results[0].content)
        return f"{len(said)}"

    search = ToolSearch([], mode="static")
    own = Agent(deeper_model(deeper), search)
    search.catalog.add(delegate(own, "helper", "Helps."))
    result = drive(own, "Go", conversation_id="desk")
    assert "agents may call each other 5 deep" in said[0]
    assert "Do the task yourself" in said[0]
    assert (len(said), result.text) == (6, "6")


def deeper_model(function: Callable[[CallModel], Any]) -> Callable[[CallModel], Any]:
    """Every request is answered by the function."""
    return ScriptedModel(*[function] * 20)


# -- the bill ------------------------------------------------------------------------------------------------------


def test_what_a_child_cost_is_in_the_parents_usage(drive: Any) -> None:
    child = agent(TASK, "42", tools=[delegate(agent("deep"), "helper", "Helps.")], layers=[delegation()])
    result = drive(parent_of(child), "What is it?", conversation_id="desk", caller=Caller("ana"))
    assert result.usage == Usage(500, 0, 50, 5)  # two calls of its own, two of the child, one of the child's child
    rows = [e for e in parent_rows(child, "desk/h1", "ana") if e.purpose == "delegated"]
    assert [(row.model, row.actor, row.usage) for row in rows] == [("scripted", "ana", Usage(100, 0, 10, 1))]


def parent_rows(of: Agent, session: str, user: str) -> list[ModelCalled]:
    journal = of.conversation(session, caller=Caller(user)).journal
    return [e for e in journal if isinstance(e, ModelCalled)]


def test_a_quota_counts_what_children_cost_in_tokens_and_in_money(drive: Any) -> None:
    prices = {"scripted": Price(1.0, 1.0, 1.0)}
    for quota in (Quota(calls=2), Quota(tokens=150), Quota(cost=0.00015)):
        parent = parent_of(agent("42"), layers=[delegation(), usage(quota, prices=prices)])
        result = drive(parent, "What is it?", conversation_id="desk")
        assert result.reason == "quota"
        assert cost(parent.conversation("desk").journal, prices) == pytest.approx(220 / 1e6)


def test_a_child_that_failed_cost_what_it_cost(drive: Any) -> None:
    child = agent([("look", {})], ConnectionError("gone"), tools=[tool({"name": "look"}, run=lambda: "x")])
    parent = parent_of(child)
    result = drive(parent, "What is it?", conversation_id="desk")
    assert returned(parent, "desk").status == "failed"
    assert result.usage.calls == 4


def test_a_child_that_failed_in_passing_begins_anew(drive: Any) -> None:
    child = agent(ConnectionError("gone"), "42")
    parent = parent_of(child, layers=[retry(seconds=0.001, tools=True), delegation()])
    drive(parent, "What is it?", conversation_id="desk")
    assert returned(parent, "desk").content == "42"


# -- stopping ------------------------------------------------------------------------------------------------------


class Hangs:
    """A model that waits until it is let go on."""

    def __init__(self) -> None:
        self.asked, self.let = threading.Event(), threading.Event()
        self.stopped = threading.Event()

    def __call__(self, request: CallModel) -> Iterator[TextDelta | Reply]:
        self.asked.set()
        try:
            while not self.let.wait(0.02):
                yield TextDelta(".")
            yield Reply("late")
        finally:
            self.stopped.set()


def test_cancelling_the_parent_cancels_the_child(drive: Any) -> None:
    """C24: what was cancelled stops, and leaves whole conversations."""
    model = Hangs()
    child = Agent(model, ToolSearch([], mode="static"))
    parent = parent_of(child)
    wait = drive.beside(parent, "What is it?", conversation_id="desk")
    assert model.asked.wait(20)
    parent.cancel("desk")
    assert wait().reason == "cancelled"
    assert model.stopped.wait(20), "the child goes on"
    ended(child, "desk/h1")
    assert returned(parent, "desk").status == "interrupted"


def test_a_call_that_is_late_cancels_the_child(drive: Any) -> None:
    model = Hangs()
    child = Agent(model, ToolSearch([], mode="static"))
    parent = parent_of(child, layers=[delegation(), timeout(tool=0.3)])
    assert drive(parent, "What is it?", conversation_id="desk").reason == "answered"
    assert returned(parent, "desk").status == "timed_out"
    assert model.stopped.wait(20), "the child goes on"
    ended(child, "desk/h1")


def ended(child: Agent, session: str) -> None:
    """Waits until the child has written down its end."""
    for _ in range(1000):
        if not child.conversation(session).running:
            break
        threading.Event().wait(0.02)
    assert child.conversation(session).next().reason == "cancelled"  # type: ignore[union-attr]


# -- a child that waits for a person -------------------------------------------------------------------------------


def paying(*calls: Any, pays: Pays, layers: Any = None, more: Any = ("I paid.",), **options: Any) -> Agent:
    script = ([*calls], *more)
    return agent(*script, tools=[pays.tool, ASK], layers=[approval()] if layers is None else layers, **options)


@pytest.mark.parametrize(
    ("decision", "paid", "said"),
    [
        (True, [("Ana", 1), ("Bob", 1)], "paid 1 to Ana|paid 1 to Bob"),
        (Approve(), [("Ana", 1), ("Bob", 1)], "paid 1 to Ana|paid 1 to Bob"),
        (False, [], "it was declined"),
        (Deny("too much"), [], "it was declined (too much)"),
        (Approve({"who": "Eve"}), [], "changed arguments were given for several calls at once"),
    ],
)
def test_a_decision_is_for_all_calls_of_the_child_that_wait(drive: Any, decision: Any, paid: Any, said: str) -> None:
    """NA-4 and NA-8: the child's pause is the parent's; a refusal is read by the child, which goes on."""
    pays = Pays()
    read: list[str] = []

    def last(request: CallModel) -> str:
        answers = request.transcript[-1]
        assert isinstance(answers, Answers)
        read.append("|".join(result.content for result in answers.results))
        return "I am done."

    child = paying(("p1", "pay", {"who": "Ana"}), ("p2", "pay", {"who": "Bob"}), pays=pays, more=(last,))
    parent = parent_of(child)
    paused = drive(parent, "Pay them", conversation_id="desk")
    assert isinstance(paused, Paused)
    (waiting,) = paused.waiting
    assert (waiting.id, waiting.kind) == ("h1", "delegated")
    asked = [f"""(pay) Run pay? {{"who": "{who}"}} (conversation 'desk/h1')""" for who in ("Ana", "Bob")]
    assert waiting.question == f"helper asks: {' '.join(asked)}"
    assert [each["id"] for each in waiting.fact.data["waiting"]] == ["p1", "p2"]
    assert pays.paid == []
    result = drive(parent, conversation_id="desk", decisions={"h1": decision})
    assert isinstance(result, Finished)
    assert (result.text, pays.paid) == ("So it is.", paid)
    assert said in read[0]
    assert result.usage.calls == 4  # each once, although the child ran in two pieces


def test_one_call_of_a_child_may_be_approved_with_other_arguments(drive: Any) -> None:
    pays = Pays()
    parent = parent_of(paying(("p1", "pay", {"who": "Ana", "amount": 9}), pays=pays))
    drive(parent, "Pay", conversation_id="desk")
    drive(parent, conversation_id="desk", decisions={"h1": Approve({"who": "Ana", "amount": 2})})
    assert pays.paid == [("Ana", 2)]


def test_an_answer_is_the_answer_to_the_childs_question(drive: Any) -> None:
    heard: list[Any] = []

    def last(request: CallModel) -> str:
        heard.extend([m.results[0].content for m in request.transcript if hasattr(m, "results")])
        heard.extend([m.text for m in request.transcript if isinstance(m, UserSaid)])
        return "Thanks."

    child = paying(("q1", "ask", {"question": "Which one?"}), pays=Pays(), layers=[interaction(["ask"])], more=(last,))
    parent = parent_of(child)
    paused = drive(parent, "Go", conversation_id="desk")
    assert paused.waiting[0].question == "helper asks: (ask) Which one?"
    drive(parent, conversation_id="desk", decisions={"h1": Answer("the red one", said=UserSaid("see here"))})
    assert heard == ["the red one", "Find out", "see here"]


def test_a_question_and_an_approval_of_one_round_are_settled_one_after_the_other(drive: Any) -> None:
    pays = Pays()
    both = [("p1", "pay", {"who": "Ana"}), ("q1", "ask", {"question": "Why?"})]
    layers = [interaction(["ask"], a_round=2), approval(a_round=2)]
    parent = parent_of(paying(*both, pays=pays, layers=layers))
    assert isinstance(drive(parent, "Go", conversation_id="desk"), Paused)
    paused = drive(parent, conversation_id="desk", decisions={"h1": True})
    assert isinstance(paused, Paused)
    assert [each["id"] for each in paused.waiting[0].fact.data["waiting"]] == ["q1"]
    assert isinstance(drive(parent, conversation_id="desk", decisions={"h1": Answer("so")}), Finished)
    assert pays.paid == [("Ana", 1)]


def test_a_question_comes_up_through_any_number_of_agents(drive: Any) -> None:
    pays = Pays()
    middle = parent_of(paying(("p1", "pay", {"who": "Ana"}), pays=pays))
    parent = parent_of(middle)
    paused = drive(parent, "Pay", conversation_id="desk")
    question = """(helper) helper asks: (pay) Run pay? {"who": "Ana"} (conversation 'desk/h1/h1')"""
    assert paused.waiting[0].question == f"helper asks: {question}"
    assert drive(parent, conversation_id="desk", decisions={"h1": True}).reason == "answered"
    assert pays.paid == [("Ana", 1)]


def test_a_call_may_itself_be_approved_before_it_begins_and_then_wait_for_the_child(drive: Any) -> None:
    """The person is not asked twice about the call itself."""
    pays = Pays()
    child = paying(("p1", "pay", {"who": "Ana"}), pays=pays)
    parent = parent_of(child, layers=[approval(when=["helper"]), delegation()])
    assert drive(parent, "Pay", conversation_id="desk").waiting[0].kind == "approval"
    assert drive(parent, conversation_id="desk", decisions={"h1": True}).waiting[0].kind == "delegated"
    assert drive(parent, conversation_id="desk", decisions={"h1": False}).reason == "answered"
    assert (pays.paid, returned(parent, "desk").status) == ([], "ok")


def test_a_childs_question_expires_with_its_own_time_to_live(drive: Any) -> None:
    now = [1000.0]
    pays = Pays()
    child = paying(("p1", "pay", {"who": "Ana"}), pays=pays, layers=[approval(ttl_seconds=60)], clock=lambda: now[0])
    parent = parent_of(child, clock=lambda: now[0])
    assert drive(parent, "Pay", conversation_id="desk").waiting[0].fact.expires_at == 1060.0
    now[0] = 1061.0
    assert drive(parent, conversation_id="desk", decisions={"h1": True}).reason == "answered"
    assert pays.paid == []


def test_a_new_message_declines_what_the_child_waited_for(drive: Any) -> None:
    pays = Pays()
    parent = parent_of(paying(("p1", "pay", {"who": "Ana"}), pays=pays), TASK, "Fine.")
    drive(parent, "Pay", conversation_id="desk")
    assert drive(parent, "Never mind", conversation_id="desk").text == "Fine."
    assert (pays.paid, returned(parent, "desk").status) == ([], "denied")


def test_without_the_layer_a_child_that_waits_is_an_answer_that_says_so(drive: Any) -> None:
    pays = Pays()
    parent = parent_of(paying(("p1", "pay", {"who": "Ana"}), pays=pays), layers=[])
    assert drive(parent, "Pay", conversation_id="desk").reason == "answered"
    told = returned(parent, "desk")
    assert (told.status, pays.paid) == ("interrupted", [])
    assert "a person, who cannot be asked from here" in told.content


# -- another process -----------------------------------------------------------------------------------------------


def test_another_process_goes_on_with_parent_and_child(drive: Any, tmp_path: Path) -> None:
    """C37: both journals are in one store, under their ids."""
    pays = Pays()

    def made(child_script: Any, parent_script: Any) -> Agent:
        store = SqliteStore(tmp_path / "journals.sqlite")
        child = agent(*child_script, tools=[pays.tool], layers=[approval()], store=store)
        return agent(*parent_script, tools=[delegate(child, "helper", "Helps.")], layers=[delegation()], store=store)

    first = made([[("p1", "pay", {"who": "Ana"})]], [TASK])
    assert isinstance(drive(first, "Pay", conversation_id="desk"), Paused)
    assert sorted(first.store.list()) == ["desk", "desk/h1"]
    first.store.close()  # type: ignore[attr-defined]
    second = made(["I paid."], ["So it is."])
    (waiting,) = second.conversation("desk").waiting
    result = drive(second, conversation_id="desk", decisions={waiting.id: True})
    assert (result.text, pays.paid) == ("So it is.", [("Ana", 1)])
    assert returned(second, "desk").content == "I paid."
    second.store.close()  # type: ignore[attr-defined]


def crashed(parent: Agent, until: type[Any]) -> None:
    """The parent's process ends when it has written down the last fact of this kind."""
    facts = parent.store.load("desk")
    last = max(at for at, fact in enumerate(facts) if fact["fact"] == until.__name__)
    parent.store.delete("desk")
    parent.store.append("desk", 0, facts[: last + 1])


def test_a_child_that_had_finished_when_the_parent_crashed_is_not_asked_again(drive: Any) -> None:
    child = agent("It is 42.", "It is something else.")
    parent = parent_of(child, TASK, "So it is.", "So it is.")
    drive(parent, "What is it?", conversation_id="desk")
    crashed(parent, ToolStarted)
    assert drive(parent, conversation_id="desk").reason == "answered"
    assert returned(parent, "desk").content == "It is 42."
    assert len(child.parts.model.requests) == 1  # type: ignore[attr-defined]


def test_a_decision_is_for_what_was_asked_and_for_nothing_that_came_after_it(drive: Any) -> None:
    """The parent crashes after the child has gone on with the approval, and waits for the next one."""
    pays = Pays()
    child = paying(("p1", "pay", {"who": "Ana"}), pays=pays, more=([("p2", "pay", {"who": "Bob"})], "I paid."))
    parent = parent_of(child)
    drive(parent, "Pay", conversation_id="desk")
    assert isinstance(drive(parent, conversation_id="desk", decisions={"h1": True}), Paused)
    crashed(parent, ToolApproved)
    paused = drive(parent, conversation_id="desk")
    assert isinstance(paused, Paused)
    assert [each["id"] for each in paused.waiting[0].fact.data["waiting"]] == ["p2"]
    assert pays.paid == [("Ana", 1)]


def test_a_conversation_that_only_has_the_same_ids_is_not_mistaken_for_the_childs(drive: Any) -> None:
    """The parent was deleted and its id is used again; the child's journal was left behind."""
    child = agent("old", "new")
    parent = parent_of(child, TASK, "Fine.", TASK, "Fine.")
    drive(parent, "What is it?", conversation_id="desk")
    parent.store.delete("desk")
    drive(parent, "What is it?", conversation_id="desk")
    assert returned(parent, "desk").content == "new"


def test_a_waiting_call_that_was_begun_shows_what_happened_in_its_order(drive: Any) -> None:
    parent = parent_of(paying(("p1", "pay", {"who": "Ana"}), pays=Pays()))
    drive(parent, "Pay", conversation_id="desk")
    drive(parent, conversation_id="desk", decisions={"h1": True})
    of_call = [e for e in parent.conversation("desk").journal if getattr(e, "call_id", "") == "h1"]
    names = [type(e).__name__ for e in of_call]
    assert names == ["ToolStarted", "ToolWaiting", "ToolApproved", "ToolStarted", "ToolReturned"]
    assert isinstance(of_call[1], ToolWaiting)


@pytest.mark.parametrize("pauses", [True, False])
def test_a_child_that_has_ended_is_not_cancelled_by_the_end_of_its_parents_turn(pauses: bool) -> None:
    """Its next turn has the same id, and may have begun by then."""
    pays = Pays()
    script = [("p1", "pay", {"who": "Ana"})] if pauses else "Nothing to do."
    child = agent(script, "Paid.", tools=[pays.tool], layers=[approval()])
    ended, late = threading.Event(), list[str]()

    class Child:
        """The agent, with a look at when it is cancelled."""

        def __getattr__(self, name: str) -> Any:
            return getattr(child, name)

        def stream(self, **request: Any) -> Iterator[Any]:
            yield from child.stream(**request)
            ended.set()

        def cancel(self, conversation_id: str) -> bool:
            late.extend([conversation_id] if ended.is_set() else [])
            return child.cancel(conversation_id)

    before = set(threading.enumerate())
    parent_of(Child(), TASK, "So it is.").run("go", conversation_id="p")  # type: ignore[arg-type]
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert ended.is_set()
    assert late == []
