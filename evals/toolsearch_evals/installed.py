"""What installed packages add to the evaluations by entry points: measures, data sets and wire formats."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from toolsearch import SetupError

__all__ = ["installed_points", "load_point", "named", "package_of"]


def installed_points(group: str) -> list[EntryPoint]:
    """The entry points of a group, by name. Read anew each time, so that a package installed meanwhile is seen."""
    return sorted(entry_points(group=group), key=lambda point: (point.name, package_of(point)))


def load_point(kind: str, point: EntryPoint) -> object:
    """What an entry point refers to. Raises `SetupError`, which names it, for one that cannot be imported."""
    try:
        return point.load()
    except ModuleNotFoundError as error:
        problem = f"{named(kind, point)} cannot be loaded: {type(error).__name__}: {error}"
        if error.name and f"{point.module}.".startswith(f"{error.name}."):
            problem += ". Its package is installed without this module: see what its build includes"
        raise SetupError(problem) from error
    except Exception as error:  # a package may raise anything when it is imported
        raise SetupError(f"{named(kind, point)} cannot be loaded: {type(error).__name__}: {error}") from error


def named(kind: str, point: EntryPoint) -> str:
    """An entry point as the beginning of a sentence; `kind` is the word for what it offers."""
    return f"the {kind} {point.name!r} of the package {package_of(point)!r}"


def package_of(point: EntryPoint) -> str:
    """The name of the package that brings an entry point."""
    return point.dist.name if point.dist is not None else "?"
