"""What `import toolsearch` costs, beside importing pydantic and defining one model, in fresh interpreters by turns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.report import Column, Report, Table

__all__ = ["import_cost"]

_PROGRAMS = {
    "nothing": "pass",
    "pydantic and one model": (
        "import pydantic\nclass Model(pydantic.BaseModel):\n    name: str\n    count: int = 0\n    tags: list[str] "
        "= []\n"
    ),
    "toolsearch": "import toolsearch",
}
_TELL = "\nimport time\nprint(time.process_time())"


def import_cost(runs: int = 10, tick: Callable[[str], None] = lambda _: None) -> Report:
    """The report. CPU time of the whole process, as it tells itself at its end; a first round is not counted."""
    if runs < 1:
        raise SetupError(f"{runs} runs measure nothing; pass 1 or more")
    times: dict[str, list[float]] = {name: [] for name in _PROGRAMS}
    for run in range(runs + 1):
        for name, program in _PROGRAMS.items():
            done = subprocess.run(  # noqa: S603 - this interpreter, programs of ours
                [sys.executable, "-c", program + _TELL], check=True, capture_output=True, text=True
            )  # fmt: skip
            if run:
                times[name].append(1_000 * float(done.stdout))
            tick(name)
    least = {name: min(of) for name, of in times.items()}
    base = least["pydantic and one model"]
    rows: list[dict[str, Any]] = [
        {
            "program": name,
            "runs": runs,
            "least": least[name],
            "median": median(of),
            "ratio": least[name] / base,
            "ratio without start": (least[name] - least["nothing"]) / (base - least["nothing"]),
        }
        for name, of in times.items()
    ]
    last = rows[-1]
    columns = (
        Column("program", "program"),
        Column("least", "least CPU, ms", "milliseconds"),
        Column("median", "median CPU, ms", "milliseconds"),
        Column("ratio", "to pydantic", "number"),
        Column("ratio without start", "to pydantic, without the interpreter's start", "number"),
    )
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
        tables=(Table("CPU time of a process", columns, rows),),
        measured=("Fresh interpreters by turns, CPU time by `time.process_time` at the end; ratios are of the least.",),
        limits=("Byte code is compiled already, as after a first import.",),
    )
