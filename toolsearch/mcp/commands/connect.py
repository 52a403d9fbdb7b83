"""`toolsearch connect`: a client's servers move behind the gateway, after a preview, with a way back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import MissingExtra, SetupError
from toolsearch.mcp.clients import CLIENTS, App, Changed, Place, Records, client_named, connection, gateway_entry
from toolsearch.mcp.clients.toml_edit import table_lines
from toolsearch.support.private_files import config_folder

__all__ = ["connect"]


def connect(
    client: Annotated[
        str | None, typer.Argument(help=f"The client: {', '.join(CLIENTS)}. Without one, all are listed.")
    ] = None,
    *,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The file that the servers move into.", show_default="mcp.json in your settings"
        ),
    ] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="The client's file, if it is not in its usual place.")
    ] = None,
    project: Annotated[
        bool, typer.Option("--project", help="Move the servers of the project in this folder, into mcp.json here.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Make the change without asking.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put back the client's file as it was before.")] = False,
    keep_changes: Annotated[
        bool,
        typer.Option(
            "--keep-changes", help="With --undo: put back the servers, and leave what else has changed since."
        ),
    ] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Only print the entry of the gateway.")] = False,
) -> None:
    """Move a client's servers into one file of yours, and leave the client one entry: the gateway in front of them.

    The change is shown first, without secrets, and made when you agree. A copy of the client's file is kept.

    The exit code is 1 if you do not agree, and 2 if a file cannot be read or changed safely.
    """
    place = Place.here()
    if client is None:
        _list(place)
        return
    app = client_named(client)
    theirs = Path(file).expanduser().absolute() if file else (app.project_file if project else app.file)(place)
    default = place.folder / "mcp.json" if project else config_folder() / "mcp.json"
    ours = Path(config).expanduser().absolute() if config else default
    if only_print:
        _print_entry(app, ours)
    elif undo:
        _undo(app, theirs, keep_changes=keep_changes)
    elif file is not None and not theirs.exists():
        raise SetupError(f"there is no file {file!r}: name the file that {app.title} has, or leave --file out")
    else:
        _connect(app, theirs, ours, yes=yes)


def _connect(app: App, theirs: Path, ours: Path, *, yes: bool) -> None:
    change = connection(app, theirs, ours, _program(), project=app.folder_of(theirs, Place.here()))
    if not change.is_needed:
        _say(f"{app.title} is connected already: nothing changes in {theirs}")
        for name, why in change.stays.items():
            _say(f"  {name} stays: {why}")
        return
    if find_spec("mcp") is None:  # the entry would start nothing
        raise MissingExtra("the gateway", "mcp", "mcp")
    _show(change.lines())
    _show(_warnings(app, theirs, ours))
    if not yes:
        _ask()
    copy = Records().make(change)
    _say(f"Done. The file as it was is kept in {copy}.")
    _say(f"Start {app.title} again. To go back: {_back(app, theirs)}")


def _warnings(app: App, theirs: Path, ours: Path) -> Iterator[str]:
    """What a person may not expect of the change."""
    if not theirs.exists():
        yield f"There is no file {theirs}, so no server moves, and it is made anew. Is {app.title} installed?"
    yield (
        f"Actions ask you first. If {app.title} shows you no form, they are denied: then leave the question to it by "
        f'"toolsearch": {{"confirm": "auto"}} in {ours}, beside "mcpServers".'
    )


def _ask() -> None:
    try:
        agreed = typer.confirm("Make this change?")
    except typer.Abort:
        raise SetupError("nobody answers here: look at the change above, and say --yes to make it") from None
    if not agreed:
        _say("Nothing was changed.")
        raise typer.Exit(1)


def _back(app: App, theirs: Path) -> str:
    place = Place.here()
    usual = app.file(place) == theirs
    in_project = not usual and app.project is not None and app.project_file(place) == theirs
    where = "" if usual else " --project" if in_project else f" --file {theirs}"
    return f"toolsearch connect {app.name}{where} --undo"


def _undo(app: App, theirs: Path, *, keep_changes: bool) -> None:
    try:
        done = Records().undo(app, theirs, keep_changes=keep_changes)
    except Changed as error:
        _show(error.lines)
        raise
    for line in done:
        _say(line)


def _print_entry(app: App, ours: Path) -> None:
    entry = gateway_entry(app, _program(), ours)
    if app.form == "toml":
        _show(table_lines(app.keys[0], {"toolsearch": entry}))
    else:
        nested: object = {"toolsearch": entry}
        for key in reversed(app.keys):
            nested = {key: nested}
        _show([json.dumps(nested, indent=2, ensure_ascii=False)])


def _list(place: Place) -> None:
    for app in CLIENTS.values():
        file = app.file(place)
        _say(f"{app.name:15} {app.title:15} {file}{'' if file.exists() else '  (not there)'}")


def _program() -> list[str]:
    """The command that starts this very toolsearch: a client that is started from a desktop has another PATH."""
    script = Path(sys.executable).parent / ("toolsearch.exe" if os.name == "nt" else "toolsearch")
    return [str(script)] if script.exists() else [sys.executable, "-m", "toolsearch"]


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        _say(line)


def _say(line: str) -> None:
    Console().print(Text(line), soft_wrap=True)
