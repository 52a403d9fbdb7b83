"""A server that does not end: it leaves a child behind, ignores the end of its input, or ignores SIGTERM."""

import argparse
import os
import signal
import subprocess
import sys
import time
from typing import Any

from tests.mcp.servers.by_hand import answer_lines, initialized, said, tool

SLEEP = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(float(sys.argv[1]))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", action="store_true", help="starts a child that outlives it, and ignores SIGTERM")
    parser.add_argument("--ignore-eof", action="store_true", help="goes on when its input has ended")
    parser.add_argument("--ignore-sigterm", action="store_true")
    parser.add_argument("--seconds", type=float, default=300, help="after which they end all the same")
    parser.add_argument("--marker", default="", help="a word to find the processes by")
    chosen = parser.parse_args()
    if chosen.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = None
    if chosen.child:
        child = subprocess.Popen([sys.executable, "-c", SLEEP, str(chosen.seconds), chosen.marker])

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return initialized("clinging")
        if method == "tools/list":
            return {"tools": [tool("pids")]}
        if method == "tools/call":
            pids = {"pid": os.getpid(), "child": child.pid if child else None}
            return {**said(str(pids)), "structuredContent": pids}
        raise LookupError

    answer_lines(answer)
    if chosen.ignore_eof:
        time.sleep(chosen.seconds)
