"""Lists of tools, unwrapped: answers to `tools/list`, an SDK's results, maps by name or by server, lists of lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from toolsearch.catalog.foreign_tools import is_foreign
from toolsearch.catalog.parameters import SCHEMA_KEYS
from toolsearch.catalog.shapes import HOSTED_BY_KEY, named_shape, snake
from toolsearch.support.checks import shown
from toolsearch.support.json_types import JsonObject

__all__ = ["Listing", "is_one_source", "parts", "unwrapped"]

_LISTS = ("functionDeclarations", "function_declarations", "tools", "functions")
_ENVELOPES = ("data", "items", "results", "response", "payload", "body", "toolConfig", "tool_config")  # no servers
_SERVER_NAMES = ("server", "serverName", "server_name", "name")
_OF_DEFINITION = frozenset(
    [*SCHEMA_KEYS, "outputSchema", "output_schema", "annotations", "_meta", "meta", "run", "function"]
)
_MOST_LEVELS = 16
_MISSING = object()


@dataclass
class Listing:
    """What one source holds: `parts` are the definitions, not read yet.

    `is_list`: it is a list, or holds one. `goes_on` says that the last list in it is a page, and how to get the next.
    """

    parts: list[object] = field(default_factory=list)
    is_list: bool = False
    goes_on: str = ""


def unwrapped(source: object) -> Listing:
    """The definitions in one source: the source itself, or the entries of the lists it wraps.

    Such wrappings are a `tools/list` result (also in its JSON-RPC envelope, also an SDK's object), Gemini's
    `functionDeclarations`, a map by name, a map by server, and an OpenAI namespace, whose name becomes the server of
    its tools, as the key does in a map by server.
    """
    listing = Listing()
    listing.parts.extend(_parts(source, None, listing, 0))
    return listing


def parts(source: object) -> list[object]:
    """The definitions in one source, not read yet."""
    return unwrapped(source).parts


def is_one_source(source: object) -> bool:
    """Whether an object is itself a definition or an answer with a list, though one could iterate over it."""
    if isinstance(source, Mapping) or callable(source):
        return True
    if isinstance(source, list | tuple | set | frozenset | Iterator):
        return False
    if any(isinstance(getattr(source, key, None), list | tuple | Mapping) for key in _LISTS):
        return True
    return is_foreign(source) or any(hasattr(source, key) for key in (*SCHEMA_KEYS, "model_dump"))


def _parts(source: object, server: str | None, listing: Listing, depth: int) -> Iterator[object]:
    if depth < _MOST_LEVELS:
        if isinstance(source, list | tuple):
            listing.is_list = True
            for each in source:
                yield from _parts(each, server, listing, depth + 1)
            return
        if isinstance(source, Mapping) and (key := "result" if _is_answer(source) else _envelope_in(source)):
            yield from _parts(source[key], server, listing, depth + 1)
            listing.goes_on = listing.goes_on or _cursor(source)
            return
        if (inner := _list_in(source)) is not _MISSING:
            named = _server_of(source) or server
            if isinstance(inner, Mapping):
                yield from _map_parts(_entries(inner), named, listing, depth)
            else:
                yield from _parts(inner, named, listing, depth + 1)
            listing.is_list = True
            listing.goes_on = _cursor(source)
            if isinstance(source, Mapping):  # in Gemini's form they stand beside the declarations
                yield from ({key: value} for key, value in source.items() if snake(str(key)) in HOSTED_BY_KEY)
            return
        if isinstance(source, Mapping) and (entries := _entries(source)):
            yield from _map_parts(entries, server, listing, depth)
            return
    yield _with_server(source, server)


def _map_parts(entries: JsonObject, server: str | None, listing: Listing, depth: int) -> Iterator[object]:
    """The definitions in a map by name or by server. A server that was named further out, or by the program, counts."""
    for key, entry in entries.items():
        if _wraps_list(entry):
            yield from _parts(entry, key if server is None else server, listing, depth + 1)
        else:
            yield _with_server(_with_name(entry, key), server)


def _is_answer(source: JsonObject) -> bool:
    """Whether it is a JSON-RPC answer, perhaps without its envelope's other keys."""
    result = source.get("result")
    if isinstance(source.get("name"), str) or not isinstance(result, Mapping | list):
        return False
    return isinstance(result, list) or "jsonrpc" in source or any(key in result for key in _LISTS)


def _envelope_in(source: JsonObject) -> str:
    """The key under which an HTTP API or a file has its one list, beside plain values; "" if there is none."""
    key = next((key for key in _ENVELOPES if key in source), "")
    others = (value for name, value in source.items() if name != key)
    is_plain = not any(isinstance(other, Mapping | list | tuple) or callable(other) for other in others)
    return key if key and is_plain and "name" not in source and _wraps_list(source[key]) else ""


def _list_in(source: object) -> object:
    """The list of tools that something wraps, also a map of them by name."""
    is_map = isinstance(source, Mapping)
    if not _is_wrapping(source):
        return _MISSING
    for key in _LISTS:
        inner = source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)
        if isinstance(inner, list | tuple) and (not is_map or not _is_tool_with_list(source, inner)):
            return inner
        if isinstance(inner, Mapping) and (not inner or _entries(inner)):
            return inner
    return _MISSING


def _is_wrapping(source: object) -> bool:
    """Whether something with a list of tools is only its wrapping: a tool would have a schema."""
    if not isinstance(source, Mapping):
        return not callable(source) and not isinstance(getattr(source, "name", None), str)
    return source.get("type") == "namespace" or not any(key in source for key in SCHEMA_KEYS)


def _is_tool_with_list(source: object, inner: object) -> bool:
    """Whether something with a name is a tool that mentions others, rather than a server with its tools."""
    if not isinstance(source, Mapping) or not isinstance(source.get("name"), str):
        return False
    entries = inner if isinstance(inner, list | tuple) else []
    return source.get("type") != "namespace" and not (entries and all(map(_is_definition, entries)))


def _server_of(source: object) -> str | None:
    if not isinstance(source, Mapping):
        return None
    return next((source[key] for key in _SERVER_NAMES if isinstance(source.get(key), str) and source[key]), None)


def _cursor(source: object) -> str:
    """A sentence on the next page of a list, or "" where there is none."""
    for key in ("nextCursor", "next_cursor"):
        cursor = source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)
        if isinstance(cursor, str) and cursor:
            return (
                f"the list of tools goes on, nextCursor is {shown(cursor)}: ask the server for tools/list with this "
                "cursor, and pass all pages"
            )
    return ""


# -- maps --------------------------------------------------------------------------------------------------------


def _entries(source: JsonObject) -> dict[str, object]:
    """The entries of a map by name, or by server; empty if it is neither. What begins with "$" or "_" is a remark."""
    if isinstance(source.get("name"), str) or _OF_DEFINITION.issuperset(source):
        return {}
    entries = {key: value for key, value in source.items() if not str(key).startswith(("$", "_"))}
    if not entries or named_shape(entries) is not None:
        return {}
    if all(_wraps_list(entry) for entry in entries.values()):
        return entries
    if all(_can_be_definition(entry) for entry in entries.values()) and any(map(_is_definition, entries.values())):
        return entries
    return {}


def _wraps_list(entry: object) -> bool:
    if isinstance(entry, list | tuple):
        return bool(entry) and all(map(_can_be_definition, entry))
    return _list_in(entry) is not _MISSING or (isinstance(entry, Mapping) and _is_answer(entry))


def _can_be_definition(entry: object) -> bool:
    return isinstance(entry, Mapping) or callable(entry) or isinstance(getattr(entry, "name", None), str)


def _is_definition(entry: object) -> bool:
    if not isinstance(entry, Mapping):
        return _can_be_definition(entry)
    return (
        isinstance(entry.get("description"), str)
        or any(key in entry for key in (*SCHEMA_KEYS, "arguments", "properties", "run"))
        or isinstance(entry.get("name"), str)
        or isinstance(entry.get("function"), Mapping)
    )


def _with_name(entry: object, name: str) -> object:
    """An entry of a map by name. A function takes the name; a definition that has a name keeps its own."""
    if isinstance(entry, Mapping):
        return entry if _has_name(entry) else {**entry, "name": name}
    if callable(entry) and not isinstance(getattr(entry, "name", None), str) and not is_foreign(entry):
        return {"name": name, "run": entry}
    return entry


def _has_name(entry: JsonObject) -> bool:
    inner = entry.get("function")
    return isinstance(entry.get("name"), str) or (isinstance(inner, Mapping) and isinstance(inner.get("name"), str))


def _with_server(source: object, server: str | None) -> object:
    return {"server": server, **source} if server and isinstance(source, Mapping) else source
