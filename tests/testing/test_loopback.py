"""The provider on this machine, asked by the clients of the real ones: replies whole and in pieces, and refusals."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anthropic import Anthropic, APIStatusError
from google import genai
from google.genai import types
from ollama import Client as OllamaClient
from openai import BadRequestError, OpenAI, RateLimitError

from toolsearch import ToolCall
from toolsearch.testing import Failure, LoopbackProvider
from toolsearch.testing.loopback import anthropic, gemini, ollama, openai_chat, openai_responses, schema_rules

SCRIPT = [["Let me look.", ("c1", "get_weather", {"city": "Roma è bella"})], "It rains in Rome."]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
USER = {"role": "user", "content": "Weather?"}

Said = tuple[str, list[tuple[str, dict[str, Any]]]]


def over_chat(url: str, stream: bool) -> Said:
    client = OpenAI(api_key="none", base_url=url, max_retries=0)
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    if not stream:
        message = client.chat.completions.create(model="m", messages=[USER], tools=tools).choices[0].message  # type: ignore[list-item]
        calls: list[Any] = list(message.tool_calls or [])
        return message.content or "", [(c.function.name, json.loads(c.function.arguments)) for c in calls]
    with client.chat.completions.stream(model="m", messages=[USER], tools=tools) as pieces:  # type: ignore[list-item]
        final: Any = pieces.get_final_completion().choices[0].message
    calls = final.tool_calls or []
    return final.content or "", [(c.function.name, json.loads(c.function.arguments)) for c in calls]


def over_responses(url: str, stream: bool) -> Said:
    client = OpenAI(api_key="none", base_url=url, max_retries=0)
    tools: Any = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": None}]
    if stream:
        with client.responses.stream(model="m", input="Weather?", tools=tools) as pieces:
            reply: Any = pieces.get_final_response()
    else:
        reply = client.responses.create(model="m", input="Weather?", tools=tools)
    calls = [each for each in reply.output if each.type == "function_call"]
    return reply.output_text, [(call.name, json.loads(call.arguments)) for call in calls]


def over_anthropic(url: str, stream: bool) -> Said:
    client = Anthropic(api_key="none", base_url=url, max_retries=0)
    request: Any = {"model": "m", "max_tokens": 9, "messages": [USER]}
    request["tools"] = [{"name": "get_weather", "input_schema": SCHEMA}]
    if stream:
        with client.messages.stream(**request) as pieces:
            reply = pieces.get_final_message()
    else:
        reply = client.messages.create(**request)
    text = "".join(block.text for block in reply.content if block.type == "text")
    return text, [(block.name, block.input) for block in reply.content if block.type == "tool_use"]


def over_gemini(url: str, stream: bool) -> Said:
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
    declared = types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    ask = client.models.generate_content_stream if stream else client.models.generate_content
    answer: Any = ask(model="m", contents="Weather?", config=config)
    parts = [part for each in (answer if stream else [answer]) for part in each.candidates[0].content.parts or []]
    calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    return "".join(part.text for part in parts if part.text), calls


def over_ollama(url: str, stream: bool) -> Said:
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    answer: Any = OllamaClient(host=url).chat(model="m", messages=[USER], tools=tools, stream=stream)
    messages = [each.message for each in (answer if stream else [answer])]
    calls = [call.function for message in messages for call in message.tool_calls or []]
    return "".join(m.content or "" for m in messages), [(c.name, dict(c.arguments)) for c in calls]


CLIENTS = [over_chat, over_responses, over_anthropic, over_gemini, over_ollama]


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider(SCRIPT, stream_pieces=5) as provider:
        yield provider


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ask", CLIENTS)
def test_the_client_of_each_provider_reads_the_script(
    provider: LoopbackProvider, ask: Callable[[str, bool], Said], stream: bool
) -> None:
    assert ask(provider.url, stream) == ("Let me look.", [("get_weather", {"city": "Roma è bella"})])
    assert ask(provider.url, stream) == ("It rains in Rome.", [])
    assert ask(provider.url, stream) == ("Done.", [])
    assert provider.refusals == []
    assert provider.tool_names() == [["get_weather"]] * 3
    assert len(provider.requests) == len(provider.headers) == len(provider.replies) == 3


def test_a_step_may_be_calls_a_body_an_error_or_a_function() -> None:
    body = anthropic.reply(anthropic.Written("From a body."), {})
    steps: list[Any] = [
        [ToolCall("c7", "f", '{"a": 1'), ("g", None)],
        body,
        Failure(529, "Overloaded", {"retry-after": "7"}),
        lambda request: f"asked with {len(request['messages'])} message",
    ]
    with LoopbackProvider(steps) as provider:
        client = Anthropic(api_key="none", base_url=provider.url, max_retries=0)
        ask: Any = lambda: client.messages.create(model="m", max_tokens=9, messages=[USER])  # type: ignore[list-item]  # noqa: E731
        first = ask().content
        assert [(each.id, each.name, each.input) for each in first] == [
            ("c7", "f", {"unparsed": '{"a": 1'}), ("call_1_1", "g", {}),
        ]  # fmt: skip
        assert ask().content[0].text == "From a body."
        with pytest.raises(APIStatusError, match="Overloaded") as caught:
            ask()
        assert (caught.value.status_code, caught.value.response.headers["retry-after"]) == (529, "7")
        assert ask().content[0].text == "asked with 1 message"


def test_a_refused_request_takes_no_step_and_says_why() -> None:
    with LoopbackProvider(["Hello."]) as provider:
        client = OpenAI(api_key="none", base_url=provider.url, max_retries=0)
        with pytest.raises(BadRequestError, match="preceding message with 'tool_calls'"):
            client.chat.completions.create(
                model="m", messages=[{"role": "tool", "tool_call_id": "c9", "content": "no call"}]
            )
        assert len(provider.refusals) == 1
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
        assert answer.choices[0].message.content == "Hello."


def test_an_error_has_the_status_of_the_script() -> None:
    with LoopbackProvider([Failure(429, "slow down")]) as provider, pytest.raises(RateLimitError, match="slow down"):
        over_chat(provider.url, False)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/v2/nothing", b"{}", 404), ("/chat/completions", b"[]", 400), ("/chat/completions", b"{", 400),
     ("/messages", b'{"max_tokens": NaN, "messages": []}', 400), ("/messages", b'{"system": "\\ud800"}', 400),
     ("/messages", b'{"messages": 3, "max_tokens": 1}', 400)],
)  # fmt: skip
def test_what_is_no_request_is_answered_with_an_error(path: str, body: bytes, status: int) -> None:
    with LoopbackProvider() as provider, pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(provider.url + path, data=body, method="POST"), timeout=5)
    with caught.value as error:
        assert error.code == status
        assert "error" in json.loads(error.read())


def test_a_stream_that_breaks_off() -> None:
    class Broken(LoopbackProvider):
        def stream(self, number: int, events: Iterator[str]) -> Iterator[str]:
            yield next(events)
            yield next(events)

    with Broken(["one two three four five six seven"]) as provider:
        client = OpenAI(api_key="none", base_url=provider.url, max_retries=0)
        chunks = [*client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}], stream=True)]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None]


# -- what is refused -----------------------------------------------------------------------------------------------

CALL = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function",
                                             "function": {"name": "f", "arguments": "{}"}}]}  # fmt: skip
USE: Any = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}


def chat(*messages: Any, **more: Any) -> str:
    return openai_chat.refusal({"messages": list(messages), **more})


def messages(*messages: Any, betas: str = "", **more: Any) -> str:
    headers = {"anthropic-beta": betas}
    return anthropic.refusal({"max_tokens": 1, "messages": [USER, *messages], **more}, headers)


def result(content: Any, **more: Any) -> Any:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": content, **more}]}


def tool(name: str, **more: Any) -> Any:
    return {"name": name, "input_schema": {"type": "object"}, **more}


REFERENCE = [{"type": "tool_reference", "tool_name": "g"}]
DEFERRED = [tool("f"), tool("g", defer_loading=True)]
ADDED = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool("g")}}
SYSTEM = {"role": "system", "content": [ADDED]}
BOTH_BETAS = f"{anthropic.CHANGES},{anthropic.INLINE}"
SERVER_CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}

SERVER_DONE = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        (chat(USER, CALL), "must be followed by tool messages"),
        (chat(USER, CALL, USER), "must be followed by tool messages"),
        (chat(USER, {"role": "assistant", "content": None}), "expected a string, got null"),
        (chat({"role": "wizard", "content": "x"}), "Invalid value: 'wizard'"),
        (chat(USER, tools=[]), "empty array"),
        (chat(USER, tools=[{"type": "function", "function": {"name": f"f{n}"}} for n in range(129)]), "array too long"),
        (chat(USER, tools=[{"type": "function", "function": {"name": "f"}}] * 2), "duplicate"),
        (chat(USER, CALL, {"role": "tool", "tool_call_id": "a", "content": "ok"}), ""),
        (messages(USE), "without `tool_result`"),
        (messages(USE, USER), "without `tool_result`"),
        (messages(USE, result("ok")), ""),
        (messages(result("ok")), "unexpected `tool_use_id`"),
        (messages({"role": "user", "content": []}), "content is empty"),
        (messages({"role": "user", "content": " "}), "non-whitespace"),
        (messages(USE, result([])), "is empty"),
        (messages(USE, result([{"type": "image", "source": {}}], is_error=True)), "must be type `text`"),
        (messages({"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}), "signature"),
        (messages(tools=[tool("f"), tool("f")]), "must be unique"),
        (messages({"role": "assistant", "content": [SERVER_CALL]}, USER), "`server_tool_use`"),
        (messages({"role": "assistant", "content": [SERVER_CALL]}), ""),
        (messages({"role": "assistant", "content": [SERVER_CALL, *USE["content"]]}, result("ok"),
                  {"role": "assistant", "content": [SERVER_DONE]}), ""),
        (messages({"role": "assistant", "content": [SERVER_DONE]}), "unexpected `tool_use_id`"),
        (messages(tools=[tool("g", defer_loading=True)]), "At least one tool must have defer_loading=false"),  # AN-7
        (messages(USE, result(REFERENCE), tools=DEFERRED), ""),
        (messages(USE, result(REFERENCE), tools=[tool("f")]), "'g' not found"),  # AN-7
        (messages(USE, result([*REFERENCE, {"type": "text", "text": "x"}]), tools=DEFERRED), "cannot be mixed"),
        (messages(tools=[tool("f"), tool("g", defer_loading=True, cache_control={"type": "ephemeral"})]),
         "cannot have both"),  # AN-7
        (messages({"role": "assistant", "content": [SERVER_CALL, {"type": "web_search_tool_result",
                   "tool_use_id": "srvtoolu_1", "content": []}]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "srvtoolu_1", "content": "x"}]}),
         "unexpected `tool_use_id`"),  # AN-7
        (messages(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5), "maximum of 4"),
        (messages(tools=[tool("f")] + [tool(f"g{n}", defer_loading=True) for n in range(10_001)]), "10000 at most"),
        (messages(SYSTEM), "unexpected role 'system'"),
        (messages(SYSTEM, betas=BOTH_BETAS), ""),
        (messages(SYSTEM, USER, betas=BOTH_BETAS), "must follow a user message and precede"),
        (messages(SYSTEM, betas=anthropic.CHANGES), "tool_definition is not permitted"),
        (messages(SYSTEM, betas=BOTH_BETAS, tools=[tool("g")]), "already"),
    ],
)  # fmt: skip
def test_a_request_is_refused_for_what_the_provider_refuses(reason: str, wanted: str) -> None:
    assert (wanted in reason) if wanted else not reason, reason


def responses(*items: Any, tools: Any = (), **more: Any) -> str:
    return openai_responses.refusal({"input": list(items), "tools": list(tools), **more})


F = {"type": "function", "name": "f", "parameters": {"type": "object"}}
F_CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
F_DONE = {"type": "function_call_output", "call_id": "a", "output": "ok"}
F_COMES = {"type": "additional_tools", "role": "developer", "tools": [F]}
SPACE = {"type": "namespace", "name": "s", "description": "About s.", "tools": [F]}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": SCHEMA}
SEARCHED = {"type": "tool_search_call", "call_id": "b", "execution": "client", "arguments": {}}
FOUND = {"type": "tool_search_output", "call_id": "b", "execution": "client", "tools": [SPACE]}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
CHOICE = {"type": "function", "name": "f"}


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        (responses(F_CALL, F_DONE, tools=[F]), ""),
        (responses(F_CALL, tools=[F]), "No tool output found"),
        (responses(F_CALL, USER, F_DONE, tools=[F]), "No tool output found"),
        (responses(F_DONE, tools=[F]), "No tool call found"),
        (responses(F_CALL, F_DONE), ""),
        (responses({**F_CALL, "namespace": "f"}, F_DONE), "Unknown namespace"),
        (responses(F_COMES, {**F_CALL, "namespace": "f"}, F_DONE), ""),  # OA-8
        (responses(F_COMES, F_CALL, F_DONE), "Missing namespace"),
        (responses(F_CALL, F_DONE, F_COMES), ""),
        (responses({**F_CALL, "namespace": "f"}, F_DONE, F_COMES), ""),
        (responses({**F_COMES, "role": "user"}), "expected 'developer'"),
        (responses(F_COMES, tools=[F]), "declared twice"),
        (responses(F_CALL, F_DONE, tools=[SPACE]), "Missing namespace"),
        (responses({**F_CALL, "namespace": "s"}, F_DONE, tools=[SPACE]), ""),
        (responses(tools=[{**SPACE, "description": ""}]), "description of the namespace"),  # OA-3
        (responses(tools=[{**F, "defer_loading": True}]), "tool_search"),  # OA-9
        (responses(tools=[{**SEARCH, "description": None}]), "description of a tool_search"),
        (responses(SEARCHED, FOUND, {**F_CALL, "namespace": "s"}, F_DONE, tools=[SEARCH]), ""),  # OA-6
        (responses(SEARCHED, {**F_DONE, "call_id": "b"}, tools=[SEARCH]), "No tool call found"),
        (responses(tools=[F, F]), "declared twice"),
        (responses(tool_choice="required"), "only allowed when 'tools'"),
        (responses(tool_choice=CHOICE, tools=[F]), ""),
        (responses(F_COMES, tool_choice=CHOICE, tools=[SEARCH]), "'f' not found in 'tools'"),
        (responses({"role": "user", "content": [{"type": "output_text", "text": "x"}]}), "'output_text'"),
        (responses({"role": "tool", "content": "x"}), "'tool'"),
        (responses({**F_CALL, "parsed_arguments": {}}, F_DONE), "parsed_arguments"),
        (responses({**F_CALL, "name": "a b"}, F_DONE), "does not match pattern"),
        (responses(F_CALL, {**F_DONE, "output": {}}), "expected a string or an array"),
        (responses({**F_CALL, "id": "x"}, F_DONE, {**F_CALL, "id": "x"}, F_DONE), "Duplicate item"),
        (responses(THOUGHT, F_CALL, F_DONE), ""),
        (responses(THOUGHT, F_CALL, F_DONE, store=False), "not found"),
        (responses({**THOUGHT, "encrypted_content": "g"}, USER, store=False), "without its required following item"),
    ],
)
def test_responses_are_refused_for_what_the_provider_refuses(reason: str, wanted: str) -> None:
    assert (wanted in reason) if wanted else not reason, reason


def contents(*contents: Any, **more: Any) -> str:
    return gemini.refusal({"contents": list(contents), **more})


ASKED = {"role": "user", "parts": [{"text": "?"}]}
UNSIGNED = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
CALLED = {"role": "model", "parts": [{**UNSIGNED["parts"][0], "thoughtSignature": "c2ln"}]}  # type: ignore[dict-item]
ANSWERED = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        (contents(ASKED, CALLED, ANSWERED), ""),
        (contents(ASKED, UNSIGNED, ANSWERED), "missing a thought_signature"),
        (contents(ASKED, UNSIGNED, ANSWERED, {"role": "model", "parts": [{"text": "."}]}, ASKED), ""),
        (contents(ASKED, {"role": "model", "parts": [{"text": "."}]}, CALLED, ANSWERED), "immediately after a user"),
        (contents(ASKED, CALLED), "have no responses"),
        (contents(ASKED, CALLED, ASKED), "number of function response parts"),
        (contents({"role": "tool", "parts": [{"text": "x"}]}), "valid role"),
        (contents({"role": "user", "parts": []}), "must not be empty"),
        (contents(ASKED, tools=[{"functionDeclarations": [{"name": "1f", "parameters": SCHEMA}]}]), "invalid function"),
        (ollama.refusal({"messages": [CALL]}), "cannot unmarshal string"),
        (ollama.refusal({"messages": [USER]}), ""),
    ],
)
def test_gemini_and_ollama_refuse_what_they_cannot_read(reason: str, wanted: str) -> None:
    assert (wanted in reason) if wanted else not reason, reason


ARRAY = {"type": "object", "properties": {"a": {"type": "array"}}}
OLD = {"type": "object", "properties": {"a": {"type": "number", "exclusiveMinimum": True}}}
KEY = {"type": "object", "properties": {"Date<": {"type": "string"}}}


@pytest.mark.parametrize(
    ("rule", "schema", "wanted"),
    [
        (schema_rules.openai, ARRAY, "array schema missing items at #/properties/a"),
        (schema_rules.openai, {"type": "object", "anyOf": []}, "'anyOf' is not permitted at the top level"),
        (schema_rules.openai, SCHEMA, ""),
        (schema_rules.openai_strict, SCHEMA, "additionalProperties must be false"),
        (schema_rules.anthropic, KEY, "property keys should match"),
        (schema_rules.anthropic, OLD, "exclusiveMinimum is no number at #/properties/a"),
        (schema_rules.anthropic, ARRAY, ""),
        (schema_rules.gemini, {"type": "object", "properties": {"a": {"const": 1}}}, "unknown name 'const'"),
        (schema_rules.gemini_json, OLD, "unsupported keyword 'exclusiveMinimum'"),
        (schema_rules.ollama, {"properties": {}}, "parameters.type"),
        (schema_rules.ollama, SCHEMA, ""),
    ],
)
def test_each_provider_has_rules_for_schemas(rule: Any, schema: Any, wanted: str) -> None:
    found = [*rule("f", "About f.", schema)]
    assert any(wanted in each for each in found) if wanted else not found, found
