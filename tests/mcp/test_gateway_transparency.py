"""What passes the gateway is what the server gave: every method, in both generations of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.gateways import GENERATIONS
from tests.mcp.servers import over_http
from tests.mcp.transparency import METHODS, ONLY_OLDER, compared


@pytest.fixture(scope="module")
def everything() -> Iterator[dict[str, Any]]:
    with over_http("everything") as entry:
        yield entry


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_method_gives_through_the_gateway_what_it_gives_directly(
    generation: str, everything: dict[str, Any], tmp_path: Path
) -> None:
    """Group E of the complaints: what works directly fails, or comes poorer, through a gateway."""
    rows = asyncio.run(compared(generation, everything, tmp_path))
    assert {name: through for name, direct, through in rows if direct != through} == {}
    assert not [row for row in rows if "Error: " in str(row[1])[:60]]  # which both could have in common
    older = [name for name in METHODS if name.startswith(ONLY_OLDER)]
    assert len(rows) == len(METHODS) - (0 if generation == "legacy" else len(older))
