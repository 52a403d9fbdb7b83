"""A schema as providers accept it: nothing at its root that they refuse, and every reference leads somewhere in it.

Nothing is written more than once. What several references share, and has left the root, stands once in `$defs`; so what
is sent is at most about twice as large as the original, whatever its references do.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from toolsearch.errors import DefinitionError
from toolsearch.schemas.references import COMBINATORS, pointed_at, resolve
from toolsearch.support.json_types import JsonObject

__all__ = ["Exported", "Target", "check_export", "exported", "shortened"]

log = logging.getLogger("toolsearch")

_WORK = 200_000  # names of properties that are gone through to fold the combinators of one schema
_DEEPEST = 32  # combinators inside combinators that are folded
_INLINE = 200  # characters: a target without references that is no longer stands in the place of a reference to it
_CHOICES, _CHOICE_CHARACTERS = 10, 1_000  # in the sentence about what was lost
_NOWHERE = object()


Target = Literal["openai", "openai_strict", "anthropic", "gemini", "ollama"]


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


@dataclass(frozen=True)
class _Folded:
    """What one branch of a combinator says, its own combinators folded in."""

    properties: Mapping[str, object]
    required: Sequence[str]


_NOTHING = _Folded({}, ())


def exported(schema: JsonObject, target: Target) -> Exported:
    """The schema as a target accepts it; the original is not changed.

    "openai" is Chat Completions, Responses, and all who speak them; "gemini" is its `parametersJsonSchema`. Combinators
    at the root are folded: the union of the properties, the intersection of what every branch requires. Raises
    `NotExportable` for a schema that cannot be expressed: leave its tool out of the request.
    """
    made, note = _exported(schema, _Folding(schema))
    return Exported(made, losses=(note,) if note else (), note=note)


def check_export(schema: JsonObject, tool: str) -> None:
    """Raises `DefinitionError` for a schema whose combinators take too much work to fold."""
    if "$ref" not in schema and not any(isinstance(schema.get(keyword), list) for keyword in COMBINATORS):
        return
    folding = _Folding(schema)
    _exported(schema, folding)
    if folding.work < 0:
        raise DefinitionError(f"the input schema of {tool!r} combines too much at its root to be sent to a provider")


def _exported(schema: JsonObject, folding: _Folding) -> tuple[dict[str, Any], str]:
    root = {k: v for k, v in _inlined(schema).items() if k not in ("$schema", "$id", "$comment", "title")}
    for keyword in ("not", "if", "then", "else", "enum", "const", "dependentSchemas"):
        root.pop(keyword, None)
    choices: list[str] = []
    for keyword in COMBINATORS:
        branches = root.pop(keyword, None)
        if isinstance(branches, list) and branches:
            folded = _distinct([folding.fold(branch) for branch in branches])
            root["properties"] = folding.merged([root.get("properties"), *(branch.properties for branch in folded)])
            sets = [frozenset(branch.required) for branch in folded]
            common = frozenset[str]().union(*sets) if keyword == "allOf" else sets[0].intersection(*sets)
            required = dict.fromkeys(_texts(root.get("required")))
            for branch in folded:
                required |= dict.fromkeys(name for name in branch.required if name in common)
            root["required"] = list(required)
            if keyword != "allOf":
                choices += _choices([names - common for names in sets if names - common])
    rest = {k: v for k, v in root.items() if k not in ("type", "properties") and (k, v) != ("required", [])}
    root = {"type": "object", "properties": root.get("properties") or {}, **rest}
    return _Anchoring(root, schema).copy(), " ".join(choices)


def _choices(sets: list[frozenset[str]]) -> list[str]:
    """What may be given instead of what, as a sentence of bounded length."""
    each = list(dict.fromkeys(" and ".join(sorted(names)[:_CHOICES]) for names in sets[: 10 * _CHOICES]))
    text = "; ".join(each[:_CHOICES])
    return [f"Give one of: {text[:_CHOICE_CHARACTERS]}."] if each else []


def _inlined(schema: JsonObject) -> dict[str, object]:
    """The root with its own `$ref`, if it is one, replaced by what it points to."""
    target = resolve(schema, schema)
    if target is schema or not isinstance(target, Mapping):
        return dict(schema)
    own = {k: v for k, v in schema.items() if k != "$ref" and v not in ({}, [])}
    return {**target, **own}


@dataclass
class _Folding:
    """Folds the branches of combinators, each once; out of `work`, a branch says nothing more."""

    root: JsonObject
    work: int = _WORK
    seen: dict[int, _Folded] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)

    def fold(self, branch: object, depth: int = 0) -> _Folded:
        """Properties and required names of one branch, its own combinators folded in."""
        branch = resolve(self.root, branch)
        if not isinstance(branch, Mapping) or depth > _DEEPEST or self.work < 0:
            return _NOTHING
        if id(branch) in self.seen:
            return self.seen[id(branch)]
        self.seen[id(branch)] = _NOTHING  # where it refers to itself
        properties: list[object] = [branch.get("properties")]
        required = dict.fromkeys(_texts(branch.get("required")))
        for keyword in COMBINATORS:
            inner = branch.get(keyword)
            for folded in _distinct([self.fold(each, depth + 1) for each in inner] if isinstance(inner, list) else []):
                properties.append(folded.properties)
                if keyword == "allOf":
                    required |= dict.fromkeys(folded.required)
                    self.work -= len(folded.required)
        self.seen[id(branch)] = _Folded(self.merged(properties), list(required))
        return self.seen[id(branch)]

    def merged(self, maps: Iterable[object]) -> dict[str, object]:
        """One property map; a name with different schemas in two branches accepts either."""
        first: dict[str, object] = {}
        either: dict[str, dict[str, object]] = {}  # by their text, so that each stands there once
        for properties in maps:
            if not isinstance(properties, Mapping) or self.work < 0:
                continue
            self.work -= len(properties)
            for name, schema in properties.items():
                earlier = first.setdefault(name, schema)
                if earlier is not schema:
                    known = either.setdefault(name, {self._text(each): each for each in _alternatives(earlier)})
                    known |= {self._text(each): each for each in _alternatives(schema)}
        for name, schemas in either.items():
            if len(schemas) > 1:
                first[name] = {"anyOf": list(schemas.values())}
        return first

    def _text(self, schema: object) -> str:
        if id(schema) not in self.texts:
            self.texts[id(schema)] = json.dumps(schema, sort_keys=True, default=repr)
        return self.texts[id(schema)]


def _alternatives(schema: object) -> list[object]:
    """The branches of a schema that is nothing but a choice of them; or the schema alone."""
    if isinstance(schema, Mapping) and len(schema) == 1 and isinstance(schema.get("anyOf"), list):
        return list(schema["anyOf"])
    return [schema]


def _distinct(folded: list[_Folded]) -> list[_Folded]:
    return list({id(each): each for each in folded}.values())


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


class _Anchoring:
    """Copies a root so that every reference in it leads somewhere in the copy.

    A reference to what has left the root leads to its target in `$defs`, where each stands once; a small target without
    references stands in the place of the reference. A reference that led nowhere, or elsewhere, is left out.
    """

    def __init__(self, root: dict[str, Any], original: JsonObject) -> None:
        self.root, self.original = root, original
        self.names: dict[int, str] = {}  # in `$defs`, by the id of a target
        self.targets: dict[str, object] = {}
        self.meant: dict[str, object] = {}  # what each reference that is no longer in the root pointed to
        defs = root.get("$defs")
        self.taken = set(defs) if isinstance(defs, Mapping) else set[str]()

    def copy(self) -> dict[str, Any]:
        self._find(self.root)
        made = {key: self._copied(value) for key, value in self.root.items()}
        if self.targets:
            defs = made.get("$defs")
            hoisted = {name: self._copied(target, inside=True, top=True) for name, target in self.targets.items()}
            made["$defs"] = {**(defs if isinstance(defs, Mapping) else {}), **hoisted}
        return made

    def _find(self, node: object) -> None:
        """Names the target of every reference that no longer leads anywhere, and of those in the targets."""
        waiting = [node]
        while waiting:
            item = waiting.pop()
            if isinstance(item, list):
                waiting += item
            if not isinstance(item, Mapping):
                continue
            waiting += item.values()
            ref = item.get("$ref")
            if isinstance(ref, str) and ref not in self.meant and not pointed_at(self.root, ref):
                target = pointed_at(self.original, ref, _NOWHERE)
                self.meant[ref] = target
                if isinstance(target, Mapping) and target and id(target) not in self.names and not _is_small(target):
                    self.names[id(target)] = name = self._name(ref)
                    self.targets[name] = target
                    waiting.append(target)

    def _name(self, ref: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", ref.rpartition("/")[2])[:40] or "shared"
        name, number = stem, 2
        while name in self.taken:
            name, number = f"{stem}_{number}", number + 1
        self.taken.add(name)
        return name

    def _copied(self, node: object, *, inside: bool = False, top: bool = False) -> object:
        """A copy; `inside` a target, other targets are referred to. In the root, references may lead through them."""
        if isinstance(node, list):
            return [self._copied(item, inside=inside) for item in node]
        if not isinstance(node, Mapping):
            return node
        if inside and not top and id(node) in self.names:
            return {"$ref": f"#/$defs/{self.names[id(node)]}"}
        rest = {key: self._copied(value, inside=inside) for key, value in node.items()}
        ref = node.get("$ref")
        if not (isinstance(ref, str) and ref in self.meant):
            return rest
        del rest["$ref"]
        target = self.meant[ref]
        if id(target) in self.names:
            return {"$ref": f"#/$defs/{self.names[id(target)]}", **rest}
        return {**target, **rest} if isinstance(target, Mapping) else rest


def _is_small(target: JsonObject) -> bool:
    """Whether a schema is short and refers to nothing, so that it can stand where a reference to it stood."""
    if len(target) > 8 or not all(_is_short(value) for value in target.values()):
        return False
    text = json.dumps(target, default=repr)
    return len(text) <= _INLINE and '"$ref"' not in text


def _is_short(value: object) -> bool:
    return len(value) <= _INLINE if isinstance(value, str | list | Mapping) else True


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
