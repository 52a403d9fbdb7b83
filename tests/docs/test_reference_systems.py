"""docs/reference-systems.md answers every row that concerns this version: what we do and where, or why not."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference-systems.md").read_text("utf-8")
ROWS = {
    cells[0]: cells
    for line in PAGE.splitlines()
    if line.startswith("| ") and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) >= 3
}
IDS = [f"SA-{n}" for n in range(1, 38)] + ["SA-35b", "SA-35c", "PG-13", "PG-20", "BK-1", "BK-4", "BK-7", "BK-8"]
IDS += [f"X{n}" for n in range(1, 10)]


@pytest.mark.parametrize("row", IDS)
def test_a_row_says_what_we_do_and_where(row: str) -> None:
    assert row in ROWS
    *told, where = ROWS[row][1:]
    without_place = re.search(r"declined|not in this version|see x\d", " ".join(told), re.IGNORECASE)
    assert where != "-" or without_place, f"{row} says neither where it is shown nor why it is not"


def test_an_id_has_one_row() -> None:
    ids = re.findall(r"^\| ((?:SA-|PG-|BK-|X)\d+\w?) \|", PAGE, re.MULTILINE)
    assert sorted(ids) == sorted(IDS)
