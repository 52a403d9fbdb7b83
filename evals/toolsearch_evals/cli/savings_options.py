"""The options of `toolsearch eval savings`, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, TypedDict, TypeVar

import typer

from toolsearch import SetupError
from toolsearch_evals.savings.plan import CACHES, MODES

__all__ = [
    "Axes",
    "CachesOption",
    "ConversationsOption",
    "Counted",
    "LocalityOption",
    "ModesOption",
    "OneByOneOption",
    "PricesOption",
    "ProcessesOption",
    "SeedsOption",
    "StaticSuccessOption",
    "TokensOption",
    "TurnsOption",
    "WiresOption",
    "read_axes",
    "read_modes",
]

T = TypeVar("T")
USUAL_MODES = ("auto", "append", "bridge")


class Counted(StrEnum):
    """What tokens are counted of."""

    json = "json"
    rendered = "rendered"


ModesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mode",
        help=f"How found tools reach the model: {', '.join(MODES)}; may be repeated.",
        show_default="all three; append with --preset",
    ),
]
WiresOption = Annotated[
    list[str] | None,
    typer.Option(
        "--wire",
        help="The message format of a provider: openai_chat, anthropic or an installed wire; may be repeated.",
        show_default="openai_chat; both with --preset",
    ),
]
SeedsOption = Annotated[int, typer.Option(min=1, help="How many seeded orders of tools and cases to play.")]
ConversationsOption = Annotated[int, typer.Option(min=1, help="How many conversations to play for each seed.")]
TurnsOption = Annotated[
    str, typer.Option(help="How many turns a conversation has, with commas between; each turn is one case.")
]
LocalityOption = Annotated[
    str,
    typer.Option(
        help="The chance, 0 to 1, that a turn stays with the servers of its conversation; several with commas."
    ),
]
CachesOption = Annotated[
    str,
    typer.Option(
        "--cache",
        help=f"What the cache holds at the first request: nothing ({CACHES[0]}), or the tools and the system message "
        f"({CACHES[1]}); several with commas.",
    ),
]
PricesOption = Annotated[
    str,
    typer.Option(
        help="Prices: plain, a provider (openai, anthropic) or a model of the library's dated price table, such as "
        "gpt-5; several with commas. Those of a model come with the rules of its provider's cache."
    ),
]
StaticSuccessOption = Annotated[
    str,
    typer.Option(
        help="The share of the requests that is met, of those that can be, if every tool is sent; several with commas."
    ),
]
TokensOption = Annotated[
    Counted,
    typer.Option(help="Count the JSON that is sent, or what the provider is known to make of it (openai_chat)."),
]
OneByOneOption = Annotated[
    bool,
    typer.Option(
        "--one-by-one/--together",
        help="Call the tools of a turn one by one, in a request each, or together, in one reply.",
    ),
]
ProcessesOption = Annotated[
    int,
    typer.Option(
        min=0, help="How many processes play.", show_default="one for few conversations, else one a processor"
    ),
]


def read_modes(asked: Sequence[str] | None, *, is_published: bool = False) -> tuple[str, ...]:
    """Deliveries by name; if none is asked for, those that are usually compared, or the one of what was published."""
    for name in asked or ():
        if name not in MODES:
            raise SetupError(f"there is no delivery {name!r} to measure; there are: {', '.join(map(repr, MODES))}")
    return tuple(asked or (("append",) if is_published else USUAL_MODES))


class Axes(TypedDict):
    """Fields of the plan of which each may have several values."""

    turns: tuple[int, ...]
    localities: tuple[float, ...]
    caches: tuple[str, ...]
    prices: tuple[str, ...]
    static_success: tuple[float, ...]


def read_axes(turns: str, locality: str, cache: str, prices: str, static_success: str) -> Axes:
    """The values of the options that take several, with commas between them."""
    return {
        "turns": _numbers("turns", turns),
        "localities": _shares("locality", locality),
        "caches": _read("cache", cache, str, "names", "cold,warm"),
        "prices": _read("prices", prices, str, "names", "plain,gpt-5"),
        "static_success": _shares("static-success", static_success),
    }


def _numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers from 1 on, from a text with commas."""
    numbers = _read(option, text, int, "whole numbers", "3,10")
    if min(numbers) < 1:
        raise SetupError(f"--{option} {text!r}: {min(numbers)} is below 1")
    return numbers


def _shares(option: str, text: str) -> tuple[float, ...]:
    """Numbers from 0 to 1, from a text with commas."""
    shares = _read(option, text, float, "numbers from 0 to 1", "0,.5,1")
    for share in shares:
        if not 0 <= share <= 1:
            raise SetupError(f"--{option} {text!r}: {share:g} is not from 0 to 1")
    return shares


def _read(option: str, text: str, read: Callable[[str], T], what: str, such: str) -> tuple[T, ...]:
    parts = [part.strip() for part in text.split(",")]
    try:
        if not all(parts):
            raise ValueError
        return tuple(dict.fromkeys(read(part) for part in parts))
    except ValueError:
        raise SetupError(f"--{option} {text!r} does not hold {what} with commas between them, such as {such}") from None
