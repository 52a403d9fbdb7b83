"""Which tools need example queries most: a tool is searched for with its own first sentence."""

from collections.abc import Sequence

import pytest

from toolsearch import Catalog, Tool, ToolSearch
from toolsearch_indexes.keyword import KeywordIndex

BUILDS = [
    {"name": "getBuildLog", "server": "ci", "description": "Get the console output of a build."},
    {"name": "getConsoleText", "server": "ci", "description": "Get the console output of a build."},
    {"name": "roll_dice", "server": "games", "description": "Roll two dice."},
    {"name": "silent", "server": "games"},
]
CROWD = [
    {"name": f"list_files_{n}", "server": f"s{n}", "description": "List the files of a folder of a project."}
    for n in range(8)
]


@pytest.mark.parametrize("index", ["keyword", "hybrid"])
def test_what_its_own_summary_does_not_bring_to_the_front_is_named_worst_first(index: str) -> None:
    search = ToolSearch(Catalog([*BUILDS, *CROWD]), index)
    found = {each.tool: each for each in search.suggest()}
    assert "games/roll_dice" not in found
    assert found["games/silent"].problem == "it has no description"
    twins = found.keys() & {"ci/getBuildLog", "ci/getConsoleText"}
    assert len(twins) == 1, "one of two equals comes first, and the other needs help"
    (twin,) = twins
    assert found[twin].before == tuple({"ci/getBuildLog", "ci/getConsoleText"} - twins)
    assert found[twin].place == 2
    missed = [each for each in found.values() if each.problem == "its own summary does not find it"]
    assert missed, "of eight equal tools some are not among the first five"
    assert all(each.place == 0 and each.harm == 1.0 for each in missed)
    assert [each.harm for each in search.suggest()] == sorted((each.harm for each in search.suggest()), reverse=True)


def test_a_catalog_where_every_tool_finds_itself_needs_nothing() -> None:
    assert ToolSearch(Catalog([BUILDS[0], BUILDS[2]]), "keyword").suggest() == []


def test_pinned_tools_need_none_as_they_are_not_searched() -> None:
    search = ToolSearch(Catalog(BUILDS[2:]), "keyword", pinned=["games/silent", "games/roll_dice"])
    assert search.suggest() == []


def test_an_index_that_works_in_the_background_is_waited_for() -> None:
    class Later(KeywordIndex):
        """Has no tools until it is waited for."""

        waiting: list[Tool]

        def add(self, tools: Sequence[Tool]) -> None:
            self.waiting = list(tools)

        def wait(self, seconds: float | None = None) -> bool:
            super().add(self.waiting)
            return True

    assert ToolSearch(Catalog([BUILDS[0], BUILDS[2]]), Later()).suggest() == []
