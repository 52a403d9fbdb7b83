"""Schemas of older drafts (3 to 2019-09) in the words of 2020-12, one schema at a time and nothing below it."""

from __future__ import annotations

from collections.abc import Mapping

from toolsearch.support.json_types import JsonObject

__all__ = ["modern"]

_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_OLD = frozenset("definitions dependencies additionalItems divisibleBy".split())


def modern(schema: JsonObject) -> JsonObject:
    """The schema itself if nothing in it is old; otherwise a copy of its top level, with the same schemas inside.

    A list of `items` becomes `prefixItems`, `additionalItems` what `items` is now, a boolean `exclusiveMinimum` the
    number, `definitions` `$defs`, and `dependencies` becomes `dependentRequired` and `dependentSchemas`.
    """
    if not (
        schema.keys() & _OLD
        or isinstance(schema.get("items"), list | tuple)
        or any(isinstance(schema.get(key), bool) for key in _EXCLUSIVE)
    ):
        return schema
    copy = dict(schema)
    _renew_items(copy)
    _renew_bounds(copy)
    _renew_dependencies(copy)
    definitions = copy.pop("definitions", None)
    if isinstance(definitions, Mapping):
        known = copy.get("$defs")
        copy["$defs"] = {**definitions, **(known if isinstance(known, Mapping) else {})}
    return copy


def _renew_items(copy: dict[str, object]) -> None:
    rest = copy.pop("additionalItems", None)
    items = copy.get("items")
    if isinstance(items, list | tuple):
        copy["prefixItems"] = list(items)
        del copy["items"]
        if isinstance(rest, Mapping | bool):
            copy["items"] = rest


def _renew_bounds(copy: dict[str, object]) -> None:
    for exclusive, bound in _EXCLUSIVE.items():
        if isinstance(is_exclusive := copy.get(exclusive), bool):
            del copy[exclusive]
            if is_exclusive and bound in copy:
                copy[exclusive] = copy.pop(bound)
    if "divisibleBy" in copy:
        step = copy.pop("divisibleBy")
        copy.setdefault("multipleOf", step)


def _renew_dependencies(copy: dict[str, object]) -> None:
    dependencies = copy.pop("dependencies", None)
    if not isinstance(dependencies, Mapping):
        return
    required = copy.get("dependentRequired")
    schemas = copy.get("dependentSchemas")
    names = dict(required) if isinstance(required, Mapping) else {}
    forms = dict(schemas) if isinstance(schemas, Mapping) else {}
    for name, needed in dependencies.items():
        if isinstance(needed, str):
            names.setdefault(name, [needed])
        elif isinstance(needed, list | tuple):
            names.setdefault(name, list(needed))
        elif isinstance(needed, Mapping | bool):
            forms.setdefault(name, needed)
    if names:
        copy["dependentRequired"] = names
    if forms:
        copy["dependentSchemas"] = forms
