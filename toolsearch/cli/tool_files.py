"""The options `--tools` and `--index` of every command: files, folders and standard input, read into one catalog."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from toolsearch import Catalog, SetupError
from toolsearch.catalog.files import add_file, add_sources, decoded, parse_tools, servers_in
from toolsearch.cli.output import warn

__all__ = ["IndexOption", "ToolFiles", "catalog_of", "fill", "names_servers"]

ToolFiles = Annotated[
    list[str],
    typer.Option(
        "--tools",
        metavar="FILE",
        help="A file of tools, JSON or JSON Lines: definitions in any form, the answer to tools/list, or what a server "
        "streamed. A folder of such files, - for standard input, or an mcp.json, whose servers are started and asked. "
        "Repeat it for several.",
    ),
]

IndexOption = Annotated[
    str | None, typer.Option(help="The index to search with.", show_default="the setting index, which is auto")
]


def catalog_of(files: list[str]) -> Catalog:
    """The tools of all files in one catalog. Raises `SetupError` for a file without a usable one."""
    catalog = Catalog()
    fill(catalog, files)
    return catalog


def fill(catalog: Catalog, files: list[str]) -> None:
    """Adds the tools of all files. Raises `SetupError` for a file without a usable one."""
    if files.count("-") > 1:
        raise SetupError("--tools - is there twice, but standard input can be read only once")
    for file in files:
        if not file.strip():
            raise SetupError("--tools names no file: its value is empty")
        if file == "-":
            add_sources(catalog, parse_tools(_standard_input(), "standard input"), "standard input")
        elif names_servers(file):
            _add_servers(catalog, file)
            for server, reason in catalog.missing.items():
                warn(f"the server {server!r} cannot be reached: {reason}")
        else:
            add_file(catalog, file)


def names_servers(file: str) -> bool:
    """Whether a file has the form of `mcp.json`: servers to start, where others have definitions."""
    return bool(servers_in(file))


def _add_servers(catalog: Catalog, file: str) -> None:
    found = entry_points(group="toolsearch.tool_files", name="mcpServers")
    if not found:
        raise SetupError(
            f"the file {file!r} names servers, and nothing is installed that reads it: is toolsearch installed?"
        )
    next(iter(found)).load()(catalog, file)


def _standard_input() -> str:
    if sys.stdin is None:  # the shell has closed it
        raise SetupError("standard input is closed: pass a file, or pipe the tools in")
    if sys.stdin.isatty():
        sys.stderr.write("toolsearch: reading tools from standard input\n")
    return decoded(sys.stdin.buffer.read(), "standard input")
