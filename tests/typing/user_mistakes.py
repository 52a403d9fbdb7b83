"""Mistakes a type checker should catch for a user, each on a line that ends in `# wrong`. Never run."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from toolsearch import Agent, Caller, CallModel, Catalog, Reply, Scored, Tool, ToolSearch
from toolsearch.layers import approval, limits
from toolsearch.protocols import ToolSteps
from toolsearch.testing import check_index, check_layer, check_store
from toolsearch.wires import openai_chat

catalog = Catalog([])
search = ToolSearch(catalog, index=3)  # wrong
search.find(["a", "list"])  # wrong
search.find("weather", limit="five")  # wrong
print(search.find("weather")[0].tool.no_such_thing)  # wrong
Caller(user=7)  # wrong
search.session("one", caller="ana")  # wrong
ToolSearch([], moed="static")  # wrong


def model(request: CallModel) -> Reply:
    return Reply("Hello.")


class WrongLayer:
    def around_tool(self, call: int) -> int:
        return 3


class WrongAnswer:
    def around_tool(self, call: Any) -> ToolSteps:
        yield call
        return 3  # wrong


class WithoutList:
    def append(self, conversation_id: str, position: int, facts: Sequence[Mapping[str, Any]]) -> None: ...
    def load(self, conversation_id: str) -> list[dict[str, Any]]:
        return []

    def delete(self, conversation_id: str) -> bool:
        return False


class WithoutRemove:
    name = "without-remove"

    def add(self, tools: Sequence[Tool]) -> None: ...
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return []


def late(event: object, more: object) -> None: ...


Agent(model, search, layers=[limits(), 42])  # wrong
Agent(model, search, layers=[approval])  # wrong
Agent(model, search, layers=[WrongLayer()])  # wrong
Agent(model, search, observe=late)  # wrong
Agent(lambda r: 42, search)  # wrong
Agent(model, search, store=WithoutList())  # wrong
Agent(openai_chat.model, search)  # wrong
ToolSearch(catalog, index=WithoutRemove())  # wrong
openai_chat.model("gpt", "a client comes first")  # wrong
check_index(WithoutRemove)  # wrong
check_store(WithoutList)  # wrong
check_layer(WrongLayer)  # wrong
