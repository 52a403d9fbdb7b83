"""A support agent over a catalog of 313 tools: it searches, looks up, asks before it pays, and answers with a value.

    python examples/support_agent.py

The model's replies are written down, so it runs anywhere. While it works it shows what happens; at the end, the bill.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

import toolsearch_datasets
from toolsearch import Agent, Approve, Caller, Catalog, Deny, Finished, Tool, ToolContext, ToolSearch
from toolsearch.events import Decision, Waiting
from toolsearch.layers import PRICES, Price, approval, structured, trace, usage_table
from toolsearch.testing import ScriptedModel

TASK = "Customer cus_9 writes that order 1042 came with a broken cup. Check it and pay the cup back."
SCRIPT = [
    [("search_tools", {"queries": ["get an order by its number", "list payments of a customer", "create a refund"]})],
    [
        ("get_order", {"order_number": "1042"}),
        ("list_payment_intents", {"customer": "cus_9", "limit": 1}),
    ],
    [("create_refund", {"payment_intent": "pi_77", "amount": 1200, "reason": "requested_by_customer"})],
    '{"order": "1042", "refunded_cents": 1200, "reply": "We are sorry about the cup. Its 12 euros are on their way."}',
]


class Resolution(BaseModel):
    """What became of a complaint."""

    order: str
    refunded_cents: int
    reply: str


def run_tool(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
    """The tools of the data set have no functions. Here you would call your MCP client."""
    match tool.id:
        case "shopify/get_order":
            return {"order": "1042", "items": [{"title": "cup", "cents": 1200}, {"title": "plate", "cents": 1900}]}
        case "stripe/list_payment_intents":
            return {"data": [{"id": "pi_77", "amount": 3100, "status": "succeeded"}]}
        case _:
            return {"ok": True, "key": context.idempotency_key}


def ask(waiting: Sequence[Waiting]) -> dict[str, Decision]:
    """Here you would ask a person. This one approves what costs no more than 20."""
    decisions: dict[str, Decision] = {}
    for call in waiting:
        cheap = call.arguments["amount"] <= 2000
        print(f"  a person is asked: {call.question} {'yes' if cheap else 'no'}")
        decisions[call.id] = Approve() if cheap else Deny("more than 20")
    return decisions


def main() -> None:
    catalog = Catalog.from_file(toolsearch_datasets.path("commons"))
    agent = Agent(
        ScriptedModel(*SCRIPT),
        ToolSearch(catalog, run=run_tool),
        system="You help customers of a shop that sells cups.",
        layers=[approval(ask), structured(Resolution)],
        observe=trace(),
    )
    print(f"{catalog!r}\n")
    result = agent.run(TASK, conversation_id="ticket-1", caller=Caller("ana", roles=["support"]))
    assert isinstance(result, Finished)
    assert isinstance(result.value, Resolution)
    print(f"\nthe value: {result.value!r}\n")
    journal = agent.conversation("ticket-1", caller=Caller("ana")).journal
    print(usage_table(journal, by="actor", prices={**PRICES, "scripted": Price(2.0, 0.2, 10.0)}))


if __name__ == "__main__":
    main()
