"""The marks of a tool: how it may be run, and what its result means for the turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypedDict

from toolsearch.errors import DefinitionError, SetupError
from toolsearch.support.checks import shown

__all__ = [
    "DEFAULT_MARKS",
    "MARK_NAMES",
    "OPTION_NAMES",
    "Kind",
    "Marks",
    "ToolOptions",
    "check_options",
    "readable_options",
]

Kind = Literal["read", "action"]


@dataclass(frozen=True, slots=True)
class Marks:
    """How a tool may be run. The same value is held by the tool and by every call of it that was judged.

    `kind` is "action" for a tool that changes something. `repeatable`: it may run again after a crash. `alone`: it runs
    by itself in a round, not at the same time as others. `return_direct`: its result is the answer to the user.
    `terminal`: its success ends the turn. `polling`: it is there to be called again with the same arguments.

    A new mark is one more field here, a bool that is False by default, and its keyword in `ToolOptions`. Its name is
    stored in journals and counts in digests: never rename one.
    """

    kind: Kind = "read"
    repeatable: bool = True
    alone: bool = False
    return_direct: bool = False
    terminal: bool = False
    polling: bool = False

    @property
    def is_action(self) -> bool:
        return self.kind == "action"

    @classmethod
    def from_options(cls, options: Mapping[str, object], tool: str) -> Marks:
        """The marks among the options of a tool; `repeatable` and `alone` follow from the kind where they are not set.

        Raises `DefinitionError`, naming the tool, for a value that is not a mark's.
        """
        kind = options.get("kind", "read")
        if kind not in ("read", "action"):
            raise DefinitionError(f"the kind of {tool!r} must be 'read' or 'action', not {kind!r}")
        follows = {"repeatable": kind == "read", "alone": kind == "action"}
        flags: dict[str, bool] = {}
        for name in MARK_NAMES[1:]:
            value = options.get(name, follows.get(name, False))
            if not isinstance(value, bool):
                raise DefinitionError(f"{name!r} of {tool!r} must be true or false, not {value!r}")
            flags[name] = value
        return cls("action" if kind == "action" else "read", **flags)

    def to_options(self) -> dict[str, object]:
        """The options that give these marks, without those that follow from the kind: another kind may be chosen."""
        follows = {"repeatable": self.kind == "read", "alone": self.kind == "action"}
        options: dict[str, object] = {name: getattr(self, name) for name in MARK_NAMES}
        return {name: value for name, value in options.items() if name not in follows or follows[name] != value}

    def digested(self) -> tuple[tuple[Kind, bool, bool, bool, bool], list[str]]:
        """What a digest covers: five values, and the names of those later marks that are set.

        Marks that were added after the first five count only where they are set, so that the digests of other tools,
        which approvals and journals compare, stay as they are.
        """
        first = (self.kind, self.repeatable, self.alone, self.return_direct, self.terminal)
        return first, [name for name in MARK_NAMES[len(first) :] if getattr(self, name)]


class ToolOptions(TypedDict, total=False):
    """What a program can set of a tool. Each option replaces what the definition says."""

    name: str
    description: str
    server: str
    title: str
    category: str
    tags: Iterable[str]
    examples: Iterable[str]
    kind: Kind
    repeatable: bool
    alone: bool
    return_direct: bool
    terminal: bool
    polling: bool
    roles: Iterable[str]
    version: str
    run: Callable[..., object]


DEFAULT_MARKS = Marks()
MARK_NAMES = tuple(each.name for each in fields(Marks))
OPTION_NAMES = tuple(ToolOptions.__annotations__)


_KINDS_OF_OTHERS = ("function", "tool")  # what some write as the kind of every tool: it says nothing of ours


def readable_options(options: Mapping[str, object]) -> tuple[dict[str, object], tuple[str, ...]]:
    """The options of a definition without those that cannot be read, and a sentence for each that was left out.

    A tool can do without a title, a category or an example. The options that say who may run it, and how, stay as
    they are: if one of them cannot be read, the tool is refused later.
    """
    read: dict[str, object] = {}
    notices: list[str] = []
    for key, value in options.items():
        kept = _readable(key, value)
        if kept is not None:
            read[key] = kept
        if key in ("title", "category", "version", "tags", "examples") and kept is not value and kept != str(value):
            notices.append(f"{key!r} of {options.get('name')!r} cannot be read and is left out: {shown(value)}")
    return read, tuple(notices)


def _readable(key: str, value: object) -> object:
    """What can be read of the value of an option, or None."""
    if key == "kind" and value in _KINDS_OF_OTHERS:
        return None
    if key in ("title", "category"):
        return value if isinstance(value, str) else None
    if key == "version":
        return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None
    if key in ("tags", "examples") and not isinstance(value, str):
        if isinstance(value, Mapping) or not isinstance(value, Iterable):
            return None
        items = list(value)
        texts = [item for item in items if isinstance(item, str)]
        return value if len(texts) == len(items) else texts or None
    return value


def check_options(options: Mapping[str, object]) -> None:
    """Raises `SetupError` for an option of a tool that does not exist."""
    if unknown := options.keys() - set(OPTION_NAMES):
        known = ", ".join(map(repr, OPTION_NAMES))
        raise SetupError(f"a tool has no option {min(unknown)!r}; its options are {known}")
