"""The server: it checks each request as the real provider does, and then plays the next step of its script."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NoReturn, Protocol
from urllib.parse import urlsplit

from toolsearch.events.facts import Usage
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.testing.loopback import anthropic, gemini, ollama, openai_chat, openai_responses
from toolsearch.testing.loopback.steps import Failure, Step, Written, written

__all__ = ["LoopbackProvider"]

CHARACTERS_PER_TOKEN = 4


class Form(Protocol):
    """The format of a provider, as a module of this package has it."""

    def refusal(self, body: JsonObject, headers: Mapping[str, str] = ...) -> str:
        """Why the provider answers the request with status 400; "" if it takes it."""
        ...

    def reply(self, step: Written, body: JsonObject, usage: Usage = ...) -> dict[str, Any]:
        """The whole reply."""
        ...

    def events(self, reply: JsonObject, size: int) -> Iterator[str]:
        """The same in pieces, as bytes on the line, with texts cut into so many characters."""
        ...

    def stream_type(self, path: str, body: JsonObject) -> str:
        """The media type of the stream that is asked for; "" for a whole reply."""
        ...

    def error(self, failure: Failure) -> dict[str, Any]:
        """The body of an error."""
        ...


# By the end of the path. Gemini's begins with the name of the model, so that only the method is compared.
FORMS: Mapping[str, Form] = {
    "/chat/completions": openai_chat,
    "/responses": openai_responses,
    "/messages": anthropic,
    ":generateContent": gemini,
    ":streamGenerateContent": gemini,
    "/api/chat": ollama,
}


class LoopbackProvider:
    """A provider on 127.0.0.1 that speaks every format there is a wire for. Use it with `with`, or `start` and `close`.

    `url` is the address for any client (`base_url`; `host` of Ollama's). Each request is answered by the next step of
    `script`, in the format that the request's path asks for. A step is

        "It rains."                                      a text
        [("c1", "get_weather", {"city": "Rome"})]        calls: tuples (the id may be left out) or ToolCalls
        ["Let me see. ", ("get_weather", {})]            a text, then calls
        {"id": "msg_1", …}                               a dict: the body of the reply, as the provider sends it
        Failure(529, "Overloaded")                       an error, with headers if need be
        a function                                       from the request's body to one of these

    and after the last step the model says "Done.". A request that the real provider is known to refuse gets status 400
    and takes no step. It is refused for calls without results and results without calls, roles, names, schemas,
    references to tools that are not declared, limits. Such a provider may refuse more: its documents do not tell all.

    `requests` are the bodies so far, `headers` their headers in small letters, `refusals` the reasons of refused ones,
    `replies` the bodies of replies. Streamed texts come in pieces of `stream_pieces` characters.
    """

    def __init__(self, script: Iterable[Step] = (), *, stream_pieces: int = 20) -> None:
        if isinstance(script, str | Mapping):
            raise checks.wrong("script", "a list of steps, as in [[('search_tools', {})], 'Done.']", script)
        checks.whole("stream_pieces", stream_pieces)
        self.script, self.stream_pieces = list(script), stream_pieces
        self.requests: list[JsonObject] = []
        self.headers: list[Mapping[str, str]] = []
        self.refusals: list[str] = []
        self.replies: list[JsonObject] = []
        self._lock, self._played = threading.Lock(), 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, name="loopback-provider", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> LoopbackProvider:
        """Begins to answer, until `close`, as `with` does."""
        self._thread.start()
        return self

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> LoopbackProvider:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tool_names(self) -> list[list[str]]:
        """The names of the tools of each request so far."""
        return [[*_names(body.get("tools") or [])] for body in self.requests]

    # -- what a provider of your own overrides ---------------------------------------------------------------------

    def step(self, body: JsonObject) -> Step:
        """What answers this request: the next step of the script."""
        del body
        return self.script[self._played] if self._played < len(self.script) else "Done."

    def usage(self, body: JsonObject, step: Written) -> Usage:
        """The tokens of a reply: an estimate, four characters to a token, nothing cached."""
        said = step.text + "".join(str(call.arguments) for call in step.calls)
        return Usage(len(json.dumps(body)) // CHARACTERS_PER_TOKEN, 0, len(said) // CHARACTERS_PER_TOKEN + 1, 1)

    def changed(self, reply: JsonObject) -> JsonObject:
        """The body of a reply before it is sent, or put into pieces."""
        return reply

    def stream(self, number: int, events: Iterator[str]) -> Iterator[str]:
        """The pieces of a streamed reply, as they are sent; end it early for a stream that breaks off.

        `number` is that of the request, from 1 on.
        """
        del number
        yield from events

    # -- an answer -------------------------------------------------------------------------------------------------

    def answer(self, path: str, headers: Mapping[str, str], data: bytes) -> _Answer:
        """The answer to a request."""
        form = next((form for end, form in FORMS.items() if urlsplit(path).path.endswith(end)), None)
        if form is None:
            return _Answer(404, json.dumps({"error": {"message": f"there is no {path}", "type": "not_found_error"}}))
        with self._lock:
            body = _strict_json(data)
            if not isinstance(body, dict):
                return self._refuse(form, "the body is no JSON object in valid UTF-8")
            self.requests.append(body)
            self.headers.append(headers)
            if reason := _reason(form, body, headers):
                return self._refuse(form, reason)
            step, asked = self.step(body), len(self.requests)
            self._played += 1
            number = self._played
        plain = step(body) if callable(step) else step
        if isinstance(plain, Failure):
            return _Answer(plain.status, json.dumps(form.error(plain)), headers=plain.headers)
        if isinstance(plain, Mapping):
            reply = plain
        else:
            said = written(plain, number)
            reply = form.reply(said, body, self.usage(body, said))
        reply = self.changed(reply)
        self.replies.append(reply)
        if media_type := form.stream_type(path, body):
            return _Answer(200, self.stream(asked, form.events(reply, self.stream_pieces)), media_type)
        return _Answer(200, json.dumps(reply))

    def _refuse(self, form: Form, reason: str) -> _Answer:
        self.refusals.append(reason)
        return _Answer(400, json.dumps(form.error(Failure(400, reason))))


class _Answer:
    """A status, and the body, whole or in pieces."""

    def __init__(
        self,
        status: int,
        body: str | Iterator[str],
        media_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status, self.body = status, body
        self.headers = {"Content-Type": media_type, "Connection": "close", **(headers or {})}


def _strict_json(data: bytes) -> object:
    """The JSON; None for what is none: NaN and lone surrogates, which Python would write, are not."""
    try:
        text = data.decode("utf-8")
        value: object = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError:
        return None
    return value


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _reason(form: Form, body: JsonObject, headers: Mapping[str, str]) -> str:
    try:
        return form.refusal(body, headers)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        return f"the request has not the shape of this format: {type(error).__name__} {error}"


def _names(tools: Iterable[JsonObject]) -> Iterator[str]:
    for tool in tools:
        if isinstance(tool.get("function"), Mapping):
            yield tool["function"]["name"]
        elif declared := tool.get("functionDeclarations") or (tool.get("type") == "namespace" and tool.get("tools")):
            yield from _names(declared)
        else:
            yield str(tool.get("name") or tool.get("type") or next(iter(tool), ""))


def _handler(provider: LoopbackProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = provider.answer(self.path, headers, data)
            self.close_connection = True
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if isinstance(answer.body, str):
                body = answer.body.encode()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.end_headers()
            try:
                for piece in answer.body:
                    self.wfile.write(piece.encode())
                    self.wfile.flush()
            except ConnectionError:  # the client has read enough
                pass

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the one it replaces
            del format, args

    return Handler
