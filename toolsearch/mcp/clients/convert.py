"""A client's entry for a server as an entry of ours: the same server, in one form whatever the client."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolsearch.mcp.clients.table import App

__all__ = ["Converted", "converted", "is_gateway"]

_BRACED = re.compile(r"\$\{([^}]*)\}")
_BARE = re.compile(r"\$(?!\{)([A-Za-z_]\w*)")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_SECONDS = 1_000  # from here on our own files take a number for milliseconds


@dataclass(frozen=True, slots=True)
class Converted:
    """An entry of ours, None if the server has to stay where it is, and why; `notes` are for the person who asks."""

    entry: dict[str, object] | None
    notes: tuple[str, ...] = ()

    def switched_off(self) -> Converted:
        """The same server, which is not started."""
        return self if self.entry is None else Converted({**self.entry, "disabled": True}, self.notes)


class _Stays(Exception):
    """The server cannot be moved, and why."""


@dataclass(slots=True)
class _Work:
    """One entry on its way."""

    app: App
    project: Path | None
    windows: bool
    inputs: Mapping[str, str]
    notes: list[str] = field(default_factory=list)

    def text(self, text: str) -> str:
        """The text with variables in our form."""
        if self.app.variables == "shell":
            text = _BARE.sub(lambda match: "${" + match[1] + "}", text)
        if self.app.variables == "none":
            if "${" in text:
                raise _Stays("it has a '${', which would be a variable in our file")
            return text
        return _BRACED.sub(self._variable, text)

    def _variable(self, match: re.Match[str]) -> str:
        name = match[1]
        if self.app.variables != "editor":
            return match[0]
        if name.startswith("env:") and _NAME.match(name[4:]):
            return "${" + name[4:] + "}"
        if name == "workspaceFolder":
            return "${ROOT}" if self.project is None else str(self.project)
        if name == "userHome":
            return "${USERPROFILE}" if self.windows else "${HOME}"
        if name in ("pathSeparator", "/"):
            return "\\" if self.windows else "/"
        if name.startswith("input:"):
            variable = re.sub(r"\W+", "_", name[6:]).upper()
            meaning = self.inputs.get(name[6:], "")
            self.notes.append(
                f"VS Code asks for {name[6:]!r}{f' ({meaning})' if meaning else ''}: "
                f"set the environment variable {variable} instead"
            )
            return "${" + variable + "}"
        raise _Stays(f"the variable {match[0]!r} is known to the client alone")

    def everywhere(self, value: object) -> object:
        """The value with the variables of all its texts in our form."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.everywhere(each) for each in value]
        if isinstance(value, dict):
            return {key: self.everywhere(each) for key, each in value.items()}
        return value


def converted(
    app: App, entry: object, *, project: Path | None = None, inputs: Mapping[str, str] | None = None, platform: str = ""
) -> Converted:
    """The entry in our form. `project` is the folder that relative paths start from, `inputs` what VS Code asks for."""
    work = _Work(app, project, (platform or os.name) in ("win32", "nt"), inputs or {})
    try:
        if not isinstance(entry, dict):
            raise _Stays("its entry is no object")
        if entry.get("envFile"):
            raise _Stays("it reads variables from an 'envFile', which toolsearch does not")
        value = _FORMS.get(app.name, _same)(dict(entry), work)
        if not isinstance(value.get("command"), str) and not isinstance(value.get("url"), str):
            raise _Stays("the client finds its program by itself: the entry has neither a command nor an address")
        moved = {key: work.everywhere(each) for key, each in value.items()}
        if project is not None and "command" in moved:
            moved["cwd"] = str(project / str(moved.get("cwd") or ""))
        return Converted(moved, tuple(dict.fromkeys(work.notes)))
    except _Stays as error:
        return Converted(None, (str(error),))


def is_gateway(entry: object) -> bool:
    """Whether an entry starts this program's own gateway."""
    if not isinstance(entry, dict):
        return False
    args = entry.get("args")
    words = [entry.get("command"), *(args if isinstance(args, list) else [])]
    names = [Path(str(word).replace("\\", "/")).name.removesuffix(".exe") for word in words]
    return "toolsearch" in names and "serve" in names[names.index("toolsearch") :]


def _same(entry: dict[str, object], work: _Work) -> dict[str, object]:
    return entry


def _cursor(entry: dict[str, object], work: _Work) -> dict[str, object]:
    auth = entry.pop("auth", None)
    if isinstance(auth, dict) and auth.get("CLIENT_ID"):
        names = {"CLIENT_ID": "clientId", "CLIENT_SECRET": "clientSecret", "scopes": "scopes"}
        entry["oauth"] = {ours: auth[theirs] for theirs, ours in names.items() if auth.get(theirs)}
    return entry


def _windsurf(entry: dict[str, object], work: _Work) -> dict[str, object]:
    if "serverUrl" in entry:
        entry["url"] = entry.pop("serverUrl")
    return _limited(entry, entry.pop("enabledTools", None), entry.pop("disabledTools", None), work)


def _gemini(entry: dict[str, object], work: _Work) -> dict[str, object]:
    if "httpUrl" in entry:
        entry["url"] = entry.pop("httpUrl")
        entry["type"] = "http"
    elif "url" in entry:
        entry.setdefault("type", "sse")
    return _limited(entry, entry.pop("includeTools", None), entry.pop("excludeTools", None), work)


def _codex(entry: dict[str, object], work: _Work) -> dict[str, object]:
    entry["env"] = _table(entry.get("env"))
    entry["headers"] = _table(entry.pop("http_headers", None))
    entry = {key: work.everywhere(value) for key, value in entry.items()}
    work.app = _OURS  # what follows has variables in our form
    env, headers = _table(entry.pop("env")), _table(entry.pop("headers"))
    for name, variable in _table(entry.pop("env_http_headers", None)).items():
        headers[name] = "${" + str(variable) + "}"
    if token := entry.pop("bearer_token_env_var", None):
        headers["Authorization"] = "Bearer ${" + str(token) + "}"
    variables = entry.pop("env_vars", None)
    for each in variables if isinstance(variables, list) else []:
        forwarded = str(each.get("name") if isinstance(each, dict) else each)
        env.setdefault(forwarded, "${" + forwarded + "}")
    seconds = entry.pop("tool_timeout_sec", None)
    if isinstance(seconds, int | float) and seconds > 0:
        entry["timeout"] = seconds if seconds < _SECONDS else seconds * 1_000
    if entry.pop("enabled", True) is False:
        entry["disabled"] = True
    entry |= {key: table for key, table in (("env", env), ("headers", headers)) if table}
    return _limited(entry, entry.pop("enabled_tools", None), entry.pop("disabled_tools", None), work)


def _zed(entry: dict[str, object], work: _Work) -> dict[str, object]:
    if entry.pop("source", "custom") != "custom":
        raise _Stays("it belongs to an extension of Zed")
    command = entry.get("command")
    if isinstance(command, dict):  # as older versions wrote it
        entry["command"] = command.get("path")
        entry |= {key: command[key] for key in ("args", "env") if command.get(key)}
    if entry.pop("enabled", True) is False:
        entry["disabled"] = True
    return entry


def _limited(entry: dict[str, object], only: object, never: object, work: _Work) -> dict[str, object]:
    """The tools that may be called, as patterns of ours: nothing becomes callable by being moved."""
    options: dict[str, object] = {}
    if isinstance(only, list) and only:
        options |= {"default": "deny", "allow": only}
        work.notes.append(f"only {', '.join(map(str, only))} can be called, as before")
    if isinstance(never, list) and never:
        options["deny"] = never
    if options:
        entry["toolsearch"] = {**options, **_table(entry.get("toolsearch"))}
    return entry


def _table(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


_OURS = App("", "", (), "claude")
_Form = Callable[[dict[str, object], _Work], dict[str, object]]
_FORMS: Mapping[str, _Form] = {
    "cursor": _cursor,
    "windsurf": _windsurf,
    "gemini": _gemini,
    "codex": _codex,
    "zed": _zed,
}
