"""One engine in a process of its own, which the run starts, times, queries, and ends when its time is up.

Only in a fresh process can an import, a first query and resident memory be measured, and only there does no engine
profit from what another has loaded. Commands and answers are lines of JSON; the tools come in a file.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from statistics import median
from threading import Timer
from time import perf_counter, process_time
from typing import Any

from toolsearch import Tool
from toolsearch_evals.speed.engines import ChangingEngine, Engine, IndexEngine, milliseconds, open_engine

__all__ = ["EngineMissing", "EngineProcess", "EngineUnfinished", "write_tools"]

WARM_UP = "list the files of a folder"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class EngineUnfinished(Exception):
    """The engine was ended because its time was up, or it failed; the text says which."""


class EngineMissing(Exception):
    """The engine's package is not installed; the text is the package's own message, or ours."""


class EngineProcess:
    """The process as the run sees it. Use it with `with`, which ends the process."""

    def __init__(self, engine: str, tools: Path) -> None:
        self.engine = engine
        self._tools = tools

    def __enter__(self) -> EngineProcess:
        one_thread = dict.fromkeys(_THREADS, "1")
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, a module of ours
            [sys.executable, "-P", "-m", __name__, self.engine, str(self._tools)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, **one_thread},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, what: str, given: Any, seconds: float) -> Any:
        """The answer to a command. Raises `EngineUnfinished`, and ends the process, if none comes within the time."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: PT018
        late: list[bool] = []

        def end() -> None:
            late.append(True)
            self._process.kill()

        ended = Timer(seconds, end)
        ended.start()
        try:
            with suppress(OSError):  # the process has ended: no answer comes
                stdin.write(json.dumps([what, given]) + "\n")
                stdin.flush()
            line = stdout.readline()
        finally:
            ended.cancel()
        if not line:
            raise EngineUnfinished(
                f"not finished in {seconds:g} s" if late else f"its process ended with code {self._process.wait()}"
            )
        answer = json.loads(line)
        if "missing" in answer:
            raise EngineMissing(answer["missing"])
        if "failed" in answer:
            raise EngineUnfinished(answer["failed"])
        return answer["result"]


def write_tools(file: Path, tools: Sequence[Tool], fresh: Sequence[Tool]) -> None:
    """Writes what the processes read: the tools to build on, and those to be added one by one."""
    file.write_bytes(pickle.dumps((list(tools), list(fresh))))


class _ServedEngine:
    """The engine as its own process sees it."""

    def __init__(self, engine: Engine, tools: list[Tool], fresh: list[Tool]) -> None:
        self._engine, self._tools, self._fresh = engine, tools, fresh

    def ready(self, _: Any) -> bool:
        """Answers as soon as the process can, so that starting Python counts for no engine."""
        return True

    def build(self, _: Any) -> dict[str, Any]:
        """Milliseconds of starting with one tool, of building, and of the first query; bytes of memory for each."""
        if isinstance(self._engine, IndexEngine):
            self._engine.prepare(self._tools)
        before = _resident()
        started = milliseconds(self._engine.build, self._tools[:1])
        packages = _resident()
        built = milliseconds(self._engine.build, self._tools)
        first = milliseconds(self._engine.search, WARM_UP)
        after = _resident()
        return {
            "start": started,
            "build": built,
            "first": first,
            "packages": None if before is None or packages is None else packages - before,
            "memory": None if before is None or after is None else after - before,
        }

    def search(self, texts: list[str]) -> dict[str, Any]:
        """Milliseconds of each query, and of the processor for all, after one query that is not counted.

        That one brings the engine's data back into the processor's cache, which other processes have used meanwhile.
        """
        self._engine.search(WARM_UP)
        began = process_time()
        times = [milliseconds(self._engine.search, text) for text in texts]
        return {"times": times, "processor": 1_000 * (process_time() - began)}

    def change(self, seconds: float) -> dict[str, float] | None:
        """Median milliseconds of adding a tool and searching for it, and of removing it and searching again."""
        engine = self._engine
        if not isinstance(engine, ChangingEngine):
            return None
        began = perf_counter()
        added: list[float] = []
        removed: list[float] = []

        def then_searched(change: Callable[[Tool], None], tool: Tool) -> float:
            began = perf_counter()
            change(tool)
            engine.search(tool.name)
            return 1_000 * (perf_counter() - began)

        for tool in self._fresh:
            added.append(then_searched(engine.add, tool))
            removed.append(then_searched(engine.remove, tool))
            if perf_counter() - began > seconds:
                break
        return {"add": median(added), "remove": median(removed)}

    def beside_numpy(self, texts: list[str]) -> dict[str, Any] | None:
        return self._engine.beside_numpy(texts) if isinstance(self._engine, IndexEngine) else None


def _resident() -> int | None:
    """Bytes of this process in memory now; None if only psutil could say it and is missing."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        pass
    try:
        psutil = import_module("psutil")
    except ImportError:
        return None
    return int(psutil.Process().memory_info().rss)


def _serve(engine: str, file: str) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a package prints is not an answer
    tools, fresh = pickle.loads(Path(file).read_bytes())  # noqa: S301 - written by the run that started this
    served = _ServedEngine(open_engine(engine), tools, fresh)
    for line in sys.stdin:
        what, given = json.loads(line)
        try:
            answer = {"result": getattr(served, what)(given)}
        except ImportError as error:
            answer = {"missing": str(error)}
        except Exception as error:  # whatever a package raises is reported, and the run goes on with the others
            answer = {"failed": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
