"""How facts are stored: names and keys that no rename can change, and older formats migrated when they are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from toolsearch.calls import LoadedTool
from toolsearch.calls.parts import cleaned_part, is_part, read_part, stored_part
from toolsearch.catalog.marks import DEFAULT_MARKS, MARK_NAMES, Marks
from toolsearch.errors import StateError
from toolsearch.events.facts import (
    Compacted,
    Ending,
    Event,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Noted,
    RunBegan,
    RunEnded,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolsRevealed,
    ToolStarted,
    ToolsUnloaded,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import plain_json

__all__ = ["cleaned", "read_event", "read_events", "stored"]

FORMAT = 1  # of `stored`; facts in an older format are migrated when they are read

# For each older format, the function that turns a stored fact of it into one of the next format.
MIGRATIONS: dict[int, Callable[[JsonObject], JsonObject]] = {}


# How facts are stored: the name of each, and the keys of its fields in the order of its class. A class or a field can
# be renamed. What is written here cannot change, unless FORMAT grows and MIGRATIONS reads the old form.
_STORED: dict[str, tuple[type[Any], str]] = {
    "RunBegan": (RunBegan, "run at user tenant"),
    "UserSaid": (UserSaid, "text parts at definitions"),
    "ModelReplied": (ModelReplied, "text calls reasoning raw wire model stop value at"),
    "ModelCalled": (ModelCalled, "purpose model usage actor error seconds at"),
    "ToolStarted": (ToolStarted, "call_id at"),
    "ToolsFound": (ToolsFound, "call_id loaded unloaded session changes"),
    "ToolsRevealed": (ToolsRevealed, "loaded session changes said definitions"),
    "ToolsUnloaded": (ToolsUnloaded, "unloaded told session changes"),
    "ToolReturned": (ToolReturned, "call_id status content data by seconds at parts definitions"),
    "ToolWaiting": (ToolWaiting, "call_id kind question by expires_at data at"),
    "ToolApproved": (ToolApproved, "call_id arguments remember actor at answer"),
    "ToolDenied": (ToolDenied, "call_id reason actor expired at"),
    "Compacted": (Compacted, "before summary at kept"),
    "Noted": (Noted, "layer note at"),
    "Ending": (Ending, "reason text by"),
    "RunEnded": (RunEnded, "reason text value at"),
}
# The same for what stands inside a fact. The marks of a call stand flat among its keys, each by its own name, and the
# kind of the tool as "action": whether it is one.
_STORED_INSIDE: dict[type[Any], str] = {
    JudgedCall: "id name arguments kind tool digest given status answer reveal",
    Usage: "input_tokens cached_tokens output_tokens calls",
}
_KINDS = {name: kind for name, (kind, _) in _STORED.items()}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_KEYS: dict[type[Any], dict[str, str]] = {  # key -> field
    kind: dict(zip(keys.split(), [f.name for f in dataclasses.fields(kind) if f.name != "marks"], strict=True))
    for kind, keys in [*_STORED.values(), *_STORED_INSIDE.items()]
}
_TUPLES = frozenset({"calls", "loaded", "unloaded", "told", "parts", "reveal", "kept", "definitions"})  # by key
T = TypeVar("T")


def stored(event: Event) -> dict[str, object]:
    """A fact as JSON-ready data: valid UTF-8, defaults left out, its name in `fact`, the format in `v`."""
    return {"v": FORMAT, "fact": _NAMES[type(event)], **_plain(event)}


def read_events(lines: Iterable[JsonObject]) -> list[Event]:
    """The facts that `stored` gave, of this format or an older one. Raises `StateError` for anything else.

    A journal is trusted input: never take one from a client.
    """
    return [read_event(line, at) for at, line in enumerate(lines)]


def _plain(value: Any) -> dict[str, object]:
    data: dict[str, object] = {}
    fields = {each.name: each for each in dataclasses.fields(value)}
    for key, name in _KEYS[type(value)].items():
        item, each = getattr(value, name), fields[name]
        default = each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
        if item is default or (type(item) is type(default) and item == default):
            continue
        if isinstance(item, Usage):
            item = _plain(item)
        elif key == "calls" and isinstance(item, tuple):
            item = [_plain(call) for call in item]
        elif key == "parts":
            item = [stored_part(part) if is_part(part) else part for part in item]
        elif key == "definitions":
            item = [definition.stored() for definition in item]
        data[key] = plain_json(item)
    if isinstance(value, JudgedCall):
        data.update(_plain_marks(value.marks))
    return data


def _plain_marks(marks: Marks) -> dict[str, bool]:
    flags = {name: getattr(marks, name) for name in MARK_NAMES[1:]}
    changed = {name: flag for name, flag in flags.items() if flag != getattr(DEFAULT_MARKS, name)}
    return changed | ({"action": True} if marks.is_action else {})


def read_event(line: JsonObject, at: int) -> Event:
    """The fact at the place `at` of a journal; see `read_events`."""
    if not isinstance(line, Mapping):
        raise StateError(f"fact {at} of the journal must be a JSON object, not {line!r}")
    line = _migrated(line, at)
    kind = _KINDS.get(str(line.get("fact")))
    if kind is None:
        raise StateError(f"fact {at} of the journal has the unknown kind {line.get('fact')!r}")
    data = {key: item for key, item in line.items() if key not in ("v", "fact")}
    try:
        if kind is ModelReplied and "calls" in data:
            data["calls"] = tuple(_judged_call(call) for call in data["calls"])
        if kind is ToolReturned and "parts" in data:
            data["parts"] = [read_part(part) for part in data["parts"]]
        if "definitions" in data:
            data["definitions"] = [LoadedTool.read(each) for each in data["definitions"]]
        if kind is ModelCalled and "usage" in data:
            data["usage"] = _from_data(Usage, data["usage"])
        event: Event = _from_data(kind, data)
    except (TypeError, ValueError) as error:
        raise StateError(f"fact {at} of the journal, a {_NAMES[kind]}, cannot be read: {error}") from None
    return event


def _migrated(line: JsonObject, at: int) -> JsonObject:
    """The stored fact in the current format."""
    version = line.get("v")
    while isinstance(version, int) and version < FORMAT and version in MIGRATIONS:
        line, version = MIGRATIONS[version](line), version + 1
    if version != FORMAT:
        problem = f"fact {at} of the journal has the format {version!r}; this version reads {FORMAT}"
        raise StateError(f"{problem}: use the version that wrote it")
    return line


def _from_data(kind: type[T], data: JsonObject) -> T:
    """A fact from its data; lists become tuples where the fact has tuples."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{data!r} is not a {kind.__name__}")
    fields = _KEYS[kind]
    if unknown := set(data) - fields.keys():
        raise ValueError(f"it has the unknown field {min(unknown)!r}")
    tuples = frozenset[str]() if fields is _KEYS[Usage] else _TUPLES  # whose `calls` is a number
    return kind(**{fields[key]: tuple(item) if key in tuples else item for key, item in data.items()})


def _judged_call(data: object) -> JudgedCall:
    """A call from its data, in which its marks stand flat."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{data!r} is not a JudgedCall")
    flags = {name: data[name] for name in MARK_NAMES[1:] if name in data}
    rest = {key: item for key, item in data.items() if key not in (*flags, "action")}
    marks = Marks("action" if data.get("action") else "read", **flags)
    return dataclasses.replace(_from_data(JudgedCall, rest), marks=marks)


def cleaned(event: T) -> T:
    """The fact as it will be read back from a store: every text valid UTF-8, every value plain JSON, nothing shared.

    Raises `StateError` if `event` is not a fact, or contains a value that cannot be stored.
    """
    kind = type(event)
    if kind not in _NAMES:
        raise StateError(f"{event!r} is not a fact; the facts are {', '.join(_KINDS)}")
    try:
        return _cleaned(event)
    except Exception as error:  # a circular value, or one whose text cannot be had
        raise StateError(f"a {kind.__name__} cannot be stored: {type(error).__name__}: {error}") from None


def _cleaned(value: T) -> T:
    changed: dict[str, Any] = {}
    for key, name in _KEYS[type(value)].items():
        item = getattr(value, name)
        if isinstance(item, Usage):
            continue
        if key in _TUPLES:
            if key == "parts" and type(value) is ToolReturned and not all(map(is_part, item)):
                raise ValueError("its parts must be TextPart, ImagePart, AudioPart, ResourcePart or JsonPart")
            new: Any = tuple([_cleaned_item(each) for each in item])
        else:
            new = plain_json(item)
        if new is not item:
            changed[name] = new
    return dataclasses.replace(value, **changed) if changed else value  # type: ignore[type-var]


def _cleaned_item(item: Any) -> Any:
    if isinstance(item, JudgedCall):
        return _cleaned(item)
    if isinstance(item, LoadedTool):
        return _cleaned_definition(item)
    return cleaned_part(item) if is_part(item) else plain_json(item)


def _cleaned_definition(definition: LoadedTool) -> LoadedTool:
    read = LoadedTool.read(plain_json(definition.stored()))
    return definition if read == definition else read
