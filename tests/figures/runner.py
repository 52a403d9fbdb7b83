"""Runs commands once and keeps what they gave in build/numbers/, by command, code and data."""

import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from pathlib import Path

from tests.figures.pages import ROOT, Made, Named

KEPT = ROOT / "build" / "numbers"
SOURCES = [ROOT / name for name in ("toolsearch", "indexes", "evals", "datasets")]
TIMED = ("speed", "import-cost")
PACKAGES = ("numpy", "tokenizers", "wordllama", "onnxruntime", "faiss-cpu", "tantivy", "whoosh", "bpe-openai")
MODEL = "agent"  # asks a real model
SECONDS = 1800


class Failed(Exception):
    """A command did not end well."""


@dataclass(frozen=True)
class Runner:
    """Where the public sets are, whether times are measured, and whether everything is run anew."""

    sets: Path | None = None
    times: bool = False
    force: bool = False
    kept: Path = KEPT

    def why_not(self, named: Named) -> str:
        """Why a command is not run, or an empty text."""
        what = named.arguments[1] if named.arguments[:1] == ("eval",) else ""
        if what == MODEL and "--scripted" not in named.arguments:
            return "asks a model"
        if what in TIMED and not self.times:
            return "measures times: TIMES=1 runs it"
        if self.sets is None and any("SETS/" in each for each in named.arguments):
            return "reads sets that do not ship: SETS=FOLDER runs it"
        return ""

    def made(self, named: Named) -> Made:
        """What the command gives, from an earlier run if nothing has changed since. Raises Failed."""
        folder = self.kept / self._key(named)
        if self.force or not (folder / "made.json").exists():
            with tempfile.TemporaryDirectory() as scratch:
                self._run(named, Path(scratch) / "new")
                shutil.rmtree(folder, ignore_errors=True)
                folder.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(Path(scratch) / "new", folder)
        kept = json.loads((folder / "made.json").read_text("utf-8"))
        report = folder / "report.json"
        return Made(kept["output"], json.loads(report.read_text("utf-8")) if report.exists() else None, kept["when"])

    def _run(self, named: Named, folder: Path) -> None:
        """Writes report.json, if the command makes reports, and made.json into a folder."""
        folder.mkdir()
        arguments = [each.replace("SETS/", f"{self.sets}/") for each in _without_out(named.arguments)]
        if reports(named):
            arguments += ["--out", str(folder)]
        done = subprocess.run(
            [sys.executable, "-m", "toolsearch", *arguments],
            cwd=folder, env=environment(), check=False, capture_output=True, encoding="utf-8", timeout=SECONDS,
        )  # fmt: skip
        if done.returncode != 0:
            raise Failed(
                f"`toolsearch {shlex.join(named.arguments)}` ended with {done.returncode}:\n{done.stderr[-2000:]}"
            )
        output = done.stdout.partition("\nWritten: ")[0]
        if self.sets is not None and str(self.sets) in output:
            raise Failed(f"`toolsearch {shlex.join(named.arguments)}` prints where the sets lie")
        now = datetime.now(UTC)
        when = f"{now.day} {now:%B %Y}{commit()}"
        kept = {"command": shlex.join(("toolsearch", *named.arguments)), "output": output, "when": when}
        (folder / "made.json").write_text(json.dumps(kept, ensure_ascii=False, indent=1), "utf-8")

    def _key(self, named: Named) -> str:
        told = hashlib.sha256(self._code.encode())
        told.update(json.dumps(named.arguments).encode())
        for argument in named.arguments:
            if self.sets is not None and "SETS/" in argument:
                told.update(digest([self.sets / argument.partition("SETS/")[2]]).encode())
        return told.hexdigest()[:20]

    @cached_property
    def _code(self) -> str:
        versions = [_version(package) for package in PACKAGES]
        return f"{digest(SOURCES)} {platform.python_version()} {versions}"


def reports(named: Named) -> bool:
    """Whether the command writes a report with `--out`."""
    return named.arguments[0] == "eval" and named.arguments[1] not in ("datasets", "derive", "init", "diff", "runs")


def digest(places: list[Path]) -> str:
    """Of all files in these folders, or of these files, by name and content."""
    told = hashlib.sha256()
    for place in places:
        for file in sorted(_files(place)):
            told.update(file.relative_to(place.parent).as_posix().encode())
            told.update(hashlib.sha256(file.read_bytes()).digest())
    return told.hexdigest()


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    for file in place.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts and ".egg-info" not in file.as_posix():
            yield file


def environment() -> dict[str, str]:
    """Without settings of the user, one thread for each command, and a line of a hundred characters."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TOOLSEARCH_")}
    path = os.pathsep.join(map(str, [ROOT, ROOT / "indexes", ROOT / "evals", ROOT / "datasets"]))
    return kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def commit() -> str:
    """The last one that changed what is measured; it is not named if files differ from it."""
    git = ["git", "-C", str(ROOT)]
    changed = [*git, "status", "--porcelain", "--", "toolsearch", "indexes", "evals", "datasets"]
    try:
        if subprocess.run(changed, check=True, capture_output=True, text=True).stdout:
            return ""
        last = [*git, "log", "-1", "--format=%h", "--", "toolsearch", "indexes", "evals", "datasets"]
        head = subprocess.run(last, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f", commit {head.stdout.strip()}"


def _without_out(arguments: tuple[str, ...]) -> list[str]:
    kept = list(arguments)
    if "--out" in kept:
        at = kept.index("--out")
        del kept[at : at + 2]
    return kept


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
