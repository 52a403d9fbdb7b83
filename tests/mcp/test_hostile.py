"""What a hostile server can do to a program that calls it: floods, odd results, secrets and orders in errors."""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from mcp.shared.exceptions import MCPError

from tests.mcp.servers import SECRET, entry
from tests.mcp.servers.by_hand import initialized, said, tool
from tests.mcp.servers.hostile import ODD, ORDERS
from toolsearch import Catalog, Session, ToolCall, ToolResult, ToolSearch
from toolsearch.mcp import Servers, listing
from toolsearch.mcp.config import ServerEntry
from toolsearch.mcp.faults import is_forgotten, is_lost
from toolsearch.mcp.questions import MOST_QUESTIONS, Question

FLOOD = 2_000


class Attacked:
    """A program with one hostile server: a session, and what was heard."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.changes: Counter[str] = Counter()
        hostile = {**entry("hostile", count=FLOOD), "env": {"API_KEY": SECRET}, "timeout": 20}
        self.servers = Servers({"hostile": hostile}, ask=self.ask)
        self.servers.on_change(lambda server, kind: self.changes.update([kind]))
        self.servers.start()
        search = ToolSearch(self.servers.catalog, index="keyword", run=self.servers.run, not_loaded="run")
        self.session: Session = search.session()

    def ask(self, question: Question) -> bool:
        self.asked.append(question)
        return True

    def call(self, name: str, **arguments: object) -> ToolResult:
        return self.session.handle(ToolCall("1", name, arguments))


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    program = Attacked()
    begun = program.servers.health()["hostile"].since
    yield program
    assert program.servers.health()["hostile"].since == begun, "the connection was lost meanwhile"
    program.servers.close()


READ = {
    "content-text": ("ok", "a text"),
    "content-null": ("ok", "Done; the tool returned nothing."),
    "content-missing": ("ok", '{"only": "this"}'),
    "content-numbers": ("ok", "1\nnull\ntwo"),
    "block-unknown": ("ok", '{"type": "hologram", "data": "x", "text": "seen"}'),
    "block-no-text": ("ok", '{"type": "text"}'),
    "image-no-data": ("ok", '{"type": "image", "mimeType": "image/png"}'),
    "structured-list": ("ok", 'rows\n{"result": [1, 2]}'),
    "error-text": ("failed", "no such file"),
    "surrogates": ("ok", "half \ufffd a sign"),
    "deep": ("ok", "deep\n" + '{"in": ' * 98 + '"<left out: it is nested too deeply>"' + "}" * 98),
    "empty": ("ok", "Done; the tool returned nothing."),
}


@pytest.mark.parametrize("kind", READ)
def test_an_odd_result_is_read_as_far_as_it_can_be(attacked: Attacked, kind: str) -> None:
    result = attacked.call("odd", kind=kind)
    assert (result.status, result.content) == READ[kind]


@pytest.mark.parametrize("kind", sorted(ODD.keys() - READ.keys()))
def test_an_answer_that_cannot_be_read_ends_the_wait_for_it(attacked: Attacked, kind: str) -> None:
    """D13: a malformed answer never reached the waiting call, which hung until its time was over."""
    result = attacked.call("odd", kind=kind)
    assert result.status == "failed"
    assert "the server sent an answer that cannot be read" in result.content


def test_bytes_that_are_no_text_cost_their_signs_only(attacked: Attacked) -> None:
    assert attacked.call("bytes").content == "caf\ufffd\ufffd is open"


def test_of_two_answers_the_first_counts(attacked: Attacked) -> None:
    assert attacked.call("twice").content == "first"
    assert attacked.call("anything_else").status == "unknown"


def test_an_error_of_the_usual_code_is_not_taken_for_a_lost_connection(attacked: Attacked) -> None:
    """-32000 is the code of any error that a server makes up, and of a closed connection in the SDK."""
    result = attacked.call("orders", how="protocol")
    assert result.status == "failed"
    assert f"the server 'hostile' answered: {ORDERS}"[:-1] in result.content  # named, so that it is not ours


@pytest.mark.parametrize(
    ("message", "forgotten"),
    [
        ("Session terminated", True),
        ("Not Found: Session has been terminated", True),
        ("Unknown session.", True),
        ("session ID not found", True),
        ("Your session at the bank has expired: log in", False),
        ("The browser session was terminated by the user", False),
        ("No session not found", False),
    ],
)
def test_only_the_words_of_a_transport_mean_that_a_call_did_not_run(message: str, forgotten: bool) -> None:
    """Such a call is sent again: the error of a tool must not make an action run twice."""
    error, http = MCPError(-32000, message), ServerEntry("h", "http", url="http://localhost/mcp")
    assert is_forgotten(error, http) is forgotten
    assert is_lost(error, http) is forgotten
    assert not is_lost(error, ServerEntry("s", "stdio", command="s"))


def test_an_endless_error_is_cut(attacked: Attacked) -> None:
    assert len(attacked.call("orders", how="protocol", times=20_000).content) <= 20_000


@pytest.mark.parametrize("how", ["protocol", "result"])
def test_a_secret_of_ours_in_an_error_of_a_server_is_masked(attacked: Attacked, how: str) -> None:
    result = attacked.call("leak", how=how)
    assert result.status == "failed"
    assert "401: the key [redacted] was refused" in result.content
    assert SECRET not in repr(result)


class Streams(BaseHTTPRequestHandler):
    """Answers with events, each request on a stream of its own; a call gets as many megabytes as it asks for."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, params = request["method"], request.get("params") or {}
        if "id" not in request:
            self.answer(202, b"")
        elif method == "initialize":
            self.event(request, initialized("streams"))
        elif method == "tools/list":
            self.event(request, {"tools": [tool("mega") | {"inputSchema": {"type": "object"}}]})
        elif method == "tools/call":
            self.event(request, said("m" * 1_000_000 * params["arguments"]["size"]))
        else:
            self.answer(404, b"")

    def do_GET(self) -> None:
        self.answer(405, b"")

    def do_DELETE(self) -> None:
        self.answer(405, b"")

    def event(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        message = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
        self.answer(200, f"data: {message}\n\n".encode())

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # the client has enough
            self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


def test_an_answer_that_the_client_gives_up_for_its_size_costs_no_other_call() -> None:
    """An event of more than a mebibyte is more than the SDK reads; the connection is not to be given up with it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Streams) as serving:
        Thread(target=serving.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{serving.server_port}/mcp"
        with Servers({"streams": {"url": url, "toolsearch": {"protocol": "legacy"}}}) as servers:
            begun = servers.health()["streams"].since
            search = ToolSearch(servers.catalog, index="keyword", run=servers.run, not_loaded="run")
            call = search.session().handle
            large = call(ToolCall("1", "mega", {"size": 2}))
            assert (large.status, "exceeded the 1048576 byte limit" in large.content) == ("failed", True)
            assert call(ToolCall("2", "mega", {"size": 0})).status == "ok"
            assert servers.health()["streams"].since == begun
        serving.shutdown()


def test_a_server_that_writes_to_stdout_is_named_once_and_masked(caplog: pytest.LogCaptureFixture) -> None:
    noisy = {**entry("raw", noise="text"), "env": {"API_KEY": "Server is running"}}
    with Servers({"noisy": noisy}) as servers:
        assert servers.health()["noisy"].is_ready
    told = [record.getMessage() for record in caplog.records if record.name.startswith(("mcp", "toolsearch.mcp"))]
    assert told == ["server 'noisy' writes what is no message of MCP, such as '[redacted] on stdio'; it is ignored"]


@pytest.mark.parametrize("kind", ["progress", "log", "tools", "resources", "prompts", "unknown", "answers"])
def test_a_flood_delays_no_answer_and_is_told_once(attacked: Attacked, kind: str) -> None:
    before = attacked.changes.copy()
    assert attacked.call("flood", kind=kind).content == f"sent {FLOOD} of {kind}"
    assert attacked.call("answers").status == "ok"
    assert sum((attacked.changes - before).values()) <= 10


def test_a_server_that_asks_on_and_on_is_declined(attacked: Attacked) -> None:
    assert attacked.call("flood", kind="questions").status == "ok"
    answers = Counter(json.loads(attacked.call("answers").content))
    assert answers == {"accept": MOST_QUESTIONS, "decline": FLOOD - MOST_QUESTIONS}
    assert len(attacked.asked) == MOST_QUESTIONS
    assert {each.server for each in attacked.asked} == {"hostile"}


def listed(caplog: pytest.LogCaptureFixture, server: dict[str, Any]) -> tuple[Catalog, dict[str, Any]]:
    """The tools of a server, and the definitions as it sent them."""
    with caplog.at_level(logging.CRITICAL, "mcp"), Servers({"hostile": server}) as servers:
        return servers.catalog, {tool.name: servers.definition(tool) for tool in servers.catalog}


def test_names_and_descriptions_that_confuse_are_cleaned_flagged_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    catalog, sent = listed(caplog, entry("hostile", twins=True))
    flags = {tool.name: tool.flags for tool in catalog if tool.flags}
    assert flags["read_note"] == ("invisible-characters",)
    assert len([tool for tool in catalog if tool.name == "read_note"]) == 1
    pay = catalog["hostile/pay"]
    assert (pay.description, pay.flags, sent["pay"]) == ("Pays.", (), {})  # not the text of the other `pay`
    assert sent["flood"]["description"] == "Reads flood."
    assert catalog.get("hostile/notes%2F..%2F..%2Fetc") is not None
    assert any("characters" in refused.reason for refused in catalog.quarantined)  # the name of 5,000 letters
    names = [shown.name for shown in ToolSearch(catalog, index="keyword").session().tools()]
    assert names.count("search_tools") == 1


def test_a_huge_or_endless_schema_costs_its_own_tool_at_most(caplog: pytest.LogCaptureFixture) -> None:
    catalog, _ = listed(caplog, entry("hostile", huge=12))
    assert catalog.get("hostile/flood") is not None
    assert {refused.name for refused in catalog.quarantined} == {"wide"}
    assert [tool.name for tool in catalog if tool.unchecked] == ["deep"]


def test_a_list_without_an_end_is_read_within_a_bound(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_CHARACTERS", 1_000)
    with Servers({"endless": entry("raw", pages="endless")}) as servers:
        assert 2 <= len(servers.catalog) <= 20
    assert "server 'endless': it has more than" in caplog.text


def test_the_last_words_of_a_server_do_nothing_to_a_terminal() -> None:
    with Servers({"dead": entry("dying", secret="\x1b[2Jred \u202e")}) as servers:
        assert servers.health()["dead"].reason.endswith("\\x1b[2Jred \\u202e)")
