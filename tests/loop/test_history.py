"""History: a window that never parts a pair, cut in steps, with a summary if wanted."""

import logging
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from toolsearch import Catalog, ToolSearch, tool
from toolsearch.calls import ToolCall
from toolsearch.errors import SetupError, StateError
from toolsearch.events.facts import (
    Answers,
    Compacted,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Note,
    Reply,
    RunBegan,
    ToolReturned,
    ToolsUnloaded,
    UserSaid,
)
from toolsearch.events.journal import read_events
from toolsearch.events.requests import Finished
from toolsearch.layers import history
from toolsearch.loop.agent import Agent
from toolsearch.loop.conversation import Conversation
from toolsearch.protocols import Record
from toolsearch.stores import MemoryStore
from toolsearch.testing import FixedIndex, ScriptedModel
from toolsearch.wires import anthropic, openai_chat


def look(what: str) -> str:
    """Look something up."""
    return f"found {what}"


def agent(model: Any, *layers: Any, **options: Any) -> Agent:
    return Agent(model, ToolSearch([tool(look)], mode="static"), layers=layers, **options)


def said(request: Any) -> list[str]:
    """A transcript in short."""
    names = {UserSaid: "user", ModelReplied: "model", Answers: "tools", Note: "note"}
    return [f"{names[type(m)]}: {m.text}" if getattr(m, "text", "") else names[type(m)] for m in request.transcript]


def facts(mine: Agent, kind: type) -> list[Any]:
    return [fact for fact in mine.conversation("s").journal if isinstance(fact, kind)]


def check_legal(request: Any) -> None:
    """No orphan call or result, a legal first role, and one the providers' formats take."""
    first = request.transcript[0]
    assert isinstance(first, UserSaid | Note)
    asked: list[str] = []
    for message, after in pairwise((*request.transcript, None)):
        if isinstance(message, ModelReplied) and message.calls:
            assert isinstance(after, Answers), "a call has no result"
            asked = [call.id for call in message.calls]
        if isinstance(message, Answers):
            assert [result.call_id for result in message.results] == asked, "a result has no call"
            asked = []
    assert openai_chat.messages_for(request.transcript)[0]["role"] == "user"
    roles = [m["role"] for m in anthropic.messages_for(request.transcript)]
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]


# -- windows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0, 0.25, 0.9])
@pytest.mark.parametrize("window", range(1, 7))
def test_a_window_of_any_size_parts_no_call_from_its_result(drive: Any, window: int, step: float) -> None:
    """C20: system message and newest user turn stay, the window begins with a legal role."""
    two = [("c1", "look", {"what": "a"}), ("c2", "look", {"what": "b"})]
    model = ScriptedModel(two, "It is a and b.", two, "Still.", "Bye.")
    mine = agent(model, history(window, step=step), system="You are kind.")
    for text in ("First?", "Second?", "Third?"):
        drive(mine, text, conversation_id="s")
    newest = ["First?", "First?", "Second?", "Second?", "Third?"]
    for request, text in zip(model.requests, newest, strict=True):
        check_legal(request)
        assert f"user: {text}" in said(request)
        assert request.system.startswith("You are kind.")
        users = sum(isinstance(m, UserSaid) for m in request.transcript)
        assert len(request.transcript) <= max(window, 3 if isinstance(request.transcript[-1], Answers) else 1), users


def test_the_newest_turn_is_cut_by_rounds_and_keeps_what_the_user_said(drive: Any) -> None:
    """A turn of many rounds does not outgrow the window: its oldest rounds leave, the question stays."""
    model = ScriptedModel("Hello.", *[[("look", {"what": str(n)})] for n in range(9)], "Done.")
    mine = agent(model, history(6, step=0))
    drive(mine, "Hi", conversation_id="s")
    drive(mine, "Look at nine things", conversation_id="s")
    for request in model.requests[1:]:
        check_legal(request)
        assert "user: Look at nine things" in said(request)
        assert len(request.transcript) <= 6
    last = model.requests[-1].transcript
    assert [type(m) for m in last] == [UserSaid, ModelReplied, Answers, ModelReplied, Answers]
    assert last[-1].results[0].content == "found 8"  # type: ignore[union-attr]


def test_what_was_said_in_the_middle_of_a_turn_that_was_cut_leaves_with_it(drive: Any) -> None:
    """A turn may have several messages of the user. All stay while it goes on; there is one summary at a time."""
    conversation = Conversation(ToolSearch([tool(look)], mode="static").session("s"))
    calls = iter(range(9))

    def look_again() -> None:
        call = JudgedCall(f"c{next(calls)}", "look", {"what": "x"}, tool="look", given={"what": "x"})
        conversation.apply(ModelReplied(calls=(call,)))
        conversation.apply(UserSaid(f"Also {call.id}")) if call.id in ("c0", "c1") else None
        conversation.apply(ToolReturned(call.id, "ok", "found"))

    conversation.apply(RunBegan("r"))
    conversation.apply(UserSaid("Look"))
    for _ in range(5):
        look_again()
    store = MemoryStore()
    store.append("s", 0, conversation.export())
    model = ScriptedModel(*[f"Answer {n}." for n in range(20)])
    mine = agent(model, history(5, step=0, summarize=True), store=store)
    drive(mine, conversation_id="s")
    assert "user: Look" in said(model.requests[1])
    assert "user: Also c1" in said(model.requests[1])
    for n in range(4):
        drive(mine, f"Question {n}", conversation_id="s")
    for request in model.requests:
        if request.purpose == "chat":
            check_legal(request)
            assert sum(isinstance(m, Note) for m in request.transcript) == 1
    cuts = [fact.before for fact in facts(mine, Compacted)]
    assert cuts == sorted(cuts)
    assert said(model.requests[-1])[-1] == "user: Question 3"


def test_it_is_cut_in_steps_so_that_requests_in_between_only_grow(drive: Any) -> None:
    """Not one message a turn: the provider's cache holds from one cut to the next."""
    model = ScriptedModel()
    mine = agent(model, history(20, step=0.5))
    for n in range(40):
        drive(mine, f"Question {n}", conversation_id="s")
    cuts = len(facts(mine, Compacted))
    assert 4 <= cuts <= 8
    lost = sum(
        after.transcript[: len(before.transcript)] != before.transcript for before, after in pairwise(model.requests)
    )
    assert lost == cuts
    assert all(len(request.transcript) <= 20 for request in model.requests)


def test_a_bound_in_tokens_counts_text_calls_results_and_files(drive: Any) -> None:
    """NA-12: about four characters a token, the newest always kept."""
    model = ScriptedModel([("look", {"what": "x" * 1_000})], "a" * 400, "b" * 400, "c", "d")
    mine = agent(model, history(tokens=300, step=0))
    drive(mine, "First", conversation_id="s")
    drive(mine, "Second", conversation_id="s")
    assert said(model.requests[2]) == ["user: First", "model", "tools", "model: " + "a" * 400, "user: Second"][4:]
    drive(mine, "Third", conversation_id="s")
    assert len(model.requests[-1].transcript) == 3
    drive(mine, UserSaid("See", parts=({"type": "image_url", "image_url": {"url": "data:…"}},)), conversation_id="s")
    assert said(model.requests[-1]) == ["user: See"]
    drive(mine, "y" * 10_000, conversation_id="s")
    assert said(model.requests[-1]) == ["user: " + "y" * 10_000], "the newest stays, however long it is"


def test_a_counter_may_be_given(drive: Any) -> None:
    model = ScriptedModel("one two three", "four")
    mine = agent(model, history(tokens=5, step=0, count=lambda text: len(text.split())))
    drive(mine, "a b", conversation_id="s")
    drive(mine, "c", conversation_id="s")
    assert said(model.requests[-1]) == ["user: c"]


def test_without_reaching_the_bound_nothing_happens(drive: Any) -> None:
    model = ScriptedModel()
    mine = agent(model, history(messages=100, tokens=10_000, summarize=True))
    for n in range(5):
        drive(mine, f"Question {n}", conversation_id="s")
    assert facts(mine, Compacted) == []
    assert len(model.requests[-1].transcript) == 9


def test_what_is_shown_is_the_same_after_a_restart_and_the_journal_keeps_everything(drive: Any) -> None:
    store = MemoryStore()
    model = ScriptedModel("A.", "B.", [("look", {"what": "x"})], "C.")
    mine = agent(model, history(3, step=0), store=store)
    for text in ("First?", "Second?", "Third?"):
        drive(mine, text, conversation_id="s")
    live = mine.conversation("s")
    other = Conversation.replay(mine.parts.search, read_events(store.load("s")), conversation_id="s")
    assert other.transcript == live.transcript
    assert model.requests[-1].transcript == live.transcript[:-1]
    said_by_user = [fact.text for fact in live.journal if isinstance(fact, UserSaid)]
    assert said_by_user == ["First?", "Second?", "Third?"]


# -- tools -------------------------------------------------------------------------------------------------------

MANY = [{"name": f"tool_{n}", "description": f"Does thing {n}", "kind": "read"} for n in range(30)]


def test_a_cut_unloads_no_tool_and_makes_changed_ones_take_effect(drive: Any) -> None:
    """C22: pending changes wait for the cut, where the cache is lost anyway; what changed is journaled and told."""
    catalog = Catalog(MANY)
    index = FixedIndex({"some": ["tool_1", "tool_2", "tool_3"]})

    def changed(_: Any) -> Any:
        catalog.replace({**MANY[1], "description": "Does thing 1 in another way"})
        return [("tool_1", {})]

    calls = [[("tool_2", {})] for _ in range(4)]
    model = ScriptedModel([("search_tools", {"queries": ["some"]})], changed, *calls, "Done.")
    search = ToolSearch(catalog, index, mode="append", run=lambda *_: "ran", results=3)
    mine = Agent(model, search, layers=[history(8, step=0)], store=MemoryStore())
    drive(mine, "Use some", conversation_id="s")
    for request in model.requests[1:]:
        assert [shown.name for shown in request.tools] == ["search_tools", "tool_1", "tool_2", "tool_3"]
    told = facts(mine, ToolsUnloaded)[0]
    assert told.unloaded == ()
    assert told.notices == ("tool_1 has changed",)
    texts = [request.tools[1].tool.description for request in model.requests[1:]]
    assert texts == ["Does thing 1"] * 3 + ["Does thing 1 in another way"] * 3
    assert len(facts(mine, Compacted)) == 3
    assert "note: Tools have changed: tool_1 has changed" in said(model.requests[4])


# -- summaries ---------------------------------------------------------------------------------------------------


class Summariser:
    """A model that sums up when it is asked to, and answers otherwise."""

    name = "summariser"

    def __init__(self, *summaries: Any) -> None:
        self.summaries = list(summaries)
        self.requests: list[Any] = []
        self.asked: list[Any] = []

    def __call__(self, request: Any) -> Reply:
        if request.purpose == "chat":
            self.requests.append(request)
            return Reply(f"Answer {len(self.requests)}.", model=self.name)
        self.asked.append(request)
        step = self.summaries.pop(0) if self.summaries else f"Summary {len(self.asked)}."
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, Reply) else Reply(step, model=self.name)


def talk(drive: Any, mine: Agent, turns: int) -> None:
    for n in range(turns):
        drive(mine, f"Question {n}", conversation_id="s")


def test_a_summary_takes_the_place_of_what_leaves_and_is_billed_as_such(drive: Any) -> None:
    """NA-12, C47: one extra call, without tools, billed as "history_summary"."""
    model = Summariser("The user counts questions.")
    mine = agent(model, history(4, step=0.5, summarize=True))
    talk(drive, mine, 3)
    (asked,) = model.asked
    assert asked.tools == ()
    assert asked.schema is None
    assert asked.purpose == "history_summary"
    assert "User: Question 0" in asked.transcript[0].text
    assert "Question 2" not in asked.transcript[0].text
    assert said(model.requests[-1]) == [
        "note: Earlier in this conversation: The user counts questions.", "user: Question 2",
    ]  # fmt: skip
    check_legal(model.requests[-1])
    assert [fact.purpose for fact in facts(mine, ModelCalled)] == ["chat", "chat", "history_summary", "chat"]
    conversation = mine.conversation("s")
    assert conversation.transcript[0] == model.requests[-1].transcript[0], "replay equals live"
    assert conversation.turn.usage.calls == 2


def test_a_later_summary_takes_the_earlier_one_in(drive: Any) -> None:
    model = Summariser()
    mine = agent(model, history(4, step=0.5, summarize=True))
    talk(drive, mine, 8)
    assert len(model.asked) >= 2
    assert "Earlier in this conversation: Summary 1." in model.asked[1].transcript[0].text
    for request in model.requests[2:]:
        notes = [m.text for m in request.transcript if isinstance(m, Note)]
        assert len(notes) == 1, "there is one summary at a time"
    assert notes == [f"Earlier in this conversation: Summary {len(model.asked)}."]


def test_the_words_of_the_request_may_be_given(drive: Any) -> None:
    model = Summariser()
    mine = agent(model, history(2, summarize="Keep order numbers."))
    talk(drive, mine, 2)
    assert model.asked[0].system == "Keep order numbers."


@pytest.mark.parametrize(
    "failure",
    [
        "", "   ", RuntimeError("down"), TimeoutError("late"),
        Reply("", calls=(ToolCall("c1", "look"),)),
        Reply("I will look.", calls=(ToolCall("c1", "look"),)),
    ],
    ids=["empty", "blank", "error", "time-out", "call", "text and call"],
)  # fmt: skip
def test_a_summary_that_fails_keeps_the_window_and_is_logged(
    drive: Any, failure: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """C47: a call, an error or nothing is no summary; the turn goes on, and no summary is asked for in every round."""
    model = Summariser(failure)
    mine = agent(model, history(4, step=0.5, summarize=True))
    with caplog.at_level(logging.WARNING, "toolsearch"):
        talk(drive, mine, 3)
    assert "summary" in caplog.text
    assert len(model.asked) == 1
    assert facts(mine, Compacted) == []
    assert [m.text for m in model.requests[-1].transcript if isinstance(m, UserSaid)] == [
        "Question 0", "Question 1", "Question 2",
    ]  # fmt: skip
    drive(mine, "Question 3", conversation_id="s")
    assert len(model.asked) == 2, "a step later it is tried again"
    assert said(model.requests[-1])[0] == "note: Earlier in this conversation: Summary 2."


def test_after_two_failures_the_window_is_cut_without_a_new_summary_and_keeps_the_old_one(drive: Any) -> None:
    model = Summariser("All is well.", "", "")
    mine = agent(model, history(4, step=0.5, summarize=True))
    talk(drive, mine, 8)
    cuts = facts(mine, Compacted)
    assert len(cuts) >= 2
    assert cuts[1].summary == cuts[0].summary == "Earlier in this conversation: All is well."
    assert max(len(request.transcript) for request in model.requests) <= 4 * 2 + 2


def test_a_summary_leaves_room_in_the_window_it_is_for(drive: Any) -> None:
    model = Summariser(*["very long " * 5_000] * 9)
    mine = agent(model, history(tokens=1_000, summarize=True))
    for n in range(9):
        drive(mine, f"Question {n} " + "x" * 800, conversation_id="s")
    assert model.asked
    assert all(sum(len(m.text) for m in request.transcript) <= 4 * 1_000 for request in model.requests)


def test_a_summary_of_a_turn_with_tools_names_calls_and_results(drive: Any) -> None:
    asked: list[Any] = []

    def reply(request: Any) -> Reply:
        asked.append(request)
        return Reply("Looked at things.")

    calls = [[("look", {"what": str(n)})] for n in range(2)]
    model = ScriptedModel(calls[0], calls[1], reply, "Done.")
    mine = agent(model, history(4, step=0, summarize=True))
    assert drive(mine, "Look at two things", conversation_id="s").text == "Done."
    (request,) = asked
    assert 'Assistant calls look: {"what": "0"}' in request.transcript[0].text
    assert "Result (ok): found 0" in request.transcript[0].text
    assert [type(m) for m in model.requests[-1].transcript] == [Note, UserSaid, ModelReplied, Answers]
    check_legal(model.requests[-1])


def test_layers_outside_see_the_cut_request_and_cause_no_second_summary(drive: Any) -> None:
    """A cut begins the request anew, so a layer outside that tries again has what is shown now."""
    seen: list[list[str]] = []

    class Twice:
        name = "twice"

        def around_model(self, request: Any) -> Any:
            seen.append(said(request))
            yield request
            return (yield request)

    model = Summariser()
    mine = agent(model, Twice(), history(2, step=0, summarize=True))
    talk(drive, mine, 2)
    assert len(model.asked) == 1
    assert len(facts(mine, Compacted)) == 1
    assert seen[-1] == said(model.requests[-1]) == said(model.requests[-2])
    assert seen[-1] == ["note: Earlier in this conversation: Summary 1.", "user: Question 1"]


def test_a_layer_that_cuts_in_every_request_does_not_go_on_forever(drive: Any) -> None:
    class Cutting:
        name = "cutting"

        def around_model(self, request: Any) -> Any:
            yield Record(Compacted(0))
            return (yield request)

    model = ScriptedModel([("look", {"what": "a"})], "Done.")
    mine = agent(model, Cutting())
    assert drive(mine, "Look", conversation_id="s").text == "Done."
    assert len(facts(mine, Compacted)) == 4


# -- the state machine -------------------------------------------------------------------------------------------


def test_the_same_cut_twice_changes_nothing() -> None:
    conversation = Conversation(ToolSearch([tool(look)], mode="static").session("s"))
    for fact in (RunBegan("r"), UserSaid("a"), ModelReplied("b"), UserSaid("c")):
        conversation.apply(fact)
    for _ in range(2):
        conversation.apply(Compacted(3, "sum"))
        assert conversation.transcript == (Note("sum"), UserSaid("c"))


def test_what_a_cut_keeps_must_lie_before_it() -> None:
    conversation = Conversation(ToolSearch([tool(look)], mode="static").session("s"))
    for fact in (RunBegan("r"), UserSaid("a"), ModelReplied("b"), UserSaid("c")):
        conversation.apply(fact)
    with pytest.raises(StateError, match="`kept` has a place that is not cut"):
        conversation.apply(Compacted(2, kept=(3,)))
    conversation.apply(Compacted(3, kept=(1,)))
    assert conversation.transcript == (UserSaid("a"), UserSaid("c"))
    again = Conversation.replay(ToolSearch([tool(look)], mode="static"), conversation.export(), conversation_id="s")
    assert again.transcript == conversation.transcript


def test_what_a_layer_put_behind_the_messages_is_never_cut(drive: Any) -> None:
    class Reminder:
        name = "reminder"

        def around_model(self, request: Any) -> Any:
            return (yield replace(request, transcript=(*request.transcript, UserSaid("Be brief."))))

    model = ScriptedModel()
    mine = agent(model, Reminder(), history(2, step=0))
    talk(drive, mine, 3)
    assert said(model.requests[-1]) == ["user: Question 2", "user: Be brief."]
    assert isinstance(drive(mine, "More", conversation_id="s"), Finished)


# -- results that are too long ---------------------------------------------------------------------------------


def rows(n: int) -> str:
    """Rows."""
    return "row of data\n" * n


def tokens_of(request: Any) -> int:
    return sum(len(r.content) // 4 for m in request.transcript if isinstance(m, Answers) for r in m.results)


def test_K12_results_are_cut_until_the_request_is_within_the_window(drive: Any) -> None:
    """K12: three results of 900 lines were shown with 8,100 tokens in a window of 4,000."""
    model = ScriptedModel([("rows", {"n": 900})] * 3, "Done.", "Later.")
    mine = Agent(model, ToolSearch([tool(rows)], mode="static"), layers=[history(tokens=4_000)])
    drive(mine, "Look", conversation_id="s")
    answers = model.requests[1].transcript[-1]
    assert isinstance(answers, Answers)
    assert [r.call_id for r in answers.results] == [c.id for c in model.requests[1].transcript[-2].calls]  # type: ignore[union-attr]
    assert 2_500 < tokens_of(model.requests[1]) <= 4_000
    for result in answers.results:
        assert result.content.startswith("row of data\nrow of data\n")
        assert result.content.endswith("There is no room for more: ask for less, or for the part you need.]")
    stored = [fact for fact in mine.conversation("s").journal if isinstance(fact, ToolReturned)]
    assert [len(fact.content) for fact in stored] == [10_800] * 3
    drive(mine, "And?", conversation_id="s")
    again = [m for m in model.requests[-1].transcript if isinstance(m, Answers)]
    assert again in ([], [answers])


def test_K12_short_results_stay_whole_and_long_ones_share_what_is_left(drive: Any) -> None:
    calls = [("rows", {"n": n}) for n in (3, 900, 30, 900)]
    model = ScriptedModel(calls)
    mine = Agent(model, ToolSearch([tool(rows)], mode="static"), layers=[history(tokens=2_000)])
    drive(mine, "Look", conversation_id="s")
    lengths = [len(r.content) for m in model.requests[1].transcript if isinstance(m, Answers) for r in m.results]
    assert (lengths[0], lengths[2]) == (36, 360)
    assert lengths[1] == lengths[3]
    assert tokens_of(model.requests[1]) <= 2_000


@pytest.mark.parametrize("count", [len, lambda text: len(text) // 4, lambda text: len(text.encode()) // 3])
@pytest.mark.parametrize("text", ["x" * 50_000, "é" * 50_000, "a line\n" * 9_000])
def test_K12_whatever_counts_and_whatever_is_cut_it_fits(drive: Any, count: Any, text: str) -> None:
    model = ScriptedModel([("look", {})] * 2)
    tools = [{"name": "look", "run": lambda: text}]
    mine = Agent(model, ToolSearch(tools, mode="static"), layers=[history(tokens=3_000, count=count)])
    drive(mine, "Look", conversation_id="s")
    shown = [r.content for m in model.requests[1].transcript if isinstance(m, Answers) for r in m.results]
    assert sum(map(count, shown)) <= 3_000


def test_K12_a_window_of_messages_cuts_no_result(drive: Any) -> None:
    model = ScriptedModel([("rows", {"n": 900})])
    mine = Agent(model, ToolSearch([tool(rows)], mode="static"), layers=[history(2)])
    drive(mine, "Look", conversation_id="s")
    assert tokens_of(model.requests[1]) == 2_700


# -- options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, "bounds nothing"),
        ({"messages": 0}, "messages must be a whole number"),
        ({"tokens": 1.5}, "tokens must be a whole number"),
        ({"messages": True}, "messages must be a whole number"),
        ({"messages": 5, "step": 1}, "step must be the share"),
        ({"messages": 5, "step": -0.1}, "step must be the share"),
    ],
)
def test_an_option_that_cannot_work_is_refused(options: Any, what: str) -> None:
    with pytest.raises(SetupError, match=what):
        history(**options)
