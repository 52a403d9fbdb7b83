"""What a provider does not take as a keyword, said in words: "default 5", "at most 10 characters"."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolsearch.schemas.export_parts import NOTHING, sound
from toolsearch.schemas.json_values import brief
from toolsearch.schemas.targets import TEXTS, Rules

__all__ = ["HINT_CHARACTERS", "OF_TYPE", "sent_and_said"]

HINT_CHARACTERS = 100  # of one keyword that is said in words

# What belongs to values of one type, and says nothing of others.
OF_TYPE = {
    "string": frozenset("minLength maxLength pattern format".split()),
    "number": frozenset("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf format".split()),
    "array": frozenset("items prefixItems minItems maxItems uniqueItems contains".split()),
    "object": frozenset("properties required additionalProperties minProperties maxProperties".split()),
}
OF_TYPE["integer"] = OF_TYPE["number"]
# How a keyword that is not sent is said in a description.
_SAID = {
    "default": "default {}", "format": "format {}", "pattern": "pattern {}", "minLength": "at least {} characters",
    "maxLength": "at most {} characters", "minimum": "at least {}", "maximum": "at most {}",
    "exclusiveMinimum": "more than {}", "exclusiveMaximum": "less than {}", "multipleOf": "a multiple of {}",
    "minItems": "at least {} items", "maxItems": "at most {} items", "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
}  # fmt: skip


def sent_and_said(
    schema: Mapping[str, object], made: Collection[str], kind: str, rules: Rules
) -> tuple[dict[str, object], list[str]]:
    """What belongs to values of this type: the keywords that a provider takes, and the others in words.

    Where neither a type nor a choice was `made`, all of them are said.
    """
    sent: dict[str, object] = {}
    said: list[str] = []
    own = OF_TYPE.get(kind, frozenset())
    for key, phrase in _SAID.items():
        value = sound(key, schema[key]) if key in schema else NOTHING
        if value is NOTHING or value is None:
            continue
        is_known = key != "format" or rules.formats is None or value in rules.formats
        if key in rules.keywords and key in own and is_known:
            sent[key] = value
        elif key in own or key == "default" or not {"type", "anyOf"} & {*made}:
            is_bare = key in TEXTS and isinstance(value, str)
            said.append(phrase.format(str(value)[:HINT_CHARACTERS] if is_bare else brief(value, HINT_CHARACTERS)))
    return sent, said
