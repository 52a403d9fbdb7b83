"""Where models are looked for on this machine, and loading once."""

import threading
import time
from pathlib import Path

import pytest

from toolsearch.errors import MissingExtra
from toolsearch_indexes.encoders.loading import Once, digest, model_folder, require

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def file(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_a_folder_is_found_by_its_path(tmp_path: Path) -> None:
    file(tmp_path / "model" / "modules.json")
    assert model_folder(tmp_path / "model", "modules.json") == tmp_path / "model"
    assert model_folder(tmp_path, "modules.json") is None


@pytest.mark.parametrize("name", ["a_package_with_weights", "a-package-with-weights"])
def test_a_package_that_ships_a_model_is_found_by_its_name_and_not_imported(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = file(tmp_path / "a_package_with_weights" / "__init__.py", "raise RuntimeError").parent
    file(package / "deep" / "down" / "modules.json")
    file(package / "model" / "modules.json")
    monkeypatch.syspath_prepend(tmp_path)
    assert model_folder(name, "modules.json") == package / "model"
    assert model_folder(name, "down/modules.json") == package / "deep"


@pytest.mark.parametrize(("variable", "below"), [("HF_HUB_CACHE", ""), ("HF_HOME", "hub")])
def test_a_name_is_found_in_the_cache_of_the_hub(
    variable: str, below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    repository = tmp_path / below / "models--someone--small-model"
    file(repository / "refs" / "main", COMMIT)
    assert model_folder("someone/small-model", "modules.json") is None  # a download that was broken off
    marker = file(repository / "snapshots" / COMMIT / "modules.json")
    assert model_folder("someone/small-model", "modules.json") == marker.parent
    assert model_folder("someone/other", "modules.json") is None


@pytest.mark.parametrize("name", ["", "no such model", "../..", "a/b/c", "json", "\0"])
def test_what_is_nowhere_is_none(name: str) -> None:
    assert model_folder(name, "modules.json") is None


def test_a_missing_package_is_one_error_with_the_install_line() -> None:
    with pytest.raises(MissingExtra, match=r"This needs the package 'no-such-package'.* 'toolsearch-kit\[onnx\]'"):
        require("This", ["json", "no_such_package"], "onnx")


def test_a_digest_tells_contents_apart_and_their_names_do_not_matter(tmp_path: Path) -> None:
    one, same = file(tmp_path / "a", "x"), file(tmp_path / "b", "x")
    other = file(tmp_path / "c", "y")
    assert digest([one]) == digest([same]) != digest([other])
    assert digest([one], "p") != digest([one]) != digest([one, other])


def test_many_threads_load_once() -> None:
    loads: list[int] = []

    def load() -> object:
        time.sleep(0.02)
        loads.append(1)
        return object()

    once = Once(load)
    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(once())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(got) == 8
    assert len(set(map(id, got))) == 1


def test_what_failed_to_load_is_tried_again() -> None:
    answers = iter([OSError("busy"), "model"])

    def load() -> str:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    once = Once(load)
    with pytest.raises(OSError, match="busy"):
        once()
    assert once() == once() == "model"
