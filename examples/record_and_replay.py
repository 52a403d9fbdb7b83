"""Conversations recorded as they happen: summed up, drafted as labelled cases, and searched again in another way.

It needs no network and no key: the model is scripted, and nothing is left behind.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from toolsearch import Catalog, ToolSearch
from toolsearch.layers import record
from toolsearch.loop import Agent
from toolsearch.testing import ScriptedModel
from toolsearch_evals.recording import ReplayPlan, journal_report, read_turns, replay_turns
from toolsearch_evals.recording.cases import drafted_cases

TALKS = (
    ("Is it cold in Oslo? Tell ann@example.org.", ["weather in a city", "send a mail"], ["get_forecast", "send_mail"]),
    ("Who owes me for order 4711081500?", ["unpaid invoices"], ["list_invoices"]),
    ("Paint the fence, please.", ["paint the fence"], []),
)


def tools() -> list[dict[str, object]]:
    texts = {
        "get_forecast": "Weather forecast for a city.",
        "get_warnings": "Severe weather warnings for a region.",
        "send_mail": "Send a mail to somebody.",
        "send_fax": "Send a fax to a number.",
        "list_invoices": "List invoices, paid and unpaid.",
        "delete_invoice": "Delete an invoice for good.",
        "play_song": "Play a song in the kitchen.",
    }
    return [{"name": name, "description": text, "input_schema": {"type": "object"}} for name, text in texts.items()]


def talk(to: Path) -> None:
    search = ToolSearch(Catalog(tools()), "keyword", run=lambda *_: "done", mode="append")
    for number, (said, queries, called) in enumerate(TALKS):
        steps = [[("search_tools", {"queries": queries})], *([[(name, {}) for name in called]] if called else [])]
        agent = Agent(ScriptedModel(*steps, "That is all."), search, observe=record(to), actions="run")
        agent.run(said, conversation_id=f"talk-{number}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "turns.jsonl"
        talk(file)
        first = json.loads(file.read_text("utf-8").splitlines()[0])
        print(f"recorded: {first['said']}")
        turns, catalog = read_turns([file]), Catalog(tools())

    for sentence in journal_report(turns, catalog).headline:
        print(sentence)
    for line in drafted_cases(turns, catalog).drafts.lines:
        print(f"draft: {line['wording']}: {line['query']!r} needs {line['gold']}")
    for row in replay_turns(turns, catalog, ReplayPlan(("keyword", "regex"), ("append", "bridge"))).tables[0].rows:
        print(f"{row['index']}, {row['mode']}: loads {row['loaded now']:.0%} of {row['needs']} needed tools")


if __name__ == "__main__":
    main()
