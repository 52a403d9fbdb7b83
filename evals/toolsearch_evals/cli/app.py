"""The command `toolsearch eval`, to which the other modules add their commands.

They parse and print. A user's mistake is a `SetupError`, which the command prints as one line.
"""

from __future__ import annotations

import typer

__all__ = ["app", "example"]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def example(arguments: str) -> str:
    """The end of a command's help."""
    return f"Example: toolsearch eval {arguments}"


@app.callback()
def about() -> None:
    """Measure what tool search finds, saves and costs."""
