"""The search tool: what it is called with, what it answers, and when it stops a model from searching on."""

import json
from typing import Any

import pytest

from toolsearch import Catalog, Session, Settings, SetupError, ToolCall, ToolResult, ToolSearch
from toolsearch.session.meta_tool import read_request
from toolsearch.testing import FixedIndex
from toolsearch.tokens import ESTIMATE
from toolsearch_indexes.hybrid import HybridIndex


def defined(name: str, description: str = "", /, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


TOOLS = [
    defined("send_mail", "Send an electronic mail.", server="post", category="mail"),
    defined("read_mail", "Read the mailbox.", server="post", category="mail"),
    defined("get_weather", "Weather forecast for a city. Up to 14 days.", server="sky", category="weather"),
    *(defined(f"box_{n}", f"Open the box number {n}.", server="vault", category="boxes") for n in range(30)),
]


def searched(session: Session, **arguments: Any) -> ToolResult:
    return session.handle(ToolCall("s", "search_tools", arguments))


def session_with(*tools: Any, **options: Any) -> Session:
    return ToolSearch(Catalog(tools or TOOLS), **options).session()


# -- what a model sees of it -------------------------------------------------------------------------------------------


def test_its_definition_names_what_lies_behind_it_and_stays_the_same_for_the_session() -> None:
    """SA-6, SA-7, SA-8, SA-12: every parameter is enforced, and the note for the system message is short."""
    search = ToolSearch(Catalog(TOOLS))
    session = search.session()
    built_in = session.tools()[0].tool
    assert built_in.name == "search_tools"
    assert "servers: post, sky, vault" in built_in.description
    assert built_in.input_schema["required"] == ["queries"]
    assert built_in.input_schema["properties"]["category"]["enum"] == ["boxes", "mail", "weather"]
    search.catalog.add(defined("new", "New", server="another", category="other"))
    assert session.tools()[0].tool == built_in
    assert "another" in search.session().tools()[0].tool.description
    assert ESTIMATE.count(session.instructions()) < 100


def test_it_can_be_given_another_name() -> None:
    """SA-6"""
    session = session_with(search_tool="toolSearchTool")
    assert session.tools()[0].name == "toolSearchTool"
    assert "toolSearchTool" in session.instructions()
    assert session.handle(ToolCall("a", "toolSearchTool", {"query": "mail"})).ok
    assert session.handle(ToolCall("a", "search_tools", {"query": "mail"})).status == "unknown"


@pytest.mark.parametrize("name", ["", "no spaces", "x" * 65, "naïve", "a.b"])
def test_a_name_no_provider_accepts_is_a_setup_error(name: str) -> None:
    with pytest.raises(SetupError, match="search_tool"):
        ToolSearch(Catalog(TOOLS), search_tool=name)


# -- what it is called with --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"queries": ["mail", "weather"]},
        {"queries": '["mail", "weather"]'},
        {"query": ["mail", "weather"]},
        {"queries": ["mail", "", "  ", "mail", "weather", None]},
        {"queries": ["mail"], "query": "weather"},
        {"q": ["mail", "weather"], "unknown": 1},
        {"queries": ["mail", 10**5_000, {"n": 10**5_000}, ["no"], "weather"]},
    ],
)
def test_queries_are_read_in_any_form_a_model_makes_up(arguments: Any) -> None:
    """SA-7: one text, a list, a list as text, the parameter names of other systems."""
    assert read_request(arguments, Settings()).queries == ("mail", "weather")


@pytest.mark.parametrize(
    "arguments", [{}, {"queries": []}, {"queries": [""]}, {"query": None}, {"queries": [[], None]}]
)
def test_a_call_without_a_query_is_told_to_pass_one(arguments: Any) -> None:
    answer = searched(session_with(), **arguments)
    assert answer.status == "invalid_arguments"
    assert '"queries"' in answer.content


@pytest.mark.parametrize(
    ("limit", "used"),
    [
        (1, 2), (0, 2), (-5, 2), (2, 2), (3, 3), (7, 7), (20, 7), (1_000, 7), (10**400, 7), ("5", 5), (5.9, 5),
        ("many", 2), (None, 2), (float("nan"), 2), ([3], 2), ({}, 2),
    ],
)  # fmt: skip
def test_BK_7_the_models_limit_counts_from_the_usual_number_up_to_five_more(limit: Any, used: int) -> None:
    """BK-7, SA-11: small models ask for one tool, miss, and give up; large numbers would fill the request."""
    for key in ("limit", "maxResults", "max_results", "k"):
        assert read_request({"query": "box", key: limit}, Settings()).limit == used
    if isinstance(limit, int) and abs(limit) < 1_000:
        assert len(searched(session_with(), query="open box", limit=limit).data["loaded"]) == used


def test_SA_11_how_many_are_loaded_and_named_are_settings() -> None:
    """SA-11: where the best hit is doubtful, as here, three times as many are named."""
    answer = searched(session_with(results=3, named=4), query="open box")
    assert (len(answer.data["loaded"]), len(answer.data["named"])) == (3, 12)
    answer = searched(session_with(results=1, named=0), query="open box")
    assert (len(answer.data["loaded"]), answer.data["named"]) == (1, [])
    assert "Also" not in answer.content


def test_A19_a_selection_loads_what_there_is_and_names_what_there_is_not() -> None:
    """A19, AN-20"""
    answer = searched(session_with(defined("real_tool", "x")), query="select:real_tool,ghost_tool")
    assert answer.data["loaded"] == ["real_tool"]
    assert answer.data["unknown"] == ["ghost_tool"]
    assert 'No tool is named "ghost_tool"' in answer.content


@pytest.mark.parametrize(
    ("query", "found", "unknown"),
    [
        ("SELECT : Send-Mail ; post/read_mail  ghost", ["post/send_mail", "post/read_mail"], ["ghost"]),
        ("select:ghost_a,ghost_b", [], ["ghost_a", "ghost_b"]),
        ("select:send_mail,send_mail,SEND_MAIL", ["post/send_mail"], []),
        ("select:" + ",".join(f"ghost_{n}" for n in range(40)), [], [f"ghost_{n}" for n in range(40)]),
    ],
)
def test_A19_siblings_every_unknown_name_is_reported(query: str, found: list[str], unknown: list[str]) -> None:
    """A19: other separators and spellings, nothing but ghosts, repeated names, very many."""
    answer = searched(session_with(), query=query)
    assert answer.data["loaded"] == found
    assert answer.data["unknown"] == unknown
    assert len(answer.content) < 1_500


def test_C48_several_known_tools_are_loaded_in_one_call() -> None:
    """C48: misses are reported by name."""
    session = session_with(defined("a"), defined("b"))
    answer = searched(session, names=["a", "b", "c"])
    assert answer.data["loaded"] == ["a", "b"]
    assert answer.data["unknown"] == ["c"]
    assert [shown.name for shown in session.tools()] == ["search_tools", "a", "b"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"names": [f"box_{n}" for n in range(20)]},
        {"names": ", ".join(f"box_{n}" for n in range(20))},
        {"query": " ".join(f"box_{n}" for n in range(20)), "limit": 20},
    ],
)
def test_C48_siblings_twenty_names_need_one_round(arguments: Any) -> None:
    """C48: more names than queries are allowed, names in one text, names among the words of a query."""
    answer = searched(session_with(), **arguments)
    assert answer.data["loaded"] == [f"vault/box_{n}" for n in range(20)]
    assert "Queries left out" not in answer.content


def test_queries_beyond_the_most_are_left_out_and_counted() -> None:
    answer = searched(session_with(queries=2), queries=["mail", "weather", "box", "open"])
    assert "Queries left out: 2; 2 at a time." in answer.content


# -- category ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["keyword", "regex"])
@pytest.mark.parametrize("key", ["category", "categoryFilter"])
def test_X9_the_category_is_obeyed_by_every_index(index: str, key: str) -> None:
    """X9, SA-7, SA-34's opposite"""
    session = session_with(index=index, answer_tokens=5_000)
    answer = searched(session, query="open mail read box weather", limit=20, **{key: "Mail "})
    assert {*answer.data["loaded"]} == {"post/send_mail", "post/read_mail"}


def test_an_unknown_category_is_answered_with_those_there_are() -> None:
    answer = searched(session_with(), queries=["mail", "weather"], category="post office")
    assert answer.content.startswith("There is no category 'post office'; there are: 'boxes', 'mail', 'weather'.")
    assert answer.data["loaded"] == []


# -- what it answers ---------------------------------------------------------------------------------------------------


def test_several_queries_are_answered_one_by_one() -> None:
    answer = searched(session_with(index="keyword"), queries=["weather forecast", "send electronic mail", "zzqx"])
    assert (
        answer.content.splitlines()[0]
        == f"Loaded {len(answer.data['loaded'])} tools; call them by name from your next step on."
    )
    assert '\nFor "weather forecast":\n- get_weather (sky): Weather forecast for a city.\n' in answer.content
    assert '\nFor "send electronic mail":\n- send_mail (post): ' in answer.content
    assert 'Nothing fits "zzqx".' in answer.content


def test_a_query_whose_tools_another_query_found_first_is_answered_too() -> None:
    index = FixedIndex({"one": ["post/send_mail"], "other": ["post/send_mail"]})
    answer = (
        ToolSearch(Catalog(TOOLS), index).session().handle(ToolCall("s", "search_tools", {"queries": ["one", "other"]}))
    )
    assert answer.content.endswith('For "other": send_mail, listed above.')
    assert answer.content.count("Send an electronic mail.") == 1


def test_every_query_gets_its_best_tool_before_any_gets_its_second() -> None:
    """The budget is shared, so that no capability is left without a tool."""
    index = FixedIndex({"a": [f"vault/box_{n}" for n in range(10)], "b": ["sky/get_weather"], "c": ["post/read_mail"]})
    session = ToolSearch(Catalog(TOOLS), index, answer_tokens=120).session()
    answer = searched(session, queries=["a", "b", "c"], limit=10)
    assert answer.data["loaded"][:3] == ["vault/box_0", "sky/get_weather", "post/read_mail"]
    assert "vault/box_2" in answer.data["named"]


def test_what_does_not_fit_the_answer_is_named_or_else_counted() -> None:
    session = session_with(answer_tokens=150, results=20)
    answer = searched(session, query="open box")
    assert ESTIMATE.count(answer.content) <= 150
    loaded, named, left_out = (answer.data[key] for key in ("loaded", "named", "left_out"))
    assert len({*loaded, *named, *left_out}) == len(loaded) + len(named) + len(left_out)
    assert named
    assert [tool.id for tool in session.loaded] == loaded
    assert (f"left out to keep this short: {len(left_out)}." in answer.content) == bool(left_out)
    assert not any(f"- {tool_id.removeprefix('vault/')} " in answer.content for tool_id in left_out)


def test_even_the_smallest_budget_shows_the_best_tool() -> None:
    session = session_with(defined("w", "word " * 30, server="s" * 300), answer_tokens=100)
    assert searched(session, query="word").data["loaded"] == [f"{'s' * 300}/w"]


def test_nothing_fits_is_said_with_near_names_and_how_to_go_on() -> None:
    """SA-9: an empty answer is never all a model gets."""
    session = ToolSearch(Catalog(TOOLS), FixedIndex({})).session()
    answer = searched(session, query="get wether")
    assert answer.ok
    assert answer.data["loaded"] == []
    assert (
        'Nothing fits "get wether". Nearest: get_weather (call one by its name if it does fit). Try other words'
        in answer.content
    )


def test_a_server_that_is_down_is_named_where_a_search_falls_short_or_asks_for_it() -> None:
    search = ToolSearch(Catalog(TOOLS))
    search.catalog.mark_missing("github", "connection refused")
    session = search.session()
    for query in ("zzz", "open an issue on github"):
        assert "The server 'github' cannot be reached now" in searched(session, query=query).content
    assert "github" not in searched(session, query="send_mail").content
    search.catalog.mark_missing("github", None)
    assert "github" not in searched(session, query="weather").content


def test_a_pattern_that_is_none_is_explained() -> None:
    answer = searched(session_with(index="regex"), query="(box|mail")
    assert answer.ok
    assert "(" in answer.content


def test_a_long_query_is_quoted_briefly() -> None:
    answer = searched(session_with(), queries=["zq" * 5_000])
    assert len(answer.content) < 800
    assert len(json.dumps(session_with().export())) < 5_000


# -- the brakes --------------------------------------------------------------------------------------------------------


def test_a_repeated_search_that_has_nothing_new_is_answered_shortly() -> None:
    """In any order, case and spacing, with any limit; the tools are named so that they can be called."""
    found = {"mail": ["post/send_mail", "post/read_mail"], "Mail ": ["post/send_mail"], "weather": ["sky/get_weather"]}
    many = [*TOOLS, *(defined(f"bag_{n}", f"Open the bag number {n}.") for n in range(30))]  # too many to name them all
    session = ToolSearch(Catalog(many), FixedIndex(found)).session()
    first = searched(session, queries=["mail", "weather"])
    again = searched(session, queries=["Weather ", "mail"], limit=20)
    assert again.content.startswith("You have searched for this already.")
    assert "send_mail" in again.content
    assert len(again.content) < len(first.content)
    assert not searched(session, queries=["mail"]).content.startswith("You have")


def test_a_repeated_search_that_finds_something_new_is_not_braked() -> None:
    search = ToolSearch(Catalog(TOOLS))
    session = search.session()
    searched(session, query="electronic mail")
    search.catalog.add(defined("forward_mail", "Forward an electronic mail."))
    assert "forward_mail" in searched(session, query="electronic mail").data["loaded"]


def test_a_repeated_vain_search_is_told_to_stop() -> None:
    session = session_with()
    assert "Try other words" in searched(session, query="zzqx").content
    assert "box_9" in searched(session, query="ZZQX").content, "once: all names of a small catalog"
    assert searched(session, query="ZZQX").content.startswith("You have searched for this already and nothing fits.")


def test_the_third_vain_search_in_a_row_is_told_to_stop_and_a_hit_starts_anew() -> None:
    session = session_with()
    answers = [searched(session, query=word).content for word in ("zzqx", "vvkp", "qqjw")]
    assert ["Stop searching" in answer for answer in answers] == [False, False, True]
    searched(session, query="mail")
    assert "Stop searching" not in searched(session, query="wwxz").content


def test_a_search_that_could_not_be_run_is_none_in_vain_and_its_problem_is_repeated() -> None:
    session = session_with(index="regex")
    answers = [searched(session, query="(box|mail").content for _ in range(4)]
    assert len(set(answers)) == 1
    assert "nothing fits" not in answers[0].lower()
    assert "Stop searching" not in searched(session, query="zzqx").content


def test_after_a_compaction_asking_again_is_no_repetition() -> None:
    """What the first search said is gone from the history."""
    session = session_with()
    searched(session, query="zzqx")
    session.after_compaction()
    assert "already" not in searched(session, query="zzqx").content


def test_brakes_are_stored_with_the_session() -> None:
    search = ToolSearch(Catalog(TOOLS))
    session = search.session("s")
    for word in ("zzqx", "zzqx"):
        searched(session, query=word)
    again = search.restore(session.export())
    assert searched(again, query="zzqx").content.startswith("You have searched")
    assert "Stop searching" in searched(again, query="qqjw").content


def test_an_answer_says_which_part_of_the_index_took_no_part() -> None:
    """K29: for the program, in the data of the result; each reason once, however many queries."""

    class Silent:
        name, width = "silent", 2

        def encode(self, texts: Any, *, query: bool = False) -> Any:
            if query:
                raise TimeoutError
            return [[1.0, 0.0]] * len(texts)

    session = session_with(index=HybridIndex(Silent()))
    answer = searched(session, queries=["send a mail", "read the mailbox"])
    assert answer.data["degraded"] == ["searched by words only: TimeoutError"]
    assert searched(session_with(index="keyword"), queries=["send a mail"]).data["degraded"] == []
