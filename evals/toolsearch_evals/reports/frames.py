"""Rows as data frames of pandas or polars, where these are installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from toolsearch import MissingExtra

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["pandas_frame", "polars_frame"]


def pandas_frame(rows: Iterable[Mapping[str, object]]) -> pandas.DataFrame:
    """A column for each key of any row, in the order in which they come; what a row does not have is missing."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("to_pandas()", "pandas", "pandas") from None
    of = list(rows)
    return pandas.DataFrame(list(map(dict, of)), columns=_keys(of))


def polars_frame(rows: Iterable[Mapping[str, object]]) -> polars.DataFrame:
    """As `pandas_frame`. The type of a column is read from all of its values; one of mixed types becomes text."""
    try:
        import polars
    except ImportError:
        raise MissingExtra("to_polars()", "polars", "polars") from None
    of = list(rows)
    columns = {key: [row.get(key) for row in of] for key in _keys(of)}
    return polars.DataFrame(
        {key: values if _is_uniform(values) else _texts(values) for key, values in columns.items()}, strict=False
    )


def _keys(rows: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _is_uniform(values: Iterable[object]) -> bool:
    """Whether the known values are of one type; whole numbers are numbers among others."""
    kinds = {float if type(value) is int else type(value) for value in values if value is not None}
    return len(kinds) < 2


def _texts(values: Iterable[object]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]
