"""Speed: engines side by side, catalogs of any size, and what an import costs."""

import pytest

from toolsearch import SetupError
from toolsearch_evals.cases import load
from toolsearch_evals.import_cost import import_cost
from toolsearch_evals.speed import derived, speed


def test_engines_are_timed_in_the_same_run_and_by_wording() -> None:
    report = speed(load("commons"), ["keyword"], [150], queries=6)
    rows = report.tables[0].rows
    assert {row["wording"] for row in rows} == {"user", "agent"}
    assert {"keyword", "bm25s", "rank-bm25"} <= {row["engine"] for row in rows}
    for row in rows:
        assert 0 < row["p50"] <= row["p99"]
        assert (row["of bm25s"] == 1) == (row["engine"] == "bm25s")
        assert (row["add and search"] is None) == (row["engine"] != "keyword")
    assert rows[0]["derived"] == 0


def test_derived_tools_are_counted_and_always_the_same() -> None:
    tools = list(load("commons")[0].catalog())
    one, made_up = derived(tools, len(tools) + 50, seed=1)
    two, _ = derived(tools, len(tools) + 50, seed=1)
    other, _ = derived(tools, len(tools) + 50, seed=2)
    assert made_up == 50
    assert len({tool.id for tool in one}) == len(one) == len(tools) + 50
    assert one == two != other
    assert derived(tools, 10, seed=1) == (tools[:10], 0)
    with pytest.raises(SetupError, match="pass 1 or more"):
        derived(tools, 0, seed=1)


def test_the_import_is_compared_in_fresh_interpreters() -> None:
    report = import_cost(1)
    rows = {row["program"]: row for row in report.tables[0].rows}
    assert rows["pydantic and one model"]["ratio"] == 1
    assert rows["nothing"]["least"] < rows["toolsearch"]["least"]
    assert "times the CPU" in report.headline[0]
