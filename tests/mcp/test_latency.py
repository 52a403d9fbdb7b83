"""The command that measures what a gateway adds works; its figures are those of one machine, and judged nowhere."""

import asyncio
import re

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.latency import measure


@pytest.mark.slow
def test_the_command_compares_a_call_with_the_same_call_direct(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(measure("stdio", pairs=5, servers=2, tools=25, seed=1))
    said = capsys.readouterr().out
    assert said.startswith("stdio: 5 pairs, 50 tools on 2 servers\n")
    ms = r"-?\d+\.\d ms"
    assert re.search(rf"a call: direct {ms}, through the gateway {ms}\n  added: {ms} \(median", said)
    assert re.search(rf"a search through the gateway: {ms}\n", said)
