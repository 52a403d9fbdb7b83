"""Who may import whom, and a few other rules of the house that a type checker does not know."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {
    "toolsearch": ROOT / "toolsearch",
    "toolsearch_indexes": ROOT / "indexes" / "toolsearch_indexes",
    "toolsearch_evals": ROOT / "evals" / "toolsearch_evals",
    "toolsearch_datasets": ROOT / "datasets" / "toolsearch_datasets",
}

# Who may import whom. A row names a module, or with `*` all modules of a folder; the right side names what it may
# import of ours, and with each module all that module may import itself. What is not on the right is forbidden, in
# whatever place the import stands; an import for annotations only (`if TYPE_CHECKING:`) is no dependency. A module that
# has no row yet gets one here, or the tests fail.
MAY_IMPORT = {
    # the core, from the ground up
    "toolsearch.errors":        "",
    "toolsearch.options":       "errors",
    "toolsearch.calls":         "errors options",
    "toolsearch.hygiene":       "calls",
    "toolsearch.arguments":     "calls schema",
    "toolsearch.values":        "",
    "toolsearch.schema":        "values hygiene errors",
    "toolsearch.keywords":      "schema options",
    "toolsearch.names":         "",
    "toolsearch.tokens":        "",
    "toolsearch.html":          "",
    "toolsearch.redaction":     "",
    "toolsearch.scope":         "",
    "toolsearch.story":         "events redaction",
    "toolsearch.files":         "errors",
    "toolsearch.confidence":    "errors",
    "toolsearch.settings":      "confidence",
    "toolsearch.functions":     "arguments hygiene",
    "toolsearch.read":          "functions",
    "toolsearch.tools":         "read schema hygiene names",
    "toolsearch.catalog":       "tools html",
    "toolsearch.middleware":    "schema errors threads options",
    "toolsearch.plugins":       "errors",
    "toolsearch.index":         "catalog calls confidence plugins crowding",
    "toolsearch.crowding":      "catalog",
    "toolsearch.search_tool":   "catalog calls settings",
    "toolsearch.found":         "catalog names tokens",
    "toolsearch.trail":         "index",
    "toolsearch.searching":     "search_tool found trail",
    "toolsearch.session":       "searching threads",
    "toolsearch.learned":       "index",
    "toolsearch.queries":       "tools",
    "toolsearch.enrich":        "queries",
    "toolsearch.asking":        "errors",
    "toolsearch.search":        "session learned options",
    "toolsearch.threads":       "",
    "toolsearch.events":        "calls errors",
    "toolsearch.turn":          "events",
    "toolsearch.seams":         "turn",
    "toolsearch.conversation":  "seams session search",
    "toolsearch.wording":       "events",
    "toolsearch.beside":        "seams session middleware threads wording scope",
    "toolsearch.needs":         "beside",
    "toolsearch.resumption":    "conversation wording",
    "toolsearch.loop":          "resumption needs",
    "toolsearch.agent":         "loop threads layers.defaults scope functions options",
    "toolsearch":               "agent search",
    # around the core
    "toolsearch.layers.*":      "seams middleware wording tokens arguments redaction scope story html options keywords",
    "toolsearch.layers.defaults": "toolsearch.layers.*",
    "toolsearch.layers.delegation": "seams middleware wording tools threads options",
    "toolsearch.meta":          "seams middleware tools",
    "toolsearch.stores.*":      "events options",
    "toolsearch.wires.*":       "catalog seams session",
    "toolsearch.mcp.*":         "toolsearch",
    "toolsearch.frameworks.*":  "toolsearch",
    "toolsearch.testing":       "toolsearch",
    "toolsearch.commands":      "toolsearch files enrich asking",
    "toolsearch.cli":           "commands",
    "toolsearch.__main__":      "cli",
    # the other packages
    "toolsearch_indexes.*":     "catalog index toolsearch_indexes.*",
    "toolsearch_evals.*":       "toolsearch.* toolsearch_evals.* toolsearch_datasets.*",
    "toolsearch_datasets.*":    "toolsearch_datasets.*",
}  # fmt: skip

# Folders whose modules may import their siblings. Wires never import each other; nor do layers, stores, frameworks.
SIBLINGS = ("toolsearch.mcp.",)


def modules() -> dict[str, Path]:
    """Every module of ours: its dotted name and its file."""
    found = {}
    for package, folder in SOURCES.items():
        for file in sorted(folder.rglob("*.py")):
            parts = [package, *file.relative_to(folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()
every_module = pytest.mark.parametrize("module", MODULES)


def row_of(module: str) -> str | None:
    """The row of the table that speaks of this module; a folder's own `__init__` belongs to its folder."""
    if module in MAY_IMPORT:
        return module
    while module:
        if f"{module}.*" in MAY_IMPORT:
            return f"{module}.*"
        module = module.rpartition(".")[0]
    return None


def allowed(row: str) -> set[str]:
    """The rows that a row's modules may import: those it names, and with each all that one may import."""
    found: set[str] = set()
    waiting = [row]
    while waiting:
        for name in MAY_IMPORT[waiting.pop()].split():
            full = name if name in MAY_IMPORT or name == "toolsearch.*" else f"toolsearch.{name}"
            if full == "toolsearch.*":
                found |= {each for each in MAY_IMPORT if each.startswith("toolsearch.") or each == "toolsearch"}
            elif full not in found:
                found.add(full)
                waiting.append(full)
    return found


def statements(nodes: list[ast.stmt], *, inside_functions: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements that run: in every branch, but not those for annotations only."""
    for node in nodes:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                yield from statements(node.orelse, inside_functions=inside_functions)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not inside_functions:
                pass
            case _:
                for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                    children = getattr(node, field, [])
                    yield from statements(children, inside_functions=inside_functions)


def imports(file: Path, *, inside_functions: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports; `from a import b` is `a.b` where that is a module of ours."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in statements(tree.body, inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            assert node.level == 0, f"{file.name}:{node.lineno}: write the import in full, not relative"
            parent = node.module or ""
            for alias in node.names:
                full = f"{parent}.{alias.name}"
                yield node.lineno, full if full in MODULES else parent


@every_module
def test_a_module_imports_only_what_the_table_allows(module: str) -> None:
    row = row_of(module)
    assert row is not None, f"{module} has no row: say in MAY_IMPORT what it may import"
    rows = allowed(row)
    for line, name in imports(MODULES[module], inside_functions=True):
        if name.partition(".")[0] not in SOURCES or name == module:
            continue
        folder = row.removesuffix("*")
        if row.endswith("*") and (name == folder.rstrip(".") or (name.startswith(folder) and folder in SIBLINGS)):
            continue
        assert row_of(name) in rows, (
            f"{MODULES[module].relative_to(ROOT)}:{line}: {module} must not import {name}. "
            f"It may import: {', '.join(sorted(rows)) or 'nothing of ours'}"
        )


@pytest.mark.parametrize("module", [module for module in MODULES if module.partition(".")[0] == "toolsearch"])
def test_the_core_needs_only_pydantic_and_the_standard_library_at_import(module: str) -> None:
    if module == "toolsearch.commands":  # imported by `cli.main` alone, which names the extra when it cannot be
        return
    for line, name in imports(MODULES[module], inside_functions=False):
        top = name.partition(".")[0]
        assert top in sys.stdlib_module_names or top in ("pydantic", "pydantic_core", "toolsearch"), (
            f"{MODULES[module].relative_to(ROOT)}:{line}: import {top!r} in the function that needs it"
        )


@every_module
def test_a_module_says_what_it_is(module: str) -> None:
    docstring = ast.get_docstring(ast.parse(MODULES[module].read_text("utf-8")))
    assert docstring, f"{module} does not open with a docstring"
    opening = docstring.partition("\n\n")[0]
    assert opening.endswith((".", ":", "?")), f"{module} should open with one sentence, not {opening!r}"


def test_every_row_of_the_table_has_a_meaning() -> None:
    for row in MAY_IMPORT:
        assert allowed(row) <= {*MAY_IMPORT}, row
    assert [row for row in MAY_IMPORT if "*" not in row and row in allowed(row)] == [], "modules import each other"
    assert "toolsearch.session" not in allowed("toolsearch.index")
    assert "toolsearch.catalog" in allowed("toolsearch.session")
    assert "toolsearch_indexes.*" not in allowed("toolsearch_evals.*")


@pytest.mark.parametrize("folder", ["indexes", "evals", "datasets"])
def test_a_top_level_folder_is_not_itself_a_package(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("package", SOURCES)
def test_every_package_is_marked_as_typed(package: str) -> None:
    assert (SOURCES[package] / "py.typed").exists()


# Written in pieces, so that this file passes its own test.
HOSTS = re.compile("pypi" + r"\.org|pythonhosted" + r"\.org|registry\." + r"npmjs|deb\." + "debian|proxy" + r"\.golang")
HOMES = re.compile("/" + r"(home|Users)/(?!user\b|you\b|me\b)\w|/" + r"(root|work)/|[A-Z]:\\+" + "Users")


def kept_files() -> list[Path]:
    """The text files that are in the repository or would be added to it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file.is_file() and b"\0" not in file.read_bytes()[:8192]]


def test_no_file_names_a_machine() -> None:
    """No path of somebody's machine, no registry host. The tools in data sets may name any path: they are fiction."""
    found = []
    for file in kept_files():
        name = file.relative_to(ROOT).as_posix()
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            fiction = name.startswith("datasets/") and file.suffix in (".jsonl", ".json")
            if str(ROOT) + "/" in line or HOSTS.search(line) or (HOMES.search(line) and not fiction):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)
