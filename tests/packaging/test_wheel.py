"""The wheel, alone in an environment: what it brings, and that it searches with nothing but pydantic beside it."""

import json
import re
import subprocess
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    "toolsearch": "toolsearch",
    "toolsearch_indexes": "indexes/toolsearch_indexes",
    "toolsearch_evals": "evals/toolsearch_evals",
    "toolsearch_datasets": "datasets/toolsearch_datasets",
}
pytestmark = pytest.mark.slow


def run(python: Path, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program where neither this checkout nor the user's settings can be seen; warnings are errors."""
    command = [python, "-I", "-W", "error", "-c", program]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, encoding="utf-8")


@pytest.fixture(scope="session")
def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize(("package", "folder"), SOURCES.items())
def test_the_wheel_holds_every_file_of_every_package(package: str, folder: str, contents: set[str]) -> None:
    source = ROOT / folder
    files = [file for file in source.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    expected = {f"{package}/{file.relative_to(source).as_posix()}" for file in files}
    assert f"{package}/py.typed" in expected
    assert {name for name in contents if name.startswith(f"{package}/")} == expected


def test_the_wheel_holds_nothing_else(contents: set[str]) -> None:
    tops = {name.partition("/")[0] for name in contents}
    (info,) = tops - set(SOURCES)
    assert info.endswith(".dist-info")
    assert any(name.endswith("licenses/LICENSE") for name in contents)


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_the_distribution_has_a_name_that_is_free_and_extras_of_its_own(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert metadata["Name"] == "toolsearch-kit"
    required = metadata.get_all("Requires-Dist", [])
    assert [line for line in required if re.match(r"tool-?search(?!-kit\b)", line)] == []
    assert {"cli", "vector", "evals", "all"} <= set(metadata.get_all("Provides-Extra", []))


def test_its_addresses_are_real_or_left_out(wheel: Path) -> None:
    urls = [line.partition(", ")[2] for line in metadata_of(wheel).get_all("Project-URL", [])]
    assert [url for url in urls if "example." in url or not url.startswith("https://")] == []


def test_a_bare_install_requires_only_pydantic(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert [line.partition(">")[0] for line in required] == ["pydantic"]


def test_importing_brings_in_nothing_heavy(bare_python: Path, tmp_path: Path) -> None:
    program = """
import sys, json
import toolsearch
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)))
"""
    done = run(bare_python, program, tmp_path)
    assert done.returncode == 0, done.stderr
    allowed = {"toolsearch", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
    brought = {name for name in json.loads(done.stdout) if not name.startswith(("_", "sitecustomize"))}
    assert brought <= allowed


def test_importing_leaves_slow_parts_of_the_standard_library_alone(bare_python: Path, tmp_path: Path) -> None:
    program = """
import sys, json
import pydantic
class One(pydantic.BaseModel): a: int
before = set(sys.modules)
import toolsearch
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    done = run(bare_python, program, tmp_path)
    assert done.returncode == 0, done.stderr
    slow = {"asyncio", "http.client", "sqlite3", "multiprocessing", "ssl", "unittest", "email", "urllib.request"}
    assert not slow & set(json.loads(done.stdout))


SEARCH = """
import sys
from toolsearch import Caller, Catalog, ToolSearch
from toolsearch.wires import openai_chat as wire

def get_weather(city: str) -> str:
    "Forecast the weather of a city."
    return f"sun in {city}"

def ask_user(question: str) -> str:
    "Ask the user a question."
    return question

key = {"name": "rotate_key", "description": "Rotate an API key.", "input_schema": {"type": "object", "properties": {}}}
search = ToolSearch(Catalog([get_weather, ask_user, key]), index=INDEX, pinned=["ask_user"])
assert search.index.name == search.find("key").index_name == NAME
assert search.find("rotate an api key", limit=5)[0].tool.name == "rotate_key"
assert search.find("get_weather")[0].tool.name == "get_weather"
assert not search.find("zzzzqqqq")

session = search.session("conversation-42", caller=Caller(user="ana", roles={"support"}))
assert "ask_user" in session.instructions()
assert "ask_user" in [each["function"]["name"] for each in wire.tools_for(session)]
heavy = {"numpy", "regex", "tiktoken", "typer", "rich", "openai", "anthropic", "toolsearch_evals"} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize(("index", "name"), [(None, "keyword"), ("keyword", "keyword"), ("regex", "regex")])
def test_a_bare_install_searches(index: str | None, name: str, bare_python: Path, tmp_path: Path) -> None:
    done = run(bare_python, SEARCH.replace("INDEX", repr(index)).replace("NAME", repr(name)), tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_command_without_its_extra_says_what_to_install(bare_python: Path, tmp_path: Path) -> None:
    done = run(bare_python, "import sys; sys.argv = ['toolsearch']; from toolsearch.cli import main; main()", tmp_path)
    assert done.returncode != 0
    assert "toolsearch-kit[cli]" in done.stderr
    assert "Traceback" not in done.stderr
