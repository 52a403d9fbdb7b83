"""One suite for both drivers: `drive` is `run` in one test and `arun` in the next."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from toolsearch.events.requests import Finished, Paused
from toolsearch.loop.agent import Agent

PATIENCE = 20.0  # seconds a test waits for another thread before it fails


class Drive:
    """Runs an agent by one of the two drivers: `drive(agent, said, conversation_id=…)` gives the result."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_async = name == "arun"

    def __call__(self, agent: Agent, said: Any = None, **options: Any) -> Finished | Paused:
        if self.is_async:
            return asyncio.run(agent.arun(said, **options))
        return agent.run(said, **options)

    def shown(self, agent: Agent, said: Any = None, **options: Any) -> list[Any]:
        """All that the stream shows, the result last."""
        if not self.is_async:
            return list(agent.stream(said, **options))

        async def drain() -> list[Any]:
            return [each async for each in agent.astream(said, **options)]

        return asyncio.run(drain())

    def beside(self, agent: Agent, said: Any = None, **options: Any) -> Callable[[], Any]:
        """Runs the agent in a thread of its own, and gives a function that waits for its result, or raises."""
        results: list[Any] = []

        def work() -> None:
            try:
                results.append(self(agent, said, **options))
            except BaseException as error:  # given to whoever waits
                results.append(error)

        thread = threading.Thread(target=work)
        thread.start()

        def wait() -> Any:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the run does not end"
            if isinstance(results[0], BaseException):
                raise results[0]
            return results[0]

        return wait

    def __repr__(self) -> str:
        return self.name


@pytest.fixture(params=["run", "arun"])
def drive(request: pytest.FixtureRequest) -> Drive:
    return Drive(request.param)
