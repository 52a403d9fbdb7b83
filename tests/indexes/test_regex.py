"""Patterns as models write them, and prose that only looks like one."""

from contextlib import suppress
from html import unescape
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import Catalog, QueryError, Tool, ToolCall, ToolSearch
from toolsearch.search.index import Hits, find
from toolsearch_indexes.keyword import KeywordIndex
from toolsearch_indexes.regex import GOOD, RegexIndex


def tool(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


OFFICE = [
    tool("send_mail", "Send an electronic mail, urgent or not"),
    tool("search_mail", "Search the mailbox"),
    tool("get_weather", "Weather of a city", input_schema={"type": "object", "properties": {"cityName": {}}}),
    tool("get_price", "The price of an article, in dollars"),
    tool("calc", "Add two numbers, a and b"),
    tool("cpp_build", "Build programs in C++ and C#"),
    tool("add_label", "Label a thing", server="tracker"),
]


def search(query: str, tools: list[dict[str, Any]] = OFFICE, limit: int = 10) -> Hits:
    catalog = Catalog(tools)
    index = RegexIndex()
    index.add(list(catalog))
    return find(catalog, index, query, limit)


def ids(hits: Hits) -> list[str]:
    return [hit.tool.name for hit in hits]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("get_*", ["get_price", "get_weather"]),
        ("*mail", ["search_mail", "send_mail"]),
        ("get_.*", ["get_price", "get_weather"]),
        ("^get", ["get_price", "get_weather"]),
        ("_mail$", ["search_mail", "send_mail"]),
        ("(send|search)_mail", ["search_mail", "send_mail"]),
        ("send.*mail|get_w", ["get_weather", "send_mail"]),
        (r"\bcity\b", ["get_weather"]),
        ("city_?name", ["get_weather"]),
        ("(?i)SEND", ["send_mail"]),
        ("MAILBOX.*|x{9}", ["search_mail"]),
        ("label|tracker", ["add_label"]),
        (r"C\+\+", ["cpp_build"]),
        ("price|", ["get_price"]),
        ("price|.*", ["get_price"]),
        ("colou?r|pric[ei]", ["get_price"]),
    ],
)
def test_a_pattern_is_a_pattern(pattern: str, expected: list[str]) -> None:
    """X3, AN-9, AN-10: real ones and wildcards, in any case, over names, descriptions, servers and arguments."""
    assert sorted(ids(search(pattern))) == expected


@pytest.mark.parametrize("pattern", ["art.*", "(art)"])
def test_a_pattern_finds_parts_of_words_and_plain_words_do_not(pattern: str) -> None:
    """SA-26."""
    tools = [tool("begin", "Start an engine")]
    assert ids(search(pattern, tools)) == (["begin"] if "*" in pattern else [])
    assert ids(search("art", tools)) == []


def test_matches_in_a_name_weigh_more_and_rare_alternatives_too() -> None:
    """SA-27, but each alternative counts by its rarity and each field once."""
    assert ids(search("weather.*|city", [tool("b", "weather weather"), tool("a_weather")]))[0] == "a_weather"
    tools = [tool(f"a{n}", "mail") for n in range(8)] + [tool("z", "parcel")]
    assert ids(search("mail|parcel", tools))[0] == "z"


def test_a_hit_says_which_alternative_matched_in_which_field() -> None:
    hit = search("weather|city").hits[0]
    assert {m.word: m.fields for m in hit.matched} == {
        "weather": ("name", "description"),
        "city": ("description", "arguments"),
    }


PROSE = [
    ("send mail (urgent)", "send_mail"),
    ("[urgent] send mail", "send_mail"),
    ("send mail :)", "send_mail"),
    ("send mail (now", "send_mail"),
    ("send the mail {urgent}", "send_mail"),
    ("please **send** the mail", "send_mail"),
    ('{"query": "send mail"}', "send_mail"),
    ("what's C++?", "cpp_build"),
    ("build with C++", "cpp_build"),
    ("C++", "cpp_build"),
    ("C#", "cpp_build"),
    ("price in $?", "get_price"),
    ("price ($)", "get_price"),
    ("price [USD]", "get_price"),
    ("price: $5 or 50% off?", "get_price"),
    ("price^2", "get_price"),
    ("a+b", "calc"),
    ("price and/or weather?", "get_price"),
    ("price | weather", "get_price"),
    ("what is the price...?", "get_price"),
    (r"price in C:\data\new", "get_price"),
    ("price * 2", "get_price"),
]


@pytest.mark.parametrize(("query", "expected"), PROSE, ids=[query for query, _ in PROSE])
def test_prose_with_punctuation_is_prose(query: str, expected: str) -> None:
    """SA-31, G02: a sentence is searched by its words, whatever signs are in it."""
    found = ids(search(query))
    assert expected in found[:2]
    assert len(found) < len(OFFICE)


@pytest.mark.parametrize("query", ["send a mail", "wether", "nothing of the kind", "the", "city price"])
def test_plain_words_are_answered_as_the_keyword_index_answers_them(query: str) -> None:
    catalog = Catalog(OFFICE)
    one, other = RegexIndex(), KeywordIndex()
    one.add(list(catalog))
    other.add(list(catalog))
    assert one.search(query, 5) == other.search(query, 5)


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("(", 0), ("[a", 0), ("a{2,1}", 1), ("\\", 0), ("mail)", 4), ("get_(x", 4), ("mail[", 4), ("ab(?<", 5)],
)
def test_a_mistake_is_explained_by_its_position_and_a_good_pattern(pattern: str, position: int) -> None:
    """G02: an error result, never an exception."""
    hits = search(pattern)
    assert len(hits) == 0
    assert hits.problem is not None
    assert f"position {position}" in hits.problem
    assert "'(create|open)_?issue'" in hits.problem


@pytest.mark.parametrize("pattern", ["*mail", "mail(?i)", r"\p{L}+", "(?<=a+)b", "**", "mail|*", "((mail)"])
def test_what_models_write_instead_of_patterns_is_an_answer_too(pattern: str) -> None:
    """G02."""
    hits = search(pattern)
    assert len(hits) < len(OFFICE)
    assert hits.problem is None or len(hits) == 0


@pytest.mark.parametrize(
    "pattern",
    [".*", ".+", "(.*)", r"\w+", r"\w*", "[a-z]+", "[[:alpha:]]", r"\p{L}+", r"(\w+\s?)+$", "^", "x*", "(a|)", "|",
     r"\S", "^.", "[^x]", r"\s|\w", "mail?|.?|"],
)  # fmt: skip
def test_a_pattern_that_fits_anything_finds_nothing_and_says_so(pattern: str) -> None:
    """SA-30: a query that says nothing is not one that matches every tool."""
    hits = search(pattern, [tool("one", "aaaa!"), tool("send_it", "Send it"), tool("two", "Other 1")])
    assert len(hits) == 0
    assert hits.problem is None or "fits any text" in hits.problem


@pytest.mark.parametrize(
    "pattern",
    [r"(\w+\s?)+$", r"(a+)+$", r"(a|aa)+$", r"(a*)*b", r"(.*a){20}", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(x+x+)+y",
     r"(?=(a+)+$)b", r"(a+)+\1$", r"(?=.*(a|aa)+$)!", r"((a{99}){99}){99}", r"(?=((a{99}){99}){99})b", r"\p{L}{1000}"],
)  # fmt: skip
def test_no_pattern_runs_away(pattern: str) -> None:
    """G01: nested quantifiers, look-around and counts of counts end soon, with an answer or a problem."""
    tools = [tool(f"t{n}", "aaaaaaaaaaaaaaaaaaaaaaaaaa!" * (1 + n)) for n in range(100)]
    hits = search(pattern, tools)
    assert hits.problem is None or len(hits) == 0
    assert len(hits) <= 10


def test_a_pattern_that_is_too_long_or_too_large_is_refused() -> None:
    """SA-32, AN-8: 200 characters, and no more steps than are quick to compile."""
    assert "200 is the most" in (search("(a|b)" * 41).problem or "")
    assert "300 is the most" in (search("(ab){99}{99}").problem or "")
    assert search("x.{0,100}mail.{0,100}").problem is None


def test_alternatives_of_a_pattern_that_fits_many_tools_are_weighed_together() -> None:
    tools = [tool(f"mail_{n}", "post or mail") for n in range(4_000)]
    catalog = Catalog(tools)
    index = RegexIndex()
    index.add(list(catalog))
    found = index.search("mail|post|x(y)", 3)
    assert [s.id for s in found] == ["mail_0", "mail_1", "mail_10"]
    assert [m.word for m in found[0].matched] == ["mail|post|x(y)"]


def test_anchors_mean_the_ends_of_a_field() -> None:
    tools = [
        tool("send_mail", "first line\nsend_x in the second"),
        tool("x", "does send_mail"),
        tool("y", "xsend_mail"),
    ]
    assert ids(search("^send_", tools)) == ["send_mail"]
    assert ids(search("line$", tools)) == []
    assert sorted(ids(search("^x|^does", tools))) == ["x", "y"]


def test_the_end_of_a_very_long_description_is_searched() -> None:
    """A25, up to the most that is read."""
    tools = [tool("exec_code", "fnA(x); " * 2_400 + "fnZ(y)"), tool("b")]
    assert ids(search(r"fnZ\(y", tools)) == ["exec_code"]


def test_a_pattern_across_the_seam_of_two_pieces_is_found() -> None:
    for at in range(19_700, 20_300, 50):
        index = RegexIndex()
        index.add([Tool("a", "a", "." * at + "needle" + "." * 30_000), Tool("b", "b")])
        assert [scored.id for scored in index.search("need.*le", 5)] == ["a"]


def test_a_removed_tool_is_not_found_and_a_changed_one_is_found_anew() -> None:
    catalog = Catalog(OFFICE)
    index = RegexIndex()
    index.add(list(catalog))
    index.remove(["send_mail", "never_there"])
    assert [s.id for s in index.search("send.*|mail$", 5)] == ["search_mail"]
    index.add([catalog["send_mail"]])
    index.add([catalog["send_mail"]])
    assert [s.id for s in index.search("^send", 5)] == ["send_mail"]
    assert len(index) == len(OFFICE)


@given(st.text(alphabet="ab()[]{}|*+?.^$\\,-1 :=!<>PdwsN", max_size=40))
def test_nothing_but_a_query_error_leaves_a_search(pattern: str) -> None:
    index = RegexIndex()
    index.add(list(Catalog([tool("ab", "a b (a) [b] 1"), tool("ba", "b=a!"), tool("c1", "c")])))
    found = []
    with suppress(QueryError):
        found = index.search(pattern, 2)
    assert len(found) <= 2
    assert all(scored.score > 0 for scored in found)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\binvoice\b", ["list_invoice_items", "sendInvoice", "HTTPInvoiceClient", "pay", "file", "ask"]),
        (r"\bsend\b.*\binvoice\b", ["sendInvoice", "file"]),
        (r"^list\b", ["list_invoice_items", "listURLs"]),
        (r"\bitems$", ["list_invoice_items"]),
        (r"^sendInvoice$|^file$", ["sendInvoice", "file"]),
        (r"^list_invoice_items$", ["list_invoice_items"]),
        (r"\bs3\b", ["getS3Object"]),
        (r"\burls\b", ["listURLs"]),
        (r"\bhttp\b", ["HTTPInvoiceClient"]),
        (r"\binvoic\b", []),
    ],
)
def test_words_begin_and_end_at_underscores_and_humps(pattern: str, expected: list[str]) -> None:
    """K25: in names, parameters and descriptions; and a pattern for the identifier as it stands fits as before."""
    tools = [
        tool("list_invoice_items"),
        tool("sendInvoice"),
        tool("HTTPInvoiceClient"),
        tool("pay", input_schema={"type": "object", "properties": {"invoice_id": {}}}),
        tool("file", "Works on what send_invoice gave."),
        tool("ask", "The GitHub of an invoice."),
        tool("getS3Object"),
        tool("listURLs"),
        tool("invoicing"),
    ]
    assert sorted(ids(search(pattern, tools))) == sorted(expected)


@given(st.lists(st.sampled_from(["send", "Send", "INVOICE", "v2", "s3", "é", "Éa", "名前"]), min_size=1, max_size=6))
def test_each_part_of_a_snake_case_name_is_a_word(parts: list[str]) -> None:
    """K25."""
    catalog = Catalog([tool("_".join(parts)), tool("other")])
    index = RegexIndex()
    index.add(list(catalog))
    name = next(each.id for each in catalog if each.id != "other")
    for part in parts:
        assert name in [scored.id for scored in index.search(rf"\b{part}\b", 5)]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("pattern", ["señal.*", r"\bseñal\b", "se[ñx]al_", "enviar.*é{1}"])
@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_a_pattern_and_a_text_in_another_unicode_form_are_the_same(pattern: str, form: Any, written: Any) -> None:
    """K25: composed and decomposed letters, on both sides."""
    tools = [tool(normalize(written, "señal_enviar"), normalize(written, "Enviar una señal café.")), *OFFICE]
    assert ids(search(normalize(form, pattern), tools))[:1] == [next(iter(Catalog(tools[:1]))).name]


JOBS = [tool(f"job_{n}") for n in range(200)]


@pytest.mark.parametrize("pattern", ["job.*", "(?=j)|z", "job_*", r"job_\d+", r"\bjob\b", "[a-z]+_[0-9]", "job|xyz.*"])
def test_a_pattern_that_fits_every_tool_is_flagged(pattern: str) -> None:
    """K24: five of two hundred that are all alike say nothing, so the answer says how many fit."""
    pytest.importorskip("regex")
    hits = search(pattern, JOBS, 5)
    assert len(hits) == 5
    assert hits.problem is None
    assert hits.hint == f"The pattern {pattern!r} fits all 200 tools. Say more of what is sought, like {GOOD!r}."
    told = ToolSearch(JOBS, "regex").session().handle(ToolCall("a", "search_tools", {"queries": [pattern]}))
    assert hits.hint in told.content
    assert told.status == "ok"
    assert hits.hint in repr(hits)
    assert hits.hint in unescape(hits._repr_html_())


def test_a_pattern_that_fits_nearly_every_tool_is_flagged_and_one_that_tells_tools_apart_is_not() -> None:
    """K24."""
    assert "fits 200 of 207 tools" in str(search("job_.*", [*JOBS, *OFFICE], 5).hint)
    assert search("job_1.*", JOBS, 5).hint is None
    assert search("send.*", [*JOBS, *OFFICE], 1).hint is None
    assert search("job.*", JOBS[:5], 5).hint is None  # nothing is left out
    catalog = Catalog([*JOBS, *OFFICE])
    index = RegexIndex()
    index.add(list(catalog))
    mine = frozenset(["job_1", "job_2", "send_mail"])
    assert find(catalog, index, "job.*", 1, mine).hint is None
    assert find(catalog, index, "job.*|send.*", 1, mine).hint == (  # what others have is neither counted nor told
        f"The pattern 'job.*|send.*' fits all 3 tools. Say more of what is sought, like {GOOD!r}."
    )
