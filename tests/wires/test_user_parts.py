"""What a user shows, in the format of one provider, reaches another one that the conversation moves to."""

import json
from typing import Any

import anthropic as anthropic_sdk
import pytest
from google.genai import types as gemini_types
from openai.types.chat import ChatCompletionUserMessageParam
from pydantic import TypeAdapter

from toolsearch.events.facts import UserSaid
from toolsearch.wires import anthropic, gemini, ollama, openai_chat, openai_responses

PNG = "iVBORw0KGgoAAAAN"
URL = f"data:image/png;base64,{PNG}"
FORMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "openai_chat": (openai_chat, {"type": "image_url", "image_url": {"url": URL}}),
    "openai_responses": (openai_responses, {"type": "input_image", "image_url": URL}),
    "anthropic": (
        anthropic,
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    ),
    "gemini": (gemini, {"inline_data": {"mime_type": "image/png", "data": PNG}}),
    "ollama": (ollama, {"images": [PNG]}),
}


def said(wire: Any, *parts: dict[str, Any]) -> Any:
    (message,) = wire.messages_for([UserSaid("See?", parts=parts)])
    return message


@pytest.mark.parametrize("of", FORMS)
@pytest.mark.parametrize("to", FORMS)
def test_an_image_in_any_format_is_one_in_every_other(of: str, to: str) -> None:
    wire, own = FORMS[to]
    message = said(wire, FORMS[of][1])
    held = message if to == "ollama" else (message.get("parts") or message["content"])[-1]
    assert {key: held[key] for key in own} == own
    if to == "gemini":
        gemini_types.Content.model_validate(message)
    if to == "openai_chat":
        TypeAdapter(ChatCompletionUserMessageParam).validate_python(message)
    if to == "anthropic":
        TypeAdapter(anthropic_sdk.types.MessageParam).validate_python(message)


@pytest.mark.parametrize("to", FORMS)
@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "more"},
        {"type": "input_text", "text": "more"},
        {"text": "more"},
    ],
)
def test_a_text_in_any_format_is_one_in_every_other(part: dict[str, Any], to: str) -> None:
    message = said(FORMS[to][0], part)
    if to == "ollama":
        assert message["content"] == "See?\nmore"
        return
    held = (message.get("parts") or message["content"])[-1]
    kind = {"gemini": None, "openai_responses": "input_text"}.get(to, "text")
    if (to, part.get("type")) not in {("anthropic", None), ("openai_chat", None)}:
        assert held == ({"text": "more"} if kind is None else {"type": kind, "text": "more"})
    assert held["text"] == "more"


@pytest.mark.parametrize("to", FORMS)
@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
        {"inline_data": {"mime_type": "application/pdf", "data": "JVBE"}},
        {"type": "image", "source": 5},
        {"type": "image_url", "image_url": {"url": "data:nonsense"}},
        {"images": []},
        {"inline_data": 5},
    ],
)
def test_what_another_provider_cannot_be_shown_is_named(part: dict[str, Any], to: str) -> None:
    message = said(FORMS[to][0], part)
    if to == "ollama":
        assert "not shown]" in message["content"] or part == {"images": []}
    else:
        assert part in (message.get("parts") or message["content"]) or "not shown]" in json.dumps(message)


@pytest.mark.parametrize(
    ("to", "sent"),
    [
        ("openai_responses", {"type": "input_image", "image_url": "https://example.org/a.png"}),
        ("anthropic", {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}),
        ("gemini", {"text": "[image_url, not shown]"}),
    ],
)
def test_an_address_goes_on_to_those_who_fetch_it(to: str, sent: dict[str, Any]) -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    message = said(FORMS[to][0], part)
    assert (message.get("parts") or message["content"])[-1] == sent


@pytest.mark.parametrize("wire", [openai_chat, anthropic])
def test_a_part_of_a_type_that_is_not_known_here_stays_as_it_is(wire: Any) -> None:
    part = {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}
    assert part in said(wire, part)["content"]
