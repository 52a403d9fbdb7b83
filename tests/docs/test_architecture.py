"""ARCHITECTURE.md names files, classes and functions: they exist, and each walk has ten steps."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
SOURCES = [*(ROOT / "toolsearch").rglob("*.py"), *(ROOT / "indexes").rglob("*.py"), *(ROOT / "evals").rglob("*.py")]
FILES = sorted(set(re.findall(r"`([\w/]+\.py)(?::[\w.]+)?`", PAGE)))
NAMED = sorted(set(re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)))
METHODS = sorted(set(re.findall(r"`([A-Z]\w+)\.(\w+)`", PAGE)))


def file_of(name: str) -> Path:
    """A file is named from the root, or from `toolsearch/`."""
    return next(path for path in (ROOT / name, ROOT / "toolsearch" / name) if path.exists())


def names_in(file: Path) -> set[str]:
    """The classes and functions of a module, methods and properties as `Class.name`."""
    found = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
            source = ast.unparse(node)
            found |= {f"{node.name}.{name}" for name in re.findall(r"self\.(\w+)(?::| =)", source)}
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_file_on_the_page_exists(name: str) -> None:
    assert file_of(name).is_file()


@pytest.mark.parametrize(("name", "member"), NAMED)
def test_a_name_on_the_page_is_in_its_file(name: str, member: str) -> None:
    assert member in names_in(file_of(name)), f"{name} has no {member}"


@pytest.mark.parametrize(("owner", "member"), METHODS)
def test_a_method_on_the_page_is_one_of_its_class(owner: str, member: str) -> None:
    assert any(f"{owner}.{member}" in names_in(file) for file in SOURCES)


def test_every_package_is_on_the_page() -> None:
    packages = [init.parent.relative_to(ROOT).as_posix() for init in (ROOT / "toolsearch").glob("*/__init__.py")]
    assert [package for package in packages if f"`{package}/`" not in PAGE] == []


@pytest.mark.parametrize("walk", re.findall(r"^## (A .+)$", PAGE, re.MULTILINE))
def test_a_walk_has_ten_steps(walk: str) -> None:
    text = PAGE.partition(f"## {walk}\n")[2].partition("\n## ")[0]
    assert re.findall(r"^(\d+)\. ", text, re.MULTILINE) == [str(n) for n in range(1, 11)]
