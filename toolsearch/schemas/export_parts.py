"""What both ways through a schema share on its way out: single keywords made sound, enums within a budget, losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolsearch.errors import NotExportable
from toolsearch.schemas.json_schema import Place, written
from toolsearch.schemas.json_values import JSON_TYPES, brief, size
from toolsearch.schemas.targets import COUNTS, FLAGS, NUMBERS, TEXTS, Rules

__all__ = ["NOTHING", "Losses", "brief_enum", "joined", "sound", "texts", "types_of"]

NOTHING = object()
_MOST_PLACES = 20  # that are named for one schema
_SHOWN, _SHOWN_CHARACTERS = 8, 60  # values of an enum that is not sent, and characters of each


@dataclass
class Losses:
    """What is not sent, as sentences: what, and where. Where nothing may be lost, the first one is raised."""

    rules: Rules
    told: dict[str, None] = field(default_factory=dict)
    more: int = 0
    values: int = 0  # of all enums that were sent

    def add(self, what: str, at: Place) -> None:
        place = written(at) or "the root"
        if self.rules.is_lossless:
            raise NotExportable(f"{what}: {place}")
        if len(self.told) < _MOST_PLACES:
            self.told[f"{what}: {place}"] = None
        else:
            self.more += 1

    def rename(self, original: str, name: str) -> None:
        """Says that an argument has another name, which loses nothing: the tool gets its own."""
        if len(self.told) < _MOST_PLACES:
            self.told[f"an argument is sent under another name: {original!r} as {name!r}"] = None
        else:
            self.more += 1

    def copy(self) -> Losses:
        return Losses(self.rules, dict(self.told), self.more, self.values)

    def sentences(self) -> tuple[str, ...]:
        return (*self.told, f"and {self.more} more") if self.more else tuple(self.told)


def sound(key: str, value: object) -> object:
    """The value of a keyword that holds no schema, as JSON Schema has it; `NOTHING` for what it cannot be."""
    if key in TEXTS:
        return value if isinstance(value, str) else NOTHING
    if key in NUMBERS:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return NOTHING
        if isinstance(value, float) and not math.isfinite(value):
            return NOTHING
        return value if key != "multipleOf" or value > 0 else NOTHING
    if key in COUNTS:
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        return NOTHING if not isinstance(whole, int) or isinstance(whole, bool) or whole < 0 else whole
    if key in FLAGS:
        return value if isinstance(value, bool) else NOTHING
    if key == "type":
        kinds = types_of(value)
        return kinds[0] if len(kinds) == 1 else kinds or NOTHING
    if key == "required":
        return texts(value) if isinstance(value, list | tuple) else NOTHING
    if key in ("enum", "examples"):
        if not isinstance(value, list | tuple) or not value:
            return NOTHING
        return list(dict.fromkeys(value)) if all(isinstance(each, str) for each in value) else list(value)
    if key == "dependentRequired":
        return {str(k): texts(v) for k, v in value.items()} if isinstance(value, Mapping) else NOTHING
    return value  # const, default


def types_of(value: object) -> list[str]:
    """The types that `type` names, each once."""
    named = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return list(dict.fromkeys(kind for kind in named if isinstance(kind, str) and kind in JSON_TYPES))


def texts(value: object) -> list[str]:
    """The texts in a list, each once."""
    return (
        list(dict.fromkeys(each for each in value if isinstance(each, str))) if isinstance(value, list | tuple) else []
    )


def brief_enum(values: Sequence[object], losses: Losses, at: Place) -> str:
    """What to say of an enum that is not sent, because it is above the budget; "" for one that is sent."""
    rules = losses.rules
    characters = sum(len(each) if isinstance(each, str) else 8 * size(each) for each in values)
    losses.values += len(values)
    if len(values) <= rules.enum_values and characters <= rules.enum_characters and losses.values <= rules.all_values:
        return ""
    losses.values -= len(values)
    losses.add(f"an enum of {len(values):,} values is not sent", at)
    shown = ", ".join(brief(each, _SHOWN_CHARACTERS) for each in values[:_SHOWN])
    return f"One of {len(values):,} values, such as {shown}."


def joined(description: object, *more: str) -> str:
    """A description and what is to be said besides."""
    return " ".join(filter(None, (description if isinstance(description, str) else "", *more)))
