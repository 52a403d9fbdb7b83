"""`make numbers`: runs every command that a page names, and writes the pages again.

    python -m tests.figures                      what ships, without times
    python -m tests.figures --sets FOLDER        also what reads `SETS/…`, public sets that do not ship
    python -m tests.figures --times              also what measures times, one command after the other
    python -m tests.figures commons-test         some commands

Ends with 1 if a command failed or a figure was not found; everything else is written all the same.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.figures.pages import ROOT, Made, Named, commands, pages
from tests.figures.runner import TIMED, Failed, Runner, environment

PICTURED = "demo"  # the command whose figures the picture in README.md shows


def main(arguments: Sequence[str] | None = None) -> int:
    given = _given(arguments)
    runner = Runner(given.sets.resolve() if given.sets else None, given.times, given.force)
    named = commands(pages())
    if unknown := sorted({*given.names} - {*named}):
        print(f"no page names a command {unknown[0]!r}; they name {', '.join(sorted(named))}", file=sys.stderr)
        return 2
    wanted = [each for each in named.values() if not given.names or each.name in given.names]
    made, wrong = run(runner, wanted, given.jobs)
    for page in pages():  # read now: they may have been edited meanwhile
        text = page.remade(made)
        wrong += page.wrong
        if text != page.text:
            page.path.write_text(text, "utf-8", newline="\n")
            print(f"{page.name}: written")
    if PICTURED in made:
        subprocess.run([sys.executable, str(ROOT / "tests" / "refresh_picture.py")], check=True, env=environment())
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make numbers", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="the commands to run; all if none is named")
    parser.add_argument("--sets", type=Path, help="the folder that SETS stands for")
    parser.add_argument("--times", action="store_true", help="measure times too")
    parser.add_argument("--force", action="store_true", help="run again what has been run on the same code and data")
    parser.add_argument("--jobs", type=int, default=2, help="how many commands run at once (2)")
    return parser.parse_args(arguments)


def run(runner: Runner, wanted: Sequence[Named], jobs: int) -> tuple[dict[str, Made], list[str]]:
    """What the commands gave, and what failed. Those that measure times run last, alone."""
    made: dict[str, Made] = {}
    wrong: list[str] = []

    def one(named: Named) -> None:
        if reason := runner.why_not(named):
            print(f"{named.name}: left as it is; it {reason}", flush=True)
            return
        begun = time.monotonic()
        try:
            made[named.name] = runner.made(named)
            print(f"{named.name}: {time.monotonic() - begun:.0f} s", flush=True)
        except Failed as error:
            wrong.append(f"{named.name}: {error}")

    alone = [named for named in wanted if named.arguments[1:2] and named.arguments[1] in TIMED]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, [named for named in wanted if named not in alone]))
    for named in alone:
        one(named)
    return made, wrong


if __name__ == "__main__":
    sys.exit(main())
