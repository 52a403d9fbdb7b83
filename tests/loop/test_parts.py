"""Results with parts on their way: into the journal and back, through the layers, to the provider, never into a log."""

import base64
import json
import logging
from typing import Any

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent

from tests.torture.results import results
from toolsearch import Agent, ToolCall, ToolResult, ToolSearch
from toolsearch.calls import AudioPart, ImagePart, JsonPart, Part, TextPart
from toolsearch.events import Answers, Noted, ToolReturned, UserSaid
from toolsearch.layers import Completed, history, logs, memory, preflight, processors, redact, trace, truncate
from toolsearch.stores import SqliteStore
from toolsearch.testing import ScriptedModel
from toolsearch.wires import anthropic, openai_chat

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 30_000).decode()
SHOWN = "<image/png, 30,008 bytes, not shown>"
CHART = {
    "content": [
        {"type": "text", "text": "The chart of acme-7:"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "text", "text": "It is rising."},
    ],
    "structuredContent": {"of": "acme-7", "rising": True},
}
TEXT = f'The chart of acme-7:\n{SHOWN}\nIt is rising.\n{{"of": "acme-7", "rising": true}}'


def agent(value: Any = CHART, **options: Any) -> Agent:
    tools = [{"name": "draw", "run": lambda: value, **options.pop("marks", {})}]
    return Agent(ScriptedModel([("draw", {})], "Done."), ToolSearch(tools, mode="static"), **options)


def answer(of: Agent) -> ToolReturned:
    return next(fact for fact in of.conversation("s").journal if isinstance(fact, ToolReturned))


def test_parts_are_stored_once_and_read_back(drive: Any, tmp_path: Any) -> None:
    made = agent(store=SqliteStore(tmp_path / "a.db"))
    drive(made, "Draw", conversation_id="s")
    kept = answer(Agent(ScriptedModel(), made.parts.search, store=SqliteStore(tmp_path / "a.db")))
    assert (kept.status, kept.content, kept.data) == ("ok", TEXT, None)
    assert [type(part).__name__ for part in kept.parts] == ["TextPart", "ImagePart", "TextPart", "JsonPart"]
    assert kept.parts[1] == ImagePart(PNG, "image/png")
    assert json.dumps(list(made.store.load("s"))).count(PNG) == 1


def test_J23_an_error_is_one_in_the_journal_too(drive: Any) -> None:
    failed = CallToolResult(content=[TextContent(type="text", text="no such file")], is_error=True)
    made = agent(failed)
    drive(made, "Draw", conversation_id="s")
    assert answer(made) == ToolReturned(
        "c0_0", "failed", "no such file", None, "", answer(made).seconds, answer(made).at
    )


def test_a_terminal_tool_gives_its_structured_content_as_the_value(drive: Any) -> None:
    made = agent(marks={"terminal": True})
    result = drive(made, "Draw", conversation_id="s")
    assert (result.text, result.value) == (TEXT, {"of": "acme-7", "rising": True})


def test_what_a_tool_says_itself_keeps_its_data(drive: Any) -> None:
    made = agent(ToolResult("", "", "ok", "drawn", {"size": 3}, parts=(ImagePart(PNG, "image/png"),)))
    drive(made, "Draw", conversation_id="s")
    assert (answer(made).content, answer(made).data) == ("drawn", {"size": 3})


def blocks_of(message: Any) -> list[Any]:
    return [block if block["type"] == "text" else block["type"] for block in message["content"][0]["content"]]


def test_the_provider_that_takes_images_gets_them_in_their_place_and_the_other_a_placeholder(drive: Any) -> None:
    made = agent()
    drive(made, "Draw", conversation_id="s")
    transcript = made.conversation("s").transcript
    messages = anthropic.messages_for(transcript)
    assert messages == anthropic.messages_for(transcript)
    assert blocks_of(messages[2]) == [
        {"type": "text", "text": "The chart of acme-7:"},
        "image",
        {"type": "text", "text": 'It is rising.\n{"of": "acme-7", "rising": true}'},
    ]
    assert messages[2]["content"][0]["content"][1]["source"] == {
        "type": "base64", "media_type": "image/png", "data": PNG,
    }  # fmt: skip
    sent = openai_chat.messages_for(transcript)
    assert sent[2]["content"] == TEXT
    assert PNG not in json.dumps(sent)


def test_truncate_cuts_text_and_not_images(drive: Any) -> None:
    made = agent([TextPart("line\n" * 9_000), ImagePart(PNG, "image/png")], layers=[truncate(500)])
    drive(made, "Draw", conversation_id="s")
    kept = answer(made)
    assert len(kept.content) <= 500
    assert kept.parts == (ImagePart(PNG, "image/png"),)
    content = blocks_of(anthropic.messages_for(made.conversation("s").transcript)[2])
    assert content[-1] == "image"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            {"file": {"type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAABXQVZF"}},
            "<audio/wav, 12 bytes, not shown>",
        ),
        ({"page": {"mimeType": "image/png", "blob": "QUJD"}}, "<image/png, 3 bytes, not shown>"),
        ({"page": {"mimeType": "text/plain", "data": "hello"}}, "hello"),
        ({"page": {"type": "note", "data": "abcd"}}, "abcd"),
    ],
)  # fmt: skip
def test_K16_truncate_knows_short_data_by_its_type(drive: Any, value: Any, told: str) -> None:
    made = agent(value, layers=[truncate()])
    drive(made, "Draw", conversation_id="s")
    assert f'"{told}"' in answer(made).content


def test_processors_rewrite_the_texts_of_parts_and_leave_data(drive: Any) -> None:
    made = agent(layers=[processors(stored=[redact(r"acme-\d", by="[gone]")])])
    drive(made, "Draw", conversation_id="s")
    kept = answer(made)
    assert "acme-7" not in repr(kept)
    assert kept.parts[1] == ImagePart(PNG, "image/png")
    assert kept.parts[-1] == JsonPart({"of": "[gone]", "rising": True})
    into = agent(layers=[processors(into=[redact(r"acme-\d")])])
    drive(into, "Draw", conversation_id="s")
    model = into.parts.model
    read = [m for m in model.requests[-1].transcript if isinstance(m, Answers)]  # type: ignore[attr-defined]
    assert "acme-7" not in repr(read)
    assert answer(into).content == TEXT


def test_nothing_of_an_image_reaches_a_log_or_a_trace(
    drive: Any, caplog: pytest.LogCaptureFixture, tmp_path: Any
) -> None:
    written = tmp_path / "trace.txt"
    with written.open("w") as file, caplog.at_level(logging.DEBUG, "toolsearch"):
        made = agent(layers=[logs(characters=100_000)], observe=trace(file, characters=100_000))
        drive(made, "Draw", conversation_id="s")
    for text in (caplog.text, written.read_text(), repr(made.conversation("s").journal), repr(answer(made))):
        assert SHOWN in text or "ImagePart" in text
        assert PNG[:200] not in text


def test_history_counts_an_image_and_not_its_characters(drive: Any) -> None:
    """An image costs a provider about as much as a page, not what its Base64 would as text."""
    within = agent(layers=[history(tokens=1_500)])
    drive(within, "Draw", conversation_id="s")
    assert len(within.conversation("s").transcript) == 4
    drive(within, "And now?", conversation_id="s")
    model = within.parts.model
    assert any(isinstance(m, Answers) for m in model.requests[-1].transcript)  # type: ignore[attr-defined]
    many: list[Part] = [ImagePart(PNG, "image/png")] * 2
    beyond = agent(many, layers=[history(tokens=1_500)])
    drive(beyond, "Draw", conversation_id="s")
    drive(beyond, "And now?", conversation_id="s")
    model = beyond.parts.model
    assert not any(isinstance(m, Answers) for m in model.requests[-1].transcript)  # type: ignore[attr-defined]


def test_history_drops_images_where_what_has_to_stay_is_too_long(drive: Any) -> None:
    made = agent([ImagePart(PNG, "image/png")] * 5, layers=[history(tokens=1_500)])
    drive(made, "Draw", conversation_id="s")
    model = made.parts.model
    (shown,) = [m for m in model.requests[-1].transcript if isinstance(m, Answers)]  # type: ignore[attr-defined]
    assert shown.results[0].parts == ()
    assert shown.results[0].content.count(SHOWN) == 5
    assert len(answer(made).parts) == 5


def test_a_layer_that_gives_no_parts_does_not_break_the_conversation(drive: Any) -> None:
    class Odd:
        name = "odd"

        def around_tool(self, request: Any) -> Any:
            yield request
            parts: Any = [7, TextPart("y"), ImagePart(b"", 5)]  # type: ignore[arg-type]
            return ToolResult("c0_0", "draw", "ok", "x", parts=parts)

    made = agent(layers=[Odd()])
    drive(made, "Draw", conversation_id="s")
    assert answer(made).parts == (TextPart("y"),)


def test_memory_leaves_parts_with_the_work_of_earlier_turns(drive: Any) -> None:
    made = agent(layers=[memory(keep="answers")])
    drive(made, "Draw", conversation_id="s")
    drive(made, "And now?", conversation_id="s")
    model = made.parts.model
    assert not any(isinstance(m, Answers) for m in model.requests[-1].transcript)  # type: ignore[attr-defined]
    assert answer(made).parts


def test_what_a_preflight_completes_has_parts_and_its_note_has_none(drive: Any) -> None:
    async def check(call: Any, phase: str) -> Any:
        return Completed(CHART)

    made = agent(layers=[preflight(check)])
    if not drive.is_async:
        return
    drive(made, "Draw", conversation_id="s")
    assert answer(made).parts[1] == ImagePart(PNG, "image/png")
    notes = [fact for fact in made.conversation("s").journal if isinstance(fact, Noted)]
    assert len(repr(notes)) < 1_000


def image_block(part: Part, status: Any = "ok") -> Any:
    shown = ToolReturned("c", status, "x", parts=(part,))
    return anthropic.messages_for([UserSaid("a"), Answers((shown,))])[-1]["content"][-1]["content"]


def test_an_image_that_the_provider_would_refuse_stays_a_placeholder() -> None:
    """It would be refused in every later request of the conversation too."""
    gif = base64.b64encode(b"GIF89a" + b"0" * 20).decode()
    assert image_block(ImagePart(gif, "image/png"))[-1]["source"]["media_type"] == "image/gif"
    refused: list[Part] = [
        ImagePart("not base64!", "image/png"), ImagePart("", "image/png"), ImagePart("QUJD", "image/png"),
        ImagePart(b"<svg/>", "image/svg+xml"), ImagePart(b"\x89PNG\r\n\x1a\n" + b"0" * 5_000_001, "image/png"),
        AudioPart(PNG, "image/png"), TextPart("x"),
    ]  # fmt: skip
    for part in refused:
        assert image_block(part) == "x", part
    assert image_block(ImagePart(PNG, "image/png"), "failed") == "x"  # in an error, the provider takes text only


def test_own_loops_show_images_too() -> None:
    search = ToolSearch([{"name": "draw"}], run=lambda *_: CallToolResult(
        content=[ImageContent(type="image", data=PNG, mime_type="image/png")]), not_loaded="run")  # fmt: skip
    call = ToolCall("c", "draw", {})
    result = search.session().handle(call)
    assert [b["type"] for b in anthropic.results_for([(call, result)])[0]["content"][0]["content"]] == ["image"]
    assert openai_chat.results_for([(call, result)])[0]["content"] == SHOWN


def test_whatever_a_tool_returns_or_raises_is_an_answer() -> None:
    """48 kinds in both drivers: circles, 20 MB, texts that raise, forged results, odd parts, any exception."""
    outcome = results(1, 0)
    assert outcome.violations == []
    assert outcome.figures["answers"] == 2 * outcome.figures["calls"]
