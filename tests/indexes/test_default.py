"""The index `auto`: which one it is follows from what is installed, and is said."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolsearch import SetupError, ToolSearch, open_index
from toolsearch_indexes.encoders import static

TOOLS = [{"name": "resize_image", "description": "Change the size of an image."}, {"name": "send_mail"}]


def test_words_and_meaning_are_searched_where_an_encoder_is_installed() -> None:
    search = ToolSearch(TOOLS)
    hits = search.find("make this picture smaller")
    assert [hit.tool.id for hit in hits] == ["resize_image"]
    assert search.settings.index == "auto"
    assert hits.index_name == search.index.name == open_index("auto").name == "hybrid"
    assert "'hybrid'" in repr(search)


@pytest.mark.parametrize("missing", ["numpy", "tokenizers", "safetensors", "wordllama"])
def test_without_the_packages_of_its_encoder_words_are_searched(missing: str) -> None:
    """Whichever of them is missing; found without an import, and told with the line that installs it."""
    code = f"""
import importlib.util, json, logging, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == {missing!r} else find(name, *more)
logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
from toolsearch import ToolSearch
search = ToolSearch({TOOLS!r})
hits = search.find("change the image's size")
heavy = sorted({{"numpy", "tokenizers", "safetensors", "wordllama"}} & set(sys.modules))
print(json.dumps([hits.index_name, repr(search), [hit.tool.id for hit in hits], heavy]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        "keyword", "ToolSearch(Catalog(2 tools), 'keyword', 0 pinned)", ["resize_image"], [],
    ]  # fmt: skip
    assert "the index 'auto' is 'keyword': " in done.stderr
    assert f"needs the package {missing!r}. Install it with: pip install 'toolsearch-kit[" in done.stderr


def test_an_encoder_that_is_installed_and_broken_is_an_error_and_no_fallback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "weights").mkdir()
    monkeypatch.setattr(static, "model_folder", lambda *_: tmp_path)
    with caplog.at_level(logging.INFO), pytest.raises(SetupError, match="holds 0 models, not one"):
        open_index("auto")
    assert caplog.text == ""


def test_all_indexes_of_a_process_share_one_model() -> None:
    """A table of 32 MB, which takes a quarter of a second to read."""
    made: list[Any] = [static.StaticEncoder() for _ in range(3)]
    assert len({id(encoder._model()) for encoder in made}) == 1
