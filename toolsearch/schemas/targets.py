"""What each kind of provider accepts in a schema: an allow-list of keywords, and budgets.

Where a provider documents no number, the budget is far above what people write and below what is reported to fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from toolsearch.schemas.references import LISTS, MAPS, ONE

__all__ = ["COUNTS", "FLAGS", "NUMBERS", "RULES", "TARGETS", "TEXTS", "Rules", "Target"]

Target = Literal["openai", "openai_strict", "anthropic", "gemini", "ollama"]
TARGETS: tuple[Target, ...] = ("openai", "openai_strict", "anthropic", "gemini", "ollama")

TEXTS = frozenset("title description format pattern contentEncoding contentMediaType".split())
NUMBERS = frozenset("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split())
COUNTS = frozenset("minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains".split())
FLAGS = frozenset("uniqueItems deprecated readOnly writeOnly".split())

_STANDARD = (
    TEXTS | NUMBERS | COUNTS | FLAGS | MAPS | LISTS | ONE
    | frozenset("type enum const default examples required dependentRequired $ref".split())
)  # fmt: skip
_SHAPE = frozenset("type description enum anyOf items properties required".split())


@dataclass(frozen=True)
class Rules:
    """What one kind of provider accepts.

    `keeps_references`: a `$ref` stays; otherwise what it leads to stands in its place, down to `depth` levels. `kinds`:
    `type` may be a list, and null among it; "null" means that a branch of null is accepted, and "" that it is not.
    `formats` of texts and numbers are sent, None means all of them. `enum_values` and `enum_characters` are the budget
    of one enum, `all_values` that of all enums together. `is_lossless`: a schema that would lose something is refused.
    """

    keywords: frozenset[str] = _STANDARD
    keeps_references: bool = True
    kinds: Literal["list", "null", ""] = "list"
    formats: frozenset[str] | None = None
    depth: int = 64
    enum_values: int = 200
    enum_characters: int = 8_000
    all_values: int = 1_000
    is_lossless: bool = False
    description_characters: float = math.inf  # of a tool; OpenAI refuses a request with a longer one

    def with_enums(self, values: int) -> Rules:
        """These rules, with another budget for an enum; what it allows is not cut for its characters."""
        return replace(self, enum_values=values, enum_characters=1_000_000, all_values=max(values, self.all_values))


RULES: dict[Target, Rules] = {
    "openai": Rules(description_characters=1_024),
    "anthropic": Rules(),
    # As the guide to structured outputs lists them; what it does not list makes the request fail.
    "openai_strict": Rules(
        keywords=_SHAPE | NUMBERS | frozenset("pattern format minItems maxItems additionalProperties".split()),
        keeps_references=False,
        formats=frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split()),
        depth=10,
        is_lossless=True,
        description_characters=1_024,
    ),
    # Of what the reference of `parametersJsonSchema` lists, what means the same in every version of the service.
    "gemini": Rules(
        keywords=_SHAPE | frozenset("format minimum maximum minItems maxItems additionalProperties".split()),
        keeps_references=False,
        kinds="null",
        formats=frozenset("date-time date time int32 int64 float double".split()),
        depth=10,
    ),
    # The fields of its `ToolProperty`; what stands beside them never reaches the template of a model.
    "ollama": Rules(keywords=_SHAPE, keeps_references=False, kinds="", formats=frozenset(), depth=10),
}
