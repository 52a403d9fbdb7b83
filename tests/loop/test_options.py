"""What a program passes by mistake is refused where it is passed: by the option's name, its value, and what is due."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsearch import (
    Agent,
    Caller,
    Catalog,
    Learned,
    Session,
    SetupError,
    ToolCall,
    ToolResult,
    ToolSearch,
    builtin_tools,
)
from toolsearch.delegation import delegate
from toolsearch.events.facts import Reply
from toolsearch.layers import (
    Completed,
    Denied,
    LogFilter,
    Policy,
    Price,
    Quota,
    Ready,
    Refuse,
    Rewrite,
    after,
    approval,
    before,
    eligibility,
    follow_ups,
    history,
    interaction,
    limits,
    logs,
    memory,
    otel,
    preflight,
    processors,
    redact,
    retry,
    rules,
    structured,
    thought,
    timeout,
    trace,
    truncate,
    usage,
)
from toolsearch.stores import MemoryStore, SqliteStore
from toolsearch.testing import FixedIndex, ScriptedModel
from toolsearch.wires import anthropic, openai_chat

NAN, INF = float("nan"), float("inf")


class Layer:
    """A layer, whose class is none."""

    def around_tool(self, call: Any) -> Iterator[Any]:
        result = yield call
        return result


class Mute:
    """What cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def pay(to: str) -> str:
    """Pays."""
    return to


def agent(*given: Any, **options: Any) -> Agent:
    return Agent(*(given or (ScriptedModel(), [])), **options)


def helper(**options: Any) -> Any:
    return delegate(**{"agent": agent(), "name": "helper", "description": "Helps.", **options})


def search(*given: Any, **options: Any) -> ToolSearch:
    return ToolSearch(*(given or ([pay], FixedIndex({}))), **options)


def judged(**options: Any) -> Any:
    return eligibility(**{"predicate": bool, **options})


def checked(**options: Any) -> Any:
    return preflight(**{"check": print, **options})


def asked(**options: Any) -> Any:
    return interaction(**{"tools": ["ask_user"], **options})


def window(**options: Any) -> Any:
    return history(**{"messages": 10, **options})


def answer(**options: Any) -> Any:
    return structured(**{"wanted": int, **options})


def thoughts(**options: Any) -> Any:
    return thought(**{"fields": {"why": "Why"}, "consumer": print, **options})


def quota(**options: Any) -> Any:
    return usage(**{"quota": Quota(), **options})


def price(**options: Any) -> Any:
    return Price(**{"input": 1.0, "cached": 0.1, "output": 5.0, **options})


def learned(**options: Any) -> Any:
    return Learned(**{"clock": float, **options})


def taught(**options: Any) -> Any:
    return learned(without_tenant=True).teach(**{"query": "pay ana", "tool_id": "pay", **options})


def session() -> Session:
    return search().session()


def handled(call: Any) -> Any:
    return session().handle(call)


def loaded(ids: Any) -> Any:
    return session().load(ids)


def field(told: Any) -> Any:
    return thought({"why": told}, print)


class Client:
    """A client as the SDKs have them."""

    def __init__(self) -> None:
        self.chat, self.completions, self.messages = self, self, self

    def create(self) -> None:
        """Asks."""


def chat(**options: Any) -> Any:
    return openai_chat.model(**{"client": Client(), "name": "gpt-x", **options})


def messages(**options: Any) -> Any:
    return anthropic.model(**{"client": Client(), "name": "claude-x", **options})


CALL = ToolCall("c1", "pay")


def store(**options: Any) -> Any:
    return SqliteStore(**{"path": "journals.db", **options})


WRONG: list[tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = [
    # numbers
    (approval, {"seconds": "5"}, ("seconds", "'5'", "a number of seconds above 0")),
    (approval, {"seconds": None}, ("seconds", "None", "above 0")),
    (approval, {"seconds": NAN}, ("seconds", "nan", "above 0")),
    (approval, {"ttl_seconds": True}, ("ttl_seconds", "True", "or None for no end")),
    (approval, {"ttl_seconds": INF}, ("ttl_seconds", "inf", "or None for no end")),
    (Policy, {"seconds": "60"}, ("seconds", "'60'", "or None")),
    (Policy, {"seconds": 0}, ("seconds", "0", "above 0")),
    (asked, {"a_round": 1.5}, ("a_round", "1.5", "a whole number of at least 1")),
    (asked, {"a_round": True}, ("a_round", "True", "a whole number of at least 1")),
    (asked, {"seconds": "5"}, ("seconds", "'5'", "above 0")),
    (asked, {"ttl_seconds": -1}, ("ttl_seconds", "-1", "or None")),
    (helper, {"depth": "3"}, ("depth", "'3'", "a whole number of at least 1")),
    (follow_ups, {"n": "3"}, ("n must be", "'3'", "a whole number of at least 1")),
    (follow_ups, {"seconds": None}, ("seconds", "None", "above 0")),
    (window, {"messages": "10"}, ("messages", "'10'", "or None for no such bound")),
    (window, {"tokens": NAN}, ("tokens", "nan", "a whole number of at least 1")),
    (window, {"step": "0.25"}, ("step", "'0.25'", "of at least 0 and below 1")),
    (window, {"step": NAN}, ("step", "nan", "of at least 0 and below 1")),
    (limits, {"soft": "16"}, ("soft", "'16'", "or None for no such limit")),
    (limits, {"cost": "1"}, ("cost", "'1'", "a number above 0, or None")),
    (limits, {"tools": {"pay": "3"}}, ("tools['pay']", "'3'", "a whole number of at least 1")),
    (logs, {"characters": True}, ("characters", "True", "a whole number of at least 1")),
    (Rewrite, {"function": str.upper, "look_back": "4"}, ("look_back", "'4'", "a whole number of at least 0, or None")),
    (retry, {"attempts": "2"}, ("attempts", "'2'", "a whole number of at least 1")),
    (retry, {"seconds": "1"}, ("seconds", "'1'", "a number of seconds of at least 0")),
    (retry, {"longest": INF}, ("longest", "inf", "a number of seconds of at least 0")),
    (answer, {"repairs": "1"}, ("repairs", "'1'", "a whole number of at least 0")),
    (timeout, {"tool": "5"}, ("tool", "'5'", "a number of seconds above 0, or None for no bound")),
    (timeout, {"turn": NAN}, ("turn", "nan", "above 0")),
    (timeout, {"per_tool": {"pay": True}}, ("per_tool['pay']", "True", "above 0")),
    (trace, {"characters": "400"}, ("characters", "'400'", "a whole number of at least 1")),
    (truncate, {"characters": "12000"}, ("characters", "'12000'", "a whole number of at least 0")),
    (truncate, {"tools": {"pay": 10}}, ("tools['pay']", "10", "from 200, or 0 for no limit")),
    (Quota, {"calls": 1.5}, ("calls", "1.5", "a whole number of at least 0, or None")),
    (Quota, {"cost": "5"}, ("cost", "'5'", "a number of dollars of at least 0, or None")),
    (price, {"input": "4"}, ("input", "'4'", "a number of dollars of at least 0")),
    (price, {"cached": NAN}, ("cached", "nan", "a number of dollars of at least 0")),
    (MemoryStore, {"most": 2.5}, ("most", "2.5", "a whole number of at least 1, or None for no bound")),
    (MemoryStore, {"seconds": "60"}, ("seconds", "'60'", "a number of seconds above 0, or None")),
    (MemoryStore, {"seconds": NAN}, ("seconds", "nan", "above 0")),
    (store, {"busy_seconds": "10"}, ("busy_seconds", "'10'", "a number of seconds of at least 0")),
    (store, {"busy_seconds": -1}, ("busy_seconds", "-1", "a number of seconds of at least 0")),
    # one text where a collection of texts is due, and what is no text in a collection
    (approval, {"when": "pay"}, ("when", "as in ['pay'], or a function")),
    (approval, {"when": [pay]}, ("when", "<function pay", "a str")),
    (approval, {"when": 5}, ("when", "5", "a collection of names, or a function")),
    (asked, {"tools": "ask_user"}, ("tools", "as in ['ask_user']")),
    (asked, {"tools": 5}, ("tools", "5", "a collection of names")),
    (asked, {"tools": {"ask_user": 5}}, ("'ask_user' cannot want 5", "'question', 'file', 'image'")),
    (limits, {"polling": "look"}, ("polling", "as in ['look']")),
    (limits, {"uncounted": [5]}, ("uncounted", "5", "a str")),
    (limits, {"tools": ["pay"]}, ("tools", "['pay']", "a mapping from names to numbers of calls")),
    (checked, {"tools": "pay"}, ("tools", "as in ['pay']")),
    (checked, {"tools": 5}, ("tools", "5", "a collection of names")),
    (retry, {"tools": "fetch"}, ("tools", "as in ['fetch'], or True for all")),
    (retry, {"tools": 5}, ("tools", "5", "a collection of names, or True for all")),
    (rules, {"allow": "abc"}, ("allow", "as in ['abc']")),
    (rules, {"deny": [pay]}, ("deny", "<function pay", "a str")),
    (rules, {"deny": None}, ("deny", "None", "a collection of patterns")),
    (rules, {"roles": ["hr"]}, ("roles", "['hr']", "a mapping from names to collections of names")),
    (rules, {"tenants": {"pay*": "acme"}}, ("tenants['pay*']", "as in ['acme']")),
    (rules, {"personas": {"clerk": [5]}, "persona": "clerk"}, ("personas['clerk']", "5", "a str")),
    (timeout, {"per_tool": 5}, ("per_tool", "5", "a mapping from names to numbers of seconds")),
    (truncate, {"tools": ["pay"]}, ("tools", "['pay']", "a mapping from names")),
    (quota, {"prices": {"m": 5.0}}, ("prices['m']", "5.0", "a Price")),
    (quota, {"prices": 5}, ("prices", "5", "a mapping from names to prices")),
    # what is no function
    (approval, {"ask": "yes"}, ("ask", "'yes'", "a function that takes a list of waiting calls, or None to pause")),
    (asked, {"ask": True}, ("ask", "True", "a function")),
    (judged, {"predicate": True}, ("predicate", "True", "a function from a Round")),
    (window, {"count": 4}, ("count", "4", "a function from a text")),
    (limits, {"price": 1.0}, ("price", "1.0", "a function from a ModelCalled")),
    (LogFilter, {"redact": "secret"}, ("redact", "'secret'", "a function from a text")),
    (checked, {"check": None}, ("check", "None", "a function of a Call and a phase")),
    (processors, {"into": [5]}, ("into", "5", "a function or a Rewrite")),
    (processors, {"stored": str.upper}, ("stored", "upper", "a list of processors")),
    (Rewrite, {"function": "secret"}, ("function", "'secret'", "a function from a text to a text")),
    (retry, {"on": 429}, ("on must be", "429", "a function from an error to True or False, or error classes")),
    (retry, {"on": (ValueError, "busy")}, ("on must be error classes", "'busy'")),
    (retry, {"on": str}, ("on must be error classes", "<class 'str'>")),
    (rules, {"persona": 5, "personas": {}}, ("persona", "5", "a function from the caller")),
    (rules, {"version": 3}, ("version", "3", "a function")),
    (thoughts, {"consumer": None}, ("consumer", "None", "a function of a tool's id")),
    (trace, {"redact": "secret"}, ("redact", "'secret'", "a function from a text")),
    (otel, {"redact": 5}, ("redact", "5", "a function from a text")),
    (quota, {"quota": 100}, ("quota", "100", "a function from a Caller", "or a Quota")),
    (MemoryStore, {"clock": 5.0}, ("clock", "5.0", "a function that gives seconds")),
    (store, {"clock": 5.0}, ("clock", "5.0", "a function that gives seconds")),
    # texts, choices, and what is either on or off
    (approval, {"independent": "no"}, ("independent", "'no'", "True or False")),
    (approval, {"remember": 0}, ("remember", "0", "True or False")),
    (Policy, {"required": "yes"}, ("required", "'yes'", "True or False")),
    (Policy, {"approver": 5}, ("approver", "5", "a str")),
    (judged, {"reason": 5}, ("reason", "5", "a non-empty str")),
    (helper, {"name": 5}, ("name", "5", "a non-empty str")),
    (helper, {"description": None}, ("description", "None", "a str")),
    (follow_ups, {"prompt": 5}, ("prompt", "5", "a non-empty str")),
    (window, {"summarize": 1}, ("summarize", "1", "True or False")),
    (limits, {"excess": ["end"]}, ("excess", "['end']", "'answer' or 'end'")),
    (memory, {"keep": None}, ("keep", "None", "'everything' or 'answers'")),
    (otel, {"side": "client"}, ("side", "'client'", "'chat' or 'server'")),
    (otel, {"agent": 5}, ("agent", "5", "a str")),
    (otel, {"contents": "no"}, ("contents", "'no'", "True or False")),
    (Ready, {"question": 5}, ("question", "5", "a str")),
    (Denied, {"reason": None}, ("reason", "None", "a str")),
    (Refuse, {"text": 5}, ("text", "5", "a str")),
    (answer, {"native": "yes"}, ("native", "'yes'", "True or False")),
    (answer, {"separate": None}, ("separate", "None", "True or False")),
    (thoughts, {"strip": "no"}, ("strip", "'no'", "True or False")),
    (thoughts, {"fields": ["why"]}, ("fields", "['why']", "a mapping or a type")),
    (trace, {"colour": "yes"}, ("colour", "'yes'", "True or False")),
    (price, {"date": 2026}, ("date", "2026", "a str")),
    (store, {"path": 5}, ("path", "5", "the path of a file")),
    # objects of another kind, and classes where an object is due
    (helper, {"agent": Agent}, ("agent", "<class 'toolsearch.loop.agent.Agent'>", "pass an object, as in Agent(…)")),
    (memory, {"store": "journals.db"}, ("store", "'journals.db'", "as SqliteStore(…) is", "it has no append")),
    (memory, {"store": []}, ("store", "[]", "as SqliteStore(…) is", "it has no load, delete, list")),
    (memory, {"store": MemoryStore}, ("store", "MemoryStore'>", "pass an object, as in MemoryStore(…)")),
    (otel, {"tracer_provider": 5}, ("tracer_provider", "5", "it has no get_tracer")),
    (otel, {"meter_provider": 5}, ("meter_provider", "5", "it has no get_meter")),
    (trace, {"to": "log.txt"}, ("to must be", "'log.txt'", "a file to write to")),
    # an agent
    (agent, {"system": None}, ("system", "None", "a str")),
    (agent, {"layers": "limits"}, ("layers", "'l'", "not a layer", "around_tool")),
    (agent, {"layers": 5}, ("layers", "5", "a list of layers")),
    (agent, {"layers": [object]}, ("object is a class, not a layer", "object(…)")),
    (agent, {"layers": [Layer]}, ("Layer is a class, not a layer", "Layer(…)")),
    (agent, {"layers": [memory]}, ("layers", "<function memory", "not a layer", "around_tool")),
    (agent, {"observe": 5}, ("observe", "5", "a function that takes an event")),
    (agent, {"observe": [print, "x"]}, ("observe", "'x'", "a function that takes an event")),
    (agent, {"observe": trace}, ("observe", "trace'>", "pass an object, as in trace(…)")),
    (agent, {"store": "journals.db"}, ("store", "'journals.db'", "as SqliteStore(…) is")),
    (agent, {"store": []}, ("store", "[]", "it has no load, delete, list")),
    (agent, {"store": SqliteStore}, ("store", "SqliteStore'>", "pass an object, as in SqliteStore(…)")),
    (agent, {"defaults": "no"}, ("defaults", "'no'", "True or False")),
    (agent, {"clock": 5.0}, ("clock", "5.0", "a function that gives seconds")),
    # a search
    (search, {"visible": True}, ("visible", "True", "a function of a Tool and a Caller, or None")),
    (search, {"run": "pay"}, ("run", "'pay'", "a function of a Tool")),
    (search, {"learned": True}, ("learned", "True", "a Learned(…), or None")),
    (search, {"settings": {"results": 3}}, ("settings", "{'results': 3}", "as Settings.of(…) gives")),
    (search, {"pinned": 5}, ("pinned", "5", "a list of tools, or of their names")),
    (search, {"results": "many"}, ("results", "'many'", "integer")),
    (search().session, {"caller": "ana"}, ("caller", "'ana'", "as in Caller(user='ana')")),
    (search().session, {"conversation_id": 5}, ("conversation_id", "5", "a str, or None")),
    (search().find, {"query": "pay", "caller": "ana"}, ("caller", "'ana'", "as in Caller(user='ana')")),
    (search().find, {"query": "pay", "category": 5}, ("category", "5", "a str, or None for all")),
    (search().restore, {"state": {}, "caller": "ana"}, ("caller", "'ana'", "as in Caller(user='ana')")),
    (search().end_session, {"conversation_id": []}, ("conversation_id", "[]", "a str")),
    (search().on_evict, {"listener": 5}, ("listener", "5", "a function that takes a Session")),
    (handled, {"call": {"name": "pay"}}, ("call", "{'name': 'pay'}", "a ToolCall, as calls_in(reply)")),
    (loaded, {"ids": "pay"}, ("ids", "as in ['pay']")),
    (session().rebind_caller, {"caller": "ana"}, ("caller", "'ana'", "as in Caller(user='ana')")),
    (Caller, {"user": 5}, ("user", "5", "a str, or None")),
    (Caller, {"tenant": 5}, ("tenant", "5", "a str, or None")),
    (Caller, {"roles": 5}, ("roles", "5", "a collection of names")),
    (Caller, {"roles": [5]}, ("roles", "5", "a str")),
    # what use teaches
    (learned, {"clock": 5.0}, ("clock", "5.0", "a function that gives the time")),
    (learned, {"capacity": "5"}, ("capacity", "'5'", "a whole number of at least 1")),
    (learned, {"tenants": 2.5}, ("tenants", "2.5", "a whole number of at least 1")),
    (learned, {"half_life_days": "30"}, ("half_life_days", "'30'", "a number of days above 0")),
    (learned, {"weight": INF}, ("weight", "inf", "a number of at least 0")),
    (learned, {"least": 1.5}, ("least", "1.5", "a number above 0 and at most 1")),
    (learned, {"without_tenant": "no"}, ("without_tenant", "'no'", "True or False")),
    (taught, {"query": 5}, ("query", "5", "a str")),
    (taught, {"tool_id": ""}, ("tool_id", "''", "a non-empty str")),
    (taught, {"times": NAN}, ("times", "nan", "a number above 0")),
    (taught, {"user": 5}, ("user", "5", "a str, or None")),
    (learned().forget, {"tool_ids": "pay"}, ("tool_ids", "as in ['pay']")),
    # a catalog
    (Catalog, {"tools": "tools.json"}, ("tools", "'tools.json'", "functions, definitions", "read a file with")),
    (Catalog, {"tools": b"[]"}, ("tools", "b'[]'", "functions, definitions")),
    (Catalog, {"server": 5}, ("server must be a str or None, not 5",)),
    (Catalog, {"on_collision": []}, ("on_collision", "[]", "'quarantine', 'replace' or 'error'")),
    (Catalog().extend, {"sources": "tools.json"}, ("tools", "'tools.json'", "functions, definitions")),
    (Catalog().sync, {"sources": "ab", "server": "shop"}, ("tools", "'ab'", "functions, definitions")),
    (Catalog().sync, {"sources": None, "server": "shop"}, ("tools", "None", "functions, definitions")),
    (Catalog().sync, {"sources": [], "server": None}, ("server", "None", "a non-empty str")),
    (Catalog().sync, {"sources": [], "server": "shop", "rolls": "hr"}, ("no option 'rolls'", "'roles'")),
    (Catalog().subscribe, {"listener": 5}, ("listener", "5", "a function that takes a Change")),
    (Catalog().reserve, {"names": "search"}, ("names", "as in ['search']")),
    (Catalog().enrich, {"examples": 5}, ("examples", "5", "it has no of, stale")),
    # meta-tools
    (builtin_tools.ask_user, {"name": 5}, ("name", "5", "a non-empty str")),
    (builtin_tools.skills, {"source": {"a": "A"}, "name": ""}, ("name", "''", "a non-empty str")),
    (builtin_tools.skills, {"source": {5: "A"}}, ("source", "{5: 'A'}", "a mapping from names to texts")),
    (builtin_tools.skills, {"source": 5}, ("source", "5", "a folder, or a mapping")),
    (
        builtin_tools.memories,
        {"store": builtin_tools.InProcessMemories},
        ("store", "pass an object, as in InProcessMemories(…)"),
    ),
    # wires
    (chat, {"client": None}, ("client", "None", "OpenAI or AsyncOpenAI", "no chat.completions.create")),
    (chat, {"name": 5}, ("name", "5", "a non-empty str")),
    (chat, {"stream": "no"}, ("stream", "'no'", "True or False")),
    (messages, {"client": Client}, ("client", "AsyncAnthropic", "pass an object, as in Client(…)")),
    (messages, {"name": ""}, ("name", "''", "a non-empty str")),
    (messages, {"max_tokens": "9"}, ("max_tokens", "'9'", "a whole number of at least 1")),
    *(
        (function, options, words)
        for wire in (openai_chat, anthropic)
        for function, options, words in [
            (wire.tools_for, {"session": search()}, ("session", "ToolSearch(", "as ToolSearch(…).session() gives")),
            (
                wire.tools_for,
                {"session": session(), "description_characters": "9"},
                ("description_characters", "'9'", "a whole number of at least 100, or None for no limit"),
            ),
            (wire.calls_in, {"reply": "pay"}, ("reply", "'pay'", "the provider's SDK gave")),
            (wire.message_from, {"reply": None}, ("reply", "None", "the provider's SDK gave")),
            (wire.reply_from, {"reply": [5]}, ("reply", "[5]", "the provider's SDK gave")),
            (wire.results_for, {"answered": CALL}, ("answered", "ToolCall(", "pairs of a ToolCall and its")),
            (wire.results_for, {"answered": [(CALL, "done")]}, ("answered", "'done'", "pairs of a ToolCall and its")),
            (
                wire.results_for,
                {"answered": (CALL, ToolResult("c1", "pay", "ok", "done"))},
                ("answered", "ToolCall(", "as in [(call, session.handle(call))]"),
            ),
        ]
    ),
    (Reply, {"text": 5}, ("text", "5", "a str or None")),
    (Reply, {"usage": None}, ("usage", "None", "a Usage(…)")),
    (Reply, {"calls": [{"name": "pay"}]}, ("calls", "[{'name': 'pay'}]", "a tuple of ToolCall")),
    (Reply, {"calls": None}, ("calls", "None", "a tuple of ToolCall")),
    # JSON Schemas
    *(
        (make, {option: told}, words)
        for make, option in ((answer, "wanted"), (field, "told"))
        for told, words in [
            ({"type": "strin"}, ("type", "'strin'", "array, boolean, integer")),
            ({"type": ["string", 5]}, ("type", "['string', 5]")),
            ({"properties": 5}, ("properties", "5", "a mapping from names to schemas")),
            ({"properties": {"a": "text"}}, ("properties.a", "'text'", "a schema")),
            ({"properties": {"a": {"items": 5}}}, ("properties.a.items", "5", "a schema")),
            ({"required": "a"}, ("required", "'a'", "a list of names")),
            ({"enum": "a"}, ("enum", "'a'", "a list of values")),
            ({"anyOf": []}, ("anyOf", "[]", "a list of schemas")),
            ({"anyOf": [{}, 5]}, ("anyOf[1]", "5", "a schema")),
            ({"minimum": "5"}, ("minimum", "'5'", "a number")),
            ({"pattern": 5}, ("pattern", "5", "a str")),
            ({"items": {"$ref": "#/$defs/Node"}}, ("items.$ref", "'#/$defs/Node'", "points to nothing")),
            ({"name": "Ana"}, ("{'name': 'Ana'}", "no keyword of JSON Schema")),
            ({"default": NAN}, ("nan", "it is not JSON")),
            ({"default": {1}}, ("{1}", "it is not JSON")),
        ]
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "options", "words"), WRONG, ids=[f"{make.__name__}({', '.join(given)})" for make, given, _ in WRONG]
)
def test_a_wrong_option_is_refused_where_it_is_passed(
    make: Callable[..., Any], options: dict[str, Any], words: tuple[str, ...], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError) as caught:
        make(**options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Agent(ScriptedModel, []), ("model", "pass an object, as in ScriptedModel(…)")),
        (lambda: Agent(None, []), ("model", "None", "a function that takes a CallModel")),  # type: ignore[arg-type]
        (lambda: Agent(ScriptedModel(), 5), ("tools must be", "5")),
        (lambda: ToolSearch("tools.json"), ("catalog", "'tools.json'", "a Catalog or a list of tools")),
        (lambda: ToolSearch([], FixedIndex), ("index", "FixedIndex'>", "as FixedIndex(…) is")),  # type: ignore[arg-type]
        (lambda: rules("pay"), ("each check", "'pay'", "a function of a Tool and a Caller")),  # type: ignore[arg-type]
        (lambda: redact("ok", "("), ("redact()", "'('", "unterminated")),
        (lambda: redact(b"x"), ("redact()", "b'x'", "not of bytes")),  # type: ignore[arg-type]
        (lambda: redact(5), ("redact()", "5", "regular expressions")),  # type: ignore[arg-type]
        (lambda: redact("x", by=5), ("by must be", "5", "a str")),  # type: ignore[arg-type]
        (lambda: before("model", "x"), ("before()", "'x'", "a function")),  # type: ignore[arg-type]
        (lambda: after("reply", print), ("no seam 'reply'", "'model'")),
    ],
)
def test_so_is_what_is_passed_by_its_place(make: Callable[[], Any], words: tuple[str, ...]) -> None:
    with pytest.raises(SetupError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


def test_a_value_is_shown_no_longer_than_can_be_read() -> None:
    with pytest.raises(SetupError) as caught:
        timeout(tool="5" * 10_000)  # type: ignore[arg-type]
    assert "'555" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", [Mute(), 10**5000], ids=["it raises", "too many digits"])
def test_a_value_that_cannot_be_shown_is_named_by_its_type(value: Any) -> None:
    with pytest.raises(SetupError, match=f"of the type {type(value).__name__}"):
        approval(ask=value)


def test_what_says_the_same_in_another_way_is_taken(tmp_path: Path) -> None:
    """Generators, tuples, sets and mappings of names; functions that are objects or classes; bounds without end."""
    approval(when=(name for name in ["pay"]), seconds=INF)
    limits(polling={"look"}, uncounted=("look",), tools={"pay": None})
    rules(allow=iter(["pay*"]), roles={"pay*": {"hr"}}, personas={"clerk": ["*"]}, persona=lambda _: "clerk")
    retry(on=ValueError, tools=True)
    retry(on=(ValueError, OSError), tools=frozenset(["look"]))
    timeout(tool=INF)
    thought({"why": "Why"}, ScriptedModel("x"))  # an object that can be called
    preflight(print, tools=[])
    LogFilter(redact=str)  # a class that is a function
    agent(observe=(each for each in [print]), layers=(layer for layer in [Layer()]))
    agent(observe=None, store=MemoryStore(most=None))
    usage(Quota(calls=0, tokens=0, cost=0))
    memory(SqliteStore(tmp_path / "a.db", busy_seconds=0))
    assert Completed(None).output is None
    Learned(clock=float, half_life_days=INF, weight=0, least=1)
    assert Caller("ana", "hr").roles == Caller("ana", (role for role in ["hr"])).roles == {"hr"}
    assert openai_chat.results_for(iter([])) == anthropic.results_for({}.items()) == []


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"description": "Anything."},
        {"type": ["string", "null"], "enum": ["a", None], "default": None},
        {"$ref": "#/$defs/Node", "$defs": {"Node": {"properties": {"kids": {"items": {"$ref": "#/$defs/Node"}}}}}},
        {"properties": {"any": {"$ref": "#/$defs/Any"}, "no": False}, "$defs": {"Any": {}}, "x-mine": [1]},
        {"type": "array", "prefixItems": [{"type": "string"}, True], "items": False, "minItems": 2},
        {"items": {"$ref": "#"}, "additionalProperties": {"type": "integer"}, "pattern": "^a(?=b)"},
        {"$ref": "https://example.org/schema.json"},
    ],
)
def test_what_is_a_schema_is_taken(wanted: dict[str, Any]) -> None:
    structured(wanted)


class Empty(MemoryStore):
    """A store that counts its journals."""

    def __len__(self) -> int:
        return len(self.list())


@pytest.mark.parametrize("give", [lambda kept: {"store": kept}, lambda kept: {"layers": [memory(kept)]}])
def test_a_store_is_used_though_it_is_empty(give: Callable[[Any], dict[str, Any]]) -> None:
    kept = Empty()
    agent(**give(kept)).run("Hello", conversation_id="s")
    assert kept.list() == ["s"]


def test_a_policy_that_cannot_be_runs_nothing() -> None:
    """A policy is made in the middle of a turn: that is the program's own mistake, and ends the turn whole."""
    ran: list[str] = []

    def act(to: str) -> str:
        """Acts."""
        ran.append(to)
        return to

    def when(call: Any) -> Policy:
        return Policy(seconds=call.judged.name)

    model = ScriptedModel([("c1", "act", {"to": "x"})])
    made = Agent(model, ToolSearch([act], mode="static"), layers=[approval(when=when)])
    with pytest.raises(SetupError, match="seconds must be a number of seconds above 0"):
        made.run("Go", conversation_id="s", caller=Caller("ana"))
    conversation = made.conversation("s", caller=Caller("ana"))
    assert (ran, conversation.running, conversation.open) == ([], False, ())
