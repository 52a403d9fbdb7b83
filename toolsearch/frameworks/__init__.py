"""Tool search inside other agent frameworks: each module is a thin adapter between one of them and a `ToolSearch`.

    pydantic_ai    pydantic-ai: a strategy for its own ToolSearch, and a toolset
    langchain      LangChain: middleware for create_agent
    langgraph      LangGraph: the two nodes of a graph built by hand
    openai_agents  OpenAI Agents SDK: an agent
    fastmcp        FastMCP: a transform for a server
    llama_index    LlamaIndex: a tool retriever for agents
    google_adk     Google ADK: a toolset
    sources        tools_from: the tools that any framework's objects hold
    running        what the adapters share: the context of a call, and calls that a person approves
    langgraph_pieces  what the adapters of LangChain and LangGraph share

An adapter imports its framework when it is imported itself; without it, the error has the install line.
"""

from toolsearch.frameworks.sources import tools_from

__all__ = ["tools_from"]
