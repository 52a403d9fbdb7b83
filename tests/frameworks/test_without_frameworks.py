"""An adapter imports its framework, and nothing else does; without it, the error has the install line."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from toolsearch import MissingExtra

FOLDER = Path(__file__).resolve().parents[2] / "toolsearch" / "frameworks"
SHARED = {"__init__", "running", "sources"}
ADAPTERS = {  # the package that each needs, and its extra
    "fastmcp": ("fastmcp", "fastmcp"),
    "google_adk": ("google.adk", "google-adk"),
    "langchain": ("langchain", "langchain"),
    "langgraph": ("langgraph", "langchain"),
    "llama_index": ("llama_index.core", "llama-index"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
}


def test_no_adapter_is_missed() -> None:
    names = {file.stem for file in FOLDER.glob("*.py") if not file.stem.startswith("_")}
    assert names - SHARED <= set(ADAPTERS)


@pytest.mark.parametrize("name", ADAPTERS)
def test_without_its_framework_the_error_has_the_install_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, extra = ADAPTERS[name]
    if not (FOLDER / f"{name}.py").exists():
        pytest.skip(f"there is no adapter {name!r}")
    for held in [each for each in sys.modules if each == package or each.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, held, None)
    monkeypatch.setitem(sys.modules, package, None)
    for ours in [each for each in sys.modules if each.startswith("toolsearch.frameworks.")]:
        monkeypatch.delitem(sys.modules, ours)
    with pytest.raises(MissingExtra, match=rf"pip install 'toolsearch-kit\[{extra}\]'"):
        import_module(f"toolsearch.frameworks.{name}")


def test_the_package_itself_imports_no_framework() -> None:
    code = (
        "import sys, toolsearch, toolsearch.frameworks\n"
        f"print([each for each in {[package for package, _ in ADAPTERS.values()]} if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
