"""The one place that sends into a generator: whoever drives steps does what they yield, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Generic, TypeVar

__all__ = ["Trampoline"]

YieldT = TypeVar("YieldT")
ReturnT = TypeVar("ReturnT")


class Trampoline(Generic[YieldT, ReturnT]):
    """Drives a generator, with threads, with tasks, or from within another generator:

        steps = Trampoline(generator)
        while steps.advance():
            with steps:                              # what is raised in here is raised where the generator yielded
                steps.answer = …(steps.wanted)       # what it is sent
        return steps.result

    Errors of the types `passing` go through instead: those that are for whoever drives. `run` calls the generator's
    own methods, for a context of theirs.
    """

    wanted: YieldT
    result: ReturnT

    def __init__(
        self,
        generator: Generator[YieldT, Any, ReturnT],
        *,
        passing: tuple[type[BaseException], ...] = (GeneratorExit,),
        run: Callable[..., YieldT] = lambda function, value: function(value),
    ) -> None:
        self.answer: object = None
        self.error: BaseException | None = None
        self._generator, self._passing, self._run = generator, passing, run

    def advance(self) -> bool:
        """Runs the generator to what it yields next, `wanted`, or to its end, where `result` is what it returned."""
        answer, error = self.answer, self.error
        self.answer = self.error = None
        try:
            if error is None:
                self.wanted = self._run(self._generator.send, answer)
            else:
                self.wanted = self._run(self._generator.throw, error)
        except StopIteration as end:
            self.result = end.value
            return False
        return True

    def close(self) -> None:
        """Ends the generator where it stands."""
        self._generator.close()

    def __enter__(self) -> Trampoline[YieldT, ReturnT]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or isinstance(error, self._passing):
            return False
        self.answer, self.error = None, error
        return True
