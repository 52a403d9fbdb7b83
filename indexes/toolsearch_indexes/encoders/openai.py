"""Any endpoint that speaks OpenAI's embeddings API: OpenAI itself, Azure, Ollama, vLLM, LM Studio, TEI and others.

Spoken with the standard library: the SDK costs more than a second to import and adds nothing that is needed here.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import EncoderError
from toolsearch_indexes.encoders.loading import Once, digest, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OpenAIEncoder"]

log = logging.getLogger("toolsearch")

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})
_LONGEST_WAIT_SECONDS = 20.0
_REQUEST_CHARACTERS = 400_000  # OpenAI takes 300,000 tokens in a request


class OpenAIEncoder:
    """`model` behind the endpoint `url`. The key is `key`, or OPENAI_API_KEY from the environment, if there is one.

    `dimensions` asks the model for shorter vectors; None takes its own width, learned from the first answer. Texts are
    cut at `max_characters`, which is what most models take. A request holds up to `batch` texts. If the server is too
    busy, or a request times out or breaks off, it is sent again up to `retries` times, after growing waits or when the
    server says to.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        url: str = "https://api.openai.com/v1",
        key: str | None = None,
        dimensions: int | None = None,
        query_prompt: str = "",
        document_prompt: str = "",
        headers: Mapping[str, str] | None = None,
        encoding_format: Literal["float", "base64"] = "float",
        batch: int = 128,
        max_characters: int = 24_000,
        timeout_seconds: float = 30.0,
        retries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        require("OpenAIEncoder", ("numpy",), "numpy")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SetupError(f"the url of an embeddings endpoint begins with http:// or https://, unlike {url[:60]!r}")
        if batch < 1 or max_characters < 1 or retries < 0:
            raise SetupError("batch and max_characters must be 1 or more, retries 0 or more")
        path = parts.path.rstrip("/")
        path = path if path.endswith("/embeddings") else f"{path}/embeddings"
        user, _, host = parts.netloc.rpartition("@")
        self._url = urlunsplit((parts.scheme, host, path, parts.query, ""))
        self._address = f"{parts.scheme}://{host}{path}"  # keys hide in the user part and in the query of an address
        key = os.environ.get("OPENAI_API_KEY", "") if key is None else key
        self._headers = {"Content-Type": "application/json"}
        if user:
            self._headers["Authorization"] = f"Basic {base64.b64encode(unquote(user).encode()).decode()}"
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._headers |= headers or {}
        self._secrets = [
            secret for secret in (key, user, parts.password, parts.query, *(headers or {}).values()) if secret
        ]
        self._model = model
        self._dimensions = dimensions
        self._prompts = {True: query_prompt, False: document_prompt}
        self._encoding_format = encoding_format
        self._batch = batch
        self._max_characters = max_characters
        self._timeout_seconds = timeout_seconds
        self._retries = retries
        self._sleep = sleep
        self._known_width: int | None = dimensions
        self._width = Once(self._learn_width)
        self._opener = urllib.request.build_opener(_NoRedirects)
        also = [repr((query_prompt, document_prompt))] if query_prompt or document_prompt else []
        size = f":{dimensions}" if dimensions else ""
        self.name = f"{model}{size}@{host}" + (f"+{digest([], *also)}" if also else "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def width(self) -> int:
        """The width of the vectors; asks the endpoint once if no answer has shown it yet."""
        return self._known_width or self._width()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A row for each text; zeros for an empty one, which the API refuses. Raises `SetupError` or `EncoderError`."""
        import numpy as np

        filled = [row for row, text in enumerate(texts) if text.strip()]
        prompt = self._prompts[query]
        whole = [prompt + texts[row][: self._max_characters] for row in filled]
        parts = [self._rows(batch) for batch in self._batches(whole)]
        rows = np.zeros((len(texts), self.width), np.float32)
        if filled:
            rows[filled] = np.concatenate(parts)
        return rows

    def _learn_width(self) -> int:
        self._rows(["width"])
        assert self._known_width is not None
        return self._known_width

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        characters = 0
        for text in texts:
            if batch and (len(batch) == self._batch or characters + len(text) > _REQUEST_CHARACTERS):
                yield batch
                batch, characters = [], 0
            batch.append(text)
            characters += len(text)
        if batch:
            yield batch

    def _rows(self, texts: list[str]) -> NDArray[np.float32]:
        """One request's rows, in the order of the texts, whatever the order of the answer."""
        import numpy as np

        request: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": self._encoding_format}
        if self._dimensions is not None:
            request["dimensions"] = self._dimensions
        answer = self._ask(json.dumps(request).encode())
        try:
            data = {item.get("index", place): item["embedding"] for place, item in enumerate(answer["data"])}
            if sorted(data) != list(range(len(texts))):
                raise ValueError(f"{len(data)} vectors for {len(texts)} texts")
            vectors = [_numbers(data[place]) for place in range(len(texts))]
            if len(widths := {len(vector) for vector in vectors}) != 1:
                raise ValueError(f"vectors of different widths: {sorted(widths)}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problem = f"misses {error}" if isinstance(error, KeyError) else str(error)
            raise SetupError(
                f"{self._address} does not answer like OpenAI's embeddings API: {problem}. Is the url the one of its "
                "OpenAI-compatible API, often ending in /v1?"
            ) from error
        (width,) = widths
        if self._known_width is not None and self._known_width != width:
            raise SetupError(
                f"{self._address} gave vectors {width} wide for the model {self._model!r}, not {self._known_width}. "
                + ("Does the model take dimensions?" if self._dimensions else "Was the model changed? Restart.")
            )
        self._known_width = width
        return np.stack(vectors)

    def _ask(self, body: bytes) -> Any:
        """The answer as JSON. Waits and asks again where that can help, up to `retries` times."""
        problem = ""
        for attempt in range(self._retries + 1):
            # `__init__` made sure that this is HTTP.
            request = urllib.request.Request(self._url, body, self._headers, method="POST")  # noqa: S310
            wait: float | None = None
            try:
                with self._opener.open(request, timeout=self._timeout_seconds) as response:
                    text = response.read()
                return json.loads(text)
            except urllib.error.HTTPError as error:
                with error:
                    message = self._without_secrets(error.read(2_000).decode("utf-8", "replace"))
                problem = f"status {error.code}" + (f": {' '.join(message.split())[:300]}" if message.strip() else "")
                if error.code not in _AGAIN or "insufficient_quota" in message:
                    raise SetupError(f"{self._address} answered with {problem}. {_advice(error.code)}") from None
                wait = _seconds(error.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException) as error:  # unreachable, timed out, broken off
                reason = error.reason if isinstance(error, urllib.error.URLError) else error
                problem = f"no answer: {self._without_secrets(str(reason) or type(reason).__name__)}"
            except ValueError:
                raise SetupError(
                    f"{self._address} answered with something that is not JSON. Is it an embeddings API?"
                ) from None
            if attempt < self._retries:
                seconds = (
                    min(_LONGEST_WAIT_SECONDS, 0.5 * 2**attempt) * random.uniform(0.75, 1) if wait is None else wait
                )
                log.info("%s: %s; asking again in %.1f seconds", self._address, problem, seconds)
                self._sleep(seconds)
        raise EncoderError(
            f"{self._address} gave {problem} ({self._retries + 1} tries). "
            "Check that it is up and reachable, or try later"
        )

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host, and turn the request into one without a body."""

    def redirect_request(self, *_args: Any, **_options: Any) -> None:
        return None


def _numbers(embedding: Any) -> NDArray[np.float32]:
    import numpy as np

    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    if not isinstance(embedding, list):
        raise TypeError(f"an embedding is {type(embedding).__name__}")
    return np.array(embedding, np.float32, ndmin=1)


def _seconds(header: str | None) -> float | None:
    """The seconds of a Retry-After header, at most as many as we are willing to wait; None if it holds no number."""
    try:
        return min(_LONGEST_WAIT_SECONDS, max(0.0, float(header))) if header else None
    except ValueError:
        return None


def _advice(status: int) -> str:
    match status:
        case 401 | 403:
            return "Check the key: pass key=… or set OPENAI_API_KEY."
        case 404:
            return "Check the url and the name of the model."
        case 400 | 413 | 422:
            return "If a text is too long for the model, lower max_characters; if the request is, lower batch."
        case 429:
            return "The account has no quota left."
        case status if 300 <= status < 400:
            return "It redirects, which is not followed, so that the key goes nowhere else: pass the address it means."
        case _:
            return "It will not answer otherwise when asked again."
