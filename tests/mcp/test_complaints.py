"""Every group of complaints about other gateways has tests, and they exist."""

import re
from pathlib import Path

import pytest

from tests.mcp.complaints import COMPLAINTS, table

TESTS = Path(__file__).resolve().parent.parent


def test_every_group_is_there() -> None:
    assert "".join(COMPLAINTS) == "ABCDEFGHIJKLMNOPQRS"
    assert len(table().splitlines()) == len(COMPLAINTS) + 2


@pytest.mark.parametrize("test", sorted({test for complaint in COMPLAINTS.values() for test in complaint.tests}))
def test_a_test_that_is_named_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text("utf-8"), re.MULTILINE), test
