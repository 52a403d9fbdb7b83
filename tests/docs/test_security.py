"""SECURITY.md proves what it promises: each row names tests that exist, and every attack that `make torture` runs."""

import re
from pathlib import Path

import pytest

from tests.torture.__main__ import ATTACKS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
PROMISES = re.findall(r"^\| (.+) \| (`tests/.+`) \|$", PAGE, re.MULTILINE)


def test_there_are_promises() -> None:
    rows = [line for line in PAGE.partition("## What we do not promise")[0].splitlines() if line.startswith("| ")]
    assert len(PROMISES) == len(rows) - rows.count("| promise | proof |") > 20


@pytest.mark.parametrize(("promise", "proof"), PROMISES)
def test_a_promise_names_tests_that_exist(promise: str, proof: str) -> None:
    for name in re.findall(r"`([^`]+)`", proof):
        assert re.search(r"^def test_|^    def test_|-> Outcome:", (ROOT / name).read_text("utf-8"), re.MULTILINE), name


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_can_be_run(name: str) -> None:
    attack = ATTACKS[name]
    source = (ROOT / "tests" / "torture" / f"{attack.module}.py").read_text("utf-8")
    assert re.search(rf"^def {name}\(", source, re.MULTILINE)
    assert set(attack.size) <= set(re.findall(r"(\w+): int", source))
