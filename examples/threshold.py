"""When searching pays: a small catalog is shown as it is, from the tenth tool on it is searched.

Seven tools of this program and two of a remote server are nine: all of them are in every request. The tenth turns
search on. Then two questions in one conversation, the second of which is answered from memory.
"""

from toolsearch import Agent, Catalog, Finished, ToolSearch, tool
from toolsearch.catalog import Tool
from toolsearch.events import CallModel, Reply
from toolsearch.testing import ScriptedModel


def local(n: int) -> Tool:
    @tool(name=f"report_{n}", description=f"Make the report number {n} of the week.")
    def report(day: str) -> str:
        return f"report {n} of {day}"

    return report


CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
REMOTE = [
    {"name": "get_weather", "description": "The weather in a city today.", "inputSchema": CITY},
    {"name": "get_time", "description": "The time in a city now.", "inputSchema": CITY},
]


def remote(called: Tool, arguments: dict[str, object], context: object) -> str:
    """What a remote server would answer."""
    return f"{called.name} of {arguments.get('city')}: 21 degrees, sunny"


def remembers(request: CallModel) -> Reply | str:
    """A model that looks into what it is shown: the answer to the second question is there."""
    shown = " ".join(result.content for m in request.transcript for result in getattr(m, "results", ()))
    return "It was 21 degrees, as I said." if "21 degrees" in shown else "I do not know."


def main() -> None:
    catalog = Catalog([local(n) for n in range(7)])
    catalog.extend(REMOTE, server="weather")
    search = ToolSearch(catalog, "keyword", mode="auto", auto_tools=10, auto_tokens=0, run=remote)
    print(f"{len(catalog)} tools: {search.session().why()}")
    catalog.add({"name": "convert", "description": "Convert an amount between currencies."})
    print(f"{len(catalog)} tools: {search.session().why()}")

    model = ScriptedModel(
        [("search_tools", {"queries": ["weather in a city"]})],
        [("get_weather", {"city": "Lisbon"})],
        "21 degrees and sunny.",
        remembers,
    )
    agent = Agent(model, search)
    for question in ("What is the weather in Lisbon?", "How warm was that again?"):
        result = agent.run(question, conversation_id="conversation-1")
        assert isinstance(result, Finished)
        print(f"{question} {result.text} ({result.usage.calls} model calls)")


if __name__ == "__main__":
    main()
