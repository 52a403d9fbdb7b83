"""Tools whose answer a person gives: PG-5, PG-12, PG-15, PG-18."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from toolsearch import SetupError, ToolSearch, tool
from toolsearch.events.facts import Answers, Noted, ToolWaiting, UserSaid
from toolsearch.events.journal import stored
from toolsearch.events.requests import Answer, CallModel, Deny, Paused, Waiting
from toolsearch.layers import approval, interaction
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel

QUESTION = {"type": "object", "properties": {"question": {"type": "string"}}}
TOOLS = [
    {"name": "ask_user", "description": "Ask the user", "parameters": QUESTION},
    {"name": "upload_file", "server": "ui", "description": "Let the user give a file"},
    {"name": "show_image", "description": "Let the user give an image"},
    tool(lambda: "seen", name="look", description="Look"),
]
KINDS = {"ask_user": "question", "ui/upload_file": "file", "show_image": "image"}
ASK = ("q1", "ask_user", {"question": "Which Ana?"})


def agent_with(layer: Any, *script: Any, **options: Any) -> Agent:
    return Agent(ScriptedModel(*script), ToolSearch(TOOLS, mode="static"), layers=[layer], **options)


def results(agent: Agent) -> list[tuple[str, str]]:
    transcript = agent.conversation("s").transcript
    return [(r.status, r.content) for m in transcript if isinstance(m, Answers) for r in m.results]


def test_a_question_pauses_the_run_and_its_answer_is_the_result(drive: Any) -> None:
    agent = agent_with(interaction(KINDS), [ASK, ("look", {})], "Thanks.")
    paused = drive(agent, "Write to Ana", conversation_id="s")
    assert isinstance(paused, Paused)
    assert [(w.id, w.kind, w.question) for w in paused.waiting] == [("q1", "question", "Which Ana?")]
    result = drive(agent, conversation_id="s", decisions={"q1": Answer("Ana Silva", {"id": 7})})
    assert result.text == "Thanks."
    assert results(agent) == [("ok", "Ana Silva"), ("ok", "seen")]


def test_a_handler_in_this_process_is_asked_and_may_answer_with_text(drive: Any) -> None:
    asked: list[Waiting] = []

    def ask(waiting: Sequence[Waiting]) -> dict[str, str]:
        asked.extend(waiting)
        return {each.id: "Ana Silva" for each in waiting}

    agent = agent_with(interaction(["ask_user"], ask), [ASK], "Thanks.")
    assert drive(agent, "Write to Ana", conversation_id="s").text == "Thanks."
    assert [(each.kind, each.question) for each in asked] == [("question", "Which Ana?")]
    assert results(agent) == [("ok", "Ana Silva")]


@pytest.mark.parametrize(("a_round", "deferred"), [(1, 2), (2, 1), (3, 0)])
def test_one_question_a_round_the_others_are_told_to_come_again(drive: Any, a_round: int, deferred: int) -> None:
    """PG-12, PG-15: by default one."""
    calls = [ASK, ("f1", "upload_file", {}), ("i1", "show_image", {}), ("l1", "look", {})]
    agent = agent_with(interaction(KINDS, a_round=a_round), calls)
    paused = drive(agent, "Go", conversation_id="s")
    assert [each.id for each in paused.waiting] == ["q1", "f1", "i1"][:a_round]
    journal = agent.conversation("s").journal
    outcomes = [fact.note for fact in journal if isinstance(fact, Noted)]
    assert outcomes == [
        {"outcome": "interaction-budget", "call": call_id}
        for call_id in ["q1", "f1", "i1"][a_round : a_round + deferred]
    ]
    drive(agent, conversation_id="s", decisions={each.id: Answer("x") for each in paused.waiting})
    assert [status for status, _ in results(agent)] == ["ok"] * a_round + ["limit"] * deferred + ["ok"]
    if deferred:
        assert "Call it again in the next step." in results(agent)[a_round][1]


def test_a_deferred_question_is_asked_when_it_comes_again(drive: Any) -> None:
    """PG-12: being deferred is no repetition, however often it happens."""
    together = [ASK, ("f1", "upload_file", {})]
    agent = agent_with(
        interaction(KINDS, lambda waiting: {w.id: w.kind for w in waiting}),
        *[together] * 3,
        [("f1", "upload_file", {})],
    )
    drive(agent, "Go", conversation_id="s")
    assert [status for status, _ in results(agent)] == ["ok", "limit"] * 3 + ["ok"]


def test_the_budget_of_a_round_is_the_same_after_a_restart(drive: Any) -> None:
    """A process that asked one question and died leaves no room for a second in that round."""
    calls = [ASK, ("f1", "upload_file", {})]
    one = agent_with(interaction(KINDS, a_round=2), calls)
    drive(one, "Go", conversation_id="s")
    journal = one.conversation("s").journal
    asked = next(at for at, fact in enumerate(journal) if isinstance(fact, ToolWaiting))
    other = agent_with(interaction(KINDS), "Done.")
    other.store.append("s", 0, [stored(fact) for fact in journal[: asked + 1]])
    paused = drive(other, conversation_id="s")
    assert [each.id for each in paused.waiting] == ["q1"]
    drive(other, conversation_id="s", decisions={"q1": Answer("x")})
    assert [status for status, _ in results(other)] == ["ok", "limit"]


@pytest.mark.parametrize("in_process", [True, False])
def test_an_answer_may_bring_a_message_of_the_user_that_is_read_after_the_round(drive: Any, in_process: bool) -> None:
    """PG-5: follow-up messages; an image is in no result."""
    image = UserSaid("The image you asked for.", ({"type": "image_url", "image_url": {"url": "data:…"}},))
    answer = Answer("It follows.", said=image)
    read: list[list[str]] = []

    def step(request: CallModel) -> str:
        read.append([type(message).__name__ for message in request.transcript])
        assert request.transcript[-1].parts == image.parts  # type: ignore[union-attr]
        return "A cat."

    ask = (lambda waiting: {w.id: answer for w in waiting}) if in_process else None
    agent = agent_with(interaction(KINDS, ask), [("i1", "show_image", {}), ("look", {})], step)
    result = drive(agent, "What is this?", conversation_id="s")
    if not in_process:
        result = drive(agent, conversation_id="s", decisions={"i1": answer})
    assert result.text == "A cat."
    assert read == [["UserSaid", "ModelReplied", "Answers", "UserSaid"]]
    assert [status for status, _ in results(agent)] == ["ok", "ok"]


def test_no_answer_in_time_means_that_nothing_was_provided(drive: Any) -> None:
    """PG-18: a time-out in this process."""
    release = threading.Event()

    def ask(waiting: Sequence[Waiting]) -> dict[str, str]:
        release.wait(20)
        return {each.id: "too late" for each in waiting}

    agent = agent_with(interaction(KINDS, ask, seconds=0.05), [ASK], "Without, then.")
    assert drive(agent, "Go", conversation_id="s").text == "Without, then."
    release.set()
    assert results(agent)[0][0] == "expired"
    assert "nobody answered in time" in results(agent)[0][1]


def test_a_question_that_waits_in_a_store_expires(drive: Any) -> None:
    """PG-18: a time-out across processes."""
    now = [1_000.0]
    agent = agent_with(interaction(KINDS, ttl_seconds=180), [ASK], clock=lambda: now[0])
    assert drive(agent, "Go", conversation_id="s").waiting[0].fact.expires_at == 1_180.0
    now[0] = 1_200.0
    drive(agent, conversation_id="s", decisions={"q1": Answer("too late")})
    assert results(agent)[0][0] == "expired"
    assert "nobody answered in time" in results(agent)[0][1]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda waiting: {}, "provided nothing"),
        (lambda waiting: dict.fromkeys(w.id for w in waiting), "provided nothing"),
        (lambda waiting: {w.id: Deny("none of your business") for w in waiting}, "none of your business"),
        (lambda waiting: "Ana", "asking failed"),
        (lambda waiting: waiting[9], "asking failed"),
    ],
)
def test_whatever_goes_wrong_the_model_is_told_that_there_is_no_answer(drive: Any, ask: Any, said: str) -> None:
    agent = agent_with(interaction(KINDS, ask), [ASK, ("look", {})], "Well.")
    assert drive(agent, "Go", conversation_id="s").text == "Well."
    assert results(agent)[0][0] == "denied"
    assert said in results(agent)[0][1]
    assert results(agent)[1] == ("ok", "seen")


def test_a_question_that_expired_may_be_asked_again(drive: Any) -> None:
    """PG-13 is about approvals: a tool that asks is not declined for the turn because nobody was there."""
    now = [1_000.0]
    agent = Agent(
        ScriptedModel([ASK], [("q2", "ask_user", {"question": "Anybody?"})], "Thanks."),
        ToolSearch(TOOLS, mode="static"),
        layers=[approval(lambda waiting: {}, when=["look"]), interaction(KINDS, ttl_seconds=60)],
        clock=lambda: now[0],
    )
    drive(agent, "Go", conversation_id="s")
    now[0] += 100
    again = drive(agent, conversation_id="s")
    assert [each.id for each in again.waiting] == ["q2"]
    drive(agent, conversation_id="s", decisions={"q2": Answer("Yes")})
    assert [status for status, _ in results(agent)] == ["expired", "ok"]


def test_a_question_without_words_shows_what_the_tool_was_called_with(drive: Any) -> None:
    agent = agent_with(interaction(KINDS), [("f1", "upload_file", {})])
    assert drive(agent, "Go").waiting[0].question == "upload_file: {}"


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda: interaction("ask_user"), r"as in \['ask_user'\]"),
        (lambda: interaction(KINDS, True), "ask must be a function"),
        (lambda: interaction(KINDS, a_round=0), "a_round must be a whole number of at least 1"),
        (lambda: interaction(KINDS, seconds=0), "seconds must be a number of seconds above 0"),
        (lambda: interaction({"ask_user": "approval"}), "'ask_user' cannot want 'approval'"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(made: Callable[[], Any], named: str) -> None:
    with pytest.raises(SetupError, match=named):
        made()
