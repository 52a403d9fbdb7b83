"""An embeddings endpoint, against a real server on loopback: batches, order, patience, errors that say what to do."""

import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import EncoderError, encoded
from toolsearch_indexes.encoders.openai import OpenAIEncoder

KEY = "sk-very-secret"
Answer = tuple[int, dict[str, str], bytes]


def vector(text: str, width: int) -> list[float]:
    return [float(len(text)), float(sum(map(ord, text)) % 97), *[0.5] * (width - 2)]


class Endpoint:
    """What a server got, and what it answers first; after that it works, like the real one but out of order."""

    def __init__(self) -> None:
        self.first: list[Answer | Callable[[BaseHTTPRequestHandler], None]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.url = ""

    def working(self, asked: dict[str, Any]) -> Answer:
        if "" in asked["input"]:
            return refusal(400, "input cannot be an empty string")
        data = []
        for index, text in enumerate(asked["input"]):
            numbers: Any = vector(text, asked.get("dimensions", 4))
            if asked["encoding_format"] == "base64":
                numbers = base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()
            data.append({"object": "embedding", "index": index, "embedding": numbers})
        body = {"object": "list", "model": asked["model"], "data": data[::-1], "usage": {"prompt_tokens": 1}}
        return 200, {}, json.dumps(body).encode()


def refusal(status: int, message: str, **headers: str) -> Answer:
    return status, headers, json.dumps({"error": {"message": message}}).encode()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    state = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(asked)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            state.paths.append(self.path)
            answer = state.first.pop(0) if state.first else state.working(asked)
            if callable(answer):
                answer(self)
                return
            status, headers, body = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def do_GET(self) -> None:
            state.paths.append(f"GET {self.path}")
            self.send_error(405)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        state.url = f"http://127.0.0.1:{server.server_port}/v1"
        yield state
        server.shutdown()
        thread.join()


def encoder(endpoint: Endpoint, waits: list[float] | None = None, **options: Any) -> OpenAIEncoder:
    sleep = ([] if waits is None else waits).append
    return OpenAIEncoder("small", **({"url": endpoint.url, "key": KEY, "sleep": sleep} | options))


def test_a_text_becomes_the_vector_the_endpoint_gives(endpoint: Endpoint) -> None:
    made = encoder(endpoint)
    rows = made.encode(["hello"])
    assert rows.dtype == np.float32
    assert rows.tolist() == [vector("hello", 4)]
    assert endpoint.paths == ["/v1/embeddings"]
    assert endpoint.requests == [{"model": "small", "input": ["hello"], "encoding_format": "float"}]
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("encoding_format", ["float", "base64"])
def test_rows_are_in_the_order_of_the_texts_in_batches(encoding_format: Any, endpoint: Endpoint) -> None:
    texts = [f"{'x' * (n % 7)}{n}" for n in range(23)]
    rows = encoder(endpoint, batch=10, encoding_format=encoding_format).encode(texts)
    assert rows.tolist() == [vector(text, 4) for text in texts]
    assert [len(asked["input"]) for asked in endpoint.requests] == [10, 10, 3]


def test_a_request_is_not_longer_than_an_endpoint_takes(endpoint: Endpoint) -> None:
    encoder(endpoint, max_characters=200_000).encode(["x" * 150_000] * 5)
    assert [len(asked["input"]) for asked in endpoint.requests] == [2, 2, 1]


def test_empty_texts_are_zeros_and_are_not_sent(endpoint: Endpoint) -> None:
    rows = encoder(endpoint).encode(["", "a", " \n"])
    assert rows.tolist() == [[0] * 4, vector("a", 4), [0] * 4]
    assert endpoint.requests[0]["input"] == ["a"]


def test_no_texts_cost_one_question_for_the_width(endpoint: Endpoint) -> None:
    made = encoder(endpoint)
    assert made.encode([]).shape == (0, 4)
    assert (made.width, made.width, len(endpoint.requests)) == (4, 4, 1)


def test_the_width_is_learned_from_the_first_answer(endpoint: Endpoint) -> None:
    made = encoder(endpoint)
    made.encode(["a"])
    assert (made.width, len(endpoint.requests)) == (4, 1)


def test_dimensions_are_asked_for_and_stand_in_the_name(endpoint: Endpoint) -> None:
    made = encoder(endpoint, dimensions=2)
    assert made.width == 2
    assert made.encode(["a"]).tolist() == [vector("a", 2)]
    assert endpoint.requests[0]["dimensions"] == 2
    assert made.name.startswith("small:2@127.0.0.1:")
    assert made.name != encoder(endpoint).name


def test_prompts_go_before_texts_and_change_the_name(endpoint: Endpoint) -> None:
    made = encoder(endpoint, query_prompt="query: ", document_prompt="passage: ")
    made.encode(["a"])
    made.encode(["a"], query=True)
    assert [asked["input"] for asked in endpoint.requests] == [["passage: a"], ["query: a"]]
    assert made.name != encoder(endpoint).name


def test_long_texts_are_cut(endpoint: Endpoint) -> None:
    encoder(endpoint, max_characters=3).encode(["abcdef"])
    assert endpoint.requests[0]["input"] == ["abc"]


@pytest.mark.parametrize("path", ["", "/", "/embeddings", "/embeddings?api-version=2"])
def test_the_url_may_or_may_not_end_in_embeddings(path: str, endpoint: Endpoint) -> None:
    encoder(endpoint, url=endpoint.url + path).encode(["a"])
    assert endpoint.paths[0].startswith("/v1/embeddings")
    assert endpoint.paths[0].endswith(path.partition("?")[2])


def test_headers_of_ones_own_are_sent(endpoint: Endpoint) -> None:
    encoder(endpoint, key="", headers={"api-key": "abc"}).encode(["a"])
    assert endpoint.headers[0]["api-key"] == "abc"
    assert "authorization" not in endpoint.headers[0]


def test_the_key_is_taken_from_the_environment(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    encoder(endpoint, key=None).encode(["a"])
    assert endpoint.headers[0]["authorization"] == "Bearer from-environment"


def test_the_same_encoder_serves_several_threads(endpoint: Endpoint) -> None:
    made = encoder(endpoint, batch=2)
    texts = ["a", "bb", "ccc"]
    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(made.encode(texts).tolist())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [[vector(text, 4) for text in texts]] * 6


# --- patience


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_asked_again_after_growing_waits(status: int, endpoint: Endpoint) -> None:
    endpoint.first = [refusal(status, "busy")] * 3
    waits: list[float] = []
    assert encoder(endpoint, waits).encode(["a"]).tolist() == [vector("a", 4)]
    assert len(endpoint.requests) == 4
    assert 0.37 < waits[0] <= 0.5 < waits[1] <= 1 < waits[2] <= 2


def test_the_server_may_say_how_long_to_wait_within_reason(endpoint: Endpoint) -> None:
    endpoint.first = [
        refusal(429, "slow down", Retry_After="3"),
        refusal(429, "slow down", Retry_After="86400"),
        refusal(429, "slow down", Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"),
    ]
    waits: list[float] = []
    encoder(endpoint, waits).encode(["a"])
    assert waits[:2] == [3.0, 20.0]
    assert 0 < waits[2] <= 2


def broken_off(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def closed(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def slow(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1.2)
    handler.close_connection = True


@pytest.mark.parametrize("trouble", [broken_off, closed, slow])
def test_a_connection_that_breaks_or_says_nothing_is_asked_again(trouble: Any, endpoint: Endpoint) -> None:
    endpoint.first = [trouble]
    waits: list[float] = []
    assert encoder(endpoint, waits, timeout_seconds=0.5).encode(["a"]).tolist() == [vector("a", 4)]
    assert waits


def test_patience_ends_with_an_error_that_says_where_and_what(endpoint: Endpoint) -> None:
    endpoint.first = [refusal(503, "overloaded")] * 9
    waits: list[float] = []
    told = r"http://127\.0\.0\.1:\d+/v1/embeddings gave status 503: .*overloaded.* \(3 tries\)\. Check that it is up"
    with pytest.raises(EncoderError, match=told):
        encoder(endpoint, waits, retries=2).encode(["a"])
    assert (len(endpoint.requests), len(waits)) == (3, 2)


def test_an_endpoint_that_is_down_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    down = OpenAIEncoder(url=f"http://127.0.0.1:{port}", key=KEY, retries=1, sleep=lambda seconds: None)
    with pytest.raises(EncoderError, match=rf"127\.0\.0\.1:{port}/embeddings gave no answer: .*refused.*\(2 tries\)"):
        down.encode(["a"])


# --- what asking again does not help


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "lower max_characters"),
        (401, "Check the key: pass key=… or set OPENAI_API_KEY"),
        (403, "Check the key"),
        (404, "Check the url and the name of the model"),
        (413, "lower batch"),
        (418, "will not answer otherwise"),
    ],
)
def test_a_refusal_is_told_at_once_with_what_to_do(status: int, advice: str, endpoint: Endpoint) -> None:
    endpoint.first = [refusal(status, "no")]
    waits: list[float] = []
    with pytest.raises(SetupError, match=rf"/v1/embeddings answered with status {status}: .*no.*{advice}"):
        encoder(endpoint, waits).encode(["a"])
    assert waits == []


def test_a_quota_that_is_used_up_is_not_asked_again(endpoint: Endpoint) -> None:
    endpoint.first = [(429, {}, b'{"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}')]
    with pytest.raises(SetupError, match="The account has no quota left"):
        encoder(endpoint).encode(["a"])


def test_no_error_holds_a_key(endpoint: Endpoint) -> None:
    url = endpoint.url.replace("http://", "http://user:pass-word@") + "?api-key=in-the-query"
    for answer in (refusal(401, f"Wrong key {KEY} with api-key=in-the-query"), refusal(500, f"{KEY} pass-word")):
        endpoint.first = [answer]
        with pytest.raises((SetupError, EncoderError)) as caught:
            encoder(endpoint, url=url, retries=0).encode(["a"])
        for secret in (KEY, "pass-word", "in-the-query"):
            assert secret not in str(caught.value)
    assert "pass-word" not in encoder(endpoint, url=url).name


def test_a_user_in_the_address_is_sent_as_basic_authentication(endpoint: Endpoint) -> None:
    url = endpoint.url.replace("http://", "http://me:p%40ss@")
    encoder(endpoint, url=url, key="").encode(["a"])
    assert endpoint.headers[0]["authorization"] == f"Basic {base64.b64encode(b'me:p@ss').decode()}"


def test_a_redirect_is_not_followed_so_the_key_goes_nowhere_else(endpoint: Endpoint) -> None:
    for status in (301, 302, 307, 308):
        endpoint.first = [(status, {"Location": f"{endpoint.url}/elsewhere"}, b"")]
        with pytest.raises(SetupError, match=f"status {status}. It redirects, which is not followed"):
            encoder(endpoint).encode(["a"])
    assert set(endpoint.paths) == {"/v1/embeddings"}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"<html>It works!</html>", "answered with something that is not JSON"),
        (b"[]", "does not answer like OpenAI's embeddings API"),
        (b'{"error": "model not found"}', "misses 'data'"),
        (b'{"data": [{"index": 0}]}', "misses 'embedding'"),
        (b'{"data": []}', "0 vectors for 1 texts"),
        (b'{"data": [{"index": 3, "embedding": [1]}]}', "1 vectors for 1 texts"),
        (b'{"data": [{"index": 0, "embedding": "%%%"}]}', "does not answer like"),
        (b'{"data": [{"index": 0, "embedding": null}]}', "does not answer like"),
        (b'{"data": ["x"]}', "does not answer like"),
    ],
)
def test_an_answer_of_another_kind_is_an_error_that_says_so(body: bytes, told: str, endpoint: Endpoint) -> None:
    endpoint.first = [(200, {}, body)]
    with pytest.raises(SetupError, match=told):
        encoder(endpoint).encode(["a"])


def test_answers_without_an_index_are_taken_in_their_order(endpoint: Endpoint) -> None:
    endpoint.first = [(200, {}, b'{"data": [{"embedding": [1, 2]}, {"embedding": [3, 4]}]}')]
    assert encoder(endpoint).encode(["a", "b"]).tolist() == [[1, 2], [3, 4]]


def test_another_width_than_before_is_an_error_that_names_both(endpoint: Endpoint) -> None:
    made = encoder(endpoint)
    made.encode(["a"])
    endpoint.first = [(200, {}, b'{"data": [{"index": 0, "embedding": [1, 2]}]}')]
    with pytest.raises(SetupError, match="vectors 2 wide for the model 'small', not 4"):
        made.encode(["b"])


def test_a_vector_that_is_not_finite_is_an_error(endpoint: Endpoint) -> None:
    endpoint.first = [(200, {}, b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}')]
    with pytest.raises(SetupError, match="values that are not finite"):
        encoded(encoder(endpoint), ["a"])


@pytest.mark.parametrize("url", ["", "api.openai.com/v1", "file:///etc/passwd", "ftp://host/", "http://"])
def test_an_address_that_is_not_http_is_refused_at_once(url: str) -> None:
    with pytest.raises(SetupError, match="begins with http:// or https://"):
        OpenAIEncoder(url=url)
