"""Tools whose answer a person gives: PG-5, PG-12, PG-13, PG-15, PG-18."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import SetupError, ToolSearch, tool
from toolsearch.events.facts import Answers, Noted, ToolWaiting, UserSaid
from toolsearch.events.journal import stored
from toolsearch.events.requests import Answer, CallModel, Deny, Paused, Waiting
from toolsearch.layers import approval, interaction, limits, timeout
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


AGAIN = ("q2", "ask_user", {"question": "Anybody?"})


@pytest.mark.parametrize(
    ("ask", "status"),
    [
        (lambda waiting: {}, "denied"),
        (lambda waiting: {w.id: Deny("not now") for w in waiting}, "denied"),
        (lambda waiting: waiting[9], "denied"),
        (lambda waiting: threading.Event().wait(20), "expired"),
    ],
)
def test_a_dialog_without_an_answer_does_not_open_again_in_the_turn(drive: Any, ask: Any, status: str) -> None:
    """PG-13: cancelled, refused, failed or timed out; the next message of the user begins anew."""
    asked: list[str] = []

    def counting(waiting: Sequence[Waiting]) -> Any:
        asked.extend(each.id for each in waiting)
        return ask(waiting) if len(asked) < 2 else {each.id: "Ana Silva" for each in waiting}

    rounds = [[ASK], *[[(f"q{n}", "ask_user", {"question": f"Number {n}?"})] for n in range(2, 9)]]
    agent = agent_with(interaction(KINDS, counting, seconds=0.05), *rounds, "Which Ana?", [("q9", *ASK[1:])], "Thanks.")
    assert drive(agent, "Write to Ana", conversation_id="s").text == "Which Ana?"
    assert asked == ["q1"]
    assert [given for given, _ in results(agent)] == [status] + ["denied"] * 7
    assert all("ask the user to answer in a new message" in text for _, text in results(agent))
    outcomes = [fact.note["outcome"] for fact in agent.conversation("s").journal if isinstance(fact, Noted)]
    assert outcomes == ["declined-repeat"] * 7
    drive(agent, "Ana Silva", conversation_id="s")
    assert asked == ["q1", "q9"]


@pytest.mark.parametrize(("tool_name", "kind"), [("upload_file", "file"), ("show_image", "image")])
@pytest.mark.parametrize("decision", [Deny("closed"), False, None])
def test_an_upload_that_was_cancelled_elsewhere_is_asked_for_in_a_new_message(
    drive: Any, tool_name: str, kind: str, decision: Any
) -> None:
    """PG-13: by a decision in another run, or when the time of the dialog is over (None)."""
    now = [1_000.0]
    agent = agent_with(
        interaction(KINDS, ttl_seconds=60),
        [("f1", tool_name, {})],
        [("f2", tool_name, {}), ("look", {})],
        [("f3", tool_name, {"name": "other"})],
        "Please upload it.",
        clock=lambda: now[0],
    )
    drive(agent, "Read my file", conversation_id="s")
    now[0] += 100 if decision is None else 1
    decisions = {} if decision is None else {"f1": decision}
    assert drive(agent, conversation_id="s", decisions=decisions).text == "Please upload it."
    told = results(agent)
    assert [status for status, _ in told] == ["denied" if decision is not None else "expired", "denied", "ok", "denied"]
    assert f"ask the user to upload the {kind} in a new message" in told[0][1]
    assert "asked earlier in this turn" in told[1][1]


def test_an_answered_dialog_may_be_followed_by_another(drive: Any) -> None:
    """PG-13 is about dialogs that gave nothing; another tool may ask too."""
    said = {"q1": None, "f1": "a file", "f2": "another file"}
    agent = agent_with(
        interaction(KINDS, lambda waiting: {w.id: said[w.id] for w in waiting}),
        [ASK], [("f1", "upload_file", {})], [("f2", "upload_file", {})], [AGAIN],
    )  # fmt: skip
    drive(agent, "Go", conversation_id="s")
    assert [status for status, _ in results(agent)] == ["denied", "ok", "ok", "denied"]


# -- one budget for the dialogs of all layers ----------------------------------------------------------------------


def gates(asked: list[str], *, first: str, in_process: bool, a_round: int) -> list[Any]:
    """Two layers for questions and one for approvals, in one of the two orders."""

    def ask(waiting: Sequence[Waiting]) -> dict[str, Any]:
        asked.append("+".join(each.id for each in waiting))
        return {each.id: True if each.kind == "approval" else "x" for each in waiting}

    handler = ask if in_process else None
    layers: list[Any] = [
        interaction({"ask_user": "question"}, handler, a_round=a_round),
        interaction({"upload_file": "file"}, handler, a_round=a_round),
        approval(handler, when=["look", "show_image"], a_round=a_round),
    ]
    return layers if first == "interaction" else layers[::-1]


@pytest.mark.parametrize("in_process", [True, False])
@pytest.mark.parametrize(
    ("first", "a_round", "dialogs"),
    [
        ("interaction", 1, [["q"], ["f"], ["a+b"]]),
        ("approval", 1, [["a+b"], ["f"], ["q"]]),
        ("interaction", 2, [["q", "f"], ["a+b"]]),
        ("interaction", 3, [["q", "f", "a+b"]]),
    ],
)
def test_the_dialogs_of_all_layers_share_one_budget(
    drive: Any, in_process: bool, first: str, a_round: int, dialogs: list[list[str]]
) -> None:
    """PG-12: two layers of `interaction` and one of `approval`; the calls it gates in a round are one dialog."""
    pending = ["q", "f", "a", "b"]
    tools = {"q": "ask_user", "f": "upload_file", "a": "look", "b": "show_image"}
    numbers = iter(range(99))

    def step(request: CallModel) -> Any:
        turn = request.turn
        done = {call.id.split("_")[0] for call in turn.calls if turn.results[call.id].status in ("ok", "failed")}
        return [(f"{key}_{next(numbers)}", tools[key], {}) for key in pending if key not in done] or "Done."

    asked: list[str] = []
    layers = gates(asked, first=first, in_process=in_process, a_round=a_round)
    agent = Agent(ScriptedModel(*[step] * 9), ToolSearch(TOOLS, mode="static"), layers=layers)
    result = drive(agent, "Go", conversation_id="s")
    rounds: list[list[str]] = []
    while isinstance(result, Paused):
        keys = [each.id.split("_")[0] for each in result.waiting]
        gated = [key for key in keys if key in "ab"]
        rounds.append([key for key in keys if key not in "ab"] + (["+".join(gated)] if gated else []))
        decisions = {w.id: True if w.kind == "approval" else Answer("x") for w in result.waiting}
        result = drive(agent, conversation_id="s", decisions=decisions)
    assert result.text == "Done."
    journal = agent.conversation("s").journal
    if in_process:
        assert [re.sub(r"_\d+", "", each) for each in asked] == [each for together in dialogs for each in together]
        rounds = [[] for _ in agent.conversation("s").turn.replies[:-1]]
    else:
        assert rounds == dialogs
    assert len(rounds) == len(dialogs), "as many rounds as the budget needs"
    left = {fact.note["outcome"] for fact in journal if isinstance(fact, Noted)}
    assert left == ({"interaction-budget"} if len(dialogs) > 1 else set())


def test_a_gated_call_that_was_deferred_has_not_run(drive: Any) -> None:
    """PG-12: it gets no approval by the way, and comes again in the next step."""
    asked: list[str] = []
    layers = gates(asked, first="interaction", in_process=True, a_round=1)
    agent = Agent(
        ScriptedModel([ASK, ("l1", "look", {})], [("l2", "look", {})], "Seen."),
        ToolSearch(TOOLS, mode="static"),
        layers=layers,
    )
    drive(agent, "Go", conversation_id="s")
    assert asked == ["q1", "l2"]
    assert [status for status, _ in results(agent)] == ["ok", "limit", "ok"]
    assert "Call it again in the next step." in results(agent)[1][1]


def test_approvals_that_a_crash_cut_in_two_are_one_dialog_still(drive: Any) -> None:
    """PG-12: the calls that the layer did not come to belong to the dialog it had begun."""
    calls = [("l1", "look", {}), ("i1", "show_image", {})]
    gate = approval(when=["look", "show_image"])
    one = agent_with(gate, calls)
    drive(one, "Go", conversation_id="s")
    journal = one.conversation("s").journal
    asked = next(at for at, fact in enumerate(journal) if isinstance(fact, ToolWaiting))
    other = agent_with(gate, "Done.")
    other.store.append("s", 0, [stored(fact) for fact in journal[: asked + 1]])
    paused = drive(other, conversation_id="s")
    assert [each.id for each in paused.waiting] == ["l1", "i1"]


ANSWERS: dict[str, Any] = {"given": "x", "nothing": None, "denied": Deny("no")}
PLAYED = st.lists(  # rounds, each with calls of tools that ask, and how the person reacts to each
    st.lists(st.tuples(st.sampled_from([*KINDS.values(), "gated"]), st.sampled_from([*ANSWERS, "raises"])), max_size=4),
    max_size=6,
)
ASKS = {"question": "ask_user", "file": "upload_file", "image": "show_image", "gated": "look"}


@given(
    rounds=PLAYED,
    order=st.permutations(["question", "file", "image", "gated"]),
    a_round=st.integers(1, 3),
    together=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_whatever_is_asked_a_round_has_its_budget_and_nobody_is_asked_in_vain_twice(
    rounds: list[list[tuple[str, str]]], order: list[str], a_round: int, together: bool
) -> None:
    """PG-12, PG-13: in any order of layers, with any reaction; and every call has exactly one answer."""
    reactions = {f"r{n}c{m}": how for n, calls in enumerate(rounds) for m, (_, how) in enumerate(calls)}
    asked: list[Sequence[Waiting]] = []  # what was asked at once

    def ask(waiting: Sequence[Waiting]) -> dict[str, Any]:
        asked.append(waiting)
        if any(reactions[each.id] == "raises" for each in waiting):
            raise OSError("the window is gone")
        return {each.id: ANSWERS[reactions[each.id]] if each.kind != "approval" else True for each in waiting}

    layers: list[Any] = []
    for kind in order:
        if kind == "gated":
            layers.append(approval(ask, when=["look"], a_round=a_round))
        elif not together:
            layers.append(interaction({ASKS[kind]: kind}, ask, a_round=a_round))
    if together:
        layers.append(interaction(KINDS, ask, a_round=a_round))
    script = [
        [(f"r{n}c{m}", ASKS[kind], {}) for m, (kind, _) in enumerate(calls)] or "Hm." for n, calls in enumerate(rounds)
    ]
    agent = Agent(ScriptedModel(*script), ToolSearch(TOOLS, mode="static"), layers=[*layers, limits(identical=None)])
    agent.run("Go", conversation_id="s")

    turn = agent.conversation("s").turn
    assert {call.id for call in turn.calls} == set(turn.results), "every call has its answer"
    for n in range(len(rounds)):
        dialogs = [waiting for waiting in asked if waiting[0].id.startswith(f"r{n}c")]
        assert sum(1 if waiting[0].kind == "approval" else len(waiting) for waiting in dialogs) <= a_round
    vain: set[str] = set()  # the tools whose dialog gave nothing
    for waiting in asked:
        assert not vain & {each.name for each in waiting}
        vain |= {each.name for each in waiting if turn.results[each.id].status in ("denied", "expired")}


@pytest.mark.parametrize("layer", [interaction, approval])
def test_a_dialog_ends_before_the_turn_does(drive: Any, layer: Any) -> None:
    """PG-12: its time is at most four fifths of what the turn has left, so the model can still answer."""
    release = threading.Event()
    what = {"tools": ["ask_user"]} if layer is interaction else {"when": ["ask_user"]}
    dialog = layer(ask=lambda waiting: release.wait(30) and {}, seconds=60, **what)
    agent = Agent(
        ScriptedModel([ASK], "Without, then."),
        ToolSearch(TOOLS, mode="static"),
        layers=[timeout(turn=2.0), dialog],
    )
    result = drive(agent, "Go", conversation_id="s")
    release.set()
    assert (result.reason, result.text) == ("answered", "Without, then.")
    assert results(agent)[0][0] == "expired"


def test_a_dialog_lasts_no_longer_than_its_call_can_be_answered(drive: Any) -> None:
    release = threading.Event()
    dialog = interaction(KINDS, lambda waiting: release.wait(30) and {}, seconds=60, ttl_seconds=0.05)
    agent = agent_with(dialog, [ASK], "Without, then.")
    assert drive(agent, "Go", conversation_id="s").text == "Without, then."
    release.set()
    assert results(agent)[0][0] == "expired"


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
