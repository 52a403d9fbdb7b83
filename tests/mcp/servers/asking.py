"""An action that asks the user before it runs: by a request of the older protocol, by its result in the newer one."""

from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

from tests.mcp.servers.serving import options, serve

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "description": "Whether to delete it."}},
    "required": ["confirm"],
}
ran: list[str] = []


def said(text: str, **more: Any) -> types.CallToolResult:
    content = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content={"ran": list(ran)}, **more)


def ended(name: str, answer: Any) -> types.CallToolResult:
    action = getattr(answer, "action", None)
    if action == "accept" and (getattr(answer, "content", None) or {}).get("confirm"):
        ran.append(name)
        return said(f"deleted {name}")
    return said(f"not deleted: the user said {action}")


async def on_call_tool(ctx: Any, params: Any) -> types.CallToolResult | types.InputRequiredResult:
    if params.name == "deleted":
        return said(" ".join(ran) or "nothing")
    name = str((params.arguments or {}).get("name"))
    question = f"Delete {name}?"
    if ctx.protocol_version < "2026":
        return ended(name, await ctx.session.elicit_form(question, FORM, related_request_id=ctx.request_id))
    answers = params.input_responses
    if not answers:
        asked = types.ElicitRequestFormParams(message=question, requested_schema=FORM)
        return types.InputRequiredResult(input_requests={"sure": types.ElicitRequest(params=asked)}, request_state=name)
    return ended(name, answers["sure"])


async def on_list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    action = types.Tool(
        name="delete",
        description="Deletes a file, after the user has agreed.",
        input_schema=SCHEMA,
        annotations=types.ToolAnnotations(destructive_hint=True),
    )
    read = types.Tool(
        name="deleted",
        description="Lists the files that were deleted.",
        input_schema={"type": "object", "properties": {}},
        annotations=types.ToolAnnotations(read_only_hint=True),
    )
    return types.ListToolsResult(tools=[action, read])


def main() -> None:
    chosen = options(__doc__ or "").parse_args()
    serve(Server(chosen.name, on_list_tools=on_list_tools, on_call_tool=on_call_tool), chosen)
