"""The wires that savings can be measured on: ours, those of installed packages, and those a program passes."""

from __future__ import annotations

from collections.abc import Mapping

from toolsearch import SetupError
from toolsearch_evals.installed import installed_points, load_point, named
from toolsearch_evals.savings.formats import FORMATS, WireFormat
from toolsearch_evals.testing import check_format

__all__ = ["GROUP", "format_of", "is_native"]

GROUP = "toolsearch.eval_formats"


def format_of(wire: str, passed: Mapping[str, WireFormat] | None = None) -> WireFormat:
    """The format of a wire by its name: one that is passed, else ours, else one that a package installs.

    Raises `SetupError` for an unknown name, and for an installed format that breaks a promise of `check_format`.
    """
    if passed and wire in passed:
        return passed[wire]
    points = installed_points(GROUP)
    offered = [point for point in points if point.name == wire]
    if wire in FORMATS:
        if offered:
            raise SetupError(f"{named('wire', offered[0])} has the name of one of ours; rename or remove it")
        return FORMATS[wire]
    if not offered:
        known = dict.fromkeys([*FORMATS, *(passed or ()), *(point.name for point in points)])
        raise SetupError(f"there is no wire {wire!r}; there are: {', '.join(map(repr, known))}")
    if len(offered) > 1:
        raise SetupError(f"several packages install a wire {wire!r}: remove all but one")
    described, form = named("wire", offered[0]), load_point("wire", offered[0])
    if not isinstance(form, WireFormat):
        raise SetupError(
            f"{described} must be a toolsearch_evals.savings.formats.WireFormat, not {type(form).__name__}"
        )
    try:
        check_format(form)
    except AssertionError as broken:
        raise SetupError(f"{described} breaks a promise: {broken}") from broken
    except Exception as error:  # a wire of another package may raise anything
        raise SetupError(f"{described} failed: {type(error).__name__}: {error}") from error
    return form


def is_native(wire: str) -> bool:
    """Whether a wire, ours or an installed one, can deliver natively."""
    try:
        return getattr(format_of(wire).wire, "native", None) is not None
    except SetupError:  # a program passes it
        return False
