"""Two ways to ask a model for text with nothing installed: a command of the machine, and a chat endpoint."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from toolsearch.errors import SetupError

__all__ = ["command", "endpoint"]

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})
_TRIES = 3
_ANSWER_BYTES = 5_000_000


def command(arguments: Sequence[str], *, seconds: float = 300.0) -> Callable[[str], str]:
    """What runs a program for each prompt: the prompt goes to its input, its output is the answer. No shell.

    The returned function raises `SetupError` for a program that is not there, and `OSError` for one that fails.
    """
    if not arguments:
        raise SetupError("the command to ask is empty: name a program that reads a prompt and prints an answer")

    def ask(prompt: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - the user's own command, and no shell
                list(arguments), check=False, input=prompt, capture_output=True, encoding="utf-8", errors="replace",
                timeout=seconds,
            )  # fmt: skip
        except FileNotFoundError:
            raise SetupError(f"there is no program {arguments[0]!r}") from None
        except subprocess.TimeoutExpired:
            raise OSError(f"{arguments[0]!r} gave no answer within {seconds:g} seconds") from None
        if done.returncode != 0:
            raise OSError(f"{arguments[0]!r} ended with code {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    return ask


def endpoint(
    model: str,
    *,
    base_url: str = "https://api.openai.com/v1",
    key: str = "",
    seconds: float = 120.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Callable[[str], str]:
    """What asks an endpoint that speaks OpenAI's chat completions: `base_url` often ends in /v1.

    A busy or unreachable one is asked three times. The returned function raises `SetupError` where asking again cannot
    help, such as for a wrong key, and `OSError` otherwise; the key is in no message.
    """
    try:
        parts = urlsplit(base_url)
    except ValueError as error:
        raise SetupError(f"the base url {base_url[:60]!r} is no address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(f"the base url of an endpoint begins with http:// or https://, unlike {base_url[:60]!r}")
    if parts.username or parts.query:
        raise SetupError("the base url holds a user or a query; pass the key by itself")
    key = key.strip()
    if not key.isprintable():
        raise SetupError("the key holds control characters; it is not shown here")
    url = base_url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def ask(prompt: str) -> str:
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": prompt}]}).encode()
        problem = ""
        for attempt in range(_TRIES):
            if attempt:
                sleep(2.0**attempt)
            try:
                return _text_of(_sent(urllib.request.Request(url, body, headers), seconds), url)  # noqa: S310 - http
            except urllib.error.HTTPError as error:
                with error:
                    said = " ".join(error.read(2_000).decode("utf-8", "replace").split())[:300]
                problem = f"status {error.code}: {said.replace(key, '…') if key else said}"
                if error.code not in _AGAIN:
                    raise SetupError(f"{url} answered with {problem}") from None
            except (OSError, http.client.HTTPException) as error:
                problem = str(getattr(error, "reason", "") or error) or type(error).__name__
            except SetupError:
                raise
            except ValueError:  # its text may hold the key
                raise SetupError(f"no request can be made of {url}, the model's name and the key") from None
        raise OSError(f"{url} gave no answer in {_TRIES} tries: {problem}")

    return ask


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _sent(request: urllib.request.Request, seconds: float) -> bytes:
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
