"""What `everything` serves besides tools: resources, templates, prompts, completion, the level of the log."""

from typing import Any

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

META = {"example.com/kept": True}
PIXEL = "iVBORw0KGgo="
subscribed: set[str] = set()
bus = InMemorySubscriptionBus()  # who reads test://touch changes test://note


async def on_list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    note = types.Resource(uri="test://note", name="note", title="A note", mime_type="text/plain", size=6, meta=META)
    data = types.Resource(uri="test://data", name="data", description="Some bytes.")
    if params is not None and params.cursor == "second":
        return types.ListResourcesResult(resources=[data])
    return types.ListResourcesResult(resources=[note], next_cursor="second")


async def on_list_resource_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    row = types.ResourceTemplate(uri_template="test://row/{number}", name="row", description="A row.")
    return types.ListResourceTemplatesResult(resource_templates=[row])


async def on_read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://touch":
        await bus.publish(ResourceUpdated(uri="test://note"))
        if ctx.protocol_version < "2026" and "test://note" in subscribed:
            await ctx.session.send_resource_updated("test://note")
        uri = "test://note"
    if uri == "test://data":
        return types.ReadResourceResult(contents=[types.BlobResourceContents(uri=uri, blob=PIXEL)])
    if uri == "test://note" or uri.startswith("test://row/"):
        content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=f"text of {uri}", meta=META)
        return types.ReadResourceResult(contents=[content], meta=META)
    raise MCPError(code=-32002, message="Resource not found", data={"uri": uri})


async def on_subscribe_resource(ctx: Any, params: Any) -> types.EmptyResult:
    subscribed.add(str(params.uri))
    await ctx.session.send_resource_updated(params.uri)
    return types.EmptyResult()


async def on_unsubscribe_resource(ctx: Any, params: Any) -> types.EmptyResult:
    subscribed.discard(str(params.uri))
    return types.EmptyResult()


async def on_list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    wanted = types.PromptArgument(name="city", description="Which city.", required=True)
    prompt = types.Prompt(name="weather", title="Weather", description="Asks for weather.", arguments=[wanted])
    return types.ListPromptsResult(prompts=[prompt], meta=META)


async def on_get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    if params.name != "weather":
        raise MCPError(code=-32602, message=f"Unknown prompt: {params.name}")
    city = (params.arguments or {}).get("city", "?")
    said = types.TextContent(type="text", text=f"What is the weather in {city}?")
    picture = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return types.GetPromptResult(
        description="Weather",
        messages=[types.PromptMessage(role="user", content=said), types.PromptMessage(role="user", content=picture)],
    )


async def on_completion(ctx: Any, params: Any) -> types.CompleteResult:
    cities = [city for city in ("Berlin", "Bern", "Bergen") if city.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=cities, total=len(cities), has_more=False))


async def on_set_logging_level(ctx: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


BESIDE: dict[str, Any] = {
    "on_list_resources": on_list_resources,
    "on_list_resource_templates": on_list_resource_templates,
    "on_read_resource": on_read_resource,
    "on_subscribe_resource": on_subscribe_resource,
    "on_unsubscribe_resource": on_unsubscribe_resource,
    "on_list_prompts": on_list_prompts,
    "on_get_prompt": on_get_prompt,
    "on_completion": on_completion,
    "on_set_logging_level": on_set_logging_level,
    "on_subscriptions_listen": ListenHandler(bus),
}
