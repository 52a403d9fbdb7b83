"""Logs by the standard library: a line per round and one at the end of a run, with ids on every record, no secrets.

At INFO there are names, statuses, times and tokens. Arguments and results are at DEBUG, redacted and cut. `log_model`
logs what a model is sent and what it replies, at a level of your choice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator

from toolsearch.calls import ToolCall, ToolResult
from toolsearch.events.facts import (
    Answers,
    Event,
    JudgedCall,
    Message,
    ModelCalled,
    ModelReplied,
    Note,
    Reply,
    ToolReturned,
    ToolStarted,
    ToolWaiting,
    UserSaid,
    is_reply,
)
from toolsearch.events.requests import CallModel, Finished, Paused, Round, Run
from toolsearch.events.turn_view import TurnView
from toolsearch.protocols import AnswersById, Layer, ModelSteps, RoundSteps, RunSteps
from toolsearch.support import checks
from toolsearch.support.context import scope
from toolsearch.support.redaction import excerpt, redacted, visible
from toolsearch.support.text import counted, legal_name, text_of

__all__ = ["LogFilter", "log_model", "logs"]

log = logging.getLogger("toolsearch")


class LogFilter(logging.Filter):
    """Puts the ids `conversation` and `call` on each record ("-": none), and redacts its text and its traceback.

    The logger "toolsearch" has one. For lines of your own, such as those of tools, add one to a handler or a logger: it
    works in every thread and task of a turn. `redact` takes a text and returns what may be seen of it.
    """

    def __init__(self, redact: Callable[[str], str] = redacted) -> None:
        super().__init__()
        checks.function("redact", redact, "from a text to what may be seen of it")
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "conversation"):  # otherwise another filter has already seen it, where it was made
            now = scope()
            record.conversation, record.call = now.conversation or "-", now.call or "-"
        try:
            message = record.getMessage()
            if (redacted_message := self._redact(message)) != message:
                record.msg, record.args = redacted_message, ()
            if record.exc_info and record.exc_info[0] is not None:
                record.exc_text = record.exc_text or logging.Formatter().formatException(record.exc_info)
            if record.exc_text:
                record.exc_text = self._redact(record.exc_text)
        except Exception as error:  # a log line must not end a turn
            record.msg, record.args = f"(a line that could not be redacted: {type(error).__name__})", ()
            record.exc_info = record.exc_text = None
        return True


_FILTER = LogFilter()


def logs(*, characters: int = 400) -> Layer:
    """A layer that logs each round and the end of each run to the logger "toolsearch", at INFO.

    At DEBUG it adds arguments and results, each cut to that many `characters`.
    """
    checks.whole("characters", characters)
    log.addFilter(_FILTER)
    return _Logs(characters)


class _Logs:
    name = "logs"
    gate = False

    def __init__(self, characters: int) -> None:
        self.characters = characters

    def around_run(self, run: Run) -> RunSteps:
        began = time.monotonic()
        try:
            result = yield run
        except Exception as error:
            log.warning("run failed after %.2f s: %s", time.monotonic() - began, type(error).__name__)
            raise
        except GeneratorExit:
            log.info("run stopped after %.2f s", time.monotonic() - began)
            raise
        seconds = time.monotonic() - began
        if isinstance(result, Paused):
            waiting = ", ".join(_name(each.call) for each in result.waiting)
            log.info("run paused after %.2f s: waiting for %s", seconds, waiting)
        elif isinstance(result, Finished):
            used = f"{result.usage.input_tokens:,} + {result.usage.output_tokens:,} tokens"
            log.info("run ended after %.2f s: %s; %s in this turn", seconds, result.reason, used)
        return result

    def around_round(self, request: Round) -> RoundSteps:
        if not log.isEnabledFor(logging.INFO):
            return (yield request)
        if log.isEnabledFor(logging.DEBUG):
            for call in request.calls:
                arguments = text_of(call.shown_arguments)
                log.debug("call %s %s: %s", call.id, _name(call), excerpt(arguments, self.characters))
        began = time.monotonic()
        answers: AnswersById = yield request
        seconds = time.monotonic() - began
        statuses = ", ".join(f"{_name(call)} {_status(answers.get(call.id))}" for call in request.calls)
        log.info("round %d: %s; %.2f s%s", request.turn.rounds, statuses, seconds, _cost_of_reply(request.turn))
        if log.isEnabledFor(logging.DEBUG):
            for call in request.calls:
                if isinstance(answer := answers.get(call.id), ToolResult):
                    log.debug("answer %s %s: %s", call.id, _name(call), excerpt(answer.content, self.characters))
        return answers

    def __repr__(self) -> str:
        return f"logs(characters={self.characters})"


def _name(call: JudgedCall) -> str:
    """The tool's id, or what a model called it, on one line."""
    return visible(call.tool).replace("\n", " ") or legal_name(call.name)


def _status(answer: object) -> str:
    if isinstance(answer, ToolWaiting):
        return "waits"
    return answer.status if isinstance(answer, ToolResult) else "-"


def _cost_of_reply(turn: TurnView) -> str:
    """The cost of the reply that began this round; empty if an interrupted round goes on."""
    called = [fact for fact in _latest(turn) if isinstance(fact, ModelCalled)]
    return "".join(
        f"; {fact.model or 'model'} {fact.seconds:.2f} s, "
        f"{fact.usage.input_tokens:,} + {fact.usage.output_tokens:,} tokens"
        for fact in reversed(called)
    )


def _latest(turn: TurnView) -> Iterator[Event]:
    """The facts since the last round, the newest first; none if calls of this round were worked on before."""
    replied = False
    for fact in reversed(turn.facts):
        if isinstance(fact, ToolStarted | ToolReturned | ToolWaiting) or (replied and isinstance(fact, ModelReplied)):
            return
        replied = replied or isinstance(fact, ModelReplied)
        yield fact


# -- what goes to a model and comes from it --------------------------------------------------------------------------


def log_model(*, level: int = logging.DEBUG, characters: int = 400, redact: Callable[[str], str] = redacted) -> Layer:
    """A layer that logs each request to the model and each reply, to the logger "toolsearch" at that `level`.

    Every text of a request and a reply is redacted and cut to that many `characters`. `redact` takes a text and returns
    what may be seen of it. The layer sees what the layers outside it leave, so put it last in the list.
    """
    checks.instance("level", level, int, "a number, as logging.INFO is")
    checks.whole("level", level)
    checks.whole("characters", characters)
    checks.function("redact", redact, "from a text to what may be seen of it")
    log.addFilter(_FILTER)
    return _ModelLog(level, characters, redact)


class _ModelLog:
    name = "log_model"
    gate = False

    def __init__(self, level: int, characters: int, redact: Callable[[str], str]) -> None:
        self.level, self.characters = level, characters
        self._redact = redact

    def around_model(self, request: CallModel) -> ModelSteps:
        if not log.isEnabledFor(self.level):
            return (yield request)
        number = f"{len(request.turn.replies) + 1}"
        if request.purpose != "chat":
            number += f" ({request.purpose})"
        names = ", ".join(tool.name for tool in request.tools)
        tools = f"{counted(len(request.tools), 'tool')}: {names}" if names else "no tools"
        messages = counted(len(request.transcript), "message")
        head = f"request {number} to {request.model or 'the model'}: {messages}; {tools}"
        log.log(self.level, "%s", self._lines(head, self._sent(request)))
        began = time.monotonic()
        try:
            reply = yield request
        except Exception as error:
            log.log(self.level, "request %s failed: %s", number, type(error).__name__)
            raise
        if is_reply(reply):
            used = f"{reply.usage.input_tokens:,} + {reply.usage.output_tokens:,} tokens"
            stop = f"; {reply.stop}" if reply.stop else ""
            calls = counted(len(reply.calls), "call")
            head = f"reply {number}: {calls}; {time.monotonic() - began:.2f} s, {used}{stop}"
            log.log(self.level, "%s", self._lines(head, _parts_of(reply)))
        return reply

    def _sent(self, request: CallModel) -> Iterator[tuple[str, str]]:
        """Who says what in a request."""
        if request.system:
            yield "system", request.system
        for message in request.transcript:
            yield from _parts_of(message)
        if request.schema is not None:
            yield "schema", text_of(dict(request.schema))

    def _lines(self, head: str, parts: Iterable[tuple[str, str]]) -> str:
        """A line for each part; the further lines of a text are indented, so that none looks like a record."""
        shown = [f"{who}: {self._shown(text)}".replace("\n", "\n      ") for who, text in parts]
        return "\n    ".join([visible(head).replace("\n", " "), *shown])

    def _shown(self, text: str) -> str:
        try:
            return excerpt(text, self.characters, self._redact)
        except Exception as error:  # whose message may hold the text
            return f"[not shown: redaction failed, {type(error).__name__}]"

    def __repr__(self) -> str:
        return f"log_model(level={self.level}, characters={self.characters})"


def _parts_of(message: Message | Reply) -> Iterator[tuple[str, str]]:
    """Who says what in a message."""
    match message:
        case UserSaid():
            yield "user", message.text + "".join(f" [{part.get('type', 'part')}]" for part in message.parts)
        case Note():
            yield "note", message.text
        case Answers():
            for result in message.results:
                yield f"result {result.call_id} {result.status}", result.content
        case ModelReplied() | Reply():
            if message.reasoning:
                yield "reasoning", message.reasoning
            if message.text:
                yield "assistant", message.text
            calls: tuple[JudgedCall | ToolCall, ...] = message.calls
            for call in calls:
                arguments = call.shown_arguments if isinstance(call, JudgedCall) else call.arguments
                yield f"call {call.id} {legal_name(call.name)}", text_of(arguments)
