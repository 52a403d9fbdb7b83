"""What a server asks of the user pauses the run, in both generations; the answer may come in another process."""

from collections.abc import Iterator

import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.servers import over_http
from toolsearch import Agent, Answer, Approve, Deny, Finished, Paused, ToolSearch
from toolsearch.layers import tool_questions
from toolsearch.mcp import Servers
from toolsearch.stores.memory import MemoryStore
from toolsearch.testing import ScriptedModel

GENERATIONS = pytest.mark.parametrize("server", ["new", "old"])


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with over_http("asking") as web:
        config = {"new": web, "old": {**web, "toolsearch": {"protocol": "legacy"}}}
        with Servers(config, can_ask=True) as started:
            yield started


class Run:
    """A conversation that deletes a file, in which each step has an agent of its own."""

    def __init__(self, servers: Servers, server: str) -> None:
        self.servers, self.store = servers, MemoryStore()
        name = f"{server}__delete"
        self.model = ScriptedModel(
            [("search_tools", {"queries": [f"select:{name}"]})], [(name, {"name": "a.txt"})], "That is all."
        )

    def agent(self) -> Agent:
        search = ToolSearch(self.servers.catalog, run=self.servers.run, index="keyword")
        return Agent(self.model, search, layers=[tool_questions()], store=self.store)

    def begin(self) -> Paused:
        paused = self.agent().run("Delete a.txt.", conversation_id="one")
        assert isinstance(paused, Paused)
        return paused

    def decide(self, paused: Paused, decision: Answer | Approve | Deny) -> str:
        done = self.agent().run(conversation_id="one", decisions={paused.waiting[0].id: decision})
        assert isinstance(done, Finished)
        return str(self.model.requests[-1])


@GENERATIONS
def test_the_run_pauses_with_the_question_and_goes_on_with_the_answer(servers: Servers, server: str) -> None:
    run = Run(servers, server)
    paused = run.begin()
    (waiting,) = paused.waiting
    assert (waiting.question, waiting.kind) == ("Delete a.txt?", "delegated")
    assert waiting.fact.data["schema"]["required"] == ["confirm"]
    assert "deleted a.txt" in run.decide(paused, Answer("yes", {"confirm": True}))


@GENERATIONS
@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Answer('{"confirm": true}'), "deleted a.txt"),
        (Answer("true"), "deleted a.txt"),
        (Answer("no", {"confirm": False}), "not deleted: the user said accept"),
        (Approve(), "not deleted: the user said accept"),
        (Deny("not now"), "not deleted: the user said decline"),
    ],
)
def test_every_decision_reaches_the_server(servers: Servers, server: str, decision: Answer, said: str) -> None:
    run = Run(servers, server)
    assert said in run.decide(run.begin(), decision)
