"""Who may import whom, and a few other rules of the house that a type checker does not know."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {
    "toolsearch": ROOT / "toolsearch",
    "toolsearch_indexes": ROOT / "indexes" / "toolsearch_indexes",
    "toolsearch_evals": ROOT / "evals" / "toolsearch_evals",
    "toolsearch_datasets": ROOT / "datasets" / "toolsearch_datasets",
}

# Who may import whom, package by package, from the ground up. A row names a package, or a module that lies flat in
# `toolsearch/`; the right side names every package whose modules it may import. What is not on the right is forbidden,
# in whatever place the import stands: in a function, or for annotations only. A package that has no row yet gets one
# here, or the tests fail.
MAY_IMPORT = {
    "errors":        "",
    "tokens":        "",
    "support":       "errors",
    "calls":         "support",
    "schemas":       "support errors",
    "stores":        "support errors",
    "catalog":       "schemas calls tokens support errors",
    "events":        "catalog calls support errors",
    "protocols":     "events catalog calls",
    "settings":      "errors",
    "search":        "settings protocols catalog support errors",
    "session":       "settings search protocols catalog schemas calls tokens support errors",
    "tool_search":   "session settings search protocols catalog calls support errors",
    "layers":        "protocols events catalog schemas calls tokens support errors",
    "builtin_tools": "protocols events catalog calls support errors",
    "wires":         "protocols events catalog schemas calls support errors",
    "loop":          "layers stores tool_search session search protocols events catalog calls support errors",
    "delegation":    "loop protocols events catalog calls support errors",
    "toolsearch":    "loop tool_search session settings search protocols events catalog calls errors",
    "testing":       "toolsearch loop tool_search wires session search protocols events catalog calls support errors",
    "cli":           "toolsearch catalog support",
    "__main__":      "cli",
    "frameworks":    "toolsearch",
    "mcp":           "toolsearch support",
    # the other packages
    "toolsearch_indexes":  "search protocols catalog schemas tokens support errors",
    "toolsearch_evals":    "toolsearch toolsearch_datasets layers wires testing search protocols events catalog "
                           "schemas calls tokens settings cli mcp support errors",
    "toolsearch_datasets": "",
}  # fmt: skip

# What of `toolsearch.mcp` needs no package of MCP at import: the others are imported where they are used.
MCP_WITHOUT_ITS_SDK = (
    "toolsearch.mcp.config",
    "toolsearch.mcp.health",
    "toolsearch.mcp.options",
    "toolsearch.mcp.guards",
    "toolsearch.mcp.clients",
)

# What stands in several of these folders stands alone: none of its modules imports a sibling, but for the one named.
ALONE = {
    "layers": {"_narration", "_recorded", "_defaults", "_shared"},
    "stores": {"entries"},
    "wires": {
        "shared",
        "_reading",
        "_fragments",
        "_arguments",
        "_chat_pieces",
        "_chat_extras",
        "_chat_message",
        "_gemini_pieces",
        "_gemini_parts",
        "_gemini_contents",
        "_ollama_pieces",
        "_ollama_fields",
        "_user_parts",
        "_message_pieces",
        "_response_pieces",
        "_response_items",
        "_message_blocks",
        "_message_cache",
        "_response_input",
        "_response_reasoning",
        "_native",
        "_message_replies",
    },
    "frameworks": {"running", "sources", "_langgraph_pieces"},
}

# The shape of the house, so that it cannot grow back: a room is a package, or a module that lies flat in `toolsearch/`.
MOST_ROOMS, MOST_LEVELS, MOST_EDGES, MOST_FLAT = 27, 13, 120, 11
MOST_LINES, MOST_FUNCTION_LINES, MOST_OF_NINE_IN_TEN = 400, 60, 324


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


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def room_of(module: str) -> str:
    """The package of a module, or the module itself where it lies flat in `toolsearch/`."""
    top, *inner = module.split(".")
    return inner[0] if top == "toolsearch" and inner else top


def statements(nodes: list[ast.stmt], *, inside_functions: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements, in every branch, those for annotations only (`if TYPE_CHECKING:`) among them."""
    for node in nodes:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not inside_functions:
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) if not inside_functions:
                pass
            case _:
                for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                    children = getattr(node, field, [])
                    yield from statements(children, inside_functions=inside_functions)


def imports(file: Path, *, inside_functions: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports; `from a import b` is `a.b` where that is a module of ours.

    Without `inside_functions`, only what an import of the file runs: nothing in functions, nothing for annotations.
    """
    for node in statements(tree_of(file).body, inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            assert node.level == 0, f"{file.name}:{node.lineno}: write the import in full, not relative"
            parent = node.module or ""
            for alias in node.names:
                full = f"{parent}.{alias.name}"
                yield node.lineno, full if full in MODULES else parent


IMPORTS = {
    module: {name for _, name in imports(file, inside_functions=True) if name in MODULES and name != module}
    for module, file in MODULES.items()
}
ROOMS: dict[str, set[str]] = {room_of(module): set() for module in MODULES}
for _module, _names in IMPORTS.items():
    ROOMS[room_of(_module)] |= {room_of(name) for name in _names} - {room_of(_module)}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other."""
    reach: dict[str, set[str]] = {}
    for node, others in graph.items():
        seen, waiting = set[str](), [*others]
        while waiting:
            if (other := waiting.pop()) not in seen:
                seen.add(other)
                waiting += graph[other]
        reach[node] = seen
    return sorted({tuple(sorted(o for o in reach[n] if n in reach[o])) for n in graph if n in reach[n]})  # type: ignore[return-value, arg-type]


def levels(graph: dict[str, set[str]]) -> int:
    """The longest chain of imports, counted in rooms."""
    height: dict[str, int] = {}

    def height_of(room: str) -> int:
        if room not in height:
            height[room] = 1 + max(map(height_of, graph[room]), default=0)
        return height[room]

    return max(map(height_of, graph))


@every_module
def test_a_module_imports_only_what_the_table_allows(module: str) -> None:
    room = room_of(module)
    assert room in MAY_IMPORT, f"{room} has no row: say in MAY_IMPORT what it may import"
    may = {room, *MAY_IMPORT[room].split()}
    for line, name in imports(MODULES[module], inside_functions=True):
        if name.partition(".")[0] in SOURCES and name != module:
            where = f"{MODULES[module].relative_to(ROOT)}:{line}"
            assert room_of(name) in may, f"{where}: {module} must not import {name}. It may import: {', '.join(may)}"
            leaf, sibling = module.rpartition(".")[2], name.rpartition(".")[2]
            alone = room in ALONE and room_of(name) == room and module.count(".") > 1
            free = ALONE.get(room, set())
            assert not alone or leaf in free or sibling in free, f"{where}: {module} must not import its sibling {name}"


def test_the_table_has_a_row_for_every_room_and_no_circle() -> None:
    rows = {row: set(right.split()) for row, right in MAY_IMPORT.items()}
    assert rows.keys() >= ROOMS.keys()
    assert set().union(*rows.values()) <= rows.keys()
    assert circles(rows) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """In functions and for annotations too: what is in a circle can only be understood, or tested, together."""
    assert circles(IMPORTS) == []


def flat_modules() -> list[str]:
    """What lies flat in `toolsearch/`, the package's own `__init__` among it."""
    return [m for m, file in MODULES.items() if m == "toolsearch" or (file.parent.name == "toolsearch" and "." in m)]


def lines_of_modules() -> list[int]:
    return sorted(file.read_text("utf-8").count("\n") for file in MODULES.values())


def test_the_house_keeps_its_shape() -> None:
    assert len(flat_modules()) <= MOST_FLAT, flat_modules()
    assert len(ROOMS) <= MOST_ROOMS, sorted(ROOMS)
    assert levels(ROOMS) <= MOST_LEVELS
    assert sum(map(len, ROOMS.values())) <= MOST_EDGES
    lines = lines_of_modules()
    assert lines[len(lines) * 9 // 10] <= MOST_OF_NINE_IN_TEN


@every_module
def test_a_module_and_its_functions_are_short_enough_to_read(module: str) -> None:
    source = MODULES[module].read_text("utf-8")
    assert source.count("\n") <= MOST_LINES, f"{module} has more than {MOST_LINES} lines: do two things live in it?"
    for node in ast.walk(tree_of(MODULES[module])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            assert lines <= MOST_FUNCTION_LINES, f"{module}:{node.lineno}: {node.name} has {lines} lines"


PACKAGES = [module for module, file in MODULES.items() if file.name == "__init__.py"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_opens_with_a_map_that_names_every_module(package: str) -> None:
    text = ast.get_docstring(tree_of(MODULES[package])) or ""
    inside = {
        name.removeprefix(f"{package}.")
        for name in MODULES
        if name.rpartition(".")[0] == package and not name.endswith("__main__")
    }
    assert [name for name in sorted(inside) if not re.search(rf"(?<!\w){name.lstrip('_')}(?!\w)", text)] == []


@pytest.mark.parametrize("module", [module for module in MODULES if module.partition(".")[0] == "toolsearch"])
def test_the_core_needs_only_pydantic_and_the_standard_library_at_import(module: str) -> None:
    if module in (
        "toolsearch.cli.commands",
        "toolsearch.cli.enrich",
        "toolsearch.cli.installed",
        "toolsearch.cli.learned",
        "toolsearch.cli.model_options",
        "toolsearch.cli.output",
        "toolsearch.cli.tool_files",
    ):  # imported by `cli.main` alone, which names the extra when it cannot be
        return
    if module.startswith("toolsearch.frameworks.") and not module.endswith((".running", ".sources")):
        return  # an adapter, imported by a program that has its framework; without it the error names the extra
    if module.startswith("toolsearch.mcp.") and not module.startswith(MCP_WITHOUT_ITS_SDK):
        return  # imported by functions of `toolsearch.mcp`, which name the extra; the tests of that package see to it
    for line, name in imports(MODULES[module], inside_functions=False):
        top = name.partition(".")[0]
        assert top in sys.stdlib_module_names or top in ("pydantic", "pydantic_core", "toolsearch"), (
            f"{MODULES[module].relative_to(ROOT)}:{line}: import {top!r} in the function that needs it"
        )


@every_module
def test_a_module_says_what_it_is(module: str) -> None:
    docstring = ast.get_docstring(tree_of(MODULES[module]))
    assert docstring, f"{module} does not open with a docstring"
    opening = docstring.partition("\n\n")[0]
    assert opening.endswith((".", ":", "?")), f"{module} should open with one sentence, not {opening!r}"


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


def any_per_thousand_lines() -> float:
    """How often the core says `Any`, per 1,000 lines."""
    texts = [file.read_text("utf-8") for module, file in MODULES.items() if module.partition(".")[0] == "toolsearch"]
    return 1_000 * sum(len(re.findall(r"\bAny\b", text)) for text in texts) / sum(text.count("\n") for text in texts)


def test_the_core_says_Any_only_where_it_must() -> None:
    assert any_per_thousand_lines() <= 25


def test_no_package_beside_the_scripts_has_the_name_of_a_module_of_python() -> None:
    """`python tests/refresh_picture.py` looks into tests/ first."""
    packages = {file.parent.name for file in (ROOT / "tests").glob("*/__init__.py")}
    assert packages & sys.stdlib_module_names == set()


if __name__ == "__main__":  # the figures themselves: python tests/test_house_rules.py
    print(f"rooms {len(ROOMS)}, levels {levels(ROOMS)}, edges {sum(map(len, ROOMS.values()))}", end=", ")
    print(f"circles {len(circles(IMPORTS))} of modules and {len(circles(ROOMS))} of rooms", end=", ")
    print(f"flat in toolsearch/ {len(flat_modules())}")
    print(f"lines of a module: nine in ten have at most {lines_of_modules()[len(MODULES) * 9 // 10]}", end=", ")
    print(f"the longest {lines_of_modules()[-1]}; Any per 1,000 lines of the core {any_per_thousand_lines():.1f}")
