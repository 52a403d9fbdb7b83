"""Thoughts: extra arguments that every tool is shown with, given to your program and gone before the tool runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from toolsearch.calls import ToolCall
from toolsearch.errors import SetupError
from toolsearch.events.facts import is_reply
from toolsearch.events.requests import CallModel
from toolsearch.protocols import Do, ModelSteps
from toolsearch.schemas.checking import check_schema
from toolsearch.schemas.validation import ArgumentsError, parse_arguments
from toolsearch.support import checks

__all__ = ["thought"]

log = logging.getLogger("toolsearch")


def thought(
    fields: Mapping[str, str | Mapping[str, Any]] | type,
    consumer: Callable[[str, Any, Any], Any],
    *,
    strip: bool = True,
) -> Any:
    """A layer that shows every tool with extra arguments, such as a thought or a confidence, before its own.

    `fields`: from a name to its description (then it is a text) or to its JSON Schema, or a pydantic model or another
    type with fields. `consumer` is called for each call that has such arguments, in the order of the calls, before
    anything is asked or runs: with the tool's id, the arguments as the model wrote them, and the extra ones, as a dict
    or as that type. It may be async; what it raises is logged. Extra arguments that do not fit the type are logged and
    not given on: they never keep a call from running.

    With `strip` they are taken out of the call, so no tool, check, limit or approval sees them. A tool that has an
    argument of that name keeps its own. Searches are left as they are; in the mode "bridge" it is the bridge's tool
    that is shown with them, and the id is the name that is called. Put it after `rules` in the list.
    """
    checks.function("consumer", consumer, "of a tool's id, arguments and extra arguments")
    checks.flag("strip", strip)
    schema, adapter = _read(fields)
    return _Thought(schema, adapter, consumer, strip)


@dataclass(frozen=True)
class _Thought:
    schema: Mapping[str, Any]
    adapter: TypeAdapter[Any] | None
    consumer: Callable[[str, Any, Any], Any]
    strip: bool
    name: str = "thought"

    def around_model(self, request: CallModel) -> ModelSteps:
        if not request.tools:
            return (yield request)
        own = {shown.name.casefold(): shown for shown in request.tools}
        reply = yield replace(request, tools=tuple(self._shown(shown) for shown in request.tools))
        if not is_reply(reply) or not reply.calls:
            return reply
        calls = []
        for call in reply.calls:
            kept, extras, tool_id = self._parted(call, own.get(call.name.casefold()))
            if extras:
                yield from self._tell(tool_id, call, extras)
            calls.append(kept if extras and self.strip else call)
        return replace(reply, calls=tuple(calls))

    def _shown(self, shown: Any) -> Any:
        """The tool with the extra arguments first: a model writes them in this order."""
        if not _takes(shown):
            return shown
        tool, before = shown.tool, shown.tool.input_schema
        own = before.get("properties") or {}
        extra = {name: told for name, told in self.schema["properties"].items() if name not in own}
        required = [name for name in self.schema.get("required", ()) if name in extra]
        schema = {**before, "properties": {**extra, **own}}
        if needed := [*required, *before.get("required", ())]:
            schema["required"] = needed
        if definitions := self.schema.get("$defs"):
            schema["$defs"] = {**before.get("$defs", {}), **definitions}
        return replace(shown, tool=replace(tool, input_schema=schema))

    def _parted(self, call: ToolCall, shown: Any) -> tuple[ToolCall, dict[str, Any], str]:
        """The call without extra arguments, these, and whose call it is."""
        if shown is not None and not _takes(shown):
            return call, {}, ""
        try:
            given = parse_arguments(call.arguments)
        except ArgumentsError:  # whoever settles the call says so
            return call, {}, ""
        own = {} if shown is None else shown.tool.input_schema.get("properties") or {}
        extras = {name: item for name, item in given.items() if name in self.schema["properties"] and name not in own}
        rest: Any = {name: item for name, item in given.items() if name not in extras}
        tool_id = call.name if shown is None else shown.tool.id
        if shown is not None and shown.built_in:
            tool_id = str(given.get("name", call.name))
        if isinstance(call.arguments, str):
            rest = json.dumps(rest, ensure_ascii=False)
        return ToolCall(call.id, call.name, rest), extras, tool_id

    def _tell(self, tool_id: str, call: ToolCall, extras: dict[str, Any]) -> Generator[Do, Any, None]:
        try:
            made = extras if self.adapter is None else self.adapter.validate_python(extras)
        except ValidationError as error:
            log.warning("the extra arguments of a call of %r do not fit: %d problems", tool_id, error.error_count())
            return
        try:
            yield Do(partial(self.consumer, tool_id, call.arguments, made))
        except SetupError:
            raise
        except Exception:
            log.exception("the consumer of extra arguments failed for %r", tool_id)


def _takes(shown: Any) -> bool:
    """Whether a tool gets extra arguments: every one of the program's, and the bridge."""
    return not shown.built_in or set(shown.tool.input_schema.get("properties") or ()) == {"name", "arguments"}


def _read(fields: Any) -> tuple[dict[str, Any], TypeAdapter[Any] | None]:
    """The schema of the extra arguments, and the type they become."""
    if isinstance(fields, Mapping):
        told = {
            name: {"type": "string", "description": item} if isinstance(item, str) else item
            for name, item in fields.items()
        }
        wrong = [name for name, item in told.items() if not isinstance(name, str) or not isinstance(item, Mapping)]
        if wrong or not told:
            what = f"the field {wrong[0]!r}" if wrong else "no field"
            raise SetupError(
                f"thought needs fields, from a name to a description or a JSON Schema; there is {what}: as in "
                '{"innerThought": "Why this call, in one sentence"}'
            )
        made = {"properties": {name: dict(item) for name, item in told.items()}, "required": list(told)}
        for name, item in told.items():
            check_schema(f"fields[{name!r}]", item, made)
        return made, None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(fields)
        schema = _renamed(adapter.json_schema())
    except Exception as error:  # whatever is no type fails in a way of its own
        raise SetupError(
            f"thought needs fields as a mapping or a type with fields, not {checks.shown(fields)}: {error}"
        ) from None
    if not schema.get("properties"):
        raise SetupError(f"thought needs at least one field; {checks.shown(fields)} has none")
    for told in schema["properties"].values():
        told.pop("title", None)  # made of the name: it costs tokens and says nothing new
    return schema, adapter


def _renamed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with names of definitions that no tool's own have."""
    text = json.dumps(schema).replace('"#/$defs/', '"#/$defs/thought.')
    made: dict[str, Any] = json.loads(text)
    if "$defs" in made:
        made["$defs"] = {f"thought.{name}": told for name, told in made["$defs"].items()}
    return made
