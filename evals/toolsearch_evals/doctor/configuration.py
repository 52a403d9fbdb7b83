"""What is wrong with a configuration of MCP servers, found without starting any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from urllib.parse import urlsplit

from toolsearch.mcp import ServerEntry
from toolsearch.support.redaction import redacted
from toolsearch_evals.doctor.findings import Finding

__all__ = ["configuration_findings", "secrets_given"]

_VARIABLE = re.compile(r"\$\{(?:env:|input:)?([A-Za-z_][\w.-]*)[^}]*\}")
_DEFAULT = re.compile(r"\A\$\{[^}:]*:-([^}]+)\}\Z")
_PLACEHOLDER = re.compile(
    r"\A[<\[{(]|\Ayour\b|\Ayour[-_]|\A(?:x{3,}|\*{3,}|\.{3})"
    r"|\A(?:my|the|some|insert|enter|add|replace|change|example|todo)(?:[-_ ]?[A-Za-z]+)*\Z",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"(?=[^/]*[a-z])(?=[^/]*[A-Z])(?=[^/]*\d)[\w=-]{32,}\Z")
_LOOPBACK = re.compile(r"\A(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|host\.docker\.internal)\Z", re.IGNORECASE)
_PINNED = re.compile(r".@v?\d|.==|@[0-9a-f]{7,40}\Z|@sha256:|\A(?:[./~]|[A-Za-z]:[\\/])|\$\{", re.IGNORECASE)
_RUNNERS = {
    "npx": (), "bunx": (), "uvx": (), "pnpx": (),
    "pnpm": ("dlx",), "yarn": ("dlx",), "bun": ("x",), "pipx": ("run",), "npm": ("exec",), "uv": ("tool", "run"),
}  # fmt: skip
_FROM = ("-p", "--package", "--from")  # what follows names the package
_WITH_VALUE = frozenset(
    "-e --env -v --volume -p --publish --name --network --mount -u --user -w --workdir --env-file --entrypoint "
    "--with --python --index-url --registry -c --cache --platform --memory --cpus --label -l --add-host".split()
)


def configuration_findings(entries: Iterable[ServerEntry]) -> Iterator[Finding]:
    """Secrets where others see them, plain connections, and programs that may be others at the next start."""
    used = [entry for entry in entries if not entry.disabled]
    given: dict[str, dict[str, str]] = {}
    for entry in used:
        raw = entry.raw
        if found := _in_arguments(_texts(raw.get("args"))):
            yield Finding("secret-in-arguments", entry.name, f"among its arguments stands {found}", entry.name)
        url = _url(raw)
        if (without := _address_without(url)) != url:
            yield Finding("secret-in-url", entry.name, f"its address has a secret: {without}", entry.name)
        if written := [name for name, value in _pairs(raw) if _is_secret(name, value)]:
            text = f"the file has the value of {', '.join(written)}; write ${{NAME}} instead"
            yield Finding("secret-in-file", entry.name, text, entry.name)
        host = _host(url)
        if url.startswith("http://") and not _LOOPBACK.match(host):
            yield Finding("plain-http", entry.name, f"what it is sent goes to {host} unencrypted", entry.name)
        if package := _unpinned(str(raw.get("command") or ""), _texts(raw.get("args"))):
            yield Finding("unpinned", entry.name, f"{package} may be another program at the next start", entry.name)
        for secret, name in _secrets(raw, url):
            given.setdefault(secret, {})[entry.name] = host or " ".join(_program(raw))
            given[secret].setdefault("", name)
    for owners in given.values():
        name = owners.pop("")
        if len(set(owners.values())) > 1:
            text = f"{name} is given to {' and '.join(owners)}"
            yield from (Finding("shared-secret", owner, text, owner) for owner in owners)


def secrets_given(entry: ServerEntry) -> list[str]:
    """The names of the variables and values that are secret and that an entry gives to its server."""
    return list(dict.fromkeys(name for _, name in _secrets(entry.raw, _url(entry.raw))))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # such as "http://[x", which no server has
        return ""


def _url(raw: Mapping[str, object]) -> str:
    return next((str(raw[key]) for key in ("url", "httpUrl", "serverUrl") if raw.get(key)), "")


def _texts(args: object) -> list[str]:
    return [str(each) for each in args] if isinstance(args, list) else []


def _pairs(raw: Mapping[str, object]) -> list[tuple[str, str]]:
    tables = [table for key in ("env", "headers") if isinstance(table := raw.get(key), Mapping)]
    return [(str(name), str(value)) for table in tables for name, value in table.items() if isinstance(value, str)]


def _is_secret(name: str, value: str) -> bool:
    """Whether a value is a secret that stands there in full: no variable, and no word in its place."""
    bare = value.strip().removeprefix("Bearer ").removeprefix("Basic ").strip()
    if (default := _DEFAULT.match(bare)) is not None:
        return _is_secret(name, default[1])
    if not bare or _VARIABLE.search(value) or _PLACEHOLDER.match(bare):
        return False
    return redacted(f"{name}={value}") != f"{name}={value}"


def _address_without(url: str) -> str:
    """An address without its secrets: those that look so, and a long word of mixed signs in its path."""
    place, mark, query = redacted(url).partition("?")
    words = place.split("/")
    return "/".join("[redacted]" if _LONG_WORD.match(word) else word for word in words) + mark + query


def _in_arguments(args: Sequence[str]) -> str:
    """What of the arguments is a secret: the name of the option or of the variable, or just "a secret"."""
    for at, arg in enumerate(args):
        for name in _VARIABLE.findall(arg):
            if redacted(f"{name}=0123456789") != f"{name}=0123456789":
                return f"the value of ${{{name}}}"
        key, _, value = arg.partition("=")
        follows = args[at + 1] if arg.startswith("-") and not value and at + 1 < len(args) else value
        if (
            follows
            and not follows.startswith("-")
            and (value or "=" not in follows)
            and _is_secret(key.lstrip("-"), follows)
        ):
            return f"the value of {key}"
        if redacted(arg) != arg and not value:
            return "a secret"
    return ""


def _secrets(raw: Mapping[str, object], url: str) -> Iterator[tuple[str, str]]:
    """The variables and the values that an entry gives to its server, each with what to call it."""
    for name, value in [*_pairs(raw), ("", url), *(("", arg) for arg in _texts(raw.get("args")))]:
        for variable in _VARIABLE.findall(value):
            if redacted(f"{variable}=0123456789") != f"{variable}=0123456789":
                yield variable, f"${{{variable}}}"
        if name and _is_secret(name, value):
            yield value, f"the value of {name}"


# -- packages ----------------------------------------------------------------------------------------------------------


def _program(raw: Mapping[str, object]) -> list[str]:
    """What tells one program from another: the command, and the package that a runner runs."""
    command, args = str(raw.get("command") or ""), _texts(raw.get("args"))
    package = _package(command, args)
    return [command, package or " ".join(args[:1])]


def _unpinned(command: str, args: Sequence[str]) -> str:
    """The package or the image that is run in whatever version there is."""
    package = _package(command, args)
    is_image = _name_of(command) in ("docker", "podman")
    if not package or _PINNED.search(package):
        return ""
    tag = package.rpartition("/")[2].partition(":")[2]
    return "" if is_image and tag not in ("", "latest") else package


def _package(command: str, args: Sequence[str]) -> str:
    name = _name_of(command)
    if name == "cmd" and len(args) > 2 and args[0].lower() == "/c":  # as one writes npx on Windows
        return _package(args[1], args[2:])
    if name in ("docker", "podman"):
        return _first(args[args.index("run") + 1 :]) if "run" in args else ""
    if name not in _RUNNERS:
        return ""
    verb = _RUNNERS[name]
    if tuple(args[: len(verb)]) != verb:
        return ""
    rest = args[len(verb) :]
    for at, arg in enumerate(rest):
        option, _, value = arg.partition("=")
        if option in _FROM:
            return value or (rest[at + 1] if at + 1 < len(rest) else "")
        if not arg.startswith("-"):
            break
    return _first(rest)


def _first(args: Sequence[str]) -> str:
    """The first argument that is no option, nor the value of one."""
    skipped = False
    for arg in args:
        if skipped or arg.startswith("-"):
            skipped = not skipped and arg in _WITH_VALUE
            continue
        return arg
    return ""


def _name_of(command: str) -> str:
    return re.sub(r"\.(?:cmd|exe)\Z", "", PurePath(command.replace("\\", "/")).name.lower())
