"""What must hold on every index that comes with toolsearch, beside the promises that `check_index` proves."""

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, ToolCall, ToolSearch, open_index
from toolsearch_indexes.encoders.cache import CachedEncoder
from toolsearch_indexes.faiss import FaissIndex
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.vector import VectorIndex

NAMES = sorted(point.name for point in metadata.entry_points(group="toolsearch.indexes"))
every_index = pytest.mark.parametrize("name", NAMES)
by_meaning = pytest.mark.parametrize("kind", [VectorIndex, HybridIndex, FaissIndex])

OFFICE: list[dict[str, Any]] = [
    {"name": "send_mail", "server": "post", "description": "Send an electronic mail", "category": "mail"},
    {"name": "search_mail", "server": "post", "description": "Search the mailbox", "category": "mail"},
    {"name": "getWeather", "server": "sky", "description": "Forecast for a city", "category": "weather"},
    {"name": "create_issue", "server": "tracker", "description": "Open a new issue in a project", "category": "issues"},
    {
        "name": "book",
        "description": "Reserve something",
        "category": "travel",
        "input_schema": {"properties": {"kind": {"description": "A hotel room or a flight"}}},
    },
]


def searching(name: str, **options: Any) -> ToolSearch:
    return ToolSearch(OFFICE, name, **options)


def ids(hits: Any) -> list[str]:
    return [hit.tool.id for hit in hits]


@every_index
def test_it_says_which_it_is(name: str) -> None:
    """SA-2, SA-5: a name rather than a kind, in every answer."""
    search = searching(name)
    assert search.find("mail").index_name == search.index.name
    assert search.index.name in ([name] if name != "auto" else ["hybrid"])


@every_index
def test_names_descriptions_servers_and_parameters_are_searched(name: str) -> None:
    """SA-25, X4, X6: on the indexes by meaning too, and a name is split before it is made lower-case."""
    search = searching(name)
    assert ids(search.find("weather"))[:1] == ["sky/getWeather"]
    assert ids(search.find("open an issue in a project"))[:1] == ["tracker/create_issue"]
    assert "tracker/create_issue" in ids(search.find("tracker"))
    assert ids(search.find("hotel room"))[:1] == ["book"]


@every_index
@pytest.mark.parametrize("query", ["", "   ", "\n\t", None])
def test_a_blank_query_finds_nothing_and_says_so(name: str, query: Any) -> None:
    """SA-30: no match-all, and no nearest neighbours of nothing."""
    search = searching(name)
    hits = search.find(query)
    assert len(hits) == 0
    assert hits.problem == "The query is empty: say in a few words what the tool should do."
    assert list(search.index.search(query or "", 5)) == []


@every_index
@pytest.mark.parametrize("query", ["?!", "…", "-- ** //", "zzqx vvkp"])
def test_what_says_nothing_finds_nothing(name: str, query: str) -> None:
    """SA-28, SA-31: evidence instead of a fixed threshold, and never padded; punctuation is no match-all."""
    assert ids(searching(name).find(query)) == []


@every_index
def test_a_long_query_and_a_broken_one_are_answered(name: str) -> None:
    """SA-32: nothing raises, and what stands at the start of a long query counts."""
    search = searching(name)
    for query in ("create_issue " + "blah " * 5_000, "x" * 30_000, "mail AND (", "[unclosed", "a:b^2~", "*"):
        search.find(query)
    assert "post/send_mail" in ids(search.find("send an electronic mail. " * 300, 5))


@every_index
def test_an_index_without_tools_finds_nothing(name: str) -> None:
    """SA-33."""
    assert list(open_index(name).search("send a mail", 5)) == []
    assert ids(ToolSearch([], name).find("send a mail")) == []


@every_index
def test_a_category_filters_before_ranking(name: str) -> None:
    """SA-34, X9: the best of the category fill the answer, however many others are better."""
    more = [{"name": f"send_mail_{n}", "description": "Send an electronic mail"} for n in range(60)]
    search = ToolSearch([*OFFICE, *more], name)
    assert set(ids(search.find("send an electronic mail", 5, category="mail"))) <= {
        "post/send_mail",
        "post/search_mail",
    }
    assert ids(search.find("send an electronic mail", 1, category="Mail")) == ["post/send_mail"]
    assert ids(search.find("send an electronic mail", 5, category="no such")) == []


@every_index
def test_a_tool_that_is_added_again_is_found_once(name: str) -> None:
    """SA-35."""
    search = searching(name)
    for _ in range(3):
        search.index.add(list(search.catalog))
    assert ids(search.find("mail")).count("post/send_mail") == 1
    search.index.remove(["post/send_mail"])
    assert "post/send_mail" not in [scored.id for scored in search.index.search("electronic mail", 5)]


@every_index
@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_one(name: str, limit: int) -> None:
    """SA-29, SA-35b: and without one there are at most five."""
    assert len(searching(name).find("mail", limit)) == 1
    many = ToolSearch([{"name": f"mail_{n}", "description": "Send a mail"} for n in range(9)], name)
    assert len(many.find("send a mail")) == 5


@every_index
@pytest.mark.parametrize("limit", [0, -1, -3])
def test_an_index_that_is_asked_for_no_hits_gives_none(name: str, limit: int) -> None:
    """Case I08, of an index itself: a limit below 0 is not counted from the end."""
    assert list(searching(name).index.search("search the mail", limit)) == []


@every_index
def test_ids_of_no_tool_among_the_allowed_ones_change_nothing(name: str) -> None:
    """Like case I08: nor do they let anything through, whatever an engine takes such an id for."""
    search = searching(name)
    every = frozenset(tool.id for tool in search.catalog)
    for query in ("send an electronic mail", "hotel room", "zzqx vvkp", "mal"):
        (alone, more) = (search.index.search(query, 5, ids) for ids in (every, every | set(map(str, range(5_000)))))
        assert [(s.id, s.score, s.confidence) for s in more] == [(s.id, s.score, s.confidence) for s in alone]
    for strangers in ([""], ["", "no such"], ["\ud800"], ["a\0b"]):
        assert list(search.index.search("send an electronic mail", 5, frozenset(strangers))) == []


@every_index
def test_a_tool_that_is_removed_twice_at_once_is_gone_and_the_others_stay(name: str) -> None:
    """Like case H06."""
    search = searching(name)
    search.index.remove(["post/send_mail", "no such", "post/send_mail"])
    assert "post/send_mail" not in [scored.id for scored in search.index.search("electronic mail", 5)]
    assert "book" in [scored.id for scored in search.index.search("hotel room", 5)]
    search.index.add(list(search.catalog))
    assert "post/send_mail" in [scored.id for scored in search.index.search("electronic mail", 5)]


@every_index
def test_all_sessions_share_one_index(name: str) -> None:
    """SA-36: what one session finds does not depend on another, and none has an index of its own."""
    search = searching(name)
    before = search.index
    for n in range(3):
        answer = search.session(f"s{n}").handle(ToolCall("a", "search_tools", {"query": "electronic mail"}))
        assert "post/send_mail" in answer.data["loaded"]
    assert search.index is before


@by_meaning
def test_no_session_and_no_search_encodes_the_tools_again(kind: Any, hashed_words: Any) -> None:
    """X7, SA-36, BK-8: a tool is encoded when it comes, and again when its texts change."""
    search = ToolSearch(OFFICE, kind(hashed_words))
    hashed_words.asked.clear()
    for n in range(5):
        session = search.session(f"s{n}")
        session.handle(ToolCall("a", "search_tools", {"query": "electronic mail"}))
        session.tools()
    assert set(hashed_words.asked) == {"electronic mail"}
    hashed_words.asked.clear()
    search.catalog.replace({**OFFICE[0], "description": "Play the violin"})
    assert hashed_words.asked
    assert not [text for text in hashed_words.asked if "weather" in text.lower() or "issue" in text.lower()]


@by_meaning
def test_vectors_are_kept_from_one_run_to_the_next_and_only_what_changed_is_encoded(
    kind: Any, hashed_words: Any, tmp_path: Path
) -> None:
    """PG-20: addressed by what is encoded and by the encoder's name and width, so nothing is mixed or lost."""

    def started(tools: Sequence[dict[str, Any]]) -> list[str]:
        hashed_words.asked.clear()
        search = ToolSearch(tools, kind(CachedEncoder(hashed_words, tmp_path)))
        assert "post/send_mail" in ids(search.find("electronic mail"))
        return [text for text in hashed_words.asked if text != "electronic mail"]

    first = started(OFFICE)
    assert len(first) > len(OFFICE)
    assert started(OFFICE) == []
    changed = {**OFFICE[2], "description": "Play the violin"}
    again = started([*OFFICE[:2], changed, *OFFICE[3:]])
    assert 0 < len(again) < len(first) / 2
    assert all("violin" in text for text in again)
    hashed_words.name = "other-words"
    assert len(started(OFFICE)) == len(first)


def test_one_catalog_does_not_take_the_tools_of_another() -> None:
    """PG-20's hazard: there, indexing for one session replaces what all others search."""
    one, other = Catalog(OFFICE[:2]), Catalog(OFFICE[2:])
    first, second = ToolSearch(one), ToolSearch(other)
    assert "post/send_mail" in ids(first.find("electronic mail"))
    assert ids(second.find("weather"))[:1] == ["sky/getWeather"]
    assert "post/send_mail" in ids(first.find("electronic mail"))
