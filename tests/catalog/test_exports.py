"""What becomes of tools on their way to a provider, before anything is sent."""

from typing import Any

import pytest

from toolsearch import Tool
from toolsearch.catalog.exports import PROVIDERS, ExportCheck, check_exports
from toolsearch.cli.targets import Target, export_lines, exports_as_json, targets_of
from toolsearch.schemas.targets import RULES
from toolsearch.wires import openai_chat

FINE = Tool(id="fine", name="fine")
NO_OBJECT = Tool(id="odd", name="odd", input_schema={"type": "array"})
LONG = Tool(id="long", name="long", description="x" * 1_025)


def test_a_tool_that_is_sent_as_it_is_has_no_entry() -> None:
    assert list(check_exports([FINE], PROVIDERS)) == []


@pytest.mark.parametrize("target", PROVIDERS)
def test_a_tool_that_cannot_be_expressed_is_named_with_a_reason(target: Any) -> None:
    (told,) = check_exports([FINE, NO_OBJECT], [target])
    assert told == ExportCheck(NO_OBJECT, target, left_out="the arguments must be an object, not of type 'array'")
    assert list(export_lines([told], [target])) == [
        f"{target}: 0 changed, 1 left out",
        "  left out  odd: the arguments must be an object, not of type 'array'",
    ]
    assert exports_as_json([told], [target]) == {
        target: {"changed": [], "left_out": [{"id": "odd", "reason": told.left_out}]}
    }


def test_B23_a_description_beyond_the_limit_of_one_provider_is_a_change_there_only() -> None:
    told = list(check_exports([LONG], PROVIDERS))
    assert [(each.target, each.changes) for each in told] == [
        ("openai", ("the description has 1,025 characters, of which 1,024 are sent",))
    ]
    assert RULES["openai"].description_characters == openai_chat.DESCRIPTION_CHARACTERS


def test_all_means_every_provider_once() -> None:
    assert targets_of([Target.all, Target.gemini]) == list(PROVIDERS)
    assert targets_of([Target.ollama, Target.openai, Target.ollama]) == ["openai", "ollama"]
    assert targets_of([]) == []
