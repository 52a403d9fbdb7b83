"""Layers around a step: their order, what they may ask for, and what becomes of what they raise."""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import pytest

from toolsearch import SetupError
from toolsearch.events.facts import Noted
from toolsearch.layers import after, before
from toolsearch.loop.layering import Perform, adrive, checked_layers, drive, layered
from toolsearch.protocols import Do, Record, Sleep, Within

Steps = Generator[Any, Any, Any]
Step = Callable[[Any], Any]


class Stack:
    """Runs layers around a step, by threads or by tasks; the step gets what `Perform` holds."""

    def __init__(self, name: str) -> None:
        self.is_async = name == "adrive"
        self.performed: list[Perform] = []
        self.recorded: list[Any] = []

    def run(self, layers: list[Any], request: Any, step: Step = lambda given: given, **options: Any) -> Any:
        steps = layered(layers, "around_tool", **options)(request)

        def perform(wanted: Perform) -> Any:
            self.performed.append(wanted)
            return step(wanted.request)

        async def aperform(wanted: Perform) -> Any:
            await asyncio.sleep(0)
            return perform(wanted)

        def record(event: Any) -> Any:
            self.recorded.append(event)
            return event

        if not self.is_async:
            return drive(steps, perform, record)
        return asyncio.run(adrive(steps, aperform, record))

    @property
    def given(self) -> list[Any]:
        return [each.request for each in self.performed]


@pytest.fixture(params=["drive", "adrive"])
def stack(request: pytest.FixtureRequest) -> Stack:
    return Stack(request.param)


@dataclass
class Layer:
    """A layer from a generator function."""

    around_tool: Callable[[Any], Steps]
    name: str = "layer"


def marking(word: str) -> Layer:
    def around(given: str) -> Steps:
        result = yield f"{given}>{word}"
        return f"{result}<{word}"

    return Layer(around)


def raised(error: BaseException) -> Step:
    def step(given: Any) -> Any:
        raise error

    return step


# -- what a layer can do -----------------------------------------------------------------------------------------------


def test_the_first_layer_is_outermost(stack: Stack) -> None:
    assert stack.run([marking("a"), marking("b"), marking("c")], "x") == "x>a>b>c<c<b<a"
    assert stack.given == ["x>a>b>c"]


def test_without_layers_the_step_is_done_as_it_is(stack: Stack) -> None:
    assert stack.run([], "x", str.upper) == "X"
    assert stack.run([before("model", print)], "x", str.upper) == "X"  # of another seam


def test_a_layer_may_refuse_or_answer_from_a_cache(stack: Stack) -> None:
    def refuse(given: str) -> Steps:
        return f"not {given}"
        yield

    assert stack.run([marking("a"), Layer(refuse), marking("b")], "x") == "not x>a<a"
    assert stack.given == []


def test_a_layer_may_yield_again(stack: Stack) -> None:
    """A retry goes through the layers inside again, and through none of those outside."""
    tries: list[str] = []

    def retry(given: str) -> Steps:
        for attempt in range(3):
            try:
                return (yield f"{given}{attempt}")
            except ValueError as error:
                tries.append(str(error))
        return "given up"

    def step(given: str) -> str:
        if "2" not in given:
            raise ValueError(given)
        return "ok"

    assert stack.run([marking("a"), Layer(retry), marking("b")], "x", step) == "ok<b<a"
    assert stack.given == ["x>a0>b", "x>a1>b", "x>a2>b"]
    assert tries == ["x>a0>b", "x>a1>b"]


def test_a_layer_does_its_own_work_by_yielding(stack: Stack) -> None:
    caught: list[str] = []

    def work(given: str) -> Steps:
        assert (yield Sleep(0)) is None
        assert (yield Sleep(-5)) is None
        assert (yield Do(lambda: 7)) == 7
        assert (yield Do(lambda: 8, 5.0)) == 8
        assert (yield Record(Noted("layer", "seen"))) == Noted("layer", "seen")
        for failing in (Do(lambda: 1 / 0), Do(lambda: 1 / 0, 5.0)):
            try:
                yield failing
            except ZeroDivisionError as error:
                caught.append(str(error))
        return (yield given)

    assert stack.run([marking("a"), Layer(work)], "x") == "x>a<a"
    assert caught == ["division by zero"] * 2
    assert stack.recorded == [Noted("layer", "seen")]


def test_a_layers_work_may_be_async_where_the_driver_is(stack: Stack) -> None:
    async def ask() -> str:
        await asyncio.sleep(0)
        return "asked"

    def work(given: str) -> Steps:
        return (yield Do(ask)) + (yield Do(ask, 5.0))

    if stack.is_async:
        assert stack.run([Layer(work)], "x") == "askedasked"
    else:
        with pytest.raises(SetupError, match=r"ask is async: use `await agent\.arun"):
            stack.run([Layer(work)], "x")


def test_C27_a_layers_own_work_has_a_bound(stack: Stack) -> None:
    free = threading.Event()

    def work(given: str) -> Steps:
        try:
            yield Do(lambda: free.wait(20), 0.01)
        except TimeoutError:
            return "too late"

    try:
        assert stack.run([Layer(work)], "x") == "too late"
    finally:
        free.set()


def test_within_bounds_the_innermost_step_and_the_tightest_bound_holds(stack: Stack) -> None:
    def bound(seconds: float) -> Layer:
        def around(given: str) -> Steps:
            return (yield Within(seconds, given))

        return Layer(around)

    assert stack.run([bound(5), marking("a"), bound(2), bound(3)], "x") == "x>a<a"
    assert stack.run([marking("a")], "x") == "x>a<a"
    assert stack.performed == [Perform("x>a", 2), Perform("x>a", None)]


def test_within_passes_on_what_layers_inside_ask_for(stack: Stack) -> None:
    def bound(given: str) -> Steps:
        try:
            return (yield Within(1, given))
        except KeyError as error:
            return f"caught {error}"

    def work(given: str) -> Steps:
        yield Record(Noted("inner", 1))
        result = yield given
        yield Do(lambda: {}["gone"] if result == "boom" else None)
        return result

    assert stack.run([Layer(bound), Layer(work)], "x") == "x"
    assert stack.run([Layer(bound), Layer(work)], "boom") == "caught 'gone'"
    assert stack.run([Layer(bound)], "x", raised(KeyError("inside"))) == "caught 'inside'"
    assert len(stack.recorded) == 2


# -- what is raised ----------------------------------------------------------------------------------------------------


def test_what_a_step_raises_is_raised_where_each_layer_yielded(stack: Stack) -> None:
    seen: list[str] = []

    def watch(word: str) -> Layer:
        def around(given: str) -> Steps:
            try:
                return (yield given)
            except ValueError:
                seen.append(word)
                raise
            finally:
                seen.append(f"{word} done")

        return Layer(around)

    error = ValueError("boom")
    with pytest.raises(ValueError, match="boom") as caught:
        stack.run([watch("a"), watch("b")], "x", raised(error))
    assert caught.value is error
    assert seen == ["b", "b done", "a", "a done"]


def test_what_a_layer_raises_is_raised_in_the_layers_around_it(stack: Stack) -> None:
    def broken(given: str) -> Steps:
        yield given
        raise RuntimeError("a layer's bug")

    def calm(given: str) -> Steps:
        try:
            return (yield given)
        except RuntimeError as error:
            return f"caught {error}"

    assert stack.run([Layer(calm), Layer(broken)], "x") == "caught a layer's bug"


def failing(where: str) -> Layer:
    def around(given: str) -> Steps:
        if where == "before":
            raise KeyError(where)
        if where == "own work":
            yield Do(lambda: {}[where])
        if where == "misuse":
            yield 5
        try:
            result = yield given
        except ValueError:
            raise KeyError(where) from None
        if where == "after":
            raise KeyError(where)
        return result

    return Layer(around, where)


@pytest.mark.parametrize("where", ["before", "own work", "misuse", "after"])
def test_a_layer_that_raises_by_itself_is_told_from_what_it_passes_on(stack: Stack, where: str) -> None:
    """Design, seams 12: so that a gate whose question fails declines, whatever it was that failed."""
    failures: list[Any] = []

    def failed(layer: Any, request: Any, error: BaseException) -> str:
        failures.append((layer.name, request, type(error)))
        return "declined"

    assert stack.run([marking("a"), failing(where), marking("b")], "x", failed=failed) == "declined<a"
    assert failures == [(where, "x>a", SetupError if where == "misuse" else KeyError)]
    failures.clear()
    with pytest.raises(ValueError, match="boom"):
        stack.run([marking("a")], "x", raised(ValueError("boom")), failed=failed)
    assert failures == []  # the step's own failure passes through
    assert stack.run([failing("never")], "x", raised(ValueError("boom")), failed=failed) == "declined"


@pytest.mark.parametrize("wrong", [None, 5, "bare result", Within(1, 5)])
def test_a_layer_that_yields_something_else_is_told_what_to_yield(stack: Stack, wrong: Any) -> None:
    def confused(given: list[str]) -> Steps:
        return (yield wrong)

    with pytest.raises(SetupError, match=r"yielded .*: yield what it was given, a list, or a changed copy, or Sleep"):
        stack.run([Layer(confused)], ["x"])


# -- closing -----------------------------------------------------------------------------------------------------------


def test_closing_closes_every_layer_from_the_inside() -> None:
    closed: list[str] = []

    def watch(word: str) -> Layer:
        def around(given: str) -> Steps:
            try:
                return (yield given)
            except GeneratorExit:
                closed.append(word)
                raise

        return Layer(around)

    def bound(given: str) -> Steps:
        return (yield Within(1, given))

    steps = layered([watch("a"), Layer(bound), watch("b")], "around_tool")("x")
    assert next(steps) == Perform("x", 1)
    steps.close()
    assert closed == ["b", "a"]


def test_a_layer_that_yields_while_it_is_closed_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def stubborn(given: str) -> Steps:
        try:
            yield given
        finally:
            yield Sleep(1)

    steps = layered([marking("a"), Layer(stubborn)], "around_tool")("x")
    next(steps)
    with caplog.at_level(logging.ERROR, "toolsearch"):
        steps.close()
    assert "around_tool of Layer(around_tool=<function" in caplog.text
    assert "stubborn" in caplog.text
    assert "it must not yield then" in caplog.text


def test_a_cancelled_task_closes_its_layers() -> None:
    """No layer takes a cancellation for a failure to try again after."""
    seen: list[str] = []

    def retry(given: str) -> Steps:
        while True:
            try:
                return (yield given)
            except GeneratorExit:
                seen.append("closed")
                raise
            except BaseException as error:
                seen.append(repr(error))

    async def hang(wanted: Perform) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(adrive(layered([Layer(retry)], "around_tool")("x"), hang))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert seen == ["closed"]


# -- before and after --------------------------------------------------------------------------------------------------


def test_before_and_after_make_layers_of_plain_functions(stack: Stack) -> None:
    seen: list[str] = []
    layers = [
        before("tool", seen.append),
        after("tool", seen.append),
        before("tool", str.upper),
        after("tool", lambda result: f"{result}!"),
        after("tool", lambda result: None),
    ]
    assert checked_layers(layers) == layers
    assert stack.run(layers, "x") == "X!"
    assert seen == ["x", "X!"]
    assert before("tool", str.upper).name == "upper"


def test_a_plain_function_may_refuse_by_raising(stack: Stack) -> None:
    def guard(given: str) -> None:
        raise PermissionError(given)

    with pytest.raises(PermissionError, match="x"):
        stack.run([before("tool", guard)], "x")
    assert stack.given == []


def test_an_async_plain_function_is_awaited_or_refused_by_its_name(stack: Stack) -> None:
    async def shout(given: str) -> str:
        return given.upper()

    if stack.is_async:
        assert stack.run([before("tool", shout), after("tool", shout)], "x", str.lower) == "X"
    else:
        with pytest.raises(SetupError, match=r"shout is async: use `await agent\.arun"):
            stack.run([before("tool", shout)], "a very long request")


def test_there_are_four_seams() -> None:
    for make in (before, after):
        with pytest.raises(SetupError, match="no seam 'tools'; there are 'run', 'round', 'model' and 'tool'"):
            make("tools", print)


# -- what is no layer --------------------------------------------------------------------------------------------------


class Plain:
    def around_tool(self, given: Any) -> Any:
        return given


class Async:
    async def around_tool(self, given: Any) -> Any:
        return given


class AsyncSteps:
    async def around_tool(self, given: Any) -> Any:
        yield given


class Good:
    def around_tool(self, given: Any) -> Steps:
        return (yield given)


@pytest.mark.parametrize("wrong", [Plain(), Async(), AsyncSteps(), Layer(print)])  # type: ignore[arg-type]
def test_a_layer_that_is_no_generator_is_refused(wrong: Any) -> None:
    with pytest.raises(SetupError, match=r"around_tool of .* must be a generator: `def around_tool\(self, given\): "):
        checked_layers([Good(), wrong])


@pytest.mark.parametrize("wrong", [object(), None, "limits", print, 5])
def test_what_has_no_seam_is_refused(wrong: Any) -> None:
    with pytest.raises(SetupError, match="in layers is not a layer: it defines none of around_run, around_round"):
        checked_layers([wrong])


def test_a_class_in_place_of_a_layer_and_a_layer_in_place_of_a_list_are_refused() -> None:
    with pytest.raises(SetupError, match=r"Good is a class, not a layer: pass an object, as in Good\(…\)"):
        checked_layers([Good])
    with pytest.raises(SetupError, match=r"layers must be a list of layers, not <.*Good object"):
        checked_layers(Good())  # type: ignore[arg-type]
    assert checked_layers(iter([good := Good()])) == [good]
