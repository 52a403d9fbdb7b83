"""Tools from files: JSON, JSON Lines, or the recorded answer of a server that streams; and folders of such files."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, Unpack

from toolsearch.catalog.marks import ToolOptions
from toolsearch.catalog.quarantine import Quarantined
from toolsearch.catalog.tools import Tool
from toolsearch.errors import SetupError
from toolsearch.support.server_files import parsed, servers_of

__all__ = ["add_file", "add_sources", "decoded", "parse_tools", "read_tools", "servers_in", "tool_files"]

ENDINGS = (".json", ".jsonl", ".ndjson")  # of the files in a folder that are read
_STREAM_FIELD = re.compile(r"(?:data|event|id|retry)?:")


class _Catalog(Protocol):
    @property
    def quarantined(self) -> tuple[Quarantined, ...]: ...

    def extend(self, sources: Iterable[object], **options: Unpack[ToolOptions]) -> list[Tool]: ...


def read_tools(file: str | os.PathLike[str]) -> list[object]:
    """The definitions in a file, unread, for `Catalog`; of a folder, those in its files of JSON and JSON Lines.

    Raises `SetupError` naming the file, and the line where it is broken.
    """
    return [source for path in tool_files(file) for source in parse_tools(_text_of(path), f"the file {str(path)!r}")]


def add_file(catalog: _Catalog, file: str | os.PathLike[str], server: str | None = None) -> None:
    """Adds the tools of a file, or of the files of a folder. Raises `SetupError` if a file has no usable tool."""
    for path in tool_files(file):
        add_sources(catalog, read_tools(path), f"the file {str(path)!r}", server)


def add_sources(catalog: _Catalog, sources: list[object], where: str, server: str | None = None) -> None:
    """Adds what `parse_tools` gave. Raises `SetupError` if no tool of it is usable, which names the place and why."""
    known = len(catalog.quarantined)
    try:
        added = catalog.extend(sources, server=server) if server else catalog.extend(sources)
    except SetupError as error:
        raise SetupError(f"{where} holds no usable tool: {error.__cause__ or error}") from None
    if not added:
        refused = catalog.quarantined[known:]
        raise SetupError(f"{where} holds no usable tool: {refused[0].reason if refused else 'it is an empty list'}")


def tool_files(file: str | os.PathLike[str]) -> list[Path]:
    """The file itself; of a folder, its `tools.json` or `tools.jsonl`, or else all its files of JSON, by name."""
    path = Path(file)
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.suffix.lower() in ENDINGS and each.is_file())
    if not found:
        raise SetupError(f"the folder {str(path)!r} cannot be read: no file in it ends in {', '.join(ENDINGS)}")
    return [each for each in found if each.stem == "tools"] or found


def servers_in(file: str) -> Mapping[str, object] | None:
    """The entries of an `mcp.json`, read as `Servers` reads it; None for any other file, and for what is no file."""
    path = Path(file)
    if path.suffix.lower() in (".jsonl", ".ndjson") or not path.is_file():
        return None
    try:
        whole = parsed(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None  # whoever reads it as tools says what is wrong
    if not isinstance(whole, dict) or ("mcpServers" not in whole and {"name", "tools"} & whole.keys()):
        return None  # the other keys of servers stand in definitions, too
    return servers_of(whole)


def parse_tools(text: str, where: str) -> list[object]:
    """The definitions in the text of a file, unread. `where` names the text in an error, as "the file 'a.json'"."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise SetupError(f"{where} is empty")
    try:
        whole = json.loads(text)
    except RecursionError:
        raise SetupError(f"{where} cannot be read: it is nested too deeply") from None
    except ValueError as error:
        body = _without_headers(text)
        if _STREAM_FIELD.match(body):
            return _from_stream(body, where)
        return parse_tools(body, where) if body != text else _from_lines(text, where, error)
    if isinstance(whole, dict):
        return [whole]
    if isinstance(whole, list):
        return whole
    raise SetupError(f"{where} holds {type(whole).__name__}, not tools")


def decoded(content: bytes, where: str) -> str:
    """The text of a file. Raises `SetupError` if it is none."""
    # PowerShell writes what a command printed in UTF-16.
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise SetupError(f"{where} cannot be read: {error}") from None


def _text_of(path: Path) -> str:
    try:
        return decoded(path.read_bytes(), f"the file {str(path)!r}")
    except FileNotFoundError:
        raise SetupError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise SetupError(f"the file {str(path)!r} cannot be read: {error}") from None


def _from_lines(text: str, where: str, error: ValueError) -> list[object]:
    definitions: list[object] = []
    for number, line in enumerate(text.split("\n"), 1):  # not `splitlines`: a JSON text may hold U+2028
        if line.strip():
            try:
                definitions.append(json.loads(line))
            except (ValueError, RecursionError) as wrong:
                # A broken first line means that the file was never one definition a line.
                reason = error if number == 1 else f"line {number}: {wrong}"
                raise SetupError(f"{where} is neither JSON nor JSON Lines: {reason}") from None
    return definitions


# -- what a server that streams answered -------------------------------------------------------------------------


def _without_headers(text: str) -> str:
    """The body of an answer that was stored with its headers, as `curl -i` writes it, from its first line."""
    if text.startswith("HTTP/"):
        text = re.split(r"\r?\n\r?\n", text, maxsplit=1)[-1]
    return text.lstrip()


def _from_stream(text: str, where: str) -> list[object]:
    """The messages in an event stream. Progress and other notifications count only if there is no answer."""
    messages: list[object] = []
    for data in _events(text.split("\n")):
        try:
            messages.append(json.loads(data))
        except (ValueError, RecursionError) as error:
            if data.strip() and not messages:
                raise SetupError(f"{where} is an event stream whose data is not JSON: {error}") from None
    if not messages:
        raise SetupError(f"{where} is an event stream without a message")
    answers = [each for each in messages if not (isinstance(each, dict) and "method" in each)]
    return answers or messages


def _events(lines: Iterable[str]) -> Iterator[str]:
    """The data of each event: its `data` lines, joined."""
    data: list[str] = []
    for written in [*lines, ""]:
        line = written.rstrip("\r")
        if not line and data:
            yield "\n".join(data)
            data = []
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
