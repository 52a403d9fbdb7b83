"""The trace: what happens, told from events alone; PG-8 (the trace panel), BK-3 (tracer)."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import Caller, SetupError, StateError, ToolSearch, tool
from toolsearch.events.facts import (
    Compacted,
    ModelCalled,
    ModelReplied,
    Noted,
    Reply,
    ReplyDiscarded,
    RunBegan,
    RunEnded,
    TextDelta,
    ToolsUnloaded,
    Usage,
    UserSaid,
)
from toolsearch.events.journal import stored
from toolsearch.events.requests import Approve
from toolsearch.layers import approval, limits, processors, retry, trace
from toolsearch.layers import trace as observer
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


def look(at: int, password: str = "") -> str:
    """Look at a place"""
    return f"seen {at}\ntoken=tok-{at}"


@tool(kind="action")
def pay(who: str, amount: int) -> str:
    """Pay somebody"""
    return f"paid {who}"


SEARCH = ToolSearch([look, pay], mode="static")


def told(text: str) -> list[str]:
    """The lines without their times."""
    return [re.sub(r"\d+ ms|\d+\.\d s", "0 ms", line) for line in text.splitlines()]


class Screen(io.StringIO):
    """A terminal that keeps what it shows, as it is after each write."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.states: list[str] = []

    def write(self, text: str) -> int:
        count = super().write(text)
        self.states.append(self.getvalue())
        return count


# -- what is told ------------------------------------------------------------------------------------------------


def test_a_turn_is_told_from_what_was_said_to_why_it_ended(drive: Any) -> None:
    """PG-8: the message, calls with arguments, results, decisions, usage, the end."""
    screen = Screen()
    search = ToolSearch([look, pay], mode="append")
    model = ScriptedModel(
        [("search_tools", {"query": "look at a place"}), ("search_tools", {"query": "pay somebody"})],
        [("look", {"at": 1, "password": "hunter2"}), ("nope", {})],
        [("pay", {"who": "Ana", "amount": 500})],
        "I paid Ana.",
    )
    agent = Agent(model, search, layers=[approval()], observe=trace(screen))
    paused = drive(agent, "Pay Ana", conversation_id="s1", caller=Caller("bob"))
    decisions = {paused.waiting[0].id: Approve({"who": "Ana", "amount": 5}, remember="tool")}
    drive(agent, conversation_id="s1", caller=Caller("bob"), decisions=decisions)
    lines = told(screen.getvalue())
    assert lines[:4] == [
        "turn       s1 for bob",
        "user       Pay Ana",
        "usage      scripted, 100 tokens in, 10 out, 0 ms",
        'search     search_tools {"query": "look at a place"}',
    ]
    for line in (
        "loaded     look",
        'call       look {"at": 1, "password": "[redacted]"}',
        "call       nope {}",
        "result     look ok, 0 ms: seen 1",
        "           token=[redacted]",
        'waits      pay (approval): Run pay? {"who": "Ana", "amount": 500} (conversation \'s1\', for bob)',
        'decided    pay approved by bob, for the tool, with {"who": "Ana", "amount": 5}',
        "result     pay ok, 0 ms: paid Ana",
    ):
        assert lines.count(line) == 1, f"{line!r} is not once in {lines}"
    assert any(line.startswith("result     nope unknown, by the session: 'nope' did not run") for line in lines)
    assert lines[-3:] == [
        "model      I paid Ana.",
        "usage      scripted, 100 tokens in, 10 out, 0 ms",
        "end        answered; 3 rounds, 5 calls; 400 tokens in, 40 out, 0 ms",
    ]


def test_a_stored_journal_tells_the_same(drive: Any) -> None:
    watching = trace(io.StringIO())
    agent = Agent(ScriptedModel([("look", {"at": 1})], "Seen."), SEARCH, observe=watching)
    drive(agent, "Look", conversation_id="s1")
    live = told(str(watching))
    assert live[0] == "turn       s1"
    assert told(trace.text(agent.store.load("s1")))[1:] == live[1:]
    assert told(trace.text(agent.conversation("s1").journal))[1:] == live[1:]
    with pytest.raises(StateError, match="unknown kind 'Nothing'"):
        trace.text([{"v": 1, "fact": "Nothing"}])


def test_reasoning_parts_of_messages_and_other_ends_are_told() -> None:
    journal = [
        RunBegan("r"),
        UserSaid("Look", ({"type": "image"},)),
        ModelCalled(usage=Usage(10, 4, 2, 1), model="m"),
        ModelReplied("Hm.", reasoning="The user\nwants to look"),
        ModelCalled("history_summary", "m", Usage(5, 0, 1, 1)),
        Compacted(1, "They looked."),
        ToolsUnloaded(("a/b",), ("a/b has changed",)),
        Noted("limits", {"outcome": "wrap-up", "round": 17}),
        Noted("memory", {"other": 1}),
        ModelCalled(error="TimeoutError: late"),
        RunEnded("round limit", "It ends here.", {"n": 1}),
    ]
    assert told(trace.text(journal)) == [
        "turn",
        "user       Look",
        "           (and 1 more: an image, a file or the like)",
        "thinks     The user",
        "           wants to look",
        "model      Hm.",
        "usage      m, 10 tokens in, 2 out (4 cached), 0 ms",
        "usage      history_summary: m, 5 tokens in, 1 out, 0 ms",
        "note       earlier messages are no longer shown: They looked.",
        "unloaded   a/b",
        "changed    a/b has changed",
        "note       limits: wrap-up",
        "usage      model, 0 tokens in, 0 out, 0 ms, failed: TimeoutError: late",
        "end        round limit; 0 rounds, 0 calls; 15 tokens in, 3 out",
        "           It ends here.",
        'value      {"n": 1}',
    ]


def test_guards_and_refusals_are_told(drive: Any) -> None:
    agent = Agent(
        ScriptedModel([("pay", {"who": "Ana", "amount": 1})], [("pay", {"who": "Bob", "amount": 1})]),
        SEARCH,
        layers=[limits(), approval(lambda waiting: {})],
    )
    drive(agent, "Pay", conversation_id="s1", caller=Caller("bob"))
    lines = told(trace.text(agent.store.load("s1")))
    assert "decided    pay declined by bob" in lines
    assert "note       approval: declined-repeat (pay)" in lines


def test_a_run_that_fails_is_told_with_its_error_redacted(drive: Any) -> None:
    watching = trace(io.StringIO())
    with pytest.raises(ConnectionError):
        drive(Agent(ScriptedModel(ConnectionError("api_key=abc")), SEARCH, observe=watching), "Look")
    assert "failed: ConnectionError: api_key=[redacted]" in str(watching)
    assert "abc" not in str(watching)


def test_long_texts_are_cut_and_control_characters_written_out(drive: Any) -> None:
    """What a model or a tool writes must not steer a terminal."""
    model = ScriptedModel([("look\x1b[2J", {"at": "x" * 500})], "Bad \x1b]0;title\x07 text")
    screen = Screen()
    drive(Agent(model, SEARCH, observe=trace(screen, characters=50)), "Look \x9b31m", conversation_id="s\x1b1")
    assert "\x1b" not in screen.getvalue()
    assert "\x9b" not in screen.getvalue()
    assert "… (510 characters)" in screen.getvalue()
    assert "model      Bad \\x1b]0;title\\x07 text" in screen.getvalue()


def test_a_redaction_of_your_own_is_used_for_everything(drive: Any) -> None:
    watching = trace(io.StringIO(), redact=lambda text: text.replace("Ana", "A."))
    agent = Agent(ScriptedModel([("look", {"at": "Ana"})], "Ana."), SEARCH, observe=watching)
    drive(agent, "Ana?", conversation_id="Ana", caller=Caller("Ana"))
    assert "Ana" not in str(watching)


# -- pieces as they come -----------------------------------------------------------------------------------------


def test_a_reply_is_shown_as_it_comes_in_and_once(drive: Any) -> None:
    screen = Screen()
    drive(Agent(ScriptedModel("One two three.", pieces=4), SEARCH, observe=trace(screen, colour=False)), "Count")
    assert any(state.endswith("model      One ") for state in screen.states)
    assert any(state.endswith("model      One two ") for state in screen.states)
    assert screen.getvalue().count("three.") == 1
    assert told(screen.getvalue())[2:4] == [
        "model      One two three.",
        "usage      scripted, 100 tokens in, 10 out, 0 ms",
    ]


def test_a_reply_that_does_not_come_in_pieces_after_all_is_shown_whole(drive: Any) -> None:
    """A layer that may change a reply buffers: no piece is shown."""
    screen = Screen()
    layer = processors(out=[lambda reply: None])
    agent = Agent(ScriptedModel("One two.", pieces=2), SEARCH, layers=[layer], observe=trace(screen))
    drive(agent, "Count")
    assert screen.getvalue().count("model      One two.") == 1


def test_reasoning_that_comes_in_pieces_is_a_line_of_its_own(drive: Any) -> None:
    def thinks(_: Any) -> Any:
        yield TextDelta("I should ", "reasoning")
        yield TextDelta("count.", "reasoning")
        yield TextDelta("One\ntwo.")
        yield Reply("One\ntwo.", reasoning="I should count.")

    screen = Screen()
    drive(Agent(thinks, SEARCH, observe=trace(screen)), "Count")
    assert told(screen.getvalue())[2:5] == ["thinks     I should count.", "model      One", "           two."]


def test_a_reply_that_is_discarded_is_told_and_shown_anew(drive: Any) -> None:
    """The deltas shown since the last reply count for nothing."""
    screen = Screen()
    tries: list[int] = []

    def model(_: Any) -> Any:
        tries.append(1)
        yield TextDelta("One two ")
        if len(tries) == 1:
            raise ConnectionError("gone")
        yield Reply("One two ", usage=Usage(1, 0, 1))

    watching = trace(screen)
    agent = Agent(model, SEARCH, layers=[retry(2, 0.001)], observe=watching)
    with pytest.raises(ConnectionError):  # something was shown, so it is not tried again
        drive(agent, "Count", conversation_id="s1")
    assert told(screen.getvalue())[2:6] == [
        "model      One two ",
        "discarded  what was shown of this reply counts for nothing: ConnectionError",
        "usage      model, 0 tokens in, 0 out, 0 ms, failed: ConnectionError: gone",
        "end        failed; 0 rounds, 0 calls; 0 tokens in, 0 out, 0 ms",
    ]
    assert "model" not in str(watching).split(), "what was discarded is not kept"
    drive(agent, "Count", conversation_id="s1")
    assert screen.getvalue().count("model      One two ") == 2


@given(st.lists(st.integers(1, 9)), st.sampled_from([
    "the password: hunter2 is it",
    'it is {"api_key": "hunter2 and more"} there',
    "use sk-" + "hunter2hunter2hunter2 now",
    "Authorization: Bearer hunter2hunter2\nnext",
    "-----BEGIN " + "PRIVATE KEY-----\nhunter2\nhunter2\n-----END PRIVATE KEY-----\nend",
    "密码 password=hunter2, 好的",
]))  # fmt: skip
def test_no_secret_shows_however_a_reply_is_cut_into_pieces(cuts: list[int], text: str) -> None:
    screen = Screen()
    watching = trace(screen, colour=False)
    at = 0
    for cut in [*cuts, 999]:
        if text[at : at + cut]:
            watching(TextDelta(text[at : at + cut]))
        at += cut
    watching(ModelReplied(text))
    assert "hunter2" not in screen.getvalue()
    assert "[redacted]" in screen.getvalue()


def test_a_long_reply_in_small_pieces_is_not_looked_at_for_every_letter() -> None:
    looked: list[int] = []

    def count(text: str) -> str:
        looked.append(len(text))
        return text

    watching = trace(Screen(), redact=count)
    for _ in range(20_000):
        watching(TextDelta("a "))
    watching(ModelReplied("a " * 20_000))
    assert sum(looked) < 200 * 3 * 40_000, "in proportion to the length, not to its square"
    assert len(looked) < 3_000


# -- many conversations ------------------------------------------------------------------------------------------


def test_conversations_beside_each_other_are_told_apart() -> None:
    """Calls of one id in two conversations are two calls."""
    both = threading.Barrier(2, timeout=20)

    def here() -> str:
        """Here"""
        both.wait()
        return "here"

    def there() -> str:
        """There"""
        both.wait()
        return "there"

    screen = Screen()
    watching = trace(screen)
    search = ToolSearch([here, there], mode="static")
    model = ScriptedModel(*[lambda request: [("c", request.turn.said, {})] if not request.turn.rounds else "Done."] * 4)
    agent = Agent(model, search, observe=watching)
    named = [{"conversation_id": name} for name in ("here", "there")]
    threads = [threading.Thread(target=agent.run, args=(each["conversation_id"],), kwargs=each) for each in named]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for text in (str(watching), screen.getvalue()):
        parts = re.split(r"^== (.*) ==$|^turn +(.*)$", text, flags=re.MULTILINE)
        lines: dict[str, str] = {"here": "", "there": ""}
        for heading, turn, part in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            lines[heading or turn] = lines.get(heading or turn, "") + part
        assert "result     here ok" in lines["here"]
        assert "there" not in lines["here"]
        assert "result     there ok" in lines["there"]


def test_a_trace_that_sees_many_lines_keeps_the_last() -> None:
    watching = trace(Screen())
    for number in range(2_100):
        watching(UserSaid(f"{number}"))
    assert str(watching).startswith("user       100\n")
    assert repr(watching) == "trace(2000 lines)"


# -- where it is shown -------------------------------------------------------------------------------------------


def test_colours_are_for_terminals_and_text_is_the_same_without(drive: Any) -> None:
    script: list[Any] = [[("look", {"at": 1}), ("nope", {})], "[bold]Seen.[/bold] :smile:"]
    screens = [Screen(), Screen(), Screen()]
    for screen, colour in zip(screens, (True, False, None), strict=True):
        drive(
            Agent(ScriptedModel(*script, pieces=3), SEARCH, observe=trace(screen, colour=colour)),
            "Look",
            conversation_id="s",
        )
    coloured, plain, neither = (screen.getvalue() for screen in screens)
    assert "\x1b[" in coloured
    assert told(re.sub(r"\x1b\[[\d;]*m", "", coloured)) == told(plain) == told(neither)
    assert "[bold]Seen.[/bold] :smile:" in plain


def test_without_rich_it_is_plain_text(drive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    screen = Screen()
    drive(Agent(ScriptedModel("Hello."), SEARCH, observe=trace(screen, colour=True)), "Hi", conversation_id="s1")
    assert told(screen.getvalue())[:3] == ["turn       s1", "user       Hi", "model      Hello."]


def test_by_default_it_writes_to_the_standard_output_of_the_moment(drive: Any, capsys: Any) -> None:
    watching = trace()
    drive(Agent(ScriptedModel("Hello."), SEARCH, observe=watching), "Hi", conversation_id="s1")
    assert told(capsys.readouterr().out)[1] == "user       Hi"


def test_a_file_of_another_encoding_gets_what_it_can_hold() -> None:
    raw = io.BytesIO()
    watching = trace(io.TextIOWrapper(raw, "ascii"), colour=False)
    watching(UserSaid("naïve … \ud800"))
    assert raw.getvalue() == b"user       na?ve ? ?\n"


def test_the_table_of_a_notebook_is_escaped() -> None:
    html = trace.of([UserSaid("<script>alert(1)</script>\npassword=hunter2")])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\npassword=[redacted]" in html
    assert "pre-wrap" in html


def test_the_table_names_conversations_where_there_are_several(drive: Any) -> None:
    watching = trace(io.StringIO())
    agent = Agent(ScriptedModel("A.", "B."), SEARCH, observe=watching)
    drive(agent, "Hi", conversation_id="<one>")
    assert "<b>&lt;one&gt;</b>" in watching._repr_html_()
    drive(agent, "Hi", conversation_id="two")
    assert ">two</td>" in watching._repr_html_()


@pytest.mark.slow
def test_a_notebook_shows_the_turn_below_the_cell_that_runs_it() -> None:
    """In a real kernel: one table a turn, which is renewed as events come."""
    import nbclient
    import nbformat

    cells = [
        "from toolsearch import Agent, ToolSearch, layers, testing",
        "model = testing.ScriptedModel('One two.', 'Three.', pieces=2)",
        "agent = Agent(model, ToolSearch([]), observe=layers.trace())",
        "agent.run('Count', conversation_id='s1').reason",
        "await agent.arun('More', conversation_id='s1')\nNone",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    tables = [
        [output["data"]["text/html"] for output in cell["outputs"] if "text/html" in output.get("data", {})]
        for cell in notebook.cells
    ]
    assert [len(each) for each in tables] == [0, 0, 0, 1, 1]
    assert ">One two.</td>" in tables[3][0]
    assert ">Three.</td>" in tables[4][0]
    assert "One two" not in tables[4][0]


def test_importing_it_imports_neither_rich_nor_ipython() -> None:
    program = "import sys, toolsearch.layers._trace; print([m for m in ('rich', 'IPython') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_what_it_cannot_use_is_refused() -> None:
    assert observer is trace
    with pytest.raises(SetupError, match=r"for a journal: trace\.of"):
        trace([stored(UserSaid("Hi"))])  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="characters must be a whole number of at least 1, not 0"):
        trace(characters=0)
    trace(io.StringIO())(ReplyDiscarded("x"))
