"""Derived catalogs: as large as asked, the same for one seed, and marked wherever they go."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from toolsearch import SetupError
from toolsearch_evals.data.cases import Dataset, load
from toolsearch_evals.data.check import problems
from toolsearch_evals.data.derive import derive_tools, write_derived_set
from toolsearch_evals.ranking.compare import compare
from toolsearch_evals.ranking.rank import ranking


@pytest.fixture(scope="module")
def commons() -> Dataset:
    return load("commons")[0]


def test_derived_tools_are_counted_and_always_the_same(commons: Dataset) -> None:
    tools = list(commons.catalog())
    one, made_up = derive_tools(tools, len(tools) + 50, seed=1)
    two, _ = derive_tools(tools, len(tools) + 50, seed=1)
    other, _ = derive_tools(tools, len(tools) + 50, seed=2)
    assert made_up == 50
    assert len({tool.id for tool in one}) == len(one) == len(tools) + 50
    assert one == two != other
    assert derive_tools(tools, 10, seed=1) == (tools[:10], 0)
    assert derive_tools(tools, len(tools) + 9, seed=1)[0] == one[:-41], "a larger catalog begins with the smaller"
    with pytest.raises(SetupError, match="pass 1 or more"):
        derive_tools(tools, 0, seed=1)
    with pytest.raises(SetupError, match="no tools to derive others from"):
        derive_tools([], 5, seed=1)


def test_derived_tools_bring_servers_and_words_of_their_own(commons: Dataset) -> None:
    tools = list(commons.catalog())
    made = derive_tools(tools, 4 * len(tools), seed=3)[0][len(tools) :]
    given = {tool.server for tool in tools}
    assert not {tool.server for tool in made} & given
    assert len({tool.server for tool in made}) >= 2 * len(given)
    assert len({tool.description for tool in made}) > 0.9 * len(made)
    assert all(tool.id == f"{tool.server}/{tool.name}" for tool in made)


def test_a_derived_set_is_byte_identical_marked_and_in_order(commons: Dataset, tmp_path: Path) -> None:
    size = len(commons.catalog()) + 100
    files = write_derived_set(commons, size, 1, tmp_path / "one")
    write_derived_set(commons, size, 1, tmp_path / "two")
    write_derived_set(commons, size, 1, tmp_path / "two")  # over itself
    write_derived_set(commons, size, 2, tmp_path / "other")
    for file in files:
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    assert files[0].read_bytes() != (tmp_path / "other" / "tools.jsonl").read_bytes()
    mark = json.loads((tmp_path / "one" / "derived.json").read_text("utf-8"))
    assert (mark["derived"], mark["from"], mark["seed"], mark["tools"]) == (True, "commons", 1, size)
    for name, digest in mark["files"].items():
        assert hashlib.sha256((tmp_path / "one" / name).read_bytes()).hexdigest() == digest
    (loaded,) = load(tmp_path / "one")
    assert problems(loaded) == []
    assert (len(loaded.catalog()), loaded.derived, commons.derived) == (size, 100, 0)
    assert loaded.definitions[-1]["_meta"]["from"] in commons.catalog()
    assert "are derived" in (tmp_path / "one" / "CARD.md").read_text("utf-8")


def test_reports_on_a_derived_set_say_so(commons: Dataset, tmp_path: Path) -> None:
    write_derived_set(commons, len(commons.catalog()) + 5, 1, tmp_path / "more")
    (loaded,) = load(tmp_path / "more")
    few = replace(loaded, cases=loaded.cases[:5])
    for report in (ranking([few], ["keyword"]), compare([few], "keyword", "regex")):
        assert any("5 are derived" in limit for limit in report.limits)


def test_the_form_with_unique_names_is_kept(tmp_path: Path) -> None:
    (tmp_path / "tools.jsonl").write_text(
        '{"name": "mail_send", "native_name": "sendMail", "server": "mail", "description": "Sends."}\n'
        '{"name": "chat_send", "native_name": "send", "server": "chat", "description": "Says it."}\n',
        "utf-8",
    )
    (tmp_path / "queries.jsonl").write_text('{"id": "1", "query": "mail", "gold": ["mail_send"]}\n', "utf-8")
    write_derived_set(load(tmp_path)[0], 6, 1, tmp_path / "more")
    (loaded,) = load(tmp_path / "more")
    assert len(loaded.catalog()) == 6
    assert loaded.cases[0].gold == (("mail_send",),)
    assert loaded.catalog()["mail_send"].name == "sendMail"
    assert "native_name" in loaded.definitions[-1]


def test_what_was_written_by_hand_is_not_overwritten(commons: Dataset, tmp_path: Path) -> None:
    (tmp_path / "tools.jsonl").write_text("{}\n")
    with pytest.raises(SetupError, match="holds a data set that was not derived"):
        write_derived_set(commons, 10_000, 1, tmp_path)
    with pytest.raises(SetupError, match=r"tools already; 3 need not be derived\. Pass more"):
        write_derived_set(commons, 3, 1, tmp_path / "new")
