"""The combinators at the root of a schema folded into one object, because providers refuse them there.

Folding goes through what branches share once, and stops at a budget of work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolsearch.schemas.argument_names import renamed
from toolsearch.schemas.drafts import modern
from toolsearch.schemas.export_parts import texts
from toolsearch.schemas.references import COMBINATORS, resolve
from toolsearch.support.json_types import JsonObject

__all__ = ["FoldedRoot", "argument_names", "folded_root"]

_WORK = 200_000  # names of properties that are gone through to fold the combinators of one schema
_DEEPEST = 32  # combinators inside combinators that are folded
_CHOICES, _CHOICE_CHARACTERS = 10, 1_000  # in the sentence about what was lost
_REFUSED = ("not", "if", "then", "else", "enum", "const", "dependentSchemas")  # besides the combinators


@dataclass(frozen=True)
class _Folded:
    """What one branch of a combinator says, its own combinators folded in."""

    properties: Mapping[str, object]
    required: Sequence[str]


_NOTHING = _Folded({}, ())


@dataclass(frozen=True)
class FoldedRoot:
    """The root of a schema, with the arguments under the names that are sent, and the same schemas inside.

    `renamed` maps names that are sent to the names of the tool, where they differ. `note` says what may be given
    instead of what. `dropped` are the keywords that nothing stands for now. `is_whole` is False if the work was too
    much, so that something is missing.
    """

    keywords: dict[str, object]
    renamed: Mapping[str, str]
    note: str
    dropped: tuple[str, ...]
    is_whole: bool


def folded_root(schema: JsonObject) -> FoldedRoot:
    """Folds the combinators: the union of the properties, the intersection of what every branch requires."""
    folding = _Folding(schema)
    root = dict(modern(_inlined(schema)))
    root.pop("$ref", None)  # one that leads to no object
    dropped = [keyword for keyword in _REFUSED if root.pop(keyword, None) is not None]
    choices: list[list[list[str]]] = []
    for keyword in COMBINATORS:
        branches = root.pop(keyword, None)
        if isinstance(branches, list) and branches:
            choices.append(_fold(root, keyword, _distinct([folding.fold(branch) for branch in branches]), folding))
    properties = root.get("properties")
    named = {str(k): v for k, v in properties.items()} if isinstance(properties, Mapping) else {}
    sent = {original: name for name, original in renamed(named).items()}
    root["properties"] = {sent.get(name, name): each for name, each in named.items()}
    root["required"] = [sent.get(name, name) for name in texts(root.get("required"))]
    if isinstance(together := root.get("dependentRequired"), Mapping):
        root["dependentRequired"] = {
            sent.get(str(name), str(name)): [sent.get(other, other) for other in texts(others)]
            for name, others in together.items()
        }
    names = {name: original for original, name in sent.items()}
    notes = [_choice([[sent.get(name, name) for name in each] for each in choice]) for choice in choices]
    return FoldedRoot(root, names, " ".join(filter(None, notes)), tuple(dropped), folding.work >= 0)


def argument_names(schema: JsonObject) -> Mapping[str, str]:
    """The names of arguments that are sent, and the names of the tool, where they differ."""
    properties = schema.get("properties")
    if "$ref" in schema or any(isinstance(schema.get(keyword), list) for keyword in COMBINATORS):
        return folded_root(schema).renamed
    return renamed(map(str, properties)) if isinstance(properties, Mapping) else {}


def _fold(root: dict[str, object], keyword: str, folded: list[_Folded], folding: _Folding) -> list[list[str]]:
    """Folds the branches of one combinator into the root; returns what may be given instead of what."""
    root["properties"] = folding.merged([root.get("properties"), *(branch.properties for branch in folded)])
    sets = [frozenset(branch.required) for branch in folded]
    common = frozenset[str]().union(*sets) if keyword == "allOf" else sets[0].intersection(*sets)
    required = dict.fromkeys(texts(root.get("required")))
    for branch in folded:
        required |= dict.fromkeys(name for name in branch.required if name in common)
    root["required"] = list(required)
    if keyword == "allOf":
        return []
    return [sorted(names - common)[:_CHOICES] for names in sets[: 10 * _CHOICES] if names - common]


def _choice(sets: list[list[str]]) -> str:
    """What may be given instead of what, as a sentence of bounded length."""
    each = list(dict.fromkeys(map(" and ".join, sets)))
    text = "; ".join(each[:_CHOICES])
    return f"Give one of: {text[:_CHOICE_CHARACTERS]}." if each else ""


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
    written: dict[int, str] = field(default_factory=dict)

    def fold(self, branch: object, depth: int = 0) -> _Folded:
        """Properties and required names of one branch, its own combinators folded in."""
        branch = resolve(self.root, branch)
        if not isinstance(branch, Mapping) or depth > _DEEPEST or self.work < 0:
            return _NOTHING
        if id(branch) in self.seen:
            return self.seen[id(branch)]
        self.seen[id(branch)] = _NOTHING  # where it refers to itself
        properties: list[object] = [branch.get("properties")]
        required = dict.fromkeys(texts(branch.get("required")))
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
        if id(schema) not in self.written:
            self.written[id(schema)] = json.dumps(schema, sort_keys=True, default=repr)
        return self.written[id(schema)]


def _alternatives(schema: object) -> list[object]:
    """The branches of a schema that is nothing but a choice of them; or the schema alone."""
    if isinstance(schema, Mapping) and len(schema) == 1 and isinstance(schema.get("anyOf"), list):
        return list(schema["anyOf"])
    return [schema]


def _distinct(folded: list[_Folded]) -> list[_Folded]:
    return list({id(each): each for each in folded}.values())
