"""What tools are called: base names, names a provider accepts, exact look-ups and near misses."""

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import Catalog
from toolsearch.catalog.names import LEGAL, Names, base_name, provider_name, squashed


@pytest.mark.parametrize(("name", "server", "base"), [
    ("ask_helper", None, "ask_helper"), ("mcp__kit__ask_helper", None, "ask_helper"),
    ("kit/ask_helper", None, "ask_helper"),
    ("kit.ask_helper", None, "ask_helper"), ("kit::ask_helper", None, "ask_helper"),
    ("kit:ask_helper", None, "ask_helper"),
    ("ask_helper_mcp_kit", None, "ask_helper"), ("kit_ask_helper", "kit", "ask_helper"),
    ("KIT-ask_helper", "kit", "ask_helper"), ("my-kit_ask", "my_kit", "ask"), ("kit", "kit", "kit"),
    ("kitchen_light", "kit", "kitchen_light"), ("__", None, "__"), ("a__", None, "a__"), ("", None, ""),
    ("获取.工单", None, "工单"),
])  # fmt: skip
def test_the_base_name_is_the_name_without_its_namespace(name: str, server: str | None, base: str) -> None:
    assert base_name(name, server) == base


def test_a_name_is_spelled_by_its_letters_and_digits() -> None:
    assert squashed("Create-Issue") == squashed("create_issue") == squashed("ＣＲＥＡＴＥ issue") == "createissue"
    assert squashed("Straße") == squashed("STRASSE")


@given(st.text(min_size=1), st.text(min_size=1), st.none() | st.text(), st.booleans())
def test_a_provider_name_is_legal_for_any_name(name: str, tool_id: str, server: str | None, shared: bool) -> None:
    """B16, B17."""
    tool_id = tool_id.encode("utf-8", "replace").decode()
    given_name = provider_name(name, tool_id, server, shared=shared)
    assert LEGAL.fullmatch(given_name)
    assert given_name == provider_name(name, tool_id, server, shared=shared)
    if LEGAL.fullmatch(name) and not shared:
        assert given_name == name


def test_a_name_that_is_cut_keeps_a_hash_of_the_whole() -> None:
    """B16: cut at the end, where tools of one server differ, they would be one."""
    server = "customer_internal_ticketing_onprem_production_cluster"
    made = [
        provider_name(name, f"{server}/{name}", server, shared=True)
        for name in ("fetch_ticket_by_number", "fetch_ticket_by_reporter")
    ]
    assert made[0] != made[1]
    assert all(name.startswith("customer_internal_ticketing") and len(name) <= 64 for name in made)


def names_of(**spelled: str) -> Names:
    names = Names()
    for tool_id, name in spelled.items():
        names.add(tool_id, (tool_id, name))
    return names


def test_near_names_come_best_first_and_only_if_something_is_similar() -> None:
    names = names_of(a="create_issue", b="create_issues_bulk", c="close_issue", d="send_mail")
    assert names.near("create_isue") == ["a", "b", "c"]
    assert names.near("create_isue", limit=1) == ["a"]
    assert names.near("create_isue", among={"c", "d"}) == ["c"]
    assert names.near("zzz") == []
    assert names.near("") == []


def test_among_many_names_the_nearest_are_found_wherever_they_stand() -> None:
    """More names than are compared letter by letter: a row of counts chooses them, also after changes."""
    chance = random.Random(3)
    words = ["".join(chance.choices("abcdefghijklmnoprstuvw", k=5)) for _ in range(60)]
    spelled = {f"t{n:04}": "_".join(chance.sample(words, 3)) for n in range(2_000)}
    names = names_of(**spelled)
    assert names.near("") == []
    gone = [tool_id for n, tool_id in enumerate(spelled) if n % 3 == 0]
    for tool_id in gone:
        names.remove(tool_id)
    kept = names.copy()
    names.add("t9999", ("t9999", "quite_another_name"))
    for tool_id, name in list(spelled.items())[:300]:
        slip = name[:4] + name[5:]
        assert (kept.near(slip, 1) == [tool_id]) == (tool_id not in gone)
        assert names.near(slip, 9) == names.near(slip, 9, set(spelled) | {"t9999"})
        assert tool_id not in names.near(slip, 9, {i for i in spelled if i != tool_id})
    assert names.near("quite_anothr_name") == ["t9999"]
    assert "t9999" not in kept.near("quite_anothr_name")


@pytest.mark.parametrize(
    "text", ["удали пост", "公司的日历", "aфбв", "create_исс", "créer", "issueжз", "ß_create", "x" * 64]
)
def test_a_text_of_letters_that_no_name_has_is_near_none_without_a_look_at_the_names(text: str) -> None:
    spelled = {f"t{n}": name for n, name in enumerate(["create_issue", "close_issue", "send_mail", "straße"])}
    names = names_of(**spelled)
    assert names.near(text) == names.near(text, among=set(spelled))
    later = names.copy()
    later.add("new", ("new", "удали_поста"))
    assert later.near("удали пост") == ["new"]


def test_a_name_taken_out_leads_nowhere() -> None:
    names = names_of(a="read", b="read")
    assert names.folded("READ") == ["a", "b"]
    names.remove("a")
    names.remove("a")
    assert names.exact("read") == ["b"]
    names.remove("b")
    assert names.near("read") == names.exact("read") == []


@given(st.text())
def test_no_text_breaks_a_look_up(text: str) -> None:
    names = names_of(a="create_issue", b="日本語", c="🔥")
    assert set(names.near(text)) | set(names.exact(text)) <= {"a", "b", "c"}


def test_a_look_up_of_a_very_long_name_takes_no_time() -> None:
    names = names_of(**{f"t{i}": f"create_issue_number_{i}" for i in range(2_000)})
    started = time.perf_counter()
    names.near("create_issue_" * 10_000)
    names.exact("create_issue_" * 10_000)
    base_name("a__" * 10_000, "a")
    assert time.perf_counter() - started < 1


# -- names like those of other servers -------------------------------------------------------------------------------


def flagged(catalog: Catalog) -> list[str]:
    return sorted(tool.id for tool in catalog.suspicious)


@pytest.mark.parametrize(("one", "other"), [
    (("bank", "send_money"), ("evil", "Send-Money")), (("bank", "send_money"), ("evil", "sendmoney")),
    (("bank", "send_money"), (None, "SEND.MONEY")), (("bank", "send_money"), ("evil", "mcp__bank__send_money")),
    (("bank", "send_money"), ("evil", "bank.send_money")), (("a_b", "c"), ("a", "b_c")),
    (("bank", "x"), ("b_ank", "X")),
])  # fmt: skip
def test_D3_folded_collisions_between_servers_are_flagged_in_any_order(one: Any, other: Any, caplog: Any) -> None:
    """D3: when the catalog is filled, when one comes later, and no longer when one has left."""
    tools = [{"name": name, "server": server, "description": "x"} for server, name in (one, other)]
    for first, second in (tools, tools[::-1]):
        together, later = Catalog([first, second]), Catalog([first])
        assert flagged(later) == []
        later.add(second)
        assert flagged(together) == flagged(later) == sorted(tool.id for tool in together)
        assert all(tool.flags == ("look-alike",) for tool in together)
        later.remove(next(tool.id for tool in later if tool.name == second["name"]))
        assert flagged(later) == []
    assert "2 tools have a name like a tool of another server, but for case and signs" in caplog.text


def test_D3_one_name_of_several_servers_and_spellings_of_one_server_are_not_flagged() -> None:
    catalog = Catalog([{"name": n, "server": s} for n, s in (
        ("search", "a"), ("search", "b"), ("send_mail", "c"), ("SendMail", "c"), ("a__read", "a"), ("b__read", "b"),
        ("c#", "c"), ("c", "d"),
    )])  # fmt: skip
    assert flagged(catalog) == []


def test_D3_a_flag_changes_no_digest_and_is_announced_with_what_came() -> None:
    catalog = Catalog([{"name": "send_money", "server": "bank"}])
    before, heard = catalog["bank/send_money"], []
    catalog.subscribe(heard.append)
    catalog.add({"name": "Send-Money", "server": "evil"})
    assert catalog["bank/send_money"] == before
    (change,) = heard
    assert [(tool.id, tool.flags) for tool in change.added] == [("evil/Send-Money", ("look-alike",))]
    assert not change.removed


def test_thousands_of_spellings_by_one_server_cost_no_square() -> None:
    """They are counted, not compared in pairs."""
    sources = [{"name": "a" + "_" * n + "b", "server": "evil"} for n in range(1, 401)]
    catalog = Catalog([*sources, {"name": "ab", "server": "bank"}])
    assert len(catalog.suspicious) == 401
