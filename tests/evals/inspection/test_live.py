"""The search box of `toolsearch inspect --live`: what it answers, to whom, and in a real browser."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evals.inspection.conftest import definitions
from tests.evals.inspection.test_page import CHROMIUM, FLAGS, in_a_browser
from tests.mcp.servers import entry
from toolsearch import Catalog, SetupError
from toolsearch_evals.inspection.box import SearchBox
from toolsearch_evals.inspection.live import MOST_BYTES, LiveBox
from toolsearch_evals.inspection.live_tools import live_tools

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
BROKEN = {"name": "sql", "state": "failed", "reason": f"it ended {EVIL}", "tools": 0}


@pytest.fixture(scope="module")
def live() -> Iterator[LiveBox]:
    evil = {"name": "evil", "description": f"Paints a fence. {EVIL}", "input_schema": {"type": "object"}}
    with LiveBox(SearchBox(Catalog([*definitions(), evil]), ["keyword", "regex"]), lambda: [BROKEN]) as live:
        yield live


def ask(live: LiveBox, path: str = "search", body: bytes | None = None, method: str = "POST", **headers: str) -> Any:
    """Status, headers and body of an answer. Dots in the names of headers stand for hyphens."""
    given = {"Host": live.host, "Content-Type": "application/json"} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    connection = http.client.HTTPConnection(live.host, timeout=10)
    whole = path if path.startswith("/") else f"/{live.token}/{path}"
    connection.request(method, whole, json.dumps({"query": "send invoice"}).encode() if body is None else body, given)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, dict(response.getheaders()), text


def test_J53_a_query_is_answered_by_each_index_with_what_a_model_would_load_and_its_tokens(live: LiveBox) -> None:
    status, _, text = ask(live)
    answer = json.loads(text)
    assert status == 200
    keyword, regex = answer["indexes"]
    assert (keyword["index"], regex["index"]) == ("keyword", "regex")
    best = keyword["hits"][0]
    assert best["id"] == "invoice/send_invoice"
    assert best["confidence"] == 1.0
    assert best["matched"][0]["word"]
    assert keyword["loaded"][0]["id"] == "invoice/send_invoice"
    assert keyword["loaded_tokens"] == sum(tool["tokens"] for tool in keyword["loaded"]) > 20
    assert keyword["answer"].startswith("Loaded ")
    assert keyword["answer_tokens"] > 10
    assert answer["servers"] == [BROKEN]
    nothing = json.loads(ask(live, body=b'{"query": "qqq zzz"}')[2])["indexes"][0]
    assert (nothing["hits"], nothing["loaded"], nothing["verdict"]) == ([], [], "none")


def test_no_session_stays_after_a_query() -> None:
    box = SearchBox(Catalog(definitions()), ["keyword"])
    for _ in range(3):
        box.answer("send invoice")
    assert [search.conversation_ids() for search in box._searches.values()] == [()]


@pytest.mark.parametrize(
    ("path", "headers", "method", "status"),
    [
        ("/", {}, "GET", 404),
        ("/search", {}, "POST", 404),
        ("/wrong-token/search", {}, "POST", 404),
        ("search?x=1", {}, "POST", 404),
        ("search", {"Host": "evil.example"}, "POST", 403),
        ("search", {"Host": "127.0.0.1"}, "POST", 403),
        ("search", {"Origin": "http://evil.example"}, "POST", 403),
        ("search", {"Origin": "null"}, "POST", 403),
        ("", {"Host": "evil.example"}, "GET", 403),
        ("", {"Sec_Fetch_Site": "cross-site"}, "GET", 403),
        ("search", {"Content_Type": "text/plain"}, "POST", 400),
        ("search", {}, "PUT", 501),
        ("", {}, "GET", 200),
    ],
)
def test_only_the_page_with_the_token_is_answered(
    live: LiveBox, path: str, headers: dict[str, str], method: str, status: int
) -> None:
    found, _, text = ask(live, path, method=method, **headers)
    assert found == status
    assert status == 200 or live.token not in text
    if method != "PUT":
        assert ask(live)[0] == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"query": 7}', b'{"other": "x"}', b"[" * 9_000, b"\xff"])
def test_a_body_that_is_no_query_is_refused(live: LiveBox, body: bytes) -> None:
    assert ask(live, body=body)[0] == 400


def test_a_long_body_is_refused_unread_and_a_long_query_is_cut(live: LiveBox) -> None:
    assert ask(live, body=json.dumps({"query": "x" * MOST_BYTES}).encode())[0] == 413
    (first, _) = json.loads(ask(live, body=json.dumps({"query": "send " * 1_000}).encode())[2])["indexes"]
    assert len(first["query"]) <= 2_000


def test_nothing_is_cached_framed_or_told_to_others(live: LiveBox) -> None:
    _, headers, page = ask(live, "", method="GET")
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in page
    assert "connect-src 'self'" in page
    assert live.token not in page


def test_the_box_listens_on_loopback_and_frees_its_port() -> None:
    with LiveBox(SearchBox(Catalog(definitions()), ["keyword"])) as live:
        assert live.host.startswith("127.0.0.1:")
        port = int(live.host.partition(":")[2])
        with pytest.raises(SetupError, match=rf"the port {port} cannot be used: .*; pass another one with --port"):
            LiveBox(live.box, port=port)
        other = live.token
    with LiveBox(live.box, port=port) as again:
        assert again.token != other


def test_an_index_is_named_once() -> None:
    with pytest.raises(SetupError, match="the index 'keyword' is named twice"):
        SearchBox(Catalog(definitions()), ["keyword", "keyword"])


@in_a_browser
def test_J53_the_box_shows_hits_matched_words_and_tokens_in_a_browser(live: LiveBox, tmp_path: Path) -> None:
    """The page is driven by a copy of its own script that types a query: its policy lets nothing else run."""
    typed = '\n  input.value = "paints a fence";\n  search();\n})();'
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", live.page())
    assert page.rstrip().endswith("})();\n</script></body></html>")
    at = page.rindex("})();")
    live.page = lambda: page[:at] + typed.lstrip() + page[at + len("})();") :]  # type: ignore[method-assign]
    try:
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path}", "--virtual-time-budget=5000", "--dump-dom"]
        seen = subprocess.run([*command, live.address], capture_output=True, text=True, timeout=120, check=True)
    finally:
        del live.page
    body = seen.stdout.partition("<body>")[2].partition('<script type="application/json"')[0]
    assert body.count('class="index"') == 2
    for shown in ("would be loaded", "matched ", "A model would load 1 tool: evil (", "sql: failed", "13 tools"):
        assert shown in body, shown
    assert "<title>owned" not in seen.stdout
    assert "<img" not in body
    assert not re.search(r"CONSOLE.*(?:error|refused|violat)", seen.stderr, re.IGNORECASE)


# -- servers -----------------------------------------------------------------------------------------------------------


def test_the_servers_of_an_mcp_json_are_searched_and_a_broken_one_is_named(tmp_path: Path) -> None:
    config, tools = tmp_path / "mcp.json", tmp_path / "tools.json"
    config.write_text(
        json.dumps({"mcpServers": {"shop": entry("plain", tools=3), "gone": {"command": "no-such-command"}}})
    )
    tools.write_text(json.dumps(definitions()), "utf-8")
    with live_tools([str(config), str(tools)]) as (catalog, states):
        assert {each["name"]: each["state"] for each in states()} == {"shop": "ready", "gone": "failed"}
        assert len(catalog) == 3 + len(definitions())
        with LiveBox(SearchBox(catalog, ["keyword"]), states) as live:
            answer = live.answer("reads the calendar")
    assert answer["indexes"][0]["hits"][0]["server"] == "shop"
    config.write_text(json.dumps({"mcpServers": {"gone": {"command": "no-such-command"}}}), "utf-8")
    with pytest.raises(SetupError, match="there is no tool to search: gone: failed"), live_tools([str(config)]):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="a console of Windows sends Ctrl-C in another way")
def test_ctrl_c_ends_the_command(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(definitions()), "utf-8")
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in the background
    code = f"{heard}; import typer; from toolsearch_evals.cli.inspect_command import inspect; typer.run(inspect)"
    command = [sys.executable, "-c", code, "--live", str(tools), "--index", "keyword"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        told, address = process.stdout.readline(), process.stdout.readline().strip()
        assert told.startswith("12 tools by keyword.")
        host, token = re.fullmatch(r"http://(127\.0\.0\.1:\d+)/([\w-]{32})/", address).groups()  # type: ignore[union-attr]
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.request("GET", f"/{token}/")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
