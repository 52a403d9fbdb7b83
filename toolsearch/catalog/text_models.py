"""Two ways to ask a model for text without installing anything: a program on this machine, and a chat endpoint."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from toolsearch.errors import SetupError

__all__ = ["command", "endpoint"]

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})
_TRIES = 3
_ANSWER_BYTES = 5_000_000


def command(arguments: Sequence[str], *, seconds: float = 300.0) -> Callable[[str], str]:
    """A function that runs a program for each prompt. The prompt goes to its input, and its output is the answer.

    No shell is involved. The function raises `SetupError` if the program does not exist, and `OSError` if it fails.
    """
    if not arguments:
        raise SetupError("the command to ask is empty: name a program that reads a prompt and prints an answer")

    def ask(prompt: str) -> str:
        try:
            process = subprocess.run(  # noqa: S603 - the user's own command, and no shell
                list(arguments), check=False, input=prompt, capture_output=True, encoding="utf-8", errors="replace",
                timeout=seconds,
            )  # fmt: skip
        except FileNotFoundError:
            raise SetupError(f"there is no program {arguments[0]!r}") from None
        except subprocess.TimeoutExpired:
            raise OSError(f"{arguments[0]!r} gave no answer within {seconds:g} seconds") from None
        if process.returncode != 0:
            raise OSError(f"{arguments[0]!r} ended with code {process.returncode}: {process.stderr.strip()[-300:]}")
        return process.stdout

    return ask


def endpoint(
    model: str,
    *,
    base_url: str = "https://api.openai.com/v1",
    key: str = "",
    seconds: float = 120.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Callable[[str], str]:
    """A function that asks an endpoint for OpenAI's chat completions; `base_url` often ends in /v1.

    A busy or unreachable endpoint is asked three times. The function raises `SetupError` where asking again cannot
    help, such as for a wrong key, and `OSError` otherwise. No message holds the key.
    """
    key = key.strip()
    if not key.isprintable():
        raise SetupError("the key holds control characters; it is not shown here")
    url = _chat_url(base_url)
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def ask(prompt: str) -> str:
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": prompt}]}).encode()
        problem = ""
        for attempt in range(_TRIES):
            if attempt:
                sleep(2.0**attempt)
            try:
                return _text_of(_send(urllib.request.Request(url, body, headers), seconds), url)  # noqa: S310 - http
            except urllib.error.HTTPError as error:
                problem = _refusal(error, key)
                if error.code not in _AGAIN:
                    raise SetupError(f"{url} answered with {problem}") from None
            except (OSError, http.client.HTTPException) as error:
                problem = str(getattr(error, "reason", "") or error) or type(error).__name__
            except SetupError:
                raise
            except ValueError:  # its text may hold the key
                raise SetupError(f"no request can be made from {url}, the name of the model and the key") from None
        raise OSError(f"{url} gave no answer in {_TRIES} tries: {problem}")

    return ask


def _chat_url(base_url: str) -> str:
    """The address of chat completions; raises `SetupError` for a base url that cannot be one."""
    try:
        parts = urlsplit(base_url)
    except ValueError as error:
        raise SetupError(f"the base url {base_url[:60]!r} is not an address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(f"the base url of an endpoint must begin with http:// or https://, unlike {base_url[:60]!r}")
    if parts.username or parts.query:
        raise SetupError("the base url holds a user or a query; pass the key by itself")
    return base_url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"


def _refusal(error: urllib.error.HTTPError, key: str) -> str:
    """The status of an answer and the beginning of its text, without the key."""
    with error:
        text = " ".join(error.read(2_000).decode("utf-8", "replace").split())[:300]
    return f"status {error.code}: {text.replace(key, '…') if key else text}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _send(request: urllib.request.Request, seconds: float) -> bytes:
    with _OPENER.open(request, timeout=seconds) as response:
        answer: bytes = response.read(_ANSWER_BYTES)
    return answer


def _text_of(answer: bytes, url: str) -> str:
    try:
        content = json.loads(answer)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        raise SetupError(f"{url} does not answer like OpenAI's chat completions; is the base url right?") from None
    if not isinstance(content, str):
        raise OSError(f"{url} gave no text")  # a refusal, or a model that thought to its limit
    return content
