"""An agent of LlamaIndex without and with our search, on LlamaIndex's own mock of a model.

python examples/with_llama_index.py
"""

import asyncio
from typing import Any

from framework_tools import ALL_TOOLS, DEFINITIONS, SEARCH, TASK, Sent, run_tool
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool, ToolMetadata

from toolsearch import ToolSearch
from toolsearch.frameworks import tools_from
from toolsearch.frameworks.llama_index import SearchRetriever


class Described(ToolMetadata):
    """What a tool says of itself. Yours have a function, from which LlamaIndex makes the schema."""

    parameters: Any

    def get_parameters_dict(self) -> dict[str, Any]:
        return self.parameters


def made(definition: dict[str, Any]) -> FunctionTool:
    """A tool of LlamaIndex, as you have them."""

    def function(**arguments: Any) -> str:
        return run_tool(definition["name"], arguments)

    metadata = Described(definition["description"], definition["name"])
    metadata.parameters = definition["parameters"]
    return FunctionTool(function, metadata)


MY_TOOLS = [made(definition) for definition in DEFINITIONS]


def without(llm: MockFunctionCallingLLM) -> FunctionAgent:
    return FunctionAgent(tools=MY_TOOLS, llm=llm, streaming=False)


def with_search(llm: MockFunctionCallingLLM) -> FunctionAgent:
    retriever = SearchRetriever(ToolSearch(tools_from(MY_TOOLS), index="keyword"))
    return FunctionAgent(tool_retriever=retriever, system_prompt=retriever.instructions(), llm=llm, streaming=False)


def scripted(steps: list[Any], sent: Sent) -> MockFunctionCallingLLM:
    replies = iter(steps)

    def reply(messages: list[ChatMessage], **options: Any) -> ChatMessage:
        tools = [each.metadata for each in options.get("tools") or []]
        sent.add(
            [(each.name, each.description, each.get_parameters_dict()) for each in tools],
            [block.model_dump(mode="json", exclude_none=True) for message in messages for block in message.blocks],
        )
        step = next(replies)
        if isinstance(step, str):
            return ChatMessage(role="assistant", content=step)
        calls = [ToolCallBlock(tool_call_id=name, tool_name=name, tool_kwargs=given) for name, given in step]
        return ChatMessage(role="assistant", blocks=calls)

    return MockFunctionCallingLLM(response_generator=reply)


async def answer(agent: FunctionAgent) -> str:
    return str(await agent.run(user_msg=TASK))


for build, steps in ((without, ALL_TOOLS), (with_search, SEARCH)):
    print(f"{build.__name__}: {len(MY_TOOLS)} tools")
    sent = Sent()
    print(f"  {asyncio.run(answer(build(scripted(steps, sent))))}\n  {sent}\n")
