"""What a model does if its server refuses a request: it asks again without what was refused, as native delivery is."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, Protocol

from toolsearch.calls import NativeDelivery
from toolsearch.events.facts import Reply
from toolsearch.events.requests import CallModel
from toolsearch.protocols import AsyncReplyStream, ReplyStream
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean
from toolsearch.wires.shared import Pieces, read_answer

__all__ = ["asked", "plain_instead"]

log = logging.getLogger("toolsearch")


class _Model(Protocol):
    name: str
    native: NativeDelivery | None
    not_native: str

    def request_for(self, request: CallModel) -> dict[str, Any]: ...


def asked(
    create: Callable[..., object],
    arguments: JsonObject,
    instead: Callable[[Exception], JsonObject],
    reply_from: Callable[[Any], Reply],
    pieces: Pieces | None,
) -> ReplyStream | AsyncReplyStream:
    """The answer to a request; if it is refused, the answer to what `instead` makes of the error, which may raise it.

    A client may refuse at once, or, if it is async, when its answer is awaited.
    """

    def again(error: Exception) -> object:
        return create(**instead(error))

    try:
        answer = create(**arguments)
    except Exception as error:
        answer = again(error)
    return read_answer(answer, reply_from, pieces, again)


def plain_instead(
    model: _Model, request: CallModel, arguments: JsonObject, error: Exception, words: re.Pattern[str]
) -> dict[str, Any]:
    """The same request without native delivery, if that is what was refused; else raises the error.

    `words` finds what a server names that does not know it: another host of the models, or an older model. From then on
    the model has `native` None, and says why in `not_native`.
    """
    told = clean(str(error))[:300]
    refuses = getattr(error, "status_code", None) in (400, 404, 422)
    if not refuses or not words.search(told):
        raise error
    before, model.native = model.native, None  # it may be None already: another request was refused meanwhile
    if (plain := model.request_for(request)) == arguments:
        model.native = before
        raise error
    model.not_native = f"the provider refused it: {told}"
    log.warning("%r does not deliver natively, and goes on as in the mode 'append': %s", model.name, told)
    return plain
