"""Definitions in the forms people have them: functions, and dicts or objects of OpenAI, Anthropic, Gemini and MCP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from toolsearch.arguments import JSON_TYPES
from toolsearch.errors import DefinitionError
from toolsearch.functions import Function

__all__ = ["Definition", "read"]

_MARKS = """
    name description server title category tags examples kind repeatable alone return_direct terminal roles version run
""".split()
_SCHEMAS = (
    "input_schema", "inputSchema", "parameters", "parameters_json_schema", "parametersJsonSchema", "params", "schema"
)  # fmt: skip

_KEYWORDS = frozenset(
    "type properties $ref $defs definitions required anyOf oneOf allOf additionalProperties $schema".split()
)


@dataclass(frozen=True)
class Definition:
    """What a source says of one tool, before anything of it is checked."""

    marks: dict[str, Any]
    schema: Any
    source: Any
    function: Function | None = None

    @classmethod
    def of(cls, tool: Any) -> Definition:
        """A finished `Tool` taken apart, so that marks can replace some of it."""
        marks = {f.name: getattr(tool, f.name) for f in fields(tool) if f.name in _MARKS}
        return cls(marks, tool.input_schema, tool, tool.function)


def read(source: Any) -> list[Definition]:
    """The definitions in one source, usually one; raises `DefinitionError` for what is none."""
    if isinstance(source, Mapping):
        return [_from_mapping(part) for part in _parts(source)]
    if callable(source) and not _looks_defined(source):
        function = Function(source)
        return [
            Definition(
                {"name": function.name, "description": function.description, "run": source},
                function.schema,
                source,
                function,
            )
        ]
    if _looks_defined(source):
        return [_from_object(source)]
    raise DefinitionError(
        f"{type(source).__name__} is not a tool: pass a function, a dict with a name, or an MCP tool object"
    )


def _parts(source: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The single definitions in a dict: itself, or the list it wraps (`tools/list`, Gemini, an OpenAI namespace)."""
    for key in ("functionDeclarations", "function_declarations", "tools"):
        if isinstance(inner := source.get(key), list):
            namespace = source.get("name") if source.get("type") == "namespace" else None
            for part in inner:
                if not isinstance(part, Mapping):
                    raise DefinitionError(f"an entry of {key!r} is {type(part).__name__}, not a definition")
                yield {"server": namespace, **part} if namespace else part
            return
    yield source


def _from_mapping(source: Mapping[str, Any]) -> Definition:
    inner = source.get("function")
    body: dict[str, Any] = {**source, **inner} if isinstance(inner, Mapping) else dict(source)
    if callable(inner):
        body.setdefault("run", inner)
    marks = {key: body[key] for key in _MARKS if body.get(key) is not None}
    marks |= _from_annotations(body.get("annotations"), is_mcp="inputSchema" in body or "annotations" in body)
    if isinstance(meta := body.get("_meta"), Mapping):
        marks = {**{k: v for k, v in meta.items() if k in ("server", "category", "tags", "examples")}, **marks}
    if "input_examples" in body:
        marks.pop("examples", None)
    marks |= {k: body[k] for k in ("kind", "repeatable", "alone") if body.get(k) is not None}
    schema = next((body[key] for key in _SCHEMAS if key in body), None)
    function = Function(body["run"]) if callable(body.get("run")) and schema is None else None
    if function is not None:
        marks.setdefault("description", function.description)
        return Definition(marks, function.schema, source, function)
    return Definition(marks, _described(schema), source)


def _from_annotations(annotations: Any, *, is_mcp: bool) -> dict[str, Any]:
    """Marks from MCP's hints. Its default is "may change something"; a tool without hints says nothing."""
    if not isinstance(annotations, Mapping):
        return {}
    told: dict[str, Any] = {}
    if isinstance(annotations.get("title"), str):
        told["title"] = annotations["title"]
    if is_mcp:
        told["kind"] = "read" if annotations.get("readOnlyHint") is True else "action"
        if annotations.get("idempotentHint") is True:
            told["repeatable"] = True
    return told


def _described(schema: Any) -> Any:
    """A plain map of argument names to texts or schemas becomes a schema of text arguments; a schema stays one."""
    if not isinstance(schema, Mapping) or not schema or _KEYWORDS & schema.keys():
        only_texts = isinstance(schema, Mapping) and all(isinstance(v, str) for v in schema.values())
        if not only_texts or "$ref" in schema or str(schema.get("type", "object")).lower() in JSON_TYPES:
            return schema
    if not all(isinstance(v, str | Mapping) for v in schema.values()):
        return schema
    properties = {k: {"type": "string", "description": v} if isinstance(v, str) else v for k, v in schema.items()}
    return {"type": "object", "properties": properties}


def _looks_defined(source: Any) -> bool:
    return (
        not isinstance(source, type)
        and isinstance(getattr(source, "name", None), str)
        and any(hasattr(source, key) for key in _SCHEMAS[:5])
    )


def _from_object(source: Any) -> Definition:
    """An SDK's object (MCP `Tool`, Gemini `FunctionDeclaration`): its attributes read as a dict."""
    body = {key: getattr(source, key) for key in (*_MARKS, *_SCHEMAS[:5]) if hasattr(source, key)}
    body = {
        key: value for key, value in body.items() if value is not None and not (key == "run" and not callable(value))
    }
    body["annotations"] = getattr(source, "annotations", None)
    for key in ("annotations", *_SCHEMAS[:5]):
        if (dump := getattr(body.get(key), "model_dump", None)) is not None:
            body[key] = dump(by_alias=True, exclude_none=True, mode="json")
    return replace(_from_mapping(body), source=source)
