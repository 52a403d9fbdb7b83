"""An agent of LangChain and a graph of LangGraph without and with our search, on LangChain's own fake chat model.

python examples/with_langchain.py
"""

from typing import Any

from framework_tools import ALL_TOOLS, DEFINITIONS, SEARCH, TASK, Sent, run_tool
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from toolsearch import ToolSearch
from toolsearch.frameworks import tools_from
from toolsearch.frameworks.langchain import SearchMiddleware
from toolsearch.frameworks.langgraph import SearchNodes


def made(definition: dict[str, Any]) -> BaseTool:
    """A tool of LangChain, as you have them."""

    def function(**arguments: Any) -> str:
        return run_tool(definition["name"], arguments)

    name, description, schema = definition["name"], definition["description"], definition["parameters"]
    return StructuredTool(name=name, description=description, args_schema=schema, func=function)


MY_TOOLS = [made(definition) for definition in DEFINITIONS]


def without(model: Any) -> Any:
    return create_agent(model, tools=MY_TOOLS)


def with_middleware(model: Any) -> Any:
    search = ToolSearch(tools_from(MY_TOOLS), index="keyword", mode="append")
    return create_agent(model, middleware=[SearchMiddleware(search)])


def graph_of(ask: Any, tools: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


def graph_without(model: Any) -> Any:
    bound = model.bind_tools(MY_TOOLS)
    return graph_of(lambda state: {"messages": [bound.invoke(state["messages"])]}, ToolNode(MY_TOOLS))


def graph_with_nodes(model: Any) -> Any:
    nodes = SearchNodes(ToolSearch(tools_from(MY_TOOLS), index="keyword", mode="append"))
    return graph_of(nodes.model(model), nodes.tools)


class Scripted(GenericFakeChatModel):
    """Gives the replies that are written down, and counts what it is sent."""

    sent: Any
    told: Any = ()

    def bind_tools(self, tools: Any, **options: Any) -> "Scripted":
        self.told = [convert_to_openai_tool(each)["function"] for each in tools]
        return self

    def _generate(self, messages: Any, *rest: Any, **options: Any) -> Any:
        tools = [(each["name"], each["description"], each["parameters"]) for each in self.told]
        self.sent.add(tools, [f"{each.text}{getattr(each, 'tool_calls', None) or ''}" for each in messages])
        return super()._generate(messages, *rest, **options)


def message(step: Any, number: int) -> AIMessage:
    if isinstance(step, str):
        return AIMessage(step)
    return AIMessage("", tool_calls=[{"id": f"call_{number}", "name": name, "args": args} for name, args in step])


for build, steps in (
    (without, ALL_TOOLS),
    (with_middleware, SEARCH),
    (graph_without, ALL_TOOLS),
    (graph_with_nodes, SEARCH),
):
    print(f"{build.__name__}: {len(MY_TOOLS)} tools")
    sent = Sent()
    model = Scripted(messages=iter([message(step, number) for number, step in enumerate(steps)]), sent=sent)
    state = build(model).invoke({"messages": [HumanMessage(TASK)]})
    print(f"  {state['messages'][-1].text}\n  {sent}\n")
