"""Tools that several servers have alike do not crowd out the rest."""

from collections.abc import Sequence
from typing import Any

import pytest

from toolsearch import Catalog, Scored, Tool, ToolSearch
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


# -- one server, one capability ---------------------------------------------------------------------------------------

HONEST: list[dict[str, Any]] = [
    {"name": "send_mail", "server": "post", "description": "Send an e-mail message to a person."},
    {"name": "create_report", "server": "office", "description": "Create a report file."},
    *({"name": f"x_{n}", "server": "other", "description": f"Other {n}"} for n in range(200)),
]
VERBS = "send deliver dispatch mail transmit post forward submit push ship".split()
NOUNS = "mail email message letter note memo".split()


def stuffed(times: int) -> list[dict[str, Any]]:
    says = "Send mail. Send an e-mail message to a person, send e-mail messages."
    return [{"name": f"send_mail_{n}", "server": "evil", "description": f"{says} v{n}"} for n in range(times)]


def paraphrased() -> list[dict[str, Any]]:
    return [
        {
            "name": f"{verb}_{noun}",
            "server": "evil",
            "description": f"Best way to {verb} or send an e-mail {noun} or message to a person.",
        }
        for verb in VERBS
        for noun in NOUNS
    ]


@pytest.mark.parametrize("index", ["keyword", "hybrid", "vector", "regex", "whoosh", "tantivy", "faiss"])
@pytest.mark.parametrize("query", ["send an e-mail", "send a message to a person"])
@pytest.mark.parametrize("evil", [stuffed(20), stuffed(150), paraphrased()], ids=["stuffed", "150", "paraphrased"])
def test_no_server_fills_all_places_with_paraphrases(index: str, query: str, evil: list[dict[str, Any]]) -> None:
    """D10: however many they are and whatever the index, the honest tool of another server is among the first five."""
    search = ToolSearch(Catalog([*HONEST, *evil]), index)
    assert "post/send_mail" in ids(search.find(query, 5))
    assert ids(search.find(query, 5)) == ids(search.find(query, 5))
    assert len(set(ids(search.find(query, 20)))) == len(search.find(query, 20))


def test_a_server_alone_or_named_keeps_its_places_and_so_do_tools_that_fit_far_better() -> None:
    """D10: the other side. A catalog of one server is searched as ever."""
    query = "send an e-mail"
    alone = ids(ToolSearch(Catalog(stuffed(20)), "keyword").find(query, 5))
    assert alone == sorted(f"evil/send_mail_{n}" for n in range(20))[:5]
    others = [tool for tool in HONEST if tool["name"] != "send_mail"]
    assert ids(ToolSearch(Catalog([*others, *stuffed(20)]), "keyword").find(query, 5)) == alone
    named = ids(ToolSearch(Catalog([*HONEST, *stuffed(20)]), "keyword").find(f"{query} with evil", 5))
    assert all(tool_id.startswith("evil/") for tool_id in named)


def test_what_a_caller_may_not_see_takes_no_place_of_the_others() -> None:
    """D10: nor is it shown, where a server fills even the longest answer."""
    catalog = Catalog([*HONEST, *stuffed(150)])
    index = KeywordIndex()
    index.add(list(catalog))
    mine = frozenset(tool.id for tool in catalog if tool.server != "post")
    found = find(catalog, index, "send an e-mail", 5, mine)
    assert len(found) == 5
    assert {hit.tool.server for hit in found} == {"evil"}


def family(noun: str, *variants: str) -> list[dict[str, Any]]:
    return [{"name": f"{noun}_{each}", "description": f"{noun} {each}".replace("_", " ").title()} for each in variants]


@pytest.mark.parametrize("index", ["keyword", "hybrid", "regex", "whoosh", "tantivy"])
@pytest.mark.parametrize(
    ("tools", "query", "limit", "both"),
    [
        (
            family("acme_crm", "merge", "merge_fast", "merge_all", "split", "split_fast", "split_all", "split_some")
            + family("acme_crm", "notes", "tags"),
            "acme crm merge and split",
            3,
            ("acme_crm_merge", "acme_crm_split"),
        ),
        (
            family("acme_crm", "merge", *(f"merge_v{n}" for n in range(30)))
            + family("acme_crm", "split", *(f"split_v{n}" for n in range(40))),
            "acme crm merge and split",
            5,
            ("acme_crm_merge", "acme_crm_split"),
        ),
    ],
    ids=["three of each", "thirty of each"],
)
def test_a_query_for_two_capabilities_finds_both(
    index: str, tools: list[dict[str, Any]], query: str, limit: int, both: tuple[str, str]
) -> None:
    """K04: look-alikes of one do not fill the limit."""
    found = [hit.tool.name for hit in ToolSearch(Catalog(tools), index).find(query, limit)]
    assert set(both) <= set(found)
    assert len(found) == limit
