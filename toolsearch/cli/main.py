"""The `toolsearch` command, which needs the extra `cli`; the commands themselves are in `commands`."""

from __future__ import annotations

import sys

from toolsearch import MissingExtra, ToolSearchError

__all__ = ["main"]


def main() -> None:
    """Runs the command line. A mistake of the user gives one line and the exit code 2."""
    try:
        from toolsearch.cli.commands import app
    except ImportError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.exit(str(MissingExtra("the command line", error.name, "cli")))
    try:
        app()
    except ToolSearchError as error:
        sys.stderr.write(f"toolsearch: {error}\n")
        sys.exit(2)
