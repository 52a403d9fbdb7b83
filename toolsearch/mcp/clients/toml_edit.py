"""Changes the servers in a file of TOML and nothing else: tables are taken out whole, other lines keep their bytes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as clock

from toolsearch import SetupError

__all__ = ["entries_in", "statements", "table_lines", "with_entries"]

_STRINGS = ('"""', "'''", '"', "'")
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def entries_in(text: str, keys: tuple[str, ...], what: str) -> dict[str, object]:
    """The servers under this key, by name. Raises `SetupError` if the file is no TOML."""
    found = _read(text, what).get(keys[0], {})
    if not isinstance(found, dict):
        raise SetupError(f"{keys[0]!r} in {what} is no table of servers. Correct it first")
    return found


def with_entries(
    text: str, keys: tuple[str, ...], removed: Collection[str], added: Mapping[str, object], what: str
) -> str:
    """The text without the tables of the `removed` servers and with tables of the `added` ones, in the place of these.

    Raises `SetupError` if the servers are written in another way than as tables: then nothing can be taken out safely.
    """
    (key,) = keys
    before = _read(text, what)
    gone = {*removed, *added}
    pieces: list[str] = []
    done = 0
    place: int | None = None
    for table in _tables(text):
        if len(table.path) > 1 and table.path[0] == key and table.path[1] in gone:
            pieces.append(text[done : table.start])
            place = len(pieces) if place is None else place
            done = table.end
    pieces.append(text[done:])
    newline = "\r\n" if "\r\n" in text else "\n"
    new = newline.join(table_lines(key, added))
    if place is not None:
        pieces.insert(place, new)
        result = "".join(pieces)
    else:
        gap = "" if not text else newline if text.endswith("\n") else 2 * newline
        result = text + gap + new
    after = _read(result, what)
    wanted = {name: value for name, value in entries_in(text, keys, what).items() if name not in gone}
    if _without(after, key) != _without(before, key) or after.get(key, {}) != {**wanted, **added}:
        raise SetupError(
            f"the servers in {what} are not written as tables [{key}.NAME], which is the only form that can be changed "
            "safely: change it by hand, with the entry that --print shows"
        )
    return result


def _read(text: str, what: str) -> dict[str, object]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{what} is no TOML: {error}. Correct it first") from None


def _without(value: Mapping[str, object], key: str) -> dict[str, object]:
    return {name: each for name, each in value.items() if name != key}


@dataclass(frozen=True, slots=True)
class _Table:
    """A `[table]` from its header to the end of its last value; what follows, comments too, belongs to nobody."""

    path: tuple[str, ...]
    start: int
    end: int


def _tables(text: str) -> Iterator[_Table]:
    header: tuple[tuple[str, ...], int] | None = None
    end = 0
    for start, stop, is_header in statements(text):
        if is_header:
            if header is not None:
                yield _Table(*header, end)
            header = (_path(text[start:stop]), start)
        end = stop
    if header is not None:
        yield _Table(*header, end)


def statements(text: str) -> Iterator[tuple[int, int, bool]]:
    """Each header and each `key = value`, from the beginning of its line to the end of its last one."""
    at = 0
    while at < len(text):
        line_end = text.find("\n", at)
        line = text[at : line_end if line_end >= 0 else len(text)].strip()
        stop = _end_of_statement(text, at)
        if line and not line.startswith("#"):
            yield at, stop, line.startswith("[")
        at = stop


def _end_of_statement(text: str, at: int) -> int:
    """The end of the line in which all brackets and texts that are opened are closed."""
    depth = 0
    while at < len(text):
        sign = text[at]
        if sign == "\n" and depth <= 0:
            return at + 1
        if sign == "#":
            at = text.find("\n", at)
            if at < 0:
                return len(text)
            continue
        if sign in "\"'":
            at = _end_of_string(text, at)
            continue
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign, 0)
        at += 1
    return at


def _end_of_string(text: str, at: int) -> int:
    quote = next(each for each in _STRINGS if text.startswith(each, at))
    end = at + len(quote)
    while end < len(text) and not text.startswith(quote, end):
        end += 2 if text[end] == "\\" and quote[0] == '"' else 1
    end += len(quote)
    while len(quote) == 3 and text.startswith(quote[0], end):  # one or two quotes may stand before the closing three
        end += 1
    return min(end, len(text))


def _path(header: str) -> tuple[str, ...]:
    """The keys of a header, as `tomllib` reads them."""
    found: object = tomllib.loads(header.strip())
    path: list[str] = []
    while found:
        match found:
            case [first, *_]:
                found = first
            case {**tables}:
                name, found = next(iter(tables.items()))
                path.append(str(name))
            case _:
                break
    return tuple(path)


def table_lines(key: str, entries: Mapping[str, object]) -> Iterator[str]:
    """The lines of a table for each entry, an empty one after each."""
    for name, entry in entries.items():
        yield f"[{key}.{_key(name)}]"
        assert isinstance(entry, Mapping)
        for each, value in entry.items():
            yield f"{_key(each)} = {_value(value)}"
        yield ""


def _key(name: str) -> str:
    return name if _BARE.match(name) else _value(name)


def _value(value: object) -> str:
    """A value in one line. Texts, numbers and truth values have the form that TOML shares with JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, datetime | date | clock):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
