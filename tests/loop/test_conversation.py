"""The state machine: what may happen, what follows, and that a journal says it all."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from toolsearch import Caller, SetupError, StateError, ToolCall, ToolSearch, tool
from toolsearch.catalog import Marks
from toolsearch.events.facts import (
    Answers,
    Compacted,
    Ending,
    Event,
    JudgedCall,
    ModelReplied,
    Note,
    Noted,
    RunBegan,
    RunEnded,
    TextDelta,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolsRevealed,
    ToolStarted,
    ToolsUnloaded,
    ToolWaiting,
    UserSaid,
)
from toolsearch.events.journal import cleaned, stored
from toolsearch.events.requests import CallModel, CallTools, Finished, Paused
from toolsearch.loop.conversation import Conversation


def definition(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The {name} tool", "run": lambda **given: given, **more}


TOOLS = [definition("look"), definition("write", kind="action"), *(definition(f"box_{n}") for n in range(6))]
SEARCH = ToolSearch(TOOLS, mode="append", pinned=["look"], max_tools=5)  # so that found tools have to leave, too


def begun(*facts: Event, kind: type[Conversation] = Conversation) -> Conversation:
    """A conversation in which the user has said something, and these facts have happened."""
    conversation = kind(SEARCH.session())
    for fact in (RunBegan("r1"), UserSaid("hi"), *facts):
        conversation.apply(fact)
    return conversation


def known(conversation: Conversation) -> Any:
    """All that is known of a conversation, as one value."""
    return (
        conversation.journal,
        conversation.transcript,
        conversation.places(),
        conversation.running,
        conversation.open,
        conversation.waiting,
        conversation.next(),
        conversation.session.loaded,
        conversation.session.export() if conversation.open else None,  # what is callable matters to open calls only
    )


def asks(*ids: str, **marks: bool) -> ModelReplied:
    return ModelReplied("", tuple(JudgedCall(i, "look", {}, tool="look", given={}, marks=Marks(**marks)) for i in ids))


def answer(call_id: str, text: str = "seen", status: Any = "ok", data: Any = None) -> ToolReturned:
    return ToolReturned(call_id, status, text, data)


# -- what cannot be ----------------------------------------------------------------------------------------------------

FRESH = [RunBegan("r1"), UserSaid("hi")]
OPEN = [*FRESH, asks("c1", "c2")]
ONCE = [*FRESH, asks("c1", "c2", repeatable=False), ToolStarted("c1")]
WAITS = [*OPEN, ToolWaiting("c1")]
APPROVED = [*WAITS, ToolApproved("c1")]
DENIED = [*WAITS, ToolDenied("c1")]
HALF = [*OPEN, answer("c1")]
CLOSED = [*HALF, answer("c2")]
SAID = [*FRESH, ModelReplied("hello")]
OVER = [*SAID, RunEnded("answered", "hello")]

ILLEGAL: list[tuple[list[Event], Any, str]] = [
    ([], UserSaid("hi"), "no turn has begun"),
    ([], ModelReplied("hi"), "no turn has begun"),
    ([], Ending("limit"), "no turn has begun"),
    ([], RunEnded("answered"), "no turn has begun"),
    ([], ToolStarted("c1"), "'c1' was never made"),
    ([], ToolReturned("c1", "ok", ""), "'c1' was never made"),
    ([], Compacted(-1), "cannot cut at place -1"),
    ([], Compacted(1), "the journal is shorter"),
    (FRESH, RunBegan("r2"), "a turn has begun already"),
    (FRESH, asks("c1", "c1"), "'c1' is used already"),
    (FRESH, asks(""), "'' is used already"),
    (FRESH, Compacted(3), "the journal is shorter"),
    (SAID, ModelReplied("and more"), "the last message is a reply"),
    ([], ToolsRevealed(("look",), said="[look]"), "that is not the last one"),
    (SAID, ToolsRevealed(("look",), said="[look]"), "that is not the last one"),
    (OPEN, ToolsRevealed(("look",), said="[look]"), "that is not the last one"),
    ([*FRESH, RunEnded("cancelled")], ToolsRevealed(("look",), said="[look]"), "that is not the last one"),
    ([*SAID, ToolsUnloaded(notices=("a has changed",))], ModelReplied("and more"), "the last message is a reply"),
    (OPEN, ModelReplied("hello"), "no answer yet"),
    (OPEN, RunEnded("answered"), "'c1' has no answer"),
    (OPEN, ToolReturned("c3", "ok", ""), "'c3' was never made"),
    (OPEN, ToolApproved("c1"), "is not waiting"),
    (OPEN, ToolDenied("c1"), "is not waiting"),
    (OPEN, ToolsFound("c1"), "is not a search"),
    (OPEN, Compacted(3), "no answer yet"),
    (ONCE, ToolStarted("c1"), "may not run twice"),
    ([*ONCE, ToolWaiting("c1")], ToolStarted("c1"), "waits for a person"),
    ([*ONCE, ToolWaiting("c1"), ToolDenied("c1")], ToolStarted("c1"), "waits for a person"),
    ([*ONCE, ToolWaiting("c1"), ToolDenied("c1")], ToolWaiting("c1"), "was declined"),
    ([*ONCE, ToolWaiting("c1", "delegated")], ToolWaiting("c1", "delegated"), "waits already"),
    ([*ONCE, ToolWaiting("c1", "delegated"), ToolDenied("c1")], ToolApproved("c1"), "decided already"),
    (WAITS, ToolStarted("c1"), "waits for a person"),
    (WAITS, ToolWaiting("c1"), "waits already"),
    (APPROVED, ToolApproved("c1"), "decided already"),
    (APPROVED, ToolDenied("c1"), "decided already"),
    (DENIED, ToolApproved("c1"), "decided already"),
    (DENIED, ToolDenied("c1"), "decided already"),
    (DENIED, ToolStarted("c1"), "waits for a person"),
    (DENIED, ToolWaiting("c1"), "was declined"),
    (HALF, answer("c1", "another"), "'c1' has its answer already"),
    (HALF, ToolStarted("c1"), "'c1' has its answer already"),
    (HALF, ToolWaiting("c1"), "'c1' has its answer already"),
    (HALF, RunEnded("answered"), "'c2' has no answer"),
    (CLOSED, answer("c1", "late"), "'c1' has its answer already"),
    (CLOSED, asks("c1"), "'c1' is used already"),
    (OVER, UserSaid("hi"), "no turn has begun"),
    (OVER, RunEnded("answered"), "no turn has begun"),
    (OVER, Ending("limit"), "no turn has begun"),
    (FRESH, TextDelta("hi"), "is not a fact"),
    (FRESH, JudgedCall("c1", "look"), "is not a fact"),
    (FRESH, None, "is not a fact"),
]


@pytest.mark.parametrize(("before", "fact", "why"), ILLEGAL)
def test_a_fact_that_cannot_be_is_refused_and_changes_nothing(before: list[Event], fact: Any, why: str) -> None:
    conversation = Conversation(SEARCH.session())
    for each in before:
        conversation.apply(each)
    was = known(conversation)
    with pytest.raises(StateError, match=why):
        conversation.apply(fact)
    assert known(conversation) == was


def test_what_may_happen_twice() -> None:
    """A repeatable call begins again after a crash; an approved one may be asked about again before it begins."""
    conversation = begun(asks("c1"), ToolStarted("c1"), ToolStarted("c1"), answer("c1"))
    assert isinstance(conversation.next(), CallModel)
    conversation = begun(asks("c1"), ToolWaiting("c1"), ToolApproved("c1"), ToolWaiting("c1", "question"))
    assert [each.kind for each in conversation.waiting] == ["question"]


def test_a_call_that_was_begun_may_wait_and_begins_again_when_it_is_approved() -> None:
    """It gave back that it waits, so what came of it is known: also one that may not run twice goes on."""
    conversation = begun(asks("c1", repeatable=False), ToolStarted("c1"), ToolWaiting("c1"))
    assert isinstance(paused := conversation.next(), Paused)
    assert [each.id for each in paused.waiting] == ["c1"]
    conversation.apply(ToolApproved("c1"))
    assert isinstance(command := conversation.next(), CallTools)
    assert (command.started, set(command.approved), command.delegated) == (frozenset(), {"c1"}, {})
    for fact in (ToolStarted("c1"), answer("c1")):
        conversation.apply(fact)
    assert isinstance(conversation.next(), CallModel)


@pytest.mark.parametrize("decision", [ToolApproved("c1"), ToolDenied("c1", "no")])
def test_what_is_decided_about_something_a_call_began_is_handed_on_to_it(decision: Any) -> None:
    """A refusal too: the call itself goes on, and may come to wait again."""
    conversation = begun(asks("c1", "c2"), ToolStarted("c1"), ToolWaiting("c1", "delegated"), answer("c2"), decision)
    assert isinstance(command := conversation.next(), CallTools)
    assert [call.id for call in command.calls] == ["c1"]
    assert (set(command.approved), command.denied, command.delegated) == ({"c1"}, {}, {"c1": decision})
    for fact in (ToolStarted("c1"), ToolWaiting("c1", "delegated", "again")):
        conversation.apply(fact)
    assert [each.question for each in conversation.waiting] == ["again"]
    again = Conversation.replay(SEARCH, conversation.export(), conversation_id=conversation.id)
    assert (again.waiting, again.next()) == (conversation.waiting, conversation.next())


# -- any order of answers gives one transcript -------------------------------------------------------------------------


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[str], list[list[Event]], list[Event]]:
    """The calls of a reply, for each what happens to it in order, and what is said meanwhile."""
    ids = [f"c{n}" for n in range(draw(st.integers(1, 4)))]
    lives: list[list[Event]] = []
    for i in ids:
        result = answer(i, draw(st.sampled_from(["seen", "gone", ""])), draw(st.sampled_from(["ok", "failed"])))
        lives.append(
            draw(
                st.sampled_from(
                    [
                        [result],
                        [ToolStarted(i), result],
                        [ToolStarted(i), ToolStarted(i), result],
                        [ToolWaiting(i), ToolApproved(i), ToolStarted(i), result],
                        [ToolWaiting(i), ToolDenied(i, "no"), result],
                        [ToolWaiting(i, "question"), result],
                    ]
                )
            )
        )
    said: list[list[Event]] = [[], [UserSaid("wait")], [UserSaid("wait"), UserSaid("go on")]]
    return ids, lives, draw(st.sampled_from(said))


def interleaved(draw: st.DrawFn, lives: list[list[Event]]) -> list[Event]:
    """One of the orders in which all of this can happen; each life keeps its own."""
    turns = draw(st.permutations([place for place, life in enumerate(lives) for _ in life]))
    left = [iter(life) for life in lives]
    return [next(left[place]) for place in turns]


@st.composite
def two_orders(draw: st.DrawFn) -> tuple[ModelReplied, list[Event], list[Event]]:
    ids, lives, said = draw(batches())
    # What is said after the last answer is read after it in any case, so it stands before one.
    orders = []
    for _ in range(2):
        order = interleaved(draw, lives)
        places = sorted(draw(st.lists(st.integers(0, len(order) - 1), min_size=len(said), max_size=len(said))))
        for place, fact in reversed(list(zip(places, said, strict=True))):
            order.insert(place, fact)
        orders.append(order)
    return asks(*ids), orders[0], orders[1]


def outcome(kind: type[Conversation], reply: ModelReplied, order: Iterable[Event]) -> Any:
    conversation = begun(reply, *order, kind=kind)
    command = conversation.next()
    assert isinstance(command, CallModel)
    return conversation.transcript, command.transcript, conversation.open


def one_transcript(kind: type[Conversation]) -> None:
    """The property: whatever the order of the answers, the model reads the same."""

    @settings(max_examples=150, database=None, report_multiple_bugs=False, phases=[Phase.generate])
    @given(two_orders())
    def holds(drawn: tuple[ModelReplied, list[Event], list[Event]]) -> None:
        reply, one, other = drawn
        assert outcome(kind, reply, one) == outcome(kind, reply, other)
        messages = begun(reply, *one, kind=kind).transcript
        answers = messages[messages.index(reply) + 1]
        assert isinstance(answers, Answers)
        assert [result.call_id for result in answers.results] == [call.id for call in reply.calls]

    holds()


def test_any_order_of_answers_gives_one_transcript() -> None:
    one_transcript(Conversation)


class InOrderOfArrival(Conversation):
    """A planted bug: answers take effect in the order in which they come."""

    def _close_batch(self) -> None:
        arrived = [e.call_id for e in self._journal if isinstance(e, ToolReturned)]
        places = {call_id: place for place, call_id in enumerate(arrived)}
        slots = self._batch._slots
        self._batch._slots = dict(sorted(slots.items(), key=lambda item: places.get(item[0], len(places))))
        super()._close_batch()


class HeardAtOnce(Conversation):
    """A planted bug: what the user says while calls are open is read before their answers."""

    def _add_message(self, message: Any) -> None:
        self._messages.append((len(self._journal), message))


@pytest.mark.parametrize("planted", [InOrderOfArrival, HeardAtOnce])
def test_the_property_above_finds_a_planted_bug(planted: type[Conversation]) -> None:
    with pytest.raises(AssertionError):
        one_transcript(planted)


def test_what_is_said_while_calls_are_open_is_read_after_their_answers() -> None:
    """Also what the program has to tell: nothing comes between a reply and its answers."""
    reply, said, told = asks("c1", "c2"), UserSaid("and hurry"), ToolsUnloaded(notices=("box_1 has changed",))
    conversation = begun(reply, answer("c2"), said, told)
    assert conversation.transcript == (UserSaid("hi"), reply)
    conversation.apply(answer("c1"))
    note = Note("Tools have changed: box_1 has changed")
    assert conversation.transcript == (UserSaid("hi"), reply, Answers((answer("c1"), answer("c2"))), said, note)


# -- a journal says it all ---------------------------------------------------------------------------------------------

WORDS = ["select:box_0", "select:box_1,box_2", "select:box_3,box_4", "nothing of the kind"]
CALLS = st.one_of(
    st.sampled_from(["look", "write", "box_0", "box_1", "no_such_tool"]).map(lambda name: (name, {})),
    st.sampled_from(WORDS).map(lambda query: ("search_tools", {"queries": [query]})),
)


class Life:
    """A conversation that lives: what follows is drawn, what it knew is kept after every fact."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.conversation = Conversation(SEARCH.session("life", caller=Caller("ana")))
        SEARCH.end_session("life")
        self.known = [known(self.conversation)]

    def apply(self, fact: Event) -> None:
        self.conversation.apply(fact)
        self.known.append(known(self.conversation))

    def go_on(self) -> None:
        """One step, as a driver would take it."""
        conversation = self.conversation
        if not conversation.running:
            self.apply(RunBegan(f"r{len(self.known)}", 1.0))
            self.apply(UserSaid(words := self.draw(st.sampled_from(["do \ud800 this", "look into box_1", ""]))))
            if said := self.conversation.session.preselect(words, self.draw(st.integers(0, 2))):
                self.apply(ToolsRevealed(("box_1",), self.conversation.session.export(), said=said))
            return
        match conversation.next():
            case Finished(text, reason, value):
                self.apply(RunEnded(reason, text, value))
            case CallModel():
                self.reply()
            case CallTools():
                self.work()
            case Paused(waiting):
                self.decide(self.draw(st.sampled_from(waiting)).id)

    def reply(self) -> None:
        if self.draw(st.integers(0, 9)) == 0:
            self.apply(Ending("limit", self.draw(st.none() | st.just("enough"))))
            return
        drawn = self.draw(st.lists(CALLS, max_size=3))
        calls = [ToolCall(self.draw(st.sampled_from(["c", "", "d"])), *each) for each in drawn]
        asked = self.conversation.decide_calls(calls)
        self.apply(ModelReplied("hm", asked, raw={"a": (1, "\udfff")}))
        if revealed := tuple(i for each in asked for i in each.reveal):
            self.conversation.session.load(revealed)
            self.apply(ToolsRevealed(revealed, self.conversation.session.export()))

    def work(self) -> None:
        """Something happens to one of the open calls, or beside them."""
        command = self.conversation.next()
        assert isinstance(command, CallTools)
        call = self.draw(st.sampled_from(command.calls))
        match self.draw(st.integers(0, 5)):
            case 0:
                self.apply(UserSaid("by the way"))
            case 1:
                self.apply(Noted("layer", {"seen": call.id}))
            case 2 if call.id not in command.started and call.id not in command.denied:
                self.apply(ToolWaiting(call.id, question="May it?", expires_at=9.0))
            case 3 if call.id not in command.started and call.id not in command.denied:
                self.apply(ToolStarted(call.id))
            case _:
                self.finish(call)

    def finish(self, call: JudgedCall) -> None:
        session = self.conversation.session
        if call.kind == "answered":
            self.apply(ToolReturned(call.id, call.status, call.answer))
            return
        result = session.handle(ToolCall(call.id, call.name, call.arguments))
        if call.kind == "search":
            before = session.loaded
            self.apply(ToolsFound(call.id, tuple(t.id for t in before), session=session.export()))
        self.apply(ToolReturned(call.id, result.status, result.content, result.data))

    def decide(self, call_id: str) -> None:
        approved = self.draw(st.booleans())
        self.apply(ToolApproved(call_id, {"a": 1}) if approved else ToolDenied(call_id, "no"))


@st.composite
def lives(draw: st.DrawFn) -> Life:
    life = Life(draw)
    for _ in range(draw(st.integers(0, 25))):
        life.go_on()
    return life


@settings(max_examples=100, deadline=None)
@given(lives())
def test_replay_equals_live_after_every_fact(life: Life) -> None:
    """Read back from JSON, at each place of the journal: the same state, the same next step, the same tools."""
    lines = json.loads(json.dumps(life.conversation.export()))
    for length, was in enumerate(life.known):
        again = Conversation.replay(SEARCH, lines[:length], conversation_id="life", caller=Caller("ana"))
        assert known(again) == was
        assert again.export() == lines[:length]


@pytest.mark.parametrize("query", ["box", "nothing of the kind"], ids=["loaded", "named"])
def test_a_search_that_taught_before_a_restart_does_not_teach_again(query: str) -> None:
    """Whether it loaded the tool that was called, or only named it."""
    search = ToolSearch(TOOLS, mode="append", not_loaded="run")
    conversation = Conversation(search.session())
    for fact in (RunBegan("r"), UserSaid("hi")):
        conversation.apply(fact)
    (asked,) = conversation.decide_calls([ToolCall("s", "search_tools", {"queries": [query]})])
    conversation.apply(ModelReplied(calls=(asked,)))
    conversation.session.handle(ToolCall("s", asked.name, asked.arguments))
    conversation.apply(ToolsFound("s", (), session=conversation.session.export()))
    conversation.apply(ToolReturned("s", "ok", ""))
    before: Any = conversation.session.export()
    conversation.next()
    judged = conversation.decide_calls([ToolCall("c1", "box_0", {}), ToolCall("c2", "box_1", {})])
    conversation.apply(ModelReplied(calls=judged))
    assert conversation.session.handle(ToolCall("c1", "box_0", {})).ok
    conversation.apply(ToolReturned("c1", "ok", "{}"))
    again = Conversation.replay(search, json.loads(json.dumps(conversation.export())))
    taught: Any = again.session.export()
    assert "box_0" in before["trail"]["led"]
    assert "box_0" not in taught["trail"]["led"]
    assert taught["trail"] == conversation.session.export()["trail"]


class Forgetful(Conversation):
    """A planted bug: something that happened is not written down."""

    def apply(self, event: Event) -> Event:
        event = super().apply(event)
        if isinstance(event, ToolWaiting):
            self._journal.pop()
        return event


def test_the_property_above_finds_a_fact_that_is_not_written_down() -> None:
    conversation = begun(asks("c1"), ToolWaiting("c1"), kind=Forgetful)
    again = Conversation.replay(SEARCH, conversation.export(), conversation_id=conversation.id)
    assert known(again) != known(conversation)


def test_a_replay_needs_neither_the_tools_that_were_called_nor_the_live_session() -> None:
    """What a call is was settled when it came; and what was found later does not exist at an earlier place."""
    conversation = begun(asks("c1", alone=True, return_direct=True), answer("c1", "42"))
    elsewhere = ToolSearch([definition("other")])
    again = Conversation.replay(elsewhere, conversation.export())
    assert again.transcript == conversation.transcript
    assert again.next() == Finished("42", "returned directly", conversation_id=again.id)
    session = SEARCH.session("shared")
    session.handle(ToolCall("s", "search_tools", {"queries": ["select:box_1"]}))
    assert Conversation.replay(SEARCH, [], conversation_id="shared").session.loaded == ()
    assert SEARCH.session("shared") is session


@pytest.mark.parametrize(
    "settings",
    [{"mode": "append"}, {"mode": "append", "not_loaded": "run"}, {"mode": "static"}, {"mode": "bridge"}],
    ids=str,
)
def test_what_was_callable_when_the_reply_came_is_callable_after_a_restart(settings: dict[str, Any]) -> None:
    """A call that waited for a person runs in another process, whatever way its tool was loaded."""
    search = ToolSearch(TOOLS, **settings)
    conversation = Conversation(search.session())
    conversation.apply(RunBegan("r"))
    conversation.apply(UserSaid("hi"))
    conversation.next()
    if settings["mode"] != "static":
        (asked,) = conversation.decide_calls([ToolCall("s", "search_tools", {"queries": ["select:box_1"]})])
        conversation.apply(ModelReplied(calls=(asked,)))
        result = conversation.session.handle(ToolCall("s", asked.name, asked.arguments))
        conversation.apply(ToolsFound("s", ("box_1",), session=conversation.session.export()))
        conversation.apply(ToolReturned("s", "ok", result.content))
        conversation.next()
    (asked,) = conversation.decide_calls([ToolCall("c", "box_1", {})])
    assert asked.kind == "tool"
    conversation.apply(ModelReplied(calls=(asked,)))
    conversation.apply(ToolWaiting("c"))
    again = Conversation.replay(search, json.loads(json.dumps(conversation.export())))
    assert again.session.handle(ToolCall("c", "box_1", {})).status == "ok"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"v": 1, "fact": "Whatever"}, "fact 1 of the journal has the unknown kind 'Whatever'"),
        ({"v": 9, "fact": "UserSaid"}, "fact 1 of the journal has the format 9"),
        (stored(answer("c1")), "'c1' was never made"),
        (5, "is not a fact"),
    ],
)
def test_a_journal_that_cannot_be_is_refused(line: Any, why: str) -> None:
    with pytest.raises(StateError, match=why):
        Conversation.replay(SEARCH, [stored(RunBegan("r1")), line])


def test_a_broken_session_in_a_journal_is_refused() -> None:
    for state in ({"format": 7}, {"format": 1}):
        with pytest.raises(StateError, match="session"):
            Conversation.replay(SEARCH, [ToolsRevealed((), state)])


# -- what is to be done ------------------------------------------------------------------------------------------------


def test_next_walks_through_a_turn() -> None:
    conversation = Conversation(SEARCH.session("walk"))
    assert conversation.next() == Finished("", "nothing was said", conversation_id="walk")
    conversation.apply(RunBegan("r1"))
    assert conversation.next() == Finished("", "nothing was said", conversation_id="walk")
    conversation.apply(UserSaid("hi"))
    command = conversation.next()
    assert isinstance(command, CallModel)
    assert command.transcript == (UserSaid("hi"),)
    assert [each.name for each in command.tools] == ["search_tools", "look"]
    conversation.apply(asks("c1", "c2", "c3"))
    command = conversation.next()
    assert isinstance(command, CallTools)
    assert [call.id for call in command.calls] == ["c1", "c2", "c3"]
    conversation.apply(ToolStarted("c2"))
    conversation.apply(ToolWaiting("c1", question="May it?"))
    conversation.apply(answer("c3"))
    command = conversation.next()
    assert isinstance(command, CallTools)
    assert [call.id for call in command.calls] == ["c2"]
    assert command.started == {"c2"}
    conversation.apply(answer("c2"))
    paused = conversation.next()
    assert isinstance(paused, Paused)
    assert [(each.id, each.name, each.question, each.arguments) for each in paused.waiting] == [
        ("c1", "look", "May it?", {})
    ]
    conversation.apply(ToolApproved("c1", {"a": 1}))
    command = conversation.next()
    assert isinstance(command, CallTools)
    assert command.approved == {"c1": ToolApproved("c1", {"a": 1})}
    conversation.apply(answer("c1"))
    assert isinstance(conversation.next(), CallModel)
    conversation.apply(ModelReplied("Done.", value={"n": 1}))
    assert conversation.next() == Finished("Done.", "answered", {"n": 1}, "walk")
    conversation.apply(RunEnded("answered", "Done.", {"n": 1}))
    assert conversation.next() == Finished("Done.", "answered", {"n": 1}, "walk")
    assert repr(conversation) == "Conversation('walk', idle, 11 facts, 4 messages)"


def test_C37_a_declined_call_without_its_answer_is_not_one_to_run() -> None:
    """A crash between the decision and the answer."""
    command = begun(asks("c1"), ToolWaiting("c1"), ToolDenied("c1", "no")).next()
    assert isinstance(command, CallTools)
    assert set(command.denied) == {"c1"}


@pytest.mark.parametrize(
    ("marks", "status", "text", "reason", "value"),
    [
        ([{"return_direct": True}, {"return_direct": True}], "ok", "one\n\ntwo", "returned directly", {"n": 2}),
        ([{"return_direct": True}, {}], "ok", None, None, None),
        ([{"return_direct": True}, {"return_direct": True}], "failed", None, None, None),
        ([{"terminal": True}, {}], "ok", "one", "terminal tool", {"n": 1}),
        ([{"terminal": True}, {"terminal": True}], "ok", "two", "terminal tool", {"n": 2}),
        ([{"terminal": True}, {}], "denied", None, None, None),
        ([{}, {}], "ok", None, None, None),
    ],
)
def test_SA42_NA10_tools_that_end_the_turn(
    marks: list[dict[str, bool]], status: Any, text: str | None, reason: str | None, value: Any
) -> None:
    """SA-42: only where all of a round return directly. NA-10, PG-6: where one that is terminal succeeds."""
    calls = tuple(JudgedCall(f"c{n}", "look", {}, tool="look", marks=Marks(**each)) for n, each in enumerate(marks))
    conversation = begun(
        ModelReplied("", calls), answer("c1", "two", data={"n": 2}), answer("c0", "one", status, {"n": 1})
    )
    command = conversation.next()
    if text is None:
        assert isinstance(command, CallModel)
    else:
        assert command == Finished(text, reason or "", value, conversation.id)


def test_tools_that_have_changed_meanwhile_do_not_hide_the_end() -> None:
    conversation = begun(asks("c1", terminal=True), ToolsUnloaded(notices=("box_1 has changed",)), answer("c1", "one"))
    assert conversation.next() == Finished("one", "terminal tool", conversation_id=conversation.id)


def test_what_the_user_said_during_the_last_call_is_still_answered() -> None:
    conversation = begun(asks("c1", terminal=True), UserSaid("one thing more"), answer("c1"))
    assert isinstance(conversation.next(), CallModel)


def test_an_ending_waits_for_the_open_calls() -> None:
    conversation = begun(asks("c1"), Ending("limit", by="limits"), Ending("another", "no"))
    assert isinstance(conversation.next(), CallTools)
    conversation.apply(answer("c1"))
    assert conversation.next() == Finished("", "limit", conversation_id=conversation.id)
    last = begun(ModelReplied("Looking.", asks("c1").calls), answer("c1"), Ending("limit"))
    assert last.next() == Finished("Looking.", "limit", conversation_id=last.id)  # NA-1: the last step's text
    given = begun(asks("c1"), answer("c1"), Ending("limit", "Enough."))
    assert given.next() == Finished("Enough.", "limit", conversation_id=given.id)
    given.apply(RunEnded("limit", "Enough."))
    given.apply(RunBegan("r2"))
    given.apply(UserSaid("go on"))
    assert isinstance(given.next(), CallModel)  # it ended that turn, not the next one


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_C16_call_ids_are_unique_over_the_conversation_and_change_only_if_they_must() -> None:
    conversation = begun()
    seen: list[str] = []
    for ids in (["call_0", "call_0"], [""], ["call_0", "new"], [None, 7, "x\ud800"]):
        calls = [ToolCall(i, "look", {"n": n}) for n, i in enumerate(ids)]  # type: ignore[arg-type]
        asked = conversation.decide_calls(calls)
        assert [call.arguments for call in asked] == [call.arguments for call in calls]
        conversation.apply(ModelReplied(calls=asked))
        for call in asked:
            conversation.apply(answer(call.id, str(call.arguments)))
        results = conversation.transcript[-1]
        assert isinstance(results, Answers)
        assert [result.content for result in results.results] == [str(call.arguments) for call in calls]
        seen += [call.id for call in asked]
    assert len(set(seen)) == len(seen) == 8
    assert seen[0] == "call_0"
    assert seen[4] == "new"
    assert seen[6:] == ["7", "x\ufffd"]
    assert all(seen)


@given(st.lists(st.lists(st.sampled_from(["a", "", "a_2_1", "b" * 90, "\ud800", "\ufffd"]), max_size=4), max_size=5))
def test_C16_ids_stay_distinct_whatever_they_look_like(replies: list[list[str]]) -> None:
    conversation = begun()
    seen: list[str] = []
    for ids in replies:
        asked = conversation.decide_calls([ToolCall(i, "look", {}) for i in ids])
        conversation.apply(ModelReplied("", asked))
        for call in asked:
            conversation.apply(answer(call.id))
        seen += [call.id for call in asked]
        conversation.apply(UserSaid("more"))
    assert len(set(seen)) == len(seen)
    assert cleaned(asks(*seen)) == asks(*seen)


def test_a_call_is_settled_when_it_comes() -> None:
    conversation = begun()
    conversation.next()
    found = conversation.decide_calls(
        [
            ToolCall("a", "look", '{"n": 1}'),
            ToolCall("b", "search_tools", {"queries": ["boxes"]}),
            ToolCall("c", "write", {}),
            ToolCall("d", "no_such", {}),
        ]
    )
    assert [(each.kind, each.status) for each in found] == [
        ("tool", "ok"), ("search", "ok"), ("answered", "not_loaded"), ("answered", "unknown"),
    ]  # fmt: skip
    assert found[0].given == {"n": 1}
    assert found[0].digest == tool(TOOLS[0]).digest
    assert found[2].reveal == ("write",)
    assert conversation.journal == begun().journal  # nothing was changed


# -- a shorter transcript ----------------------------------------------------------------------------------------------


def test_a_compaction_shortens_the_transcript_and_not_the_journal() -> None:
    conversation = begun(asks("c1"), answer("c1"), ModelReplied("One."), RunEnded("answered", "One."))
    conversation.apply(RunBegan("r2"))
    conversation.apply(UserSaid("and two?"))
    length = len(conversation.journal)
    conversation.apply(Compacted(conversation.places()[-1], "They spoke of one."))
    assert conversation.transcript == (Note("They spoke of one."), UserSaid("and two?"))
    assert len(conversation.journal) == length + 1
    conversation.apply(Compacted(length, "Nothing is left."))
    assert conversation.transcript == (Note("Nothing is left."),)


def test_C20_no_cut_parts_a_reply_from_its_answers() -> None:
    conversation = begun(asks("c1", "c2"), answer("c2"), answer("c1"), ModelReplied("One."), UserSaid("two?"))
    for place in conversation.places():
        lines = conversation.export()
        cut = Conversation.replay(SEARCH, [*lines, stored(Compacted(place))])
        kinds = [type(message) for message in cut.transcript]
        assert kinds[:1] != [Answers]
        asked = [message for message in cut.transcript if isinstance(message, ModelReplied) and message.calls]
        assert len(asked) == kinds.count(Answers)


def test_a_conversation_id_must_be_text() -> None:
    with pytest.raises(SetupError, match="conversation_id must be a text, not 5"):
        Conversation.replay(SEARCH, [], conversation_id=5)  # type: ignore[arg-type]
