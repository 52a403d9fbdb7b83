"""A run as it was kept: what was recorded, whether it is closed, and whether a file was changed since.

    manifest.json    what the run is of
    units.jsonl      one line a finished unit of work: its result, and where its lines end in the two files below
    events.jsonl     one line a request to a model
    scores.jsonl     one line a case or turn
    report.*         the report in four forms                     once it is closed
    seal.json        a SHA-256 hash of each of the other files    once it is closed

Lines of a unit that has no line in `units.jsonl` were cut off in the middle, and count as not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import toolsearch
from toolsearch import SetupError
from toolsearch.support.html import table
from toolsearch.support.json_types import JsonObject
from toolsearch_evals.reports.frames import pandas_frame, polars_frame
from toolsearch_evals.reports.values import described
from toolsearch_evals.runs.manifest import Manifest

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = [
    "EVENTS",
    "MANIFEST",
    "SCORES",
    "SEAL",
    "UNITS",
    "StoredRun",
    "as_written",
    "file_hash",
    "finished_units",
    "is_run",
    "read_run",
    "whole_lines",
]

MANIFEST, UNITS, EVENTS, SCORES, SEAL = "manifest.json", "units.jsonl", "events.jsonl", "scores.jsonl", "seal.json"
Kind = Literal["scores", "events", "units"]  # of lines


def is_run(folder: Path) -> bool:
    """Whether a run was begun in the folder."""
    return (folder / MANIFEST).is_file()


def file_hash(file: Path) -> str:
    """SHA-256 of a file. Line ends of Windows count as others, since git may put them in."""
    return hashlib.sha256(file.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def whole_lines(file: Path) -> Iterator[tuple[int, JsonObject]]:
    """The JSON objects of the lines that were written to their end, each with the place in bytes where it ends."""
    if not file.is_file():
        return
    end = 0
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            end += len(line)
            if not line.endswith(b"\n"):
                return
            try:
                read = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SetupError(f"{str(file)!r}, line {number}, is not valid JSON: {error}") from None
            if not isinstance(read, dict) or not isinstance(read.get("unit"), str):
                raise SetupError(f"{str(file)!r}, line {number}, is no line of a run: it names no unit")
            yield end, read


def finished_units(folder: Path) -> Iterator[tuple[int, JsonObject]]:
    """The lines of the finished units. Raises `SetupError` if the other files end before a unit's own lines do."""
    sizes = {f"{Path(name).stem}_end": (name, _size(folder / name)) for name in (EVENTS, SCORES)}
    for place, line in whole_lines(folder / UNITS):
        for key, (name, size) in sizes.items():
            end = line.get(key)
            if not isinstance(end, int) or not 0 <= end <= size:
                raise SetupError(
                    f"{name!r} of the run {str(folder)!r} ends before the unit {line['unit']!r} does: a part of the "
                    "file is lost. Restore the folder, or play it again into a new one"
                )
        yield place, line


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


@contextmanager
def as_written(*runs: StoredRun) -> Generator[None]:
    """Says that a run's files are not as this version writes them, where reading them fails for that.

    A run that this version has closed is as it was written: what fails there is a mistake of the program.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        doubtful = [each for each in runs if not each.is_closed or each.manifest.version != toolsearch.__version__]
        if not doubtful:
            raise
        names = " or ".join(repr(str(each.folder)) for each in doubtful)
        raise SetupError(
            f"the files of {names} are not as this version of toolsearch writes them ({type(error).__name__}: {error})"
            ": restore the folder, or play it again into a new one"
        ) from error


@dataclass(frozen=True)
class StoredRun:
    """A run in its folder. `changed` names the files that are not as they were when it was closed."""

    folder: Path
    manifest: Manifest
    is_closed: bool
    changed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.resolve().name

    @cached_property
    def units(self) -> dict[str, JsonObject]:
        """The result of each finished unit, in the order in which they were played; {} for one without a result."""
        return {line["unit"]: line.get("result") or {} for _, line in finished_units(self.folder)}

    def events(self) -> Iterator[JsonObject]:
        """What is known of each request."""
        return self._lines(EVENTS)

    def scores(self) -> Iterator[JsonObject]:
        """What is known of each case or turn."""
        return self._lines(SCORES)

    def to_pandas(self, of: Kind = "scores") -> pandas.DataFrame:
        """Its scores, a row for each case or turn, or its "events", a row for each request, or its "units".

        Raises `MissingExtra`, which has the install line, without pandas.
        """
        return pandas_frame(self._rows(of))

    def to_polars(self, of: Kind = "scores") -> polars.DataFrame:
        """As `to_pandas`, for polars."""
        return polars_frame(self._rows(of))

    def _rows(self, of: Kind) -> Iterator[JsonObject]:
        if of == "units":
            return ({"unit": name, **result} for name, result in self.units.items())
        if of not in ("scores", "events"):
            raise SetupError(f"a run has no {of!r}: pass 'scores', 'events' or 'units'")
        return self.scores() if of == "scores" else self.events()

    def _repr_html_(self) -> str:
        state = "closed" if self.is_closed else "not closed: what is missing can be played with --resume"
        changed = f"Changed after it was closed: {', '.join(self.changed)}." if self.changed else ""
        told = self.manifest
        rows = [
            ("kind", told.kind),
            ("begun", told.when),
            ("command", told.command),
            ("toolsearch", f"{told.version}, commit {told.commit[:12]}" if told.commit else told.version),
            ("data", ", ".join(told.data)),
            ("index", ", ".join(told.index)),
            ("settings", described(told.settings)),
            ("units played", f"{len(self.units):,}"),
            ("state", state),
            ("found", self.headline()),
        ]
        return table(f"Run {self.name}", (), [row for row in rows if row[1]], note=changed)

    def _lines(self, name: str) -> Iterator[JsonObject]:
        return (line for _, line in whole_lines(self.folder / name) if line["unit"] in self.units)

    def headline(self) -> str:
        """The first sentence of its report; empty if it has none."""
        file = self.folder / "report.json"
        try:
            return str(json.loads(file.read_text("utf-8"))["headline"][0]) if file.is_file() else ""
        except (ValueError, LookupError, TypeError):
            return ""

    def require_unchanged(self) -> StoredRun:
        """Itself. Raises `SetupError` if a file was changed after the run was closed."""
        if self.changed:
            raise SetupError(
                f"{' and '.join(map(repr, self.changed))} of the run {str(self.folder)!r} changed after it was closed, "
                "so its figures cannot be trusted: restore the folder, or play it again into a new one"
            )
        return self


def read_run(folder: Path) -> StoredRun:
    """The run in a folder. Raises `SetupError` if there is none, or one of another format."""
    if not is_run(folder):
        raise SetupError(f"there is no run in {str(folder)!r}: a run's folder has a {MANIFEST}")
    try:
        text = (folder / MANIFEST).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the {MANIFEST} of {str(folder)!r} cannot be read: {error}") from None
    manifest = Manifest.from_json(text, repr(str(folder)))
    seal = folder / SEAL
    if not seal.is_file():
        return StoredRun(folder, manifest, is_closed=False)
    return StoredRun(folder, manifest, is_closed=True, changed=tuple(_changed(folder, seal)))


def _changed(folder: Path, seal: Path) -> Iterator[str]:
    try:
        files = json.loads(seal.read_text("utf-8"))["files"]
        hashes = files.items() if isinstance(files, Mapping) else ()
    except (ValueError, KeyError, TypeError):
        hashes = ()
    if MANIFEST not in dict(hashes):  # it seals nothing
        yield SEAL
        return
    for name, kept in hashes:
        file = folder / name
        if not file.is_file() or file_hash(file) != kept:
            yield str(name)
