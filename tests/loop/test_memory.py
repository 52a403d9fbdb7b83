"""Memory: what earlier turns show, never twice, and found tools whatever is shown."""

from typing import Any

import pytest

from toolsearch import Catalog, ToolSearch, tool
from toolsearch.errors import SetupError
from toolsearch.events.facts import Answers, ModelReplied, Note, Reply, UserSaid
from toolsearch.layers import history, memory
from toolsearch.loop.agent import Agent
from toolsearch.stores import MemoryStore
from toolsearch.testing import FixedIndex, ScriptedModel
from toolsearch.wires import anthropic, openai_chat


def look(what: str) -> str:
    """Look something up."""
    return f"found {what}"


def book(what: str) -> str:
    """Book something; that is the answer."""
    return f"booked {what}"


def agent(model: ScriptedModel, *layers: Any, **options: Any) -> Agent:
    search = ToolSearch([tool(look), tool(book, terminal=True)], mode="static")
    return Agent(model, search, layers=layers, **options)


def said(request: Any) -> list[str]:
    """A transcript in short."""
    shown = []
    for message in request.transcript:
        match message:
            case UserSaid():
                shown.append(f"user: {message.text}")
            case ModelReplied():
                shown.append(f"model: {message.text or ', '.join(call.name for call in message.calls)}")
            case Answers():
                shown.append("tools: " + ", ".join(result.content for result in message.results))
            case Note():
                shown.append(f"note: {message.text}")
    return shown


TWO_TURNS = ([("look", {"what": "a"})], "It is a.", [("look", {"what": "b"})], "It is b.")


def test_everything_is_shown_of_earlier_turns_by_default_and_once(drive: Any) -> None:
    """SA-39, SA-41: memory inside the loop; internal history and memory are one thing, so nothing comes twice."""
    model = ScriptedModel(*TWO_TURNS)
    mine = agent(model, memory(MemoryStore()))
    drive(mine, "First?", conversation_id="s")
    drive(mine, "Second?", conversation_id="s")
    assert said(model.requests[-1]) == [
        "user: First?", "model: look", "tools: found a", "model: It is a.",
        "user: Second?", "model: look", "tools: found b",
    ]  # fmt: skip


def test_answers_only_are_shown_of_earlier_turns_and_the_whole_of_this_one(drive: Any) -> None:
    """SA-39, X1: memory outside the loop keeps what the user said and the final answer."""
    model = ScriptedModel(*TWO_TURNS, "Both are letters.")
    store = MemoryStore()
    mine = agent(model, memory(store, keep="answers"))
    drive(mine, "First?", conversation_id="s")
    drive(mine, "Second?", conversation_id="s")
    drive(mine, "So?", conversation_id="s")
    assert said(model.requests[1]) == ["user: First?", "model: look", "tools: found a"]
    assert said(model.requests[3]) == [
        "user: First?", "model: It is a.", "user: Second?", "model: look", "tools: found b",
    ]  # fmt: skip
    assert said(model.requests[4]) == [
        "user: First?", "model: It is a.", "user: Second?", "model: It is b.", "user: So?",
    ]  # fmt: skip
    kinds = [fact["fact"] for fact in store.load("s")]
    assert kinds.count("ToolReturned") == 2, "the journal keeps everything"


def test_two_memories_show_nothing_twice(drive: Any) -> None:
    """SA-41: nobody has to switch an internal history off."""
    model = ScriptedModel(*TWO_TURNS)
    mine = agent(model, memory(MemoryStore()), memory(keep="answers"), memory(keep="answers"))
    drive(mine, "First?", conversation_id="s")
    drive(mine, "Second?", conversation_id="s")
    assert said(model.requests[-1]) == [
        "user: First?",
        "model: It is a.",
        "user: Second?",
        "model: look",
        "tools: found b",
    ]


def test_a_turn_that_a_tool_ended_shows_its_answer(drive: Any) -> None:
    model = ScriptedModel([("book", {"what": "a table"})], "You are welcome.")
    mine = agent(model, memory(keep="answers"))
    assert drive(mine, "A table, please", conversation_id="s").text == "booked a table"
    drive(mine, "Thanks", conversation_id="s")
    assert said(model.requests[-1]) == ["user: A table, please", "model: booked a table", "user: Thanks"]


def test_a_turn_that_failed_shows_what_the_user_said_and_no_error(drive: Any) -> None:
    model = ScriptedModel([("look", {"what": "a"})], RuntimeError("secret host is down"), "Better now.")
    mine = agent(model, memory(keep="answers"))
    with pytest.raises(RuntimeError):
        drive(mine, "First?", conversation_id="s")
    drive(mine, "Again?", conversation_id="s")
    assert said(model.requests[-1]) == ["user: First?", "user: Again?"]


def test_a_restart_shows_the_same(drive: Any) -> None:
    store = MemoryStore()
    first, second = ScriptedModel(*TWO_TURNS[:2]), ScriptedModel(*TWO_TURNS[2:])
    drive(agent(first, memory(store, keep="answers")), "First?", conversation_id="s")
    drive(agent(second, memory(store, keep="answers")), "Second?", conversation_id="s")
    assert said(second.requests[-1])[:3] == ["user: First?", "model: It is a.", "user: Second?"]


def test_what_is_shown_is_legal_for_every_wire(drive: Any) -> None:
    model = ScriptedModel(*TWO_TURNS, [("book", {"what": "it"})], "Fine.")
    mine = agent(model, memory(keep="answers"))
    for text in ("First?", "Second?", "Book it", "Thanks"):
        drive(mine, text, conversation_id="s")
    for request in model.requests:
        assert request.transcript[0].__class__ is UserSaid
        roles = [m["role"] for m in anthropic.messages_for(request.transcript)]
        assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]
        ids = [c["id"] for m in openai_chat.messages_for(request.transcript) for c in m.get("tool_calls", ())]
        assert ids == [m["tool_call_id"] for m in openai_chat.messages_for(request.transcript) if m["role"] == "tool"]


def test_what_a_layer_adds_to_the_request_is_shown(drive: Any) -> None:
    class Reminder:
        name = "reminder"

        def around_model(self, request: Any) -> Any:
            from dataclasses import replace

            added = (*request.transcript, Note("Be brief."))
            return (yield replace(request, transcript=added))

    model = ScriptedModel(*TWO_TURNS)
    mine = agent(model, Reminder(), memory(keep="answers"))
    drive(mine, "First?", conversation_id="s")
    drive(mine, "Second?", conversation_id="s")
    assert said(model.requests[-1])[-2:] == ["tools: found b", "note: Be brief."]
    assert said(model.requests[-1])[:3] == ["user: First?", "model: It is a.", "user: Second?"]


def test_the_window_of_twenty_counts_what_memory_leaves(drive: Any) -> None:
    """BK-3: a memory of 20 messages holds questions and answers of earlier turns, not the calls between them."""
    script = [step for n in range(12) for step in ([("look", {"what": str(n)})], f"It is {n}.")]
    model = ScriptedModel(*script)
    mine = agent(model, memory(MemoryStore(), keep="answers"), history(20, step=0))
    for n in range(12):
        drive(mine, f"Question {n}?", conversation_id="s")
    last = said(model.requests[-1])
    assert last[:2] == ["user: Question 3?", "model: It is 3."]
    assert last[-3:] == ["user: Question 11?", "model: look", "tools: found 11"]
    assert len(last) == 8 * 2 + 3


MANY = [{"name": f"tool_{n}", "description": f"Does thing {n}", "kind": "read"} for n in range(30)]


@pytest.mark.parametrize("layers", ["everything", "answers", "history", "answers and history"])
def test_a_found_tool_stays_callable_in_later_turns_whatever_is_shown(drive: Any, layers: str) -> None:
    """C22, SA-19, X1: search, load, many turns with a small window, call: it runs, and no search is needed again."""
    chosen: dict[str, list[Any]] = {
        "everything": [memory(keep="everything")],
        "answers": [memory(keep="answers")],
        "history": [history(6)],
        "answers and history": [memory(keep="answers"), history(1)],
    }
    script: list[Any] = [[("search_tools", {"queries": ["thing seven"]})], "Found it."]
    script += [f"Answer {n}." for n in range(20)]
    script += [[("tool_7", {})], "Called it."]
    model = ScriptedModel(*script)
    search = ToolSearch(
        Catalog(MANY),
        FixedIndex({"thing seven": ["tool_7"]}),
        mode="append",
        run=lambda tool, arguments, _: f"ran {tool.id}",
    )
    mine = Agent(model, search, layers=chosen[layers], store=MemoryStore())
    drive(mine, "Find seven", conversation_id="s")
    for n in range(20):
        drive(mine, f"Question {n}", conversation_id="s")
    drive(mine, "Call seven", conversation_id="s")
    assert "tools: ran tool_7" in said(model.requests[-1])
    assert all([shown.name for shown in request.tools] == ["search_tools", "tool_7"] for request in model.requests[1:])
    if layers != "everything":
        assert not any("search_tools" in line for line in said(model.requests[-1])), "the search is no longer shown"


def test_a_reply_of_the_provider_is_kept_verbatim(drive: Any) -> None:
    raw = {"role": "assistant", "content": "It is a.", "extra": "signature"}
    model = ScriptedModel(Reply("It is a.", raw=raw, wire="openai-chat"), "Yes.")
    mine = agent(model, memory(keep="answers"))
    drive(mine, "First?", conversation_id="s")
    drive(mine, "Really?", conversation_id="s")
    reply = model.requests[-1].transcript[1]
    assert isinstance(reply, ModelReplied)
    assert reply.raw == raw


def test_a_wrong_choice_is_refused() -> None:
    with pytest.raises(SetupError, match="keep must be 'everything' or 'answers'"):
        memory(keep="some")  # type: ignore[arg-type]
    with pytest.raises(SetupError, match=r"store must be a store.*it has no append, load"):
        memory({"a": 1})  # type: ignore[arg-type]
