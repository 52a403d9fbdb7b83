"""A store with some conversations, played by an agent with a scripted model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, Settings, ToolCall, ToolSearch
from toolsearch.events.facts import Reply, Usage
from toolsearch.layers import record
from toolsearch.loop import Agent
from toolsearch.stores import SqliteStore
from toolsearch.testing import ScriptedModel

VERBS, SUBJECTS = ("find", "send", "delete"), ("mail", "invoice", "ticket", "photo")


def definitions() -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"which": {"type": "string", "description": "The one that is meant."}}}
    return [
        {"name": f"{verb}_{subject}", "server": subject, "description": f"{verb.capitalize()} one {subject}.",
         "input_schema": schema, "annotations": {"readOnlyHint": verb == "find"}}
        for verb in VERBS for subject in SUBJECTS
    ]  # fmt: skip


def answer(tool: object, arguments: dict[str, Any], context: object) -> object:
    if arguments.get("which") == "none":
        raise ValueError("there is none")
    return {"done": True, "of": arguments}


def reply(*calls: tuple[str, dict[str, Any]], text: str = "", read: int = 1_500, cached: int = 0) -> Reply:
    made = tuple(ToolCall(f"r{read}_{at}", name, arguments) for at, (name, arguments) in enumerate(calls))
    return Reply(
        text, made, usage=Usage(read, cached, 20, 1), model="gpt-5-mini", reasoning="I look first." if calls else ""
    )


def query(*queries: str) -> tuple[str, dict[str, Any]]:
    return ("search_tools", {"queries": list(queries)})


Talk = Sequence[tuple[str, Sequence[Reply], bool]]
TALKS: dict[str, Talk] = {
    "desk-1": [
        (
            "Delete the invoice 7 of bo@example.org, please.",
            [
                reply(query("find invoice", "paint the fence")),
                reply(("find_invoice", {"which": "7"}), ("find_invoice", {"which": "none"}), read=1_800, cached=1_408),
                reply(("delete_invoice", {"which": "7", "password": "swordfish"}), read=2_100),
                reply(text="I have deleted it.", read=2_300, cached=2_048),
            ],
            True,
        ),
        ("And paint the fence.", [reply(query("paint fence"), read=2_400, cached=2_176), reply(text="No.")], True),
    ],
    "desk-2": [
        (
            "Send the photo to Ann.",
            [reply(query("send a photo")), reply(("send_photo", {"which": "a"}), read=1_700, cached=1_408),
             reply(text="Then not.", read=1_900, cached=1_664)],
            False,
        )
    ],
    "desk-3": [("<script>document.title='owned'</script> & hello", [reply(text="<b>Hello</b>")], True)],
}  # fmt: skip


def play(store: Any, talks: dict[str, Talk] = TALKS, observe: Any = (), mode: str = "append") -> None:
    """Plays the talks; a person says to every action what stands in the talk."""
    search = ToolSearch(
        Catalog(definitions()), "keyword", run=answer, results=2, settings=Settings.from_mapping({"mode": mode})
    )
    for name, turns in talks.items():
        for said, replies, allowed in turns:
            agent = Agent(ScriptedModel(*replies), search, store=store, observe=observe, actions="wait")
            result = agent.run(said, conversation_id=name)
            if hasattr(result, "waiting"):
                agent.run(conversation_id=name, decisions={each.call.id: allowed for each in result.waiting})


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a `SqliteStore`, with the turns of `record` beside it in `turns.jsonl`."""
    file = tmp_path_factory.mktemp("inspected") / "journals.db"
    with SqliteStore(file) as kept:
        play(kept, observe=record(file.with_name("turns.jsonl"), arguments=True))
    return file
