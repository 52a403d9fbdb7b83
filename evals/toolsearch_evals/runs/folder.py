"""A run while it is written: a folder in which every finished unit of work is kept at once.

A unit is what is played as a whole: a case, a conversation. Its lines go to `events.jsonl` and `scores.jsonl`, and then
a line to `units.jsonl` says that it is finished and where the two files end by then. So an interruption at any moment
loses no finished unit, and a run that goes on cuts off what was left of an unfinished one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from toolsearch import SetupError
from toolsearch.support.json_types import JsonObject
from toolsearch.support.locks import try_lock
from toolsearch_evals.reports.forms import write
from toolsearch_evals.reports.report import Report
from toolsearch_evals.runs.manifest import FORMAT, Manifest, now
from toolsearch_evals.runs.reading import (
    EVENTS,
    MANIFEST,
    SCORES,
    SEAL,
    UNITS,
    StoredRun,
    file_hash,
    finished_units,
    is_run,
    read_run,
)

__all__ = ["Run"]


class Run:
    """A run that is being played. Use it with `with`, so that its files are closed whatever happens."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._known: dict[str, JsonObject] = {}
        try:
            self._files: dict[str, BinaryIO] = {name: (folder / name).open("ab") for name in (EVENTS, SCORES, UNITS)}
        except OSError as error:
            raise SetupError(f"the run {str(folder)!r} cannot be written: {error.strerror}") from None
        if not try_lock(self._files[UNITS].fileno()):
            self.stop()
            raise SetupError(f"the run {str(folder)!r} is being played by another process: wait for its end")

    @classmethod
    def begin(cls, folder: Path, manifest: Manifest, *, resume: bool = False) -> Run:
        """A new run in a new or empty folder or, with `resume`, the one that was interrupted there, if there is one.

        Raises `SetupError` if the folder holds something else, if its run is closed, was begun and may not go on, or
        is one of something else than this manifest says.
        """
        if not is_run(folder):
            _make(folder, manifest)
            return cls(folder, manifest)
        stored = read_run(folder)
        _require_unfinished(stored, manifest, resume=resume)
        run = cls(folder, stored.manifest)
        try:
            _require_unfinished(read_run(folder), manifest, resume=resume)  # it may have been closed until now
            run._cut_to_whole_units()
        except BaseException:
            run.stop()
            raise
        return run

    def _cut_to_whole_units(self) -> None:
        """Cuts what an interruption left of an unfinished unit, and takes the results of the finished ones."""
        ends = {UNITS: 0, EVENTS: 0, SCORES: 0}
        for end, line in finished_units(self.folder):
            self._known[line["unit"]] = line.get("result") or {}
            ends = {UNITS: end, EVENTS: line["events_end"], SCORES: line["scores_end"]}
        for name, end in ends.items():
            self._files[name].truncate(end)
            self._files[name].seek(end)

    def known(self, unit: str) -> JsonObject | None:
        """The result of a unit that was played before the run went on, {} if it has none; None if it must be played."""
        return self._known.get(unit)

    @property
    def finished(self) -> int:
        """How many units are finished."""
        return len(self._known)

    def record(
        self,
        unit: str,
        *,
        events: Iterable[JsonObject] = (),
        scores: Iterable[JsonObject] = (),
        result: JsonObject | None = None,
    ) -> None:
        """Keeps a unit that is finished: its requests, its cases or turns, and what to know it by when it goes on."""
        if unit in self._known:
            raise SetupError(f"the unit {unit!r} of the run {str(self.folder)!r} is there already: it is played once")
        for name, lines in ((EVENTS, events), (SCORES, scores)):
            for line in lines:
                self._write(name, {"unit": unit, **line})
            self._files[name].flush()
        ends = {"events_end": self._files[EVENTS].tell(), "scores_end": self._files[SCORES].tell()}
        self._write(UNITS, {"unit": unit, **ends, "result": result})
        self._files[UNITS].flush()
        self._known[unit] = result or {}

    def _write(self, name: str, line: JsonObject) -> None:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        self._files[name].write(text.encode("utf-8", "backslashreplace") + b"\n")

    def stored(self) -> StoredRun:
        """What has been kept so far."""
        return read_run(self.folder)

    def close(self, report: Report) -> Report:
        """Writes the report in four forms and seals the folder: from now on it is never changed.

        The report gets the date at which the run began, so that an interrupted run ends with the same one.
        """
        self.stop()
        report = replace(report, when=self.manifest.when)
        written = write(report, self.folder)
        names = [MANIFEST, UNITS, EVENTS, SCORES, *(file.name for file in written)]
        seal = {"format": FORMAT, "closed": now(), "files": {name: file_hash(self.folder / name) for name in names}}
        (self.folder / SEAL).write_text(json.dumps(seal, indent=1) + "\n", "utf-8", newline="\n")
        return report

    def stop(self) -> None:
        """Closes the files. The run stays unfinished if it is not closed."""
        for file in self._files.values():
            file.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _make(folder: Path, manifest: Manifest) -> None:
    part = folder / f"{MANIFEST}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if others := [each.name for each in folder.iterdir() if each.name != part.name]:
            raise SetupError(
                f"the folder {str(folder)!r} holds {min(others)!r} and is no run: name a folder that is new"
            )
        part.write_text(manifest.as_json(), "utf-8", newline="\n")
        part.replace(folder / MANIFEST)
    except OSError as error:
        raise SetupError(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from None


def _require_unfinished(stored: StoredRun, manifest: Manifest, *, resume: bool) -> None:
    where = str(stored.folder)
    if stored.is_closed:
        raise SetupError(
            f"the run {where!r} is closed, and a closed run is never changed: name a folder that is new, or make its "
            "report again with `toolsearch eval score`"
        )
    if not resume:
        raise SetupError(
            f"the run {where!r} was begun and not finished ({len(stored.units)} units are there): go on with --resume, "
            "or name a folder that is new"
        )
    if different := manifest.differences(stored.manifest):
        raise SetupError(
            f"the run {where!r} cannot go on: {_told(different)}. Pass what it was begun with, which its {MANIFEST} "
            "says, or name a folder that is new"
        )


def _told(different: dict[str, tuple[object, object]]) -> str:
    return "; ".join(f"its {name} was {then!r} and is {now!r}" for name, (now, then) in different.items())
