"""Example queries for some of the tools: these gain, and the others keep their places."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from toolsearch import Catalog, find, tool
from toolsearch.catalog.examples import ExampleEntry, Examples
from toolsearch.search import open_index
from toolsearch_evals.data.cases import Case, load
from toolsearch_indexes.document import EXAMPLES_COST, kept

WORN = tool({"name": "set_mode", "description": "Set the mode."})


def test_a_tool_keeps_all_without_queries_and_less_the_more_it_has() -> None:
    shares = [kept(replace(WORN, enriched=tuple(f"query {n}" for n in range(many))), "words") for many in range(11)]
    assert shares[0] == 1
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] > 1 - EXAMPLES_COST["words"]
    assert kept(replace(WORN, examples=("one",)), "meaning") == kept(replace(WORN, enriched=("one",)), "meaning")


@pytest.mark.parametrize("index", ["keyword", "whoosh", "tantivy"])
def test_words_that_a_description_and_a_mere_query_share_belong_to_the_description(index: str) -> None:
    """Of two tools that hold the words of a request, the one whose queries hold much else does not go first."""
    catalog = Catalog(
        [
            {"name": "describe", "server": "a", "description": "List the snapshots of a disk."},
            {"name": "inspect", "server": "b", "description": "List the snapshots of a volume."},
            *({"name": f"other_{n}", "description": f"Do another thing, number {n}."} for n in range(20)),
        ]
    )
    queries = ("what backups of my volume are there", "show me old copies")
    catalog.enrich(Examples({"b/inspect": ExampleEntry("b/inspect", queries)}))
    opened = open_index(index)
    opened.add(list(catalog))
    assert find(catalog, opened, "list the snapshots")[0].tool.id == "a/describe"
    assert find(catalog, opened, "what backups are there")[0].tool.id == "b/inspect"


def _recall(catalog: Catalog, index: str, cases: Sequence[Case]) -> float:
    opened = open_index(index)
    opened.add(list(catalog))
    found = [{hit.tool.id for hit in find(catalog, opened, case.query)} for case in cases]
    shares = [
        sum(not ids.isdisjoint(group) for group in case.gold) / len(case.gold)
        for case, ids in zip(cases, found, strict=True)
    ]
    return sum(shares) / len(shares)


@pytest.mark.parametrize("index", ["keyword", "hybrid"])
def test_queries_for_half_of_the_tools_help_these_and_do_not_harm_the_others(index: str) -> None:
    (commons,) = load("commons")
    catalog, entries = commons.catalog(), commons.examples().entries
    rng = random.Random(1)
    half = {tool_id for tool_id in sorted(entries) if rng.random() < 0.5}
    answerable = [case for case in commons.cases if case.gold and case.split in ("train", "dev")]
    needed = {case.id: {tool_id for group in case.gold for tool_id in group} for case in answerable}
    helped = [case for case in answerable if needed[case.id] <= half]
    others = [case for case in answerable if needed[case.id].isdisjoint(half)]
    assert min(len(helped), len(others)) > 100
    before = _recall(catalog, index, helped), _recall(catalog, index, others)
    catalog.enrich(Examples({tool_id: entries[tool_id] for tool_id in half}))
    after = _recall(catalog, index, helped), _recall(catalog, index, others)
    assert after[0] > before[0] + 0.08
    assert after[1] > before[1] - 0.02
