"""Speed: engines side by side, each in a process of its own, and what an import costs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolsearch import SetupError
from toolsearch_evals.data.cases import load
from toolsearch_evals.speed.engine_process import EngineMissing, EngineProcess, EngineUnfinished, write_tools
from toolsearch_evals.speed.engines import (
    PUBLISHED_ENGINES,
    ChangingEngine,
    IndexEngine,
    open_engine,
    text_of,
    words_of,
)
from toolsearch_evals.speed.import_cost import import_cost
from toolsearch_evals.speed.report import speed_report
from toolsearch_evals.speed.timing import speed


def test_engines_are_timed_in_the_same_run_and_by_wording() -> None:
    report = speed(load("commons"), ["keyword", "vector"], [150], queries=4)
    rows = report.tables[0].rows
    assert {row["wording"] for row in rows} == {"user", "agent"}
    assert {"keyword", "vector", *PUBLISHED_ENGINES} == {row["engine"] for row in rows} | report.data["left out"].keys()
    for row in rows:
        assert 0 < row["p50"] <= row["p99"]
        assert row["queries"] == 4
        assert row["processor"] >= 0
        assert (row["of bm25s"] == 1) == (row["engine"] == "bm25s")
        assert min(row["build seconds"], row["start"], row["first"]) > 0
        assert (row["add"] is None) == (row["remove"] is None) == (row["engine"] in ("bm25s", "rank-bm25"))
    assert rows[0]["derived"] == 0
    (beside,) = report.data["vectors"]
    assert (beside["engine"], beside["kind"], beside["width"]) == ("vector", "exact", 256)
    assert beside["ratio"] is None or beside["ratio"] == pytest.approx(beside["search"] / beside["product"])


def test_an_engine_whose_time_is_up_is_said_to_be_unfinished() -> None:
    report = speed(load("commons"), ["keyword"], [1_500], queries=2, budget_seconds=0.001)
    rows = [row for row in report.tables[0].rows if row["engine"] == "keyword"]
    assert {row["unfinished"] for row in rows} == {"building: not finished in 0.001 s"}
    assert {row["p50"] for row in rows} == {None}
    assert "keyword at 1,500 tools, building: not finished" in report.tables[0].note
    assert any(sentence.startswith("Not finished: ") for sentence in report.headline)


def test_a_package_that_is_missing_is_named_as_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bm25s.py").write_text("raise ImportError('bm25s is not installed here')\n")
    (tmp_path / "rank_bm25.py").write_text("raise RuntimeError('out of order')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    report = speed(load("commons"), ["regex"], [30, 31], queries=2)
    assert "bm25s is left out: bm25s is not installed here" in report.tables[0].note
    assert "rank-bm25 at 30 tools, building: RuntimeError: out of order." in report.tables[0].note
    assert {row["of bm25s"] for row in report.tables[0].rows} == {None}
    assert "times bm25s" not in " ".join(report.headline)


def test_a_wrong_name_is_told_before_anything_is_built() -> None:
    with pytest.raises(SetupError, match="there is no index 'oracle'; installed are: "):
        speed(load("commons"), ["keyword", "oracle"], [30])
    with pytest.raises(SetupError, match="pass 1 or more"):
        speed(load("commons"), ["keyword"], [0])


@pytest.mark.parametrize("name", ["keyword", *PUBLISHED_ENGINES])
def test_every_engine_finds_what_it_was_given_and_forgets_what_was_removed(name: str) -> None:
    tools = list(load("commons")[0].catalog())[:40]
    engine = open_engine(name)
    try:
        if isinstance(engine, IndexEngine):
            engine.prepare(tools[:39])
        engine.build(tools[:39])
    except ImportError:
        pytest.skip(f"{name} is not installed")
    assert engine.search(tools[5].name)
    assert engine.search('AND "OR* (') is not None
    if isinstance(engine, ChangingEngine):
        last = tools[39]
        before = told(engine.search(last.name), last.id)
        engine.add(last)
        assert (before, told(engine.search(last.name), last.id)) == (False, True)
        engine.remove(last)
        assert not told(engine.search(last.name), last.id)


def told(answer: Any, tool_id: str) -> bool:
    ids: Sequence[Any] = [getattr(each, "tool", each) for each in answer]
    return any(tool_id in (getattr(each, "id", None), each) or tool_id in str(each) for each in ids)


def test_a_worker_answers_until_its_time_is_up_and_leaves_nothing_behind(tmp_path: Path) -> None:
    tools = list(load("commons")[0].catalog())[:20]
    write_tools(tmp_path / "tools", tools[:18], tools[18:])
    with EngineProcess("keyword", tmp_path / "tools") as worker:
        built = worker.ask("build", None, 60)
        assert built.keys() == {"start", "build", "first", "packages", "memory"}
        assert len(worker.ask("search", ["one", "two"], 60)["times"]) == 2
        assert worker.ask("change", 60, 60).keys() == {"add", "remove"}
        assert worker.ask("beside_numpy", ["one"], 60) is None
        with pytest.raises(EngineUnfinished, match="TypeError"):
            worker.ask("search", None, 60)
        assert worker.ask("ready", None, 60)
        with pytest.raises(EngineUnfinished, match=r"not finished in 0\.001 s"):
            worker.ask("search", ["a long row of words"] * 5_000, 0.001)
        with pytest.raises(EngineUnfinished, match="its process ended"):
            worker.ask("ready", None, 60)
    with (
        EngineProcess("onnx", tmp_path / "tools") as worker,
        pytest.raises(EngineUnfinished, match="there is no index 'onnx'"),
    ):
        worker.ask("build", None, 60)
    assert not issubclass(EngineMissing, EngineUnfinished)


def test_the_report_names_ratios_to_a_package_s_own_engine() -> None:
    base = {"tools": 10, "derived": 0, "wording": "user", "queries": 2, "p99": 9.0}
    rows = [
        base | {"engine": "whoosh", "rival": False, "p50": 1.0},
        base | {"engine": "whoosh itself", "rival": True, "p50": 4.0},
    ]
    report = speed_report(rows, {"bm25s": "No module named 'bm25s'"}, {})
    first, second = report.tables[0].rows
    assert (first["of its own"], second["of its own"]) == (0.25, None)
    assert report.tables[0].note == "bm25s is left out: No module named 'bm25s'"
    assert report.headline == ("whoosh at 10 tools: p50 1.000 ms (user).",)


def test_published_engines_get_words_and_no_syntax() -> None:
    assert words_of('NOT "a" OR b*') == ["not", "a", "or", "b"]
    tool = load("commons")[0].catalog()["github/create_issue"]
    assert {"create", "issue", "github", "owner"} <= {*text_of(tool).split()}


def test_the_import_is_compared_in_fresh_interpreters() -> None:
    report = import_cost(1)
    rows = {row["program"]: row for row in report.tables[0].rows}
    assert rows["pydantic and one model"]["ratio"] == 1
    assert rows["nothing"]["least"] < rows["toolsearch"]["least"]
    assert "times the CPU" in report.headline[0]
