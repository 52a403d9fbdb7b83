"""The report page in a real browser: it draws, it asks for nothing, it fits a phone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolsearch.cli.commands import app

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
    arguments = "eval savings --sizes 5,20,60 --seeds 1 --conversations 2 --turns 1 --index keyword --out"
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
    assert seen.stdout.count("<circle") >= 6
    assert not re.search(r"CONSOLE.*(?:error|refused|violat)", seen.stderr, re.IGNORECASE)


@pytest.mark.parametrize("width", [1200, 390])
def test_a_screenshot_is_no_blank_sheet(page: Path, tmp_path: Path, width: int) -> None:
    picture = tmp_path / "page.png"
    browse(page, tmp_path / "profile", f"--screenshot={picture}", f"--window-size={width},1400")
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 20_000  # an empty page of this size is a few thousand bytes
