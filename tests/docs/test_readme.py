"""README.md as a newcomer meets it: each block alone, in an environment that holds nothing but a bare install."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PYTHON = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL)
BLOCKS = list(PYTHON.finditer(README))
OFFLINE = [block for block in BLOCKS if "openai import" not in block["code"]]


def said_before(block: re.Match[str]) -> str:
    """The section's text up to the block, without comments."""
    return re.sub(r"<!--.*?-->", "", README[: block.start()].rpartition("\n## ")[2], flags=re.DOTALL)


def test_it_opens_with_one_sentence_then_installs_then_shows_code_without_a_key() -> None:
    title, first, *_ = README.split("\n\n")
    assert title == "# toolsearch"
    assert len(re.findall(r"\.(?:\s|$)", first)) == 1, "the first paragraph is one sentence"
    assert README.index("pip install") < BLOCKS[0].start() < README.index("](docs/images/savings.svg)")
    assert BLOCKS[0] in OFFLINE


@pytest.mark.slow
@pytest.mark.parametrize("block", OFFLINE, ids=lambda block: f"line{README.count(chr(10), 0, block.start()) + 1}")
def test_a_block_runs_alone_in_a_fresh_bare_install(block: re.Match[str], bare_python: Path, tmp_path: Path) -> None:
    file = tmp_path / "block.py"
    file.write_text(block["code"], "utf-8")
    command = [bare_python, "-I", "-W", "error", str(file)]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == block["output"]


def test_a_block_that_needs_more_says_so() -> None:
    for block in BLOCKS:
        if block not in OFFLINE:
            told = said_before(block)
            assert "`pip install openai`" in told
            assert "`OPENAI_API_KEY`" in told


def test_install_lines_name_our_distribution(page: Path) -> None:
    """On the package index `tool-search` is somebody else's, and `toolsearch` would be refused as too like it."""
    text = page.read_text("utf-8")
    assert re.findall(r"toolsearch\[\w[^\]]*\]|pip install [\"']?toolsearch(?!-kit)", text) == []


@pytest.mark.slow
def test_the_block_for_openai_runs_alone_with_a_server_that_answers(tmp_path: Path) -> None:
    (block,) = [each for each in BLOCKS if each not in OFFLINE]
    before, after = README[: block.start()], README[block.end() :]
    server, end = before.rpartition("<!-- setup\n")[2], after.partition("<!-- setup\n")[2]
    file = tmp_path / "block.py"
    file.write_text(server.partition("-->")[0] + block["code"] + end.partition("-->")[0], "utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, check=False, capture_output=True, encoding="utf-8", timeout=120
    )
    assert (done.returncode, done.stdout) == (0, block["output"]), done.stderr


def test_every_local_link_leads_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.slow
def test_the_picture_shows_what_the_demo_measures_now() -> None:
    spec = importlib.util.spec_from_file_location("refresh_picture", ROOT / "tests" / "refresh_picture.py")
    assert spec is not None
    assert spec.loader is not None
    refresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(refresh)
    chart = refresh.savings_chart()
    assert refresh.PICTURE.read_text("utf-8") == refresh.picture(chart), "run: python tests/refresh_picture.py"
    sent, searched = (dict(line.points) for line in chart.lines)
    told = f"from {sent[5]:,.0f} at 5 tools to {sent[200]:,.0f} at 200; with search, from {searched[5]:,.0f} to"
    assert f"{told} {searched[200]:,.0f}" in README.replace("\n", " ")
