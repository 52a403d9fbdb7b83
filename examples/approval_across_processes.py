"""An approval that survives a restart: one process stops at the question, another one goes on and finishes.

Run without arguments, it starts both. The journal is in an SQLite file; nothing else is shared.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from toolsearch import Agent, Approve, Finished, Paused, ToolSearch, tool
from toolsearch.layers import approval
from toolsearch.stores import SqliteStore
from toolsearch.testing import ScriptedModel

CONVERSATION = "conversation-42"


def program(folder: Path, *script: object) -> Agent:
    """The same agent in each process; the model's replies are written down, so that it runs anywhere."""

    @tool(kind="action")
    def refund(order: str, amount: float) -> str:
        """Pay an amount back to the customer of an order."""
        with (folder / "refunds.txt").open("a") as file:
            file.write(f"{order} {amount}\n")
        return f"{amount} paid back for {order}"

    store = SqliteStore(folder / "journals.sqlite")
    return Agent(ScriptedModel(*script), ToolSearch([refund], mode="static"), layers=[approval()], store=store)


def first(folder: Path) -> None:
    agent = program(folder, [("refund", {"order": "A-17", "amount": 25.0})])
    result = agent.run("Please pay 25 back for order A-17.", conversation_id=CONVERSATION)
    assert isinstance(result, Paused)
    for call in result.waiting:
        print(f"the first process stops: {call.name} {call.arguments} waits for an approval")


def second(folder: Path) -> None:
    agent = program(folder, "The 25 are on their way.")
    waiting = agent.conversation(CONVERSATION).waiting
    print(f"the second process finds {len(waiting)} waiting call, approves it, and goes on")
    result = agent.run(conversation_id=CONVERSATION, decisions={call.id: Approve() for call in waiting})
    assert isinstance(result, Finished)
    print(f"the answer: {result.text}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for step in ("first", "second"):
            command = [sys.executable, __file__, step, name]
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  # this file
            print(done.stdout, end="")
        refunds = (Path(name) / "refunds.txt").read_text().splitlines()
        print(f"the approved tool ran {'once' if len(refunds) == 1 else f'{len(refunds)} times'}: {refunds[0]}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        (first if sys.argv[1] == "first" else second)(Path(sys.argv[2]))
    else:
        main()
