"""The options that name a model to ask for texts: a command on this machine, or a chat endpoint."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import Annotated

import typer

from toolsearch import SetupError
from toolsearch.catalog.text_models import command, endpoint

__all__ = [
    "BASE_URL",
    "KEY_VARIABLE",
    "AskOption",
    "BaseUrlOption",
    "KeyOption",
    "ModelOption",
    "check_one_model",
    "model_asked",
]

BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"

AskOption = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="A command that reads the prompt from standard input and prints the answer.",
        show_default="none",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Instead of --ask: a model behind an OpenAI-compatible chat endpoint.",
        show_default="none",
    ),
]
BaseUrlOption = Annotated[str, typer.Option(metavar="URL", help="The address of the endpoint.")]
KeyOption = Annotated[str, typer.Option(metavar="NAME", help="The environment variable that holds the key.")]


def check_one_model(ask: str | None, model: str | None) -> None:
    """Raises `SetupError` unless exactly one of the two is given."""
    if (ask is None) == (model is None):
        raise SetupError("say what to ask: pass either --ask 'a command' or --model a-name")


def model_asked(
    ask: str | None, model: str | None, base_url: str, key_variable: str
) -> tuple[Callable[[str], str], str]:
    """The function that answers a prompt, and its name: the command's, or the model's.

    Raises `SetupError` unless exactly one of the two is given.
    """
    check_one_model(ask, model)
    if ask is None:
        return endpoint(str(model), base_url=base_url, key=os.environ.get(key_variable, "")), str(model)
    try:
        words = shlex.split(ask)
    except ValueError as error:
        raise SetupError(f"--ask {ask!r} is not a command: {error}") from None
    return command(words), words[0]
