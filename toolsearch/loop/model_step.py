"""One reply of a model: it is requested through the layers, its calls are decided, and it is recorded."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.errors import SetupError
from toolsearch.events.facts import (
    Compacted,
    Event,
    JudgedCall,
    ModelCalled,
    ModelReplied,
    Reply,
    ReplyDiscarded,
    TextDelta,
    ToolsRevealed,
    ToolsUnloaded,
    Usage,
)
from toolsearch.events.refusals import brought_tools, refused_tools, request_tools
from toolsearch.events.requests import CallModel, mark_shown
from toolsearch.events.stops import no_answer
from toolsearch.loop.activities import FunctionActivity, ModelActivity
from toolsearch.loop.effects import Cancelled, Effects
from toolsearch.loop.layering import Inner, layered
from toolsearch.loop.turn_io import RequestDropped, TurnIO
from toolsearch.protocols import BufferingLayer, ReplyFilter, SchemaModel, StreamingLayer
from toolsearch.support.checks import offers
from toolsearch.support.large_values import is_large
from toolsearch.support.text import LEVELS, is_deeper, kept, reason_of

__all__ = ["ModelStep"]

log = logging.getLogger("toolsearch")

_Decided = tuple[tuple[JudgedCall, ...], object]
DEEPEST_RAW = LEVELS + 16  # levels of a provider's own message, which has the arguments of calls inside


@dataclass(slots=True)
class ModelStep:
    """Gets one reply. With `may_restart`, a compaction before the model was called makes the request anew.

    With `may_set_aside`, so does the refusal of a tool by the provider: the session hides the tool from then on.
    """

    io: TurnIO
    own_calls: set[str]  # ids of the calls whose reply came in this process
    may_restart: bool
    may_set_aside: bool = False
    has_set_aside: bool = False  # whether the provider refused a tool
    is_shown: bool = False  # whether pieces of the reply that is coming in were shown
    is_asked: bool = False  # whether the model was called for the reply
    raw_contents: tuple[object, ...] | None = None  # of the last reply that has a provider's own message (`raw`)

    def run(self, command: CallModel) -> Effects[bool]:
        """Gets the reply and records it; returns False if the request has to be made anew."""
        io, parts = self.io, self.io.parts
        system = parts.system_text(io.conversation.session.instructions())
        takes_schema = offers(parts.model, SchemaModel) and parts.model.takes_schema is True
        request = replace(command, system=system, caller=io.caller, takes_schema=takes_schema, model=parts.model_name)
        request = request.without(refused) if (refused := io.conversation.session.refused) else request
        around: Inner[CallModel] = layered(parts.layers, "around_model")
        try:
            reply = yield from io.interpret(around(request), self._ask_model, self._after_record)
            if not isinstance(reply, Reply):
                raise SetupError(f"the model, or a layer around it, returned {reply!r} instead of a Reply")
        except RequestDropped:
            return False
        except Exception as error:
            yield from self._discard(type(error).__name__)
            if self.may_set_aside and not self.is_shown and (names := self._refused_tools(error, request)):
                yield from self._set_aside(names, error)
                if self.has_set_aside:
                    return False
            raise
        yield from self._record(reply)
        return True

    def _refused_tools(self, error: Exception, request: CallModel) -> list[str]:
        """The names of the tools that the provider refuses, by its error and the tools that the request had."""
        names = [shown.name for shown in (*request.tools, *request.deferred)]
        request_for = getattr(self.io.parts.model, "request_for", None)
        arguments: object = None
        with suppress(Exception):
            arguments = request_for(request) if callable(request_for) else None
        sent = request_tools(arguments) or [{"name": name} for name in names]
        return refused_tools(error, sent, names) or brought_tools(error, arguments)

    def _set_aside(self, names: list[str], error: Exception) -> Effects[None]:
        """Hides these tools from the conversation, if there are any of the session's among them, and says so."""
        session = self.io.conversation.session
        gone = session.set_aside(names, reason_of(error, 300))
        if gone:
            self.has_set_aside = True
            log.warning(
                "the provider refuses %s, which is set aside: %s", ", ".join(map(repr, gone)), reason_of(error, 300)
            )
            yield from self.io.record(ToolsUnloaded(gone, tuple(session.notices()), session.export()))

    def _record(self, reply: Reply) -> Effects[None]:
        conversation = self.io.conversation
        calls, kept_raw = yield from self._decide(reply)
        self.own_calls |= {call.id for call in calls}
        # A reply that a layer changed must not be sent back as the provider's own, unchanged message.
        # Nor can one whose calls are not those that were decided, or one too deep to be read from a journal.
        unchanged = _contents(reply) == self.raw_contents and len(calls) == len(reply.calls)
        raw = kept_raw if unchanged and not is_deeper(reply.raw, DEEPEST_RAW) else None
        if conversation.asks_again(reply):
            yield from self._discard(no_answer(reply))
        replied = ModelReplied(
            reply.text or "", calls, reply.reasoning or "", raw, reply.wire, reply.model, reply.stop, reply.value
        )
        if revealed := tuple(dict.fromkeys(i for call in calls for i in call.reveal)):
            conversation.session.load(revealed)
            # Stored together: an answer that says "it is loaded now" is part of the reply.
            yield from self.io.record(replied, ToolsRevealed(revealed, conversation.session.export()))
        else:
            yield from self.io.record(replied)

    def _decide(self, reply: Reply) -> Effects[_Decided]:
        """What to do with each call, and the provider's own message. In the background, if the arguments are large."""

        def decide() -> tuple[JudgedCall, ...]:
            return self.io.conversation.decide_calls(reply.calls, reply.stop)

        if not any(is_large(call.arguments) for call in reply.calls):
            return decide(), reply.raw
        decided: Any = yield from self.io.run_activity(FunctionActivity(lambda: (decide(), _kept_raw(reply.raw))))
        return decided[0], decided[1]

    def _after_record(self, event: Event) -> None:
        if isinstance(event, Compacted) and self.may_restart and not self.is_asked:
            raise RequestDropped

    # -- one call of the model -----------------------------------------------------------------------------------

    def _ask_model(self, request: CallModel, seconds: float | None) -> Effects[object]:
        """Calls the model once; the cost is recorded even if the call fails."""
        is_helper = request.purpose != "chat"  # the user does not see a helper's reply
        if not is_helper:
            yield from self._discard("refused")
            self.is_asked = True
        began, stop = time.monotonic(), threading.Event()
        layers = self.io.parts.layers
        hidden = is_helper or any(offers(each, BufferingLayer) and each.buffers for each in layers)
        filters = [each.pieces() for each in reversed(layers) if offers(each, StreamingLayer)] if not hidden else []

        def show_piece(delta: TextDelta) -> Effects[None]:
            return self._show(_filtered(filters, [delta]))

        try:
            activity = ModelActivity(self.io.parts.model, request, stop)
            reply: object = yield from self.io.run_activity(activity, seconds, None if hidden else show_piece)
            if not hidden:
                yield from self._show(_filtered(filters, [], is_last=True))
        except GeneratorExit:
            raise
        except BaseException as error:
            stop.set()
            yield from self._fail(request, error, began)
            raise
        yield from self._bill(request, reply, "", began)
        if isinstance(reply, Reply) and reply.raw is not None:
            self.raw_contents = _contents(reply)
        return reply

    def _fail(self, request: CallModel, error: BaseException, began: float) -> Effects[None]:
        is_helper, is_cancelled = request.purpose != "chat", isinstance(error, Cancelled)
        mark_shown(error, self.is_shown and not is_helper)
        why = "cancelled" if is_cancelled else reason_of(error, 500)
        yield from self._bill(request, None, why, began)
        if not is_helper:
            yield from self._discard("cancelled" if is_cancelled else type(error).__name__)

    def _show(self, deltas: Iterable[TextDelta]) -> Effects[None]:
        for delta in deltas:
            self.is_shown = True
            yield from self.io.show(delta)

    def _discard(self, reason: str) -> Effects[None]:
        """Shows `ReplyDiscarded` if pieces of the reply were shown."""
        if self.is_shown:
            self.is_shown = False
            yield from self.io.show(ReplyDiscarded(reason))

    def _bill(self, request: CallModel, reply: object, error: str, began: float) -> Effects[None]:
        usage = replace(reply.usage, calls=1) if isinstance(reply, Reply) else Usage(calls=1)
        model = reply.model if isinstance(reply, Reply) else self.io.parts.model_name
        seconds = time.monotonic() - began
        yield from self.io.record(
            ModelCalled(request.purpose, str(model), usage, self.io.actor, error, seconds, self.io.now())
        )


def _kept_raw(raw: object) -> object:
    """A provider's own message as the journal keeps it; None for one that is too deep, which nobody could send back."""
    return None if is_deeper(raw, DEEPEST_RAW) else kept(raw)


def _filtered(filters: Iterable[ReplyFilter], deltas: list[TextDelta], *, is_last: bool = False) -> list[TextDelta]:
    """The deltas that the layers leave, the innermost layer first; with `is_last` also those they held back."""
    for each in filters:
        deltas = [left for delta in deltas for left in each.take(delta)] + (list(each.rest()) if is_last else [])
    return deltas


def _contents(reply: Reply) -> tuple[object, ...]:
    return reply.text, reply.reasoning, tuple(call.id for call in reply.calls)
