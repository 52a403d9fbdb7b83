"""Results of tools, cut to a length that a model should read, where an element ends, and without binary data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from toolsearch.calls import AudioPart, ImagePart, ToolResult
from toolsearch.calls.returned import read_result
from toolsearch.errors import SetupError
from toolsearch.events.facts import ToolWaiting
from toolsearch.events.requests import Call
from toolsearch.layers._shared import setting_for
from toolsearch.protocols import Do, Layer, ToolSteps
from toolsearch.support import checks
from toolsearch.support.base64_data import without_data, without_urls
from toolsearch.support.large_values import in_pieces, is_large
from toolsearch.support.text import LEVELS, is_deeper

__all__ = ["truncate"]

LEAST = 200  # characters, so that a note has room
SMALL = 40  # characters; what would be shorter is left out
ENOUGH = 200  # characters of a member of an object, before the next one gets any

JsonContainer: TypeAlias = list[Any] | dict[str, Any]


def truncate(characters: int = 12_000, *, tools: Mapping[str, int] | None = None) -> Layer:
    """A layer that cuts results to `characters`, including the note about the cut; 0 cuts nothing.

    `tools` sets other limits for some tools, by id or name. Text is cut at the end of a line; in JSON, elements of
    lists and members of objects are left out, so that it stays valid. Images and other data in Base64 become a
    placeholder that names type and size, whatever the limit. `ToolResult.data` stays as it is, and so do images and
    sound among its `parts`, and answers to searches.
    """
    own = checks.table("tools", tools, "numbers of characters", none=True)
    for name, most in {"characters": characters, **{f"tools[{name!r}]": most for name, most in own.items()}}.items():
        checks.whole(name, most, 0)
        if 0 < most < LEAST:
            raise SetupError(f"{name} must be a number of characters from {LEAST}, or 0 for no limit, not {most!r}")
    return _Truncate(characters, own)


class _Truncate:
    name = "truncate"

    def __init__(self, characters: int, tools: dict[str, int]) -> None:
        self.characters, self.tools = characters, tools

    def around_tool(self, call: Call) -> ToolSteps:
        result = yield call
        if _is_nothing(result) or isinstance(result, ToolWaiting) or call.judged.kind == "search":
            return result  # nothing is judged where it ends up
        result = _as_result(result, call)
        most = setting_for(call.judged, self.tools, self.characters)
        shorten = partial(_shortened, result.content, most)
        content: Any = (yield Do(shorten)) if is_large(result.content) else shorten()
        if content == result.content:
            return result
        # What was cut from the text is not kept in the parts either.
        parts = tuple([part for part in result.parts if isinstance(part, ImagePart | AudioPart)])
        return replace(result, content=content, parts=parts)

    def __repr__(self) -> str:
        return f"truncate({self.characters})"


def _is_nothing(result: object) -> bool:
    """Whether an inner layer, which may be anybody's, returned nothing."""
    return result is None


def _as_result(result: object, call: Call) -> ToolResult:
    """What an inner layer returned, as a result."""
    return result if isinstance(result, ToolResult) else read_result(call.judged.id, call.judged.name, result)


def _shortened(text: str, most: int) -> str:
    value = _json(text)
    if value is not None:
        shown = without_data(value)
        if shown != value:
            value, text = shown, _dumped(shown)
        if most and len(text) > most and (cut := _cut_json(value, text, most)) is not None:
            return cut
    else:
        text = without_urls(text)
    return text if not most or len(text) <= most else _cut_text(text, most)


def _json(text: str) -> JsonContainer | None:
    """The list or object that a text is; None for any other text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list | dict) and not is_deeper(value, LEVELS) else None


def _dumped(value: object) -> str:
    return in_pieces(value, partial(json.dumps, ensure_ascii=False))


# -- cutting -----------------------------------------------------------------------------------------------------


def _note(characters: int, total: int, what: str = "") -> str:
    more = f"; {what}" if what else ""
    return f"[cut: {characters:,} of {total:,} characters are shown{more}. Ask for less, or for the part you need.]"


def _cut_text(text: str, most: int) -> str:
    """The beginning of a text, up to the end of a line unless that loses half of it, and a note."""
    lines = text.count("\n") + 1

    def note(beginning: str) -> str:
        what = f"{beginning.count(chr(10)) + 1:,} of {lines:,} lines" if lines > 1 else ""
        return _note(len(beginning), len(text), what)

    room = most - len(note(text)) - 1
    beginning = text[:room]
    end = text.rfind("\n", 0, room + 1)
    if end >= room // 2:
        beginning = text[:end]
    return f"{beginning}\n{note(beginning)}"


def _cut_json(value: JsonContainer, text: str, most: int) -> str | None:
    """Valid JSON without the elements that have no room, with a note; None if nothing sensible would be left."""
    things = "elements" if isinstance(value, list) else "members"

    def note(characters: int, parts: int) -> str:
        return _note(characters, len(text), f"{parts:,} of {len(value):,} {things}")

    room = most - len(_dumped({"[cut]": note(len(text), len(value))})) - 2
    cut = _fitted(value, room)
    if not cut:
        return None
    if isinstance(cut, list):
        cut = cut[:-1]  # its own count; the note has it
        return _dumped([*cut, note(len(_dumped(cut)), len(cut))])
    cut.pop("[cut]", None)
    return _dumped({**cut, "[cut]": note(len(_dumped(cut)), len(cut))})


def _count(number: int, total: int, things: str) -> str:
    return f"[{number:,} of {total:,} {things}]"


def _fitted(value: object, room: int) -> Any:
    """The value with so much left out that its JSON has at most `room` characters; None if nothing fits."""
    size = len(_dumped(value))
    if size <= room:
        return value
    if isinstance(value, str):
        return _fitted_text(value, room)
    if isinstance(value, list):
        return _fitted_list(value, room)
    return _fitted_object(value, room) if isinstance(value, dict) else None


def _fitted_text(text: str, room: int) -> str | None:
    note = f"… [{len(text):,} characters]"
    length = room - len(_dumped(note))
    while length >= SMALL:
        cut = text[:length] + note
        if (over := len(_dumped(cut)) - room) <= 0:
            return cut
        length -= over  # what JSON escapes takes more room
    return None


def _fitted_list(items: Sequence[object], room: int) -> list[object] | None:
    """The first elements, and a text that counts them."""
    left = room - len(_dumped([_count(len(items), len(items), "elements")]))
    fitting: list[object] = []
    for item in items:
        size = len(_dumped(item)) + 2
        if size > left:
            if not fitting and (part := _fitted(item, left - 2)) is not None:
                fitting.append(part)
            break
        fitting.append(item)
        left -= size
    return [*fitting, _count(len(fitting), len(items), "elements")] if fitting else None


def _fitted_object(members: Mapping[str, object], room: int) -> dict[str, object] | None:
    """The members, in their order: small ones stay whole, and large ones share the room that is left."""
    sizes = {key: len(_dumped({key: item})) for key, item in members.items()}
    left = room - 2 - len(_dumped({"[cut]": _count(len(members), len(members), "members")}))
    fitting: dict[str, object] = {}
    large = sorted(sizes, key=sizes.__getitem__)
    while large and sizes[large[0]] <= left // len(large):
        key = large.pop(0)
        fitting[key] = members[key]
        left -= sizes[key]
    rest = [key for key in members if key not in fitting]
    for number, key in enumerate(rest):
        share = max(left // (len(rest) - number), min(left, ENOUGH))
        part = _fitted(members[key], share - len(_dumped(key)) - 4)
        if part is not None:
            fitting[key] = part
            left -= len(_dumped({key: part}))
    if not fitting:
        return None
    count = {} if len(fitting) == len(members) else {"[cut]": _count(len(fitting), len(members), "members")}
    return {**{key: fitting[key] for key in members if key in fitting}, **count}
