"""Real conversations as cases, searched again, and summed up; all journals come from an agent with a scripted model."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolsearch import Catalog, SetupError, StateError, ToolCall, ToolSearch
from toolsearch.layers import RecordedTurn, private, record
from toolsearch.loop import Agent
from toolsearch.stores import MemoryStore, SqliteStore
from toolsearch.testing import ScriptedModel
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import load
from toolsearch_evals.recording import ReplayPlan, cases_from, journal_report, read_turns, replay_turns
from toolsearch_evals.recording.cases import drafted_cases
from toolsearch_evals.recording.needs import needs_of
from toolsearch_evals.reports import FORMS

VERBS, SUBJECTS = ("send", "delete", "archive"), ("mail", "invoice", "ticket", "photo", "song", "flight")
SEARCH = "search_tools"


def definitions() -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"which": {"type": "string", "description": "The one that is meant."}}}
    return [
        {"name": f"{verb}_{subject}", "server": subject, "description": f"{verb.capitalize()} one {subject}.",
         "input_schema": schema}
        for verb in VERBS for subject in SUBJECTS
    ]  # fmt: skip


def answer(tool: object, arguments: dict[str, Any], context: object) -> str:
    if arguments.get("which") == "none":
        raise ValueError("there is none")
    return "done"


def searching(**settings: Any) -> ToolSearch:
    return ToolSearch(Catalog(definitions()), "keyword", run=answer, **{"mode": "append", "results": 2} | settings)


def query(*queries: str) -> list[tuple[str, dict[str, Any]]]:
    return [(SEARCH, {"queries": list(queries)})]


SENT = "Please send the invoice 4711081500 to bo@example.org."
TALKS: dict[str, list[tuple[str, list[Any]]]] = {
    "one": [
        (SENT, [query("send an invoice for bo@example.org"), [("send_invoice", {"which": "4711081500"})], "Sent."]),
        ("And paint the fence.", [query("paint the fence"), "I cannot."]),
        ("Thanks!", ["You are welcome."]),
    ],
    "two": [
        (
            "Throw the photo away, and archive the song.",
            [
                query("throw away qqq zzz"),
                query("delete photo", "archive song"),
                [("delete_photo", {"which": "none"}), ("archive_song", {"which": "a"})],
                [("delete_photo", {"which": "b"})],
                "Done.",
            ],
        )
    ],
}


def play(store: Any = None, observe: Any = (), mode: str = "append") -> Agent:
    """The talks, each with an agent whose model says what is written down."""
    agent, store = None, MemoryStore() if store is None else store
    search = searching(mode=mode)
    for name, turns in TALKS.items():
        for said, script in turns:
            steps = [bridged(step) if mode == "bridge" else step for step in script]
            agent = Agent(ScriptedModel(*steps), search, store=store, observe=observe)
            agent.run(said, conversation_id=name)
    assert agent is not None
    return agent


def bridged(step: Any) -> Any:
    if isinstance(step, str):
        return step
    return [call if call[0] == SEARCH else ("call_tool", {"name": call[0], "arguments": call[1]}) for call in step]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("journals") / "journals.db"
    with SqliteStore(file) as store:
        play(store)
    return file


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(definitions()), "utf-8")
    return file


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return " ".join(done.stdout.split())


# -- what is recorded --------------------------------------------------------------------------------------------------


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_an_observer_records_each_turn_as_a_line_without_what_is_private(tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    play(observe=record(file))
    first, second, third, other = lines_of(file)
    assert first["said"] == "Please send the invoice [number] to [e-mail]."
    assert first["searches"][0]["queries"] == ["send an invoice for [e-mail]"]
    assert "invoice/send_invoice" in first["searches"][0]["loaded"]
    assert first["searches"][0]["answer_tokens"] > 10
    assert first["calls"] == [{"tool": "invoice/send_invoice", "name": "send_invoice", "status": "ok", "after": 1}]
    assert (first["ended"], first["mode"], first["turn"]) == ("answered", "append", 1)
    assert first["usage"] == {"input_tokens": 300, "output_tokens": 30, "calls": 3}
    assert "loaded" not in second["searches"][0]
    assert "searches" not in third
    assert other["conversation"] != first["conversation"] == second["conversation"] != "one"
    statuses = {(call["tool"], call["status"]) for call in other["calls"]}
    assert statuses == {("photo/delete_photo", "failed"), ("song/archive_song", "ok"), ("photo/delete_photo", "ok")}
    assert not any(secret in file.read_text("utf-8") for secret in ("4711081500", "bo@example.org"))


def test_J53_a_recorded_search_says_how_sure_it_was_of_what_it_found() -> None:
    kept: list[dict[str, Any]] = []
    agent = play(observe=record(kept.append))
    search = kept[0]["searches"][0]
    assert search["verdicts"] == ["found"] or search["verdicts"] == ["weak"]
    assert set(search["loaded"]) <= search["confidence"].keys()
    assert all(0 < sure <= 1 for sure in search["confidence"].values())
    (read, *_) = record.of(agent.conversation("one").export())
    assert (
        read.searches[0].confidence
        == search["confidence"]
        == dict(RecordedTurn.from_json(kept[0]).searches[0].confidence)
    )
    assert kept[1]["searches"][0]["verdicts"] == ["none"]


def test_a_recorded_file_and_the_journals_give_the_same_turns(tmp_path: Path, database: Path) -> None:
    play(observe=record(tmp_path / "turns.jsonl"))

    def without_time(turns: list[RecordedTurn]) -> list[dict[str, Any]]:
        return [{**turn.as_json(), "at": 0} for turn in turns]

    assert without_time(read_turns([tmp_path / "turns.jsonl"])) == without_time(read_turns([database]))


def test_arguments_are_recorded_only_if_they_are_asked_for_and_redacted_then() -> None:
    kept: list[dict[str, Any]] = []
    play(observe=record(kept.append, arguments=True))
    assert kept[0]["calls"][0]["arguments"] == {"which": "[number]"}
    given = {"password": "swordfish", "to": ["ann@example.org"], "account": 12345678, "days": 3, "deep": {"pin": "1"}}
    turn = RecordedTurn.from_json(
        {"recorded": 1, "conversation": "c", "turn": 1, "calls": [{"tool": "t", "arguments": given}]}
    )
    assert turn.rewritten(private).calls[0].arguments == {
        "password": "[redacted]", "to": ["[e-mail]"], "account": "[number]", "days": 3, "deep": {"pin": "1"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("write to ann.lee+x@mail.example.co.uk now", "write to [e-mail] now"),
        ("call +49 (0)30 123-4567", "call [number]"),
        ("card 4111 1111 1111 1111, please", "card [number], please"),
        ("on 2026-01-31 at 10:30", "on 2026-01-31 at 10:30"),
        ("from 2026-01-31 to 2026-02-28, 25 of 1000", "from 2026-01-31 to 2026-02-28, 25 of 1000"),
        ("api_key=abc123def456", "api_key=[redacted]"),
        ("use sk-abcdefghijklmnop1234", "use [redacted]"),
        ("issue 1042 of the 3 repos", "issue 1042 of the 3 repos"),
    ],
)
def test_private_takes_out_addresses_long_numbers_and_secrets(text: str, kept: str) -> None:
    assert private(text) == kept
    assert private(kept) == kept


def test_private_takes_linear_time() -> None:
    """Counted in steps of the regular expressions it would be hard; a text of a quadratic kind would not end here."""
    assert private("a.b" * 60_000) == "a.b" * 60_000
    assert private("1 " * 60_000) == "[number] "
    assert private("x@" * 60_000) == "x@" * 60_000


def watched_talk(recorder: record, search: ToolSearch) -> list[str]:
    talk = recorder.watch(search.session("mine"))
    talk.said(SENT)
    contents = [talk.handle(ToolCall("a", SEARCH, {"queries": ["send an invoice"]})).content]
    talk.session.tools()  # type: ignore[attr-defined]
    parallel = {"tool_uses": [{"recipient_name": "functions.send_invoice", "parameters": {"which": w}} for w in "xy"]}
    contents += [
        result.content
        for result in talk.handle_all(
            [ToolCall("b", "send_invoice", {"which": "4711081500"}), ToolCall("c", "multi_tool_use.parallel", parallel),
             ToolCall("d", "no_such_tool", {})]
        )
    ]  # fmt: skip
    talk.end()
    return contents


def test_a_loop_of_ones_own_is_recorded_by_a_session_that_is_watched() -> None:
    kept: list[dict[str, Any]] = []
    contents = watched_talk(record(kept.append), searching())
    assert contents[0].startswith("Loaded")
    (turn,) = kept
    assert turn["said"] == "Please send the invoice [number] to [e-mail]."
    assert turn["mode"] == "append"
    assert "invoice/send_invoice" in turn["searches"][0]["loaded"]
    assert [(call["tool"], call["status"]) for call in turn["calls"]] == [
        *[("invoice/send_invoice", "ok")] * 3, ("", "unknown"),
    ]  # fmt: skip
    assert needs_of(RecordedTurn.from_json(turn)) == [("invoice/send_invoice",)]


def test_a_loop_of_ones_own_may_be_async() -> None:
    kept: list[dict[str, Any]] = []
    talk = record(kept.append).watch(searching().session("mine"))

    async def turn() -> None:
        talk.said("send it")
        await talk.ahandle(ToolCall("a", SEARCH, {"queries": ["send an invoice"]}))
        talk.end()

    asyncio.run(turn())
    assert kept[0]["searches"][0]["queries"] == ["send an invoice"]


def test_a_recording_that_fails_does_not_fail_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    def full(turn: object) -> None:
        raise OSError("the disk is full")

    assert watched_talk(record(full), searching())[0].startswith("Loaded")
    assert "could not be recorded" in caplog.text
    assert play(observe=record(full)).conversation("two").journal


def test_a_turn_that_has_not_ended_is_read_from_a_journal() -> None:
    facts = play().conversation("two").export()
    (turn,) = record.of(facts[:8])
    assert turn.ended == ""
    assert turn.searches


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["list", "lines", "by id", "folder"])
def test_journals_are_read_in_every_form(tmp_path: Path, form: str) -> None:
    agent = play()
    facts = {name: agent.conversation(name).export() for name in TALKS}
    place = tmp_path / "in"
    place.mkdir()
    if form == "by id":
        (place / "all.json").write_text(json.dumps(facts), "utf-8")
    elif form == "lines":
        for name, of in facts.items():
            (place / f"{name}.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in of), "utf-8")
    else:
        for name, of in facts.items():
            (place / f"{name}.json").write_text(json.dumps(of), "utf-8")
    files = [place] if form == "folder" else sorted(place.iterdir())
    assert [len(turn.searches) for turn in read_turns(files)] == [1, 1, 0, 2]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.json", "[1]", "must hold JSON objects"),
        ("a.jsonl", '{"fact": "UserSaid", "v": 1}\n{', "line 2, is not valid JSON"),
        ("a.jsonl", '{"fact": "Sang", "v": 1}', "fact 0 of the journal has the unknown kind 'Sang'"),
        ("a.jsonl", '{"recorded": 2}', "not a recorded turn of the format 1"),
        ("a.jsonl", '{"recorded": 1, "nonsense": 3}', "cannot be read"),
        ("a.jsonl", "", "there is no turn in these files"),
        ("a.db", "SQLite format 3\0", "is not the database of a SqliteStore"),
    ],
)
def test_a_file_that_is_no_journal_is_named(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(SetupError, match=re.escape(told)):
        read_turns([tmp_path / name])
    with pytest.raises(SetupError, match="there is no file"):
        read_turns([tmp_path / "missing.json"])


def test_a_turn_of_another_form_is_refused() -> None:
    with pytest.raises(StateError, match="record it anew"):
        RecordedTurn.from_json({"turn": 1})


# -- cases -------------------------------------------------------------------------------------------------------------


def test_cases_are_drafted_in_the_users_and_in_the_agents_words() -> None:
    agent = play()
    one = {case.wording: case for case in cases_from(agent.conversation("one").export()) if case.gold}
    assert one["user"].query == "Please send the invoice [number] to [e-mail]."
    assert one["agent"].query == "send an invoice for [e-mail]"
    assert one["user"].gold == one["agent"].gold == (("invoice/send_invoice",),)
    assert all(case.draft for case in one.values())
    hopeless = [case for case in cases_from(agent.conversation("one").journal) if not case.gold]
    assert [case.query for case in hopeless] == ["And paint the fence."]


def test_a_failed_call_is_no_gold_and_a_search_in_vain_counts_for_the_tools_that_a_later_one_led_to() -> None:
    agent = play()
    (turn,) = record.of(agent.conversation("two").journal)
    needs = needs_of(turn)
    assert needs[0] == needs[1] == ("song/archive_song", "photo/delete_photo")
    cases = cases_from(agent.conversation("two").journal)
    assert [(case.wording, case.query) for case in cases][1:] == [
        ("agent", "throw away qqq zzz"), ("agent", "delete photo; archive song"),
    ]  # fmt: skip
    assert len({case.split for case in cases}) == 1, "a conversation is in one split"


def test_recorded_cases_are_a_data_set_of_drafts(tmp_path: Path, database: Path, tools: Path) -> None:
    told = run("record", database, "--tools", tools, "--out", tmp_path / "own")
    assert "6 drafts from 4 turns" in told
    assert "1 turn without a successful call" in told
    (own,) = load(tmp_path / "own")
    assert sum(case.draft for case in own.cases) == 6
    assert "6" in run("datasets", "check", "--data", tmp_path / "own", code=1)
    assert json.loads(run("ranking", "--data", tmp_path / "own", "--index", "keyword", "--format", "json"))["tables"]


def test_a_tool_that_is_gone_makes_no_case_and_is_named(tmp_path: Path, database: Path) -> None:
    few = tmp_path / "few.json"
    few.write_text(json.dumps(definitions()[:2]), "utf-8")
    made = drafted_cases(read_turns([database]), Catalog(definitions()[:2]))
    assert made.unknown == ("song/archive_song", "photo/delete_photo")
    assert "'photo/delete_photo'" in run("record", database, "--tools", few, "--out", tmp_path / "own")


# -- replay ------------------------------------------------------------------------------------------------------------


def test_the_same_settings_find_the_same(database: Path) -> None:
    plan = ReplayPlan(settings=(("results", "2"),))
    report = replay_turns(read_turns([database], str), Catalog(definitions()), plan)
    (row,) = report.tables[0].rows
    assert (row["searches"], row["conversations"], row["needs"]) == (4, 2, 5)
    assert row["loaded now"] == row["loaded then"] == 3 / 5
    assert row["tokens now"] == row["tokens then"]
    assert row["tokens difference"] == 0
    assert row["MRR now"] == row["MRR then"]
    assert row["in vain now"] == row["in vain then"] == 0.5
    assert [*report.tables[1].rows, *report.tables[2].rows] == []


@pytest.mark.parametrize("then", ["append", "bridge"])
def test_tokens_then_are_those_of_the_delivery_then(tmp_path: Path, then: str) -> None:
    file = tmp_path / "turns.jsonl"
    play(observe=record(file, redact=str), mode=then)
    plan = ReplayPlan(modes=("append", "bridge"), settings=(("results", "2"),))
    rows = replay_turns(read_turns([file], str), Catalog(definitions()), plan).tables[0].rows
    same = next(row for row in rows if row["mode"] == then)
    other = next(row for row in rows if row["mode"] != then)
    assert same["tokens now"] == same["tokens then"] == other["tokens then"] != other["tokens now"]


def test_a_worse_index_is_seen_as_a_loss(database: Path) -> None:
    """Another tool comes before the one that was called, and the answer has room for one."""
    nearer = {"name": "send_an_invoice_for", "server": "post", "description": "Send an invoice for an e-mail."}
    plan = ReplayPlan(settings=(("results", "1"),))
    report = replay_turns(read_turns([database]), Catalog([*definitions(), nearer]), plan)
    (row,) = report.tables[0].rows
    assert row["loaded now"] < row["loaded then"]
    lost = {(each["queries"], each["tool"]) for each in report.tables[1].rows}
    assert ("send an invoice for [e-mail]", "invoice/send_invoice") in lost


def test_intervals_are_over_conversations_and_are_missing_for_one(database: Path) -> None:
    turns = read_turns([database])
    row = replay_turns(turns[:1], Catalog(definitions()), ReplayPlan()).tables[0].rows[0]
    assert row["tokens now low"] is None
    assert 0 < row["loaded now low"] < row["loaded now high"] == 1, "a share of 1 has Wilson's interval"
    row = replay_turns(turns, Catalog(definitions()), ReplayPlan()).tables[0].rows[0]
    assert row["tokens now low"] <= row["tokens now"] <= row["tokens now high"]


def test_a_replay_on_the_command_line_has_a_row_for_each_way(tmp_path: Path, database: Path, tools: Path) -> None:
    ways = ("--index", "keyword", "--index", "regex", "--mode", "append", "--mode", "bridge", "--set", "results=1")
    told = run("replay", database, "--tools", tools, *ways, "--format", "csv")
    assert told.count("keyword,append,results=1") == told.count("regex,bridge,results=1") == 1
    run("replay", database, "--tools", tools, "--index", "keyword", "--out", tmp_path / "out")
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".json", ".csv", ".md", ".html"}


@pytest.mark.parametrize(
    ("turns", "plan", "told"),
    [
        (lambda turns: turns[2:3], ReplayPlan(), "there is no search in these turns"),
        (lambda turns: turns, ReplayPlan(modes=("auto",)), "none is searched for"),
        (lambda turns: turns, ReplayPlan(("nonsense",)), "nonsense"),
    ],
)
def test_a_replay_that_cannot_be_says_why(
    database: Path, turns: Callable[[Sequence[RecordedTurn]], Sequence[RecordedTurn]], plan: ReplayPlan, told: str
) -> None:
    few = Catalog(definitions()[:4]) if plan.modes == ("auto",) else Catalog(definitions())
    with pytest.raises(SetupError, match=told):
        replay_turns(turns(read_turns([database])), few, plan)


# -- what journals say -------------------------------------------------------------------------------------------------


def test_journals_say_what_was_searched_found_and_called(database: Path) -> None:
    """J53: queries with their hits and tokens in the turn, tools never called, tools never found, searches in vain."""
    report = journal_report(read_turns([database]), Catalog(definitions()))
    every, most, vain, uncalled, unseen, tools = report.tables
    first = every.rows[0]
    assert (first["queries"], first["called"]) == ("send an invoice for [e-mail]", "invoice/send_invoice")
    assert (first["hits"], first["turn input"], first["turn output"]) == (2, 300, 30)
    assert first["answer tokens"] > 10
    assert {row["queries"] for row in vain.rows} == {"paint the fence", "throw away qqq zzz"}
    assert {row["queries"]: row["called"] for row in vain.rows}["throw away qqq zzz"]
    loaded = {tool for row in every.rows for tool in row["loaded"].split(", ") if tool}
    called = {"invoice/send_invoice", "photo/delete_photo", "song/archive_song"}
    assert {row["tool"] for row in uncalled.rows} == loaded - called
    assert {row["tool"] for row in unseen.rows} == {tool.id for tool in Catalog(definitions())} - loaded
    assert sum(row["called"] for row in tools.rows) == 3
    assert sum(row["failed"] for row in tools.rows) == 1
    assert most.rows[0]["times"] == 1
    assert "2 of 4" in report.headline[0]
    for form, write in FORMS.items():
        assert "invoice" in write(report), form


def test_queries_that_are_made_again_stand_once_with_how_often(tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    observer = record(file)
    for number, words in enumerate(["delete a photo", "Delete  a photo", "paint"]):
        agent = Agent(ScriptedModel(query(words), "No."), searching(), observe=observer)
        agent.run("please", conversation_id=str(number))
    most = journal_report(read_turns([file])).tables[1].rows
    assert [(row["queries"], row["times"]) for row in most] == [("delete a photo", 2), ("paint", 1)]


def test_journals_on_the_command_line(tmp_path: Path, database: Path, tools: Path) -> None:
    """J53."""
    told = run("journals", database, "--tools", tools)
    for title in ("What was searched for most", "ended in nothing", "never called", "never found"):
        assert title in told
    without = run("journals", database, "--format", "md")
    assert "Tools that were never found" not in without
    assert "pass them with --tools" in without
    run("journals", database, "--out", tmp_path / "out")
    assert "4711081500" not in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_journals_without_a_search_are_summed_up_too(tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    Agent(ScriptedModel("Hi."), searching(), observe=record(file)).run("Hello")
    report = journal_report(read_turns([file]))
    assert report.headline == ("1 conversation with 1 turn made 0 searches.",)
    assert all(write(report) for write in FORMS.values())
