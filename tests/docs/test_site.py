"""The built site: its groups, its API from the code, and what a browser makes of it when opened from the disk."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page.name for page in (ROOT / "docs").glob("*.md"))
API = (ROOT / "docs" / "api.md").read_text("utf-8")
DIRECTIVES = re.findall(r"^::: (\S+)$", API, re.MULTILINE)
PUBLIC = [
    "toolsearch", "toolsearch.wires.openai_chat", "toolsearch.wires.anthropic", "toolsearch.layers",
    "toolsearch.stores", "toolsearch.testing", "toolsearch.events", "toolsearch.protocols",
]  # fmt: skip
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=20000 --dump-dom
""".split()
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; .ci/run installs it")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def answer(site: Path, page: str, profile: Path, script: str, *flags: str) -> object:
    """What a script, run in the page once it is ready, gives to its function `tell`."""
    assert CHROMIUM is not None
    copy = site / f"in-a-browser-{page}"
    program = f"const tell = value => document.body.setAttribute('data-told', JSON.stringify(value));\n{script}"
    text = (site / page).read_text("utf-8")
    copy.write_text(text.replace("</body>", f"<script>{program}</script></body>"), "utf-8")
    try:
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, copy.as_uri()]
        seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    finally:
        copy.unlink()
    told = re.search(r'data-told="([^"]*)"', seen)
    assert told, f"{page}: the script told nothing"
    return json.loads(unescape(told[1]))


def test_the_navigation_has_five_groups_and_every_page_in_one() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    assert re.findall(r"^  - (\w+):$", nav, re.MULTILINE) == ["Start", "Guides", "MCP", "Reference", "Background"]
    assert sorted(re.findall(r"^      - .*: (\S+\.md)$", nav, re.MULTILINE)) == PAGES


def test_llms_txt_has_a_line_for_every_page_and_leads_there(site: Path) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    assert text.startswith("# toolsearch\n\n> ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Start", "Guides", "MCP", "Reference", "Background"]
    entries = re.findall(r"^- \[.+\]\((\S+)\): (.+)$", text, re.MULTILINE)
    assert sorted(url.replace(".html", ".md") for url, _ in entries) == PAGES
    assert [url for url, told in entries if not (site / url).exists() or len(told) < 20 or "](" in told] == []


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_its_signature_in_the_api(module: str, site: Path) -> None:
    html = (site / "api.html").read_text("utf-8")
    names = [f"{module}.{name}" for name in importlib.import_module(module).__all__]
    assert [name for name in names if name not in DIRECTIVES] == []
    assert [name for name in names if f'id="{name}" class="doc doc-heading"' not in html] == []


def test_a_layer_is_shown_as_what_makes_it(site: Path) -> None:
    html = (site / "api.html").read_text("utf-8")
    after = html.partition('id="toolsearch.layers.limits"')[2][:6000]
    shown = re.sub(r"<[^>]+>", "", after.partition("</pre>")[0])
    assert "limits(" in shown
    assert "identical:" in shown


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for file in site.glob("*.html"):
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="?([^" >]+)', html := file.read_text("utf-8"))
        loaded += re.findall(r'<link[^>]* href="?([^" >]+)', re.sub(r'<link rel="?canonical[^>]*>', "", html))
        assert [each for each in loaded if re.match(r"(?:https?:)?//", each)] == [], file.name


SEARCH = """
const query = document.querySelector("[data-md-component=search-query]");
const found = () => [...document.querySelectorAll(".md-search-result__item a")].map(a => a.getAttribute("href"));
document.getElementById("__search").click();
query.value = "quarantined";
const look = setInterval(() => {
  query.dispatchEvent(new Event("keyup", {bubbles: true}));
  query.dispatchEvent(new Event("input", {bubbles: true}));
  if (found().length) { tell(found()); clearInterval(look); }
}, 200);
"""


@in_a_browser
def test_search_works_from_the_disk(site: Path, tmp_path: Path) -> None:
    found = answer(site, "index.html", tmp_path, SEARCH)
    assert isinstance(found, list)
    assert any("five-minutes.html" in str(href) for href in found)


COPY = """
document.execCommand = () => tell([...document.querySelectorAll("textarea")].map(area => area.value).at(-1)) ?? true;
const wait = setInterval(() => {
  const blocks = [...document.querySelectorAll(".language-console")].filter(b => b.innerText.includes("check --tools"));
  const button = blocks[0].querySelector("[data-md-type=copy]");
  if (button) { clearInterval(wait); button.click(); }
}, 200);
"""


@in_a_browser
def test_a_console_block_is_copied_without_prompts_and_output(site: Path, tmp_path: Path) -> None:
    copied = str(answer(site, "five-minutes.html", tmp_path, COPY)).strip().splitlines()
    assert [line for line in copied if line] == [  # an empty line stays where output stood; a shell ignores it
        "toolsearch search api key --tools tools.json --index keyword",
        'toolsearch search "(rotate|replace)_?key" --tools tools.json --index regex --limit 3',
        "toolsearch search api key --tools tools.json --format json",
        "toolsearch check --tools tools.json",
    ]


# A window has a least width, a frame has none; what a page says of itself goes to the page around it.
PHONE = """
const wide = {};
addEventListener("message", event => {
  if (!Array.isArray(event.data)) return;
  wide[event.data[0]] = event.data.slice(1);
  if (Object.keys(wide).length === FILES.length) tell(wide);
});
for (const file of FILES) {
  const frame = document.createElement("iframe");
  frame.width = 390; frame.height = 800; frame.src = file;
  frame.addEventListener("load", () => setTimeout(() => frame.contentWindow.postMessage("measure", "*"), 500));
  document.body.append(frame);
}
"""
MEASURE = """<script>addEventListener("message", event => event.data === "measure" && event.source.postMessage(
[location.pathname.split("/").at(-1), innerWidth, document.documentElement.scrollWidth], "*"))</script>"""


@in_a_browser
def test_every_page_fits_a_phone(site: Path, tmp_path: Path) -> None:
    files = []
    for page in [site / each.replace(".md", ".html") for each in PAGES]:
        inner = page.with_name(f"inner-{page.name}")
        inner.write_text(page.read_text("utf-8").replace("</body>", f"{MEASURE}</body>"), "utf-8")
        files.append(inner.name)
    (site / "phones.html").write_text("<!doctype html><title>phones</title><body></body>", "utf-8")
    wide = answer(site, "phones.html", tmp_path, PHONE.replace("FILES", json.dumps(files)))
    assert wide == {file: [390, 390] for file in files}


SCHEME = """
setTimeout(() => tell([document.body.dataset.mdColorScheme, getComputedStyle(document.body).backgroundColor]), 500);
"""


@in_a_browser
def test_a_page_is_light_or_dark_as_the_reader_prefers(site: Path, tmp_path: Path) -> None:
    light = answer(site, "index.html", tmp_path / "light", SCHEME, "--blink-settings=preferredColorScheme=1")
    dark = answer(site, "index.html", tmp_path / "dark", SCHEME, "--blink-settings=preferredColorScheme=0")
    assert isinstance(light, list)
    assert isinstance(dark, list)
    assert (light[0], dark[0]) == ("default", "slate")
    assert light[1] != dark[1]
