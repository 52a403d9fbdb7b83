"""A review of the pins of a configuration: what its servers offer now, compared with what was approved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch import Tool
from toolsearch.mcp.guards.pins import Held, Pins, asked_for
from toolsearch.support.redaction import visible
from toolsearch.support.text import counted

__all__ = ["Review", "review", "review_as_json", "review_lines"]

_DIFF_LINES = 60  # of one tool, in the text for people
_NAMED = 20  # tools of one kind that are named


@dataclass(frozen=True)
class Review:
    """What a review found. Every tool that the servers offer is in one of the first four.

    `pinned` are approved, and as they were; `new` were seen for the first time, and approved by this; `accepted` were
    held until now; `held` are held back. `refused` are those held tools that an approval named with another definition
    than they have now; `outdated` are such approvals of tools that are not held. `gone` are pinned and not offered any
    more, though their server did not fail. `flagged` has the flags of suspicious tools, whatever else they are;
    `unreachable` says why servers gave no tools, and `unknown` has the approvals that named no tool.
    """

    pinned: tuple[Tool, ...]
    new: tuple[Tool, ...]
    accepted: tuple[Held, ...]
    held: tuple[Held, ...]
    refused: tuple[Held, ...]
    outdated: Mapping[str, str]  # the id of the tool by the approval
    gone: tuple[str, ...]
    flagged: Mapping[str, tuple[str, ...]]
    unreachable: Mapping[str, str]
    unknown: tuple[str, ...]

    @property
    def is_settled(self) -> bool:
        """Whether nothing is held, and every approval did what it says."""
        return not (self.held or self.outdated or self.unknown)


def review(
    pins: Pins,
    tools: Iterable[Tool],
    unreachable: Mapping[str, str],
    *,
    accept: Iterable[str] = (),
    only_look: bool = False,
) -> Review:
    """Compares what the servers offer with the pins, and approves the held tools that `accept` names.

    An element of `accept` is a pattern, "server/tool" with `*` for any text, or a tool with the digest of the
    definition that is approved, "server/tool@digest", as the command of a held tool has it. `only_look` approves
    nothing, not even tools that were never seen: they are held then. Raises `OSError` if approvals cannot be written.
    """
    offered, asked = list(tools), list(dict.fromkeys(accept))
    before = set(pins.ids())
    held = pins.check_all(offered, pin_new=not only_look)
    answers = {tool.id: {pattern: asked_for(tool, pattern) for pattern in asked} for tool in offered}
    accepted = [each for key, each in held.items() if True in answers[key].values() and not only_look]
    if accepted:
        pins.accept(each.tool for each in accepted)
    fitting = {pattern for each in answers.values() for pattern, fits in each.items() if fits}
    freed = {each.tool.id for each in accepted}
    known = {tool.id for tool in offered}
    free = [tool for tool in offered if tool.id not in held]
    return Review(
        pinned=tuple(tool for tool in free if tool.id in before),
        new=tuple(tool for tool in free if tool.id not in before),
        accepted=tuple(accepted),
        held=tuple(each for key, each in held.items() if key not in freed),
        refused=tuple(each for key, each in held.items() if key not in freed and None in answers[key].values()),
        outdated={p: tool.id for tool in free for p in asked if answers[tool.id][p] is None and p not in fitting},
        gone=tuple(key for key in sorted(before - known) if pins.server_of(key) not in unreachable),
        flagged={tool.id: tool.flags for tool in offered if tool.flags},
        unreachable=dict(unreachable),
        unknown=tuple(p for p in asked if all(each[p] is False for each in answers.values())),
    )


def review_lines(found: Review) -> Iterator[str]:
    """The review for people, most urgent last: that is where a terminal stops."""
    for title, tools in (("pinned, and as they were", found.pinned), ("new, and approved as they are", found.new)):
        if tools:
            yield f"{counted(len(tools), 'tool')} {title}" + (_names(tools) if tools is found.new else "")
    for server, reason in found.unreachable.items():
        yield f"no tools of {visible(server)!r}: {visible(reason)}. Its pins stay as they are."
    if found.gone:
        yield f"{counted(len(found.gone), 'pinned tool')} not offered any more: {_listed(found.gone)}"
    for tool_id, flags in found.flagged.items():
        yield f"suspicious: {visible(tool_id)} ({', '.join(flags)})"
    for each in found.accepted:
        yield f"\napproved: {visible(each.tool.id)}"
        yield from _diff(each)
    for each in found.held:
        yield f"\nheld back: {visible(each.tool.id)} ({'new' if each.is_new else ', '.join(each.parts) + ' changed'})"
        yield from _diff(each)
        if each in found.refused:
            yield "  Not approved: the digest that was given is of another definition than the present one."
        yield f"  To approve it as it is now: {each.command}"
    for pattern, tool_id in found.outdated.items():
        yield (
            f"\nNot approved: {visible(tool_id)} is now as pinned, so {visible(pattern)} is not what the server shows. "
            "A gateway that runs may hold it until it is restarted."
        )
    for pattern in found.unknown:
        yield f"\nno tool fits {visible(pattern)!r}, so nothing was approved by it"


def review_as_json(found: Review) -> dict[str, Any]:
    """The review for programs."""
    return {
        "pinned": [tool.id for tool in found.pinned],
        "new": [tool.id for tool in found.new],
        "accepted": [_as_json(each) for each in found.accepted],
        "held": [_as_json(each) for each in found.held],
        "refused": [each.tool.id for each in found.refused],
        "outdated": dict(found.outdated),
        "gone": list(found.gone),
        "flagged": {key: list(flags) for key, flags in found.flagged.items()},
        "unreachable": dict(found.unreachable),
        "unknown": list(found.unknown),
    }


def _as_json(held: Held) -> dict[str, Any]:
    return {
        "id": held.tool.id,
        "digest": held.tool.digest,
        "new": held.is_new,
        "parts": list(held.parts),
        "diff": list(held.diff),
        "command": held.command,
    }


def _diff(held: Held) -> Iterator[str]:
    yield from (f"  {line}" for line in held.diff[:_DIFF_LINES])
    if len(held.diff) > _DIFF_LINES:
        yield f"  … and {counted(len(held.diff) - _DIFF_LINES, 'more line')}: --format json has them all"


def _names(tools: Iterable[Tool]) -> str:
    return f": {_listed(tuple(tool.id for tool in tools))}"


def _listed(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return f"{', '.join(map(visible, ids[:_NAMED]))}{more}"
