"""Tools encoded in the background: words answer at once, and meaning when the vectors are there."""

import gc
import logging
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from toolsearch import Catalog, SetupError, Tool, ToolCall, ToolSearch
from toolsearch_indexes.encoding import AT_ONCE_IN_BACKGROUND, EncodedTools
from toolsearch_indexes.hybrid import HybridIndex

SECONDS = 30  # a test that waits so long has failed


class Gate:
    """An encoder that encodes tools only after `open`: images one way, everything else another."""

    name, width = "gate", 2

    def __init__(self, *, is_open: bool = False, fails: str = "") -> None:
        self.opened, self.began = threading.Event(), threading.Event()
        self.documents: list[str] = []
        self.fails = fails
        if is_open:
            self.opened.set()

    def open(self) -> None:
        self.opened.set()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        if not query:
            self.began.set()
            assert self.opened.wait(SECONDS)
            self.documents += texts
            if self.fails and any(self.fails in text for text in texts):
                raise TimeoutError("no answer")
        return np.array([[1, 0] if "image" in text or "Eiffel" in text else [0, 1] for text in texts], np.float32)


def tool(name: str, description: str = "") -> Tool:
    return Catalog([{"name": name, "description": description}])[name]


TOOLS = [tool("resize_image", "Change the size of an image."), tool("send_mail", "Send a mail.")]


def test_words_answer_at_once_and_meaning_when_the_tools_are_encoded() -> None:
    gate = Gate()
    index = HybridIndex(gate, in_background=True)
    search = ToolSearch(Catalog(TOOLS), index=index)
    assert gate.began.wait(SECONDS)
    early = search.find("Eiffel")
    assert [hit.tool.id for hit in search.find("send a mail")] == ["send_mail"]
    assert early.degraded == "searched by words only so far: 2 of 2 tools are not encoded yet"
    assert [hit.tool.id for hit in early] == []
    assert index.wait(0) is False
    gate.open()
    assert index.wait(SECONDS) is True
    late = search.find("Eiffel")
    assert late.degraded is None
    assert [hit.tool.id for hit in late] == ["resize_image"]


def test_a_few_tools_that_are_added_later_do_not_take_the_meaning_from_the_rest() -> None:
    gate = Gate(is_open=True)
    index = HybridIndex(gate, in_background=True)
    index.add([*TOOLS, *(tool(f"archive_{n}", "Archive a report.") for n in range(20))])
    assert index.wait(SECONDS)
    gate.opened.clear()
    index.add([tool("crop_image", "Cut the edges of an image.")])
    found = index.search("Eiffel", 5)
    assert [scored.id for scored in found] == ["resize_image"]
    assert found.degraded == "1 tool is searched by words only: not encoded yet"  # type: ignore[attr-defined]
    gate.open()
    assert index.wait(SECONDS)
    assert {scored.id for scored in index.search("Eiffel", 5)} == {"resize_image", "crop_image"}


def test_a_tool_that_leaves_while_it_is_encoded_has_no_vector_afterwards() -> None:
    gate = Gate()
    tools = EncodedTools(gate, in_background=True)
    tools.add(TOOLS)
    assert gate.began.wait(SECONDS)
    remover = threading.Thread(target=tools.remove, args=(["send_mail"],))
    remover.start()
    gate.open()
    remover.join(SECONDS)
    assert tools.wait(SECONDS)
    assert len(tools.vectors) == 1


def test_a_tool_that_changes_while_it_is_encoded_is_encoded_again() -> None:
    gate = Gate()
    tools = EncodedTools(gate, in_background=True)
    tools.add([tool("draw", "old words")])
    assert gate.began.wait(SECONDS)
    tools.add([tool("draw", "new words")])
    gate.open()
    assert tools.wait(SECONDS)
    assert any("new words" in text for text in gate.documents)
    assert tools.waiting == {}


def test_every_tool_is_encoded_once_in_batches(hashed_words: Any) -> None:
    tools = EncodedTools(hashed_words, in_background=True)
    many = [tool(f"tool_{n}", f"Does the thing number {n}.") for n in range(3 * AT_ONCE_IN_BACKGROUND + 1)]
    for one in many:
        tools.add([one])
    assert tools.wait(SECONDS)
    assert len(tools.vectors) == len(many)
    assert len(hashed_words.asked) == len(set(hashed_words.asked))


def test_an_encoder_that_fails_is_logged_and_tried_again_at_the_next_add(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate(is_open=True, fails="mail")
    index = HybridIndex(gate, in_background=True)
    with caplog.at_level(logging.WARNING):
        index.add(TOOLS)
        assert index.wait(SECONDS) is False
    assert "1 tools are found by their words only, as they cannot be encoded: 'send_mail'" in caplog.text
    found = index.search("send mail", 5)
    assert [scored.id for scored in found] == ["send_mail"]
    assert found.degraded == "1 tool is searched by words only: it could not be encoded"  # type: ignore[attr-defined]
    gate.fails = ""
    index.add([tool("other")])
    assert index.wait(SECONDS) is True


def test_an_encoder_that_is_set_up_wrongly_is_logged_and_the_words_are_searched(caplog: Any) -> None:
    class Broken:
        name, width = "broken", 2

        def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
            raise SetupError("no such model")

    with caplog.at_level(logging.WARNING):
        index = HybridIndex(Broken(), in_background=True)
        index.add(TOOLS)
        assert index.wait(SECONDS) is False
    assert "no such model" in caplog.text


def test_one_set_of_vectors_waits_for_the_other(hashed_words: Any) -> None:
    gate = Gate()
    first = EncodedTools(gate, in_background=True)
    second = EncodedTools(hashed_words, in_background=True, after=first)
    first.add(TOOLS)
    second.add(TOOLS)
    assert gate.began.wait(SECONDS)
    assert hashed_words.asked == []
    gate.open()
    assert second.wait(SECONDS)
    assert len(second.vectors) == 2


def test_what_nobody_uses_any_more_is_not_encoded_to_the_end() -> None:
    gate = Gate()
    tools = EncodedTools(gate, in_background=True)
    tools.add([tool(f"tool_{n}") for n in range(4 * AT_ONCE_IN_BACKGROUND)])
    assert gate.began.wait(SECONDS)
    gone = weakref.ref(tools)
    (worker,) = (thread for thread in threading.enumerate() if thread.name == "toolsearch-encoding")
    del tools
    gate.open()
    worker.join(SECONDS)
    gc.collect()
    assert gone() is None
    assert len(gate.documents) < 4 * AT_ONCE_IN_BACKGROUND


def test_a_program_that_ends_meanwhile_ends_quietly_after_a_batch() -> None:
    code = """
import numpy as np
from toolsearch import ToolSearch
from toolsearch_indexes.hybrid import HybridIndex
class Slow:
    name, width, batches = "slow", 2, 0
    def encode(self, texts, *, query=False):
        import time
        Slow.batches += 1
        time.sleep(0.05)
        return np.ones((len(texts), 2), np.float32)
tools = [{"name": f"tool_{n}", "description": f"Does {n}."} for n in range(20_000)]
search = ToolSearch(tools, index=HybridIndex(Slow(), in_background=True))
import atexit
atexit.register(lambda: print("encoded to the end:", Slow.batches > 300))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "encoded to the end: False\n"
    assert done.stderr == ""


def test_queries_are_encoded_together_and_once(hashed_words: Any) -> None:
    index = HybridIndex(hashed_words)
    index.add(TOOLS)
    before = hashed_words.calls
    index.prepare(["send a mail", "make a picture smaller"])
    assert hashed_words.calls == before + 1
    hashed_words.asked.clear()
    for query in ("send a mail", "make a picture smaller", "send a mail"):
        index.search(query, 5)
    assert hashed_words.asked == []


def test_a_search_for_several_queries_encodes_them_together(hashed_words: Any) -> None:
    session = ToolSearch(Catalog(TOOLS), index=HybridIndex(hashed_words)).session()
    session.handle(ToolCall("1", "search_tools", {"queries": ["warm up"]}))
    before = hashed_words.calls
    session.handle(
        ToolCall("2", "search_tools", {"queries": ["send a letter", "make a picture smaller", "shrink photos"]})
    )
    assert hashed_words.calls == before + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_was_forked_meanwhile_encodes_what_still_waits() -> None:
    """As a server that loads the program once, and forks its workers: threads are not copied."""
    program = (
        "import os, threading, numpy as np\n"
        "from toolsearch import Catalog\n"
        "from toolsearch_indexes.encoding import EncodedTools\n"
        "began, go = threading.Event(), threading.Event()\n"
        "class Encoder:\n"
        "    name, width = 'gate', 2\n"
        "    def encode(self, texts, *, query=False):\n"
        "        began.set()\n"
        "        assert go.wait(20)\n"
        "        return np.ones((len(texts), 2), np.float32)\n"
        "tools = EncodedTools(Encoder(), in_background=True)\n"
        "tools.add(list(Catalog([{'name': 'resize'}])))\n"
        "assert began.wait(20)\n"
        "child = os.fork()\n"
        "go.set()\n"
        "if child == 0:\n"
        "    os._exit(0 if not tools.is_encoding and tools.wait(20) else 3)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert tools.wait(20)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_where_no_thread_can_start_it_is_logged_and_nobody_waits(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(is_open=True)
    tools = EncodedTools(gate, in_background=True)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _cannot_start)
        tools.add(TOOLS)
        assert not tools.wait()
    assert "2 tools are found by their words only" in caplog.text
    tools.add([])
    assert tools.wait(SECONDS), "it is tried again at the next add"


def _cannot_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
