"""The program's own check of a call, before anybody is asked and right before it runs: NA-7."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from toolsearch import SetupError, ToolSearch, tool
from toolsearch.events.facts import Answers, Noted, RunEnded, ToolReturned, ToolStarted
from toolsearch.events.journal import stored
from toolsearch.events.requests import Approve, Call, CallModel, Paused, Waiting
from toolsearch.layers import Completed, Denied, Ready, approval, preflight
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


class Bank:
    """A tool that pays, what it did, and what a check was asked."""

    def __init__(self, prepare: Any = None, execute: Any = None) -> None:
        self.said = {"prepare": prepare, "execute": execute}
        self.did: list[str] = []
        self.checked: list[tuple[str, str]] = []
        self.search = ToolSearch([tool(self.pay, kind="action"), tool(self.look)], mode="static")

    def pay(self, who: str) -> str:
        """Pay somebody."""
        self.did.append(f"pay {who}")
        return f"paid {who}"

    def look(self) -> str:
        """Look."""
        self.did.append("look")
        return "seen"

    def check(self, call: Call, phase: str) -> Any:
        self.checked.append((phase, call.judged.name))
        said = self.said[phase]
        said = said(call) if callable(said) and not isinstance(said, type) else said
        if isinstance(said, BaseException):
            raise said
        return said

    def agent(self, *script: Any, layers: Sequence[Any] = (), tools: Any = ("pay",)) -> Agent:
        return Agent(ScriptedModel(*script), self.search, layers=[preflight(self.check, tools=tools), *layers])


def results(agent: Agent) -> list[tuple[str, str]]:
    transcript = agent.conversation("s").transcript
    return [(r.status, r.content) for m in transcript if isinstance(m, Answers) for r in m.results]


def notes(agent: Agent) -> list[Any]:
    journal = agent.conversation("s").journal
    return [fact.note for fact in journal if isinstance(fact, Noted) and fact.layer == "preflight"]


PAY = ("c1", "pay", {"who": "ana"})


@pytest.mark.parametrize("ready", [None, Ready()])
def test_a_call_is_checked_when_it_is_prepared_and_again_right_before_it_runs(drive: Any, ready: Any) -> None:
    bank = Bank(ready, ready)
    agent = bank.agent([PAY, ("look", {})])
    drive(agent, "Pay", conversation_id="s")
    assert bank.checked == [("prepare", "pay"), ("execute", "pay")], "only the tools that are named"
    assert bank.did == ["pay ana", "look"]
    assert [(note["phase"], note["outcome"]) for note in notes(agent)] == [("prepare", "ready"), ("execute", "ready")]


def test_every_tool_is_checked_where_none_is_named_but_no_search(drive: Any) -> None:
    bank = Bank()
    agent = bank.agent([PAY, ("look", {}), ("search_tools", {"queries": ["x"]}), ("no_such", {})], tools=None)
    drive(agent, "Pay", conversation_id="s")
    assert sorted(set(bank.checked)) == [
        ("execute", "look"),
        ("execute", "pay"),
        ("prepare", "look"),
        ("prepare", "pay"),
    ]


def test_its_wording_is_the_question_a_person_is_asked(drive: Any) -> None:
    bank = Bank(lambda call: Ready(f"Pay {call.arguments['who'].title()} 20 euros from the shared account?"))
    paused = drive(bank.agent([PAY], layers=[approval()]), "Pay", conversation_id="s")
    assert isinstance(paused, Paused)
    assert paused.waiting[0].question == "Pay Ana 20 euros from the shared account? (pay; conversation 's')"


def test_its_wording_reaches_a_handler_in_this_process_too(drive: Any) -> None:
    asked: list[str] = []

    def ask(waiting: Sequence[Waiting]) -> dict[str, bool]:
        asked.extend(each.question for each in waiting)
        return {each.id: True for each in waiting}

    bank = Bank(Ready("Really?"))
    drive(bank.agent([PAY], layers=[approval(ask)]), "Pay", conversation_id="s")
    assert asked == ["Really? (pay; conversation 's')"]
    assert bank.did == ["pay ana"]


def test_what_is_denied_is_not_asked_about_and_does_not_run(drive: Any) -> None:
    bank = Bank(Denied("the account is closed"))
    agent = bank.agent([PAY, ("look", {})], layers=[approval()])
    result = drive(agent, "Pay", conversation_id="s")
    assert not isinstance(result, Paused)
    assert results(agent)[0][0] == "denied"
    assert "the account is closed" in results(agent)[0][1]
    assert bank.did == ["look"]


def test_what_is_completed_needs_no_approval_and_runs_nothing(drive: Any) -> None:
    bank = Bank(Completed({"paid": "yesterday"}))
    agent = bank.agent([PAY], layers=[approval()])
    drive(agent, "Pay", conversation_id="s")
    assert results(agent) == [("ok", '{"paid": "yesterday"}')]
    assert not bank.did


def test_it_looks_again_when_an_earlier_approval_stands_for_the_call(drive: Any) -> None:
    """NA-7: remembered or not, prepare and execute both happen."""
    money = [20]

    def enough(_: Call) -> Any:
        money[0] -= 15
        return Ready() if money[0] >= 0 else Denied("there is not enough money")

    def ask(waiting: Sequence[Waiting]) -> Any:
        return {each.id: Approve(remember="session") for each in waiting}

    bank = Bank(execute=enough)
    agent = bank.agent([PAY], [("c2", "pay", {"who": "bob"})], layers=[approval(ask)])
    drive(agent, "Pay", conversation_id="s")
    assert bank.did == ["pay ana"]
    assert [status for status, _ in results(agent)] == ["ok", "denied"]
    assert bank.checked == [("prepare", "pay"), ("execute", "pay")] * 2


def test_the_last_look_sees_the_arguments_that_were_approved_and_may_complete_the_call(drive: Any) -> None:
    seen: list[Any] = []

    def execute(call: Call) -> Any:
        seen.append(call.arguments)
        return Completed("paid by hand")

    bank = Bank(execute=execute)
    agent = bank.agent([PAY], layers=[approval(lambda waiting: {w.id: Approve({"who": "bob"}) for w in waiting})])
    drive(agent, "Pay", conversation_id="s")
    assert seen == [{"who": "bob"}]
    assert results(agent) == [("ok", "paid by hand")]
    assert not bank.did


@pytest.mark.parametrize("phase", ["prepare", "execute"])
@pytest.mark.parametrize("broken", [LookupError("no such account"), TimeoutError(), "yes"], ids=repr)
def test_a_check_that_fails_or_says_nothing_clear_lets_the_call_not_run(drive: Any, phase: str, broken: Any) -> None:
    bank = Bank(**{phase: broken})
    agent = bank.agent([PAY, ("look", {})])
    drive(agent, "Pay", conversation_id="s")
    assert bank.did == ["look"]
    assert results(agent)[0][0] == "denied"
    assert "check before it failed" in results(agent)[0][1]


def test_an_async_check_is_awaited_and_a_sync_run_names_arun(drive: Any) -> None:
    bank = Bank()

    async def check(call: Call, phase: str) -> Ready:
        await asyncio.sleep(0)
        return Ready()

    agent = Agent(ScriptedModel([PAY]), bank.search, layers=[preflight(check)])
    if drive.is_async:
        drive(agent, "Pay", conversation_id="s")
        assert bank.did == ["pay ana"]
    else:
        with pytest.raises(SetupError, match="arun"):
            drive(agent, "Pay", conversation_id="s")
        assert not bank.did


@pytest.mark.parametrize("said", [Ready("Really?"), Denied("closed"), Completed("done")])
def test_what_was_prepared_before_a_restart_is_not_prepared_again(drive: Any, said: Any) -> None:
    """NA-7: journaled."""
    first = Bank(said)
    one = first.agent([PAY], layers=[approval()])
    drive(one, "Pay", conversation_id="s")
    journal = one.conversation("s").journal
    noted = next(at for at, fact in enumerate(journal) if isinstance(fact, Noted))
    second = Bank(AssertionError("asked twice"))
    other = second.agent("Well.", layers=[approval()])
    other.store.append("s", 0, [stored(fact) for fact in journal[: noted + 1]])
    result = drive(other, conversation_id="s")
    assert not second.checked
    if isinstance(said, Ready):
        assert isinstance(result, Paused)
        assert result.waiting[0].question == "Really? (pay; conversation 's')"
        drive(other, conversation_id="s", decisions={"c1": True})
        assert second.checked == [("execute", "pay")]
        assert second.did == ["pay ana"]
    else:
        assert results(other)[0][0] == ("denied" if isinstance(said, Denied) else "ok")


def test_facts_come_in_the_order_things_happen(drive: Any) -> None:
    bank = Bank(Ready(), Ready())
    agent = bank.agent([PAY])
    drive(agent, "Pay", conversation_id="s")
    journal = [
        f for f in agent.conversation("s").journal if isinstance(f, Noted | ToolStarted | ToolReturned | RunEnded)
    ]
    assert [type(fact).__name__ for fact in journal] == ["Noted", "ToolStarted", "Noted", "ToolReturned", "RunEnded"]
    assert all(fact.at > 0 for fact in journal), "a layer knows no time; the driver gives it"


def test_a_model_that_is_refused_reads_why_and_what_to_do(drive: Any) -> None:
    """PG-15."""
    bank = Bank(Denied("the account is closed."))
    read: list[str] = []

    def step(request: CallModel) -> Any:
        read.append(request.transcript[-1].results[0].content)  # type: ignore[union-attr]
        return "I see."

    drive(bank.agent([PAY], step), "Pay", conversation_id="s")
    why, what = "'pay' did not run: the account is closed.", "Do not try it again unchanged"
    assert read == [f"{why} {what}: correct what is wrong, or go on without it."]


def test_options_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(SetupError, match="check must be a function of a Call and a phase"):
        preflight(True)  # type: ignore[arg-type]
    with pytest.raises(SetupError, match=r"as in \['pay'\]"):
        preflight(Bank().check, tools="pay")
