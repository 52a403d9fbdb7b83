"""The table of docs/providers.md: every wire has a row for everything that a wire does, by tests that exist."""

import re
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "providers.md").read_text("utf-8")
WIRES = ("Anthropic", "Responses", "Chat Completions", "Gemini", "Ollama")
DONE = ("tools", "calls", "results", "streaming", "native", "ids", "images", "reasoning")
ROWS = re.findall(r"^\| ([^|]+) \| (\w+) \| (`[^|]+`) \|$", PAGE, re.MULTILINE)


def test_every_wire_has_a_row_for_everything_that_a_wire_does() -> None:
    assert {(wire, what) for wire, what, _ in ROWS} >= {*product(WIRES, DONE)}


def test_every_named_test_exists() -> None:
    named = {test for _, _, cell in ROWS for test in re.findall(r"`([^`]+)`", cell)}
    assert len(named) > 30
    for test in named:
        file, name = test.split("::")
        text = (ROOT / "tests" / "wires" / f"{file}.py").read_text("utf-8")
        assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"there is no {test}"


def test_a_loop_of_ones_own_is_short() -> None:
    """25 lines at most, for every provider."""
    loops = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "while True:" in block]
    assert len(loops) >= 4
    assert max(block.count("\n") for block in loops) <= 25
