"""What `toolsearch inspect` reads: journals, records and logs, whole or damaged."""

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.evals.inspection.conftest import definitions, play, query, reply
from toolsearch import Catalog, SetupError
from toolsearch.events.facts import ModelCalled, Usage
from toolsearch.stores import SqliteStore
from toolsearch_evals.inspection import Trace, Words, inspect_page, inspect_report, read_trace
from toolsearch_evals.inspection.inspect_report import sums_of
from toolsearch_evals.inspection.rounds import CacheReader


def conversations(trace: Trace) -> dict[str, Any]:
    return {each.id: each for each in trace.conversations}


def steps(trace: Trace, name: str, kind: str) -> list[dict[str, Any]]:
    return [step for turn in conversations(trace)[name].turns for step in turn["steps"] if step["kind"] == kind]


def test_J53_a_conversation_is_a_timeline_of_searches_calls_approvals_and_requests(store: Path) -> None:
    trace = read_trace([store], Words())
    kinds = [step["kind"] for step in conversations(trace)["desk-1"].turns[0]["steps"]]
    assert kinds == [
        "user", "round", "search", "round", "call", "call", "round", "call", "approval", "round", "end",
    ]  # fmt: skip
    search, _ = steps(trace, "desk-1", "search")
    assert search["queries"] == ["find invoice", "paint the fence"]
    assert search["verdicts"] == ["found", "none"]
    assert search["confidence"].keys() >= set(search["loaded"])
    assert search["tokens"] > 20
    assert search["led_to"] == ["invoice/find_invoice", "invoice/delete_invoice"]
    ok, failed, deleted = steps(trace, "desk-1", "call")
    assert (ok["status"], failed["status"], deleted["status"]) == ("ok", "failed", "ok")
    assert "there is none" in failed["answer"]
    assert [step["decision"] for step in steps(trace, "desk-1", "approval")] == ["approved"]
    assert [step["decision"] for step in steps(trace, "desk-2", "approval")] == ["declined"]
    (round_of_all, *_) = steps(trace, "desk-3", "round")
    assert (round_of_all["input"], round_of_all["output"], round_of_all["text"]) == (1_500, 20, "<b>Hello</b>")


def test_J53_secrets_people_and_addresses_are_not_shown_unless_they_are_asked_for(store: Path) -> None:
    shown = json.dumps([each.turns for each in read_trace([store], Words()).conversations])
    assert "swordfish" not in shown
    assert "bo@example.org" not in shown
    whole = json.dumps([each.turns for each in read_trace([store], Words(redact=str)).conversations])
    assert "swordfish" in whole
    assert "bo@example.org" in whole


def test_a_long_text_is_cut_and_a_secret_is_not_cut_in_half() -> None:
    words = Words(characters=20)
    assert words.cut("x" * 50) == f"{'x' * 20}… (50 characters)"
    assert "hunter" not in words.arguments({"note": "y" * 5, "password": "hunter2hunter2hunter2"})
    assert len(words.arguments({"note": "y" * 1_000_000})) < 100


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("desk-8", "desk-8"),
        ("ana/1", "ana/1"),
        ("e4811081b", "e4811081b"),
        ("123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("ann@example.org", "438c4c7afe60"),
        ("4711081500", "a77949e7a532"),
    ],
)
def test_the_id_of_a_conversation_is_shown_unless_it_says_something_of_a_person(name: str, shown: str) -> None:
    assert Words().name(name) == shown
    assert Words(redact=str).name(name) == name


def test_a_long_query_is_cut_too(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "journals.db") as kept:
        play(kept, {"one": [("Find it.", [reply(query("find mail " * 500)), reply(text="Here.")], True)]})
    trace = read_trace([tmp_path / "journals.db"], Words(characters=100))
    (search,) = steps(trace, "one", "search")
    assert len(search["queries"][0]) <= 110
    assert max(len(each) for each in search.values() if isinstance(each, str)) <= 130


def test_J53_queries_that_found_nothing_and_tools_of_no_use_are_in_the_report(store: Path) -> None:
    trace = read_trace([store], Words())
    report = inspect_report(trace, Catalog(definitions()))
    tables = {table.title: table for table in report.tables}
    assert [row["query"] for row in tables["Queries that found nothing"].rows] == ["paint fence", "paint the fence"]
    never = {row["tool"] for row in tables["Tools that were never found"].rows}
    assert "mail/find_mail" in never
    assert "photo/send_photo" not in never
    assert [row["tool"] for row in tables["Tools that were found and never called"].rows] == ["photo/delete_photo"]
    (cost,) = tables["What the models cost"].rows
    assert (cost["model"], cost["requests"], cost["input"]) == ("gpt-5-mini", 10, 18_200)
    read = {row["tool"]: row for row in tables["What models read of each tool"].rows}
    assert read["invoice/find_invoice"]["calls"] == 2
    (first, second, _) = steps(trace, "desk-1", "call")
    assert read["invoice/find_invoice"]["tokens"] == first["tokens"] + second["tokens"] > 10
    sums = sums_of(trace.conversations)
    assert cost["dollars"] == pytest.approx(sums["dollars"])
    assert sums["unpriced"] == 0


# -- what the cache lost -----------------------------------------------------------------------------------------------


def called(read: int, cached: int, at: float = 0.0, model: str = "gpt-5-mini", purpose: str = "chat") -> ModelCalled:
    return ModelCalled(purpose, model, Usage(read, cached, 10, 1), at=at)


def losses(*events: ModelCalled) -> list[int]:
    reader = CacheReader()
    return [reader.round_of(event).get("lost", 0) for event in events]


def test_what_of_the_request_before_did_not_come_from_the_cache_is_lost() -> None:
    assert losses(called(2_000, 0), called(2_500, 1_920)) == [0, 0]  # the cache goes in steps of 128
    assert losses(called(2_000, 0), called(2_500, 0)) == [0, 1_920]
    assert losses(called(2_000, 0), called(2_500, 1_024)) == [0, 896]
    assert losses(called(900, 0), called(1_000, 0)) == [0, 0], "too short to be cached"
    assert losses(called(4_000, 0), called(2_000, 0)) == [0, 1_920], "no more can be lost than was sent"


def test_nothing_is_lost_by_a_request_of_another_model_or_purpose() -> None:
    assert losses(called(2_000, 0), called(2_500, 0, model="gpt-5")) == [0, 0]
    assert losses(called(2_000, 0), called(9_000, 0, purpose="summary"), called(2_500, 1_920)) == [0, 0, 0]


def test_a_loss_has_a_cause_and_a_price() -> None:
    reader = CacheReader()
    reader.round_of(called(2_000, 0, at=100.0))
    reader.lost_by("tools were loaded")
    lost = reader.round_of(called(2_500, 0, at=1_000.0))
    assert lost["why"] == "tools were loaded and 15 minutes passed"
    assert lost["lost_dollars"] == pytest.approx(1_920 * (0.25 - 0.025) / 1e6)


def test_nothing_is_said_of_a_model_of_which_no_request_took_anything_from_a_cache(tmp_path: Path) -> None:
    replies = [reply(query("find mail"), read=2_000), reply(text="Here.", read=2_800)]
    with SqliteStore(tmp_path / "journals.db") as kept:
        play(kept, {"one": [("Find it.", replies, True)]})
    trace = read_trace([tmp_path / "journals.db"], Words())
    assert not any({"lost", "why", "lost_dollars"} & step.keys() for step in steps(trace, "one", "round"))
    assert sums_of(trace.conversations)["lost"] == 0
    assert "What the cache lost" not in {table.title for table in inspect_report(trace).tables}


@pytest.mark.parametrize(("mode", "why"), [("append", "tools were loaded"), ("bridge", "")])
def test_tools_that_do_not_stand_in_the_list_of_tools_cost_no_cache(tmp_path: Path, mode: str, why: str) -> None:
    replies = [reply(query("find mail"), read=2_000), reply(query("find photo"), read=2_400, cached=1_920),
               reply(text="Here.", read=2_800)]  # fmt: skip
    with SqliteStore(tmp_path / "journals.db") as kept:
        play(kept, {"one": [("Find it.", replies, True)]}, mode=mode)
    rounds = steps(read_trace([tmp_path / "journals.db"], Words()), "one", "round")
    assert [each.get("lost", 0) for each in rounds] == [0, 0, 2_304]
    assert rounds[-1].get("why", "") == why


# -- other files -------------------------------------------------------------------------------------------------------


def test_lines_of_record_give_the_same_searches_calls_and_sums(store: Path) -> None:
    journal, recorded = read_trace([store], Words()), read_trace([store.with_name("turns.jsonl")], Words())
    (of_journal, of_record) = (sums_of(each.conversations) for each in (journal, recorded))
    for name in ("turns", "searches", "in vain", "calls", "failed", "requests", "input", "cached", "output"):
        assert of_record[name] == of_journal[name], name
    assert {each.source for each in recorded.conversations} == {"record"}
    shown = json.dumps([each.turns for each in recorded.conversations])
    assert '{\\"which\\": \\"7\\"}' in shown
    assert "swordfish" not in shown


LOG = [
    {"at": 1.5, "session": "s1", "kind": "opened", "client": "desk 1.2", "token": "sk-abcdefghijklmnop1234"},
    {"at": 2.0, "session": "s1", "kind": "search", "queries": ["send a mail"], "loaded": ["post__send_mail"],
     "named": ["post__find_mail"], "verdicts": ["found"], "confidence": {"post__send_mail": 0.9}, "tokens": 40},
    {"at": 2.5, "session": "s2", "kind": "search", "queries": ["paint"], "verdicts": ["none"]},
    {"at": 3.0, "session": "s1", "kind": "call", "tool": "post__send_mail", "status": "ok", "seconds": 0.25},
    {"at": 4.0, "session": "s1", "kind": "call", "tool": "post__send_mail", "status": "failed", "error": "no such box"},
    {"at": 5.0, "session": "s1", "kind": "held", "tool": "post__find_mail", "reason": "its definition changed"},
    {"at": 6.0, "session": "", "client": "", "kind": "health", "server": "sql", "state": "failed"},
]  # fmt: skip


def test_the_log_of_a_gateway_is_read_and_unknown_kinds_of_lines_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "gateway.log"
    file.write_text("".join(json.dumps(line) + "\n" for line in LOG), "utf-8")
    trace = read_trace([file], Words())
    first = conversations(trace)["s1"]
    assert [step["kind"] for step in first.turns[0]["steps"]] == ["log", "search", "call", "call", "log"]
    opened, search, call, failed, held = first.turns[0]["steps"]
    assert first.turns[0]["client"] == "desk 1.2"
    assert opened["word"] == "opened"
    assert "sk-abc" not in json.dumps(first.turns)
    assert search["led_to"] == ["post__send_mail"]
    assert (call["status"], call["seconds"]) == ("ok", 0.25)
    assert (failed["status"], failed["error"]) == ("failed", "no such box")
    assert "its definition changed" in held["text"]
    assert {"s1", "s2", "gateway"} == set(conversations(trace))
    assert [row["query"] for row in inspect_report(trace).tables[0].rows] == ["paint"]


def test_a_folder_is_read_whole_and_one_conversation_can_be_asked_for(store: Path) -> None:
    whole = read_trace([store.parent], Words())
    assert len(whole.conversations) == 6
    one = read_trace([store], Words(), ["desk-2"])
    assert [each.id for each in one.conversations] == ["desk-2"]
    with pytest.raises(SetupError, match=r"no conversation 'desk-9' in 'journals\.db'; there are 'desk-1'"):
        read_trace([store], Words(), ["desk-9"])


def test_other_files_in_a_folder_are_named_once_each(tmp_path: Path, store: Path) -> None:
    """Beside the journals there may be tools, a configuration and a half-written file."""
    for file in store.parent.glob("journals.db*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"git": {"command": "git-server"}}}', "utf-8")
    (tmp_path / "tools.json").write_text(json.dumps([{**each, "kind": "read"} for each in definitions()]), "utf-8")
    (tmp_path / "half.json").write_text('{"mcpServ', "utf-8")
    trace = read_trace([tmp_path], Words())
    assert len(trace.conversations) == 3
    assert trace.damaged == 3
    half, config, tools = trace.told
    assert "half.json' is not valid JSON" in half
    assert "mcp.json' holds neither facts of a journal" in config
    assert "tools.json' holds neither facts of a journal" in tools
    with pytest.raises(SetupError, match="is not valid JSON"):
        read_trace([tmp_path / "half.json"], Words())


# -- damage ------------------------------------------------------------------------------------------------------------


def test_damaged_lines_are_counted_and_named_and_the_rest_is_read(tmp_path: Path, store: Path) -> None:
    file = tmp_path / "turns.jsonl"
    good = store.with_name("turns.jsonl").read_bytes().splitlines()
    file.write_bytes(b"\n".join([good[0], b'{"half', b"\xff\xfe", b'"a text"', b'{"recorded": 9}', good[1]]))
    trace = read_trace([file], Words())
    assert sums_of(trace.conversations)["turns"] == 2
    assert trace.damaged == 4
    assert "line 2, is not valid JSON" in trace.told[0]
    assert "line 4, is not a JSON object" in trace.told[2]
    (told,) = [each for each in inspect_report(trace).headline if "could not be read" in each]
    assert told.startswith("4 places could not be read, and are left out: ")


def test_a_damaged_store_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    file = tmp_path / "journals.db"
    with SqliteStore(file) as kept:
        play(kept)
    connection = sqlite3.connect(file)
    connection.execute("UPDATE facts SET fact = '{\"half' WHERE conversation = 'desk-1' AND position = 2")
    connection.execute("DELETE FROM facts WHERE conversation = 'desk-2' AND position = 3")
    connection.execute("UPDATE facts SET fact = ? WHERE conversation = 'desk-3' AND position = 1",
                       (json.dumps({"v": 1, "fact": "UserSaid", "text": 7, "at": "noon"}),))  # fmt: skip
    connection.execute('INSERT INTO facts VALUES (\'desk-3\', 99, \'{"v": 1, "fact": "Sang"}\')')
    connection.commit()
    connection.close()
    trace = read_trace([file], Words())
    assert len(trace.conversations) == 3
    told = " ".join(trace.told)
    assert "conversation 'desk-1', fact 2, is not valid JSON" in told
    assert "'desk-2': the facts 3 to 3 are missing" in told
    assert "unknown kind 'Sang'" in told
    assert "a UserSaid is not as it should be" in told
    assert inspect_page(inspect_report(trace)).startswith("<!doctype html>")


VALUES = [None, -1, 7, 1e300, float("nan"), True, "", "x", [], [1], [None], [[1]], {"a": [1]}, "x" * 5_000]


def mutated(line: Any, rng: random.Random) -> Any:
    """A copy of a JSON value in which something, however deep, has another value."""
    copy = json.loads(json.dumps(line))
    spots: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            spots.append((value, key))
            walk(value[key])

    walk(copy)
    inside, key = rng.choice(spots)
    inside[key] = rng.choice(VALUES)
    return copy


@pytest.mark.parametrize("source", ["journal", "record", "gateway"])
def test_lines_with_values_of_any_type_end_neither_the_reading_nor_the_page(
    tmp_path: Path, store: Path, source: str
) -> None:
    rng = random.Random(7)
    if source == "journal":
        with SqliteStore(store) as kept:
            lines: list[Any] = kept.load("desk-1")
    else:
        text = store.with_name("turns.jsonl").read_text("utf-8")
        lines = LOG if source == "gateway" else [json.loads(line) for line in text.splitlines()]
    file = tmp_path / "lines.jsonl"
    for _ in range(40):
        some = [mutated(line, rng) if rng.random() < 0.2 else line for line in lines]
        file.write_text("".join(json.dumps(line) + "\n" for line in some), "utf-8")
        trace = read_trace([file], Words())
        report = inspect_report(trace)
        assert json.dumps(report.data["conversations"], allow_nan=False)
        assert inspect_page(report)


def test_files_without_a_turn_say_what_was_wrong(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("{\n", "utf-8")
    with pytest.raises(SetupError, match=r"there is no turn in 'a\.jsonl': .*line 1, is not valid JSON"):
        read_trace([file], Words())
    with pytest.raises(SetupError, match="there is no file"):
        read_trace([tmp_path / "none.db"], Words())
