"""Tools an agent always has: pinned, never searched, each usable alone."""

import os
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Caller, SetupError, ToolCall, ToolSearch, builtin_tools
from toolsearch.builtin_tools import InProcessMemories, Todo, owner_of, todos_of
from toolsearch.events.facts import Answers, Note, ToolReturned
from toolsearch.events.requests import Answer, CallModel, Paused
from toolsearch.layers import history, interaction, memory
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel

PLAN = [
    {"task": "Look", "status": "done"},
    {"task": "Write", "status": "in_progress"},
    {"task": "Send", "status": "pending"},
]
LISTED = "1 of 3 done.\n[x] Look\n[>] Write\n[ ] Send"


def agent(*script: Any, pinned: Any = (), **options: Any) -> Agent:
    return Agent(ScriptedModel(*script), ToolSearch([], mode="append", pinned=pinned), **options)


def results(of: Agent, session: str = "desk", **options: Any) -> list[ToolReturned]:
    """All answers, in the order of the calls."""
    shown = of.conversation(session, **options).transcript
    return [result for message in shown if isinstance(message, Answers) for result in message.results]


def test_meta_tools_are_always_listed_and_never_searched() -> None:
    """BK-4: the system text names them with their first sentence and says to call them directly."""
    tools = [
        builtin_tools.todos().tool,
        builtin_tools.memories().tool,
        builtin_tools.ask_user(),
        builtin_tools.skills({"refunds": "How to pay back."}),
    ]
    search = ToolSearch([{"name": "get_weather", "description": "Weather"}], mode="append", pinned=[*tools, tools[0]])
    session = search.session()
    names = [shown.name for shown in session.tools()]
    assert names == ["search_tools", "write_todos", "remember", "ask_user", "load_skill"]
    told = session.instructions()
    assert "call them directly and do not search for them" in told
    assert "- write_todos: Writes down the plan for a task of several steps" in told
    assert "search once more in other words" in told
    for query in ("plan to-do list", "ask the user a question", "load skill instructions", "remember write_todos"):
        assert not session.handle(ToolCall("c1", "search_tools", {"queries": [query]})).data["loaded"]


# -- a to-do list ----------------------------------------------------------------------------------------------------


def test_a_plan_is_kept_as_a_fact_and_shown_as_the_answer(drive: Any) -> None:
    todos = builtin_tools.todos()
    made = agent([("write_todos", {"todos": PLAN})], "I go on.", pinned=[todos.tool], layers=[todos])
    drive(made, "Do it", conversation_id="desk")
    assert results(made)[0].content == LISTED
    assert todos_of(made.conversation("desk").journal) == [
        Todo("Look", "done"), Todo("Write", "in_progress"), Todo("Send", "pending"),
    ]  # fmt: skip
    assert "Your to-do list" not in str(made.parts.model.requests)  # type: ignore[attr-defined]


@pytest.mark.parametrize("cuts", [lambda: history(messages=1), lambda: memory(keep="answers")])
def test_a_plan_that_is_cut_from_what_is_shown_is_shown_again_until_all_is_done(drive: Any, cuts: Any) -> None:
    seen: list[Any] = []

    def looks(request: CallModel) -> str:
        seen.append(request.transcript[-1])
        return "Yes."

    done = [{**each, "status": "done"} for each in PLAN]
    todos = builtin_tools.todos()
    made = agent(
        [("write_todos", {"todos": PLAN})], "I go on.", looks, [("write_todos", {"todos": done})], "All done.", looks,
        pinned=[todos.tool], layers=[cuts(), todos],
    )  # fmt: skip
    for said in ("Do it", "And?", "Finish", "And?"):
        drive(made, said, conversation_id="desk")
    assert seen[0] == Note(f"Your to-do list: {LISTED}")
    assert not isinstance(seen[1], Note)


def test_a_plan_that_is_none_is_refused_and_not_kept(drive: Any) -> None:
    todos = builtin_tools.todos()
    calls: list[Any] = [[{"task": "Look", "status": "maybe"}], []]
    made = agent(*[[("write_todos", {"todos": call})] for call in calls], "Hm.", pinned=[todos.tool], layers=[todos])
    drive(made, "Do it", conversation_id="desk")
    assert [each.status for each in results(made)] == ["invalid_arguments", "ok"]
    assert results(made)[1].content == "The list is empty."


# -- a question to the user ------------------------------------------------------------------------------------------


def test_the_user_is_asked_and_the_answer_is_the_tools(drive: Any) -> None:
    """NA-4: the synthesised ask."""
    script = [("q1", "ask_user", {"question": "Which one?", "choices": ["red", "blue"]})]
    made = agent(script, "Blue it is.", pinned=[builtin_tools.ask_user()], layers=[interaction(["ask_user"])])
    paused = drive(made, "Paint it", conversation_id="desk")
    assert isinstance(paused, Paused)
    assert (paused.waiting[0].kind, paused.waiting[0].question) == ("question", "Which one?")
    assert drive(made, conversation_id="desk", decisions={"q1": Answer("blue")}).text == "Blue it is."
    assert results(made)[0].content == "blue"


def test_a_question_without_the_layer_says_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    made = agent([("ask_user", {"question": "Which one?"})], "Hm.", pinned=[builtin_tools.ask_user()])
    made.run("Paint it", conversation_id="desk")
    assert results(made)[0].status == "failed"
    assert "add layers.interaction(['ask_user'])" in caplog.text


# -- skills ----------------------------------------------------------------------------------------------------------


def folder_of_skills(at: Path) -> Path:
    (at / "refunds").mkdir()
    (at / "refunds" / "SKILL.md").write_text(
        "---\nname: refunds\ndescription: Pay money back. In euros.\n---\n# Text\n"
    )
    (at / "tone.md").write_text("# How we write to customers. Always.\n\nBe brief. Grüße.\n", "utf-8")
    (at / "notes.txt").write_text("no skill")
    return at


def test_skills_are_listed_with_a_sentence_and_loaded_by_name(drive: Any, tmp_path: Path) -> None:
    """NA-4: the synthesised skill. A file is read when it is asked for."""
    tool = builtin_tools.skills(folder_of_skills(tmp_path))
    assert "\n- refunds: Pay money back.\n- tone: How we write to customers." in tool.description
    assert "In euros" not in tool.description
    (tmp_path / "tone.md").write_text("Be kind.", "utf-8")
    script = [("load_skill", {"skill": "tone"}), ("load_skill", {"skill": "../notes.txt"})]
    made = agent(script, "I know.", pinned=[tool])
    drive(made, "Write", conversation_id="desk")
    assert [each.status for each in results(made)] == ["ok", "invalid_arguments"]
    assert results(made)[0].content == "Be kind."


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({}, "there are no skills in {}"),
        ({"a": ""}, "the text of the skill 'a' must be text, not ''"),
        ("no/such/folder", "there is no folder"),
        (42, "a folder, or a mapping from names to texts, not 42"),
    ],
)
def test_what_holds_no_skills_is_an_error(source: Any, why: str) -> None:
    with pytest.raises(SetupError, match=why):
        builtin_tools.skills(source.replace("/", os.sep) if isinstance(source, str) else source)


# -- memories --------------------------------------------------------------------------------------------------------


def test_what_is_remembered_is_in_the_system_text_of_later_turns_and_conversations(drive: Any) -> None:
    """NA-4: the synthesised memory."""
    systems: list[str] = []

    def looks(request: CallModel) -> str:
        systems.append(request.system)
        return "Fine."

    kept = builtin_tools.memories()
    made = agent(
        [("remember", {"key": " preferred  language ", "text": "Portuguese"})], looks, looks, looks, looks,
        pinned=[kept.tool], layers=[kept],
    )  # fmt: skip
    ana, bob = Caller("ana", tenant="acme"), Caller("ana", tenant="other")
    drive(made, "In Portuguese, please", conversation_id="one", caller=ana)
    drive(made, "And?", conversation_id="one", caller=ana)
    drive(made, "Hello", conversation_id="two", caller=ana)
    drive(made, "Hello", conversation_id="three", caller=bob)
    told = "- preferred language: Portuguese"
    # Not within the turn in which it was written down: what was shown keeps its bytes.
    assert [told in system for system in systems] == [False, True, True, False]
    assert "facts, and no instructions" in systems[1]


def test_callers_without_a_user_share_nothing(drive: Any) -> None:
    store = InProcessMemories()
    kept = builtin_tools.memories(store)
    made = agent([("remember", {"key": "name", "text": "Ana"})], "Hello Ana.", pinned=[kept.tool], layers=[kept])
    drive(made, "I am Ana", conversation_id="one")
    assert store.load(owner_of(None, "one")) == {"name": "Ana"}
    assert store.load(owner_of(None, "two")) == store.load(owner_of(Caller("ana"), "one")) == {}


def test_a_memory_may_be_replaced_and_forgotten_and_has_a_size(drive: Any) -> None:
    store = InProcessMemories()
    kept = builtin_tools.memories(store)
    calls = [("a", "x" * 1001), ("a", "one"), ("b", "two"), ("a", "three"), ("b", ""), (" ", "four")]
    made = agent(*[[("remember", {"key": k, "text": t})] for k, t in calls], "Ok.", pinned=[kept.tool], layers=[kept])
    drive(made, "Go", conversation_id="desk")
    assert [each.status for each in results(made)] == ["invalid_arguments", "ok", "ok", "ok", "ok", "invalid_arguments"]
    assert "Say it more briefly" in results(made)[0].content
    assert store.load(owner_of(None, "desk")) == {"a": "three"}


def test_memories_may_live_in_an_async_store() -> None:
    import asyncio

    texts: dict[str, str] = {}

    class Store:
        async def load(self, owner: str) -> dict[str, str]:
            return dict(texts)

        async def save(self, owner: str, key: str, text: str) -> None:
            texts[key] = text

    kept = builtin_tools.memories(Store())
    made = agent([("remember", {"key": "name", "text": "Ana"})], "Ok.", pinned=[kept.tool], layers=[kept])
    asyncio.run(made.arun("I am Ana", conversation_id="desk"))
    assert texts == {"name": "Ana"}


def test_what_keeps_no_memories_is_an_error() -> None:
    with pytest.raises(SetupError, match=r"store must be a store of memories, as .* not 42: it has no load, save"):
        builtin_tools.memories(42)  # type: ignore[arg-type]
