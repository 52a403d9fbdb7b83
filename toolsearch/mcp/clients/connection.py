"""What connecting a client would change: its own file, and the file of servers that the gateway reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolsearch import SetupError
from toolsearch.mcp.clients import json_edit
from toolsearch.mcp.clients.convert import Converted, converted, is_gateway
from toolsearch.mcp.clients.jsonc import parse
from toolsearch.mcp.clients.preview import difference, without_secrets
from toolsearch.mcp.clients.table import App

__all__ = ["Connection", "connection", "gateway_entry", "read_text"]

OURS = ("mcpServers",)
NAME = "toolsearch"  # of the one entry that the client keeps


@dataclass(frozen=True, slots=True)
class Connection:
    """A change that is not yet made. `before` and `after` are the texts of the files, None where there is no file.

    `moved` has the entries of ours by name, for each server the name that it has in the client, `stays` why a server
    stays where it is.
    """

    app: App
    file: Path
    before: str | None
    after: str
    config: Path
    config_before: str | None
    config_after: str
    moved: Mapping[str, str]
    added: Mapping[str, object]
    stays: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def is_needed(self) -> bool:
        return self.before != self.after or (self.config_before or "") != self.config_after

    def lines(self) -> Iterator[str]:
        """The change, for a person: what moves where, what stays and why, and the lines of both files that differ."""
        yield f"{self.app.title}: {self.file}"
        for theirs, ours in self.moved.items():
            other = "" if theirs == ours else f" as {ours!r}: there is another {theirs!r} in it"
            yield f"  {theirs} moves to {self.config}{other}"
        for theirs, why in self.stays.items():
            yield f"  {theirs} stays: {why}"
        for note in self.notes:
            yield f"  note: {note}"
        yield ""
        yield from difference(self.before or "", self.after, self.file.name, self.app.form)
        yield from difference(self.config_before or "", self.config_after, str(self.config), "json")


def gateway_entry(app: App, program: list[str], config: Path, *, rooted: bool = False) -> dict[str, object]:
    """The entry with which the client starts the gateway. `program` is the command that starts `toolsearch`.

    `rooted`: some server works in the folder that is open in the client, so the client has to say which that is.
    """
    command, *arguments = program
    root = ["--root", "${workspaceFolder}"] if rooted and app.variables == "editor" else []
    return {**dict(app.extra), "command": command, "args": [*arguments, "serve", str(config), *root]}


def connection(
    app: App, file: Path, config: Path, program: list[str], *, project: Path | None = None, platform: str = ""
) -> Connection:
    """The change that moves the client's servers into `config`, and leaves the entry of the gateway.

    `project` is the folder that the servers of a project start in; those of a user have none.

    Raises `SetupError` if a file cannot be read or changed safely, or if the client starts the gateway with another
    configuration already.
    """
    if file.resolve() == config.resolve():
        raise SetupError(f"the servers cannot move from {_name(file)} to itself: name another file with --config")
    before, config_before = read_text(file), read_text(config)
    theirs = app.entries(before or "", _name(file))
    ours = json_edit.entries_in(config_before or "", OURS, _name(config))
    gates = [name for name, entry in theirs.items() if is_gateway(entry)]
    for name in gates:
        _require_same(name, theirs[name], config, file)
    settings = _settings(app, before or "", file)
    off = _switched_off(settings, theirs)
    found = {
        name: converted(app, entry, project=project, inputs=_inputs(settings), platform=platform)
        for name, entry in theirs.items()
        if name not in gates
    }
    found = {name: each.switched_off() if name in off else each for name, each in found.items()}
    moved, added, notes = _merged(found, ours, app)
    notes += _named_servers(settings, moved)
    if project is not None and without_secrets(json.dumps(added), "json") != json.dumps(added):
        notes.append(f"{config} has secrets: keep it out of version control")
    stays = {name: each.notes[0] for name, each in found.items() if each.entry is None}
    entry_name = NAME if NAME not in stays else f"{NAME}-gateway"
    rooted = "${ROOT}" in json.dumps(added)
    left = {} if gates else {entry_name: gateway_entry(app, program, config, rooted=rooted)}
    after = before or ""
    if moved or left:
        after = app.changed(after, list(moved), left, _name(file))
    config_after = config_before or ""
    if added or config_before is None:
        config_after = json_edit.with_entries(config_after, OURS, (), added, _name(config))
    return Connection(app, file, before, after, config, config_before, config_after, moved, added, stays, tuple(notes))


def read_text(path: Path) -> str | None:
    """The text of a file, ends of lines as they are; None if there is none. Raises `SetupError`."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise SetupError(f"{_name(path)} is not written in UTF-8. Save it so first") from None
    except OSError as error:
        raise SetupError(f"{_name(path)} cannot be read: {error.strerror}") from None


def _name(path: Path) -> str:
    return f"the file {str(path)!r}"


def _require_same(name: str, entry: object, config: Path, file: Path) -> None:
    args = entry.get("args") if isinstance(entry, dict) else None
    served = [Path(str(each)).expanduser().absolute() for each in args] if isinstance(args, list) else []
    if config not in served:
        raise SetupError(
            f"{_name(file)} starts toolsearch already, as {name!r}, with another configuration than {str(config)!r}: "
            "name that one with --config, or take the entry out"
        )


def _settings(app: App, text: str, file: Path) -> Mapping[str, object]:
    """What else stands in a client's file and concerns its servers: inputs of VS Code, lists of Gemini CLI."""
    if app.name not in ("vscode", "gemini") or not text.strip("\ufeff \t\r\n"):
        return {}
    root = parse(text, _name(file)).value
    return root if isinstance(root, dict) else {}


def _inputs(settings: Mapping[str, object]) -> dict[str, str]:
    """What VS Code asks for, by id."""
    inputs = settings.get("inputs")
    found = [each for each in inputs if isinstance(each, dict)] if isinstance(inputs, list) else []
    return {str(each.get("id")): str(each.get("description", "")) for each in found}


def _lists(settings: Mapping[str, object]) -> tuple[list[object] | None, list[object]]:
    """The only servers that Gemini CLI starts, None for all; and those that it does not start."""
    own = settings.get("mcp")
    own = own if isinstance(own, Mapping) else {}
    allowed = own.get("allowed", settings.get("allowMCPServers"))
    excluded = own.get("excluded", settings.get("excludeMCPServers"))
    return allowed if isinstance(allowed, list) else None, excluded if isinstance(excluded, list) else []


def _switched_off(settings: Mapping[str, object], names: Iterable[str]) -> set[str]:
    """The servers that the client does not start now: moving them does not switch them on."""
    allowed, excluded = _lists(settings)
    return {name for name in names if name in excluded or (allowed is not None and name not in allowed)}


def _named_servers(settings: Mapping[str, object], moved: Mapping[str, str]) -> list[str]:
    allowed, _ = _lists(settings)
    if allowed is None or NAME in allowed or not moved:
        return []
    return [f"the client starts only the servers that 'allowed' names: add {NAME!r} to it"]


def _may_ask_for_a_login(entry: Mapping[str, object]) -> bool:
    headers = entry.get("headers")
    names = [str(name).lower() for name in headers] if isinstance(headers, Mapping) else []
    return bool(entry.get("url")) and "authorization" not in names


def _merged(
    found: Mapping[str, Converted], ours: Mapping[str, object], app: App
) -> tuple[dict[str, str], dict[str, object], list[str]]:
    """Which server gets which name of ours, what is new in ours, and what a person should know."""
    moved: dict[str, str] = {}
    added: dict[str, object] = {}
    notes: list[str] = []
    for theirs, each in found.items():
        if each.entry is None:
            continue
        name, number = theirs, 1
        while {**ours, **added}.get(name, each.entry) != each.entry:
            name = f"{theirs}-{app.name}" if number == 1 else f"{theirs}-{app.name}-{number}"
            number += 1
        moved[theirs] = name
        if name not in ours:
            added[name] = each.entry
        notes += [f"{theirs}: {note}" for note in each.notes]
        if _may_ask_for_a_login(each.entry):
            notes.append(
                f"{theirs}: a login that the client has stays there; if it asks for one, toolsearch login {name}"
            )
    return moved, added, notes
