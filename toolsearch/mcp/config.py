"""`mcp.json`, as every client writes it: entries of servers, with variables replaced and secrets known."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

from toolsearch import SetupError
from toolsearch.mcp.options import checked_options, warn_of_misplaced
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted
from toolsearch.support.server_files import SERVER_KEYS, URL_KEYS, is_entry, parsed, servers_of

__all__ = ["Config", "ConfigSource", "ServerEntry", "masked", "read_config"]

ConfigSource: TypeAlias = "str | os.PathLike[str] | Mapping[str, object]"
Transport = Literal["stdio", "http", "sse"]

_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamablehttp": "http", "remote": "http", "sse": "sse",
}  # fmt: skip
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][\w.]*)(?::-([^}]*))?\}")
_FOREIGN = re.compile(r"\$\{(?:input|command|config|secret):[^}]*\}")
_ROOTS, _HOME = ("ROOT", "workspaceFolder"), "userHome"
_PLAIN_HEADERS = frozenset("accept accept-language content-type user-agent".split())
_NO_SECRET = re.compile(r"[./~\\]|https?://[^@]*\Z|[A-Za-z]:[/\\]|[\d.,:-]*\Z|(?:true|false)\Z", re.IGNORECASE)
_IsSecret: TypeAlias = Callable[[str, str], bool]
SECRET_LENGTH = 6  # a shorter value would be found in other words
MILLISECONDS = 1_000  # a timeout of this much or more is in milliseconds, as some clients write it


@dataclass(frozen=True)
class ServerEntry:
    """One server of a configuration. `problem` says why it cannot be started; then the other fields mean nothing.

    `timeout` is how long a call may take, in seconds. `options` is what stands under "toolsearch" in the entry, over
    what stands there at the top of the file. `raw` is the entry as it is written.
    """

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float | None = None
    disabled: bool = False
    options: Mapping[str, object] = field(default_factory=dict)
    raw: Mapping[str, object] = field(default_factory=dict, repr=False)
    root: str | None = None
    problem: str = ""

    @property
    def required(self) -> bool:
        return self.options.get("required") is True

    def texts(self, key: str) -> tuple[str, ...]:
        """An option that is a text or a list of texts."""
        value = self.options.get(key)
        items = [value] if isinstance(value, str) else value
        return tuple(each for each in items if isinstance(each, str)) if isinstance(items, list | tuple) else ()

    def seconds(self, key: str, otherwise: float) -> float:
        """An option that is a number of seconds."""
        value = self.options.get(key, otherwise)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


@dataclass(frozen=True)
class Config:
    """What `read_config` read: the servers by name, the options at the top, and what must be masked everywhere."""

    servers: Mapping[str, ServerEntry]
    options: Mapping[str, object] = field(default_factory=dict)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def masked(self, text: str) -> str:
        """The text without this configuration's secrets, and without what looks like one."""
        return masked(text, self.secrets)

    def without_secrets(self, text: str) -> str:
        """The text without this configuration's secrets, and otherwise as it is."""
        return without(text, self.secrets)


def without(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, and otherwise as it is."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[redacted]")
    return text


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets, and without what looks like one."""
    return redacted(without(text, secrets))


def read_config(
    source: ConfigSource,
    *more: ConfigSource,
    environ: Mapping[str, str] | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Config:
    """The servers in files and mappings; of two with one name, the later one counts.

    A mapping is `{"mcpServers": {name: entry}}` or `{name: entry}`. `${VAR}` and `${VAR:-default}` are taken from
    `environ` (that of this process), `${ROOT}` is `root` (the working folder), and a relative `cwd` starts there.
    An entry that cannot work has a `problem`. Raises `SetupError` for a file that cannot be read or has no servers, and
    for an unknown option of ours.
    """
    servers: dict[str, ServerEntry] = {}
    options: dict[str, object] = {}
    secrets: set[str] = set()
    reader = _Reader(os.environ if environ is None else environ, root, secrets)
    for each in (source, *more):
        entries, top = _sections(each)
        options |= top
        for name, entry in entries.items():
            servers[name] = reader.entry(name, entry, options)
    return Config(servers, options, frozenset(secrets))


def _sections(source: ConfigSource) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """The entries of one source, and its options at the top."""
    if isinstance(source, Mapping):
        whole, where = source, "the configuration"
    elif isinstance(source, str | os.PathLike):
        where = f"the file {str(source)!r}"
        whole = _document(source, where)
    else:
        raise checks.wrong("config", "a path of a file, or a mapping of servers", source)
    top = whole.get("toolsearch")
    options = top if isinstance(top, Mapping) and not is_entry(top) else {}
    if (found := servers_of(whole)) is not None:
        warn_of_misplaced(whole, where)
        return found, checked_options(options if is_entry(top) else top)
    for key in SERVER_KEYS:
        if key in whole and not isinstance(whole[key], Mapping):
            kind = type(whole[key]).__name__
            raise SetupError(f"{where}: {key!r} must be an object of servers by name, not {kind}")
    if not isinstance(source, Mapping):
        raise SetupError(f"{where} names no servers: it needs the key 'mcpServers'")
    entries = {name: entry for name, entry in whole.items() if not (name == "toolsearch" and options)}
    return entries, checked_options(options)


def _document(path: str | os.PathLike[str], where: str) -> JsonObject:
    try:
        whole = parsed(Path(path).expanduser().read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise SetupError(f"there is no file {str(path)!r}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"{where} cannot be read as JSON: {error}") from None
    if not isinstance(whole, dict):
        raise SetupError(f"{where} holds {type(whole).__name__}, not servers by name")
    return whole


class _Unusable(Exception):
    """An entry that cannot work, and why."""


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:  # such as "http://[x"
        raise _Unusable(f"its 'url' is no address: {error}") from None


class _Reader:
    """Reads entries; collects their secrets."""

    def __init__(self, environ: Mapping[str, str], root: str | os.PathLike[str] | None, secrets: set[str]) -> None:
        self._environ, self._secrets = environ, secrets
        self._root = str(Path(root).expanduser().absolute()) if root is not None else None

    def entry(self, name: str, entry: object, options: Mapping[str, object]) -> ServerEntry:
        raw = entry if isinstance(entry, Mapping) else {}
        warn_of_misplaced(raw, f"the entry of the server {name!r}")
        merged = {**options, **checked_options(raw.get("toolsearch"), name)}
        disabled = raw.get("disabled") is True or raw.get("enabled") is False
        blank = ServerEntry(name, options=merged, disabled=disabled, raw=raw, root=self._root)
        try:
            if not isinstance(entry, Mapping):
                raise _Unusable(f"its entry must be an object, not {checks.shown(entry)}")
            return self._read(blank, raw)
        except _Unusable as error:
            return ServerEntry(
                name, options=merged, disabled=disabled, raw=raw, root=self._root,
                problem=f"{error}. Change its entry in the configuration",
            )  # fmt: skip

    def _read(self, blank: ServerEntry, raw: Mapping[str, object]) -> ServerEntry:
        url = next((raw[key] for key in URL_KEYS if raw.get(key)), None)
        command, args = raw.get("command"), raw.get("args") or []
        transport = self._transport(raw, url)
        if transport == "stdio" and not (isinstance(command, str) and command.strip()):
            raise _Unusable("it has no 'command', which must be a text")
        if transport != "stdio" and not (isinstance(url, str) and _split(url).scheme in ("http", "https", "")):
            raise _Unusable("it has no 'url' that begins with http:// or https://")
        if not isinstance(args, list) or not all(isinstance(each, str | int | float) for each in args):
            raise _Unusable("its 'args' must be a list of texts")
        address = self._text(url) if isinstance(url, str) else ""
        if transport != "stdio" and _split(address).scheme not in ("http", "https"):
            raise _Unusable("its 'url' must begin with http:// or https://")
        cwd = raw.get("cwd")
        return ServerEntry(
            blank.name,
            transport,
            os.path.expanduser(self._text(command)) if isinstance(command, str) else "",  # noqa: PTH111
            tuple(self._text(str(each)) for each in args),
            self._table("env", raw.get("env"), self._is_env_secret),
            self._folder(cwd) if isinstance(cwd, str) and cwd else self._root,
            address,
            self._table("headers", raw.get("headers"), lambda key, _: key.lower() not in _PLAIN_HEADERS),
            _seconds(raw.get("timeout")),
            blank.disabled,
            blank.options,
            raw,
            self._root,
        )

    @staticmethod
    def _transport(raw: Mapping[str, object], url: object) -> Transport:
        written = raw.get("type", raw.get("transport"))
        if written is None:
            if isinstance(url, str) and not raw.get("command"):
                return "sse" if _split(url).path.rstrip("/").endswith("/sse") and not raw.get("httpUrl") else "http"
            return "stdio"
        found = _TRANSPORTS.get(re.sub(r"[^a-z]", "", str(written).lower()))
        if found is None:
            raise _Unusable(f"its transport {written!r} is none of 'stdio', 'http' and 'sse'")
        return found

    def _text(self, text: str) -> str:
        """The text with its variables replaced."""

        def value(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if name in _ROOTS:
                return self._root or str(Path.cwd())
            if name == _HOME:
                return str(Path.home())
            found = self._environ.get(name) or (default if default is not None else self._environ.get(name))
            if found is None:
                raise _Unusable(f"the variable {name!r} is not set in the environment")
            if redacted(f"{name}={found}") != f"{name}={found}":
                self._keep(found)
            return found

        if (foreign := _FOREIGN.search(text)) is not None:
            raise _Unusable(f"{foreign[0]!r} cannot be replaced: write a variable of the environment, as in ${{NAME}}")
        return _VARIABLE.sub(value, text) if "${" in text else text

    def _table(self, key: str, value: object, is_secret: _IsSecret) -> dict[str, str]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise _Unusable(f"its {key!r} must be an object of texts")
        table: dict[str, str] = {}
        for name, written in value.items():
            if written is None:
                continue
            if not isinstance(written, str | int | float):
                raise _Unusable(f"{name!r} in its {key!r} must be a text")
            table[str(name)] = text = self._text(str(written))
            if is_secret(str(name), text):
                self._keep(text)
        return table

    @staticmethod
    def _is_env_secret(key: str, value: str) -> bool:
        return redacted(f"{key}={value}") != f"{key}={value}" or (len(value) >= 8 and not _NO_SECRET.match(value))

    def _keep(self, secret: str) -> None:
        self._secrets.update(each for each in (secret, *secret.split()) if len(each) >= SECRET_LENGTH)

    def _folder(self, written: str) -> str:
        folder = Path(self._text(written)).expanduser()
        return str(Path(self._root or ".").absolute() / folder)


def _seconds(timeout: object) -> float | None:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        return None
    return timeout / 1_000 if timeout >= MILLISECONDS else float(timeout)
