"""What a figure's expression says, the value it picks from reports, and how the value is written."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?|\.\d+"
FIGURE = rf"(?:[≤>] )?[−+±]?(?:{NUMBER})(?: ?%| ms)?(?: ±(?:{NUMBER}|–)(?: %)?| \[[^\]|]*\])?|–"
OPTIONS = ("table", "of", "per")
TAKES = {"min": min, "max": max, "mean": fmean}


class NotMade(Exception):
    """The command of a figure was not run, so the figure stays as it is."""


class NoRow(ValueError):
    """The report has no such figure."""


@dataclass(frozen=True)
class Expression:
    """A command's name, what picks the rows of its report, and the key that is looked up in them."""

    command: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: "Expression") -> "Expression":
        """Both together; where both say something, the second one counts."""
        return replace(
            self,
            command=other.command or self.command,
            where={**self.where, **other.where},
            key=other.key or self.key,
            options={**self.options, **other.options},
        )


def parsed(text: str) -> Expression:
    """`@command name=value KEY`, in any order."""
    found = Expression()
    for token in shlex.split(text):
        name, equals, value = token.partition("=")
        if token.startswith("@"):
            found += Expression(command=token[1:])
        elif equals and name in OPTIONS:
            found += Expression(options={name: value})
        elif equals:
            found += Expression(where={name: value})
        elif found.key:
            raise ValueError(f"{text!r} has two keys, {found.key!r} and {token!r}: a key with a space is quoted")
        else:
            found += Expression(key=token)
    return found


def value(wanted: Expression, reports: Mapping[str, Any]) -> tuple[float | str | None, float | None]:
    """The value, and half the width of its interval, if the report has one.

    Raises NotMade if a report is missing, NoRow if it has no such figure, and ValueError if it has several.
    """
    names = wanted.command.split(",")
    title = wanted.options.get("table", "")
    every = [table for name in names if name in reports for table in reports[name]["tables"]]
    tables = [table for table in every if table["title"].startswith(title)]
    rows = [
        row
        for table in tables
        for row in table["rows"]
        if wanted.key in row and all(str(row.get(name)) == text for name, text in wanted.where.items())
    ]
    if not rows and not {*names} <= {*reports}:
        raise NotMade(wanted.command)
    if not rows:
        raise NoRow(f"no row of {wanted.command!r} has {wanted.key!r} and {dict(wanted.where)}")
    values = [_one(row, wanted) for row in rows]
    if how := wanted.options.get("of"):
        return TAKES[how](one for one in values if one is not None), None
    if len({*values}) > 1:
        raise ValueError(f"{len(values)} rows of {wanted.command!r} have {dict(wanted.where)}: {values[:5]}")
    return values[0], _half(rows[0], wanted.key)


def _one(row: Mapping[str, Any], wanted: Expression) -> Any:
    number = row[wanted.key]
    per = wanted.options.get("per")
    return number if per is None or number is None else number / row[per]


def _half(row: Mapping[str, Any], key: str) -> float | None:
    if (half := row.get(f"{key} ±")) is not None:
        return float(half)
    low, high = row.get(f"{key} low"), row.get(f"{key} high")
    return None if low is None or high is None else (high - low) / 2


def written(like: str, number: float | str | None, half: float | None) -> str:
    """The number in the form of another one. What is written as `±` is half the width of an interval.

    A text of the report, such as "12 [11, 14]", is taken as it is, without its interval if the other has none. A dash,
    which says that nothing was measured, has no form: it becomes a number with three places.
    """
    if number is None:
        return "–"
    if isinstance(number, str):  # "12 [11, 14]", "≤ 20"
        return number if "[" in like or like == "–" else number.partition(" [")[0]
    if like == "–":
        return written(".000" if half is None else ".000 ±.000", number, half)
    if like.endswith("±–"):
        like = like.removesuffix("–") + like.partition(" ±")[0].lstrip("−+")
    first, spread, second = like.partition("±")
    if spread and half is None:
        raise ValueError(f"{like!r} shows an interval, and the report has none")
    if spread and not first:
        return f"±{_number(second, half or 0)}"
    text = _number(first.strip(), number)
    return f"{text} ±{_number(second, half or 0)}" if spread else text


def _number(like: str, number: float) -> str:
    unit = re.search(r" ?(?:%|ms)$", like)
    percent = unit is not None and unit[0].endswith("%")
    digits = like.removesuffix(unit[0]) if unit else like
    places = len(digits.partition(".")[2])
    text = f"{abs(number) * (100 if percent else 1):,.{places}f}"
    if places and not percent and not re.match(r"[−+]?0\.", digits) and not (places < 3 and re.match(r"[1-9]", digits)):
        text = text.removeprefix("0")
    rounds_to_zero = not re.search(r"[1-9]", text)
    sign = "" if rounds_to_zero else "−" if number < 0 else "+" if like.startswith("+") else ""
    return f"{sign}{text}{unit[0] if unit else ''}"
