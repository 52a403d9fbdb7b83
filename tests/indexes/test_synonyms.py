"""Short forms and everyday words find what they stand for, more weakly than written words."""

import json
import tomllib
from typing import Any

import pytest

from toolsearch import Hits, Tool, ToolSearch, open_index
from toolsearch_indexes import synonyms
from toolsearch_indexes.query import ReadQuery, read_query
from toolsearch_indexes.spelling import Vocabulary
from toolsearch_indexes.synonyms import TABLE, find_synonyms

PAIRS = [
    ("repo", "repository"), ("db", "database"), ("config", "configuration"), ("env", "environment"),
    ("app", "application"), ("auth", "authentication"), ("k8s", "kubernetes"), ("PR", "pull request"),
    ("mail", "e-mail"), ("doc", "document"), ("msg", "message"), ("pic", "picture"), ("info", "information"),
    ("org", "organisation"), ("dir", "directory"), ("calc", "calculation"), ("temp", "temperature"),
    ("VM", "virtual machine"), ("vid", "video"), ("cert", "certificate"), ("pkg", "package"), ("var", "variable"),
    ("param", "parameter"), ("acct", "account"), ("cmd", "command"), ("admin", "administrator"),
    ("notif", "notification"), ("sub", "subscription"), ("qty", "quantity"), ("loc", "location"),
]  # fmt: skip
INDEXES = pytest.mark.parametrize("index", ["keyword", "hybrid"])


def names(hits: Hits) -> list[str]:
    return [hit.tool.name for hit in hits]


def tool_named(verb: str, thing: str, description: str) -> dict[str, str]:
    name = f"{verb}_{thing.replace(' ', '_').replace('-', '_').lower()}"
    return {"name": name, "description": description.format(thing)}


@INDEXES
@pytest.mark.parametrize("description", ["", "Create a {}."])
@pytest.mark.parametrize("way", ["short form asked for", "long form asked for"])
def test_thirty_short_forms_find_their_tool_beside_twenty_nine_with_the_same_verb(
    index: str, description: str, way: str
) -> None:
    """J37: keyword found 1 of 30, hybrid 24."""
    pairs = PAIRS if way == "short form asked for" else [(long, short) for short, long in PAIRS]
    tools = [tool_named("create", there, description) for _, there in pairs]
    search = ToolSearch(tools, index)
    for request in ("create a {}", "which {}s are there", "the {}"):
        found = [
            names(search.find(request.format(asked)))[:1] == [tools[at]["name"]] for at, (asked, _) in enumerate(pairs)
        ]
        assert sum(found) >= 27, [asked for (asked, _), right in zip(pairs, found, strict=True) if not right]


@INDEXES
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("make a repo", "create_repository"), ("which dbs are there", "list_databases"),
        ("configs", "update_configuration"), ("new repo", "create_repository"), ("db", "list_databases"),
    ],
)  # fmt: skip
def test_the_reported_short_forms_are_found(index: str, query: str, expected: str) -> None:
    """J37."""
    tools = [
        ("create_repository", "Create a repository."), ("list_databases", "List databases."),
        ("list_environments", "List environments."), ("update_configuration", "Change the configuration of a service."),
        ("send_mail", "Send an e-mail."),
    ]  # fmt: skip
    hits = ToolSearch([{"name": name, "description": text} for name, text in tools], index).find(query)
    assert names(hits)[0] == expected
    assert hits.verdict != "none"


FORGE = [
    ("list_issues", "List the issues of a repository, open or closed."), ("get_issue", "Get an issue of a repository."),
    ("create_issue", "Create an issue in a repository."), ("update_issue", "Update an issue in a repository."),
    ("search_issues", "Search for issues, open ones or all."), ("set_issue_state", "Set an issue to open or closed."),
    ("add_issue_comment", "Add a comment to an issue."), ("list_issue_comments", "List the comments of an issue."),
    ("list_pull_requests", "List pull requests, open or closed."), ("get_pull_request", "Get a pull request."),
    ("create_pull_request", "Create a pull request."), ("merge_pull_request", "Merge an open pull request."),
    ("delete_file", "Delete a file from a repository."), ("get_file", "Get the contents of a file."),
    ("create_or_update_file", "Create or update a file."), ("push_files", "Push files to a branch."),
    ("search_users", "Search for users."), ("get_me", "Get my user."), ("list_branches", "List branches."),
    ("create_branch", "Create a branch."), ("create_repository", "Create a repository."),
]  # fmt: skip


@INDEXES
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("open an issue", "create_issue"), ("file a new issue", "create_issue"), ("raise an issue", "create_issue"),
        ("leave a comment on an issue", "add_issue_comment"), ("open a PR", "create_pull_request"),
        ("see the pull requests", "list_pull_requests"), ("erase a file", "delete_file"),
        ("drop a file", "delete_file"), ("get rid of a file", "delete_file"), ("look up a user", "search_users"),
        ("start a new branch", "create_branch"), ("set up a new repo", "create_repository"),
    ],
)  # fmt: skip
def test_everyday_verbs_find_what_an_api_calls_otherwise(index: str, query: str, expected: str) -> None:
    """J37, A27: among tools that hold the other words of the request too."""
    search = ToolSearch([{"name": name, "description": text} for name, text in FORGE], index)
    assert expected in names(search.find(query))[:2]


@INDEXES
def test_erasing_finds_the_tool_that_deletes(index: str) -> None:
    """A27: numbers in the query do not hurt."""
    tools = [{"name": f"{verb}_pipeline", "description": f"{verb} a pipeline"} for verb in ("delete", "create")]
    assert names(ToolSearch(tools, index).find("erase pipeline 88 for good"))[0] == "delete_pipeline"


def read(query: str, held: str, tools: int = 20) -> ReadQuery:
    known = held.split()
    return read_query(query, known.count, tools, Vocabulary(lambda letter: [w for w in known if w[0] == letter]))


def test_a_written_word_weighs_more_than_a_synonym() -> None:
    for query, held in [
        ("make a repo", "repo repositori"),
        ("erase an issue", "eras delet issu"),
        ("pic", "pic photo"),
    ]:
        of = read(query, held)
        assert of.stands_for
        for word, own in of.stands_for.items():
            assert of.wanted[word] < 1
            assert of.weights[word] < of.weights.get(own, 99.0)


def test_a_synonym_is_shown_as_the_word_that_was_typed() -> None:
    search = ToolSearch([{"name": "create_repository"}, {"name": "send_mail"}], "keyword")
    (hit,) = search.find("new Repo")
    assert [(match.word, match.fields) for match in hit.matched] == [("repo", ("name",))]


def test_a_synonym_makes_a_hit_less_sure_than_the_word_itself() -> None:
    search = ToolSearch([{"name": "create_repository"}, {"name": "send_mail"}, {"name": "open_door"}], "keyword")
    (by_synonym,), (by_word,) = search.find("a repo please"), search.find("a repository please")
    assert (by_synonym.confidence or 0) < (by_word.confidence or 0)


@pytest.mark.parametrize("request_", ["open the garage", "make a cake", "file a complaint", "drop the anchor"])
@INDEXES
def test_a_verb_for_another_verb_is_no_evidence(index: str, request_: str) -> None:
    """A09, K03: it moves up what the request's other words find, and finds nothing itself."""
    tools = [tool_named(verb, thing, "") for verb in ("create", "delete") for thing in ("invoice", "user", "page")]
    assert [
        hit for hit in ToolSearch(tools, index).find(request_) if any("name" in m.fields for m in hit.matched)
    ] == []


def test_many_tools_with_the_other_verb_do_not_crowd_out_the_one_with_the_thing() -> None:
    door = {
        "name": "unlatch",
        "input_schema": {"type": "object", "properties": {"x": {"description": "of which door"}}},
    }
    tools: list[dict[str, Any]] = [{"name": f"create_thing_{n}"} for n in range(60)]
    for index in ("keyword", "whoosh", "tantivy"):
        assert names(ToolSearch([*tools, door], index).find("open a door", 3)) == ["unlatch"], index


def test_the_pieces_of_a_short_form_with_a_digit_are_no_unknown_words() -> None:
    of = read("k8s", "kubernet")
    assert (of.words, of.unknown, list(of.wanted)) == (["k8s"], 0, ["kubernet"])


def test_a_form_of_several_words_is_found_among_others() -> None:
    forms = {form: [s.text for s in synonyms] for form, synonyms in find_synonyms(["pleas", "pull", "request", "now"])}
    assert forms[("pull", "request")] == ["pr"]


def test_every_form_of_the_table_is_lower_case_and_stands_for_something_else() -> None:
    for section, entries in tomllib.loads(TABLE.read_text("utf-8")).items():
        for form, others in entries.items():
            assert others, (section, form)
            assert form not in others
            assert json.dumps([form, others]) == json.dumps([form, others]).lower()


@pytest.mark.parametrize("index", ["keyword", "hybrid", "whoosh", "tantivy"])
def test_the_table_is_read_as_tools_are_added_and_not_in_the_first_search(index: str) -> None:
    synonyms._synonyms.cache_clear()
    synonyms._lengths.cache_clear()
    opened = open_index(index)
    opened.add([Tool(id="a", name="delete_repository", description="Delete a repository")])
    read = synonyms._synonyms.cache_info().misses
    assert read == 1
    assert [hit.id for hit in opened.search("remove the repo", 1)] == ["a"]
    assert synonyms._synonyms.cache_info().misses == read
