"""A schema as a kind of provider accepts it: for each target an allow-list of keywords and budgets, and what is lost.

`root_folding` makes one object of the root. Then there is one walk: `export_whole` for those who read all of JSON
Schema, `export_reduced` for the others. Both are total: whatever stands in a schema, what leaves is valid 2020-12.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from toolsearch.errors import DefinitionError, NotExportable
from toolsearch.schemas.export_parts import Losses, types_of
from toolsearch.schemas.export_reduced import ReducedSchema, TooLarge
from toolsearch.schemas.export_whole import WholeSchema
from toolsearch.schemas.limits import check_size
from toolsearch.schemas.references import COMBINATORS
from toolsearch.schemas.root_folding import FoldedRoot, folded_root
from toolsearch.schemas.targets import RULES, TARGETS, Target
from toolsearch.support.checks import shown
from toolsearch.support.json_types import JsonObject

__all__ = ["TARGETS", "Exported", "Target", "check_export", "exported", "shortened"]

log = logging.getLogger("toolsearch")

# Levels, of which a target allows fewer, and characters of a description.
_TRIES = ((64, 100_000), (64, 200), (6, 200), (4, 200), (3, 100), (2, 100), (1, 20))
_GROWTH = 2, 4_000  # what is reduced may have so many times the characters of the original, and so many more


@dataclass(frozen=True)
class Exported:
    """A schema as one kind of provider accepts it.

    `renamed` maps the names of arguments that are sent to the names that the tool knows, where they differ; it is the
    same for every target. `losses` are sentences on what of the original is not sent, for people. `note` is the one
    that the model needs; it goes behind the tool's description ("" if there is none).
    """

    schema: dict[str, Any]
    renamed: Mapping[str, str] = field(default_factory=dict)
    losses: tuple[str, ...] = ()
    note: str = ""


def exported(schema: JsonObject, target: Target, *, enum_values: int | None = None) -> Exported:
    """The schema as a target accepts it; the original is not changed, and a call is checked against all of it.

    "openai" is Chat Completions, Responses, and all who speak them; "gemini" is its `parametersJsonSchema`. Combinators
    at the root are folded: the union of the properties, the intersection of what every branch requires. An enum of more
    than `enum_values` (200) is said in words, with examples. Raises `NotExportable` for a schema that cannot be
    expressed, and with "openai_strict" for one that would lose something: leave its tool out, or send it without
    `strict`.
    """
    rules = RULES[target] if enum_values is None else RULES[target].with_enums(enum_values)
    try:
        characters = check_size("the input schema", schema)
    except DefinitionError as error:
        raise NotExportable(str(error)) from None
    if "type" in schema and "object" not in types_of(schema["type"]):
        raise NotExportable(f"the arguments must be an object, not of type {shown(schema['type'])}")
    root = folded_root(schema)
    if not root.is_whole:
        raise NotExportable("the input schema combines too much at its root")
    losses = Losses(rules)
    _tell(root, losses)
    keywords = _regular(root)
    if rules.keeps_references:
        made = WholeSchema(schema, losses).made(keywords)
    else:
        made, losses = _reduced(schema, keywords, losses, characters)
    return Exported(made, root.renamed, losses.sentences(), root.note)


def check_export(schema: JsonObject, tool: str) -> None:
    """Raises `DefinitionError` for a schema whose combinators take too much work to fold."""
    if "$ref" not in schema and not any(isinstance(schema.get(keyword), list) for keyword in COMBINATORS):
        return
    if not folded_root(schema).is_whole:
        raise DefinitionError(f"the input schema of {tool!r} combines too much at its root to be sent to a provider")


def _tell(root: FoldedRoot, losses: Losses) -> None:
    if root.note:
        losses.add("what may be given instead of what is only described", None)
    for keyword in root.dropped:
        losses.add(f"{keyword} is not sent", None)
    for name, original in root.renamed.items():
        losses.rename(original, name)


def _regular(root: FoldedRoot) -> dict[str, object]:
    """The root in its usual order, and without what says nothing there."""
    silent = ("type", "properties", "title")
    rest = {k: v for k, v in root.keywords.items() if k not in silent and (k, v) != ("required", [])}
    return {"type": "object", "properties": root.keywords["properties"], **rest}


def _reduced(
    schema: JsonObject, root: dict[str, object], losses: Losses, characters: int
) -> tuple[dict[str, Any], Losses]:
    """The deepest of several tries that stays within the budget."""
    times, more = _GROWTH
    budget = times * characters + more
    for depth, most_text in _TRIES:
        again = losses.copy()
        walk = ReducedSchema(schema, again, min(depth, losses.rules.depth), most_text, budget)
        try:
            return walk.made(root), again
        except TooLarge:
            if losses.rules.is_lossless:
                break
    raise NotExportable("the input schema is too large, whatever is left out of it")


def shortened(text: str, characters: int | None, tool: str) -> str:
    """The text within a limit, cut between words. Its end says how much is shown; the log says so once a tool."""
    if characters is None or len(text) <= characters:
        return text
    _warn_once(tool, characters, len(text))
    mark = f"… [shortened: {characters:,} of {len(text):,} characters]"
    cut = text[: max(0, characters - len(mark))]
    return (cut[: cut.rfind(" ")] if " " in cut else cut) + mark


@lru_cache(maxsize=4096)
def _warn_once(tool: str, characters: int, length: int) -> None:
    log.warning(
        "the description of %r is sent shortened to %d of %d characters; see description_characters",
        tool,
        characters,
        length,
    )
