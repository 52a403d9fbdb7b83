"""Whether an endpoint reads tools: two or three short requests, before hours are spent on one that does not.

The same message is sent without and with a tool that it asks to call. A model that calls it has read it. If it does
not, the tokens that the provider counted for the two requests tell whether the tool reached the model at all: some
servers drop tools without a word, when the template of their model has no place for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Literal

from toolsearch import CallModel, Reply, Tool, UserSaid
from toolsearch.catalog import Shown
from toolsearch.protocols import Model, Sleep
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted
from toolsearch_evals.agent.endpoint import Endpoint, RequestMeter, retrying, whole_reply, without_key
from toolsearch_evals.token_usage import TokenMeter

__all__ = ["ADAPTERS", "Adapter", "ProbeResult", "probe"]

Adapter = Literal["tools", "schema", "json"]
ADAPTERS: tuple[Adapter, ...] = ("tools", "schema", "json")
Verdict = Literal["reads tools", "ignores tools", "drops tools", "refuses tools", "unknown"]

CODE = "4711"
ASKED = f"Call the tool record_code with the code {CODE}. Do not answer in words."
_TOOL = Tool(
    id="record_code",
    name="record_code",
    description="Records a code that the user says, in the register of codes. Use it whenever the user names a code: "
    "the register is what the people at the counter look at, and a code that is not in it is not known to them.",
    input_schema={
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The code, as the user says it, digits only"}},
        "required": ["code"],
    },
)
_FORM: JsonObject = {
    "type": "object",
    "properties": {"code": {"type": "string", "enum": [CODE]}, "kind": {"type": "string", "enum": ["register"]}},
    "required": ["code", "kind"],
}
DROPPED_BELOW = 0.25  # of the tool's tokens as we count them: an endpoint that counts fewer has not read it


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What an endpoint did. Tokens are of the prompt, without and with the tool, None where it does not say them."""

    verdict: Verdict
    adapter: Adapter
    sentence: str
    billed_without: int | None = None
    billed_with: int | None = None
    counted_without: int = 0
    counted_with: int = 0

    def as_json(self) -> JsonObject:
        """For a run's manifest and a report."""
        tokens = {
            "billed": [self.billed_without, self.billed_with],
            "counted": [self.counted_without, self.counted_with],
        }
        return {"verdict": self.verdict, "adapter": self.adapter, "sentence": self.sentence, **tokens}


def probe(endpoint: Endpoint, client: Any, tokens: TokenMeter) -> ProbeResult:
    """Asks the endpoint. Raises what the client raises if it does not answer at all, such as for a wrong key."""
    meter = RequestMeter(tokens)
    model = endpoint.asked_with(client, meter)

    def ask(**more: Any) -> Reply:
        meter.begin()
        return _reply(model, CallModel((UserSaid(ASKED),), **more))

    without = ask()
    try:
        given = ask(tools=(Shown(_TOOL.name, _TOOL),))
    except Exception as error:
        if _status(error) not in (400, 404, 422, 500, 501):
            raise
        why = redacted(without_key(_short(error), endpoint.key()))
        sentence = f"This endpoint refuses tools ({why}); they are sent as text."
        return ProbeResult("refuses tools", _json_way(endpoint, ask), sentence, _billed(without))
    counted = [sent.counted for sent in meter.sent[:2]]
    billed = (_billed(without), _billed(given))
    verdict, sentence = _judged(given, billed, counted[1] - counted[0])
    native = verdict in ("reads tools", "ignores tools")
    adapter: Adapter = "tools" if native else _json_way(endpoint, ask)
    return ProbeResult(verdict, adapter, sentence, *billed, *counted)


def _judged(given: Reply, billed: tuple[int | None, int | None], counted: int) -> tuple[Verdict, str]:
    """The verdict and why, from the reply to the request with a tool of `counted` tokens."""
    if any(call.name == _TOOL.name for call in given.calls):
        right = any(CODE in str(call.arguments) for call in given.calls)
        return "reads tools", "This endpoint reads tools" + ("." if right else ", but the model called one wrongly.")
    without, with_tool = billed
    if without is None or with_tool is None:
        return (
            "unknown",
            "The model called no tool, and the endpoint does not say what it read; tools are sent as text.",
        )
    more = with_tool - without
    said = f"with a tool of about {counted} tokens its prompt is {more} tokens longer"
    if more < DROPPED_BELOW * counted:
        return "drops tools", f"This endpoint drops tools: {said}, and the model called none; they are sent as text."
    return "ignores tools", f"This endpoint reads tools ({said}), but the model did not call the one it was asked to."


def _json_way(endpoint: Endpoint, ask: Callable[..., Reply]) -> Adapter:
    """Whether the endpoint holds a reply to a schema, or has to be asked for JSON in words alone."""
    if endpoint.wire != "openai_chat":
        return "json"
    try:
        text = ask(schema=_FORM).text
    except Exception:  # it refuses the option
        return "json"
    return "schema" if CODE in text and '"kind"' in text else "json"


def _reply(model: Model, request: CallModel) -> Reply:
    """One reply, through the layer `retry` as an agent would ask for it."""
    layer: Any = retrying()
    steps: Generator[CallModel | Sleep, Reply | None, Reply] = layer.around_model(request)
    step = next(steps)
    while True:
        try:
            if isinstance(step, Sleep):
                time.sleep(step.seconds)
                step = next(steps)
                continue
            try:
                answered = whole_reply(model(step))
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(answered)
        except StopIteration as end:
            reply: Reply = end.value
            return reply


def _billed(reply: Reply) -> int | None:
    return reply.usage.input_tokens or None


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _short(error: BaseException) -> str:
    return f"{_status(error)}: {' '.join(str(error).split())[:160]}"
