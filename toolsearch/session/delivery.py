"""How tools reach the model in one conversation: all at once, or found by search; chosen by price.

Showing all tools costs their definitions in every request. Searching costs its own tool, further requests with their
answers, and a longer history, which every later request carries as well. Showing all is cheaper below

    D = (F c + a T + b T²) / (c + k (r T - 1))    tokens of definitions

where T is the number of turns, c the price of a token of the first request (1 if the provider's cache is cold then,
that of a cached token if it is warm), k the price of a cached token, r the requests of a turn without search. F, a and
b are fitted for each delivery on played conversations. `delivery.json` has them, with what they were fitted on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from toolsearch.errors import SetupError
from toolsearch.settings import Settings
from toolsearch.support.text import counted

__all__ = ["DELIVERIES", "IN_TEXT", "Delivery", "Extra", "Searchable", "Ways", "cheaper_below", "choose", "fitted"]

Delivery = Literal["static", "append", "bridge", "native", "compact"]
DELIVERIES: tuple[Delivery, ...] = get_args(Delivery)
IN_TEXT = ("bridge", "compact")  # the model reads definitions in texts, and calls found tools through the call tool
FEW_TURNS = 3  # up to as many, found tools are listed: what wrapping arguments costs real models is not measured


@dataclass(frozen=True, slots=True)
class Extra:
    """What searching costs more than showing all, besides the definitions, in new input tokens.

    `fixed` are tokens of the first request; `turn` and `turn_squared` are prices of a turn and of its square.
    """

    fixed: float
    turn: float
    turn_squared: float

    def cheaper_below(self, turns: int, first: float, cached: float, requests: float) -> float:
        """The tokens of definitions below which showing all costs less; see the module for the formula."""
        more = self.fixed * first + self.turn * turns + self.turn_squared * turns**2
        return max(0.0, more) / (first + cached * (requests * turns - 1))


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was fitted: the extra price by delivery, with the price of a cached token and the requests of a turn."""

    extra: dict[str, Extra]
    cached: float
    requests: float


@cache
def fitted() -> Fitted:
    """The numbers that ship."""
    read = json.loads(Path(__file__).with_name("delivery.json").read_text("utf-8"))
    return Fitted({name: Extra(**each) for name, each in read["extra"].items()}, read["cached"], read["requests"])


def cheaper_below(delivery: str, turns: int, *, is_warm: bool = False) -> int:
    """The tokens of all definitions below which showing all of them costs less than a delivery by search."""
    fit = fitted()
    first = fit.cached if is_warm else 1.0
    return round(fit.extra[delivery].cheaper_below(turns, first, fit.cached, fit.requests))


@dataclass(frozen=True, slots=True)
class Searchable:
    """The tools that a caller can search for, as their number and estimated tokens; `total` are all that it sees."""

    tools: int
    tokens: int
    total: int

    def __str__(self) -> str:
        return f"{self.tools:,} tools, about {self.tokens:,} tokens"


@dataclass(frozen=True, slots=True)
class Ways:
    """What is possible: why the wire cannot deliver natively, and why there can be no call tool; "" where it can be."""

    not_native: str = ""
    not_bridge: str = ""
    is_wire_known: bool = True


def choose(settings: Settings, tools: Searchable, ways: Ways) -> tuple[Delivery, str]:
    """The delivery of a conversation, and why it was chosen.

    Raises `SetupError` if the mode is "static" and a request cannot carry all tools.
    """
    mode, most = settings.mode, settings.max_tools
    if mode == "static" and tools.total > most:
        raise SetupError(f"{tools.total} tools cannot all be shown with max_tools={most}; use mode='append' or 'auto'")
    if mode == "native" and ways.not_native:
        return "append", ways.not_native
    if mode == "search":
        return _behind(settings, ways)
    if mode != "auto":
        return mode, "the setting `mode`"
    delivery, why = _behind(settings, ways)
    is_cheaper, reason = _all_at_once(settings, tools, delivery)
    if not is_cheaper:
        told = "" if _lists_what_is_found(settings, ways) else f"; {why}"
        return delivery, f"{tools}: {reason}{told}{_what_helps(settings, tools)}"
    if tools.total > most:
        return delivery, f"{tools}: few, but {tools.total:,} in all are more than a request carries ({most}); {why}"
    return "static", f"{tools}: {reason}"


def _behind(settings: Settings, ways: Ways) -> tuple[Delivery, str]:
    """How found tools reach the model, and why."""
    if not ways.not_native:
        return "native", "the wire delivers natively"
    if _lists_what_is_found(settings, ways):
        return "append", f"{ways.not_native}, and every program can list what is found"
    turns, wanted, why = counted(settings.expected_turns, "turn"), settings.without_native, ways.not_native
    if ways.not_bridge and wanted != "append":
        return "append", f"{why}, and {ways.not_bridge}"
    if wanted is not None:
        return wanted, f"{why}, and the setting `without_native` says so"
    if settings.expected_turns <= FEW_TURNS:
        return "append", f"{why}; over {turns} found tools are listed, so that no arguments are wrapped"
    return "bridge", f"{why}; over {turns} a list of tools that grows costs more than a call tool"


def _lists_what_is_found(settings: Settings, ways: Ways) -> bool:
    """Whether a session that does not know its wire appends: nobody asks for the price.

    A program asks for it by the mode "auto" without fixed thresholds, or by what it says of its conversations.
    """
    said = {"expected_turns", "without_native"} & settings.model_fields_set
    by_price = settings.mode == "auto" and settings.fixed_thresholds is None
    return not ways.is_wire_known and not said and not by_price


def _all_at_once(settings: Settings, tools: Searchable, delivery: Delivery) -> tuple[bool, str]:
    """Whether showing all costs less than searching, and the numbers: those of the program, else the fitted ones."""
    if (fixed := settings.fixed_thresholds) is not None:
        least, budget = fixed
        if tools.tools < least or tools.tokens < budget:
            return True, f"below {least} tools or {budget:,} tokens, showing all costs less than searching"
        return False, f"from {least} tools and {budget:,} tokens on, searching pays"
    below = cheaper_below(delivery, settings.expected_turns, is_warm=settings.cache == "warm")
    talk = f"over {counted(settings.expected_turns, 'turn')}, with a {settings.cache} cache at first"
    if tools.tokens < below:
        return True, f"below {below:,} tokens, showing all costs less than searching {talk}"
    return False, f"from {below:,} tokens on, searching pays {talk}"


def _what_helps(settings: Settings, tools: Searchable) -> str:
    """What makes searching cheaper with these settings, as the end of a sentence."""
    most, listed = settings.most_preselected, settings.most_in_directory
    what = "all tools" if tools.tools <= listed else "the servers"
    told = f"; the instructions name {what}" if listed else ""
    return told + (f"; up to {most} that fit the words of a message come with it" if most else "")
