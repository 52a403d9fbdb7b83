"""What layers cost: microseconds a round with none and with three, with a model and a tool that take no time."""

from __future__ import annotations

import gc
import time
from collections.abc import Generator
from typing import Any

from toolsearch import Agent, ToolSearch
from toolsearch.testing import ScriptedModel

ROUNDS = 15  # in one turn: each is a reply of the model, and the answer to its call
TURNS = 100


class Through:
    """A layer with all four seams that changes nothing."""

    name = "through"

    def around_run(self, run: Any) -> Generator[Any, Any, Any]:
        return (yield run)

    def around_round(self, calls: Any) -> Generator[Any, Any, Any]:
        return (yield calls)

    def around_model(self, request: Any) -> Generator[Any, Any, Any]:
        return (yield request)

    def around_tool(self, call: Any) -> Generator[Any, Any, Any]:
        return (yield call)


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


SEARCH = ToolSearch([add], mode="static")


def microseconds(layers: int) -> float:
    """Processor time of one round. The waiting of threads for each other is not the layers'."""
    model = ScriptedModel(*[[("add", {"a": n, "b": 1})] for n in range(ROUNDS)])
    agent = Agent(model, SEARCH, layers=[Through() for _ in range(layers)], defaults=False)
    began = time.process_time()
    agent.run("Count.")
    return (time.process_time() - began) / ROUNDS * 1e6


def main() -> None:
    costs: dict[int, list[float]] = {0: [], 3: []}
    gc.disable()
    for _ in range(TURNS):  # in turns, so that what else the machine does meets both
        for layers, seen in costs.items():
            seen.append(microseconds(layers))
    without, with_three = (min(seen) for seen in costs.values())  # whatever disturbs only adds
    print(f"0 layers: {without:6.0f} µs a round")
    print(f"3 layers: {with_three:6.0f} µs a round")
    print(f"three layers add {with_three - without:.0f} µs a round")


if __name__ == "__main__":
    main()
