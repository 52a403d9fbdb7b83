"""The report page in a real browser: it draws, it asks for nothing, it fits a phone, and only its own script runs."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolsearch.cli.commands import app
from toolsearch_evals.reports.forms import FORMS
from toolsearch_evals.reports.report import Column, Detail, Details, Report, ReportTable, Said

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr --v=0
""".split()

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; .ci/run installs it")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small savings report."""
    folder = tmp_path_factory.mktemp("report")
    arguments = "eval savings --sizes 5,10,20,60 --seeds 1 --conversations 2 --turns 1 --index keyword --mode append"
    arguments += " --wire openai_chat --wire anthropic --cache cold --out"
    done = CliRunner().invoke(app, [*arguments.split(), str(folder)])
    assert done.exit_code == 0, done.output
    return folder / "report.html"


def browse(page: Path, profile: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_the_page_is_drawn_and_logs_no_error(page: Path, tmp_path: Path) -> None:
    seen = browse(page, tmp_path, "--dump-dom")
    assert "<svg" in seen.stdout
    assert seen.stdout.count('class="dot') >= 6
    assert not re.search(r"CONSOLE.*(?:error|refused|violat)", seen.stderr, re.IGNORECASE)


@pytest.mark.parametrize("width", [1200, 390])
def test_a_screenshot_is_no_blank_sheet(page: Path, tmp_path: Path, width: int) -> None:
    picture = tmp_path / "page.png"
    browse(page, tmp_path / "profile", f"--screenshot={picture}", f"--window-size={width},1400")
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 20_000  # an empty page of this size is a few thousand bytes


def test_a_phone_need_not_be_pushed_sideways(page: Path, tmp_path: Path) -> None:
    wide = driven(page, tmp_path, "[document.documentElement.scrollWidth, innerWidth]", "--window-size=500,900")
    assert wide[0] <= wide[1]


def test_one_wire_and_one_scale_are_shown_at_a_time_and_all_without_a_script(page: Path, tmp_path: Path) -> None:
    driver = """(() => {
        const seen = () => all("figure").filter((f) => !f.hidden).map((f) => f.dataset.c0);
        const plots = () => all("figure:not([hidden]) .plot[data-c1]").filter((plot) => !plot.hidden);
        const scales = () => plots().map((plot) => plot.dataset.c1);
        const first = [seen(), scales()];
        for (const value of ["anthropic", "linear"]) document.querySelector(`input[value=${value}]`).click();
        return [...first, seen(), scales()];
    })()"""
    before, log, after, linear = driven(page, tmp_path, driver)
    assert set(before) == {"openai_chat"}
    assert set(after) == {"anthropic"}
    assert (set(log), set(linear)) == ({"log"}, {"linear"})
    file = tmp_path / "plain.html"
    file.write_text(re.sub(r"<script>.*?</script>", "", page.read_text("utf-8"), flags=re.DOTALL), "utf-8")
    plain = browse(file, tmp_path / "plain", "--dump-dom").stdout
    assert plain.count("<figure") == len(before) + len(after)
    assert re.findall(r"<(\w+)[^>]* hidden", plain) == ["div"]  # the switches, which need the script


def test_the_values_under_the_pointer_are_told_and_the_arrow_keys_reach_them(page: Path, tmp_path: Path) -> None:
    driver = """(() => {
        const plot = document.querySelector(".plot");
        const told = () => plot.querySelector(".readout:not([hidden])")?.textContent ?? "";
        const box = plot.querySelector("svg").getBoundingClientRect();
        plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.right, clientY: box.top + 9 }));
        const pointed = told();
        plot.dispatchEvent(new PointerEvent("pointerleave"));
        const left = told();
        const keys = ["ArrowRight", "ArrowRight", "Escape"].map((key) => {
            plot.dispatchEvent(new KeyboardEvent("keydown", { key }));
            return told();
        });
        for (const value of ["anthropic", "linear"]) document.querySelector(`input[value=${value}]`).click();
        const other = all(".plot").find((each) => each.offsetParent !== null);
        other.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
        return [plot.tabIndex, pointed, left, ...keys, other.querySelector(".readout").textContent];
    })()"""
    index, pointed, left, first, second, ended, hidden_at_first = driven(page, tmp_path, driver)
    assert index == 0
    assert pointed.startswith("60 tools")
    assert " %" in pointed
    assert first.startswith("5 tools")
    assert second.startswith("10 tools")
    assert (left, ended) == ("", "")
    assert re.fullmatch(r"60 tools[^%]+ %( \(.+\))?", hidden_at_first)


def test_a_table_can_be_filtered_searched_and_sorted(page: Path, tmp_path: Path) -> None:
    driver = """(() => {
        const table = all(".of-report")[0];
        const rows = () => all("tbody tr", table).filter((r) => !r.hidden).map((r) => r.cells[0].textContent);
        const whole = rows().length;
        const [select] = all("select", table.previousElementSibling);
        select.value = "1";
        select.dispatchEvent(new Event("input", { bubbles: true }));
        const left = rows();
        const told = table.previousElementSibling.querySelector("output").textContent;
        const heads = all("th button", table);
        const at = heads.findIndex((head) => head.textContent === "price met, all sent");
        const order = () => all("tbody tr", table).filter((r) => !r.hidden).map((r) => r.cells[at].textContent);
        heads[at].click();
        const up = order();
        heads[at].click();
        return [whole, left, told, up, order(), heads[at].parentElement.getAttribute("aria-sort")];
    })()"""
    whole, left, told, up, down, sort = driven(page, tmp_path, driver)
    assert whole == 8
    assert left == ["anthropic"] * 4
    assert told == "4 of 8 rows"
    numbers = [int(cell.replace(",", "")) for cell in up]
    assert numbers == sorted(numbers)
    assert down == up[::-1]
    assert sort == "descending"


EVIL = "</script></style></pre><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def test_hostile_texts_stay_texts_and_a_script_of_others_does_not_run(page: Path, tmp_path: Path) -> None:
    cases = Details(EVIL, (Detail(EVIL, ((EVIL, EVIL),), (Said(EVIL, EVIL),)),), EVIL)
    rows = [{"a": f"{EVIL}{at % 3}", "b": at} for at in range(20)]
    table = ReportTable(EVIL, (Column("a", EVIL), Column("b", "b", "count")), rows, EVIL)
    file = tmp_path / "evil.html"
    file.write_text(FORMS["html"](Report("k", EVIL, (EVIL,), {}, (table,), (), (), cases=(cases,))), "utf-8")
    seen = browse(file, tmp_path / "one", "--dump-dom").stdout
    assert "<title>owned" not in seen
    assert not re.search("<img", seen)
    assert "<select>" in seen  # its options are the hostile cells
    injected = tmp_path / "injected.html"
    injected.write_text(page.read_text("utf-8").replace("</main>", f"{EVIL}</main>"), "utf-8")
    seen = browse(injected, tmp_path / "two", "--dump-dom").stdout
    assert "document.title='owned'" in seen
    assert "<title>owned" not in seen


def driven(page: Path, folder: Path, driver: str, *flags: str) -> list:
    """What an expression gives in the page, whose policy is left out so that it may run."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    helper = "const all = (selector, within = document) => [...within.querySelectorAll(selector)];"
    script = f"<script>{{ {helper} document.title = JSON.stringify({driver}); }}</script>"
    file = folder / "driven.html"
    file.write_text(text.replace("</body>", f"{script}</body>"), "utf-8")
    seen = browse(file, folder / "driven", "--dump-dom", *flags).stdout
    title, *_ = re.findall(r"<title>(.*?)</title>", seen, re.DOTALL)  # the bars of a chart have titles too
    return json.loads(unescape(title))
