"""Definitions in the forms people have them: functions, and dicts or objects of OpenAI, Anthropic, Gemini and MCP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolsearch.catalog.foreign_tools import own_function, read_foreign
from toolsearch.catalog.functions import Function
from toolsearch.catalog.marks import OPTION_NAMES, readable_options
from toolsearch.catalog.parameters import OBJECT_KEYS, SCHEMA_KEYS, described, schema_in
from toolsearch.catalog.shapes import NotATool, check_hosted, named_shape
from toolsearch.errors import DefinitionError
from toolsearch.support.json_types import JsonObject

__all__ = ["Definition", "read_definition"]

_PARTS_OF_ONE = frozenset("description title input_schema inputSchema parameters params schema tools function".split())


@dataclass(frozen=True)
class Definition:
    """What a source says of one tool, before any of it is checked. `notices` say what of it was left out.

    `hinted` are the options that MCP's hints stand for, `annotations` the hints themselves. `claimed_server` stands in
    the metadata, where any server can write any name.
    """

    options: dict[str, object]
    schema: object
    source: object
    function: Function | None = None
    flags: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    hinted: Mapping[str, object] = field(default_factory=dict)
    annotations: object = None
    output_schema: object = None
    claimed_server: str = ""


def read_definition(source: object) -> Definition:
    """The definition in one source, a function or one of `listings.parts`.

    Raises `DefinitionError` for anything else, and `NotATool` for what is no definition at all.
    """
    if isinstance(source, Mapping):
        return _from_mapping(source)
    if (foreign := read_foreign(source)) is not None:
        body = {**foreign.options, "input_schema": foreign.schema}
        definition = replace(_from_mapping(body), source=source, function=foreign.function)
        return replace(definition, notices=(*definition.notices, *foreign.notices))
    if _looks_defined(source):
        return _from_object(source)
    if callable(source):
        function = Function(source)
        options: dict[str, object] = {"name": function.name, "description": function.description, "run": source}
        return Definition(options, function.schema, source, function)
    raise _no_definition(source)


def _no_definition(source: object) -> DefinitionError:
    """The error for what is neither a dict nor a function, nor an object that is a tool."""
    if isinstance(source, str):
        return NotATool(
            f"str is not a tool: {source[:60]!r} is a name or a text; pass a function, a dict with a name, or an MCP "
            "tool object"
        )
    for key in ("type", "kind", "name"):
        if isinstance(kind := getattr(source, key, None), str):
            check_hosted({"type": kind}, None)
    if (dump := getattr(source, "model_dump", None)) is not None and isinstance(body := dump(exclude_none=True), dict):
        check_hosted(body, None)
    return NotATool(
        f"{type(source).__name__} is not a tool: pass a function, a dict with a name, or an MCP tool object"
    )


def _from_mapping(source: JsonObject) -> Definition:
    body = _body(source)
    name, run = body.get("name"), body.get("run")
    named = isinstance(name, str)
    plain = named and any(key in body for key in SCHEMA_KEYS)
    if not callable(run) and not plain and (shape := named_shape(source)) is not None:
        raise NotATool(shape)
    schema = schema_in(body)
    if not callable(run):
        check_hosted(body, schema)
    if not named and not callable(run) and not _PARTS_OF_ONE & body.keys():
        raise NotATool(f"a tool needs a name, not {name!r}: pass a function, a dict with a name, or a list of them")
    hinted = _from_annotations(body.get("annotations"))
    options, claimed = dict(hinted), ""
    if isinstance(meta := body.get("_meta", body.get("meta")), Mapping):
        options |= {k: v for k, v in meta.items() if k in ("category", "tags", "examples")}
        claimed = server if isinstance(server := meta.get("server"), str) else ""
    options |= {key: body[key] for key in OPTION_NAMES if body.get(key) is not None}
    options, notices = readable_options(options)
    function = None
    if callable(run) and schema is None:
        function = Function(run)
        options = {"name": function.name, "description": function.description, **options}
        schema = function.schema
    output = body.get("outputSchema", body.get("output_schema"))
    return Definition(
        options, schema, source, function, (), notices, hinted, body.get("annotations"), output, claimed_server=claimed
    )


def _body(source: JsonObject) -> dict[str, object]:
    """The definition without what it is wrapped in: OpenAI's `function`, Amazon Bedrock's `toolSpec`."""
    wrapped = source.get("toolSpec")
    if isinstance(wrapped, Mapping) and "name" not in source:
        source = {**{key: value for key, value in source.items() if key != "toolSpec"}, **wrapped}
    inner = source.get("function")
    body: dict[str, object] = {**source, **inner} if isinstance(inner, Mapping) else dict(source)
    if callable(inner):
        body.setdefault("run", inner)
    return body


def _from_annotations(annotations: object) -> dict[str, object]:
    """Options from MCP's hints. Its default is "may change something"; a tool without hints says nothing."""
    if not isinstance(annotations, Mapping):
        return {}
    options: dict[str, object] = {}
    if isinstance(annotations.get("title"), str):
        options["title"] = annotations["title"]
    read_only = annotations.get("readOnlyHint", annotations.get("read_only_hint"))
    options["kind"] = "read" if read_only is True else "action"
    if annotations.get("idempotentHint", annotations.get("idempotent_hint")) is True:
        options["repeatable"] = True
    return options


def _looks_defined(source: object) -> bool:
    return (
        not isinstance(source, type)
        and isinstance(getattr(source, "name", None), str)
        and any(hasattr(source, key) for key in OBJECT_KEYS)
    )


def _from_object(source: object) -> Definition:
    """An SDK's object (MCP `Tool`, Gemini `FunctionDeclaration`): its attributes read as a dict.

    Its own `run` follows the SDK's convention, not ours, so it is not taken; nor is a `kind` that is not ours.
    """
    body = {key: value for key in OPTION_NAMES if key != "run" and (value := getattr(source, key, None)) is not None}
    if body.get("kind") not in ("read", "action"):
        body.pop("kind", None)
    # Only the first: older names may still be there, and warn.
    first = next(((key, value) for key in OBJECT_KEYS if (value := getattr(source, key, None)) is not None), None)
    body.update([first] if first else [])
    for key in ("annotations", "meta", "output_schema", "outputSchema"):
        value = None if key == "outputSchema" and hasattr(source, "output_schema") else getattr(source, key, None)
        dump = getattr(value, "model_dump", None)
        if value is not None:
            body[key] = value if dump is None else dump(by_alias=True, exclude_none=True, mode="json")
    if first and (call := own_function(source, described(first[1]))) is not None:
        body["run"] = call
    return replace(_from_mapping(body), source=source)
