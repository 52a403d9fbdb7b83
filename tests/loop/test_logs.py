"""Logs of the loop, and what is redacted in them; PG-8 (a log-identity scope), BK-3 (logger)."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import SetupError, ToolContext, ToolSearch, tool
from toolsearch.layers import LogFilter, approval, follow_ups, log_model, logs, retry
from toolsearch.loop.agent import Agent
from toolsearch.support.context import Scope, scope
from toolsearch.support.redaction import excerpt, redacted, visible
from toolsearch.testing import ScriptedModel

own = logging.getLogger("tests.desk")


def look(at: int, password: str = "") -> str:
    """Look at something"""
    own.info("looking with password=%s", password)
    return f"seen {at}, token=tok-{at}"


@tool(kind="action")
def pay(who: str) -> str:
    """Pay somebody"""
    return f"paid {who}"


SEARCH = ToolSearch([look, pay], mode="static")


class Records(logging.Handler):
    """Keeps what is logged, as a log file would show it."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s %(conversation)s %(call)s %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def records() -> Iterator[Records]:
    kept = Records()
    kept.addFilter(LogFilter())
    loggers = [logging.getLogger("toolsearch"), own]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.INFO)
        logger.addHandler(kept)
    yield kept
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.removeHandler(kept)


# -- lines -------------------------------------------------------------------------------------------------------


def test_a_round_is_a_line_and_so_is_the_end_of_a_run(drive: Any, records: Records) -> None:
    """PG-8: by default, with names, statuses, times and tokens; no argument and no result."""
    model = ScriptedModel([("look", {"at": 7}), ("nope\nINFO forged", {})], [("look", {"at": 8})], "Seen.")
    drive(Agent(model, SEARCH), "Look", conversation_id="s1")
    lines = [line for line in records.lines if "looking" not in line and not line.startswith("WARNING")]
    assert len(lines) == 3
    assert lines[0].startswith("INFO s1 - round 1: look ok, nope_INFO_forged unknown; ")
    assert lines[0].endswith(" s, 100 + 10 tokens")
    assert lines[1].startswith("INFO s1 - round 2: look ok; ")
    assert "run ended" in lines[2]
    assert lines[2].endswith("answered; 300 + 30 tokens in this turn")
    assert "seen" not in "".join(lines)
    assert "7" not in lines[0].partition(";")[0]


def test_arguments_and_results_are_at_debug_redacted_and_cut(drive: Any, records: Records) -> None:
    logging.getLogger("toolsearch").setLevel(logging.DEBUG)
    model = ScriptedModel([("look", {"at": 7, "password": "hunter2"})], "Seen.")
    drive(Agent(model, SEARCH, layers=[logs(characters=20)]), "Look", conversation_id="s1")
    debug = [line for line in records.lines if line.startswith("DEBUG s1")]
    assert debug == [
        'DEBUG s1 - call c0_0 look: {"at": 7, "password"… (32 characters)',
        "DEBUG s1 - answer c0_0 look: seen 7, token=[redacted]",
    ]
    assert "hunter2" not in "\n".join(records.lines)


def test_a_run_that_pauses_is_gone_on_with_or_fails_says_so(drive: Any, records: Records) -> None:
    agent = Agent(ScriptedModel([("pay", {"who": "Ana"})], RuntimeError("key=1")), SEARCH, layers=[approval()])
    paused = drive(agent, "Pay", conversation_id="s1")
    with pytest.raises(RuntimeError):
        drive(agent, conversation_id="s1", decisions={paused.waiting[0].id: True})
    told = [line.partition(" - ")[2].partition(" after ")[0] for line in records.lines]
    assert [line.partition(";")[0] for line in told] == [
        "round 1: pay waits",
        "run paused",
        "round 1: pay ok",
        "run failed",
    ]
    assert [line.count("tokens") for line in records.lines] == [1, 0, 0, 0], "a reply's cost is said once"
    assert records.lines[-1].endswith("RuntimeError")


def test_a_cancelled_run_is_told_as_stopped(drive: Any, records: Records) -> None:
    def cancels(_: Any) -> str:
        agent.cancel("s1")
        return "Too late."

    agent = Agent(ScriptedModel([("look", {"at": 1})], cancels), SEARCH)
    drive(agent, "Look", conversation_id="s1")
    assert any(line.startswith("INFO s1 - run stopped") for line in records.lines)


def test_nothing_is_logged_where_the_level_is_higher(drive: Any, records: Records) -> None:
    logging.getLogger("toolsearch").setLevel(logging.WARNING)
    drive(Agent(ScriptedModel([("look", {"at": 1})]), SEARCH, actions="run"), "Look")
    assert [line for line in records.lines if "looking" not in line] == []


# -- what a model is sent and replies --------------------------------------------------------------------------------


def test_each_request_to_a_model_and_its_reply_are_records(drive: Any, records: Records) -> None:
    """BK-3: in every round, at the level that was chosen, with ids and without secrets."""
    logging.getLogger("toolsearch").setLevel(logging.DEBUG)
    model = ScriptedModel([("c1", "look", {"at": 7, "password": "hunter2"})], "Seen.\nINFO s1 - forged")
    agent = Agent(model, SEARCH, system="Be brief.", layers=[log_model(level=logging.INFO)])
    drive(agent, "Look, my token=abc", conversation_id="s1")
    told = [line for line in records.lines if line.startswith(("INFO s1 - request", "INFO s1 - reply"))]
    head = "to scripted: {}; 2 tools: look, pay\n    system: Be brief.\n    user: Look, my token=[redacted]"
    assert told[0] == "INFO s1 - request 1 " + head.format("1 message")
    assert told[1].startswith("INFO s1 - reply 1: 1 call; ")
    assert told[1].endswith('tokens; tool_calls\n    call c1 look: {"at": 7, "password": "[redacted]"}')
    assert told[2] == "INFO s1 - request 2 " + head.format("3 messages") + (
        '\n    call c1 look: {"at": 7, "password": "[redacted]"}\n    result c1 ok: seen 7, token=[redacted]'
    )
    assert told[3].endswith("100 + 10 tokens; stop\n    assistant: Seen.\n      INFO s1 - forged")
    assert "hunter2" not in "".join(records.lines)


def test_the_name_of_a_level_is_no_level() -> None:
    with pytest.raises(SetupError, match=r"level must be a number, as logging.INFO is, not 'INFO'"):
        log_model(level="INFO")  # type: ignore[arg-type]


def test_a_request_that_fails_is_a_record_and_the_helpers_calls_are(drive: Any, records: Records) -> None:
    """BK-3."""
    layers = [retry(seconds=0), follow_ups(), log_model(level=logging.INFO)]
    model = ScriptedModel(ConnectionError("password=x"), "Hello.", "- Why?")
    drive(Agent(model, SEARCH, layers=layers), "Hello", conversation_id="s1")
    told = [line.partition(" - ")[2].partition(":")[0] for line in records.lines]
    assert [line for line in told if line.startswith(("request", "reply"))] == [
        "request 1 to scripted", "request 1 failed", "request 1 to scripted", "reply 1",
        "request 1 (follow_ups) to scripted", "reply 1 (follow_ups)",
    ]  # fmt: skip


def test_no_request_is_logged_below_its_level_nor_if_its_redaction_fails(drive: Any, records: Records) -> None:
    """BK-3: the default level is DEBUG; a redaction that fails lets nothing through and ends no turn."""

    def fails(text: str) -> str:
        raise ValueError(text)

    drive(Agent(ScriptedModel("Hi."), SEARCH, layers=[log_model()]), "Hello", conversation_id="s1")
    assert not [line for line in records.lines if "request" in line]
    layer = log_model(level=logging.INFO, redact=fails)
    assert drive(Agent(ScriptedModel("Hi."), SEARCH, layers=[layer]), "Hello", conversation_id="s1").text == "Hi."
    told = "".join(records.lines)
    assert "user: [not shown: redaction failed, ValueError]" in told
    assert "Hello" not in told
    with pytest.raises(SetupError, match="characters must be a whole number of at least 1, not 0"):
        log_model(characters=0)


def test_logs_may_be_replaced_and_says_what_it_cannot_use() -> None:
    agent = Agent(ScriptedModel(), SEARCH, layers=[logs(characters=9)])
    assert [repr(layer) for layer in agent.parts.layers if layer.name == "logs"] == ["logs(characters=9)"]
    with pytest.raises(SetupError, match="characters must be a whole number of at least 1, not 0"):
        logs(characters=0)


# -- ids ---------------------------------------------------------------------------------------------------------


def test_a_line_of_a_tool_has_the_ids_of_its_conversation_and_call(drive: Any, records: Records) -> None:
    """PG-8: execution runs in a log-identity scope, in whatever thread."""
    drive(Agent(ScriptedModel([("look", {"at": 1}), ("look", {"at": 2})]), SEARCH), "Look", conversation_id="s1")
    assert sorted(line for line in records.lines if "looking" in line) == [
        "INFO s1 c0_0 looking with password=",
        "INFO s1 c0_1 looking with password=",
    ]
    own.info("not in a turn")
    assert records.lines[-1] == "INFO - - not in a turn"


def test_conversations_that_take_turns_in_one_thread_keep_their_ids(records: Records) -> None:
    """The context belongs to the turn, not to whoever reads the stream."""
    agent = Agent(ScriptedModel(*[[("look", {"at": 1})]] * 2), SEARCH)
    one, two = agent.stream("Look", conversation_id="one"), agent.stream("Look", conversation_id="two")
    seen: set[Scope] = set()
    for _ in zip(one, two, strict=False):
        seen.add(scope())
    list(one), list(two)
    assert seen == {Scope()}
    rounds = sorted(line.split(" - ")[0] for line in records.lines if "round 1" in line)
    assert rounds == ["INFO one", "INFO two"]


def test_a_stream_may_be_read_by_another_thread_for_each_event(records: Records) -> None:
    """As web frameworks do it, each time in another context."""
    stream = Agent(ScriptedModel([("look", {"at": 1})]), SEARCH).stream("Look", conversation_id="s1")
    ended: list[bool] = []
    while not ended:
        thread = threading.Thread(target=lambda: next(stream, None) is None and ended.append(True))
        thread.start()
        thread.join(20)
    assert {line.split()[1] for line in records.lines} == {"s1"}


def test_what_a_gate_does_beside_the_loop_has_the_id_too(drive: Any, records: Records) -> None:
    def ask(waiting: Any) -> Any:
        own.info("asking")
        return {each.id: True for each in waiting}

    drive(Agent(ScriptedModel([("pay", {"who": "Ana"})]), SEARCH, layers=[approval(ask)]), "Pay", conversation_id="s1")
    assert "INFO s1 - asking" in records.lines


def test_an_agent_inside_a_tool_logs_as_its_own_conversation(drive: Any, records: Records) -> None:
    def delegate(task: str, context: ToolContext) -> str:
        """Have somebody else do it"""
        child = f"{context.conversation_id}/{context.call_id}"
        return Agent(ScriptedModel([("look", {"at": 1})], "Done."), SEARCH).run(task, conversation_id=child).text  # type: ignore[union-attr]

    search = ToolSearch([tool(delegate)], mode="static")
    drive(Agent(ScriptedModel([("delegate", {"task": "look"})]), search), "Go", conversation_id="s1")
    assert "INFO s1/c0_0 c0_0 looking with password=" in records.lines
    assert any(line.startswith("INFO s1 - round 1: delegate ok") for line in records.lines)


# -- the filter --------------------------------------------------------------------------------------------------


def test_the_text_of_an_error_that_is_logged_is_redacted(drive: Any, records: Records) -> None:
    def observer(event: Any) -> None:
        raise RuntimeError("cannot reach https://ana:s3cr3t@db.example with password='hunter2'")

    drive(Agent(ScriptedModel(), SEARCH, observe=observer), "Hello", conversation_id="s1")
    told = "\n".join(records.lines)
    assert "RuntimeError" in told
    assert "https://ana:[redacted]@db.example with password='[redacted]'" in told
    assert "hunter2" not in told


def test_a_redaction_of_your_own_takes_the_place_of_ours(records: Records) -> None:
    other = LogFilter(lambda text: text.replace("Ana", "A."))
    records.addFilter(other)
    own.info("paid %s", "Ana")
    assert records.lines == ["INFO - - paid A."]


def test_a_redaction_that_fails_lets_nothing_through_and_breaks_nothing(records: Records) -> None:
    def fails(text: str) -> str:
        raise ValueError(text)

    records.addFilter(LogFilter(fails))
    own.info("password hunter2")
    assert records.lines == ["INFO - - (a line that could not be redacted: ValueError)"]


def test_a_record_that_two_filters_see_keeps_the_ids_of_where_it_was_made() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "hi", (), None)
    record.conversation, record.call = "s1", "c1"
    assert LogFilter().filter(record)
    assert (record.conversation, record.call) == ("s1", "c1")


# -- redaction ---------------------------------------------------------------------------------------------------

GONE = [
    ("password=hunter2 user=ana", "password=[redacted] user=ana"),
    ('{"password": "hun ter\\"2", "a": 1}', '{"password": "[redacted]", "a": 1}'),
    ("{'api_key': 'x y', 'n': 3}", "{'api_key': '[redacted]', 'n': 3}"),
    ('{"args": "{\\"token\\": \\"ab c\\", \\"q\\": \\"x\\"}"}',
     '{"args": "{\\"token\\": \\"[redacted]\\", \\"q\\": \\"x\\"}"}'),
    ("curl -H \"Authorization: Bearer abc def\" -H 'X-Api-Key: 12'",
     "curl -H \"Authorization: [redacted]\" -H 'X-Api-Key: [redacted]'"),
    ("Cookie: a=b; c=d\nHost: y", "Cookie: [redacted]\nHost: y"),
    ("run --password hunter2 --user ana", "run --password [redacted] --user ana"),
    ("my API key: 1234, and", "my API key: [redacted], and"),
    ('"credentials": {"user": "a}", "key": [1]}, "x": 1', '"credentials": "[redacted]", "x": 1'),
    ('"accessTokens": ["a", "b"], "x": 1', '"accessTokens": "[redacted]", "x": 1'),
    ("postgres://ana:pw@db/x", "postgres://ana:[redacted]@db/x"),
    ("//ana:pw@files/share", "//ana:[redacted]@files/share"),
    ("AccountName=x;AccountKey=ab12==;", "AccountName=x;AccountKey=[redacted];"),
    ("POST https://hooks.example.com/services/T0/B0/xyz failed", "POST [redacted] failed"),
    ("<password>abc</password>", "<password>[redacted]</password>"),
    ("use Bearer abc123def456 now", "use Bearer [redacted] now"),
    ("https://x.example/?access_token=abc&x=1", "https://x.example/?access_token=[redacted]&x=1"),
    ("Config(clientSecret='x', port=1)", "Config(clientSecret='[redacted]', port=1)"),
    ("os.environ['AWS_SECRET_ACCESS_KEY'] = 'ab/c'", "os.environ['AWS_SECRET_ACCESS_KEY'] = '[redacted]'"),
    ("it is " + "sk-" + "proj-abcdefghijklmnop", "it is [redacted]"),
    ("it is " + "ghp" + "_abcdefghijklmnopqrstuv.", "it is [redacted]."),
    ("it is " + "AKIA" + "IOSFODNN7EXAMPLE", "it is [redacted]"),
    ("it is " + "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-d", "it is [redacted]"),
    ("-----BEGIN RSA " + "PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx", "[redacted]\nx"),
    ("-----BEGIN " + "PRIVATE KEY-----\nabc", "[redacted]"),
    ('"password": "cut in the mid', '"password": "[redacted]'),
]  # fmt: skip

STAYS = [
    "tokens=330 max_tokens: 5 token_count=3 input_tokens: 3, token_type=bearer",
    "the token is fine, and so is the secret plan",
    "what is the password for this?",
    "basic understanding of bearer certificates",
    "token: null, password: None, secret = false",
    "key: value, primary_key=3, keyboard: de",
    "author: Ana, authority: none, cookie_policy: strict",
    "https://docs.example:8080/a?b=c",
    "10:30 to 11:45",
    "",
]


@pytest.mark.parametrize(("text", "told"), GONE)
def test_what_looks_like_a_secret_is_redacted(text: str, told: str) -> None:
    assert redacted(text) == told
    assert redacted(told) == told, "again changes nothing"


@pytest.mark.parametrize("text", STAYS)
def test_what_does_not_look_like_one_stays(text: str) -> None:
    assert redacted(text) == text


@given(st.text(), st.sampled_from(["password", "api_key", "accessToken", "client-secret"]), st.text())
def test_a_secret_of_a_json_object_is_redacted_however_it_is_written(before: str, key: str, value: str) -> None:
    """Escaped once, twice, or three times."""
    text = json.dumps({key: f"{value}s3cr3t!", "n": before})
    for _ in range(3):
        told = redacted(text)
        assert "s3cr3t!" not in told
        assert isinstance(json.loads(told), dict), "and the rest is JSON still"
        text = json.dumps({"arguments": text})


@given(st.text(alphabet=st.sampled_from("password: ='\"{}[]\\,token-Bearer sk-eyJ.<>/@\n")))
def test_any_text_can_be_redacted_and_again_changes_nothing_that_shows(text: str) -> None:
    once = redacted(text)
    assert len(redacted(once)) <= len(once) + len("[redacted]")


@pytest.mark.parametrize(
    "piece",
    ['"token": "', "eyJ-", "token ", "--a ", "\\", "Bearer ", "<a>", "secret: {", "://a:", "a: ", "password: '\\",
     "api key "],
)  # fmt: skip
def test_a_hostile_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    """Not measured closely: what is not linear would take minutes."""
    began = time.process_time()
    redacted(piece * (400_000 // len(piece)))
    assert time.process_time() - began < 20


def test_a_long_text_is_redacted_before_it_is_cut() -> None:
    text = "x" * 90 + " password=" + "p" * 500 + " and more"
    assert excerpt(text, 105) == "x" * 90 + " password=[redacted]… (609 characters)"
    assert "ppp" not in excerpt("password='" + "p" * 9_000, 100)


def test_control_characters_are_written_out() -> None:
    """A terminal would obey them."""
    assert visible("a\x1b[2J\tb\r\nc\u202ed\x9b") == "a\\x1b[2J\tb\nc\\u202ed\\x9b"


def test_the_scope_is_empty_outside_of_a_turn() -> None:
    assert scope() == Scope("", "")
