"""Frameworks with the clients of real providers, against a provider on this machine that refuses what they refuse."""

import asyncio
from typing import Any

import pytest

from toolsearch import ToolSearch
from toolsearch.frameworks import tools_from
from toolsearch.testing import LoopbackProvider, assert_prefix_stable

FIND = ("search_tools", {"queries": ["rotate an api key"]})
ROTATE = ("rotate_key", {"name": "billing"})


def get_weather(city: str) -> str:
    """Current weather of a city."""
    return f"Rain in {city}."


def rotate_key(name: str) -> str:
    """Replace an API key by a new one."""
    return f"rotated {name}"


def made_search() -> ToolSearch:
    return ToolSearch(tools_from(get_weather, rotate_key), index="keyword", mode="append")


async def asked(agent: Any) -> str:
    return str((await agent.run("The billing key leaked.")).output)


@pytest.mark.parametrize("is_native", [True, False], ids=["strategy", "toolset"])
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_pydantic_ai(provider: str, is_native: bool) -> None:
    """J50: the strategy delivers natively, so that the tools of all requests are the same bytes."""
    pytest.importorskip("pydantic_ai", reason="needs pip install 'toolsearch-kit[pydantic-ai]': see `make frameworks`")
    sdk: Any = pytest.importorskip(provider)
    from pydantic_ai import Agent, Tool
    from pydantic_ai.capabilities import ToolSearch as PydanticToolSearch

    from toolsearch.frameworks.pydantic_ai import SearchToolset, searched_by

    def made(url: str) -> Any:
        if provider == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            client = sdk.AsyncAnthropic(api_key="x", base_url=url, max_retries=0)
            return AnthropicModel("claude-sonnet-4-6", provider=AnthropicProvider(anthropic_client=client))
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        client = sdk.AsyncOpenAI(api_key="x", base_url=f"{url}/v1", max_retries=0)
        return OpenAIResponsesModel("gpt-5-mini", provider=OpenAIProvider(openai_client=client))

    with LoopbackProvider([[FIND], [ROTATE], "Done."]) as loopback:
        if is_native:
            deferred = [Tool(each, defer_loading=True) for each in (get_weather, rotate_key)]
            search = PydanticToolSearch(strategy=searched_by("keyword"))
            agent = Agent(made(loopback.url), tools=deferred, capabilities=[search])
        else:
            agent = Agent(made(loopback.url), toolsets=[SearchToolset(made_search())])
        assert asyncio.run(asked(agent)) == "Done."
        assert loopback.refusals == []
        assert_prefix_stable(loopback.requests, mode="native" if is_native else "append")


@pytest.mark.parametrize("is_graph", [False, True], ids=["agent", "graph"])
def test_langchain(is_graph: bool) -> None:
    pytest.importorskip("langchain", reason="needs pip install 'toolsearch-kit[langchain]': see `make frameworks`")
    openai = pytest.importorskip("langchain_openai", reason="needs pip install langchain-openai")
    from langchain.agents import create_agent
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import tools_condition

    from toolsearch.frameworks.langchain import SearchMiddleware
    from toolsearch.frameworks.langgraph import SearchNodes

    with LoopbackProvider([[FIND], [ROTATE], "Done."]) as loopback:
        llm = openai.ChatOpenAI(model="m", base_url=f"{loopback.url}/v1", api_key="x", max_retries=0)
        agent: Any = create_agent(llm, middleware=[SearchMiddleware(made_search())], system_prompt="You help.")
        if is_graph:
            nodes, graph = SearchNodes(made_search()), StateGraph(MessagesState)
            graph.add_node("model", nodes.model(llm, system="You help."))
            graph.add_node("tools", nodes.tools)
            graph.add_edge(START, "model")
            graph.add_conditional_edges("model", tools_condition)
            graph.add_edge("tools", "model")
            agent = graph.compile()
        state = agent.invoke({"messages": [("user", "The billing key leaked.")]})
        assert state["messages"][-1].text == "Done."
        assert loopback.refusals == []
        assert_prefix_stable(loopback.requests, mode="append")


@pytest.mark.parametrize("form", ["responses", "chat"])
def test_openai_agents(form: str) -> None:
    agents = pytest.importorskip(
        "agents", reason="needs pip install 'toolsearch-kit[openai-agents]': see `make frameworks`"
    )
    from openai import AsyncOpenAI

    from toolsearch.frameworks.openai_agents import SearchAgent, search_run_config

    kinds = {"responses": agents.OpenAIResponsesModel, "chat": agents.OpenAIChatCompletionsModel}
    agents.set_tracing_disabled(True)

    async def ran(url: str) -> str:
        async with AsyncOpenAI(api_key="x", base_url=f"{url}/v1", max_retries=0) as client:
            model = kinds[form]("gpt-5-mini", openai_client=client)
            agent = SearchAgent("Lead", instructions="You help.", search=made_search(), model=model)
            result = await agents.Runner.run(agent, "The billing key leaked.", run_config=search_run_config())
            return str(result.final_output)

    with LoopbackProvider([[FIND], [ROTATE], "Done."]) as loopback:
        assert asyncio.run(ran(loopback.url)) == "Done."
        assert loopback.refusals == []
        assert_prefix_stable(loopback.requests, mode="append")
