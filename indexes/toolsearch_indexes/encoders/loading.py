"""What encoders share: where a model's files are, a digest of them, loading once, and how many cores there are."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Generic, TypeVar

from toolsearch.errors import MissingExtra
from toolsearch.support.threads import after_fork

__all__ = ["Once", "digest", "model_folder", "require", "usable_cores"]

T = TypeVar("T")

_SHOWN = 12  # hexadecimal digits of a digest in a name: 48 bits are enough to tell a user's models apart


class Once(Generic[T]):
    """Calls a function at the first call and returns its result from then on; after an error it tries again."""

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._result: list[T] = []
        self._renew_lock()
        after_fork(self, Once._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def __call__(self) -> T:
        if not self._result:
            with self._lock:
                if not self._result:
                    self._result.append(self._load())
        return self._result[0]


def require(what: str, packages: Iterable[str], extra: str) -> None:
    """Raises `MissingExtra` for the first of these import packages that is not installed; imports none of them."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(what, package.replace("_", "-"), extra)


def model_folder(model: str | os.PathLike[str], marker: str) -> Path | None:
    """The folder on this machine that has a model's file `marker` below it, or None; asks no network.

    `model` is a folder, the import name of a package that ships one, or a name as on the Hugging Face hub, which is
    looked for in that hub's own cache.
    """
    folder = Path(model)
    if (folder / marker).is_file():
        return folder
    name = os.fspath(model)
    package = name.replace("-", "_")
    if package.isidentifier() and (spec := find_spec(package)) is not None:
        for place in spec.submodule_search_locations or ():
            for file in sorted(Path(place).rglob(marker), key=lambda path: (len(path.parts), path)):
                return file.parents[len(Path(marker).parts) - 1]
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        repository = _hub_cache() / f"models--{name.replace('/', '--')}"
        try:
            commit = (repository / "refs" / "main").read_text("utf-8").strip()
        except (OSError, ValueError):
            return None
        snapshot = repository / "snapshots" / commit
        return snapshot if (snapshot / marker).is_file() else None
    return None


def _hub_cache() -> Path:
    """Where huggingface_hub keeps what it downloaded, by the variables it reads itself."""
    environ = os.environ
    if folder := environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    if home := environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    cache = environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path("~/.cache")).expanduser() / "huggingface" / "hub"


def digest(files: Iterable[Path], *also: str) -> str:
    """A short digest of the contents of these files, in the order of their names, and of these texts."""
    whole = hashlib.sha256()
    for file in sorted(files):
        with file.open("rb") as opened:
            whole.update(hashlib.file_digest(opened, "sha256").digest())
    for text in also:
        whole.update(hashlib.sha256(text.encode("utf-8", "replace")).digest())
    return whole.hexdigest()[:_SHOWN]


def usable_cores() -> int:
    """How many cores this process may use; `OMP_NUM_THREADS` limits them, as it does for other libraries."""
    here = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(here, int(limit)) if limit.isascii() and limit.isdigit() and int(limit) else here
