"""What a program passes as tools, checked as a whole: before it is read, and after."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolsearch.catalog.listings import is_one_source, unwrapped
from toolsearch.catalog.marks import check_options
from toolsearch.catalog.shapes import NotATool
from toolsearch.catalog.tools import Tool, made_from
from toolsearch.errors import DefinitionError, SetupError
from toolsearch.schemas.limits import check_size
from toolsearch.support import checks

__all__ = ["Reading", "check_json", "check_some", "read_source", "remedy_for", "sources_in"]


@dataclass
class Reading:
    """What was read of one source: the tools, each with its part of the source, and what is wrong with other parts.

    `notices` say what was left out. `page` is None if the source is no list, and else says how it goes on.
    """

    tools: list[tuple[Tool, object]] = field(default_factory=list)
    faults: list[tuple[object, Exception]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    page: str | None = None


def read_source(source: object, options: Mapping[str, object], trust: frozenset[str]) -> Reading:
    """The tools in one source. Nothing that is wrong with it is raised."""
    read = Reading()
    try:
        listing = unwrapped(source)
    except Exception as error:
        read.faults.append((source, error))
        return read
    read.page = listing.goes_on if listing.is_list else None
    for part in listing.parts:
        try:
            new, notices = made_from(part, options, trust=trust)
            read.notices += notices
            check_json(new)
            read.tools.append((new, part))
        except Exception as error:
            read.faults.append((part, error))
    return read


def check_json(new: Tool) -> None:
    """Raises `DefinitionError` for a tool that has no digest: a `Tool` made by hand may hold what is not JSON."""
    check_size(f"the input schema of {new.id!r}", new.input_schema)
    try:
        _ = new.digest
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError(f"the definition of {new.id!r} is not JSON: {error}") from None


def check_some(tools: Mapping[str, Tool], faults: list[Exception]) -> None:
    """Raises `SetupError` if something else than tools was passed; bad definitions are no reason."""
    if not tools and faults and all(isinstance(fault, NotATool) for fault in faults):
        raise SetupError(f"no tool was passed: {faults[0]}") from faults[0]


def remedy_for(before: Tool) -> str:
    """What can be done about two tools of one id."""
    if before.server is None:
        return "; give one of them a server"
    return (
        f": the server {before.server!r} lists two tools named {before.name!r}, and the first is kept. Rename one at "
        "its source, or pass on_collision='replace'"
    )


def sources_in(sources: object, options: Mapping[str, object]) -> Iterable[object]:
    """The sources to read one by one. Raises `SetupError` for what holds no tools, and for unknown options."""
    check_options(options)
    if isinstance(sources, str | bytes | os.PathLike):
        more = ": read a file with Catalog.from_file(…)"
        raise checks.wrong("tools", "functions, definitions, or lists of them", sources, more=more)
    if is_one_source(sources):
        return [sources]
    if not isinstance(sources, Iterable):
        more = ": await it first" if inspect.isawaitable(sources) else ""
        raise checks.wrong("tools", "functions, definitions, or lists of them", sources, more=more)
    return sources
