"""The `toolsearch` command, which needs the extra `cli`; the commands themselves are in `commands`."""

from __future__ import annotations

import io
import sys
from typing import NoReturn

from toolsearch import MissingExtra, ToolSearchError

__all__ = ["main"]


def main() -> None:
    """Runs the command line. A mistake of the user gives one line and the exit code 2.

    What the terminal cannot show is written as a code: a tool's texts are in any language.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        from toolsearch.cli.commands import app
    except ImportError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.exit(str(MissingExtra("the command line", error.name, "cli")))
    try:
        app()
    except ToolSearchError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"the output cannot be written: {error}")


def _fail(why: str) -> NoReturn:
    if sys.stderr is not None:  # there is none where the shell has closed it
        sys.stderr.write(f"toolsearch: {why}\n")
    sys.exit(2)
