"""The clients that `toolsearch connect` knows: where each keeps its servers, under which key, in which form."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from toolsearch import SetupError
from toolsearch.mcp.clients import json_edit, toml_edit

__all__ = ["CLIENTS", "App", "Place", "client_named"]

Variables = Literal["claude", "editor", "shell", "none"]


@dataclass(frozen=True, slots=True)
class Place:
    """A machine: its environment, home folder, platform and working folder. A test makes up its own."""

    environ: Mapping[str, str]
    home: Path
    platform: str
    folder: Path

    @classmethod
    def here(cls) -> Place:
        """This machine. Raises `SetupError` if the user has no home folder."""
        try:
            return cls(os.environ, Path.home(), sys.platform, Path.cwd())
        except RuntimeError:
            raise SetupError("this user has no home folder: name the client's file with --file") from None

    def roaming(self) -> Path:
        """Where Windows keeps the settings of programs."""
        return Path(self.environ.get("APPDATA") or self.home / "AppData" / "Roaming")

    def settings(self) -> Path:
        """Where this platform keeps the settings of programs."""
        if self.platform == "win32":
            return self.roaming()
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.dotted()

    def dotted(self) -> Path:
        """XDG_CONFIG_HOME, or ~/.config."""
        chosen = self.environ.get("XDG_CONFIG_HOME", "")  # by the standard a relative one is ignored
        return Path(chosen) if Path(chosen).is_absolute() else self.home / ".config"


@dataclass(frozen=True, slots=True)
class App:
    """A client.

    `keys` lead to its servers in the file, `variables` says which of them it replaces in texts (`editor`: `${env:X}`
    and `${workspaceFolder}`; `shell`: `$X`; `claude`: `${X}`), `extra` is what its entry for a program needs besides
    command and arguments, `project` is the file in the folder of a project.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    variables: Variables
    form: Literal["json", "toml"] = "json"
    extra: tuple[tuple[str, str], ...] = ()
    project: str | None = None

    def file(self, place: Place) -> Path:
        """The file with the servers of this user."""
        return _FILES[self.name](place)

    def project_file(self, place: Place) -> Path:
        """The file in the working folder. Raises `SetupError` if the client has none."""
        if self.project is None:
            raise SetupError(f"{self.title} has no servers of a project: leave out --project")
        return place.folder / PurePosixPath(self.project)

    def folder_of(self, file: Path, place: Place) -> Path | None:
        """The folder of the project to which a file belongs, None for one of the user."""
        if self.project is None or file == self.file(place) or not file.as_posix().endswith("/" + self.project):
            return None
        return file.parents[len(PurePosixPath(self.project).parts) - 1]

    def entries(self, text: str, what: str) -> dict[str, object]:
        """The servers in the text of a file. Raises `SetupError` if it cannot be read."""
        if self.form == "toml":
            return toml_edit.entries_in(text, self.keys, what)
        return json_edit.entries_in(text, self.keys, what)

    def changed(self, text: str, removed: list[str], added: Mapping[str, object], what: str) -> str:
        """The text with other servers. Raises `SetupError` if they cannot be changed alone."""
        if self.form == "toml":
            return toml_edit.with_entries(text, self.keys, removed, added, what)
        return json_edit.with_entries(text, self.keys, removed, added, what)


CLIENTS: Mapping[str, App] = {
    app.name: app
    for app in (
        App("claude", "Claude Code", ("mcpServers",), "claude", project=".mcp.json"),
        App("claude-desktop", "Claude Desktop", ("mcpServers",), "none"),
        App("cursor", "Cursor", ("mcpServers",), "editor", project=".cursor/mcp.json"),
        App("vscode", "VS Code", ("servers",), "editor", extra=(("type", "stdio"),), project=".vscode/mcp.json"),
        App("codex", "Codex", ("mcp_servers",), "none", form="toml", project=".codex/config.toml"),
        App("gemini", "Gemini CLI", ("mcpServers",), "shell", project=".gemini/settings.json"),
        App("windsurf", "Windsurf", ("mcpServers",), "editor"),
        App("zed", "Zed", ("context_servers",), "none", extra=(("source", "custom"),), project=".zed/settings.json"),
    )
}

_FILES: Mapping[str, Callable[[Place], Path]] = {
    "claude": lambda at: Path(at.environ.get("CLAUDE_CONFIG_DIR") or at.home) / ".claude.json",
    "claude-desktop": lambda at: at.settings() / "Claude" / "claude_desktop_config.json",
    "cursor": lambda at: at.home / ".cursor" / "mcp.json",
    "vscode": lambda at: at.settings() / "Code" / "User" / "mcp.json",
    "codex": lambda at: Path(at.environ.get("CODEX_HOME") or at.home / ".codex") / "config.toml",
    "gemini": lambda at: at.home / ".gemini" / "settings.json",
    "windsurf": lambda at: at.home / ".codeium" / "windsurf" / "mcp_config.json",
    "zed": lambda at: (
        at.roaming() / "Zed" / "settings.json" if at.platform == "win32" else at.dotted() / "zed" / "settings.json"
    ),
}


def client_named(name: str) -> App:
    """The client of a name. Raises `SetupError` listing all names."""
    if name not in CLIENTS:
        raise SetupError(f"there is no client {name!r}; known are: {', '.join(CLIENTS)}. For another one, see --print")
    return CLIENTS[name]
