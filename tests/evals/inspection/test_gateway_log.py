"""What a real gateway logs is what `toolsearch inspect` reads."""

import asyncio
from pathlib import Path

from tests.mcp.gateways import client_of, opened, through
from tests.mcp.servers import entry
from toolsearch import Catalog
from toolsearch_evals.inspection import Words, inspect_report, read_trace


async def use_a_gateway(folder: Path) -> None:
    servers = {"shop": entry("plain", tools=3), "gone": {"command": "no-such-command"}}
    async with (
        opened(servers, folder, log=folder / "gateway.log", mode="bridge") as gateway,
        client_of(gateway, "legacy") as client,
    ):
        await client.call_tool("search_tools", {"queries": ["qqq zzz"]})
        await client.call_tool("search_tools", {"queries": ["reads the calendar"]})
        name = next(tool.name for tool in gateway.servers.catalog if "calendar" in tool.description)
        await through(client, "call_tool", f"shop__{name}", key="a")
        await through(client, "call_tool", f"shop__{name}", other="b")


def test_J53_the_log_of_a_real_gateway_is_a_timeline(tmp_path: Path) -> None:
    asyncio.run(use_a_gateway(tmp_path))
    trace = read_trace([tmp_path / "gateway.log"], Words())
    (talk,) = [each for each in trace.conversations if each.turns[0].get("client")]
    steps = talk.turns[0]["steps"]
    assert [step["kind"] for step in steps] == ["search", "search", "call", "call"]
    vain, found, called, refused = steps
    assert found["queries"] == ["reads the calendar"]
    assert found["confidence"].keys() >= set(found["loaded"])
    assert found["led_to"] == [called["tool"]]
    assert vain["in_vain"]
    assert called["status"] == "ok"
    assert called["seconds"] > 0
    assert refused["status"] != "ok"
    (of_all,) = [each for each in trace.conversations if each.id == "gateway"]
    assert any("gone" in step["text"] and "failed" in step["text"] for step in of_all.turns[0]["steps"])
    report = inspect_report(trace, Catalog([{"name": called["tool"], "inputSchema": {"type": "object"}}]))
    assert [row["query"] for row in report.tables[0].rows] == ["qqq zzz"]
    assert trace.damaged == 0
