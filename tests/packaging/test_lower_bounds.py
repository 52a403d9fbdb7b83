"""Every extra has lower bounds that one of the environments of `lower_bounds.py` tests."""

import runpy
from pathlib import Path
from typing import Any

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parent / "lower_bounds.py"))


def test_every_extra_is_tested_at_its_lower_bounds() -> None:
    tested = {extra for each in SCRIPT["ENVIRONMENTS"].values() for extra in each.extras.split()}
    assert tested | SCRIPT["ELSEWHERE"] == set(SCRIPT["project"]()["optional-dependencies"])


def test_every_requirement_has_a_lower_bound_and_the_core_has_one_too() -> None:
    pinned = {name: SCRIPT["pins"](each) for name, each in SCRIPT["ENVIRONMENTS"].items()}
    assert pinned["kit"].keys() >= {"pydantic", "numpy", "typer", "faiss-cpu"}
    assert pinned["adk"].keys() == {"google-adk"}
    assert "pydantic" not in pinned["clients"]


def test_the_tests_that_run_at_the_lower_bounds_exist() -> None:
    paths = [path for each in SCRIPT["ENVIRONMENTS"].values() for path in each.tests.split()]
    assert [path for path in paths if not (SCRIPT["ROOT"] / path).exists()] == []
