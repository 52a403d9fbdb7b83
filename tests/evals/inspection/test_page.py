"""The page of `toolsearch inspect` in a real browser: it draws, it filters, it asks for nothing, it fits a phone."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from toolsearch.layers import RecordedTurn
from toolsearch_evals.inspection import Trace, Words, inspect_page, inspect_report, read_trace
from toolsearch_evals.inspection.traces import Conversation

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr --v=0
""".split()
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; .ci/run installs it")


def browse(page: Path, profile: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def driven(text: str, folder: Path, driver: str, *flags: str) -> Any:
    """What an expression gives in the page, whose policy is left out so that it may run."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    helper = """
        const all = (selector, within = document) => [...within.querySelectorAll(selector)];
        const open = (selector) => {
            for (const each of all(selector)) {
                each.open = true;
                each.dispatchEvent(new Event("toggle"));
            }
        };
        const set = (label, value) => {
            const place = all(".filters label").find((each) => each.firstChild.textContent === label);
            const of = place.querySelector("input, select");
            of.value = value;
            of.dispatchEvent(new Event("change", { bubbles: true }));
        };
        const told = () => document.querySelector("#timeline-of-all output").textContent;
    """
    script = f"<script>{{ {helper} document.title = JSON.stringify({driver}); }}</script>"
    file = folder / "driven.html"
    file.write_text(text.replace("</body>", f"{script}</body>"), "utf-8")
    seen = browse(file, folder / "profile", "--dump-dom", *flags).stdout
    title, *_ = re.findall(r"<title>(.*?)</title>", seen, re.DOTALL)
    return json.loads(unescape(title))


@pytest.fixture(scope="module")
def page(store: Path) -> str:
    return inspect_page(inspect_report(read_trace([store], Words())))


@in_a_browser
def test_the_page_is_drawn_asks_for_nothing_and_runs_no_script_of_others(page: str, tmp_path: Path) -> None:
    assert set(re.findall(r"""(?:src|href)=["']?(.)""", page.partition("<script")[0])) == {"#"}
    assert "<script>document.title='owned'" not in page
    file = tmp_path / "inspect.html"
    file.write_text(page, "utf-8")
    seen = browse(file, tmp_path / "one", "--dump-dom")
    assert seen.stdout.count('class="talk-of"') == 3
    assert "<title>Inside journals.db" in seen.stdout
    assert not re.search(r"CONSOLE.*(?:error|refused|violat)", seen.stderr, re.IGNORECASE)
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    file.write_text(page.replace("</main>", f"{evil}</main>"), "utf-8")
    assert "<title>owned" not in browse(file, tmp_path / "two", "--dump-dom").stdout


@in_a_browser
def test_J53_a_turn_shows_its_steps_when_it_is_unfolded_and_texts_stay_texts(page: str, tmp_path: Path) -> None:
    driver = """(() => {
        const before = all(".step").length;
        open(".talk-of"); open(".turn"); open(".folded");
        return [before, all(".step").map((step) => step.className), all("#timeline-of-all").map((e) => e.innerText)[0],
                all("main b b, main img, main script").length];
    })()"""
    before, kinds, text, tags = driven(page, tmp_path, driver)
    assert before == 0
    assert kinds.count("step of-call is-bad") == 2
    kinds = [name.split()[1].removeprefix("of-") for name in kinds]
    assert [kinds.count(kind) for kind in ("user", "round", "search", "call", "approval", "end")] == [
        4, 10, 3, 4, 2, 4,
    ]  # fmt: skip
    assert tags == 0
    for shown in (
        "<b>Hello</b>", "“find invoice”", "found", "none", "1.00", "called then", "declined", "approved",
        "there is none", "1,408 cached", "The cache lost 1,792 tokens ($0.0004).", "It found nothing", "gpt-5-mini",
    ):  # fmt: skip
        assert shown in text, shown


@in_a_browser
def test_turns_are_filtered_by_conversation_tool_status_and_text(page: str, tmp_path: Path) -> None:
    driver = """(() => {
        const found = [];
        const asked = [
            ["conversation", "desk-2"], ["tool", "delete_invoice"], ["status", "call: denied"],
            ["status", "a query found nothing"], ["status", "the cache lost tokens"],
            ["text", "hello"], ["text", "PAINT fence"], ["text", "no such words"],
        ];
        for (const [label, value] of asked) {
            set(label, value);
            found.push([told(), all(".talk-of > summary > b").map((each) => each.textContent)]);
            set(label, "");
        }
        return [found, told(), all(".talk-of").length];
    })()"""
    found, told, whole = driven(page, tmp_path, driver)
    assert found == [
        ["1 of 4 turns in 1 of 3 conversations", ["desk-2"]],
        ["2 of 4 turns in 1 of 3 conversations", ["desk-1"]],
        ["1 of 4 turns in 1 of 3 conversations", ["desk-2"]],
        ["2 of 4 turns in 1 of 3 conversations", ["desk-1"]],
        ["2 of 4 turns in 1 of 3 conversations", ["desk-1"]],
        ["1 of 4 turns in 1 of 3 conversations", ["desk-3"]],
        ["2 of 4 turns in 1 of 3 conversations", ["desk-1"]],
        ["0 of 4 turns in 0 of 3 conversations", []],
    ]
    assert (told, whole) == ("", 3)


@in_a_browser
def test_a_phone_need_not_be_pushed_sideways_even_with_long_names(store: Path, tmp_path: Path) -> None:
    trace = read_trace([store], Words())
    turns = [*trace.conversations[0].turns]
    long = "x" * 300
    steps = [{"kind": "call", "tool": long, "name": long, "arguments": long, "answer": long},
             {"kind": "search", "queries": [long], "loaded": [long], "named": [long], "confidence": {long: 0.5}},
             {"kind": "approval", "of": long, "question": long, "decision": "waits"}]  # fmt: skip
    trace.conversations = [Conversation(long, long, "journal", [{**turns[0], "said": long, "steps": steps}], ())]
    driver = '(open(".talk-of"), open(".turn"), [document.documentElement.scrollWidth, innerWidth])'
    wide, inner = driven(inspect_page(inspect_report(trace)), tmp_path, driver, "--window-size=500,900")
    assert wide <= inner


def many(turns: int) -> Trace:
    """A trace of one conversation with so many turns, and of as many conversations with one."""
    steps = [
        {"kind": "user", "text": "hello"},
        *[{"kind": "call", "tool": f"t/{at}", "status": "ok"} for at in range(4)],
    ]
    made = [{"turn": at + 1, "said": f"turn {at}", "ended": "answered", "steps": steps} for at in range(turns)]
    recorded = [RecordedTurn("one", at + 1) for at in range(3)]
    each = [Conversation(f"c{at}", "f", "journal", made[:1], ()) for at in range(turns)]
    return Trace("many", [Conversation("one", "f", "journal", made, recorded), *each])


@in_a_browser
def test_ten_thousand_turns_are_drawn_piece_by_piece(tmp_path: Path) -> None:
    driver = """(() => {
        const nodes = () => all("#timeline-of-all *").length;
        const before = [nodes(), all(".talk-of").length];
        open(".talk-of");
        const turns = all(".turn").length;
        const more = all(".turns .more").map((each) => each.textContent)[0];
        all(".turns .more")[0].click();
        set("text", "hello");
        return [...before, turns, more, told(), nodes()];
    })()"""
    nodes, groups, turns, more, told, after = driven(inspect_page(inspect_report(many(5_000))), tmp_path, driver)
    assert groups == 30
    assert nodes < 2_000
    assert turns == 40 + 29
    assert more == "Show 40 more of 4,960"
    assert told == ""  # every turn has that word
    assert after < 2_000


def test_steps_that_have_no_room_are_left_out_of_the_page_and_it_says_so() -> None:
    report = inspect_report(many(200))
    whole, cut = inspect_page(report), inspect_page(report, most=20_000)
    assert len(cut) < len(whole)
    assert cut.count('"steps":[]') == 200 + 200 - 20_000 // len(
        json.dumps(report.data["conversations"][1], ensure_ascii=False)
    )


def test_a_text_cannot_leave_the_data_of_the_page() -> None:
    evil = "</script><script>alert(1)</script><!-- <script>\u2028"
    trace = many(1)
    trace.conversations[0].turns[0]["said"] = evil
    page = inspect_page(inspect_report(trace))
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert "<" not in data
    assert json.loads(data)["conversations"][0]["turns"][0]["said"] == evil
