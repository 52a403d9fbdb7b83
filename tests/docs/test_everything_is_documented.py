"""What a user can reach has a place in the docs: public names, indexes, layers, commands and their options."""

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
import typer

import toolsearch
from toolsearch.cli import commands

ROOT = Path(__file__).resolve().parents[2]
PAGES = "\n".join(page.read_text("utf-8") for page in [*ROOT.glob("README.md"), *sorted((ROOT / "docs").rglob("*.md"))])


def is_documented(name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", PAGES) is not None


@pytest.mark.parametrize("name", getattr(toolsearch, "__all__", ()))
def test_every_public_name_is_in_the_docs(name: str) -> None:
    assert is_documented(name), f"no page mentions toolsearch.{name}"


def test_the_public_names_are_listed_and_real() -> None:
    assert toolsearch.__all__, "toolsearch lists no public names"
    assert [name for name in toolsearch.__all__ if not hasattr(toolsearch, name)] == []


def test_a_look_at_the_package_shows_its_public_names_and_its_modules_only() -> None:
    others = [name for name in dir(toolsearch) if name not in toolsearch.__all__ and not name.startswith("__")]
    modules = [f"toolsearch.{name}" for name in others if isinstance(getattr(toolsearch, name), ModuleType)]
    assert [getattr(toolsearch, name).__name__ for name in others] == modules


@pytest.mark.parametrize("folder", ["layers", "wires", "stores", "frameworks"])
def test_every_module_a_user_picks_from_a_folder_is_in_the_docs(folder: str) -> None:
    names = [file.stem for file in (ROOT / "toolsearch" / folder).glob("*.py") if not file.stem.startswith("_")]
    assert [name for name in names if not is_documented(name)] == []


def entry_points(group: str) -> list[metadata.EntryPoint]:
    return [entry for entry in metadata.distribution("toolsearch-kit").entry_points if entry.group == group]


@pytest.mark.parametrize("entry", entry_points("toolsearch.indexes"), ids=lambda entry: entry.name)
def test_every_index_is_in_the_docs(entry: metadata.EntryPoint) -> None:
    kind = entry.load()
    assert is_documented(f'"{entry.name}"'), f'no page shows index="{entry.name}"'
    assert is_documented(kind.__name__), f"no page mentions {kind.__name__}"


@pytest.mark.parametrize("entry", entry_points("toolsearch.encoders"), ids=lambda entry: entry.name)
def test_every_encoder_is_in_the_docs(entry: metadata.EntryPoint) -> None:
    kind = entry.load()
    assert is_documented(f'"{entry.name}"'), f'no page shows encoder="{entry.name}"'
    assert is_documented(kind.__name__), f"no page mentions {kind.__name__}"


def walk(command, path: str) -> Iterator[tuple[str, list[str]]]:
    """Each command below this one, and the long names of its options."""
    options = [
        name
        for parameter in command.params
        if parameter.param_type_name == "option" and not getattr(parameter, "hidden", False)
        for name in [*parameter.opts, *parameter.secondary_opts]
        if name.startswith("--") and name not in ("--help", "--install-completion", "--show-completion")
    ]
    yield path, options
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        child = command.get_command(None, name)
        if not child.hidden:
            yield from walk(child, f"{path} {name}")


def test_every_command_and_option_is_in_the_docs() -> None:
    found = [*walk(typer.main.get_command(commands.app), "toolsearch")]
    assert {path.split()[1] for path, _ in found[1:]} >= {entry.name for entry in entry_points("toolsearch.commands")}
    missing = [path for path, _ in found if not is_documented(path)]
    missing += [f"{path} {option}" for path, options in found for option in options if not is_documented(option)]
    assert missing == []
