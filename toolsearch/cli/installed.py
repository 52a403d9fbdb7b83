"""Commands that are installed as entry points `toolsearch.commands`: each is loaded when it is asked for."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from toolsearch import SetupError

__all__ = ["Commands"]


class Commands(TyperGroup):
    """The commands of this package, and the installed ones, which cost no import until they are used or listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(each.name for each in _entries() if each.name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            for entry in _entries():
                if entry.name == cmd_name:
                    self.commands[cmd_name] = _command(entry)
        return super().get_command(ctx, cmd_name)


def _entries() -> list[EntryPoint]:
    return sorted(entry_points(group="toolsearch.commands"), key=lambda entry: entry.name)


def _command(entry: EntryPoint) -> Any:
    """An installed command, an app or a function. One that cannot be loaded says why when it is called."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    try:
        loaded = entry.load()
        if isinstance(loaded, typer.Typer):
            app = loaded
        else:
            app.command(entry.name)(loaded)
        command = typer.main.get_command(app)
    except Exception as error:
        reason = f"the command {entry.name!r} cannot be loaded: {type(error).__name__}: {error}"

        def broken(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
            raise SetupError(reason)

        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(entry.name, help=reason, context_settings={"ignore_unknown_options": True})(broken)
        command = typer.main.get_command(app)
    command.name = entry.name
    return command
