"""What one conversation may see and call, and what each of its calls is answered with."""

import asyncio
import contextvars
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import (
    Caller,
    Catalog,
    Session,
    SetupError,
    StateError,
    Status,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSearch,
    tool,
)
from toolsearch.testing import FixedIndex
from toolsearch.tokens import ESTIMATE
from toolsearch.wires import openai_chat as wire

ADMIN = Caller("root", ["admin"])
GUEST = Caller("guest")


def ran(**arguments: Any) -> Any:
    return arguments


def defined(name: str, description: str = "", /, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": {"type": "object"}, "run": ran, **more}


def numbered(count: int, word: str = "box", **more: Any) -> list[dict[str, Any]]:
    return [defined(f"{word}_{n:03}", f"Open the {word} number {n}", **more) for n in range(count)]


def asked(session: Session, *queries: str, **more: Any) -> ToolResult:
    return session.handle(ToolCall("search", "search_tools", {"queries": list(queries), **more}))


def called(session: Session, name: str, arguments: Any = None) -> ToolResult:
    return session.handle(ToolCall("call", name, arguments))


def shown(session: Session) -> list[str]:
    return [each.name for each in session.tools()]


def sent(session: Session) -> str:
    return json.dumps(wire.tools_for(session), ensure_ascii=False)


def loaded(session: Session) -> list[str]:
    return [each.id for each in session.loaded]


# -- what was found, and stays found -----------------------------------------------------------------------------------


def test_a_search_loads_what_it_finds_for_the_next_round() -> None:
    """SA-6, SA-8, SA-9: names come with one line each, not names alone."""
    session = ToolSearch([defined("get_weather", "Weather forecast for a city."), *numbered(20)], "keyword").session()
    assert shown(session) == ["search_tools"]
    answer = asked(session, "weather forecast")
    assert answer.ok
    assert "- get_weather: Weather forecast for a city." in answer.content
    assert answer.data["loaded"] == ["get_weather"]
    assert shown(session) == ["search_tools", "get_weather"]


def test_C29_earlier_tools_keep_their_bytes_and_places_and_the_system_text_stays() -> None:
    """C29, SA-17: the search loads B, then A; both stand at the end, in the order of loading."""
    search = ToolSearch([defined("a"), defined("b"), defined("keep", "Kept. And more.")], pinned=["keep"])
    session = search.session()
    first, note = sent(session), session.instructions()
    asked(session, "select:b")
    asked(session, "select:a")
    assert shown(session) == ["search_tools", "keep", "b", "a"]
    assert sent(session).startswith(first[:-1])
    assert session.instructions() == note


def test_C29_siblings_nothing_that_happens_moves_or_changes_an_earlier_tool() -> None:
    """C29: another caller's search, a tool added, replaced or removed, a repeated search, a failing call."""
    catalog = Catalog([*numbered(30), defined("b", "Before")])
    search = ToolSearch(catalog)
    session = search.session()
    asked(session, "select:b")
    asked(session, "box 7", limit=3)
    before = sent(session)
    for happens in (
        lambda: asked(search.session(), "box 9"),
        lambda: catalog.add(defined("new", "A new box")),
        lambda: catalog.replace(defined("b", "After")),
        lambda: catalog.remove("box_007"),
        lambda: asked(session, "select:b"),
        lambda: called(session, "b", "{"),
        lambda: called(session, "nonsense"),
    ):
        happens()
        assert sent(session) == before


def test_X1_the_found_set_is_the_sessions_and_survives_a_lost_history() -> None:
    """X1, SA-19: a new turn with none of the earlier messages starts with all that was found."""
    search = ToolSearch(numbered(20))
    asked(search.session("conversation"), "box 7", limit=3)
    assert len(shown(search.session("conversation"))) == 4


def test_SA_18_all_searches_of_a_round_and_of_earlier_rounds_count() -> None:
    """SA-18"""
    session = ToolSearch([defined("a"), defined("b"), defined("c")]).session()
    for round_of_searches in (["select:a", "select:b"], ["select:c"]):
        for query in round_of_searches:
            asked(session, query)
        session.tools()
    assert loaded(session) == ["a", "b", "c"]


def test_C46_a_step_never_narrows_the_catalog() -> None:
    """C46: X is in the next request, and everything else can still be found."""
    search = ToolSearch(numbered(20))
    session = search.session()
    asked(session, "select:box_003")
    assert shown(session) == ["search_tools", "box_003"]
    assert len(search.catalog) == 20
    asked(session, "select:box_004")
    assert shown(session) == ["search_tools", "box_003", "box_004"]


@pytest.mark.parametrize("mode", ["append", "bridge", "static"])
def test_C46_siblings_no_mode_or_answer_narrows_what_can_be_found(mode: str) -> None:
    """C46: in every mode, after a vain search, and for another session of the same search."""
    search = ToolSearch(numbered(20), mode=mode)
    session = search.session()
    asked(session, "zzqx vvkp")
    session.tools()
    assert len(search.find("box", 20)) == 20
    assert called(session, "call_tool" if mode == "bridge" else "box_009", {"name": "box_009"}).status != "unknown"


def test_C31_a_session_without_an_id_is_private() -> None:
    """C31, SA-13: B, and everybody without an id, has the search tool alone."""
    search = ToolSearch([defined("secret_tool", "A secret")])
    asked(search.session("A"), "secret")
    assert shown(search.session("B")) == ["search_tools"]
    one, other = search.session(), search.session()
    assert one.id != other.id
    asked(one, "secret")
    assert shown(other) == ["search_tools"]


def test_C31_siblings_fifty_sessions_at_once_leak_nothing_into_each_other() -> None:
    """C31: each of 50 threads loads its own tool; an empty id is no id; ids that look alike are different."""
    search = ToolSearch(numbered(50))

    def work(n: int) -> list[str]:
        session = search.session(f"s{n}")
        for _ in range(5):
            asked(session, f"select:box_{n:03}")
            called(session, f"box_{n:03}")
        return shown(session)

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(50))) == [["search_tools", f"box_{n:03}"] for n in range(50)]
    assert search.session("") is not search.session("")
    assert shown(search.session("S1")) == shown(search.session("s1 ")) == ["search_tools"]


def test_eight_threads_on_one_session_keep_the_found_set_consistent() -> None:
    session = ToolSearch(numbered(64)).session()

    def work(worker: int) -> list[ToolResult]:
        results = []
        for n in range(8):
            name = f"box_{worker * 8 + n:03}"
            results += [asked(session, f"select:{name}"), called(session, name)]
            session.tools()
            results.append(called(session, name))
        return results

    with ThreadPoolExecutor(8) as pool:
        results = [result for many in pool.map(work, range(8)) for result in many]
    names = shown(session)
    assert len(names) == len({*names}) == 65
    assert {result.status for result in results} <= {"ok", "not_loaded"}
    assert sorted(loaded(session)) == [f"box_{n:03}" for n in range(64)]


def test_sessions_work_while_the_catalog_changes_under_them() -> None:
    catalog = Catalog(numbered(40))
    search = ToolSearch(catalog)
    done = threading.Event()

    def change() -> None:
        n = 0
        while not done.is_set():
            n += 1
            catalog.replace(defined(f"box_{n % 20:03}", f"Open the box, version {n}"))
            catalog.add(defined(f"extra_{n}", "One more box"))
            catalog.remove(f"extra_{n}")

    changing = threading.Thread(target=change)
    changing.start()

    def work(worker: int) -> set[str]:
        session = search.session()
        results = []
        for n in range(30):
            results.append(asked(session, f"box {n}", "one more box", f"select:box_{n:03},extra_{n}"))
            session.tools()
            results.append(called(session, f"box_{n:03}"))
            results.append(called(session, f"extra_{n}"))
        return {result.status for result in results}

    try:
        with ThreadPoolExecutor(4) as pool:
            statuses = set().union(*pool.map(work, range(4)))
    finally:
        done.set()
        changing.join()
    assert statuses <= {"ok", "not_loaded", "unknown"}


# -- order and bytes ---------------------------------------------------------------------------------------------------

FIRST_REQUEST = """
import json, random, sys
from toolsearch import Caller, Catalog, ToolCall, ToolSearch
from toolsearch.wires import anthropic, openai_chat
servers = {s: [{"name": f"{v}_{s}", "description": f"{v.title()} things of {s}", "category": f"c{s}",
                "tags": ["x", "y"],
                "roles": ["r1", "r2"]} for v in ("open", "read", "run")] + [{"name": "run", "description": f"Run {s}"}]
           for s in ("alpha", "beta", "gamma", "delta")}
order = list(servers)
random.Random(int(sys.argv[1])).shuffle(order)
catalog = Catalog()
for server in order:
    catalog.extend(servers[server], server=server)
caller = Caller("ana", {"r2", "r1"})
for mode in ("append", "bridge", "static"):
    session = ToolSearch(catalog, pinned=["alpha/open_alpha", "beta/run"], mode=mode).session("s", caller=caller)
    said = [session.instructions(), openai_chat.tools_for(session), anthropic.tools_for(session), session.why()]
    found = session.handle(ToolCall("a", "search_tools", {"queries": ["read things", "run beta", "open"]}))
    print(json.dumps([said, found.content, openai_chat.tools_for(session)]))
"""


def outputs(seeds: range, hash_seed: Callable[[int], str]) -> set[bytes]:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", FIRST_REQUEST, str(seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed(seed)},
            stdout=subprocess.PIPE,
        )
        for seed in seeds
    ]
    results = [process.communicate()[0] for process in started]
    assert all(process.returncode == 0 for process in started)
    return {*results}


@pytest.mark.slow
def test_C30_twenty_processes_make_byte_identical_first_requests() -> None:
    """C30: whatever the hash seed and the order in which servers connect."""
    made = outputs(range(20), str)
    assert len(made) == 1
    assert len(made.pop()) > 5_000


def test_C30_siblings_a_schema_keeps_the_order_of_its_author() -> None:
    """C30: keys are not sorted, sets of roles do not show, and a second session says the same."""
    schema = {"type": "object", "properties": {"z": {}, "a": {}, "m": {"enum": ["b", "a"]}}, "required": ["z", "a"]}
    search = ToolSearch([defined("t", "T", roles={"x", "y", "z"}) | {"input_schema": schema}], mode="static")
    one, other = (search.session(caller=Caller(roles={"z"})) for _ in range(2))
    assert sent(one) == sent(other)
    assert list(wire.tools_for(one)[0]["function"]["parameters"]["properties"]) == ["z", "a", "m"]


def test_C30_siblings_two_tools_of_one_name_are_called_the_same_in_any_order() -> None:
    """C30: names are distinct, legal and independent of registration."""
    a, b = defined("run", "Run a", server="a"), defined("run", "Run b", server="b")
    names = []
    for tools in ([a, b], [b, a]):
        session = ToolSearch(tools).session()
        asked(session, "select:a/run", "select:b/run")
        names.append({each.tool.id: each.name for each in session.tools()})
    assert names[0] == names[1]
    assert len({*names[0].values()}) == 3


# -- calls that do not fit ---------------------------------------------------------------------------------------------


def test_C01_a_real_tool_that_was_not_loaded_is_loaded_and_shown() -> None:
    """C01: a result, no exception; the next call of it runs."""
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    session = ToolSearch([defined("crm_lookup", "Look up a customer") | {"input_schema": schema}]).session()
    assert shown(session) == ["search_tools"]
    answer = called(session, "crm_lookup", {"id": 1})
    assert answer.status == "not_loaded"
    assert "did not run" in answer.content
    assert json.dumps(schema) in answer.content
    assert shown(session) == ["search_tools", "crm_lookup"]
    assert called(session, "crm_lookup", {"id": 1}).content == '{"id": 1}'


@pytest.mark.parametrize("name", ["CRM-Lookup", "crm/crm_lookup", "crmLookup", "lookup_elsewhere"])
def test_C01_siblings_other_spellings_and_tools_found_in_this_very_round(name: str) -> None:
    """C01: another case or the full id means the same tool; a tool found in this round waits for the next."""
    session = ToolSearch([defined("crm_lookup", "Look up", server="crm"), defined("lookup_elsewhere")]).session()
    session.tools()
    asked(session, f"select:{name}")
    assert called(session, name).status == "not_loaded", "what is callable was fixed by the last request"
    session.tools()
    assert called(session, name).status == "ok"


def test_PG_3_a_call_to_a_tool_not_loaded_is_a_policy() -> None:
    """PG-3: run it at once, show its schema (C01), or refuse."""
    runs = ToolSearch([defined("tick")], not_loaded="run").session()
    assert called(runs, "tick", {"a": 1}).content == '{"a": 1}'
    assert loaded(runs) == ["tick"]
    refuses = ToolSearch([defined("tick")], not_loaded="refuse").session()
    answer = called(refuses, "tick")
    assert answer.status == "not_loaded"
    assert "search_tools" in answer.content
    assert loaded(refuses) == []


def test_C02_a_name_nobody_has_is_answered_with_near_names() -> None:
    """C02, SA-44's opposite: the run goes on."""
    session = ToolSearch([defined("clock_now", "The time"), defined("get_data")]).session()
    answer = session.handle(ToolCall("c1", "get_date", {}))
    assert (answer.call_id, answer.status) == ("c1", "unknown")
    assert "'get_data'" in answer.content
    assert asked(session, "time").ok


@pytest.mark.parametrize("name", ["", " ", "\ud800", "../../etc", "x" * 100_000, "<|im_end|>", "call_tool"])
def test_C02_siblings_any_text_as_a_name_is_answered(name: str) -> None:
    """C02: empty, broken, enormous, or a built-in tool of another mode."""
    answer = called(ToolSearch(numbered(3)).session(), name)
    assert answer.status == "unknown"
    assert len(answer.content) < 600
    answer.content.encode("utf-8")


def test_C03_the_answer_to_an_unknown_name_is_bounded_and_shows_nothing_hidden() -> None:
    """C03: 500 tools, at most three names, none the caller may not see."""
    hidden = [defined(f"no_such_tool_{n}", roles=["admin"]) for n in range(5)]
    session = ToolSearch([*numbered(500), *hidden]).session(caller=GUEST)
    answer = called(session, "no_such_tool")
    assert len(answer.content) < 300
    assert "no_such_tool_" not in answer.content
    assert "box_" not in answer.content


@pytest.mark.parametrize("name", ["box_0", "box", "bx_001"])
def test_C03_siblings_many_similar_names_stay_three(name: str) -> None:
    """C03: a name that resembles all 500, with long names too."""
    long = [defined(f"box_{n}_{'y' * 60}") for n in range(300)]
    answer = called(ToolSearch([*numbered(500), *long]).session(), name)
    assert answer.content.count("'box_") <= 4
    assert len(answer.content) < 500


def test_PG_4_a_name_with_a_prefix_or_in_another_case_is_understood() -> None:
    """PG-4: bound where it can mean one tool only, suggested where it is merely near."""
    session = ToolSearch([defined("get_weather")], mode="static").session()
    session.tools()
    assert called(session, "Get-Weather").status == "ok"
    assert called(session, "functions.get_weather").status == "ok"
    assert "'get_weather'" in called(session, "get_wether").content
    assert called(session, "jira__get_weather").status == "unknown", "another server's tool is not this one"
    assert "Use a listed tool." in called(ToolSearch([], mode="static").session(), "anything").content


@pytest.mark.parametrize(
    "name", ["google_tools.create_issue", "my_functions/create_issue", "xdefault_api:create_issue"]
)
def test_a_prefix_that_only_ends_like_a_program_s_is_another_name(name: str) -> None:
    """Only at the front does a program's namespace mean nothing: `google_tools.x` is not `google_x`."""
    tools = [
        defined("google_create_issue", "Create"),
        defined("my_create_issue", "Create"),
        defined("xcreate_issue", "C"),
    ]
    session = ToolSearch(tools, mode="static").session()
    session.tools()
    assert called(session, name).status == "unknown"
    assert called(session, "functions.google_create_issue").status == "ok"
    assert called(session, "functions.tools.google_create_issue").status == "ok"


def test_a_name_that_several_tools_share_is_asked_back() -> None:
    """SA-16's opposite: the first one registered does not silently win."""
    session = ToolSearch([defined("run", server="a"), defined("run", server="b")]).session()
    answer = called(session, "run")
    assert answer.status == "unknown"
    assert "several tools" in answer.content
    asked(session, "select:a/run")
    session.tools()
    assert called(session, "run").status == "unknown", "it might still mean the other"


DOCUMENT = {"type": "object", "properties": {"document_id": {"type": "string"}}, "required": ["document_id"]}


def test_C04_a_missing_argument_is_named_and_the_schema_shown_once() -> None:
    """C04: checked before anything runs."""
    runs: list[Any] = []
    search = ToolSearch(
        [defined("open_document") | {"input_schema": DOCUMENT, "run": lambda **given: runs.append(given)}],
        mode="static",
    )
    session = search.session()
    session.tools()
    answer = called(session, "open_document", {})
    assert answer.status == "invalid_arguments"
    assert "'document_id' is missing" in answer.content
    assert answer.content.count(json.dumps(DOCUMENT)) == 1
    assert runs == []
    assert called(session, "open_document", {"document_id": 7}).ok
    assert runs == [{"document_id": "7"}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"documentid": "x"}, "missing"),
        ({"document_id": {"id": "x"}}, "must be a string"),
        ({"document_id": None}, "must be a string"),
    ],
)
def test_C04_siblings_other_misfits_are_named_too(arguments: Any, says: str) -> None:
    """C04: a misspelt argument, one of another type, null for a required one."""
    session = ToolSearch([defined("open_document") | {"input_schema": DOCUMENT}], mode="static").session()
    session.tools()
    answer = called(session, "open_document", arguments)
    assert answer.status == "invalid_arguments"
    assert "'document_id'" in answer.content
    assert says in answer.content


@pytest.mark.parametrize("arguments", ["", "  ", None, "null", "{}", {}])
def test_C11_every_way_to_say_no_arguments_runs_the_tool(arguments: Any) -> None:
    """C11"""
    session = ToolSearch([defined("tick")], mode="static").session()
    session.tools()
    assert called(session, "tick", arguments).data == {}


@pytest.mark.parametrize("arguments", ["\n\t", " null ", ' {"filter": null} '])
def test_C11_siblings_blanks_and_nulls_around_nothing(arguments: str) -> None:
    """C11: other white space, null with spaces, null for an optional argument."""
    schema = {"type": "object", "properties": {"filter": {"type": "string"}}}
    session = ToolSearch([defined("tick") | {"input_schema": schema}], mode="static").session()
    session.tools()
    assert called(session, "tick", arguments).data == {}


@pytest.mark.parametrize("arguments", ['{"path": "/data/a", "mode": ', "{'path': 1}", "[1, 2]", "{} {}"])
def test_C12_malformed_arguments_do_not_run_the_tool(arguments: str) -> None:
    """C12 and its kind: cut off, Python instead of JSON, an array, two objects; what is wrong is said."""
    session = ToolSearch([defined("tick") | {"run": lambda **_: pytest.fail("it ran")}], mode="static").session()
    session.tools()
    answer = called(session, "tick", arguments)
    assert answer.status == "invalid_arguments"
    assert "at character" in answer.content or "must be a JSON object, not array" in answer.content
    if arguments.startswith('{"path"'):
        assert "at character 28" in answer.content


IDS = {
    "type": "object",
    "properties": {"ids": {"type": "array", "items": {"type": "integer"}}, "body": {"type": "object"}},
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"ids": "[1,2]", "body": '{"a":1}'}, {"ids": [1, 2], "body": {"a": 1}}),
        ({"ids": '["1", 2.0]'}, {"ids": [1, 2]}),
        ('{"body": "{\\"a\\": \\"[1]\\"}"}', {"body": {"a": "[1]"}}),
        ({"body": "{}", "ids": "[]"}, {"ids": [], "body": {}}),
    ],
)
def test_C14_arrays_and_objects_as_json_text_are_decoded_once(arguments: Any, expected: Any) -> None:
    """C14 and its kind: items as text, decoded only once, empty ones."""
    session = ToolSearch([defined("tick") | {"input_schema": IDS}], mode="static").session()
    session.tools()
    assert called(session, "tick", arguments).data == expected


def test_C14_text_that_is_no_array_is_refused() -> None:
    session = ToolSearch([defined("tick") | {"input_schema": IDS}], mode="static").session()
    session.tools()
    assert called(session, "tick", {"ids": "1,2"}).status == "invalid_arguments"


# -- tools that run ----------------------------------------------------------------------------------------------------


def fails(error: BaseException) -> Callable[..., Any]:
    def run(**_: Any) -> Any:
        raise error

    return run


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("error", [KeyError("x"), Unprintable(), RecursionError(), ValueError("\ud800" * 9_000)])
def test_NA_11_a_failing_tool_is_a_result(error: Exception) -> None:
    """NA-11: with the error's text, bounded and encodable, never a throw."""
    session = ToolSearch([defined("tick") | {"run": fails(error)}], mode="static").session()
    session.tools()
    answer = called(session, "tick")
    assert answer.status == "failed"
    assert type(error).__name__ in answer.content
    assert len(answer.content.encode("utf-8")) < 7_000


def test_a_tool_without_a_function_says_so_and_run_of_the_search_serves_all(caplog: pytest.LogCaptureFixture) -> None:
    plain = {"name": "tick", "description": "Tick"}
    session = ToolSearch([plain], mode="static").session()
    session.tools()
    assert called(session, "tick").status == "failed"
    assert "has no function" in caplog.text
    search = ToolSearch([plain], mode="static", run=lambda t, given, context: [t.id, given, context.idempotency_key])
    session = search.session("s")
    session.tools()
    assert called(session, "tick", {"a": 1}).data == ["tick", {"a": 1}, ANY]


@pytest.mark.parametrize(
    "value", [{(1, 2): 3}, float("nan"), object(), {"a"}, b"\x00\x01", None, "", [1, None], "\ud800"]
)
def test_whatever_a_tool_returns_becomes_text(value: Any) -> None:
    """A tool that ran is never said to have failed."""
    session = ToolSearch([defined("tick") | {"run": lambda **_: value}], mode="static").session()
    session.tools()
    answer = called(session, "tick")
    assert answer.status == "ok"
    answer.content.encode("utf-8")


def test_a_tool_may_answer_with_a_status_of_its_own_but_not_for_another_call() -> None:
    session = ToolSearch(
        [defined("tick") | {"run": lambda **_: ToolResult("other", "x", "denied", "No.")}], mode="static"
    ).session()
    session.tools()
    assert called(session, "tick") == ToolResult("call", "tick", "denied", "No.")


def test_a_tool_gets_its_context_and_the_model_never_sees_it() -> None:
    """SA-10, NA-11: session, call and caller reach the tool, outside its schema."""

    def whoami(context: ToolContext, loud: bool = False) -> list[Any]:
        """Who is asking."""
        assert not context.cancelled.is_set()
        return [
            context.conversation_id,
            context.call_id,
            context.caller and context.caller.user,
            context.idempotency_key,
        ]

    session = ToolSearch([whoami], mode="static").session("s", caller=ADMIN)
    assert list(wire.tools_for(session)[0]["function"]["parameters"]["properties"]) == ["loud"]
    assert called(session, "whoami").data == ["s", "call", "root", ANY]
    assert called(session, "whoami", {"context": "mine"}).status == "invalid_arguments"


place = contextvars.ContextVar("place", default="nowhere")


@tool
async def wait(seconds: float = 0.0) -> str:
    """Wait a little."""
    await asyncio.sleep(seconds)
    return f"waited in {place.get()}"


@tool
def block() -> list[str]:
    """Block a thread."""
    return [place.get(), threading.current_thread().name]


def test_a_tool_with_both_ways_is_called_the_way_of_whoever_calls() -> None:
    class Both:
        """Say how it was called."""

        def __call__(self, name: str) -> str:
            return f"{name}, in a thread or wherever handle is called"

        async def call_async(self, name: str) -> str:
            return f"{name}, {asyncio.current_task() is not None}"

    session = ToolSearch([tool(Both())], mode="static").session()
    session.tools()
    call = ToolCall("c1", "both", {"name": "Ana"})
    assert session.handle(call).content == "Ana, in a thread or wherever handle is called"
    assert asyncio.run(session.ahandle(call)).content == "Ana, True"


def test_ahandle_awaits_async_tools_and_runs_others_in_a_thread() -> None:
    """Context variables are kept in both; searches do not block the loop either."""
    session = ToolSearch([wait, block, defined("later") | {"run": lambda **_: asyncio.sleep(0, "late")}]).session()

    async def conversation() -> list[ToolResult]:
        place.set("Oslo")
        found = await session.ahandle(ToolCall("s", "search_tools", {"queries": ["select:wait,block,later"]}))
        session.tools()
        many = [ToolCall("a", "wait", {"seconds": 0.01}), ToolCall("b", "block"), ToolCall("c", "nope")]
        return [found, *await asyncio.gather(*map(session.ahandle, many))]

    found, waited, blocked, unknown = asyncio.run(conversation())
    assert found.ok
    assert waited.content == "waited in Oslo"
    assert blocked.data[0] == "Oslo"
    assert blocked.data[1] != threading.current_thread().name
    assert unknown.status == "unknown"


def test_ahandle_answers_failures_and_passes_on_cancellation() -> None:
    async def break_down() -> None:
        """Break down."""
        raise ValueError("broken")

    session = ToolSearch([break_down, wait], mode="static").session()
    session.tools()
    assert asyncio.run(session.ahandle(ToolCall("a", "break_down"))).status == "failed"

    async def cancelled() -> None:
        task = asyncio.create_task(session.ahandle(ToolCall("a", "wait", {"seconds": 30})))
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_an_async_tool_met_by_handle_is_a_clear_failure_that_names_ahandle(caplog: pytest.LogCaptureFixture) -> None:
    """No warning of a coroutine that was never awaited: warnings are errors here."""
    session = ToolSearch([wait], mode="static").session()
    session.tools()
    answer = called(session, "wait")
    assert answer.status == "failed"
    assert "did not run" in answer.content
    assert "await session.ahandle(call)" in answer.content
    assert "ahandle" in caplog.text
    search = ToolSearch([{"name": "remote"}], mode="static", run=lambda *_: asyncio.sleep(0))
    session = search.session()
    session.tools()
    assert "ahandle" in called(session, "remote").content


# -- who may see what --------------------------------------------------------------------------------------------------

SECRETS = [defined("public_read", "Read it"), defined("admin_wipe", "Wipe everything", roles=["admin"])]


@pytest.mark.parametrize("index", ["keyword", "regex"])
@pytest.mark.parametrize("query", ["wipe", "select:admin_wipe", ".*"])
def test_D16_search_shows_nothing_the_caller_may_not_use(index: str, query: str) -> None:
    """D16: for every backend and for exact selects; what is hidden is answered like what does not exist."""
    hidden = ToolSearch(SECRETS, index).session(caller=GUEST)
    absent = ToolSearch(SECRETS[:1], index).session(caller=GUEST)
    assert hidden.tools()[0].tool == absent.tools()[0].tool
    assert asked(hidden, query).content == asked(absent, query).content
    assert asked(ToolSearch(SECRETS, index).session(caller=ADMIN), "wipe").data["loaded"] == ["admin_wipe"]


@pytest.mark.parametrize("policy", ["show", "run", "refuse"])
def test_D16_a_call_to_a_hidden_tool_is_answered_like_one_to_none(policy: str) -> None:
    """D16: at the call, under every policy; near names and names of servers do not leak either."""
    vault = [defined("rotate_key", "Rotate", server="vault", category="keys", roles=["admin"])]
    hidden = ToolSearch(SECRETS + vault, not_loaded=policy).session(caller=GUEST)
    absent = ToolSearch(SECRETS[:1], not_loaded=policy).session(caller=GUEST)
    for name in ("admin_wipe", "admin_wip", "vault/rotate_key", "rotate_key"):
        assert called(hidden, name) == called(absent, name)
    assert sent(hidden) == sent(absent)
    assert asked(hidden, "keys", category="keys").content == asked(absent, "keys", category="keys").content


def test_D16_siblings_counts_reasons_and_missing_servers_do_not_leak() -> None:
    """D16: `why()`, the limit of a search, a server that is down and holds only hidden tools."""
    many = [defined(f"wipe_{n}", "Wipe it", server="vault", roles=["admin"]) for n in range(50)]
    search = ToolSearch([defined("wipe_glass", "Wipe the glass"), *many], mode="auto", auto_tokens=0)
    search.catalog.mark_missing("vault", "no answer")
    session = search.session(caller=GUEST)
    assert session.why().startswith("static: 1 tools")
    append = ToolSearch(search.catalog).session(caller=GUEST)
    answer = asked(append, "wipe", limit=3)
    assert answer.data["loaded"] == ["wipe_glass"]
    assert "vault" not in answer.content
    assert "vault" in asked(ToolSearch(search.catalog).session(caller=ADMIN), "wipe").content


def test_D16_siblings_a_right_that_was_lost_is_lost_at_once() -> None:
    """D16: a loaded tool whose role is taken away, a pinned one, and a rule that fails closed."""
    catalog = Catalog([defined("a", "A"), defined("b", "B")])
    session = ToolSearch(catalog, pinned=["b"]).session(caller=GUEST)
    asked(session, "select:a")
    session.tools()
    assert called(session, "a").ok
    catalog.replace(defined("a", "A", roles=["admin"]))
    catalog.replace(defined("b", "B", roles=["admin"]))
    assert called(session, "a").status == called(session, "b").status == "unknown"
    assert session.after_compaction() == ["b is no longer available", "a is no longer available"]
    assert shown(session) == ["search_tools"]


def test_D16_siblings_a_rule_of_the_program_is_asked_and_fails_closed(caplog: pytest.LogCaptureFixture) -> None:
    """D16: `visible` decides beside roles; its own failure hides the tool."""

    def visible(held: Any, caller: Caller | None) -> bool:
        if held.id == "odd":
            raise RuntimeError("no rule for this")
        return held.server is None or (caller is not None and caller.tenant == held.server)

    tools = [defined("t", "Do it", server="one"), defined("t", "Do it", server="two"), defined("odd", "Do it")]
    search = ToolSearch(tools, visible=visible)
    assert asked(search.session(caller=Caller(tenant="two")), "do it").data["loaded"] == ["two/t"]
    assert asked(search.session(), "do it").data["loaded"] == []
    assert "fails" not in caplog.text
    assert "stays hidden" in caplog.text


def test_a_restored_session_shows_only_what_its_caller_may_see_now() -> None:
    """D16: filters hold at load too."""
    search = ToolSearch(SECRETS)
    session = search.session("s", caller=ADMIN)
    asked(session, "select:admin_wipe,public_read")
    again = search.restore(session.export(), caller=Caller(ADMIN.user))
    assert loaded(again) == ["public_read"]


# -- caps and announcements --------------------------------------------------------------------------------------------


def test_C35_a_request_never_carries_more_tools_than_the_cap() -> None:
    """C35: 120 pinned, 20 found, one search tool, 128 at most: the oldest found leave, and all are told."""
    pinned = numbered(120, "pin")
    search = ToolSearch([*pinned, *numbered(20)], "keyword", pinned=[p["name"] for p in pinned], results=20, named=0)
    session = search.session()
    first = asked(session, "box")
    assert len(wire.tools_for(session)) == 128
    assert len(first.data["loaded"]) == 7
    assert "left out to keep this short: 13." in first.content
    assert session.notices() == []
    second = asked(session, "select:box_018,box_019")
    assert len(wire.tools_for(session)) == 128
    gone = first.data["loaded"][:2]
    assert second.data["unloaded"] == gone
    assert f"Unloaded to stay within the limit: {', '.join(gone)}. Search again" in second.content
    assert session.notices() == [f"unloaded to stay within the limit: {', '.join(gone)}"]
    assert session.notices() == [], "told once"
    assert called(session, gone[0]).status == "not_loaded"


@pytest.mark.parametrize("load", ["preselect", "search", "call"])
def test_C35_siblings_no_way_of_loading_exceeds_the_cap(load: str) -> None:
    """C35: tools that come with the user's messages, many queries at once, calls to tools that are not loaded."""
    session = ToolSearch(numbered(40), max_tools=5, answer_tokens=5_000).session()
    if load == "preselect":
        for n in range(20):
            session.preselect(f"box_{n:03}", 40)
    elif load == "search":
        asked(session, *(f"box {n}" for n in range(8)), limit=20)
    else:
        for n in range(20):
            called(session, f"box_{n:03}")
    assert len(shown(session)) == 5
    assert len(session.loaded) == 4


def test_C35_siblings_what_a_search_finds_again_is_not_unloaded_by_it() -> None:
    """C35: "already loaded" is never said of a tool that has just left."""
    session = ToolSearch(numbered(6), max_tools=4).session()
    asked(session, "select:box_000,box_001,box_002")
    answer = asked(session, "select:box_000,box_003")
    assert answer.data["unloaded"] == ["box_001"]
    assert "Already loaded, call directly: box_000." in answer.content
    assert shown(session) == ["search_tools", "box_000", "box_002", "box_003"]


def test_C35_siblings_tokens_are_capped_too_and_calls_do_not_unload() -> None:
    """C35: by tokens; what one search loads fits, and a call in the next round takes nothing away."""
    session = ToolSearch([defined(f"t{n}", "word " * 200) for n in range(8)], "keyword", max_tool_tokens=700).session()
    asked(session, "word", limit=8)
    assert len(session.loaded) == 2
    shown(session)
    first = loaded(session)
    assert all(called(session, name).ok for name in first)
    assert loaded(session) == first
    asked(session, "select:t7")
    assert loaded(session) == [first[1], "t7"]


def test_C35_siblings_static_stays_within_the_cap_when_the_catalog_grows() -> None:
    """C35: what came later is not shown; what was shown stays in its place."""
    catalog = Catalog(numbered(4))
    session = ToolSearch(catalog, mode="static", max_tools=5, max_tool_tokens=1).session()
    before = shown(session)
    catalog.extend(numbered(3, "late"))
    for _ in range(3):
        assert shown(session) == [*before, "late_000"]
    assert session.notices() == ["not shown: 2 tools; a request carries 5"]


def test_C34_a_resumed_session_drops_what_is_gone_and_says_so() -> None:
    """C34: ok_tool is still loaded; a call to gone_tool is told to search again."""
    session = ToolSearch([defined("gone_tool"), defined("ok_tool")]).session("s")
    asked(session, "select:gone_tool,ok_tool")
    session.tools()
    search = ToolSearch([defined("ok_tool")])
    again = search.restore(json.dumps(session.export()))
    assert again.notices() == ["gone_tool is no longer available and was unloaded"]
    assert called(again, "ok_tool").ok
    assert shown(again) == ["search_tools", "ok_tool"]
    answer = called(again, "gone_tool")
    assert answer.status == "unknown"
    assert "no longer available" in answer.content
    assert "search again with search_tools" in answer.content
    twice = search.restore(json.loads(json.dumps(again.export())))
    assert "no longer available" in called(twice, "gone_tool").content


def test_C34_siblings_a_tool_that_goes_while_the_session_runs() -> None:
    """C34: its bytes stay until the cache is lost anyway, its calls are answered, and it may come back."""
    catalog = Catalog([defined("gone_tool", "Gone"), defined("ok_tool")])
    session = ToolSearch(catalog).session()
    asked(session, "select:gone_tool,ok_tool")
    before = sent(session)
    gone = catalog.remove("gone_tool")
    assert sent(session) == before
    assert "no longer available" in called(session, "gone_tool").content
    assert session.after_compaction() == ["gone_tool is no longer available"]
    assert session.notices() == ["gone_tool is no longer available"]
    assert shown(session) == ["search_tools", "ok_tool"]
    assert "no longer available" in called(session, "gone_tool").content
    catalog.add(gone)
    assert called(session, "gone_tool").status == "not_loaded"
    assert shown(session) == ["search_tools", "ok_tool", "gone_tool"]


def test_C34_siblings_a_pinned_tool_that_went_leaves_at_the_next_compaction_and_new_sessions() -> None:
    """C34"""
    catalog = Catalog([defined("keep", "Old text."), defined("other")])
    search = ToolSearch(catalog, pinned=["keep", "other"])
    session = search.session()
    catalog.remove("other")
    catalog.replace(defined("keep", "New text."))
    assert shown(session) == ["search_tools", "keep", "other"]
    assert session.after_compaction() == ["keep has changed", "other is no longer available"]
    assert shown(session) == ["search_tools", "keep"]
    assert "New text." in sent(session)
    assert "New text." in search.session().instructions()
    assert shown(search.session()) == ["search_tools", "keep"]


STATUSES = {"type": "object", "properties": {"status": {"enum": ["queued"]}}, "required": ["status"]}
CHANGED = {"type": "object", "properties": {"status": {"enum": ["running"]}}, "required": ["status"]}


def test_D06_definitions_come_from_the_live_catalog() -> None:
    """D06: the schema changed and the description did not; a new search shows the new schema."""
    catalog = Catalog([defined("job", "Run a job") | {"input_schema": STATUSES}])
    search = ToolSearch(catalog)
    assert search.find("job")[0].tool.input_schema == STATUSES
    catalog.replace(defined("job", "Run a job") | {"input_schema": CHANGED})
    assert search.find("job")[0].tool.input_schema == CHANGED
    session = search.session()
    asked(session, "job")
    assert wire.tools_for(session)[1]["function"]["parameters"] == CHANGED
    assert [h.tool.name for h in search.find("running")] == ["job"]
    assert len(search.find("queued")) == 0


def test_D06_siblings_a_loaded_tool_is_checked_against_its_new_schema_and_changes_at_compaction() -> None:
    """D06: until then its bytes stay, and the error shows the new schema."""
    catalog = Catalog([defined("job", "Run a job") | {"input_schema": STATUSES}])
    session = ToolSearch(catalog).session()
    asked(session, "job")
    before = sent(session)
    catalog.replace(defined("job", "Run a job") | {"input_schema": CHANGED})
    assert sent(session) == before
    answer = called(session, "job", {"status": "queued"})
    assert answer.status == "invalid_arguments"
    assert json.dumps(CHANGED) in answer.content
    assert called(session, "job", {"status": "running"}).ok
    assert session.after_compaction() == ["job has changed"]
    assert "running" in sent(session)


def test_D06_siblings_a_removed_tool_is_not_found_and_a_new_one_is() -> None:
    """D06: the index follows every change, by one tool or by a server's whole list."""
    catalog = Catalog([defined("job", "Run a job", server="s")])
    search = ToolSearch(catalog)
    catalog.sync([defined("task", "Run a task")], server="s")
    assert [h.tool.id for h in search.find("run")] == ["s/task"]
    catalog.remove("s/task")
    assert len(search.find("run task job")) == 0


# -- stored and restored -----------------------------------------------------------------------------------------------


def test_a_session_that_is_no_session_is_refused() -> None:
    search = ToolSearch(numbered(3))
    good = search.session("s").export()
    for state in (
        "",
        "[]",
        "{}",
        "null",
        good | {"format": 99},
        good | {"mode": "x"},
        good | {"found": [[1]]},
        good | {"trail": []},
        good | {"trail": {"led": 7}},
        good | {"trail": {"led": {"a": [1]}}},
        {"id": 3},
    ):
        with pytest.raises(StateError, match="session"):
            search.restore(state)
    assert search.restore(good).id == "s"


def test_the_keys_of_an_exported_session_are_these_whatever_its_parts_are_called() -> None:
    session = ToolSearch(numbered(3)).session("s", caller=Caller("ana", tenant="acme"))
    asked(session, "open box 1")
    asked(session, "fold my laundry")
    state = session.export()
    assert list(state) == [
        "format", "id", "user", "tenant", "mode", "why", "names", "found", "callable", "built_in", "asked", "in_vain",
        "schemas", "trail",
    ]  # fmt: skip
    assert (state["format"], state["user"], state["tenant"], state["mode"]) == (1, "ana", "acme", "append")
    (tool_id, digest), *_ = state["found"]
    assert state["names"][tool_id] in state["trail"]["led"]
    assert len(digest) == 64
    assert list(state["trail"]) == ["queries", "led", "taught", "unanswered"]
    assert all(len(entry) == 2 for entry in state["built_in"])


def test_a_restored_session_fits_a_smaller_cap_and_says_what_left() -> None:
    session = ToolSearch(numbered(6)).session("s")
    asked(session, "select:box_000,box_001,box_002,box_003")
    again = ToolSearch(numbered(6), max_tools=3).restore(session.export())
    assert shown(again) == ["search_tools", "box_002", "box_003"]
    assert again.notices() == ["unloaded to stay within the limit: box_000, box_001"]


def test_names_stay_what_the_history_holds_when_the_catalog_grew_before_the_restart() -> None:
    session = ToolSearch([defined("run", "Run", server="a"), defined("p", server="a")], pinned=["p"]).session("s")
    asked(session, "run")
    before = shown(session)
    assert before == ["search_tools", "p", "run"]
    grown = [defined(n, "Run", server=s) for s in ("a", "b") for n in ("run", "p")]
    again = ToolSearch(grown, pinned=["a/p"]).restore(session.export())
    assert shown(again) == before


words = st.lists(st.sampled_from(["box", "jar", "open", "select:box_001", "number 7", "jar 3", "zzz"]), min_size=1)


@settings(max_examples=60, deadline=None)
@given(
    searches=st.lists(words, max_size=5), mode=st.sampled_from(["append", "bridge", "static"]), most=st.integers(3, 12)
)
def test_export_json_restore_gives_the_same_bytes(searches: list[list[str]], mode: str, most: int) -> None:
    tools = [*numbered(4), *numbered(4, "jar", server="kitchen")]
    search = ToolSearch(tools, mode=mode, max_tools=128 if mode == "static" else most, pinned=["box_000"])
    session = search.session("s")
    for queries in searches:
        asked(session, *queries)
        session.tools()
    bytes_before, callable_now = sent(session), [called(session, t.name).status for t in search.catalog]
    session.tools()
    state = json.loads(json.dumps(session.export()))
    again = ToolSearch(reversed(tools), mode=mode, max_tools=search.settings.max_tools, pinned=["box_000"]).restore(
        state
    )
    assert again.instructions() == session.instructions()
    assert sent(again) == sent(session)
    assert sent(session).startswith(bytes_before[:20])
    assert len(callable_now) == 8
    assert [asked(again, *queries).content for queries in searches] == [
        asked(session, *queries).content for queries in searches
    ]


# -- the bridge --------------------------------------------------------------------------------------------------------

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def bridged(**options: Any) -> Session:
    tools = [defined("get_weather", "Weather forecast") | {"input_schema": WEATHER}, *numbered(20), *SECRETS]
    return ToolSearch(tools, "keyword", mode="bridge", **options).session(caller=GUEST)


def test_C29_the_bridge_keeps_one_tools_array_for_a_whole_conversation() -> None:
    """C29: schemas arrive in results, calls go through `call_tool`, and the array never changes."""
    session = bridged()
    before = sent(session)
    assert shown(session) == ["search_tools", "call_tool"]
    assert "call_tool" in session.instructions()
    found = asked(session, "weather forecast")
    assert json.dumps(WEATHER) in found.content
    assert "call it through call_tool" in found.content
    assert sent(session) == before
    answer = called(session, "call_tool", {"name": "get_weather", "arguments": {"city": "Oslo"}})
    assert (answer.name, answer.content) == ("get_weather", '{"city": "Oslo"}')
    assert called(session, "call_tool", '{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}').ok
    assert called(session, "call_tool", {"name": "get_weather", "arguments": {}}).status == "invalid_arguments"
    assert called(session, "call_tool", {"name": "box_001", "arguments": {}}).status == "not_loaded"
    for n in range(20):
        asked(session, f"box {n}")
        assert sent(session) == before
    assert "Already loaded, call them through call_tool: get_weather" in asked(session, "weather", "box 3").content


@pytest.mark.parametrize("name", ["admin_wipe", "ADMIN-WIPE", "admin_wipes"])
def test_hidden_tools_cannot_be_reached_through_the_bridge(name: str) -> None:
    """D16"""
    session = bridged(not_loaded="run")
    answer = called(session, "call_tool", {"name": name, "arguments": {}})
    assert answer.status == "unknown"
    assert "'admin_wipe'" not in answer.content.replace(f"'{name}' did not run", "")
    assert loaded(session) == []


@pytest.mark.parametrize(
    "arguments", [None, "{", {}, {"name": 7}, {"name": "call_tool"}, {"name": "box_001", "arguments": [1]}, '"box_001"']
)
def test_a_bridge_call_that_names_nothing_is_told_how(arguments: Any) -> None:
    answer = called(bridged(), "call_tool", arguments)
    assert answer.status == "invalid_arguments"
    assert '"name"' in answer.content


def test_a_giant_schema_in_a_bridge_result_is_cut_and_says_so() -> None:
    giant = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5_000)}}
    session = ToolSearch([defined("giant", "A giant") | {"input_schema": giant}], mode="bridge").session()
    answer = asked(session, "giant")
    assert len(answer.content) < 6_500
    assert "… [cut: 6,000 of " in answer.content


# -- whatever a model writes -------------------------------------------------------------------------------------------

any_text = st.text(st.characters(exclude_categories=()), max_size=60)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
likely = st.fixed_dictionaries(
    {},
    optional={
        "queries": any_json | st.lists(any_text | st.just("select:box_001"), max_size=12),
        "names": any_json,
        "query": any_text,
        "limit": any_json,
        "category": any_json,
        "name": st.sampled_from(["box_001", "job", "search_tools", "call_tool", "no"]) | any_json,
        "arguments": any_json,
        "status": any_json,
    },
)
arguments = st.one_of(
    st.none(), any_text, any_json, likely, any_json.map(json.dumps), likely.map(lambda v: json.dumps(v)[:-1] + "}")
)
names = st.sampled_from(["search_tools", "call_tool", "box_001", "BOX-002", "job", "admin_wipe", ""]) | any_text
KNOWN = {*get_args(Status)}
HYPOTHESIS_SEARCHES = [
    ToolSearch(
        [*numbered(5, category="boxes"), defined("job", "Run a job") | {"input_schema": STATUSES}, *SECRETS],
        index,
        mode=mode,
        not_loaded=policy,
        max_tools=6 if mode != "static" else 128,
    )
    for index, mode, policy in [
        ("keyword", "append", "show"), ("regex", "bridge", "run"), ("keyword", "static", "refuse"),
    ]
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(any_text, names, arguments), min_size=1, max_size=4), st.sampled_from(HYPOTHESIS_SEARCHES))
def test_no_call_raises_and_each_gets_one_result(calls: list[tuple[str, str, Any]], search: ToolSearch) -> None:
    """PG-15, SA-22: any id, name and arguments; what is not run is answered with what happened."""
    session = search.session(caller=GUEST)
    for call_id, name, given_arguments in calls:
        result = session.handle(ToolCall(call_id, name, given_arguments))
        assert isinstance(result, ToolResult)
        assert result.call_id == call_id
        assert result.status in KNOWN
        assert result.content
        result.content.encode("utf-8")
        assert "Wipe everything" not in result.content
        names_now = shown(session)
        assert len(names_now) == len({*names_now}) <= search.settings.max_tools
    json.dumps(session.export())


ENORMOUS = [
    '{"queries": ["' + "x" * 300_000 + '"]}',
    '{"n": ' + "9" * 5_000 + "}",
    "[" * 50_000, '{"a":' * 5_000 + "1" + "}" * 5_000, '{"n": ' + "9" * 400 + "}",
    json.dumps({"queries": ["box"] * 10_000}), json.dumps({"names": [f"n{i}" for i in range(5_000)]}),
]  # fmt: skip


@pytest.mark.parametrize("text", ENORMOUS, ids=range(len(ENORMOUS)))
@pytest.mark.parametrize("name", ["search_tools", "box_001", "call_tool"])
def test_enormous_arguments_are_answered_briefly(name: str, text: str) -> None:
    for mode in ("append", "bridge"):
        session = ToolSearch(numbered(3), mode=mode).session()
        assert len(called(session, name, text).content) < 9_000


# -- every synthetic text ----------------------------------------------------------------------------------------------


def broken_index() -> Any:
    class Broken(FixedIndex):
        name = "broken"

        def search(self, *_: Any) -> Any:
            raise RuntimeError("disk full")

    return Broken({})


def test_SA_22_a_search_that_fails_is_a_result_and_the_next_round_works(caplog: pytest.LogCaptureFixture) -> None:
    """SA-22"""
    session = ToolSearch(numbered(3), broken_index()).session()
    answer = asked(session, "box")
    assert answer.status == "failed"
    assert "disk full" in answer.content
    assert "failed" in caplog.text
    assert shown(session) == ["search_tools"]
    assert asked(session, "select:box_001").ok, "exact names need no index"


def test_PG_15_every_synthetic_text_says_what_happened_and_then_what_to_do() -> None:
    """PG-15: the second sentence tells what to do next."""
    one = ToolSearch([defined("tick") | {"input_schema": DOCUMENT}, defined("boom") | {"run": fails(ValueError("x"))}])
    session = one.session()
    asked(session, "select:boom,tick")
    session.tools()
    refusing = ToolSearch(numbered(3), not_loaded="refuse").session()
    static = ToolSearch(numbered(3), mode="static").session()
    late = ToolSearch(numbered(3), mode="static", not_loaded="refuse")
    late_session = late.session()
    late_session.tools()
    late.catalog.add(defined("late"))
    texts = [
        called(session, "nope"),
        called(session, "tick", {}),
        called(session, "boom", {}),
        called(session, "boom", "{"),
        called(refusing, "box_001"),
        called(late_session, "late"),
        called(static, "search_tools", {"queries": ["x"]}),
        called(bridged(), "call_tool", {}),
        called(session, "search_tools", {}),
        called(session, "search_tools", "{"),
        asked(session, "zzz"),
        asked(session, "select:ghost"),
        asked(session, "box", category="none such"),
        asked(ToolSearch(numbered(3), broken_index()).session(), "box"),
    ]
    happened = (
        "did not run",
        "failed",
        "Nothing was searched",
        "is off",
        "did nothing",
        "Nothing fits",
        "No tool is",
        "no category",
    )
    to_do = (
        "Use ", "Correct ", "call it again", "Load it", "Refresh", "it needs", "Pass ", "Send ", "Try ", "search by",
    )  # fmt: skip
    for result in texts:
        text = result.content
        first = min((text.find(word) for word in happened if word in text), default=-1)
        then = max((text.rfind(word) for word in to_do if word in text), default=-1)
        assert 0 <= first < then, text
    assert "search_tools" not in texts[5].content, "there is no search tool in the mode static"


def test_what_a_model_wrote_is_not_logged_at_info(caplog: pytest.LogCaptureFixture) -> None:
    session = ToolSearch([defined("boom") | {"run": fails(ValueError("secret-1"))}], mode="static").session()
    session.tools()
    with caplog.at_level(logging.INFO, "toolsearch"):
        called(session, "boom", {"key": "secret-2"})
        asked(ToolSearch(numbered(3)).session(), "secret-3")
    assert "secret" not in caplog.text


def test_a_decision_changes_nothing() -> None:
    session = ToolSearch(numbered(5)).session()
    state = session.export()
    for name, given_arguments in (("search_tools", {"queries": ["box"]}), ("box_001", {}), ("nope", None)):
        session.decide(ToolCall("a", name, given_arguments))
    assert session.export() == state


def test_an_answer_fits_its_budget_whatever_was_found() -> None:
    """Headings, shortfalls and lists of loaded tools count as well."""
    tools = [defined(f"{'long_name_' * 5}{n}", f"Open the box number {n}. " + "More. " * 50) for n in range(200)]
    for budget in (300, 1_000):
        session = ToolSearch(tools, answer_tokens=budget).session()
        for queries in (
            [f"open box {n}" for n in range(8)],
            [f"the box number {n}" for n in range(20)],
            ["z" * 80] * 8,
        ):
            answer = asked(session, *queries, limit=20)
            few = len(answer.data["loaded"]) < 2  # the best tool is shown whatever else there is to say
            assert ESTIMATE.count(answer.content) <= budget or few
            assert ESTIMATE.count(answer.content) <= budget + 300
            assert not {*answer.data["loaded"]} & {*answer.data["left_out"]}


# -- what a stranger found ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outer",
    [{"name": "wipe", "args": {"path": "x"}}, {"name": "wipe", "path": "x"}, {"name": "wipe", "arguments": [1]}],
)
def test_C39_siblings_what_is_misnamed_in_a_bridge_call_is_not_lost(outer: dict[str, Any]) -> None:
    """C39, C12: a tool never runs without the arguments it was given."""
    runs: list[Any] = []
    tools = [defined("wipe", "Wipe a disk") | {"run": lambda **given: runs.append(given)}]
    session = ToolSearch(tools, mode="bridge", not_loaded="run").session()
    answer = called(session, "call_tool", outer)
    assert answer.status == "invalid_arguments"
    assert not runs
    assert '"arguments", an object' in answer.content


class Escape(BaseException):
    """What no library would raise."""


@pytest.mark.parametrize("error", [StopIteration, asyncio.CancelledError, GeneratorExit, SystemExit, Escape])
def test_C28_whatever_a_tool_raises_is_an_answer(error: type[BaseException]) -> None:
    """C28: in both ways of handling a call, and without hanging."""

    def sync() -> None:
        raise error("odd")

    search = ToolSearch([sync], not_loaded="run")
    assert called(search.session(), "sync").status == "failed"
    answer = asyncio.run(asyncio.wait_for(search.session().ahandle(ToolCall("c", "sync", {})), 10))
    assert answer.status == "failed"


def test_C28_a_cancelled_task_is_cancelled() -> None:
    started = asyncio.Event()

    async def slow() -> None:
        started.set()
        await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(ToolSearch([slow], not_loaded="run").session().ahandle(ToolCall("c", "slow", {})))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_D06_a_bridge_shows_a_schema_again_when_it_changed_or_the_history_was_shortened() -> None:
    """D06: in a bridge the model sees schemas in answers only."""
    catalog = Catalog([defined("job", "Run a job") | {"input_schema": {"properties": {"state": {"enum": ["queued"]}}}}])
    session = ToolSearch(catalog, mode="bridge").session()
    assert "queued" in asked(session, "job").content
    assert "queued" not in asked(session, "run a job").content
    session.after_compaction()
    assert "queued" in asked(session, "job").content
    catalog.replace(defined("job", "Run a job") | {"input_schema": {"properties": {"state": {"enum": ["running"]}}}})
    assert "running" in asked(session, "select:job").content


def test_two_calls_of_one_id_have_two_keys() -> None:
    """C16: providers give an id again; a payment must not be taken for the one before."""
    keys: list[str] = []

    def pay(amount: int, context: ToolContext) -> None:
        keys.append(context.idempotency_key)

    session = ToolSearch([pay], not_loaded="run").session("conversation")
    for amount in (1, 2, 2):
        called(session, "pay", {"amount": amount})
    assert len(set(keys)) == 2
    assert all(key.startswith("conversation:call:") for key in keys)


def test_a_listener_of_the_catalog_may_ask_the_session() -> None:
    """Changes are told with no lock held that a look-up needs."""
    catalog = Catalog([defined(f"t{n}", "Read mail") for n in range(20)])
    session = ToolSearch(catalog).session("a")
    catalog.subscribe(lambda change: session.after_compaction() and None)
    done = threading.Event()

    def change() -> None:
        for n in range(100):
            catalog.replace(defined("t1", f"Read mail {n}"))
        done.set()

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    while not done.is_set() and thread.is_alive():
        asked(session, "read mail")
    thread.join(20)
    assert done.is_set()


def test_look_ups_go_on_while_a_source_is_slow() -> None:
    catalog = Catalog([defined("a", "Read mail")])
    waiting, go_on = threading.Event(), threading.Event()

    def slow() -> Any:
        yield defined("b", "Send mail")
        waiting.set()
        assert go_on.wait(20)

    thread = threading.Thread(target=lambda: catalog.extend(slow()), daemon=True)
    thread.start()
    assert waiting.wait(20)
    assert [t.id for t in catalog.named("a")] == ["a"]
    go_on.set()
    thread.join(20)
    assert "b" in catalog


def test_D16_a_server_that_only_others_may_see_is_not_named_when_it_is_away() -> None:
    """D16: also after its tools have left, which is what an outage does."""
    catalog = Catalog([defined("read", "Read mail"), defined("unseal", "Unseal", server="vault", roles=["admin"])])
    search = ToolSearch(catalog)
    guest, admin = search.session(caller=GUEST), search.session(caller=ADMIN)
    catalog.remove("vault/unseal")
    catalog.mark_missing("vault", "down")
    assert "vault" not in asked(guest, "zzz").content
    assert "vault" in asked(admin, "zzz").content


@pytest.mark.parametrize("name", ["search_tool", "Search-Tools", "functions.search_tools", "searchTools"])
def test_the_search_tool_is_understood_in_other_spellings(name: str) -> None:
    answer = called(session_of("Read mail"), name, {"queries": ["mail"]})
    assert answer.status == ("ok" if name != "search_tool" else "unknown")


def session_of(description: str) -> Session:
    return ToolSearch([defined("a", description)]).session()


def test_a_call_that_is_no_tool_call_is_told_to_the_program() -> None:
    session = ToolSearch([{"name": "tick"}]).session()
    with pytest.raises(SetupError, match=r"call must be a ToolCall, as calls_in\(reply\) .* gives them, not {'name'"):
        session.handle({"name": "tick"})  # type: ignore[arg-type]
