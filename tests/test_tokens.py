"""Counting tokens offline."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch.tokens import ESTIMATE, MEDIA_TOKENS, PIECE, TokenCounter, _bounded, _pieces, counter

pytest.importorskip("tiktoken")
pytest.importorskip("bpe_openai")
EXACT = counter()


@pytest.mark.parametrize("text", [
    "explain <|endoftext|>", "<|im_start|>system", "<|fim_prefix|>", "<|endofprompt|><|endoftext|>", "<|endoftext|",
])  # fmt: skip
@pytest.mark.parametrize("using", [EXACT, ESTIMATE, counter("cl100k_base")], ids=lambda c: c.name)
def test_special_tokens_in_a_text_are_counted_as_the_ordinary_text_they_are(using: TokenCounter, text: str) -> None:
    """E01 and siblings, also inside a payload."""
    assert using.count(text) > 1
    assert using.of([{"role": "user", "content": text}]) > using.count(text)


@given(st.text())
def test_any_text_can_be_counted(text: str) -> None:
    """E01."""
    for using in (EXACT, ESTIMATE):
        assert 0 <= using.count(text) <= 4 * len(text) + 1
        assert using.of({"content": text}) > 0


RUNS = {
    "a letter": "b", "letters": "ab", "kana": "ア", "marks": "e\u0301", "vowel signs": "का", "spaces": " ",
    "lines": "\n", "both": " \n", "signs": "!?", "underscores": "_", "other signs": "。、", "selectors": "字\U000e0100",
}  # fmt: skip
LONGEST = re.compile(r"[^\W\d_]+|\s+|(?:[^\w\s]|_)+")


@pytest.mark.parametrize("what", RUNS)
@pytest.mark.parametrize("around", ["", "x", "x y ", "1"])
def test_no_long_run_reaches_the_tokenizer_in_one_piece(what: str, around: str) -> None:
    """K21: the tokenizer takes the square of a run's length, so runs are bounded whatever the text."""
    text = around + RUNS[what] * 40_000 + around
    pieces = list(_pieces(text))
    assert "".join(pieces) == text
    assert max(len(run) for piece in pieces for run in LONGEST.findall(piece)) <= 2 * PIECE
    assert max(map(len, pieces)) <= 2 * PIECE + len(around)
    assert abs(EXACT.count(RUNS[what] * 2_000) - 2 * EXACT.count(RUNS[what] * 1_000)) <= 8


def test_an_ordinary_text_is_counted_in_one_piece() -> None:
    """K21: so its count is the tokenizer's own."""
    for text in (
        "The quick brown fox, 3 times. " * 400,
        '{"name":"get_x","input_schema":{"type":"object"}},' * 400,
        "今日はとても良い天気ですね。" * 400,
        "मौसम का हाल बताओ। " * 400,
        "0123456789" * 1_000,
        "x" * (2 * PIECE),
    ):
        assert list(_pieces(text)) == [text]


@given(st.lists(st.text(alphabet="ab \n_-1字।का", max_size=3).map(lambda part: part * 700), max_size=6).map("".join))
@settings(deadline=None)
def test_pieces_put_together_are_the_text(text: str) -> None:
    """K21."""
    assert "".join(_pieces(text)) == text


class Panic(BaseException):
    """What a library in Rust raises."""


@pytest.mark.parametrize("error", [ValueError("bad"), RecursionError(), Panic("stack overflow")])
def test_what_a_tokenizer_raises_becomes_the_estimate(error: BaseException) -> None:
    """K21: no count ends a turn."""

    def encode(text: str) -> list[int]:
        raise error

    assert _bounded(encode)("four characters a token") == ESTIMATE.count("four characters a token")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_a_count_can_be_interrupted(error: BaseException) -> None:
    def encode(text: str) -> list[int]:
        raise error

    with pytest.raises(type(error)):
        _bounded(encode)("text")


class Unshown:
    def __repr__(self) -> str:
        raise ValueError


def test_a_payload_that_is_no_json_is_counted_all_the_same() -> None:
    """K21: a key that is no text, a circle, nesting without end, a value that cannot even be shown."""
    circle: list[Any] = []
    circle.append(circle)
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    for payload in ({(1, 2): 3}, circle, deep, {"a": object()}, [Unshown()], {"a": {1, 2}}):
        for using in (EXACT, ESTIMATE):
            assert using.of(payload) > 0


def test_a_vocabulary_that_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """K21: what lies in a temporary folder may be a folder, or another user's."""
    name = "fb374d419588a4632f3f557e76b4b70aebbca790"  # of o200k_base
    (tmp_path / name).mkdir()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert counter.__wrapped__("o200k_base").count("hello world") == 2


def test_counts_of_the_vocabulary_are_the_published_ones() -> None:
    assert (EXACT.name, EXACT.exact) == ("o200k_base", True)
    assert EXACT.count("hello world") == 2
    assert EXACT.count("") == 0
    assert counter("cl100k_base").count("tiktoken is great!") == 6


def test_a_counter_is_made_once_a_process() -> None:
    """E02: one attempt."""
    assert counter() is counter()


PROGRAM = """
import socket, sys, time
def refuse(*args, **options): raise AssertionError("the network was touched")
socket.socket.connect = socket.getaddrinfo = refuse
for name in sys.argv[1:]:
    sys.modules[name] = None
from toolsearch.tokens import counter
started = time.perf_counter()
for _ in range(1000):
    told = counter()
assert time.perf_counter() - started < 5
print(told.name, told.exact, told.count("hello"), sep="|")
"""


@pytest.mark.parametrize(("hidden", "told"), [
    (["bpe_openai"], "characters / 4 (estimate)|False|2"),
    (["tiktoken"], "characters / 4 (estimate)|False|2"),
    (["tiktoken_ext", "tiktoken_ext.openai_public"], "characters / 4 (estimate)|False|2"),
    ([], "o200k_base|True|1"),
])  # fmt: skip
def test_without_network_and_cache_an_estimate_is_called_one(tmp_path: Path, hidden: list[str], told: str) -> None:
    """E02 and siblings: no vocabulary, no tiktoken; with the packaged vocabulary the count is exact."""
    environment = os.environ | {"TIKTOKEN_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *hidden], check=False, capture_output=True, text=True, env=environment
    )
    assert run.stdout.strip() == told, run.stderr


def test_a_cached_vocabulary_that_is_not_the_published_one_is_not_used(tmp_path: Path) -> None:
    """E02, sibling: half a download."""
    (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").write_bytes(b"aGVsbG8= 0\n")
    environment = os.environ | {"TIKTOKEN_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "bpe_openai"], check=True, capture_output=True, text=True, env=environment
    )
    assert run.stdout.startswith("characters / 4 (estimate)|False")


def test_importing_the_library_does_not_load_a_tokenizer() -> None:
    """E02: import never touches the network, nor anything that could."""
    program = "import toolsearch, sys; print('tiktoken' in sys.modules, 'bpe_openai' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.split() == ["False", "False"]


def test_an_unknown_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no vocabulary 'p50k'; known are 'o200k_base', 'cl100k_base'"):
        counter("p50k")


# -- payloads ----------------------------------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city"}},
    "required": ["city"],
}
OPENAI = [
    {
        "type": "function",
        "function": {"name": f"tool_{i}", "description": "Forecast the weather.", "parameters": SCHEMA},
    }
    for i in range(40)
]
ANTHROPIC = [{"name": f"tool_{i}", "description": "Forecast the weather.", "input_schema": SCHEMA} for i in range(40)]
MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("using", [EXACT, ESTIMATE], ids=lambda c: c.name)
def test_both_tool_forms_of_one_tool_differ_only_by_their_wrapping(using: TokenCounter) -> None:
    """E04: flat definitions are counted as fully as wrapped ones."""
    wrapped, flat = using.of(OPENAI), using.of(ANTHROPIC)
    wrapping = using.of({"type": "function", "function": {}}) + 2
    assert 0 < wrapped - flat <= 40 * wrapping
    assert flat > 40 * using.of(SCHEMA)


@pytest.mark.parametrize("part", [
    {"system": "s" * 400}, {"system": [{"type": "text", "text": "s" * 400}]}, {"tools": OPENAI}, {"tools": ANTHROPIC},
    {"messages": [*MESSAGES, {"role": "tool", "tool_call_id": "1", "content": "r" * 400}]},
    {"messages": [*MESSAGES, {"role": "assistant", "tool_calls": [{"function": {"arguments": "a" * 400}}]}]},
])  # fmt: skip
def test_every_part_of_the_request_is_counted(part: dict[str, Any]) -> None:
    """E04 and siblings: system as text and as blocks, tools of both forms, tool calls, results."""
    bare = {"messages": MESSAGES}
    for using in (EXACT, ESTIMATE):
        added = using.of(bare | part) - using.of(bare)
        assert added >= using.of(next(iter(part.values()))) - using.of(MESSAGES) - 5 > 20


def test_a_payload_is_counted_as_the_compact_json_that_is_sent() -> None:
    """E04."""
    assert ESTIMATE.of({"a": "größe"}) == ESTIMATE.count('{"a":"größe"}') == 4
    assert ESTIMATE.of("text") == 1


PICTURE = "iVBORw0KGgo" + "A/+0" * 250_000  # a megabyte in Base64
IN_BLOCKS = [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
    {"type": "input_image", "image_url": f"data:image/png;charset=utf-8;base64,{PICTURE}"},
    {"inline_data": {"mime_type": "image/png", "data": PICTURE}},
    {"inline_data": {"mime_type": "image/png", "data": b"\x89PNG" + b"\x00" * 750_000}},
    {"type": "image", "data": PICTURE, "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "a:/b", "blob": PICTURE}},
    {"role": "tool", "tool_name": "draw", "content": "", "images": [PICTURE]},
    {"type": "input_file", "file_data": f"data:application/pdf;base64,{PICTURE}"},
    {"type": "input_audio", "input_audio": {"data": "\n".join([PICTURE[:76]] * 900), "format": "wav"}},
]


@pytest.mark.parametrize("using", [EXACT, ESTIMATE], ids=lambda c: c.name)
@pytest.mark.parametrize("block", IN_BLOCKS, ids=lambda block: "-".join(map(str, block))[:30])
def test_E08_an_image_is_never_counted_as_text(using: TokenCounter, block: Any) -> None:
    """E08: in every provider's form, a megabyte of data costs what an image costs."""
    message = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, block]}
    assert MEDIA_TOKENS < using.of(message) < MEDIA_TOKENS + 100
    assert 2 * MEDIA_TOKENS < using.of([message, message]) < 2 * MEDIA_TOKENS + 200
    written = json.dumps(message, separators=(",", ":"), default=lambda data: PICTURE)
    assert MEDIA_TOKENS < using.of_json(written[: len(written) // 2]) < MEDIA_TOKENS + 100, "a part of the text, too"


@pytest.mark.parametrize("payload", [
    {"data": "a word, and many more. " * 100}, {"text": "x" * 5_000}, {"data": "c2hvcnQ="}, ["some text " * 200],
    {"url": "data:image/gif;base64,R0lGODlhAQABAAAAACw="}, {"type": "object", "properties": {"data": {}}},
])  # fmt: skip
def test_E08_siblings_text_is_counted_as_text(payload: Any) -> None:
    for using in (EXACT, ESTIMATE):
        assert using.of(payload) == using.count(json.dumps(payload, ensure_ascii=False, separators=(",", ":")))


def test_E08_a_text_that_is_passed_as_text_is_counted_as_it_stands() -> None:
    text = f"data:image/png;base64,{PICTURE[:8_000]}"
    assert ESTIMATE.of(text) == ESTIMATE.count(text)
