"""An agent of Google ADK without and with our search, on a model whose replies are written down.

python examples/with_google_adk.py
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

from framework_tools import ALL_TOOLS, DEFINITIONS, SEARCH, TASK, Sent, run_tool
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from toolsearch import ToolSearch
from toolsearch.frameworks.google_adk import SearchToolset


class MyTool(BaseTool):
    """A tool of ADK, as you have them."""

    def __init__(self, definition: dict[str, Any]) -> None:
        super().__init__(name=definition["name"], description=definition["description"])
        self.definition = definition

    def _get_declaration(self) -> types.FunctionDeclaration:
        given = self.definition
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=given["parameters"]
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> str:
        return run_tool(self.name, args)


MY_TOOLS = [MyTool(definition) for definition in DEFINITIONS]


def without(model: BaseLlm) -> LlmAgent:
    return LlmAgent(name="helper", model=model, tools=MY_TOOLS)


def with_search(model: BaseLlm) -> LlmAgent:
    search = ToolSearch(DEFINITIONS, index="keyword", run=lambda tool, given, context: run_tool(tool.name, given))
    toolset = SearchToolset(search)
    return LlmAgent(name="helper", model=model, tools=[toolset], on_tool_error_callback=toolset.answer_unlisted)


class Scripted(BaseLlm):
    """Here you would name a model: `model="gemini-3-flash"`."""

    model: str = "scripted"
    steps: list[Any]
    sent: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        tools = [each for held in llm_request.config.tools or [] for each in held.function_declarations or []]
        said = [part.model_dump(mode="json", exclude_none=True) for each in llm_request.contents for part in each.parts]
        self.sent.add(
            [(each.name, each.description, each.parameters_json_schema) for each in tools],
            [str(llm_request.config.system_instruction), *said],
        )
        step = self.steps.pop(0)
        calls = [] if isinstance(step, str) else [types.FunctionCall(name=name, args=given) for name, given in step]
        parts = [types.Part(text=step)] if isinstance(step, str) else [types.Part(function_call=call) for call in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


async def answer(agent: LlmAgent) -> str:
    runner = InMemoryRunner(agent=agent, app_name="office")
    session = await runner.session_service.create_session(app_name="office", user_id="ana")
    message, text = types.Content(role="user", parts=[types.Part(text=TASK)]), ""
    async for event in runner.run_async(user_id="ana", session_id=session.id, new_message=message):
        for part in event.content.parts if event.content else []:
            text = part.text or text
    return text


logging.getLogger("google_adk").setLevel(logging.ERROR)  # it misses the token counts of our model
for build, steps in ((without, ALL_TOOLS), (with_search, SEARCH)):
    print(f"{build.__name__}: {len(MY_TOOLS)} tools")
    sent = Sent()
    print(f"  {asyncio.run(answer(build(Scripted(steps=[*steps], sent=sent))))}\n  {sent}\n")
