"""Writers of index folders are killed at random moments, two at once too, and files are damaged: a search is right.

This module is also the writer: `python -m tests.torture.folders KIND FOLDER SEED` writes until it is killed.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.torture import Outcome
from tests.torture.damage import damage
from toolsearch import Catalog, SetupError, ToolSearch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KINDS = ("whoosh", "tantivy", "faiss", "cache")
TOOLS, FOREIGN = 120, "thesis.doc"


class Words:
    """An encoder that gives each text a direction of its own."""

    name, width = "torture", 64

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        import numpy as np

        seeds = [int.from_bytes(text.encode()[-8:], "big") for text in texts]
        return np.array([np.random.default_rng(seed).normal(size=self.width) for seed in seeds], np.float32)


def catalog(version: int = 0) -> Catalog:
    """A third of the tools are others in each version."""
    described = [f"Does thing{n} version{version if n % 3 == 0 else 0} of subject{n % 50}" for n in range(TOOLS)]
    return Catalog([{"name": f"tool_{n}", "server": "s", "description": text} for n, text in enumerate(described)])


def opened(kind: str, folder: Path) -> Any:
    """The index in a folder, or the cache of vectors."""
    match kind:
        case "whoosh":
            from toolsearch_indexes.whoosh import WhooshIndex

            return WhooshIndex(folder)
        case "tantivy":
            from toolsearch_indexes.tantivy import TantivyIndex

            return TantivyIndex(folder)
        case "faiss":
            from toolsearch_indexes.faiss import FaissIndex

            return FaissIndex.load(folder, Words())
        case _:
            from toolsearch_indexes.encoders.cache import CachedEncoder

            return CachedEncoder(Words(), folder)


def write_until_killed(kind: str, folder: str, seed: str) -> None:
    """Writes one version after the other."""
    rng, place = random.Random(int(seed)), Path(folder)
    index: Any = None
    print("ready", flush=True)
    while True:
        with suppress(SetupError):  # the other writer has had the lock for too long
            index = index or opened(kind, place)
            if kind == "cache":
                index.encode([f"text {rng.randrange(10**9)}" for _ in range(50)])
                continue
            index.add(list(catalog(rng.randrange(10**6))))
            if kind == "faiss":
                index.save(place)


def check(kind: str, folder: Path) -> str:
    """Uses a folder as a new process would; returns what is wrong."""
    try:
        index = opened(kind, folder)
        if kind == "cache":
            return "" if len(index.encode(["x", "y"])) == 2 else "vectors are missing"
        search = ToolSearch(tools := catalog(), index=index)
        if kind == "faiss":
            index.save(folder)
        for n in range(0, TOOLS, 17):
            found = [hit.tool.id for hit in search.find(f"thing{n}", 3)]
            if any(each not in tools for each in found):
                return "it finds a tool that is gone"
            if kind != "faiss" and found[:1] != [f"s/tool_{n}"]:
                return f"it finds {found} for thing{n}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def index_folders(rounds: int = 6, seed: int = 2, *, seconds: float = 60.0) -> Outcome:
    """Kills the writers of each kind of folder `rounds` times, each time with a search after it; then damages files."""
    rng, outcome = random.Random(seed), Outcome()
    killed: Counter[str] = Counter()
    damaged = 0
    for kind in KINDS:
        until = time.monotonic() + seconds / len(KINDS)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "index"
            for place in range(rounds):
                if place and time.monotonic() > until:
                    break
                killed[kind] += _kill_writers(kind, folder, rng, writers=2 if place % 3 == 2 else 1)
                for attempt in range(2):  # the second process must work too
                    if problem := check(kind, folder):
                        outcome.violations.append(f"{kind}, kill {place}, process {attempt}: {problem}")
                if place == 0:
                    (folder / FOREIGN).write_text("mine")
            damaged += _damage_it(kind, folder, rng, rounds, outcome) if kind != "cache" else 0
            if not (folder / FOREIGN).exists():
                outcome.violations.append(f"{kind}: a foreign file in the folder is gone")
    outcome.figures = {"damaged files": damaged, **{f"kills, {kind}": n for kind, n in killed.items()}}
    return outcome


def _kill_writers(kind: str, folder: Path, rng: random.Random, *, writers: int) -> int:
    command = [sys.executable, "-m", "tests.torture.folders", kind, str(folder)]
    processes = [
        subprocess.Popen([*command, str(rng.randrange(10**6))], stdout=subprocess.PIPE, text=True)
        for _ in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    time.sleep(rng.uniform(0.1, 0.8))
    for process in processes:
        process.kill()
        process.communicate()
    return writers


def _damage_it(kind: str, folder: Path, rng: random.Random, times: int, outcome: Outcome) -> int:
    """Changes, cuts, empties or removes one file of a whole folder at a time."""
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    for number in range(times):
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)
        file = rng.choice(sorted(each for each in folder.rglob("*") if each.is_file() and each.name != FOREIGN))
        damage(file, number, rng)
        if problem := check(kind, folder):
            outcome.violations.append(f"{kind}, {file.name} damaged: {problem}")
    return times


if __name__ == "__main__":
    write_until_killed(*sys.argv[1:])
