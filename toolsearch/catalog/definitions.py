"""Definitions in the forms people have them: functions, and dicts or objects of OpenAI, Anthropic, Gemini and MCP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from toolsearch.catalog.functions import Function
from toolsearch.catalog.marks import OPTION_NAMES
from toolsearch.errors import DefinitionError
from toolsearch.schemas.json_values import JSON_TYPES
from toolsearch.support.json_types import JsonObject

__all__ = ["Definition", "parts", "read_definition"]

_SCHEMAS = (
    "input_schema", "inputSchema", "parameters", "parameters_json_schema", "parametersJsonSchema", "params", "schema"
)  # fmt: skip

_KEYWORDS = frozenset(
    "type properties $ref $defs definitions required anyOf oneOf allOf additionalProperties $schema".split()
)


@dataclass(frozen=True)
class Definition:
    """What a source says of one tool, before any of it is checked."""

    options: dict[str, object]
    schema: object
    source: object
    function: Function | None = None
    flags: tuple[str, ...] = ()


def read_definition(source: object) -> Definition:
    """The definition in one source, a function or one of `parts`; raises `DefinitionError` for anything else."""
    if isinstance(source, Mapping):
        return _from_mapping(source)
    if _looks_defined(source):
        return _from_object(source)
    if callable(source):
        function = Function(source)
        options: dict[str, object] = {"name": function.name, "description": function.description, "run": source}
        return Definition(options, function.schema, source, function)
    raise DefinitionError(
        f"{type(source).__name__} is not a tool: pass a function, a dict with a name, or an MCP tool object"
    )


def parts(source: object, namespace: str | None = None, depth: int = 0) -> Iterator[object]:
    """The definitions in one source, not read yet: the source itself, or the entries of the lists it wraps.

    Such wrappings are a `tools/list` result (also in its JSON-RPC envelope, also an SDK's object), Gemini's
    `functionDeclarations`, and an OpenAI namespace, whose name becomes the server of its tools.
    """
    if isinstance(source, Mapping) and "name" not in source and isinstance(source.get("result"), Mapping):
        source = source["result"]
    for key in ("functionDeclarations", "function_declarations", "tools"):
        inner = source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)
        if isinstance(inner, list) and depth < 8 and _is_list(source):
            name = source.get("name") if isinstance(source, Mapping) else None
            for part in inner:
                yield from parts(part, name if isinstance(name, str) and name else namespace, depth + 1)
            return
    yield {"server": namespace, **source} if namespace and isinstance(source, Mapping) else source


def _is_list(source: object) -> bool:
    """Whether something with a list of tools is only its wrapping: a tool would have a name, or a schema."""
    if not isinstance(source, Mapping):
        return not callable(source) and not hasattr(source, "name")
    return source.get("type") == "namespace" or not ("name" in source or any(key in source for key in _SCHEMAS))


def _from_mapping(source: JsonObject) -> Definition:
    inner = source.get("function")
    body: dict[str, object] = {**source, **inner} if isinstance(inner, Mapping) else dict(source)
    if callable(inner):
        body.setdefault("run", inner)
    options = _from_annotations(body.get("annotations"))
    if isinstance(meta := body.get("_meta", body.get("meta")), Mapping):
        options |= {k: v for k, v in meta.items() if k in ("server", "category", "tags", "examples")}
    options |= {key: body[key] for key in OPTION_NAMES if body.get(key) is not None}
    schema = next((body[key] for key in _SCHEMAS if key in body), None)
    run = body.get("run")
    if callable(run) and schema is None:
        function = Function(run)
        options = {"name": function.name, "description": function.description, **options}
        return Definition(options, function.schema, source, function)
    return Definition(options, _described(schema), source)


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


def _described(schema: object) -> object:
    """A plain map of argument names to texts or schemas becomes a schema of text arguments; a schema stays one."""
    if not isinstance(schema, Mapping):
        return schema
    if not schema or _KEYWORDS & schema.keys():
        only_texts = all(isinstance(v, str) for v in schema.values())
        if not only_texts or "$ref" in schema or str(schema.get("type", "object")).lower() in JSON_TYPES:
            return schema
    if not all(isinstance(v, str | Mapping) for v in schema.values()):
        return schema
    properties = {k: {"type": "string", "description": v} if isinstance(v, str) else v for k, v in schema.items()}
    return {"type": "object", "properties": properties}


def _looks_defined(source: object) -> bool:
    return (
        not isinstance(source, type)
        and isinstance(getattr(source, "name", None), str)
        and any(hasattr(source, key) for key in _SCHEMAS[:5])
    )


def _from_object(source: object) -> Definition:
    """An SDK's object (MCP `Tool`, Gemini `FunctionDeclaration`): its attributes read as a dict."""
    # Its own `run` follows the SDK's convention, not ours, so it is not taken.
    keys = [key for key in (*OPTION_NAMES, *_SCHEMAS[:5]) if key != "run" and getattr(source, key, None) is not None]
    body = {key: getattr(source, key, None) for key in (*keys, "annotations", "meta")}
    for key in ("annotations", *_SCHEMAS[:5]):
        if (dump := getattr(body.get(key), "model_dump", None)) is not None:
            body[key] = dump(by_alias=True, exclude_none=True, mode="json")
    return replace(_from_mapping(body), source=source)
