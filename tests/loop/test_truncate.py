"""Truncation: no result is longer than a model should read; it is cut where an element ends, and holds no binary."""

import json
from typing import Any

import pytest

from toolsearch import ToolSearch, tool
from toolsearch.errors import SetupError
from toolsearch.events.facts import Answers, ToolReturned
from toolsearch.layers import truncate
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel

BASE64 = "iVBORw0KGgo" * 200_000  # about 2 MB


def shown(drive: Any, value: Any, *layers: Any, name: str = "read") -> str:
    """What a model reads of what a tool returned."""

    def read() -> Any:
        """Read something."""
        return value

    model = ScriptedModel([(name, {})], "Read it.")
    search = ToolSearch([tool(read, name=name)], mode="static")
    mine = Agent(model, search, layers=layers or [truncate()])
    assert drive(mine, "Read", conversation_id="s").text == "Read it."
    answers = model.requests[-1].transcript[-1]
    assert isinstance(answers, Answers)
    assert answers.results[0].status == "ok"
    return answers.results[0].content


def test_a_long_text_is_cut_and_says_what_is_kept_and_what_there_was(drive: Any) -> None:
    """C40, PG-7: 12,000 characters, the note counted."""
    text = shown(drive, "x" * 5_000_000)
    assert len(text) <= 12_000
    assert text.endswith("\n[cut: 11,908 of 5,000,000 characters are shown. Ask for less, or for the part you need.]")
    assert text.startswith("x" * 11_908 + "\n")


def test_a_text_that_fits_stays_as_it_is(drive: Any) -> None:
    text = "line\n" * 2_400
    assert len(text) == 12_000
    assert shown(drive, text) == text


def test_a_text_of_lines_is_cut_at_the_end_of_one(drive: Any) -> None:
    lines = [f"{n}: something happened" for n in range(2_000)]
    *kept, note = shown(drive, "\n".join(lines), truncate(1_000)).split("\n")
    assert kept == lines[: len(kept)]
    assert f"{len(kept)} of 2,000 lines" in note


def test_a_first_line_that_is_too_long_is_cut_inside(drive: Any) -> None:
    text = shown(drive, "short\n" + "y" * 50_000, truncate(1_000))
    assert text.startswith("short\nyyyy")
    assert 900 < len(text) <= 1_000


@pytest.mark.parametrize("limit", [300, 1_000, 12_000])
def test_a_json_list_keeps_whole_elements_and_stays_valid(drive: Any, limit: int) -> None:
    items = [{"id": n, "name": f"Näme {n}", "note": '"quoted"\n'} for n in range(5_000)]
    text = shown(drive, items, truncate(limit))
    assert len(text) <= limit
    *kept, note = json.loads(text)
    assert kept == items[: len(kept)]
    assert f"{len(kept):,} of 5,000 elements" in note
    assert f"of {len(json.dumps(items, ensure_ascii=False)):,} characters" in note


def test_an_object_keeps_its_small_members_and_begins_its_large_ones(drive: Any) -> None:
    value = {
        "total": 5_000,
        "results": [{"id": n} for n in range(5_000)],
        "text": "word " * 10_000,
        "next": "page 2",
        "none": None,
    }
    text = shown(drive, value, truncate(2_000))
    assert len(text) <= 2_000
    kept = json.loads(text)
    assert list(kept) == ["total", "results", "text", "next", "none", "[cut]"]
    assert (kept["total"], kept["next"], kept["none"]) == (5_000, "page 2", None)
    *results, count = kept["results"]
    assert results == value["results"][: len(results)]  # type: ignore[index]
    assert count == f"[{len(results)} of 5,000 elements]"
    assert kept["text"].startswith("word word")
    assert kept["text"].endswith("… [50,000 characters]")


def test_an_object_of_many_members_keeps_the_first(drive: Any) -> None:
    value = {f"key {n}": "v" * 20 for n in range(3_000)}
    kept = json.loads(shown(drive, value, truncate(1_000)))
    note = kept.pop("[cut]")
    assert list(kept) == list(value)[: len(kept)]
    assert len(kept) > 10
    assert f"{len(kept)} of 3,000 members" in note


def test_json_in_a_text_is_cut_as_json_and_broken_json_as_text(drive: Any) -> None:
    text = json.dumps([{"n": n} for n in range(1_000)], indent=2)
    assert isinstance(json.loads(shown(drive, text, truncate(1_000))), list)
    broken = shown(drive, text[:-1], truncate(1_000))
    assert "lines. Ask for less" in broken
    assert len(shown(drive, "[" * 100_000, truncate(1_000))) <= 1_000


@pytest.mark.parametrize(
    "value",
    [["x" * 50_000], [[[[["y" * 30_000]]]]], {"a": {"b": {"c": "z" * 30_000}}}, {"k" * 30_000: 1}, [10**4_000] * 9],
    ids=["one long text", "nested", "nested objects", "a long name", "long numbers"],
)
@pytest.mark.parametrize("limit", [200, 300, 12_000])
def test_the_limit_holds_whatever_the_shape(drive: Any, value: Any, limit: int) -> None:
    assert len(shown(drive, value, truncate(limit))) <= limit


def test_bytes_become_a_placeholder(drive: Any) -> None:
    """C40."""
    assert shown(drive, b"\x89PNG" + bytes(1_000)) == "<binary data, 1,004 bytes>"
    assert json.loads(shown(drive, {"file": b"\x89PNG", "n": 1})) == {"file": "<binary data, 4 bytes>", "n": 1}


@pytest.mark.parametrize("limit", [0, 12_000])
def test_an_image_becomes_a_placeholder_that_names_type_and_size(drive: Any, limit: int) -> None:
    """C40, in the forms of MCP and of the providers."""
    size = f"{len(BASE64) * 3 // 4:,} bytes, not shown>"
    forms: list[tuple[Any, str]] = [
        ({"type": "image", "data": BASE64}, "<image, "),
        ({"type": "image", "data": BASE64, "mimeType": "image/png"}, "<image/png, "),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": BASE64}}, "<image/jpeg, "),
        ({"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{BASE64}"}}, "<image/gif, "),
        ({"type": "resource", "resource": {"mimeType": "application/pdf", "blob": BASE64}}, "<application/pdf, "),
        (f"![chart](data:image/png;base64,{BASE64})", "![chart](<image/png, "),
    ]  # fmt: skip
    for value, begin in forms:
        text = shown(drive, value, truncate(limit))
        assert begin in text
        assert size in text
        assert len(text) < 300


def test_of_a_list_of_contents_text_stays_and_an_unknown_type_becomes_a_placeholder(drive: Any) -> None:
    """C40: an unknown content type ends no turn."""
    contents = [
        {"type": "text", "text": "See the chart."},
        {"type": "image", "data": "A" * 400, "mimeType": "image/png"},
        {"type": "hologram", "beams": list(range(1_000))},
    ]
    told = json.loads(shown(drive, contents))
    assert told[0] == contents[0]
    assert told[1]["data"] == "<image/png, 300 bytes, not shown>"
    assert told[2] == "<content of the unknown type 'hologram', 4,921 characters, not shown>"
    assert shown(drive, {"type": "mystery"}) == '{"type": "mystery"}'


def test_ordinary_values_are_no_binary_data(drive: Any) -> None:
    """A kind, an id or a hash is left alone."""
    value = {"type": "bug", "data": "a short text", "sha256": "A" * 64, "items": [{"type": "feature"}, {"type": "bug"}]}
    assert json.loads(shown(drive, value)) == value
    value = {"type": "hash", "data": "0123456789abcdef" * 4}
    assert json.loads(shown(drive, value)) == value


def test_zero_turns_it_off_and_a_tool_may_have_a_limit_of_its_own(drive: Any) -> None:
    """PG-7."""
    text = "x" * 50_000
    assert shown(drive, text, truncate(0)) == text
    assert shown(drive, text, truncate(1_000, tools={"export": 0}), name="export") == text
    assert len(shown(drive, text, truncate(0, tools={"export": 500}), name="export")) <= 500
    assert len(shown(drive, text, truncate(1_000, tools={"export": 0}), name="other")) <= 1_000


def test_what_the_program_gets_stays_whole(drive: Any) -> None:
    def read() -> list[int]:
        """Read something."""
        return list(range(10_000))

    mine = Agent(ScriptedModel([("read", {})]), ToolSearch([tool(read)], mode="static"), layers=[truncate(500)])
    drive(mine, "Read", conversation_id="s")
    (returned,) = [e for e in mine.conversation("s").journal if isinstance(e, ToolReturned)]
    assert len(returned.content) <= 500
    assert returned.data == list(range(10_000))


def test_what_a_layer_answers_is_cut_too(drive: Any) -> None:
    class Cached:
        name = "cached"

        def around_tool(self, call: Any) -> Any:
            yield call
            return "z" * 20_000

    assert len(shown(drive, "ignored", truncate(), Cached())) <= 12_000


def test_the_answer_of_a_search_is_not_cut(drive: Any) -> None:
    tools = [{"name": f"tool_{n}", "description": f"Sends a letter, way {n}"} for n in range(30)]
    model = ScriptedModel([("search_tools", {"queries": ["letter"]})], "Found.")
    mine = Agent(model, ToolSearch(tools, mode="append"), layers=[truncate(200)])
    drive(mine, "Find", conversation_id="s")
    assert "[cut" not in model.requests[-1].transcript[-1].results[0].content


@pytest.mark.parametrize(
    "options", [{"characters": -1}, {"characters": 100}, {"characters": 2.5}, {"tools": {"a": True}}]
)
def test_a_limit_that_cannot_be_is_refused(options: Any) -> None:
    with pytest.raises(
        SetupError, match=r"must be a (number of characters from 200, or 0 for no limit|whole number of at least 0)"
    ):
        truncate(**options)
