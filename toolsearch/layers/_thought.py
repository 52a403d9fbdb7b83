"""Thoughts: every tool is shown with extra arguments, which your program gets and which are gone before it runs."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, overload

from pydantic import TypeAdapter, ValidationError

from toolsearch.calls import ToolCall
from toolsearch.catalog.tools import Shown
from toolsearch.errors import SetupError
from toolsearch.events.facts import is_reply
from toolsearch.events.requests import CallModel
from toolsearch.layers._shared import result_of
from toolsearch.protocols import Do, Layer, ModelSteps
from toolsearch.schemas.checking import check_schema
from toolsearch.schemas.validation import ArgumentsError, parse_arguments
from toolsearch.support import checks
from toolsearch.support.bounded_cache import BoundedCache
from toolsearch.support.json_types import JsonObject

__all__ = ["thought"]

log = logging.getLogger("toolsearch")

MOST_KEPT = 20_000  # tools

T = TypeVar("T")
Written: TypeAlias = str | JsonObject | None  # the arguments of a call as the model wrote them


@overload
def thought(
    fields: Mapping[str, str | JsonObject],
    consumer: Callable[[str, Written, dict[str, Any]], object],
    *,
    strip: bool = ...,
) -> Layer: ...
@overload
def thought(fields: type[T], consumer: Callable[[str, Written, T], object], *, strip: bool = ...) -> Layer: ...
def thought(
    fields: Mapping[str, str | JsonObject] | type,
    consumer: Callable[[str, Written, Any], object],
    *,
    strip: bool = True,
) -> Layer:
    """A layer that shows every tool with extra arguments, such as a thought or a confidence, before its own.

    `fields`: a mapping from a name to its description (then it is a text) or to its JSON Schema; or a pydantic model or
    another type with fields. `consumer` is called for each call that has such arguments, in the order of the calls,
    before anybody is asked and anything runs: with the tool's id, the arguments as the model wrote them, and the extra
    ones, as a dict or as that type. It may be async; what it raises is logged. Extra arguments that do not fit the type
    are logged and not passed on. They never keep a call from running.

    With `strip` they are removed from the call, so no tool, check, limit or approval sees them. A tool that has an
    argument of the same name keeps its own. Searches are left as they are. In the mode "bridge" the bridge's tool gets
    the extra arguments, and the id is the name that is called. Put it after `rules` in the list.
    """
    checks.function("consumer", consumer, "of a tool's id, arguments and extra arguments")
    checks.flag("strip", strip)
    schema, adapter = _read(fields)
    return _Thought(schema, adapter, consumer, strip)


@dataclass(frozen=True)
class _Thought:
    schema: JsonObject
    adapter: TypeAdapter[Any] | None
    consumer: Callable[[str, Written, Any], object]
    strip: bool
    name: str = "thought"
    made: BoundedCache[Shown] = dataclasses.field(
        default_factory=lambda: BoundedCache(MOST_KEPT), repr=False, compare=False
    )

    def around_model(self, request: CallModel) -> ModelSteps:
        if not request.tools:
            return (yield request)
        own = {shown.name.casefold(): shown for shown in request.tools}
        reply = yield request.with_tools(self._with_extras)
        if not is_reply(reply) or not reply.calls:
            return reply
        calls = []
        for call in reply.calls:
            bare, extras, tool_id = self._split(call, own.get(call.name.casefold()))
            if extras:
                yield from self._pass_on(tool_id, call, extras)
            calls.append(bare if extras and self.strip else call)
        return replace(reply, calls=tuple(calls))

    def _with_extras(self, shown: Shown) -> Shown:
        """The tool with the extra arguments. It is kept, because every request may have all tools, deferred."""
        if not _takes_extras(shown):
            return shown
        key = (shown.tool.digest, shown.name, shown.delivered)
        return self.made.get(key) or self.made.put(key, self._extended(shown), 1)

    def _extended(self, shown: Shown) -> Shown:
        """The tool with the extra arguments first: a model writes them in this order."""
        tool, before = shown.tool, shown.tool.input_schema
        own = before.get("properties") or {}
        extras = {name: field for name, field in self.schema["properties"].items() if name not in own}
        required = [name for name in self.schema.get("required", ()) if name in extras]
        schema = {**before, "properties": {**extras, **own}}
        if needed := [*required, *before.get("required", ())]:
            schema["required"] = needed
        if definitions := self.schema.get("$defs"):
            schema["$defs"] = {**before.get("$defs", {}), **definitions}
        return replace(shown, tool=replace(tool, input_schema=schema))

    def _split(self, call: ToolCall, shown: Shown | None) -> tuple[ToolCall, JsonObject, str]:
        """The call without the extra arguments, the extra arguments, and the id of the tool."""
        if shown is not None and not _takes_extras(shown):
            return call, {}, ""
        try:
            arguments = parse_arguments(call.arguments)
        except ArgumentsError:  # the session answers the call and says so
            return call, {}, ""
        own = {} if shown is None else shown.tool.input_schema.get("properties") or {}
        names = self.schema["properties"].keys() - own.keys()
        extras = {name: item for name, item in arguments.items() if name in names}
        rest = {name: item for name, item in arguments.items() if name not in names}
        tool_id = call.name if shown is None else shown.tool.id
        if shown is not None and shown.built_in:
            tool_id = str(arguments.get("name", call.name))
        written = json.dumps(rest, ensure_ascii=False) if isinstance(call.arguments, str) else rest
        return ToolCall(call.id, call.name, written), extras, tool_id

    def _pass_on(self, tool_id: str, call: ToolCall, extras: JsonObject) -> Generator[Do, object, None]:
        try:
            thoughts = extras if self.adapter is None else self.adapter.validate_python(extras)
        except ValidationError as error:
            log.warning("the extra arguments of a call of %r do not fit: %d problems", tool_id, error.error_count())
            return
        try:
            yield from result_of(partial(self.consumer, tool_id, call.arguments, thoughts))
        except SetupError:
            raise
        except Exception:
            log.exception("the consumer of extra arguments failed for %r", tool_id)


def _takes_extras(shown: Shown) -> bool:
    """Whether a tool gets extra arguments: every tool of the program, and the bridge."""
    return not shown.built_in or set(shown.tool.input_schema.get("properties") or ()) == {"name", "arguments"}


def _read(fields: object) -> tuple[JsonObject, TypeAdapter[Any] | None]:
    """The schema of the extra arguments, and the type they become."""
    return (_schema_of_names(fields), None) if isinstance(fields, Mapping) else _schema_of_type(fields)


def _schema_of_names(fields: Mapping[object, object]) -> JsonObject:
    schemas = {
        name: {"type": "string", "description": field} if isinstance(field, str) else field
        for name, field in fields.items()
    }
    wrong = [name for name, field in schemas.items() if not isinstance(name, str) or not isinstance(field, Mapping)]
    if wrong or not schemas:
        what = f"the field {wrong[0]!r}" if wrong else "no field"
        raise SetupError(
            f"thought needs fields, from a name to a description or a JSON Schema; there is {what}: as in "
            '{"innerThought": "Why this call, in one sentence"}'
        )
    properties = {name: dict(field) for name, field in schemas.items() if isinstance(field, Mapping)}
    schema = {"properties": properties, "required": list(properties)}
    for name, field in properties.items():
        check_schema(f"fields[{name!r}]", field, schema)
    return schema


def _schema_of_type(fields: Any) -> tuple[JsonObject, TypeAdapter[Any]]:
    try:
        adapter = TypeAdapter(fields)
        schema = _renamed(adapter.json_schema())
    except Exception as error:  # what is not a type fails in a way of its own
        raise SetupError(
            f"thought needs fields as a mapping or a type with fields, not {checks.shown(fields)}: {error}"
        ) from None
    if not schema.get("properties"):
        raise SetupError(f"thought needs at least one field; {checks.shown(fields)} has none")
    for field in schema["properties"].values():
        field.pop("title", None)  # made of the name: it costs tokens and says nothing new
    return schema, adapter


def _renamed(schema: JsonObject) -> dict[str, Any]:
    """The schema with names of definitions that no tool uses for its own."""
    text = json.dumps(schema).replace('"#/$defs/', '"#/$defs/thought.')
    renamed: dict[str, Any] = json.loads(text)
    if "$defs" in renamed:
        renamed["$defs"] = {f"thought.{name}": definition for name, definition in renamed["$defs"].items()}
    return renamed
