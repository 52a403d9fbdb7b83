"""A little of an attack that `make torture` makes at length: clients of a gateway while its servers are killed."""

import sys

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.torture.gateway import gateway


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_clients_of_a_gateway_get_right_answers_of_their_own_while_servers_are_killed() -> None:
    outcome = gateway(seconds=4, clients=8, servers=5, tools=25)
    assert outcome.violations == []
    figures = outcome.figures
    assert figures["calls"] > 8
    assert figures["searches"] > 8
    assert figures["calls with a process of one's own"] > 0
    assert figures["servers killed"] > 1
