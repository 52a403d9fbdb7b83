"""A schema for a provider that reads a few keywords only: no references, one type a schema, the rest said in words.

What a reference leads to stands in its place, down to a depth that keeps the whole within a budget; what is deeper, or
comes round again, admits anything. What is not sent is still checked when the tool is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolsearch.schemas.drafts import modern
from toolsearch.schemas.export_parts import Losses, brief_enum, joined, sound, texts, types_of
from toolsearch.schemas.export_words import HINT_CHARACTERS, OF_TYPE, sent_and_said
from toolsearch.schemas.json_schema import Place
from toolsearch.schemas.json_values import brief, type_of
from toolsearch.schemas.references import COMBINATORS, pointed_at
from toolsearch.schemas.targets import Rules
from toolsearch.support.json_types import JsonObject

__all__ = ["ReducedSchema", "TooLarge"]

_NOWHERE = object()
_PARTS = 64  # schemas that apply to one value: references, and branches of allOf

_AGAIN = "Nested in the same way as further up."

_ALSO = {"number": ("integer",)}  # values of a type, besides those that have its name
# What only describes, or what a provider need not know to fill in the arguments.
_SILENT = frozenset(
    "title examples deprecated readOnly writeOnly $defs contentEncoding contentMediaType contentSchema type enum const "
    "description required properties items prefixItems $ref additionalProperties".split()
).union(COMBINATORS)
_CONSTRAINTS = frozenset(
    "not if then else patternProperties propertyNames dependentRequired dependentSchemas contains unevaluatedItems "
    "unevaluatedProperties uniqueItems".split()
)


class TooLarge(Exception):
    """What was made is larger than the budget."""


@dataclass
class ReducedSchema:
    """One walk through one schema, down to `depth` levels, in which no reference comes round again.

    A description has at most `most_text` characters. `budget` is in characters; `TooLarge` is raised where it ends.
    """

    original: JsonObject
    losses: Losses
    depth: int
    most_text: int
    budget: int
    open: list[int] = field(default_factory=list)  # ids of the schemas that were referred to on the way here

    @property
    def rules(self) -> Rules:
        return self.losses.rules

    def made(self, root: JsonObject) -> dict[str, object]:
        """The root, whose combinators are folded already."""
        return self._object(dict(root), None, 0)

    def _schema(self, schema: object, at: Place, depth: int) -> dict[str, object]:
        if not isinstance(schema, Mapping):
            return self._typed({}, "", at, depth)
        was_open = len(self.open)
        try:
            return self._reduced(self._flat(schema, at), at, depth)
        finally:
            del self.open[was_open:]

    def _spend(self, *texts: object) -> None:
        self.budget -= 12 + sum(len(text) for text in texts if isinstance(text, str))
        if self.budget < 0:
            raise TooLarge

    # -- references and allOf: several schemas for one value ------------------------------------------------------

    def _flat(self, schema: JsonObject, at: Place) -> dict[str, object]:
        """One schema that says what this one, those that it refers to, and its branches of allOf say together."""
        whole: dict[str, object] = {}
        waiting: list[object] = [schema]
        seen: set[int] = set()
        for _ in range(_PARTS):
            if not waiting:
                return whole
            part = waiting.pop(0)
            if not isinstance(part, Mapping) or id(part) in seen:
                continue
            seen.add(id(part))
            part = modern(part)
            further = [self._target(part["$ref"], at)] if isinstance(part.get("$ref"), str) else []
            branches = part.get("allOf")
            waiting = [*further, *(branches if isinstance(branches, list | tuple) else ()), *waiting]
            self._add(whole, part, at)
        self.losses.add("what is combined in too many parts is not all sent", at)
        return whole

    def _target(self, ref: str, at: Place) -> object:
        target = pointed_at(self.original, ref, _NOWHERE)
        if target is _NOWHERE:
            self.losses.add("a reference that leads nowhere is not sent", at)
            return {}
        if not isinstance(target, Mapping):
            return {}
        if id(target) in self.open:
            self.losses.add("a reference that comes round again admits anything", at)
            return {**_outline(target), "description": _AGAIN}
        if len(self.open) >= (_PARTS if self.depth == self.rules.depth else self.depth):
            self.losses.add(f"what is deeper than {self.depth} levels is not sent", at)
            return _outline(target)
        self.open.append(id(target))
        return target

    def _add(self, whole: dict[str, object], part: JsonObject, at: Place) -> None:
        """Adds what one more schema says. What came first stays, where two cannot be said as one."""
        for key, value in part.items():
            known = whole.get(key, _NOWHERE)
            if key in ("$ref", "allOf", "$defs"):
                continue
            if known is _NOWHERE:
                whole[key] = value
            elif key == "properties" and isinstance(known, Mapping) and isinstance(value, Mapping):
                both = {name: {"allOf": [known[name], each]} if name in known and known[name] != each else each
                        for name, each in value.items()}  # fmt: skip
                whole[key] = {**known, **both}
            elif key == "required":
                whole[key] = [*texts(known), *texts(value)]
            elif key == "type":
                common = [kind for kind in types_of(known) if kind in types_of(value)]
                whole[key] = common or known
            elif key not in ("description", "title", "default", "examples") and known != value:
                self.losses.add(f"one {key} of several is not sent", at)

    # -- one schema ----------------------------------------------------------------------------------------------------

    def _reduced(self, flat: dict[str, object], at: Place, depth: int) -> dict[str, object]:
        self._spend()
        if "const" in flat:
            flat = {**flat, "enum": [flat["const"]]}
        for keyword in sorted(_CONSTRAINTS & flat.keys()):
            self.losses.add(f"{keyword} is not sent", at)
        branches = self._branches(flat, at)
        kinds = sorted(types_of(flat.get("type")) or _inferred(flat), key="null".__eq__)
        if depth >= self.depth and not branches and ("object" in kinds or "array" in kinds):
            self.losses.add(f"what is deeper than {self.depth} levels is not sent", at)
            return self._described(_outline(flat), flat)
        if branches and "properties" in flat:
            flat, branches = self._folded(flat, branches, at), []
        if branches:
            return self._choice(flat, branches, kinds, at, depth)
        if len(kinds) < 2:
            return self._typed(flat, kinds[0] if kinds else "", at, depth)
        return self._of_several(flat, kinds, at, depth)

    def _branches(self, flat: Mapping[str, object], at: Place) -> list[JsonObject]:
        several = [each for key in ("anyOf", "oneOf") if isinstance(each := flat.get(key), list | tuple) and each]
        if len(several) > 1:
            self.losses.add("oneOf beside anyOf is not sent", at)
        return (
            [each if isinstance(each, Mapping) else {} for each in several[0] if each is not False] if several else []
        )

    def _folded(self, flat: dict[str, object], branches: list[JsonObject], at: Place) -> dict[str, object]:
        """An object with the fields of all its branches, because a choice cannot stand beside properties."""
        self.losses.add("what may be given instead of what is not sent", at)
        fields: dict[str, object] = {}
        for branch in branches:
            inner = self._flat(branch, at).get("properties")
            for name, each in inner.items() if isinstance(inner, Mapping) else ():
                fields.setdefault(str(name), each)
        own = flat["properties"]
        return {**flat, "properties": {**fields, **(own if isinstance(own, Mapping) else {})}}

    def _choice(
        self, flat: dict[str, object], branches: list[JsonObject], kinds: list[str], at: Place, depth: int
    ) -> dict[str, object]:
        """A choice of schemas. One that is left alone stands for the choice."""
        own = {key: value for key, value in flat.items() if key not in ("anyOf", "oneOf", "description", "default")}
        options: list[dict[str, object]] = []
        for place, branch in enumerate(branches):
            whole = {"allOf": [branch, own]} if own.keys() - _SILENT or kinds else branch
            options.append(self._schema(whole, (at, f"anyOf[{place}]"), depth))
        return self._one_of(flat, options)

    def _of_several(self, flat: dict[str, object], kinds: list[str], at: Place, depth: int) -> dict[str, object]:
        """A value of one of several types: a list of types, or a choice of schemas with one type each."""
        if self.rules.kinds == "list" and kinds == [*kinds[:1], "null"]:
            made = {**self._typed(flat, kinds[0], at, depth), "type": kinds}
            if isinstance(values := made.get("enum"), list):
                made["enum"] = [*values, None]
            return made
        bare = {key: value for key, value in flat.items() if key not in ("description", "default")}
        return self._one_of(flat, [self._typed(bare, kind, at, depth) for kind in kinds])

    def _one_of(self, flat: dict[str, object], options: list[dict[str, object]]) -> dict[str, object]:
        """One of these, each told once; null only where the provider takes it."""
        distinct: list[dict[str, object]] = []
        for option in options:
            if option not in distinct:
                distinct.append(option)
        said: list[str] = []
        if not self.rules.kinds:
            rest = [option for option in distinct if option.get("type") != "null"]
            if len(rest) < len(distinct):
                said.append("or null")
            if len(rest) > 1:
                said.append(" or ".join(dict.fromkeys(str(option.get("type", "anything")) for option in rest)))
            distinct = rest or [{}]
        if len(distinct) == 1:
            alone = distinct[0]
            text = joined(flat.get("description"), str(alone.get("description") or ""), *said)
            both = {"description": text, **({"default": flat["default"]} if "default" in flat else {})}
            return {**alone, **self._described({k: alone[k] for k in alone if k != "description"}, both)}
        return self._described({"anyOf": distinct}, flat, said)

    def _typed(self, flat: dict[str, object], kind: str, at: Place, depth: int) -> dict[str, object]:
        """A value of one type, or of any (""), with what belongs to that type only."""
        foreign = frozenset().union(*OF_TYPE.values()) - OF_TYPE.get(kind, frozenset()) if kind else frozenset()
        flat = {key: value for key, value in flat.items() if key not in foreign}
        if kind == "object":
            return self._object(flat, at, depth)
        made: dict[str, object] = {"type": kind} if kind else {}
        if not kind and self.rules.is_lossless:
            self.losses.add("an argument has no type", at)
        said: list[str] = []
        if isinstance(values := sound("enum", flat.get("enum")), list):
            said += self._enum(made, values, kind, at)
        if kind == "array":
            self._array(made, flat, at, depth)
        return self._described(made, flat, said)

    def _enum(self, made: dict[str, object], values: list[object], kind: str, at: Place) -> list[str]:
        """The values that a provider takes, and in words that there are others."""
        fit = [each for each in values if not kind or type_of(each) in (kind, *_ALSO.get(kind, ()))]
        if kind == "null" or not fit:
            return []
        plain = fit if self.rules.is_lossless else [each for each in fit if _is_plain(each)]
        told = brief_enum(plain, self.losses, at)
        if told or not plain:
            return [told or f"One of {', '.join(brief(each) for each in fit[:8])}."]
        made["enum"] = plain
        if len(plain) < len(fit):
            return [f"Or {', '.join(brief(each) for each in fit if each not in plain)[:HINT_CHARACTERS]}."]
        return []

    def _array(self, made: dict[str, object], flat: dict[str, object], at: Place, depth: int) -> None:
        first, rest = flat.get("prefixItems"), flat.get("items")
        options = list(first) if isinstance(first, list | tuple) else []
        if options:
            self.losses.add("which item stands where is not sent", at)
        if rest is False:
            most = sound("maxItems", flat.get("maxItems"))
            flat["maxItems"] = min(most, len(options)) if isinstance(most, int) else len(options)
        elif isinstance(rest, Mapping):
            options.append(rest)
        inner: Place = (at, "[]")
        items = self._schema(
            {"anyOf": options} if len(options) > 1 else options[0] if options else {}, inner, depth + 1
        )
        branches = items.get("anyOf")
        if isinstance(branches, list) and all(each.get("type") == "array" for each in branches):
            # An array of arrays in a choice is refused: its rows may hold either.
            self.losses.add("which kind of row holds what is not sent", at)
            either = [each["items"] for each in branches if each["items"]]
            items = {"type": "array", "items": {"anyOf": either} if len(either) == len(branches) else {}}
        made["items"] = items

    def _object(self, flat: dict[str, object], at: Place, depth: int) -> dict[str, object]:
        made: dict[str, object] = {"type": "object"}
        properties = flat.get("properties")
        fields: dict[str, dict[str, object]] = {}
        for name, each in properties.items() if isinstance(properties, Mapping) else ():
            if each is not False:
                self._spend(str(name))
                fields[str(name)] = self._schema(each, (at, str(name)), depth + 1)
        required = texts(flat.get("required"))
        for name in required:
            if name not in fields:  # some providers refuse a name that is not among the properties
                self._spend(name)
                fields[name] = self._typed({}, "", (at, name), depth + 1)
        if self.rules.is_lossless:
            required = self._close(fields, required, flat.get("additionalProperties", _NOWHERE), at)
            made["additionalProperties"] = False
        if fields or at is None:
            made["properties"] = fields
        if required:
            made["required"] = required
        rest = flat.get("additionalProperties")
        if isinstance(rest, Mapping) and rest and not self.rules.is_lossless:
            if "additionalProperties" in self.rules.keywords:
                made["additionalProperties"] = self._schema(rest, (at, "additionalProperties"), depth + 1)
            else:
                self.losses.add("what further fields hold is not sent", at)
        return self._described(made, flat) if at is not None else made

    def _close(self, fields: dict[str, dict[str, object]], required: list[str], rest: object, at: Place) -> list[str]:
        """Makes every field required, and one that may be left out null for that; raises where that loses something.

        An object that lists its fields and says nothing of others is closed: nobody could know of any other.
        """
        if rest is not False and not (rest is _NOWHERE and fields):
            self.losses.add("an object takes fields that it does not name", at)
        for name, each in fields.items():
            if name in required:
                continue
            kind, branches = each.get("type"), each.get("anyOf")
            if "null" in types_of(kind) or (isinstance(branches, list) and {"type": "null"} in branches):
                self.losses.add("an argument that may be left out takes null as well", (at, name))
            elif isinstance(branches, list):
                each["anyOf"] = [*branches, {"type": "null"}]
            else:
                each["type"] = [kind, "null"] if isinstance(kind, str) else [*types_of(kind), "null"]
                if isinstance(values := each.get("enum"), list):
                    each["enum"] = [*values, None]
        return list(fields)

    def _described(
        self, made: dict[str, object], flat: Mapping[str, object], said: Sequence[str] = ()
    ) -> dict[str, object]:
        """A schema with the keywords that are sent as they are, and the others said in its description."""
        sent, hints = sent_and_said(flat, made.keys(), str(made.get("type")), self.rules)
        text = joined(flat.get("description"), *said, f"({'; '.join(hints)})" if hints else "")
        if len(text) > self.most_text:
            self.losses.add("a long description is not sent whole", None)
            text = f"{text[: self.most_text - 1]}…"
        self._spend(text)
        kind = {"type": made["type"]} if "type" in made else {}
        rest = {key: value for key, value in made.items() if key not in ("type", "description")}
        return {**kind, **({"description": text} if text else {}), **rest, **sent}


def _inferred(flat: Mapping[str, object]) -> list[str]:
    """The types that a schema without `type` means, by what else it says."""
    if isinstance(values := flat.get("enum"), list | tuple) and values:
        return list(dict.fromkeys(type_of(each) for each in values))
    named = [
        kind for kind, key in (("object", "properties"), ("array", "items"), ("array", "prefixItems")) if key in flat
    ]
    return named[:1]


def _outline(schema: JsonObject) -> dict[str, object]:
    """The type of a schema, and nothing that it holds."""
    kinds = types_of(schema.get("type")) or _inferred(schema)
    kind = next((kind for kind in kinds if kind != "null"), "")
    items: dict[str, object] = {"items": {}} if kind == "array" else {}
    return {**({"type": kind} if kind else {}), **items}


def _is_plain(value: object) -> bool:
    """Whether a value may stand in an enum: a number, or a text that is not empty."""
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
