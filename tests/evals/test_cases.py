"""Data sets: both forms are read, and what is wrong with one is told in sentences."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolsearch_datasets
from toolsearch import SetupError
from toolsearch.catalog.examples import Examples
from toolsearch_evals.data.cases import Case, Dataset, load, only, read_samples, require_gold
from toolsearch_evals.data.check import problems


def lines(file: Path, *entries: Any) -> None:
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")


@pytest.fixture
def research(tmp_path: Path) -> Path:
    folder = tmp_path / "public"
    folder.mkdir()
    lines(
        folder / "tools.jsonl",
        {"name": "mail_send", "native_name": "send", "description": "Sends a mail.", "server": "mail"},
        {"name": "chat_send", "native_name": "send", "description": "Sends a chat message.", "server": "chat"},
        {"name": "broken", "description": "No schema of an object.", "input_schema": {"type": "string"}},
    )
    lines(
        folder / "queries.jsonl",
        {"id": "1", "query": "mail ana", "gold": ["mail_send"]},
        {
            "id": "2",
            "query": "tell ana",
            "gold": ["mail_send", "chat_send"],
            "gold_groups": [["mail_send", "chat_send"]],
        },
        {"id": "3", "query": "mail and chat", "gold": ["mail_send", "chat_send"]},
    )
    lines(folder / "queries_agent.jsonl", {"id": "a", "query": "send mail", "gold": ["mail_send"]})
    return folder


@pytest.fixture(scope="module")
def commons() -> Dataset:
    return load("commons")[0]


def test_the_shipped_set_is_in_order(commons: Dataset) -> None:
    assert problems(commons) == []
    assert len(commons.catalog()) >= 250
    assert len(commons.cases) >= 250


def test_the_shipped_set_has_example_queries_for_every_tool_as_it_is_defined(commons: Dataset) -> None:
    examples, catalog = Examples.load(commons.folder / "examples.jsonl"), commons.catalog()
    assert list(examples.entries) == [tool.id for tool in catalog]
    assert examples.stale(catalog) == ()
    assert all(7 < len(entry.queries) < 10 and entry.by and entry.date for entry in examples.entries.values())


def test_the_shipped_set_has_cases_to_learn_from_and_cases_in_other_languages(commons: Dataset) -> None:
    assert {case.split for case in commons.cases} == {"train", "dev", "test"}
    for split in ("train", "dev", "test"):
        spoken = {case.language for case in commons.cases if case.split == split}
        assert spoken == {"de", "en", "es", "fr", "ja", "pt", "ru", "zh"}


def test_every_shipped_set_has_a_folder_with_its_files() -> None:
    for name in toolsearch_datasets.names():
        assert {"tools.jsonl", "cases.jsonl", "CARD.md"} <= {f.name for f in toolsearch_datasets.path(name).iterdir()}
    with pytest.raises(LookupError, match="no data set 'nope'; there are: 'commons'"):
        toolsearch_datasets.path("nope")


def test_the_research_form_keeps_the_unique_name_as_id_and_shows_the_native_one(research: Path) -> None:
    plain, agent = load(research)
    catalog = plain.catalog()
    assert catalog["mail_send"].name == catalog["chat_send"].name == "send"
    assert catalog["mail_send"].server == "mail"
    assert [case.gold for case in plain.cases] == [
        (("mail_send",),),
        (("mail_send", "chat_send"),),
        (("mail_send",), ("chat_send",)),
    ]
    assert [case.kind for case in plain.cases] == ["single", "single", "multi"]
    assert (agent.name, agent.cases[0].wording) == ("public/queries_agent", "agent")


def test_a_definition_that_cannot_be_used_is_reported(research: Path) -> None:
    dataset = load(research)[0]
    assert [entry.name for entry in dataset.catalog().quarantined] == ["broken"]
    assert any("'broken' cannot be used" in problem for problem in problems(dataset))


def test_samples_cut_each_set_to_its_ids(research: Path, tmp_path: Path) -> None:
    file = tmp_path / "samples.json"
    file.write_text('{"public/queries": ["3", "1"], "elsewhere/queries": ["9"]}', "utf-8")
    kept = only(load(research), read_samples(file))
    assert [[case.id for case in dataset.cases] for dataset in kept] == [["1", "3"]]
    assert [case.id for case in only(load(research), ["2"])[0].cases] == ["2"]
    with pytest.raises(SetupError, match="'public/queries' names '9'"):
        only(load(research), {"public/queries": ["9"]})
    with pytest.raises(SetupError, match="holds no case"):
        only(load(research), {"other/queries": ["1"]})


def test_unreadable_data_is_named(research: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no folder 'nowhere'; shipped are: 'commons'"):
        load("nowhere")
    with pytest.raises(SetupError, match=r"has no tools\.jsonl"):
        load(tmp_path)
    (research / "queries.jsonl").write_text('{"id": "1"}\n', "utf-8")
    with pytest.raises(SetupError, match=r"queries\.jsonl', line 1, has no 'query'"):
        load(research)
    (research / "queries.jsonl").write_text("\n[1]\n", "utf-8")
    with pytest.raises(SetupError, match=r"queries\.jsonl', line 2, is not a JSON object"):
        load(research)
    (research / "tools.jsonl").write_text('{"name":', "utf-8")
    with pytest.raises(SetupError, match=r"tools\.jsonl', line 1, is not valid JSON"):
        load(research)
    (research / "tools.jsonl").write_bytes(b'{"name": "\xff"}')
    with pytest.raises(SetupError, match="cannot be read as UTF-8"):
        load(research)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"gold": (("github/nope",),)}, "names 'github/nope', which is not a tool of the set"),
        ({"gold": ((),)}, "an empty group"),
        ({"gold": (("github/issue_write",), ("github/issue_write",))}, "has 'github/issue_write' twice in its gold"),
        ({"gold": (("x", "y"), ("z",), ("y", "x"))}, "has 'x' or 'y' twice in its gold; it counts once"),
        ({"steps": ("one", "two")}, "2 steps for 1 needed tool"),
        ({"kind": "guess"}, "unknown kind 'guess'"),
        ({"kind": "unanswerable"}, "of kind 'unanswerable' with 1 needed tool"),
        ({"kind": "multi"}, "needs fewer than two tools"),
        ({"wording": "robot"}, "unknown wording 'robot'"),
        ({"split": "exam"}, "unknown split 'exam'"),
        ({"query": " "}, "has no query"),
    ],
)
def test_a_wrong_label_is_told(commons: Dataset, change: dict[str, Any], told: str) -> None:
    """K22, where a need is there twice."""
    case = replace(next(c for c in commons.cases if len(c.gold) == 1), **change)
    assert any(told in problem for problem in problems(replace(commons, cases=(case, *commons.cases))))


def test_a_case_need_not_say_its_kind(tmp_path: Path) -> None:
    lines(tmp_path / "tools.jsonl", {"name": "send"})
    lines(
        tmp_path / "cases.jsonl",
        {"id": "1", "query": "send it", "gold": [["send"]]},
        {"id": "2", "query": "x", "gold": []},
    )
    (loaded,) = load(tmp_path)
    assert problems(loaded) == []


def test_a_set_that_differs_from_the_manifest_is_told(commons: Dataset) -> None:
    fewer = replace(commons, cases=commons.cases[1:], definitions=commons.definitions[1:])
    found = problems(fewer)
    assert any(p.startswith("the manifest says") and "cases; there are" in p for p in found)
    assert any("case id" in p for p in problems(replace(commons, cases=(*commons.cases, commons.cases[0]))))


def test_a_case_is_english_unless_it_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "tools.jsonl").write_text('{"name": "send"}\n')
    case = {"query": "send", "gold": [["send"]]}
    lines(tmp_path / "cases.jsonl", {"id": "1", **case}, {"id": "2", "language": "pt-br", "split": "train", **case})
    (loaded,) = load(tmp_path)
    assert [each.language for each in loaded.cases] == ["en", "pt-br"]
    assert not any("language" in problem or "split 'train';" in problem for problem in problems(loaded))


def test_a_set_without_unanswerable_requests_is_told(research: Path) -> None:
    """F08"""
    assert any("0 of 3 cases cannot be answered" in problem for problem in problems(load(research)[0]))


def test_an_agent_searches_for_the_steps_of_a_case() -> None:
    assert Case("1", "do both", steps=("do one", "do other")).queries == ("do one", "do other")
    assert Case("1", "do it").queries == ("do it",)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"id": "1", "query": None, "gold": []}, "the 'query' must be text, not None"),
        ({"id": 7, "query": "mail", "gold": []}, "the 'id' must be text, not 7"),
    ],
)
def test_a_case_without_text_is_refused_by_its_line(tmp_path: Path, line: dict[str, Any], told: str) -> None:
    (tmp_path / "tools.jsonl").write_text('{"name": "send"}\n')
    (tmp_path / "cases.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(SetupError, match=told):
        load(tmp_path)


def test_a_case_counts_once_and_its_gold_is_a_tool(tmp_path: Path) -> None:
    """F01, F06: a repeated case and a ghost among the gold would move the score without a word."""
    (tmp_path / "tools.jsonl").write_text('{"name": "send", "server": "mail"}\n')
    case = {"id": "1", "query": "send", "gold": "mail/send"}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case) + "\n" + json.dumps(case) + "\n")
    with pytest.raises(SetupError, match="'1' 2 times"):
        load(tmp_path)
    (tmp_path / "cases.jsonl").write_text(json.dumps(case) + "\n")
    (loaded,) = load(tmp_path)
    assert loaded.cases[0].gold == (("mail/send",),)
    require_gold(loaded)
    (tmp_path / "cases.jsonl").write_text(json.dumps({**case, "gold": [["ghost"]]}) + "\n")
    with pytest.raises(SetupError, match="'ghost', which is not a tool"):
        require_gold(load(tmp_path)[0])
