"""The input of a request of OpenAI Responses: what was said, called and answered, and the tools that answers bring.

A tool that stands in `tools` is called by its name alone. One that an item brings is called in a namespace: that of its
server if a `tool_search_output` brought it, otherwise one with the name of the tool itself. The provider refuses a
history with a call that does not name its namespace, or names one that is not there, and a tool that is declared twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from toolsearch.calls import LoadedTool, Part
from toolsearch.calls.parts import shown_image
from toolsearch.catalog.tools import Shown, shown_of
from toolsearch.events.facts import JudgedCall
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import legal_name
from toolsearch.wires._arguments import valid_json
from toolsearch.wires._chat_message import short_id
from toolsearch.wires._response_items import TOOL_SEARCH, input_of, is_call
from toolsearch.wires._response_reasoning import FREE
from toolsearch.wires._user_parts import parts_for
from toolsearch.wires.shared import definitions

__all__ = ["Input", "refitted"]

IMAGE_BYTES = 20_000_000  # the provider refuses a request of more than 50 MB
NO_CUSTOM_TOOL = "It did not run: this program has no such tool. Use a listed tool."


class Input:
    """Takes in one message after the other; `items` is what they come to.

    `listed` are the names of the tools in `tools`, which no item brings again; without `brings` no item brings any.
    With `searches` the search tool stands there as the provider's own. `define` gives the definition of a tool.
    """

    def __init__(
        self,
        define: Callable[[Shown], dict[str, Any]],
        listed: Collection[str] = (),
        *,
        searches: bool = False,
        brings: bool = True,
    ) -> None:
        self._define, self._listed, self._searches, self._brings = define, set(listed), searches, brings
        self._items: list[dict[str, Any]] = []
        self._spaces: dict[str, str] = {}  # of the tools that items bring: the namespace that each is called in
        self._call_ids: dict[str, str] = {}  # of translated calls: the id in the journal -> the one that is sent
        self._searching: set[str] = set()  # ids of searches of the provider's own form
        self._ids: set[object] = set()  # of items

    def items(self) -> list[dict[str, Any]]:
        """All items, each call in the namespace where this request has its tool."""
        return [_placed(item, self._listed, self._spaces) for item in self._items]

    # -- what was said and called --------------------------------------------------------------------------------

    def say(self, text: str, parts: Iterable[JsonObject] = (), loaded: Iterable[LoadedTool] = ()) -> None:
        """A message of the user, behind the tools that come with it."""
        self._bring(loaded)
        contents = [{"type": "input_text", "text": text}, *parts_for("openai_responses", parts)]
        self._items.append({"role": "user", "content": contents if len(contents) > 1 else text})

    def reply(self, items: Iterable[Any], call_ids: Iterable[str]) -> None:
        """A reply of this provider, as it came; the session replaces an id that an earlier call has."""
        ids = iter(call_ids)
        for item in items:
            if not isinstance(item, Mapping):
                continue
            own = dict(item)
            if is_call(own):
                own["call_id"] = next(ids, own.get("call_id"))
                own = self._search(own) if own["type"] == "tool_search_call" else own
            if own.get("type") in FREE and own.get("id") in self._ids:  # a server that counts anew with each reply
                del own["id"]
            self._ids |= {own["id"]} if own.get("id") else set()
            self._items.append(own)
            if own.get("type") == "custom_tool_call":
                output = {"type": "custom_tool_call_output", "call_id": own.get("call_id"), "output": NO_CUSTOM_TOOL}
                self._items.append(output)

    def translate(self, text: str, calls: Iterable[JudgedCall]) -> None:
        """A reply of another provider."""
        if text.strip():
            self._items.append({"role": "assistant", "content": text})
        for call in calls:
            self._call_ids[call.id] = call_id = short_id(call.id)
            if call.kind == "search" and call.name == TOOL_SEARCH:
                head = {"type": "tool_search_call", "call_id": call_id, "execution": "client", "status": "completed"}
                self._items.append(self._search({**head, "arguments": input_of(call.arguments)}))
            else:
                name, arguments = legal_name(call.name), valid_json(call.arguments)
                self._items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})

    def _search(self, call: dict[str, Any]) -> dict[str, Any]:
        """A search in the provider's own form; a call of a function where the request does not have that form."""
        if self._searches:
            self._searching.add(call["call_id"])
            return call
        arguments = valid_json(call.get("arguments"))
        return {"type": "function_call", "call_id": call["call_id"], "name": TOOL_SEARCH, "arguments": arguments}

    # -- results -------------------------------------------------------------------------------------------------

    def searched(self, call_id: str) -> None:
        """The call with this id was a search of the provider's own form."""
        self._searching.add(call_id)

    def answer(self, results: Iterable[tuple[str, str, Iterable[Part], Iterable[LoadedTool]]]) -> None:
        """The results of a reply's calls, each with the id of its call, its text, its parts, and what it brings."""
        texts = []
        for answered, text, parts, loaded in results:
            call_id = self._call_ids.get(answered, answered)
            if call_id in self._searching:
                brought = self._grouped(self._new(list(loaded)))
                head = {"type": "tool_search_output", "call_id": call_id, "execution": "client"}
                self._items.append({**head, "status": "completed", "tools": brought})
                texts.append(text)  # that item has no place for it
            else:
                self._items.append(
                    {"type": "function_call_output", "call_id": call_id, "output": _content(text, parts)}
                )
                self._bring(loaded)
        for text in texts:
            self._items.append({"role": "user", "content": f"[{text}]"})

    # -- tools that come -----------------------------------------------------------------------------------------

    def _new(self, loaded: list[LoadedTool]) -> list[LoadedTool]:
        if not self._brings:
            self._listed |= {each.name for each in loaded}
        return [each for each in loaded if each.name not in self._listed and each.name not in self._spaces]

    def _bring(self, loaded: Iterable[LoadedTool]) -> None:
        new = self._new(list(loaded))
        self._spaces |= {each.name: each.name for each in new}
        if tools := definitions(map(shown_of, new), self._define):
            self._items.append({"type": "additional_tools", "role": "developer", "tools": tools})

    def _grouped(self, loaded: Iterable[LoadedTool]) -> list[dict[str, Any]]:
        """The tools of each server as a namespace, in order; one that has no server stands alone."""
        groups: dict[str, list[dict[str, Any]]] = {}
        grouped: list[dict[str, Any]] = []
        for each in loaded:
            space = legal_name(each.server) if each.server else each.name
            self._spaces[each.name] = space
            tools = [{**made, "defer_loading": True} for made in definitions([shown_of(each)], self._define)]
            if not each.server:
                grouped += tools
            elif space in groups:
                groups[space] += tools
            elif tools:
                groups[space] = tools
                about = f"Tools of {each.server}."
                grouped.append({"type": "namespace", "name": space, "description": about, "tools": tools})
        return grouped


def _placed(item: dict[str, Any], listed: Collection[str], spaces: Mapping[str, str]) -> dict[str, Any]:
    """The item; if it is a call, in the namespace where its tool is: none if it is listed."""
    if item.get("type") != "function_call":
        return item
    name, space = str(item.get("name")), item.get("namespace")
    where = "" if name in listed else spaces.get(name, space)
    if where == space or not (where or space):
        return item
    rest = {key: value for key, value in item.items() if key != "namespace"}
    return {**rest, "namespace": where} if where else rest


def refitted(items: Iterable[JsonObject], tools: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """The items of a history that was shortened, without what the provider refuses beside these `tools`."""
    spaces: dict[str, str] = {}
    listed = {tool.get("name") for tool in tools}
    called: set[object] = set()
    kept: list[dict[str, Any]] = []
    for item in items:
        kind, own = str(item.get("type")), dict(item)
        if kind in ("additional_tools", "tool_search_output"):
            own["tools"] = [*_still_brought(own.get("tools") or (), listed, spaces)]
        is_lost = item.get("call_id") not in called if kind.endswith("_output") else False
        if not (is_lost or (kind == "additional_tools" and not own["tools"])):
            kept.append(own)
        called.add(item.get("call_id"))
    names = {str(name) for name in listed}
    return [_placed(item, names, spaces) for item in kept]


def _still_brought(
    tools: Iterable[JsonObject], listed: Collection[object], spaces: dict[str, str], space: str = ""
) -> Iterator[dict[str, Any]]:
    """The tools that an item brings, without those that are listed, or that an earlier item brought."""
    for tool in tools:
        name = str(tool.get("name"))
        if tool.get("type") == "namespace":
            if inner := [*_still_brought(tool.get("tools") or (), listed, spaces, name)]:
                yield {**tool, "tools": inner}
        elif name not in listed and name not in spaces:
            spaces[name] = space or name
            yield dict(tool)


def _content(text: str, parts: Iterable[Part]) -> str | list[dict[str, Any]]:
    """The content of a result: its text, or where images are among its parts, parts with each image in its place."""
    contents: list[dict[str, Any]] = []
    behind: list[dict[str, Any]] = []  # images whose placeholder a layer has cut or changed
    for part in parts:
        if (image := shown_image(part, IMAGE_BYTES)) is None:
            continue
        mark, media_type, data = image
        picture = {"type": "input_image", "image_url": f"data:{media_type};base64,{data}"}
        before, found, after = text.partition(mark)
        if found:
            contents += [*_text_parts(before), picture]
            text = after
        else:
            behind.append(picture)
    return [*contents, *_text_parts(text), *behind] if contents or behind else text


def _text_parts(text: str) -> list[dict[str, Any]]:
    return [{"type": "input_text", "text": stripped}] if (stripped := text.strip("\n")).strip() else []
