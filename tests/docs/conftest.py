"""The pages a reader sees: README.md and everything in docs/."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pytest_generate_tests(metafunc):
    """Run a test that takes `page` once for each page."""
    if "page" in metafunc.fixturenames:
        pages = [*ROOT.glob("README.md"), *sorted((ROOT / "docs").rglob("*.md"))]
        metafunc.parametrize("page", pages, ids=[page.relative_to(ROOT).as_posix() for page in pages])
