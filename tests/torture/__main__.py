"""`make torture`: every attack in a process of its own, two at a time, within five minutes.

    python -m tests.torture                    all of them
    python -m tests.torture kills storm        some
    python -m tests.torture --seed 7           with other random choices

Prints what each did, in figures, and each promise that did not hold. Exits with 1 if there was one, or if an attack did
not end in time.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import import_module
from typing import NamedTuple

from tests.torture import Outcome


class Attack(NamedTuple):
    """A function of a module beside this one, its size here, and what it attacks."""

    module: str
    size: dict[str, int]
    what: str

    def run(self, name: str, seed: int) -> Outcome:
        function = getattr(import_module(f"tests.torture.{self.module}"), name)
        outcome: Outcome = function(**self.size, seed=seed)
        return outcome


ATTACKS = {
    "index_folders": Attack("folders", {"rounds": 6}, "folders of indexes, writers killed, files damaged"),
    "kills": Attack("kill", {"rounds": 60}, "workers killed at any moment"),
    "takeovers": Attack("kill", {"count": 4}, "three workers after a kill"),
    "storm": Attack("storm", {"conversations": 250}, "conversations over a changing catalog"),
    "tenants": Attack("tenants", {}, "probes for tools of others"),
    "cancels": Attack("cancel", {"count": 150}, "turns cancelled at any moment"),
    "failing_stores": Attack("stores", {"count": 90}, "a store that raises"),
    "damaged_files": Attack("stores", {"count": 120}, "files of a store, damaged"),
    "queries": Attack("queries", {"count": 4000}, "fuzzed queries"),
    "schemas": Attack("schemas", {"count": 6000}, "fuzzed schemas and arguments"),
    "replies": Attack("wires", {"count": 2500}, "fuzzed replies of a provider"),
    "streams": Attack("wires", {"count": 2500}, "fuzzed streams"),
    "gateway": Attack("gateway", {"seconds": 60}, "50 clients of a gateway over 20 servers, servers killed"),
    "results": Attack("results", {}, "results and exceptions of tools"),
}


def attacked(name: str, seed: int, deadline: float) -> tuple[Outcome, float]:
    """What the attack `name` found, and after how many seconds: in a process of its own, which may die or hang."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.torture", name, "--seed", str(seed), "--here"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(1.0, deadline - began), check=False)
    except subprocess.TimeoutExpired:
        return Outcome(violations=["did not end in time"]), time.monotonic() - began
    seconds = time.monotonic() - began
    if done.returncode:
        return Outcome(violations=[f"ended with exit code {done.returncode}: {done.stderr[-2000:]}"]), seconds
    return Outcome(**json.loads(done.stdout.splitlines()[-1])), seconds


def report(name: str, outcome: Outcome, seconds: float) -> None:
    """Prints one attack: its figures in a line, then a line a violation."""
    figures = ", ".join(f"{value:,} {what}" for what, value in outcome.figures.items())
    print(f"{'BROKEN' if outcome.violations else 'held':6}  {name} ({ATTACKS[name].what}; {seconds:.0f} s): {figures}")
    for violation in outcome.violations:
        print(f"        {violation}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Attacks with many rounds.")
    parser.add_argument("names", nargs="*", metavar="attack", help=f"which (default: all): {', '.join(ATTACKS)}")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=300, help="for all together (default: %(default)s)")
    parser.add_argument("--here", action="store_true", help="one attack, in this process; prints its outcome as JSON")
    chosen = parser.parse_args()
    names = chosen.names or list(ATTACKS)
    if unknown := [name for name in names if name not in ATTACKS]:
        parser.error(f"no attack is called {unknown[0]!r}; there are: {', '.join(ATTACKS)}")
    if chosen.here:
        print(json.dumps(asdict(ATTACKS[names[0]].run(names[0], chosen.seed))))
        return 0
    deadline = time.monotonic() + chosen.seconds
    broken = 0
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        for name, ended in [(name, pool.submit(attacked, name, chosen.seed, deadline)) for name in names]:
            outcome, seconds = ended.result()
            report(name, outcome, seconds)
            broken += bool(outcome.violations)
    print(f"{len(names) - broken} of {len(names)} attacks held.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
