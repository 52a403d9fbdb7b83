"""Functions as tools: the schema from annotations and docstring, and the call from a model's arguments."""

import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import json
import sys
import typing
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import Doc, TypedDict

from toolsearch import Caller, Catalog, DefinitionError, Tool, ToolContext, tool
from toolsearch.catalog.functions import Function, context_parameters, is_async, read_docstring
from toolsearch.schemas.validation import ArgumentsError, validate_arguments

CONTEXT = ToolContext("session", "call", Caller("ana"))


def run(made: Tool, **arguments: Any) -> Any:
    """What a session does: validate against the schema, bind, call."""
    assert made.function is not None
    checked = validate_arguments(made.input_schema, arguments)
    positional, keywords = made.function.bind(checked, CONTEXT)
    return made.function.call(*positional, **keywords)


def schema_of(call: Callable[..., Any]) -> dict[str, Any]:
    schema = dict(tool(call).input_schema)
    schema.pop("additionalProperties", None)
    return schema


def properties_of(call: Callable[..., Any]) -> Any:
    return tool(call).input_schema["properties"]


# -- annotations -------------------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    zip_code: str = Field(description="Five digits", pattern=r"^\d{5}$")


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    verbose: bool


class Node(BaseModel):
    value: int
    children: list["Node"] = []


def test_plain_annotations_become_json_types() -> None:
    def f(a: str, b: int, c: float, d: bool, *, e: list[int], g: dict[str, float], h: str = "x") -> None: ...

    assert schema_of(f) == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer"},
            "c": {"type": "number"},
            "d": {"type": "boolean"},
            "e": {"type": "array", "items": {"type": "integer"}},
            "g": {"type": "object", "additionalProperties": {"type": "number"}},
            "h": {"type": "string", "default": "x"},
        },
        "required": ["a", "b", "c", "d", "e", "g"],
    }


def test_a_function_without_annotations_takes_anything() -> None:
    def f(a, b=1):  # type: ignore[no-untyped-def]
        return a, b

    assert schema_of(f) == {"type": "object", "properties": {"a": {}, "b": {"default": 1}}, "required": ["a"]}
    assert run(tool(f), a=[1]) == ([1], 1)


def test_a_function_without_parameters_has_an_empty_object() -> None:
    """B02: never a schema without `properties`."""

    def now() -> str:
        """Tell the time."""
        return "noon"

    assert schema_of(now) == {"type": "object", "properties": {}}
    assert run(tool(now)) == "noon"


VALUES: list[tuple[Any, Any, Any]] = [
    (Colour, "blue", Colour.BLUE),
    (Literal["asc", "desc"], "desc", "desc"),
    (Optional[int], None, None),  # noqa: UP045
    (int | None, "5", 5),
    (int | str, 5, 5),
    (str | int, 5, 5),
    (str | int, "5", "5"),
    (list[str] | str, "a", "a"),
    (datetime.datetime, "2024-05-01T12:00:00+00:00", datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)),
    (datetime.date, "2024-05-01", datetime.date(2024, 5, 1)),
    (datetime.timedelta, "PT5M", datetime.timedelta(minutes=5)),
    (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
    (uuid.UUID, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
    (Address, {"street": "Main", "zip_code": "12345"}, Address(street="Main", zip_code="12345")),
    (Point, {"x": 1}, Point(1)),
    (Options, {"verbose": True}, {"verbose": True}),
    (Node, {"value": 1, "children": [{"value": 2}]}, Node(value=1, children=[Node(value=2)])),
    (set[int], [1, 2], {1, 2}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (bytes, "hello", b"hello"),
    (list[Point], '[{"x": 1}]', [Point(1)]),
    (Annotated[int, Field(ge=1, le=9)], 5, 5),
    (Any, {"a": 1}, {"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "given", "expected"), VALUES)
def test_a_function_gets_the_python_values_it_asked_for(hint: Any, given: Any, expected: Any) -> None:
    def f(x: Any) -> Any:
        return x

    f.__annotations__["x"] = hint
    made = tool(f)
    json.dumps(made.input_schema, allow_nan=False)
    got = run(made, x=given)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(("hint", "wrong"), [
    (Colour, "green"), (Literal["asc"], "up"), (int, "five"), (Address, {"street": "Main", "zip_code": "x"}),
    (Annotated[int, Field(ge=1)], 0), (datetime.date, "2024-13-45"), (Point, {"y": 1}), (uuid.UUID, "nope"),
])  # fmt: skip
def test_what_does_not_fit_the_annotation_is_an_arguments_error(hint: Any, wrong: Any) -> None:
    def f(x: Any) -> Any:
        return x

    f.__annotations__["x"] = hint
    with pytest.raises(ArgumentsError, match="'x") as caught:
        run(tool(f), x=wrong)
    assert all(isinstance(problem, str) for problem in caught.value.problems)


def test_titles_made_of_names_are_left_out_but_not_properties_and_values_called_title() -> None:
    def f(title: str, style: dict[str, str] = {"title": "Mr"}) -> None: ...  # noqa: B006

    assert properties_of(f) == {
        "title": {"type": "string"},
        "style": {"type": "object", "additionalProperties": {"type": "string"}, "default": {"title": "Mr"}},
    }
    assert "title" not in json.dumps(schema_of(lambda_with_models()))


def lambda_with_models() -> Callable[..., Any]:
    def f(address: Address, node: Node, colour: Colour) -> None: ...

    return f


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic reads this TypedDict from Python 3.12 on")
def test_a_typed_dict_pydantic_cannot_read_is_quarantined_with_what_to_use() -> None:
    old = typing.TypedDict("old", {"a": int})  # noqa: UP013

    def f(x: old) -> None: ...  # type: ignore[valid-type]

    catalog = Catalog([f])
    assert "use `typing_extensions.TypedDict`" in catalog.quarantined[0].reason


# -- descriptions ------------------------------------------------------------------------------------------------------

GOOGLE = """Send a mail.

    It goes out at once.

    Args:
        to (str): Who gets it: a name
            or an address.
        subject: What it is about.
        **headers: More headers.

    Returns:
        to: not a parameter.
    """
NUMPY = """Send a mail.

    It goes out at once.

    Parameters
    ----------
    to : str
        Who gets it: a name
        or an address.
    subject : str, optional
        What it is about.

    Returns
    -------
    bool
        Whether it went.
    """
SPHINX = """Send a mail.

    It goes out at once.

    :param str to: Who gets it: a name
        or an address.
    :param subject: What it is about.
    :type subject: str
    :returns: Whether it went.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["Google", "NumPy", "Sphinx"])
def test_a_docstring_describes_the_tool_and_its_parameters(docstring: str) -> None:
    def send_mail(to: str, subject: str = "") -> None: ...

    send_mail.__doc__ = docstring
    made = tool(send_mail)
    assert made.description == "Send a mail.\n\nIt goes out at once."
    assert made.input_schema["properties"]["to"]["description"] == "Who gets it: a name or an address."
    assert made.input_schema["properties"]["subject"]["description"] == "What it is about."


@pytest.mark.parametrize(("text", "prose", "parameters"), [
    ("", "", {}),
    ("One line.", "One line.", {}),
    ("Only prose: with a colon.\n\nArgs is a word here.", "Only prose: with a colon.\n\nArgs is a word here.", {}),
    ("Do.\n\nArgs:\n    a: First.\n\n    b: Second.", "Do.", {"a": "First.", "b": "Second."}),
    ("Do.\n\nArguments:\n  a (dict[str, int], optional): First.", "Do.", {"a": "First."}),
    ("Do.\n\nReturns:\n    x: y", "Do.", {}),
    ("Args:\n    a: First.", "", {"a": "First."}),
    ("Do.\n\nArgs:\n    a:\n        First.\n        Still first.", "Do.", {"a": "First. Still first."}),
    ("Do.\n\nParameters\n----------\na\n    First.\n\nRaises\n------\nE\n    x", "Do.", {"a": "First."}),
    (":param a: First.\n:raises ValueError: never", "", {"a": "First."}),
])  # fmt: skip
def test_docstrings_are_read_as_people_write_them(text: str, prose: str, parameters: dict[str, str]) -> None:
    assert read_docstring(text) == (prose, parameters)


@given(st.text(alphabet="ab:-\n \tArgsParmet()*.", max_size=200))
def test_no_docstring_is_an_error(text: str) -> None:
    prose, parameters = read_docstring(inspect.cleandoc(text))
    assert isinstance(prose, str)
    assert all(parameters.values())


@pytest.mark.parametrize("hint", [
    Annotated[str, Field(description="The city")], Annotated[str, "The city"], Annotated[str, Doc("The city")],
    Annotated[str, Field(min_length=1), Field(description="The city")],
])  # fmt: skip
def test_an_annotated_parameter_brings_its_description(hint: Any) -> None:
    def f(city: Any) -> None:
        """Look.

        Args:
            city: From the docstring.
        """

    f.__annotations__["city"] = hint
    assert properties_of(f)["city"]["description"] == "The city"


def test_constraints_in_annotated_are_in_the_schema_and_hold() -> None:
    def f(n: Annotated[int, Field(ge=1, le=10, description="How many")] = 5) -> int:
        return n

    assert properties_of(f)["n"] == {
        "type": "integer", "minimum": 1, "maximum": 10, "default": 5, "description": "How many",
    }  # fmt: skip
    assert run(tool(f)) == 5
    with pytest.raises(ArgumentsError, match="'n' must be at most 10"):
        run(tool(f), n=11)


def test_a_field_as_the_default_is_read_as_pydantic_does() -> None:
    def f(city: str = Field(description="The city"), days: int = Field(3, ge=1), tags: list[str] = Field([])) -> Any:  # noqa: B008
        return city, days, tags

    schema = schema_of(f)
    assert schema["required"] == ["city"]
    assert schema["properties"]["city"] == {"type": "string", "description": "The city"}
    assert schema["properties"]["days"] == {"type": "integer", "minimum": 1, "default": 3}
    assert run(tool(f), city="Bonn") == ("Bonn", 3, [])


# -- defaults ----------------------------------------------------------------------------------------------------------


def test_a_default_stays_the_functions_own_object() -> None:
    kept: list[str] = []

    def f(word: str, seen: list[str] = kept) -> list[str]:
        seen.append(word)
        return seen

    made = tool(f)
    assert run(made, word="a") is kept
    assert run(made, word="b") == ["a", "b"]
    assert made.input_schema["properties"]["seen"]["default"] == [], "the schema is of the time it was made"


@pytest.mark.parametrize("default", [object(), print, float("inf"), float("nan"), {1, 2}, b"\xff"])
def test_a_default_that_is_not_json_is_left_out_of_the_schema_and_still_used(default: Any) -> None:
    """No warning either: the tests turn warnings into errors."""

    def f(x: Any = default) -> Any:
        return x

    made = tool(f)
    json.dumps(made.input_schema, allow_nan=False)
    assert "required" not in made.input_schema
    assert run(made) is default


def test_null_for_an_argument_with_a_default_means_left_out() -> None:
    def f(limit: int = 10, name: str | None = "x") -> Any:
        return limit, name

    assert run(tool(f), limit=None, name=None) == (10, None)


# -- kinds of parameters -----------------------------------------------------------------------------------------------


def test_positional_only_and_keyword_only_parameters_are_filled() -> None:
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int, e: int = 5) -> Any:
        return a, b, c, d, e

    assert schema_of(f)["required"] == ["a", "d"]
    assert run(tool(f), a=1, d=4) == (1, 2, 3, 4, 5)
    assert run(tool(f), d=40, c=30, b=20, a=10) == (10, 20, 30, 40, 5)


def test_a_positional_only_parameter_is_filled_although_one_before_it_is_left_out() -> None:
    def f(a: int = 1, b: int = 2, c: int = 3, /) -> Any:
        return a, b, c

    assert run(tool(f), b=20) == (1, 20, 3)
    assert run(tool(f)) == (1, 2, 3)


def test_keyword_arguments_beyond_the_named_ones_are_passed_on_only_where_the_function_takes_them() -> None:
    def open_ended(a: int, **labels: str) -> Any:
        return a, labels

    def closed(a: int) -> Any:
        return a

    assert run(tool(open_ended), a=1, p0="x", team="y") == (1, {"p0": "x", "team": "y"})
    assert tool(open_ended).input_schema["additionalProperties"] is True
    with pytest.raises(ArgumentsError, match=r"there is no argument 'b'"):
        run(tool(closed), a=1, b=2)


def test_star_args_are_refused_with_the_reason() -> None:
    def f(*paths: str) -> None: ...

    with pytest.raises(DefinitionError, match=r"'f' takes \*paths; a tool's arguments need names"):
        tool(f)


NAMES = (
    "schema model_dump model_config copy json _x __y self_ validate construct fields class_ p0 model_fields_set".split()
)


@pytest.mark.parametrize("name", NAMES)
def test_names_that_pydantic_uses_itself_are_ordinary_parameters(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f({name}: int, other: int = 1): return {name}, other", scope)
    made = tool(scope["f"])
    assert made.input_schema["required"] == [name]
    assert run(made, **{name: "7"}) == (7, 1)


# -- kinds of callables ------------------------------------------------------------------------------------------------


class Clock:
    """Tells the time."""

    def __init__(self, zone: str) -> None:
        self.zone = zone

    def read(self, hour: int) -> str:
        """Read the clock."""
        return f"{self.zone} {hour}"

    @classmethod
    def kind(cls, hour: int) -> str:
        return f"{cls.__name__} {hour}"

    @staticmethod
    def plain(hour: int) -> str:
        return str(hour)

    def __call__(self, hour: int) -> str:
        return self.read(hour)


@dataclasses.dataclass
class UnhashableAdder:
    base: int

    def __call__(self, n: int) -> int:
        """Add to the base."""
        return self.base + n


@pytest.mark.parametrize(("call", "name", "expected"), [
    (Clock("utc").read, "read", "utc 5"),
    (Clock.kind, "kind", "Clock 5"),
    (Clock.plain, "plain", "5"),
    (Clock("utc").plain, "plain", "5"),
    (Clock("utc"), "clock", "utc 5"),
    (functools.partial(Clock("utc").read), "read", "utc 5"),
])  # fmt: skip
def test_methods_instances_and_partials_are_tools(call: Callable[..., Any], name: str, expected: str) -> None:
    made = tool(call)
    assert made.name == name
    assert made.input_schema["properties"] == {"hour": {"type": "integer"}}
    assert run(made, hour="5") == expected


def test_an_instance_is_named_and_described_by_its_class() -> None:
    assert tool(Clock("utc")).description == "Tells the time."
    made = tool(UnhashableAdder(3))
    assert made.name == "unhashable_adder"
    assert run(made, n=4) == 7


def test_an_attribute_called_func_does_not_make_a_partial() -> None:
    class Wrapped:
        func = staticmethod(print)

        def __call__(self, n: int) -> int:
            return n

    made = tool(Wrapped())
    assert made.name == "wrapped"
    assert run(made, n=1) == 1


@pytest.mark.parametrize(("call", "reason"), [
    (Clock, "'Clock' is a class"),
    (Address, "'Address' is a class"),
    (Clock.read, "'read' is a method without its object"),
    (max, "the signature of 'max' cannot be read"),
    (print, r"takes \*args"),
    (lambda a: a, "name a lambda with tool"),
])  # fmt: skip
def test_what_cannot_be_called_by_name_is_refused_with_the_reason(call: Any, reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason):
        tool(call)


def test_a_lambda_is_a_tool_when_it_is_given_a_name() -> None:
    made = tool(lambda a: a + 1, name="increment")
    assert (made.name, run(made, a=1)) == ("increment", 2)
    assert Catalog([{"name": "inc", "run": lambda a: a + 1}])["inc"].input_schema["required"] == ["a"]


def test_what_a_partial_binds_by_name_is_neither_shown_nor_for_the_model_to_change() -> None:
    class Database: ...

    def query(db: Database, sql: str, limit: int = 5, **rest: Any) -> Any:
        return db, sql, limit, rest

    database = Database()
    made = tool(functools.partial(query, db=database, limit=9))
    assert list(made.input_schema["properties"]) == ["sql"]
    assert run(made, sql="x") == (database, "x", 9, {})
    with pytest.raises(ArgumentsError, match="there is no argument 'limit'"):
        run(made, sql="x", limit=10_000)
    positional = tool(functools.partial(Clock.read, Clock("cet")))
    assert run(positional, hour=1) == "cet 1"


def decorated(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return "wrapped", call(*args, **kwargs)

    return wrapper


@decorated
def forecast(city: str, days: int = 1) -> str:
    """Forecast the weather."""
    return f"{city} {days}"


@functools.cache
def cached(n: int) -> int:
    """Double."""
    return 2 * n


def test_a_decorated_function_keeps_its_signature_and_docstring() -> None:
    made = tool(forecast)
    assert (made.name, made.description) == ("forecast", "Forecast the weather.")
    assert list(made.input_schema["properties"]) == ["city", "days"]
    assert run(made, city="Bonn", days="2") == ("wrapped", "Bonn 2")
    assert run(tool(cached), n="4") == 8


def test_the_decorator_gives_a_tool_that_is_still_a_function() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @tool(kind="action", name="erase", examples=["remove everything"])
    def wipe() -> str:
        """Erase."""
        return "gone"

    assert add(1, b=2) == 3
    assert (wipe.id, wipe.kind, wipe.alone, wipe.examples, wipe()) == (
        "erase", "action", True, ("remove everything",), "gone",
    )  # fmt: skip
    assert isinstance(add, Tool)


async def fetch(url: str) -> str:
    """Fetch."""
    return url


class Fetcher:
    async def get(self, url: str) -> str:
        return url

    async def __call__(self, url: str) -> str:
        return url


@pytest.mark.parametrize("call", [
    fetch, Fetcher().get, Fetcher(), functools.partial(fetch), functools.partial(functools.partial(Fetcher().get)),
])  # fmt: skip
def test_every_kind_of_async_callable_is_known_as_one(call: Callable[..., Any]) -> None:
    assert is_async(call)
    made = tool(call)
    assert made.function is not None
    assert made.function.is_async
    coroutine = run(made, url="x")
    assert inspect.iscoroutine(coroutine)
    coroutine.close()
    assert not is_async(forecast)
    assert not is_async(Clock("utc"))


# -- ToolContext -------------------------------------------------------------------------------------------------------


def test_the_context_is_given_and_never_in_the_schema() -> None:
    def f(city: str, context: ToolContext) -> Any:
        return city, context

    assert list(properties_of(f)) == ["city"]
    assert run(tool(f), city="Bonn") == ("Bonn", CONTEXT)


FUTURE = """
from __future__ import annotations
from typing import TYPE_CHECKING, Annotated, Optional
{imported}
def f(city: str, context: {hint}) -> object:
    return city, context
"""


@pytest.mark.parametrize("hint", [
    "ToolContext", "Optional[ToolContext]", "ToolContext | None", "Annotated[ToolContext, 'given']", "'ToolContext'",
])  # fmt: skip
@pytest.mark.parametrize("imported", [
    "from toolsearch import ToolContext",
    "if TYPE_CHECKING:\n    from toolsearch import ToolContext",
])  # fmt: skip
def test_the_context_is_known_in_quotes_in_a_union_and_when_imported_for_types_only(hint: str, imported: str) -> None:
    """`ToolContext | None` is injected too: a model can never give one."""
    scope: dict[str, Any] = {"__name__": "somewhere"}
    exec(compile(FUTURE.format(hint=hint, imported=imported), "somewhere", "exec"), scope)
    assert list(properties_of(scope["f"])) == ["city"]
    assert run(tool(scope["f"]), city="Bonn") == ("Bonn", CONTEXT)
    assert context_parameters(scope["f"]) == ("context",)


def test_the_context_cannot_be_forged_and_reaches_every_kind_of_callable() -> None:
    def open_ended(context: ToolContext, **rest: Any) -> Any:
        return context, rest

    def first(context: ToolContext, city: str, /) -> Any:
        return context, city

    class Thing:
        def __call__(self, city: str, *, context: ToolContext | None = None) -> Any:
            return context, city

    made = tool(open_ended)
    assert made.function is not None
    positional, keywords = made.function.bind({"context": {"conversation_id": "other"}, "x": 1}, CONTEXT)
    assert open_ended(*positional, **keywords) == (CONTEXT, {"x": 1})
    assert run(tool(first), city="Bonn") == (CONTEXT, "Bonn")
    assert run(tool(Thing()), city="Bonn") == (CONTEXT, "Bonn")
    mine = ToolContext("mine", "1")
    assert run(tool(functools.partial(open_ended, mine))) == (mine, {})
    assert run(tool(functools.partial(open_ended, context=mine))) == (mine, {})


def test_the_key_of_every_attempt_of_one_call_is_the_same() -> None:
    assert CONTEXT.idempotency_key == ToolContext("session", "call").idempotency_key == "session:call"
    assert not CONTEXT.cancelled.is_set()


# -- what cannot be read -----------------------------------------------------------------------------------------------


class Unknown: ...


@pytest.mark.parametrize(("annotation", "reason"), [
    ("Missing", "the signature of 'f' cannot be read: name 'Missing' is not defined"),
    ("1 +", "the signature of 'f' cannot be read"),
    ("[][0]", "the signature of 'f' cannot be read"),
    ("Unknown", "the parameters of 'f' have no JSON Schema"),
    ("Callable[[int], str]", "the parameters of 'f' have no JSON Schema"),
    ("type(print)", "the parameters of 'f' have no JSON Schema"),
])  # fmt: skip
def test_an_annotation_that_cannot_be_read_is_quarantined_with_the_reason(annotation: str, reason: str) -> None:
    def f(x: Any) -> None: ...

    f.__annotations__["x"] = annotation
    catalog = Catalog([f, forecast])
    assert [t.id for t in catalog] == ["forecast"]
    (aside,) = catalog.quarantined
    assert aside.name == "f"
    assert reason in aside.reason
    with pytest.raises(DefinitionError):
        Function(f)
