"""A Python function as a tool: its schema from the annotations, its texts from the docstring, its call by keywords."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo

from toolsearch.arguments import ArgumentsError
from toolsearch.calls import ToolContext
from toolsearch.errors import DefinitionError

__all__ = ["Function", "context_parameters", "is_async", "read_docstring"]


class Function:
    """A callable read once: `name`, `description`, `schema`, and `bind` from a model's arguments to Python values."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call
        self.is_async = is_async(call)
        self.name = _name(call)
        try:
            parameters = list(inspect.signature(call).parameters.values())
            hints = get_type_hints(_annotated(call), include_extras=True)
        except (TypeError, ValueError, NameError) as error:
            raise DefinitionError(f"the signature of {self.name!r} cannot be read: {error}") from error
        self.description, texts = read_docstring(inspect.getdoc(_documented(call)) or "")
        self.context = context_parameters(call)
        self.positional = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
        self._fields: dict[str, str] = {}
        self._model = self._read([p for p in parameters if p.name not in self.context], hints, texts)
        self.schema = _untitled(self._model.model_json_schema(by_alias=True))

    def _read(self, parameters: list[inspect.Parameter], hints: Mapping[str, Any], texts: Mapping[str, str]) -> Any:
        fields: dict[str, Any] = {}
        extra = False
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                raise DefinitionError(f"{self.name!r} takes *{parameter.name}; a tool's arguments need names")
            if parameter.kind is parameter.VAR_KEYWORD:
                extra = True
                continue
            # A field called `schema` or `_x` would clash with pydantic, so fields are numbered and aliased.
            field = f"p{len(fields)}"
            self._fields[field] = parameter.name
            default = ... if parameter.default is parameter.empty else parameter.default
            hint = hints.get(parameter.name, Any)
            told = next((m.description for m in getattr(hint, "__metadata__", ()) if isinstance(m, FieldInfo)), None)
            fields[field] = (hint, Field(default, alias=parameter.name, description=told or texts.get(parameter.name)))
        config = ConfigDict(arbitrary_types_allowed=False, extra="allow" if extra else "forbid")
        try:
            return create_model("arguments", __config__=config, **fields)
        except (PydanticSchemaGenerationError, PydanticUserError, NameError, TypeError) as error:
            first = str(error).splitlines()[0]
            raise DefinitionError(f"the parameters of {self.name!r} have no JSON Schema: {first}") from error

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for the call; raises `ArgumentsError` where pydantic refuses a value."""
        try:
            model: BaseModel = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise ArgumentsError(
                [f"{'.'.join(map(str, e['loc']))!r}: {e['msg']}" for e in error.errors(include_url=False)]
            ) from None
        # Only what was given is passed on, so that a default stays the function's own object.
        values = {name: getattr(model, f) for f, name in self._fields.items() if f in model.model_fields_set}
        values |= model.__pydantic_extra__ or {}
        values |= dict.fromkeys(self.context, context)
        positional = []
        for name in self.positional:
            if name not in values:
                break
            positional.append(values.pop(name))
        return positional, values


def is_async(call: Any) -> bool:
    """Whether calling gives an awaitable; partials, methods and objects with an async `__call__` included."""
    while hasattr(call, "func"):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(_annotated(call))


def _name(call: Any) -> str:
    while hasattr(call, "func"):
        call = call.func
    name = getattr(call, "__name__", None) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(call).__name__).lower()
    if name == "<lambda>":
        raise DefinitionError("a lambda has no name; pass tool(call, name='...') instead")
    return str(name)


def _annotated(call: Any) -> Any:
    while hasattr(call, "func"):
        call = call.func
    return call if inspect.isroutine(call) else type(call).__call__


def _documented(call: Any) -> Any:
    while hasattr(call, "func"):
        call = call.func
    return call


def _untitled(node: Any, names: bool = False) -> Any:
    """The schema without the titles pydantic derives from names: they cost tokens and say nothing new."""
    if isinstance(node, list):
        return [_untitled(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _untitled(value, names=key in ("properties", "$defs") and not names)
        for key, value in node.items()
        if names or key != "title" or not isinstance(value, str)
    }


_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters|Params)\s*:\s*$", re.MULTILINE)
_NUMPY = re.compile(r"^(?:Parameters|Other Parameters)\s*\n-{3,}\s*$", re.MULTILINE)
_SECTION = re.compile(
    r"^(?:Args|Arguments|Parameters|Params|Returns?|Yields?|Raises?|Examples?|Notes?|Attributes|See Also)"
    r"\s*(?::\s*$|\n-{3,}\s*$)",
    re.MULTILINE,
)
_SPHINX = re.compile(
    r"^\s*:(?:param|parameter|arg)\s+(?:[^:\n]*\s)?(\w+)\s*:\s*((?:.|\n(?!\s*:|\s*\n))*)", re.MULTILINE
)
_SPHINX_ANY = re.compile(r"^\s*:[a-z]+[^:\n]*:", re.MULTILINE)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The prose before the first section, and the text of each parameter (Google, NumPy and Sphinx styles)."""
    starts = [m.start() for pattern in (_SECTION, _SPHINX_ANY) if (m := pattern.search(text))]
    prose = _flowed(text[: min(starts, default=len(text))])
    parameters = {m[1]: _flowed(m[2]) for m in _SPHINX.finditer(text)}
    for heading, entry in (
        (_GOOGLE, r"^( +)\*{0,2}(\w+)\s*(?:\([^\n]*?\))?\s*:\s*"),
        (_NUMPY, r"^()(\w+)\s*(?::[^\n]*)?\n"),
    ):
        for match in heading.finditer(text):
            rest = text[match.end() :]
            end = _SECTION.search(rest)
            parameters |= _entries(rest[: end.start() if end else len(rest)], entry)
    return prose, {name: told for name, told in parameters.items() if told}


def _entries(section: str, entry: str) -> dict[str, str]:
    """Name to text; an entry begins where the first one does, and lines indented further belong to it."""
    section = section.strip("\n")
    indent = re.match(" *", section)
    starts = [m for m in re.finditer(entry, section, re.MULTILINE) if not m[1] or (indent and m[1] == indent.group())]
    ends = [m.start() for m in starts[1:]] + [len(section)]
    return {m[2]: _flowed(section[m.end() : end]) for m, end in zip(starts, ends, strict=True)}


def _flowed(text: str) -> str:
    """Lines joined within paragraphs."""
    paragraphs = (" ".join(p.split()) for p in re.split(r"\n\s*\n", text))
    return "\n\n".join(p for p in paragraphs if p)


@lru_cache(maxsize=4096)
def context_parameters(call: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a callable's parameters annotated `ToolContext`."""
    try:
        hints = get_type_hints(_annotated(call))
    except (TypeError, NameError):
        hints = getattr(call, "__annotations__", {})
    return tuple(name for name, hint in hints.items() if hint in (ToolContext, "ToolContext") and name != "return")
