"""The texts of a tool are untrusted: what a person would not see is removed, and what looks hostile is flagged."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from toolsearch.schemas.references import DATA
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import bounded, clean

__all__ = ["FLAGS", "LOOK_ALIKE", "TEXT_CHARACTERS", "clean_schema", "clean_text", "hostile"]

TEXT_CHARACTERS = 40_000  # of one text of a tool, such as its description, that are read; its end says that it was cut

LOOK_ALIKE = "look-alike"  # of a name, and set by the catalog, which knows the others
FLAGS = {
    "hidden-comment": "an HTML comment, which a person reading the rendered text does not see, was removed",
    "invisible-characters": "zero-width, bidirectional or control characters were removed",
    "instructions": "the text addresses the model instead of describing the tool",
    "keyword-stuffing": "words are repeated or lined up to win searches",
    LOOK_ALIKE: "a tool of another server has the same name but for case and signs",
}

_FUNCTION_WORDS = frozenset("a an and as at be by for from if in is it of on or that the this to with you".split())

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# Soft hyphen, joiner and fillers, zero-width, bidi marks and overrides, invisible operators, BOM, annotation marks, tag
# characters; controls but \t \n \r. One variation selector chooses a glyph; several in a row smuggle bytes.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e007f\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
)
# Joiners shape Persian, Indic and emoji text, so they stay between such characters only.
_STRAY_JOINER = re.compile("(?<![\u0600-\U0010ffff])[\u200c\u200d]|[\u200c\u200d](?![\u0600-\U0010ffff])")
_INSTRUCTIONS = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,30}\b(?:previous|prior|above|earlier|other|all)\b.{0,20}"
    r"\b(?:instruction|tool|rule|prompt)"
    r"|\balways (?:call|use|run|invoke) this\b|\bcall this tool (?:first|before)\b"
    r"|\bbefore (?:using|calling) any other tool"
    r"|\b(?:do not|don't|never) (?:tell|mention|inform|reveal|show)\b.{0,30}\buser"
    r"|(?:\bid_rsa\b|\.ssh/|\bprivate key\b|/etc/passwd\b|\.env file\b).{0,80}\b(?:pass|send|include|as)\b"
    r"|<\s*/?\s*(?:system|important|instructions?)\s*>|<\|[a-z_]+\|>",
    re.IGNORECASE | re.DOTALL,
)


def clean_text(text: str) -> tuple[str, tuple[str, ...]]:
    """The text as a person would see it, and the names in `FLAGS` of what was found."""
    flags = []
    text = clean(bounded(text, TEXT_CHARACTERS))  # all that follows reads every character, and an index keeps them
    # Invisible characters first: they may stand between those of a comment or of an instruction.
    seen = text if text.isascii() and text.isprintable() else _STRAY_JOINER.sub("", _INVISIBLE.sub("", text))
    visible = seen
    if "<!--" in seen:
        visible = _COMMENT.sub("", seen).partition("<!--")[0]  # the removal can put a new one together
        flags.append("hidden-comment")
    if seen != text:
        flags.append("invisible-characters")
    return visible.strip(), (*flags, *hostile(seen))


def hostile(text: str) -> tuple[str, ...]:
    """The names in `FLAGS` of what the text attempts, hidden parts included."""
    flags = []
    if _INSTRUCTIONS.search(text if text.isascii() else unicodedata.normalize("NFKC", text)):
        flags.append("instructions")
    if _is_stuffed(text[:20_000].lower()):
        flags.append("keyword-stuffing")
    return tuple(flags)


def _is_stuffed(text: str) -> bool:
    """Whether a text repeats few words often, or lines up forty with neither punctuation nor a function word."""
    words = text.split()
    if len(words) >= 60 and len(set(words)) < len(words) / 4:
        return True
    run = 0
    for word in words:
        run = run + 1 if word.isalnum() and word not in _FUNCTION_WORDS else 0
        if run == 40:
            return True
    return False


def clean_schema(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """A copy of a JSON Schema with every `description` and `title` cleaned, and the flags found in any of its texts.

    Values (enums, defaults) are what the tool expects to receive: they are flagged, not changed.
    """
    flags: list[str] = []

    def walk(node: object, names: bool = False) -> object:
        if isinstance(node, list | tuple):
            return [walk(item) for item in node]
        return fields(node, names) if isinstance(node, Mapping) else data(node)

    def fields(node: JsonObject, names: bool = False) -> dict[str, object]:
        copy: dict[str, object] = {}
        for name, value in node.items():
            key = clean(str(name))
            if not (key.isascii() and key.isidentifier()):  # one word says nothing to a model
                flags.extend(hostile(str(name)))
            if isinstance(value, str) and name in ("description", "title") and not names:
                copy[key], its_flags = clean_text(value)
                flags.extend(its_flags)
            elif name in DATA and not names:
                copy[key] = data(value)
            else:
                copy[key] = walk(value, names=name in ("properties", "$defs", "definitions") and not names)
        return copy

    def data(value: object) -> object:
        if isinstance(value, list | tuple):
            return [data(item) for item in value]
        if isinstance(value, Mapping):
            return {clean(str(key)): data(item) for key, item in value.items()}
        if isinstance(value, str):
            flags.extend(hostile(value))
            return clean(value)
        return value

    return fields(schema), tuple(dict.fromkeys(flags))
