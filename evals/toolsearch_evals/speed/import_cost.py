"""What `import toolsearch` costs compared with importing pydantic and defining one model, in fresh interpreters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.reports.report import Column, Report, ReportTable

__all__ = ["import_cost"]

_PROGRAMS = {
    "nothing": "pass",
    "pydantic and one model": (
        "import pydantic\nclass Model(pydantic.BaseModel):\n    name: str\n    count: int = 0\n    tags: list[str] "
        "= []\n"
    ),
    "toolsearch": "import toolsearch",
}
_PRINT_TIME = "\nimport time\nprint(time.process_time())"


def import_cost(runs: int = 10, tick: Callable[[str], None] = lambda _: None) -> Report:
    """The report on the CPU time of whole processes, as each reports it at its end. A first round is not counted."""
    if runs < 1:
        raise SetupError(f"{runs} runs measure nothing; pass 1 or more")
    rows = _rows(_times(runs, tick))
    last = rows[-1]
    return Report(
        kind="import-cost",
        title="What the import costs",
        headline=(
            (
                f"`import toolsearch` takes {last['ratio']:.2f} times the CPU of importing pydantic and defining one "
                f"model ({last['ratio without start']:.2f} times without the interpreter's own start)."
            ),
        ),
        parameters={"runs": runs},
        tables=(ReportTable("CPU time of a process", _COLUMNS, rows),),
        measured=(
            "Fresh interpreters in turn; CPU time by `time.process_time` at the end; ratios are of the least times.",
        ),
        limits=("Byte code is already compiled, as it is after a first import.",),
    )


def _times(runs: int, tick: Callable[[str], None]) -> dict[str, list[float]]:
    """Milliseconds of each run of each program, without the first round."""
    times: dict[str, list[float]] = {name: [] for name in _PROGRAMS}
    for run in range(runs + 1):
        for name, program in _PROGRAMS.items():
            done = subprocess.run(  # noqa: S603 - this interpreter, programs of ours
                [sys.executable, "-c", program + _PRINT_TIME], check=True, capture_output=True, text=True
            )  # fmt: skip
            if run:
                times[name].append(1_000 * float(done.stdout))
            tick(name)
    return times


def _rows(times: dict[str, list[float]]) -> list[dict[str, Any]]:
    least = {name: min(of) for name, of in times.items()}
    base = least["pydantic and one model"]
    return [
        {
            "program": name,
            "runs": len(of),
            "least": least[name],
            "median": median(of),
            "ratio": least[name] / base,
            "ratio without start": (least[name] - least["nothing"]) / (base - least["nothing"]),
        }
        for name, of in times.items()
    ]


_COLUMNS = (
    Column("program", "program"),
    Column("least", "least CPU, ms", "milliseconds"),
    Column("median", "median CPU, ms", "milliseconds"),
    Column("ratio", "to pydantic", "number"),
    Column("ratio without start", "to pydantic, without the interpreter's start", "number"),
)
