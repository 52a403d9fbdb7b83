"""docs/configuration.md lists every setting, as it is: default, range and environment variable."""

import re
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text("utf-8")


def rows_under(heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a heading, by their first cell without its code marks."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {row[0].strip("`"): row for row in cells}


TABLE = rows_under("Settings")


def test_the_table_has_every_setting_and_no_other_in_order() -> None:
    assert list(TABLE) == list(Settings.model_fields)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_default_is_the_one_of_the_code(name: str) -> None:
    default: Any = Settings.model_fields[name].default
    assert TABLE[name][1] == (f'`"{default}"`' if isinstance(default, str) else f"`{default}`")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_variable_is_the_one_that_is_read(name: str) -> None:
    variable = TABLE[name][3].strip("`")
    default = Settings.model_fields[name].default
    special = {
        "mode": "static",
        "cache": "warm",
        "without_native": "bridge",
        "not_loaded": "run",
        "answer_tokens": "400",
        "examples": "author",
        "sure_from": "0.9",
        "nothing_below": "0.1",
    }
    other = special.get(name, "other" if isinstance(default, str) else "40")
    needed = {TABLE["mode"][3].strip("`"): "bridge"} if name == "action_tool" else {}
    told = getattr(Settings.load(environ={**needed, variable: other}), name)
    assert (",".join(told) if isinstance(told, tuple) else str(told)) in (other, f"{other}.0")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_range_is_the_one_of_the_code(name: str) -> None:
    field = Settings.model_fields[name]
    told = TABLE[name][2]
    annotation = str(field.annotation)
    for choice in re.findall(r"'([^']+)'", annotation) if "Literal" in annotation else ():
        assert f'`"{choice}"`' in told
    for bound in re.findall(r"(?:ge|gt|le)=(\d+)", f"{annotation} {field.metadata}"):
        assert re.search(rf"(?<!\d){bound}(?!\d)", told), f"{name}: {bound} is not in {told!r}"
    assert ("None" in annotation) == ("None" in told)


def test_what_spring_calls_its_properties_is_mapped() -> None:
    mapped = " ".join(rows_under("Coming from Spring AI"))
    for name in (
        "enabled", "tool-index-type", "max-results", "system-message-suffix", "reference-tool-name-accumulation",
        "session-id-key-name", "advisor-order", "eviction.lru-max-sessions", "eviction.ttl",
        "lucene.min-score-threshold",
    ):  # fmt: skip
        assert name in mapped
