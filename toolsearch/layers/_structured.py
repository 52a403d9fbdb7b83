"""Structured answers: the final answer as a value of a type or of a JSON Schema, after a few repairs if need be."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from toolsearch.errors import AnswerError, SetupError
from toolsearch.events.facts import ModelReplied, Reply, UserSaid, is_reply
from toolsearch.events.requests import CallModel, Finished, Run
from toolsearch.events.stops import REASONS, no_answer
from toolsearch.protocols import Layer, ModelSteps, RunSteps
from toolsearch.schemas.checking import check_schema
from toolsearch.schemas.json_values import read_json, refuse_constant
from toolsearch.schemas.validation import ArgumentsError, validate_value
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import LEVELS, clean_json, is_deeper

__all__ = ["structured"]

PURPOSE = "structured_output"
ASK = "Give your final answer as JSON that fits this JSON Schema, and nothing else, no code fence either: "
SEPARATE = "Give your answer above as JSON, and nothing else."
PROBLEMS = 20  # that are reported of one attempt
NOT_ASKED = ("refused", "filtered", "paused", "context overflow")  # the reasons for which no answer is demanded
_BY_MODEL = frozenset({"answered", *REASONS})  # the reasons of turns that end with a reply of the model
LOOKS = 20  # places in a text where an object may begin

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad"
# A block at the beginning, with its opening tag or without it; the end of a tag that is not its own is a thought.
_THOUGHTS = re.compile(
    rf"\s*(?:<(?P<name>{_NAMES})>.*?</(?P=name)>|\[THINK\].*?\[/THINK\]|(?:(?!</?(?:{_NAMES})>).)*</(?:{_NAMES})>)\s*",
    re.DOTALL | re.IGNORECASE,
)
_FENCE = re.compile(r"(`{3,}|~{3,})[^\n`]*\n(.*?)\n?[ \t]*\1", re.DOTALL)


def structured(wanted: object, repairs: int = 1, *, native: bool = True, separate: bool = False) -> Layer:
    """A layer that makes the final answer a value: `Finished.value`, of the type `wanted` or as JSON of that schema.

    `wanted` is anything pydantic can validate (a model, a dataclass, `list[int]`, …) or a JSON Schema as a dict. An
    answer that does not fit is shown to the model with all problems so far, up to `repairs` times, in a call without
    tools that is billed as "structured_output"; then `AnswerError` is raised. Replies with calls pass as they are.

    With `native` the schema goes into the request if the model enforces it itself (`openai_chat.model` does), otherwise
    into the system text. With `separate` the model first answers in its own words, which stay the text and are shown as
    they come in; a further call, billed in the same way, asks for the value. Without it nothing of a reply is shown
    before it is whole.
    """
    checks.whole("repairs", repairs, 0)
    checks.flag("native", native)
    checks.flag("separate", separate)
    return _Structured(_shape(wanted), repairs, native, separate)


@dataclass(frozen=True)
class _Structured:
    shape: _Shape
    repairs: int
    native: bool
    separate: bool
    name: str = "structured"

    @property
    def buffers(self) -> bool:
        return not self.separate

    def around_run(self, run: Run) -> RunSteps:
        """The journal holds JSON; the program that called gets the type."""
        result = yield run
        if isinstance(result, Finished) and result.reason in _BY_MODEL and result.value is not None:
            return replace(result, value=self.shape.value_of(result.value))
        return result

    def around_model(self, request: CallModel) -> ModelSteps:
        if request.purpose != "chat":
            return (yield request)
        with_schema = self._with_schema(request)
        first = yield request if self.separate else with_schema
        if not is_reply(first) or first.calls or first.stop == "ended" or no_answer(first) in NOT_ASKED:
            return first
        reply = first
        if self.separate:
            reply = yield with_schema.helper(PURPOSE, ModelReplied(first.text), UserSaid(SEPARATE))
        problems: list[str] = []
        attempt = 1
        while isinstance(read := self.shape.read(reply), _Unfit):
            problems += [f"attempt {attempt}: {problem}" for problem in read.problems]
            if attempt > self.repairs:
                raise AnswerError(problems, _text(reply), attempt)
            reply = yield with_schema.helper(PURPOSE, ModelReplied(_text(reply)), UserSaid(_complaint(problems)))
            attempt += 1
        return replace(first if self.separate else reply, value=read.value)

    def _with_schema(self, request: CallModel) -> CallModel:
        """The request, with the schema of the answer."""
        if self.native and request.takes_schema:
            return replace(request, schema=self.shape.schema)
        instruction = ASK + json.dumps(self.shape.schema, ensure_ascii=False)
        return replace(request, system="\n\n".join(filter(None, (request.system, instruction))))


def _text(reply: object) -> str:
    return reply.text if isinstance(reply, Reply) else ""


def _complaint(problems: list[str]) -> str:
    lines = "\n".join(f"- {problem}" for problem in problems)
    return f"That answer cannot be used. The problems so far:\n{lines}\nGive the whole answer again as JSON, corrected."


# -- what an answer must be --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fit:
    value: object


@dataclass(frozen=True, slots=True)
class _Unfit:
    problems: list[str]


@dataclass(frozen=True)
class _Shape:
    """What an answer must be. `schema` is that of an object, which providers require.

    If `wrapped`, the wanted value is not an object, and is the member `value` of one.
    """

    own: JsonObject
    schema: JsonObject
    wrapped: bool
    adapter: TypeAdapter[Any] | None

    def read(self, reply: object) -> _Fit | _Unfit:
        """The value of a reply as JSON, or what is wrong with it; without the thoughts before it if need be."""
        if not isinstance(reply, Reply) or reply.calls:
            return _Unfit(["it must be an answer, not a call; there are no tools now"])
        read = self._read(reply)
        answer = _without_thoughts(reply.text) if isinstance(read, _Unfit) else reply.text
        return read if answer == reply.text else self._read(replace(reply, text=answer))

    def _read(self, reply: Reply) -> _Fit | _Unfit:
        try:
            value = clean_json(_json_in(reply.text))
        except (ValueError, RecursionError) as error:
            cut = " (it was cut off: answer more briefly)" if no_answer(reply) == "cut off" else ""
            return _Unfit([f"it is not valid JSON: {error}{cut}"])
        if is_deeper(value, LEVELS):
            return _Unfit([f"it is nested too deeply, more than {LEVELS} levels"])
        if self.wrapped and isinstance(value, dict) and value.keys() == {"value"}:
            value = value["value"]
        try:
            if self.adapter is None:
                return _Fit(validate_value(self.own, value, "the fields", "field"))
            self.value_of(value)
        except RecursionError:
            return _Unfit(["it is nested too deeply"])
        except ArgumentsError as error:
            return _Unfit(error.problems[:PROBLEMS])
        except ValidationError as error:
            return _Unfit(
                [_problem(each) for each in error.errors(include_url=False, include_context=False)[:PROBLEMS]]
            )
        return _Fit(value)

    def value_of(self, value: object) -> object:
        """JSON as a value of the type, if one is wanted."""
        return value if self.adapter is None else self.adapter.validate_json(json.dumps(value))


def _problem(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"]))
    return f"{place!r}: {error['msg']}" if place else str(error["msg"])


def _shape(wanted: Any) -> _Shape:
    adapter: TypeAdapter[Any] | None = None
    if isinstance(wanted, Mapping):
        check_schema("wanted", wanted)
        own = dict(wanted)
        if "type" not in own and "properties" in own:
            own = {"type": "object", **own}
    else:
        try:
            adapter = TypeAdapter(wanted)
            own = adapter.json_schema()
        except Exception as error:  # what is not a type fails in a way of its own
            first = str(error).partition("\n")[0]
            raise SetupError(
                f"a structured answer needs a type or a JSON Schema as a dict, not {checks.shown(wanted)}: {first}"
            ) from None
    if own.get("type") == "object":
        return _Shape(own, own, False, adapter)
    definitions = {key: own[key] for key in ("$defs", "definitions") if key in own}
    inner = {key: value for key, value in own.items() if key not in definitions}
    outer = {"type": "object", "properties": {"value": inner}, "required": ["value"], "additionalProperties": False}
    return _Shape(own, {**outer, **definitions}, True, adapter)


# -- finding the JSON in a text ----------------------------------------------------------------------------------


def _json_in(text: str) -> object:
    """The JSON that a text is, that a fence around the whole text holds, or the one object among words.

    Raises `ValueError` if there is no JSON, or more than one object.
    """
    bare = text.strip()
    try:
        return read_json(bare)
    except ValueError as error:
        first = error
    if (fence := _FENCE.fullmatch(bare)) is not None:
        return read_json(fence[2].strip())
    objects = _objects(bare)
    if len(objects) == 1:
        return objects[0]
    raise ValueError(f"it holds {len(objects)} objects" if objects else first)


def _without_thoughts(text: str) -> str:
    """The text behind the thoughts that a model wrote first, as some servers leave them there.

    Where the template of a chat opens the block itself, only its end is in the text.
    """
    at = 0
    while (block := _THOUGHTS.match(text, at)) is not None:
        at = block.end()
    return text[at:] if text[at:].strip() else text


def _objects(text: str) -> list[JsonObject]:
    """The objects in a text, except those inside another one."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    objects: list[JsonObject] = []
    at = text.find("{")
    for _ in range(LOOKS):
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(text, at)
            objects.append(value)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)
    return objects
