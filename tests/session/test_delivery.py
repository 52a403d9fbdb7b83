"""The choice of a delivery by price: its rule, its settings, the numbers that ship, and what `why` says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Settings, SetupError, ToolSearch
from toolsearch.session import delivery as rule
from toolsearch.session.delivery import Extra, Searchable, Ways, cheaper_below, choose, fitted
from toolsearch.wires import openai_chat

NO = "the wire 'openai_chat' cannot deliver natively"
FEW, SOME, MANY = (Searchable(n, 137 * n, n) for n in (10, 100, 600))


def chosen(tools: Searchable, not_native: str = NO, **options: Any) -> tuple[str, str]:
    return choose(Settings.from_mapping(options), tools, Ways(not_native))


# -- the rule ----------------------------------------------------------------------------------------------------------


def test_the_formula_gives_the_numbers_of_the_simulation() -> None:
    """Native: F 500, a 750, b 48; at T 1, 3, 5, 10 and 20, cold and warm, as in the table of the simulation."""
    native = Extra(500, 750, 48)
    cold = [native.cheaper_below(turns, 1.0, 0.1, 1.9) for turns in (1, 3, 5, 10, 20)]
    warm = [native.cheaper_below(turns, 0.1, 0.1, 1.9) for turns in (1, 3, 5, 10, 20)]
    assert cold == pytest.approx([1190, 2170, 2950, 4590, 7410], rel=0.005)
    assert warm == pytest.approx([4470, 4790, 5260, 6520, 9030], rel=0.005)


@pytest.mark.parametrize("delivery", ["native", "bridge", "append"])
@pytest.mark.parametrize("is_warm", [False, True])
def test_the_longer_a_conversation_the_later_search_pays(delivery: str, is_warm: bool) -> None:
    """What a search brings stays in the history. A warm cache makes showing all cheap, so search pays later too."""
    limits = [cheaper_below(delivery, turns, is_warm=is_warm) for turns in (1, 2, 3, 5, 10, 20, 50)]
    if is_warm is False:
        assert limits == sorted(limits)
    assert all(cheaper_below(delivery, turns, is_warm=True) > cheaper_below(delivery, turns) for turns in (3, 10, 20))


def test_a_list_that_grows_pays_last() -> None:
    """What it costs grows with the square of the turns: each change of the list loses the cached messages."""
    for turns in (3, 10, 20):
        native, bridge, append = (cheaper_below(each, turns) for each in ("native", "bridge", "append"))
        assert 0 < 0.85 * native < bridge < 1.15 * native < append


def test_one_turn_is_not_won_by_search_in_a_catalog_of_almost_nothing() -> None:
    """No conversation of one turn was played; the fit goes on to it with sense."""
    assert all(cheaper_below(delivery, 1) > 300 for delivery in ("native", "bridge", "append"))


def test_the_numbers_that_ship_say_how_they_were_fitted() -> None:
    shipped = json.loads(Path(rule.__file__).with_name("delivery.json").read_text("utf-8"))
    assert shipped["command"].startswith("toolsearch eval ")
    assert shipped["fitted on"]
    assert shipped["extra"].keys() == {"native", "bridge", "append"}
    assert 0 < fitted().cached < 1 < fitted().requests


# -- the modes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tools", [FEW, SOME, MANY])
@pytest.mark.parametrize("options", [{}, {"mode": "search"}])
def test_by_default_only_the_delivery_behind_the_search_tool_is_chosen(
    tools: Searchable, options: dict[str, Any]
) -> None:
    """A conversation begins with search, however small the catalog is."""
    assert chosen(tools, "", **options)[0] == "native"
    assert chosen(tools, **options)[0] == "bridge"
    assert chosen(tools, **options, expected_turns=4)[0] == "bridge"
    assert chosen(tools, **options, expected_turns=3)[0] == "append"
    assert not Settings.from_mapping(options).most_preselected
    assert not Settings.from_mapping(options).most_in_directory


def test_a_session_that_does_not_know_its_wire_begins_with_the_search_tool_alone() -> None:
    """Any program can list what is found. One that says how long it talks, or wants "auto", gets the choice."""
    search = ToolSearch([{"name": f"tool_{n}", "description": "word " * 600} for n in range(20)], "keyword")
    session = search.session()
    assert (session.mode, [each.name for each in session.tools()]) == ("append", ["search_tools"])
    assert session.why() == "append: the session was not told its wire, and every program can list what is found"
    assert search.session(wire=openai_chat).mode == "bridge"
    for options in ({"expected_turns": 10}, {"mode": "auto"}, {"without_native": "bridge"}):
        told: Any = options
        assert ToolSearch(search.catalog, "keyword", **told).session().mode == "bridge"


@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "auto", "auto_tools": 0, "auto_tokens": 0}, {"without_native": "bridge"}],
)
def test_B26_siblings_a_tool_with_the_name_of_the_call_tool_is_no_error_where_nobody_asked_for_a_bridge(
    options: dict[str, Any],
) -> None:
    search = ToolSearch([{"name": "call_tool", "description": "Call by phone."}], "keyword", **options)
    session = search.session(wire=openai_chat)
    assert session.mode == "append"
    assert "a tool has the name 'call_tool' (see the setting `call_tool`)" in session.why()
    assert ToolSearch(search.catalog, "keyword", call_tool="use", **options).session(wire=openai_chat).mode == "bridge"


def test_auto_shows_all_while_that_costs_less() -> None:
    assert chosen(FEW, mode="auto")[0] == "static"
    assert chosen(SOME, mode="auto")[0] == "bridge"
    assert chosen(SOME, mode="auto", expected_turns=3)[0] == "append"
    assert chosen(SOME, "", mode="auto")[0] == "native"


@pytest.mark.parametrize("turns", [1, 3, 10, 20])
@pytest.mark.parametrize("cache", ["cold", "warm"])
@pytest.mark.parametrize("not_native", [NO, ""])
def test_auto_turns_at_the_fitted_number_of_tokens(turns: int, cache: str, not_native: str) -> None:
    options: dict[str, Any] = {"mode": "auto", "expected_turns": turns, "cache": cache}
    behind = chosen(MANY, not_native, **options)[0]
    limit = cheaper_below(behind, turns, is_warm=cache == "warm")
    assert chosen(Searchable(20, limit - 1, 20), not_native, **options)[0] == "static"
    assert chosen(Searchable(20, limit, 20), not_native, **options)[0] == behind != "static"


def test_more_tools_than_a_request_carries_are_searched_however_small() -> None:
    small = Searchable(140, 700, 140)
    mode, why = chosen(small, mode="auto")
    assert mode == "bridge"
    assert why.startswith("140 tools, about 700 tokens: few, but 140 in all are more than a request carries (128)")
    assert chosen(small, mode="auto", max_tools=140)[0] == "static"


@pytest.mark.parametrize("mode", ["search", "auto"])
def test_one_setting_prefers_a_delivery_where_the_wire_has_no_native(mode: str) -> None:
    for wanted, turns in (("append", 20), ("bridge", 1)):
        options: dict[str, Any] = {"mode": mode, "without_native": wanted, "expected_turns": turns}
        assert chosen(MANY, **options)[0] == wanted
        assert "the setting `without_native`" in chosen(MANY, **options)[1]
        assert chosen(MANY, "", **options)[0] == "native"


def test_a_delivery_that_was_asked_for_is_kept() -> None:
    for mode in ("append", "bridge", "compact", "static"):
        assert chosen(SOME, "", mode=mode) == (mode, "the setting `mode`")
    assert chosen(SOME, "", mode="native") == ("native", "the setting `mode`")
    assert chosen(SOME, NO, mode="native") == ("append", NO)


def test_static_is_refused_where_a_request_cannot_carry_all() -> None:
    with pytest.raises(SetupError, match=r"600 tools cannot all be shown with max_tools=128; use mode='append'"):
        chosen(MANY, mode="static")


# -- fixed thresholds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "tools", "expected"),
    [
        ({"auto_tokens": 0}, Searchable(9, 90_000, 9), "static"),
        ({"auto_tokens": 0}, Searchable(10, 90, 10), "append"),
        ({"auto_tools": 0, "auto_tokens": 20_000}, Searchable(60, 19_999, 60), "static"),
        ({"auto_tools": 0, "auto_tokens": 20_000}, Searchable(6, 20_000, 6), "append"),
        ({"auto_tools": 10}, Searchable(50, 2_499, 50), "static"),
        ({"auto_tools": 10}, Searchable(10, 2_500, 10), "append"),
        ({"auto_tools": 0, "auto_tokens": 0}, Searchable(1, 1, 1), "append"),
    ],
)
def test_BK_1_siblings_fixed_thresholds_replace_the_choice_by_price(
    limits: dict[str, int], tools: Searchable, expected: str
) -> None:
    """The book's rule counts tools, and begins to search with the tenth."""
    mode, why = chosen(tools, mode="auto", without_native="append", **limits)
    assert mode == expected
    assert all(f"{limit:,}" in why for limit in {"auto_tools": 10, "auto_tokens": 2_500, **limits}.values())
    assert "cache at first" not in why


# -- what it says ------------------------------------------------------------------------------------------------------


def test_why_has_the_numbers() -> None:
    _, why = chosen(SOME, "", mode="auto")
    below = cheaper_below("native", 10)
    assert why == (
        f"100 tools, about 13,700 tokens: from {below:,} tokens on, searching pays over 10 turns, with a cold cache at "
        "first; the wire delivers natively; the instructions name all tools; up to 3 that fit the words of a message "
        "come with it"
    )
    below = cheaper_below("bridge", 20, is_warm=True)
    _, why = chosen(Searchable(9, 1_233, 9), mode="auto", expected_turns=20, cache="warm")
    assert why == (
        f"9 tools, about 1,233 tokens: below {below:,} tokens, showing all costs less than searching over 20 turns, "
        "with a warm cache at first"
    )


@pytest.mark.parametrize(
    ("turns", "delivery", "end"),
    [
        (3, "append", "over 3 turns found tools are listed, so that no arguments are wrapped"),
        (10, "bridge", "over 10 turns a list of tools that grows costs more than a call tool"),
    ],
)
def test_without_native_the_turns_decide_and_why_says_so(turns: int, delivery: str, end: str) -> None:
    assert chosen(SOME, expected_turns=turns) == (delivery, f"{NO}; {end}")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"expected_turns": 0}, "the setting 'expected_turns' cannot be 0"),
        ({"cache": "hot"}, "the setting 'cache' cannot be 'hot'"),
        ({"without_native": "static"}, "the setting 'without_native' cannot be 'static'"),
    ],
)
def test_a_setting_out_of_range_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=re.escape(told)):
        Settings.from_mapping(options)
