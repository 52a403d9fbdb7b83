"""Tools that several servers have alike do not crowd out the rest."""

from collections.abc import Sequence
from typing import Any

import pytest

from toolsearch import Catalog, Scored, Tool
from toolsearch.search.index import Hits, find
from toolsearch_indexes.keyword import KeywordIndex

SERVERS = ("alpha", "bravo", "delta", "gamma", "kappa", "omega", "sigma", "theta")


def like(
    server: str, description: str = "Create a new issue in a project.", name: str = "create_issue"
) -> dict[str, Any]:
    return {"name": name, "server": server, "description": description}


COMMENT = {"name": "comment_on_issue", "server": "alpha", "description": "Create a comment below an issue."}
CLOSE = {"name": "close_issue", "server": "bravo", "description": "Close an issue that is not new."}
LIKE = [like(server) for server in SERVERS]


def ids(hits: Hits) -> list[str]:
    return [hit.tool.id for hit in hits]


def searched(tools: list[dict[str, Any]], query: str, limit: int = 5) -> list[str]:
    catalog = Catalog(tools)
    index = KeywordIndex()
    index.add(list(catalog))
    return ids(find(catalog, index, query, limit))


class Written:
    """An index whose scores are written down."""

    name = "written"

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> list[Scored]:
        return sorted((Scored(*each) for each in self.scores.items()), key=lambda each: -each.score)[:limit]


def found_by(scores: dict[str, float], tools: list[dict[str, Any]]) -> list[str]:
    return ids(find(Catalog(tools), Written(scores), "issue", 10))


def test_like_tools_of_more_than_three_servers_come_behind_the_others() -> None:
    found = searched([*LIKE, COMMENT, CLOSE], "create a new issue")
    assert found[:3] == ["alpha/create_issue", "bravo/create_issue", "delta/create_issue"]
    assert set(found[3:]) == {"alpha/comment_on_issue", "bravo/close_issue"}


def test_nothing_is_lost() -> None:
    found = searched([*LIKE, COMMENT, CLOSE], "create a new issue", 20)
    assert len(found) == len(LIKE) + 2
    assert found[-5:] == [f"{server}/create_issue" for server in SERVERS[3:]]


def test_they_fill_the_answer_where_nothing_else_is_found() -> None:
    assert len(searched(LIKE, "create a new issue")) == 5


def test_a_server_that_the_query_names_keeps_its_place() -> None:
    assert searched([*LIKE, COMMENT, CLOSE], "create a new issue in theta")[0] == "theta/create_issue"
    assert "theta/create_issue" in searched([*LIKE, COMMENT, CLOSE], "create a new issue, theta or sigma")[:4]


def test_an_exact_name_brings_all_that_are_called_so() -> None:
    assert len(searched([*LIKE, COMMENT], "create_issue")) == len(LIKE)


@pytest.mark.parametrize(
    "tools",
    [
        [
            like(s, f"Create {what} in {s}.")
            for s, what in zip(SERVERS, ("a letter", "two boxes", "rain", "tea"), strict=False)
        ],
        [like(SERVERS[0], name=f"create_issue_{n}") for n in range(4)],
        [
            like(s, name=n)
            for s, n in zip(SERVERS, ("create_issue", "new_issue", "open_issue", "add_issue"), strict=False)
        ],
    ],
    ids=["they say different things", "one server", "they are called differently"],
)
def test_only_the_same_tool_of_several_servers_is_moved(tools: list[dict[str, Any]]) -> None:
    order = [tool.id for tool in Catalog([*tools, COMMENT])]
    assert found_by({tool_id: 1 - at / 100 for at, tool_id in enumerate(order)}, [*tools, COMMENT]) == order


def test_what_fits_far_less_well_does_not_come_before() -> None:
    tools = [*LIKE[:4], COMMENT, CLOSE]
    scores = {tool.id: 1.0 for tool in Catalog(tools)} | {"alpha/comment_on_issue": 0.3, "bravo/close_issue": 0.05}
    assert found_by(scores, tools)[3:] == ["alpha/comment_on_issue", "gamma/create_issue", "bravo/close_issue"]


def test_names_in_another_style_and_behind_a_namespace_are_the_same() -> None:
    names = ("create_issue", "createIssue", "mcp__delta__create-issue", "gamma_create_issue", "issue_create")
    tools = [like(server, name=name) for server, name in zip(SERVERS, names, strict=False)]
    found = found_by({tool.id: 1.0 for tool in Catalog([*tools, COMMENT])}, [*tools, COMMENT])
    assert found[:4].count("alpha/comment_on_issue") == 1


def test_a_description_stuffed_with_words_does_not_lead() -> None:
    stuffed = "issue create issues project new issue ticket bug create tracker mail file weather music " * 6
    found = searched([{"name": "do_everything", "description": stuffed}, like("alpha"), CLOSE], "create an issue")
    assert found[0] == "alpha/create_issue"
