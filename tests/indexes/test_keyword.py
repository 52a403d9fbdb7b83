"""The embedded default: what counts as evidence, what weighs more, what is repaired, and that postings may change."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Catalog
from toolsearch.protocols import Scored
from toolsearch_indexes.keyword import KeywordIndex

both_postings = pytest.mark.parametrize("arrays_from", [0, 2_000], ids=["arrays", "dicts"])


def tool(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


def filled(tools: list[dict[str, Any]], arrays_from: int = 2_000) -> KeywordIndex:
    index = KeywordIndex(arrays_from=arrays_from)
    index.add(list(Catalog(tools)))
    return index


def ids(found: list[Scored]) -> list[str]:
    return [scored.id for scored in found]


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        (tool("a_violin"), tool("b", "violin")),
        (tool("b", "violin"), tool("a", input_schema={"type": "object", "properties": {"violin": {}}})),
        (
            tool("b", input_schema={"type": "object", "properties": {"violin": {}}}),
            tool("a", input_schema={"type": "object", "properties": {"x": {"description": "violin"}}}),
        ),
        (tool("b", "violin"), tool("a", "violin " + "and many other things of no concern here " * 12)),
        (tool("b", "violin violin"), tool("a", "violin piano")),
    ],
    ids=["name over description", "description over argument", "argument over its text", "short over long", "twice"],
)
def test_where_and_how_a_word_is_said_decides_what_it_weighs(stronger: Any, weaker: Any) -> None:
    """SA-26, SA-27: fields weigh differently, once each, in one score."""
    assert ids(filled([weaker, stronger, tool("other", "piano")]).search("violin", 5)) == [
        stronger["name"],
        weaker["name"],
    ]


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    tools = [tool(f"t{n}", "report about sales") for n in range(9)] + [tool("z", "report about whales")]
    assert ids(filled(tools).search("report whales", 3))[0] == "z"


def test_a_hit_says_which_words_were_found_and_where() -> None:
    """SA-5: an answer tells a program more than names."""
    index = filled([tool("rotate_key", "Rotate a secret", server="vault"), tool("b", "other")])
    (hit,) = index.search("rotate vault secrets", 5)
    assert {m.word: m.fields for m in hit.matched} == {
        "rotate": ("name", "description"),
        "vault": ("server",),
        "secrets": ("description",),
    }
    assert 0.75 < (hit.confidence or 0) < 1


@both_postings
def test_a_single_word_of_a_name_is_not_counted_by_several_clauses(arrays_from: int) -> None:
    """SA-35c: two clauses that fire for one word would put `mail_rules` before the tool that holds both words."""
    index = filled([tool("mail_rules"), tool("post", "Delete a mail for good"), tool("x", "delete rows")], arrays_from)
    assert ids(index.search("delete mail", 1)) == ["post"]


UNANSWERABLE = [
    ("share zoom recording by email", [tool("outage_open", "Open an outage and email the duty team")]),
    ("transcribe podcast episode for customer", [tool("invoice_void", "Void an invoice and notify the customer")]),
    ("compose symphony about channel", [tool("log_tail", "Tail the log of a service into a channel")]),
    ("order pizza with extra cheese", [tool("sort_rows", "Sort rows in ascending order")]),
    ("reserve helicopter ride over volcano tomorrow", [tool("bus", "Find a ride")]),
]


@both_postings
@pytest.mark.parametrize(("query", "tools"), UNANSWERABLE, ids=[query for query, _ in UNANSWERABLE])
def test_one_common_word_is_no_evidence_where_the_catalog_knows_none_of_the_others(
    query: str, tools: list[dict[str, Any]], arrays_from: int
) -> None:
    """A09: never padded."""
    found = filled([*tools, tool("badge_remove", "Remove a badge")], arrays_from).search(query, 5)
    assert [hit.id for hit in found if len(hit.matched) < 2] == []


def test_two_known_words_are_evidence_however_many_others_are_unknown() -> None:
    index = filled([tool("mail_send", "Send an electronic mail"), tool("b", "other")])
    assert ids(index.search("lovingly handcraft exquisite birthday mail, then send", 5)) == ["mail_send"]


def test_a_third_of_the_words_is_evidence_if_it_is_in_the_name_and_no_mere_action() -> None:
    """A09: what a tool does is said of many; what it does it to is what tells."""
    index = filled([tool("desk_book", "Reserves a place"), tool("b", "Puts a flight on a list"), tool("list_schemas")])
    assert ids(index.search("book ferry lisbon", 5)) == []
    assert ids(index.search("desk near lisbon harbour", 5)) == ["desk_book"]
    assert ids(index.search("flight near lisbon harbour", 5)) == []
    assert ids(index.search("lst all scehmas in the warehouse db", 5)) == ["list_schemas"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Send an e-mail.", "email"), ("Turn Wi-Fi on", "wifi"), ("Set up a hook", "setup"), ("Log-in here", "login"),
        ("Back up the disk", "backup"), ("Check in a guest", "checkin"), ("Orders a T-shirt", "tshirt"),
        ("listVMs", "vm"), ("getUserIDs", "ids"), ("checkURLs", "url"), ("listAPIsByTeam", "apis"),
        ("createOAuthToken", "oauth"), ("getYouTubeTranscript", "youtube"), ("runMySQLQuery", "mysql"),
        ("CSVtoJSON", "csv"), ("convertPDFtoDOCX", "pdf"), ("getHTTPSProxyURLs", "proxy urls"),
    ],
)  # fmt: skip
def test_what_people_write_in_one_word_is_found_where_it_is_written_in_two(text: str, query: str) -> None:
    """A01, A20: hyphens, particles, plural acronyms, names of brands."""
    index = filled([tool("fn_a", text), tool("fn_b", "xxxx yyyy")])
    assert ids(index.search(query, 5)) == ["fn_a"]


@pytest.mark.parametrize(
    "query",
    [
        "kannst du mir bitte die Rechnungen ausgeben", "peux-tu me montrer les Rechnungen",
        "¿puedes mostrarme las Rechnungen?",
        "você pode me dar as Rechnungen", "можешь ли ты мне показать Rechnungen", "kun je mij de Rechnungen laten zien",
    ],
)  # fmt: skip
def test_function_words_of_other_languages_are_no_lack_of_evidence(query: str) -> None:
    """A15: a request in another language is mostly words that no tool says."""
    index = filled([tool("rechnungen_drucken", "Druckt sie"), tool("fn_b", "xxxx yyyy")])
    assert ids(index.search(query, 5)) == ["rechnungen_drucken"]


def test_a_stop_word_in_most_tools_finds_none() -> None:
    """A11, I10: `mcp` is in every name, so it says nothing."""
    index = filled([tool(f"mcp_{n}", n) for n in ("alpha", "beta", "gamma")])
    assert ids(index.search("mcp", 5)) == []
    assert ids(index.search("mcp beta", 5)) == ["mcp_beta"]


@both_postings
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("wether forecast", "forecast"),
        ("calandar", "calendar_add"),
        ("whiteboard", "white_board_draw"),
        ("time zone", "timezone_convert"),
        ("pay roll", "payroll_run"),
        ("check datbase", "database_check"),
    ],
)
def test_a_misspelled_joined_or_split_word_is_repaired(query: str, expected: str, arrays_from: int) -> None:
    """A20: by the catalog's own vocabulary, one guess a word."""
    tools = [
        tool("forecast", "Weather of tomorrow"), tool("calendar_add", "Add an event"), tool("payroll_run", "Run it"),
        tool("white_board_draw", "Draw"), tool("timezone_convert", "Convert"), tool("database_check", "Check tables"),
    ]  # fmt: skip
    assert ids(filled(tools, arrays_from).search(query, 1)) == [expected]


def test_a_written_word_weighs_more_than_a_guessed_one() -> None:
    tools = [tool("a", "colour"), tool("b", "colours")]
    written, guessed = (filled(tools).search(query, 1)[0].score for query in ("colour", "colouur"))
    assert 0 < guessed < written


@both_postings
def test_a_name_of_the_words_of_the_query_comes_before_any_other_that_holds_them(arrays_from: int) -> None:
    """A14: in any order and form, stop words aside."""
    tools = [tool("move_crate", "Shifts it")] + [
        tool(f"move_empty_crate_{n}", "move crate move crates crate moving") for n in range(6)
    ]
    index = filled(tools, arrays_from)
    for query in ("move crate", "crate move", "moving crates", "please move the crate", "move a crat"):
        assert ids(index.search(query, 3))[0] == "move_crate", query


def test_the_server_may_be_part_of_what_names_a_tool() -> None:
    tools = [tool("list_users", server="crm"), tool("list_users", server="erp"), tool("list_old_users", server="crm")]
    assert ids(filled(tools).search("list the users in crm", 1)) == ["crm/list_users"]


def test_a_word_in_every_tool_adds_next_to_nothing() -> None:
    """A04."""
    tools = [tool(f"forge_op_{n}", "Repository operation") for n in range(12)] + [tool("forge_whoami", "A profile")]
    first, second = filled(tools).search("forge profile", 2)
    assert first.id == "forge_whoami"
    assert first.score > 20 * second.score


STUFFING = "send mail calendar file weather search create delete update " * 30


@both_postings
@pytest.mark.parametrize("query", ["mail", "weather", "delete file", "update calendar", "search for a file"])
@pytest.mark.parametrize("stuffed", [STUFFING, "mail weather file " * 100, "<p>" + STUFFING.upper()])
def test_stuffing_does_not_outrank_focused_tools(query: str, stuffed: str, arrays_from: int) -> None:
    """D11."""
    tools = [
        tool("a_helper", stuffed), tool("send_mail", "Send an electronic mail"), tool("weather_now", "Weather here"),
        tool("calendar_add", "Add an event to the calendar"), tool("file_delete", "Delete a file"),
        tool("search_files", "Search for files"),
    ]  # fmt: skip
    assert ids(filled(tools, arrays_from).search(query, 5))[0] != "a_helper"


def test_repeating_a_word_in_a_name_stops_counting() -> None:
    tools = [tool("mail_" * 40 + "x"), tool("mail_send", "Send a mail"), tool("other")]
    assert ids(filled(tools).search("mail", 2))[0] == "mail_send"


def test_the_end_of_a_very_long_description_is_searchable() -> None:
    """A25."""
    text = "Functions: " + "fnA(x); " * 20_000 + "fnZ(y)"
    assert ids(filled([tool("exec_code", text), tool("b")]).search("fnZ", 5)) == ["exec_code"]


POOL = [
    tool(f"{verb}_{thing}", f"{verb} one {thing} of the {place}", server=place)
    for verb in ("create", "delete", "list")
    for thing in ("issue", "mail", "file")
    for place in ("north", "south")
]
QUERIES = ["create issue", "delete the file in north", "list south", "maul", "nothing known here", "create"]


@settings(max_examples=40)
@given(st.lists(st.integers(-len(POOL), len(POOL) - 1), max_size=60), st.sampled_from([0, 3, 9]))
def test_answers_depend_on_what_is_indexed_and_not_on_how_it_got_there(steps: list[int], arrays_from: int) -> None:
    """SA-35: tools added again, removed (below zero) and passing the switch to arrays leave no trace."""
    tools = list(Catalog(POOL))
    churned = KeywordIndex(arrays_from=arrays_from)
    held: dict[str, Any] = {}
    for step in steps:
        one = tools[step] if step >= 0 else tools[-step - 1]
        if step >= 0:
            churned.add([one])
            held[one.id] = one
        else:
            churned.remove([one.id])
            held.pop(one.id, None)
    fresh = KeywordIndex()
    fresh.add(sorted(held.values(), key=lambda t: t.id))
    assert len(churned) == len(fresh) == len(held)
    for query in QUERIES:
        assert churned.search(query, 5) == fresh.search(query, 5)
        among = frozenset(t.id for t in tools[::2])
        assert churned.search(query, 3, among) == fresh.search(query, 3, among)


def test_growing_past_the_switch_and_shrinking_again_changes_no_answer() -> None:
    tools = list(Catalog([tool(f"mail_{n}", f"Mail tool number {n % 7}") for n in range(40)]))
    small, switched = KeywordIndex(), KeywordIndex(arrays_from=20)
    for index in (small, switched):
        index.add(tools)
        index.remove([t.id for t in tools[5:]])
    assert small.search("mail number 3", 10) == switched.search("mail number 3", 10) != []


def test_replacing_tools_over_and_over_does_not_make_the_index_larger() -> None:
    index = KeywordIndex(arrays_from=0)
    tools = list(Catalog(POOL))
    for _ in range(20):
        index.add(tools)
    assert len(index) == len(POOL)
    assert len(index.search("create issue mail file", 100)) <= len(POOL)
    index.remove([t.id for t in tools])
    assert len(index) == 0
    assert index.search("create issue", 5) == []
