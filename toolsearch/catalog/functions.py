"""A Python function as a tool: its schema from the annotations, its texts from the docstring, its call by keywords."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, PydanticUndefined

from toolsearch.calls import ToolContext
from toolsearch.errors import DefinitionError
from toolsearch.schemas.references import DATA
from toolsearch.schemas.validation import ArgumentsError
from toolsearch.support.json_types import JsonObject

__all__ = [
    "Function", "adrained", "context_parameters", "drained", "in_async", "is_async", "read_docstring", "without_titles"
]  # fmt: skip

MOST_ITEMS = 10_000  # of an iterator that a tool returns


class _Schema(GenerateJsonSchema):
    # A default that is not JSON stays the function's own; there is nothing to warn of.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def encode_default(self, dft: object) -> object:
        try:
            return super().encode_default(dft)
        except UnicodeDecodeError as error:  # bytes that are not text, in pydantic 2.11
            raise PydanticSerializationError(str(error)) from error


class Function:
    """A callable that was read once: its `name`, `description` and `schema`; `bind` makes Python values of arguments.

    What a `functools.partial` binds by name belongs to the program: it is not in the schema, and no model can set it.
    """

    def __init__(self, call: Callable[..., object]) -> None:
        if isinstance(call, type):
            raise DefinitionError(f"{call.__name__!r} is a class; pass a function, a bound method or an instance")
        self.call = call
        self.is_async = is_async(call)
        self.name = _name(call)
        try:
            parameters = list(inspect.signature(call).parameters.values())
            hints = _hints(_annotated(call))
        except Exception as error:  # an annotation in quotes is code, which can fail in any way
            raise DefinitionError(f"the signature of {self.name!r} cannot be read: {error}") from error
        if parameters and parameters[0].name in ("self", "cls") and parameters[0].annotation is inspect.Parameter.empty:
            raise DefinitionError(f"{self.name!r} is a method without its object; pass it bound, as thing.{self.name}")
        self.description, texts = read_docstring(_docstring(call))
        self.context = context_parameters(call)
        self.positional = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_ONLY}
        self._bound = frozenset(call.keywords) if isinstance(call, partial) else frozenset[str]()
        self._fields: dict[str, str] = {}
        self._pydantic_defaults: set[str] = set()  # fields whose default pydantic makes
        own = [p for p in parameters if p.name not in self.context and p.name not in self._bound]
        self._model = self._read(own, hints, texts)

    def _read(
        self, parameters: list[inspect.Parameter], hints: Mapping[str, object], texts: Mapping[str, str]
    ) -> type[BaseModel]:
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
            fields[field] = self._field(field, parameter, hints.get(parameter.name, Any), texts)
        config = ConfigDict(arbitrary_types_allowed=False, extra="allow" if extra else "forbid")
        try:
            model = create_model("arguments", __config__=config, **fields)
            self.schema = without_titles(model.model_json_schema(by_alias=True, schema_generator=_Schema))
            return model
        except (PydanticSchemaGenerationError, PydanticUserError, NameError, TypeError) as error:
            first = str(error).splitlines()[0].partition(". Set `")[0]
            raise DefinitionError(f"the parameters of {self.name!r} have no JSON Schema: {first}") from error

    def _field(
        self, field: str, parameter: inspect.Parameter, hint: object, texts: Mapping[str, str]
    ) -> tuple[object, object]:
        """The type of a parameter, and what pydantic is to know of it."""
        default: object = ... if parameter.default is parameter.empty else parameter.default
        if isinstance(default, FieldInfo):
            if not default.is_required():
                self._pydantic_defaults.add(field)
            hint = Annotated[hint, default]
            default = default.get_default(call_default_factory=True, validated_data={})
        default = ... if default is PydanticUndefined else default
        metadata = getattr(hint, "__metadata__", ())
        text = next((text for item in metadata if (text := _description_in(item))), None) or texts.get(parameter.name)
        info: object = Field(default, alias=parameter.name, description=text)
        return hint, info

    def bind(self, arguments: JsonObject, context: ToolContext) -> tuple[list[object], dict[str, object]]:
        """Positional and keyword arguments for the call; raises `ArgumentsError` where pydantic refuses a value."""
        try:
            model = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise ArgumentsError(
                [f"{'.'.join(map(str, e['loc']))!r}: {e['msg']}" for e in error.errors(include_url=False)]
            ) from None
        # Only what the model wrote is passed on, so that a default stays the function's own object.
        passed = model.model_fields_set | self._pydantic_defaults
        values: dict[str, object] = {name: getattr(model, f) for f, name in self._fields.items() if f in passed}
        extra = model.__pydantic_extra__ or {}
        if taken := sorted(self._bound & extra.keys()):
            raise ArgumentsError([f"there is no argument {name!r}" for name in taken])
        values |= extra
        values |= dict.fromkeys(self.context, context)
        present = [i for i, name in enumerate(self.positional) if name in values]
        before = list(self.positional.items())[: max(present, default=-1) + 1]
        return [values.pop(name, default) for name, default in before], values


def is_async(call: object) -> bool:
    """Whether calling it gives an awaitable; works for partials, methods and objects with an async `__call__` too."""
    return inspect.iscoroutinefunction(_unwrapped(call)) or inspect.iscoroutinefunction(_annotated(call))


def in_async(call: Any) -> Any:
    """What async code calls: the `call_async` of an `AsyncCallable` (see `protocols`), else the object itself."""
    return getattr(call, "call_async", call)


def drained(value: object) -> Any:
    """What a tool returned; for an iterator its items, because a generator does its work only while it is read."""
    if not isinstance(value, Iterator) or inspect.isawaitable(value):
        return value
    return _checked_length(list(islice(value, MOST_ITEMS + 1)))


async def adrained(value: AsyncIterator[object]) -> list[object]:
    """The items of an async iterator that a tool returned."""
    items: list[object] = []
    async for item in value:
        items.append(item)
        if len(items) > MOST_ITEMS:
            break
    return _checked_length(items)


def _checked_length(items: list[object]) -> list[object]:
    if len(items) > MOST_ITEMS:
        raise ValueError(f"it gives more than {MOST_ITEMS:,} items: it should give those that matter")
    return items


def _unwrapped(call: object) -> object:
    while isinstance(call, partial):
        call = call.func
    return call


def _name(call: object) -> str:
    """The function's name, or that of an instance's class in snake case; "" for a lambda, which has none."""
    call = _unwrapped(call)
    name = getattr(call, "__name__", None) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(call).__name__).lower()
    return "" if name == "<lambda>" else str(name)


def _annotated(call: object) -> Callable[..., object]:
    """The function that carries the annotations: of an instance, its class's `__call__`."""
    call = _unwrapped(call)
    function: Callable[..., object] = call if inspect.isroutine(call) else type(call).__call__
    return function


def _hints(call: Callable[..., object]) -> dict[str, object]:
    """The annotations, evaluated; `ToolContext` is known also where it is imported for type checkers only."""
    try:
        return get_type_hints(call, include_extras=True)
    except NameError:
        return get_type_hints(call, localns={"ToolContext": ToolContext}, include_extras=True)


def _docstring(call: object) -> str:
    call = _unwrapped(call)
    own = call if inspect.isroutine(call) or type(call).__doc__ else _annotated(call)
    return inspect.getdoc(own) or ""


def _description_in(metadata: object) -> str | None:
    """The description in one item of `Annotated`: pydantic's `Field`, `Doc`, or a plain text."""
    if isinstance(metadata, str):
        return metadata
    text = getattr(metadata, "description", None) or getattr(metadata, "documentation", None)
    return text if isinstance(text, str) else None


def without_titles(schema: Mapping[str, object], names: bool = False) -> dict[str, object]:
    """The schema without the titles pydantic derives from names: they cost tokens and say nothing new."""

    def inner(node: object, names: bool) -> object:
        if isinstance(node, list):
            return [inner(item, False) for item in node]
        return without_titles(node, names) if isinstance(node, dict) else node

    return {
        key: value if key in DATA and not names else inner(value, key in ("properties", "$defs") and not names)
        for key, value in schema.items()
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
    prose = _joined_lines(text[: min(starts, default=len(text))])
    parameters = {m[1]: _joined_lines(m[2]) for m in _SPHINX.finditer(text)}
    for heading, entry in (
        (_GOOGLE, r"^( +)\*{0,2}(\w+)\s*(?:\([^\n]*?\))?\s*:\s*"),
        (_NUMPY, r"^()(\w+)\s*(?::[^\n]*)?\n"),
    ):
        for match in heading.finditer(text):
            rest = text[match.end() :]
            end = _SECTION.search(rest)
            parameters |= _entries(rest[: end.start() if end else len(rest)], entry)
    return prose, {name: text for name, text in parameters.items() if text}


def _entries(section: str, entry: str) -> dict[str, str]:
    """Name to text; an entry begins where the first one does, and lines indented further belong to it."""
    section = section.strip("\n")
    indent = re.match(" *", section)
    starts = [m for m in re.finditer(entry, section, re.MULTILINE) if not m[1] or (indent and m[1] == indent.group())]
    ends = [m.start() for m in starts[1:]] + [len(section)]
    return {m[2]: _joined_lines(section[m.end() : end]) for m, end in zip(starts, ends, strict=True)}


def _joined_lines(text: str) -> str:
    """Lines joined within paragraphs."""
    paragraphs = (" ".join(p.split()) for p in re.split(r"\n\s*\n", text))
    return "\n\n".join(p for p in paragraphs if p)


def context_parameters(call: Callable[..., object]) -> tuple[str, ...]:
    """The names of a callable's parameters annotated `ToolContext`, also `ToolContext | None`."""
    names = _context_parameters(_annotated(call))
    if names and isinstance(call, partial):
        names = tuple(n for n in names if n in inspect.signature(call).parameters and n not in call.keywords)
    return names


@lru_cache(maxsize=4096)
def _context_parameters(call: Callable[..., object]) -> tuple[str, ...]:
    try:
        hints = _hints(call)
    except Exception:
        hints = getattr(call, "__annotations__", {})
    return tuple(name for name, hint in hints.items() if name != "return" and _is_context(hint))


def _is_context(hint: object) -> bool:
    if isinstance(hint, str):  # another annotation of the function could not be evaluated
        return re.search(r"\bToolContext\b(?!\s*\])|Optional\[\s*ToolContext", hint) is not None
    return hint is ToolContext or any(arg is ToolContext for arg in get_args(hint))
