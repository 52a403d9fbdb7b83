"""docs/reference-systems.md answers every row that concerns this version: what we do and where, or why not."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference-systems.md").read_text("utf-8")
ROWS = {
    cells[0]: cells
    for line in PAGE.splitlines()
    if line.startswith("| ") and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) >= 3
}
IDS = [f"SA-{n}" for n in range(1, 50)] + ["SA-35b", "SA-35c"]
IDS += [f"BK-{n}" for n in range(1, 9)] + [f"X{n}" for n in range(1, 10)]
IDS += [f"PG-{n}" for n in range(1, 24)] + [f"NA-{n}" for n in range(1, 17)]
IDS += [f"AN-{n}" for n in range(1, 21)] + [f"OA-{n}" for n in range(1, 11)]
OF_THE_LOOP = [f"SA-{n}" for n in range(38, 50)] + [f"BK-{n}" for n in range(2, 7)]
OF_THE_LOOP += [row for row in IDS if row.startswith(("PG-", "NA-")) and row not in ("PG-17", "PG-23", "NA-16")]


@pytest.mark.parametrize("row", IDS)
def test_a_row_says_what_we_do_and_where(row: str) -> None:
    assert row in ROWS
    *told, where = ROWS[row][1:]
    without_place = re.search(r"declined|not in this version|see x\d", " ".join(told), re.IGNORECASE)
    assert where != "-" or without_place, f"{row} says neither where it is shown nor why it is not"


@pytest.mark.parametrize("row", [row for row in IDS if "not in this version" in " ".join(ROWS.get(row, ()))])
def test_what_is_not_in_this_version_has_a_reason(row: str) -> None:
    assert "because" in " ".join(ROWS[row])


def test_an_id_has_one_row() -> None:
    ids = re.findall(r"^\| ((?:SA-|BK-|PG-|NA-|AN-|OA-|X)\d+\w?) \|", PAGE, re.MULTILINE)
    assert sorted(ids) == sorted(IDS)


def named_in_tests() -> set[str]:
    """The rows that tests name: "NA-8", "NA-8 to NA-10", and in a function's name NA8."""
    here = Path(__file__)
    text = "\n".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py") if file != here)
    found = set(re.findall(r"\b(?:SA|PG|NA|BK)-\d+\b", text))
    for kind, first, last in re.findall(r"\b(SA|PG|NA|BK)-(\d+) to (?:SA|PG|NA|BK)-(\d+)", text):
        found |= {f"{kind}-{n}" for n in range(int(first), int(last) + 1)}
    return found | {f"{kind}-{n}" for kind, n in re.findall(r"(?<=_)(SA|PG|NA|BK)(\d+)(?=_)", text)}


NAMED = named_in_tests()


@pytest.mark.parametrize("row", OF_THE_LOOP)
def test_a_row_of_the_loop_is_proved_by_a_test_that_names_it(row: str) -> None:
    assert row in NAMED
