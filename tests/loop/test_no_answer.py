"""A reply that is no answer: cut off, broken off, empty, refused, filtered, paused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import Agent, ToolCall, ToolSearch, tool
from toolsearch.delegation import delegate
from toolsearch.events.facts import ModelReplied, Note, Reply, ReplyDiscarded, RunBegan, ToolReturned, UserSaid
from toolsearch.events.requests import CallModel, Finished
from toolsearch.events.stops import REASONS, STOPS
from toolsearch.layers import structured
from toolsearch.loop.conversation import Conversation
from toolsearch.testing import ScriptedModel


def purging(ran: list[Any]) -> ToolSearch:
    @tool(kind="action")
    def purge(folder: str | None = None) -> str:
        """Purge a folder, or all of them."""
        ran.append(folder)
        return "purged"

    return ToolSearch([purge], mode="static")


def purge(call_id: str, **arguments: Any) -> ToolCall:
    return ToolCall(call_id, "purge", arguments)


CUTTING = [word for word, reason in STOPS.items() if reason != "paused"]


@pytest.mark.parametrize("stop", CUTTING)
@pytest.mark.parametrize("arguments", [{}, "", None, '{"folder": "b', '{"folder": "b"}', {"folder": "b"}])
def test_J01_the_last_call_of_a_reply_that_was_cut_does_not_run(drive: Any, stop: str, arguments: Any) -> None:
    """J01: whether or not its arguments can be read; a stream that broke off is cut only where they are not closed."""
    ran: list[Any] = []
    calls = (purge("c1", folder="a"), ToolCall("c2", "purge", arguments))
    agent = Agent(ScriptedModel(Reply("", calls, stop=stop), "Only a."), purging(ran))
    assert drive(agent, "Purge a and b", conversation_id="s").reason == "answered"
    whole = STOPS[stop] == "broken off" and arguments in ('{"folder": "b"}', {"folder": "b"})
    assert ran == (["a", "b"] if whole else ["a"])
    answer = agent.conversation("s").turn.results["c2"]
    if not whole:
        assert (answer.status, answer.by) == ("invalid_arguments", "session")
        assert "did not run: your reply" in answer.content
    if STOPS[stop] == "cut off":
        assert "cut off at the token limit" in answer.content
        assert "Send less" in answer.content


@pytest.mark.parametrize("stop", ["stop", "end_turn", "tool_calls", "tool_use", "pause_turn", "", "something new"])
def test_J01_a_reply_that_ended_by_itself_has_whole_calls(drive: Any, stop: str) -> None:
    ran: list[Any] = []
    agent = Agent(ScriptedModel(Reply("", (purge("c1"),), stop=stop)), purging(ran))
    drive(agent, "Purge all", conversation_id="s")
    assert ran == [None]


def test_J01_a_cut_call_in_a_loop_of_ones_own_does_not_run_either() -> None:
    ran: list[Any] = []
    session = purging(ran).session()
    session.tools()
    assert "cut off" in session.handle(ToolCall("c1", "purge", {}, cut="cut off")).content
    assert ran == []


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("text", ["Half", ""])
def test_J04_the_result_says_why_a_text_is_no_answer(drive: Any, stop: str, text: str) -> None:
    """J04: each of the providers' words has a reason of its own, in capitals too."""
    for word in (stop, stop.upper()):
        agent = Agent(ScriptedModel(*[Reply(text, stop=word)] * 12), purging([]))
        result = drive(agent, "Tell me", conversation_id="s")
        assert result.reason == STOPS[stop]
        assert result.reason in REASONS
        stored = agent.conversation("s").journal[-1]
        assert stored.reason == result.reason
        assert isinstance(result, Finished)
        assert result.text.startswith(text)


def test_J06_a_model_that_says_nothing_after_results_is_asked_once_more(drive: Any) -> None:
    """J06: with a note; the empty reply is not shown to it."""
    model = ScriptedModel([("c1", "purge", {"folder": "a"})], "", "It is purged.")
    agent = Agent(model, purging([]))
    result = drive(agent, "Purge a", conversation_id="s")
    assert (result.text, result.reason, len(model.requests)) == ("It is purged.", "answered", 3)
    note = model.requests[-1].transcript[-1]
    assert isinstance(note, Note)
    assert "empty" in note.text
    assert not [m for m in model.requests[-1].transcript if isinstance(m, ModelReplied) and not m.calls]


@pytest.mark.parametrize(
    "reply", [Reply(""), Reply(" \n"), Reply("", reasoning="Let me think."), Reply("", stop="stop")]
)
def test_J06_a_model_that_goes_on_saying_nothing_ends_the_turn_with_a_reason(drive: Any, reply: Reply) -> None:
    model = ScriptedModel(*[reply] * 9)
    agent = Agent(model, purging([]))
    result = drive(agent, "Purge a", conversation_id="s")
    assert (result.reason, len(model.requests)) == ("empty", 2)
    model.requests.clear()
    drive(agent, "And now?", conversation_id="s")  # nothing of the note is left over for the next turn
    assert [m for m in model.requests[0].transcript if isinstance(m, Note)][:-1] == []


def test_J06_what_was_empty_is_counted_anew_after_each_round(drive: Any) -> None:
    step = [("purge", {"folder": "a"})]
    agent = Agent(ScriptedModel(step, "", step, "", "Done."), purging([]))
    assert drive(agent, "Purge", conversation_id="s").reason == "answered"


def test_a_reply_that_broke_off_is_given_again_and_what_was_shown_is_discarded(drive: Any) -> None:
    model = ScriptedModel(Reply("It is pur", stop="broken off"), "It is purged.", pieces=4)
    agent = Agent(model, purging([]))
    events = list(agent.stream("Purge", conversation_id="s"))
    assert [event for event in events if isinstance(event, ReplyDiscarded)] == [ReplyDiscarded("broken off")]
    assert (events[-1].text, events[-1].reason) == ("It is purged.", "answered")  # type: ignore[union-attr]


def test_a_paused_reply_goes_on_and_its_parts_are_one_answer(drive: Any) -> None:
    """`pause_turn`: the provider is sent its own message back, and continues."""
    raw = {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}]}
    model = ScriptedModel(Reply("I look. ", stop="pause_turn", raw=raw, wire="anthropic"), "It rains.")
    result = drive(Agent(model, purging([])), "Weather?", conversation_id="s")
    assert (result.text, result.reason) == ("I look. It rains.", "answered")
    last = model.requests[-1].transcript[-1]
    assert isinstance(last, ModelReplied)
    assert last.raw == raw


def test_a_reply_that_pauses_without_end_is_bounded(drive: Any) -> None:
    model = ScriptedModel(*[Reply("x", stop="pause_turn")] * 99)
    result = drive(Agent(model, purging([])), "Go", conversation_id="s")
    assert (result.reason, len(model.requests)) == ("paused", 11)


@given(st.lists(st.sampled_from(["", "text", *STOPS]), max_size=8))
def test_a_replay_decides_as_the_live_conversation_did(stops: list[str]) -> None:
    """The bounds are read from the journal, so that a restart grants nothing more."""
    search = purging([])
    live = Conversation(search.session())
    live.apply(RunBegan("r"))
    live.apply(UserSaid("Go"))
    for stop in stops:
        if not isinstance(live.next(), CallModel):
            break
        live.apply(ModelReplied(stop, stop=stop if stop in STOPS else ""))
        again = Conversation.replay(search, live.export())
        assert (type(again.next()), again.transcript) == (type(live.next()), live.transcript)
    ended = live.next()
    if isinstance(ended, Finished):
        assert (ended.reason == "answered") == (bool(stops) and live.transcript[-1].text == "text")


def test_a_journal_of_an_older_version_with_an_empty_answer_is_read_as_it_ended() -> None:
    search = purging([])
    lines = [
        {"v": 1, "fact": "RunBegan", "run": "r"}, {"v": 1, "fact": "UserSaid", "text": "Go"},
        {"v": 1, "fact": "ModelReplied", "stop": "length"}, {"v": 1, "fact": "RunEnded", "reason": "answered"},
    ]  # fmt: skip
    ended = Conversation.replay(search, lines).next()
    assert (ended.reason, ended.text) == ("answered", "")  # type: ignore[union-attr]


@pytest.mark.parametrize("stop", ["refusal", "content_filter", "pause_turn"])
def test_a_structured_answer_is_not_demanded_of_a_reply_that_is_none(drive: Any, stop: str) -> None:
    model = ScriptedModel(Reply("No.", stop=stop), '{"a": 1}')
    result = drive(Agent(model, purging([]), layers=[structured({"properties": {"a": {}}})]), "Go", conversation_id="s")
    if stop == "pause_turn":
        assert (result.reason, result.value) == ("answered", {"a": 1})
    else:
        assert (result.reason, result.value, len(model.requests)) == (STOPS[stop], None, 1)


def test_half_an_answer_of_a_called_agent_is_no_result_that_is_ok(drive: Any) -> None:
    child = Agent(ScriptedModel(Reply("Half", stop="length")), purging([]))
    parent = Agent(
        ScriptedModel([("c1", "ask", {"task": "x"})]), ToolSearch([delegate(child, "ask", "Ask.")], mode="static")
    )
    drive(parent, "Go", conversation_id="p")
    answer = parent.conversation("p").turn.results["c1"]
    assert (answer.status, "cut off" in answer.content, "Half" in answer.content) == ("failed", True, True)


@pytest.mark.parametrize("content", ["", "  \n"])
def test_J25_a_blank_result_is_told_like_none(drive: Any, content: str) -> None:
    """J25: some providers refuse a blank result, and then every later request."""
    look = tool(lambda: content, name="look", description="Look.")
    agent = Agent(ScriptedModel([("c1", "look", {})]), ToolSearch([look], mode="static"))
    drive(agent, "Look", conversation_id="s")
    (answer,) = [e for e in agent.conversation("s").journal if isinstance(e, ToolReturned)]
    assert answer.content == "Done; the tool returned nothing."
