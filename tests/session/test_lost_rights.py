"""D12: what a caller may not see is not told: not by what was shown before, by a server that is down, or by time."""

import sys
from typing import Any

import pytest

from toolsearch import Agent, Caller, Catalog, Session, ToolCall, ToolSearch
from toolsearch.catalog.names import Names
from toolsearch.layers import rules
from toolsearch.stores import MemoryStore
from toolsearch.testing import ScriptedModel

ADMIN, NOBODY = Caller("u", ["admin"], "acme"), Caller("u", [], "acme")
EVE = Caller("eve", ["user"], "other")
SECRETS = ("vaultsrv", "hiddencat", "rotate_key", "SECRETDESC", "hiddenarg")


def hidden(name: str = "rotate_key", **more: Any) -> dict[str, Any]:
    return {
        "name": name, "server": "vaultsrv", "category": "hiddencat", "description": "Rotate SECRETDESC keys.",
        "roles": ["admin"], "input_schema": {"type": "object", "properties": {"hiddenarg": {"type": "string"}}},
        "run": lambda **given: "rotated", **more,
    }  # fmt: skip


def public(**more: Any) -> dict[str, Any]:
    return {"name": "pub", "server": "open", "category": "pubcat", "description": "Something", **more}


def text_of(session: Session) -> str:
    """All that the next request would tell the model."""
    shown = [(each.name, each.tool.description, dict(each.tool.input_schema)) for each in session.tools()]
    return repr(shown) + session.instructions()


def told(session: Session) -> list[str]:
    return [secret for secret in SECRETS if secret in text_of(session)]


# -- what was shown --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["roles", "rules"])
@pytest.mark.parametrize("mode", ["append", "bridge", "static"])
@pytest.mark.parametrize("pinned", [[], ["rotate_key"]])
def test_D12_what_a_caller_lost_leaves_the_next_request(how: str, mode: str, pinned: list[str]) -> None:
    """D12: found and pinned tools, the note for the system message, and the places in the search tool's text."""
    more: Any = {"visible": rules(roles={"vaultsrv/*": ["admin"]})} if how == "rules" else {}
    tools = [hidden(**({"roles": []} if how == "rules" else {})), public()]
    search = ToolSearch(Catalog(tools), "keyword", mode=mode, pinned=pinned, **more)
    session = search.session("s", caller=ADMIN)
    session.tools()
    if mode != "static":
        assert session.handle(ToolCall("1", "search_tools", {"query": "rotate keys"})).ok
    assert "rotate_key" in text_of(session) or mode == "bridge"
    assert session.handle(ToolCall("2", "rotate_key", {})).ok
    lost = search.session("s", caller=NOBODY)
    assert lost is session
    assert told(session) == []
    assert session.handle(ToolCall("3", "rotate_key", {})).status == "unknown"
    search.session("s", caller=ADMIN)
    session.tools()
    assert session.handle(ToolCall("4", "rotate_key", {})).ok, "and what is regained comes back"


def test_D12_a_rule_that_changes_its_mind_is_heard_before_the_next_request() -> None:
    allowed = ["vaultsrv"]
    rule = rules(lambda tool, caller: tool.server != "vaultsrv" or bool(allowed), version=lambda: len(allowed))
    session = ToolSearch([hidden(roles=[]), public()], "keyword", visible=rule).session()
    session.load(["vaultsrv/rotate_key"])
    assert len(told(session)) == 5
    allowed.clear()
    assert told(session) == []


def test_D12_a_definition_that_was_shown_is_judged_itself_when_its_tool_has_changed_or_left() -> None:
    catalog = Catalog([hidden(roles=["user"]), public()])
    search = ToolSearch(catalog, "keyword")
    session = search.session("s", caller=EVE)
    session.load(["vaultsrv/rotate_key"])
    before = text_of(session)
    catalog.replace(hidden(roles=[], description="Open to all."))
    assert text_of(session) == before, "a definition that changed keeps its bytes until a compaction"
    catalog.remove("vaultsrv/rotate_key")
    assert text_of(session) == before, "and so does one that left"
    search.session("s", caller=Caller("eve", [], "other"))
    assert told(session) == [], "but not for a caller who may no longer see what it shows"


def test_D12_a_tool_that_is_restricted_at_its_source_leaves_the_next_request() -> None:
    catalog = Catalog([hidden(roles=[]), public()])
    session = ToolSearch(catalog, "keyword").session(caller=EVE)
    session.load(["vaultsrv/rotate_key"])
    assert len(told(session)) == 5
    catalog.replace(hidden())
    assert told(session) == []


def test_D12_what_others_lose_or_gain_changes_no_byte_of_a_request() -> None:
    catalog = Catalog([hidden(), public()])
    session = ToolSearch(catalog, "keyword").session(caller=EVE)
    before = text_of(session)
    catalog.add(hidden("another"))
    catalog.add(public(name="new", server="newcomer"))
    catalog.remove("vaultsrv/rotate_key")
    assert text_of(session) == before, "the places that the text names stay as they were written"


def test_D12_a_restored_session_names_no_place_that_was_lost() -> None:
    search = ToolSearch([hidden(), public()], "keyword")
    session = search.session("s", caller=ADMIN)
    session.load(["vaultsrv/rotate_key"])
    session.tools()
    state = session.export()
    assert len(told(search.restore(state, caller=ADMIN))) == 5
    restored = search.restore(state, caller=NOBODY)
    assert told(restored) == []
    assert restored.notices() == ["a tool is no longer available and was unloaded"]


def test_D12_an_agents_next_request_names_nothing_that_was_lost() -> None:
    """What `role_lost` showed: the search tool's text went on naming the server."""
    search, store = ToolSearch([hidden(), public()], "keyword"), MemoryStore()
    script = ([("search_tools", {"queries": ["rotate keys"]})], "end")
    Agent(ScriptedModel(*script), search, store=store).run("x", conversation_id="a", caller=ADMIN)
    model = ScriptedModel([("rotate_key", {})], "end")
    Agent(model, search, store=store).run("y", conversation_id="a", caller=NOBODY)
    for request in model.requests:
        shown = repr([(each.name, each.tool.description, each.tool.input_schema) for each in request.tools])
        assert not [secret for secret in SECRETS if secret in shown]
    assert "no longer available" in model.requests[1].transcript[-1].results[0].content  # type: ignore[union-attr]


# -- servers that are down -------------------------------------------------------------------------------------------

WHY = "connect to postgres://svc:hunter2@10.0.0.7/pay refused"


def answer(search: ToolSearch, caller: Caller | None) -> str:
    return search.session(caller=caller).handle(ToolCall("1", "search_tools", {"queries": ["qwerty"]})).content


@pytest.mark.parametrize("visible", [
    rules(tenants={"acme-payroll/*": ["acme"]}),
    rules(tenants={"acme-payroll/pay*": ["acme"]}),
    rules(roles={"acme-*": ["admin"]}),
    rules(lambda tool, caller: tool.server != "acme-payroll" or caller.tenant == "acme"),
    rules(personas={"clerk": ["acme-payroll/*"], "": ["open/*"]}, persona=lambda c: "clerk" if c == ADMIN else ""),
    lambda tool, caller: tool.server != "acme-payroll" or caller.tenant == "acme",
    lambda tool, caller: not tool.id.startswith("acme-payroll/") or caller.tenant == "acme",
])  # fmt: skip
def test_D12_a_server_that_never_listed_a_tool_is_told_to_those_who_may_see_it(visible: Any) -> None:
    """What `tenants2` showed: rules are asked with the server's name."""
    search = ToolSearch(Catalog([public()]), "keyword", visible=visible)
    search.catalog.mark_missing("acme-payroll", WHY)
    assert "acme-payroll" not in answer(search, EVE)
    assert "acme-payroll" in answer(search, ADMIN)


@pytest.mark.parametrize(
    "visible", [rules(deny=["acme-payroll/*"]), rules(allow=["open/*"]), lambda tool, caller: 1 / 0]
)
def test_D12_a_server_that_is_denied_to_all_is_told_to_nobody(visible: Any) -> None:
    search = ToolSearch(Catalog([public()]), "keyword", visible=visible)
    search.catalog.mark_missing("acme-payroll", WHY)
    assert "acme-payroll" not in answer(search, ADMIN)


def test_D12_a_server_that_is_marked_with_roles_is_told_to_those_alone() -> None:
    search = ToolSearch(Catalog([public()]), "keyword")
    search.catalog.mark_missing("acme-payroll", WHY, roles=["admin"])
    assert "acme-payroll" in answer(search, ADMIN)
    for caller in (EVE, NOBODY, None):
        assert "acme-payroll" not in answer(search, caller)
    assert search.catalog.missing == {"acme-payroll": WHY}
    search.catalog.mark_missing("acme-payroll", WHY)
    assert "acme-payroll" in answer(search, EVE)


@pytest.mark.parametrize(("why", "secret"), [
    (WHY, "hunter2"), ("Authorization: Bearer abcdef123456", "abcdef"), ("x" * 190 + " password=hunter2", "hunter2"),
    ("token=" + "s3cr3t" * 60, "s3cr3t"),
])  # fmt: skip
def test_D12_a_reason_that_a_model_reads_has_no_secret_and_is_bounded(why: str, secret: str) -> None:
    search = ToolSearch(Catalog([public()]), "keyword")
    search.catalog.mark_missing("crm", why)
    assert secret not in answer(search, EVE)
    assert "'crm' cannot be reached" in answer(search, EVE)
    assert search.catalog.missing["crm"] == why, "the program reads it whole"


# -- time ------------------------------------------------------------------------------------------------------------


def steps(session: Session, name: str) -> int:
    """How many functions are called to answer a call: the work, whatever the machine."""
    counted = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    session.handle(ToolCall("0", name, {}))
    sys.setprofile(count)
    try:
        session.handle(ToolCall("1", name, {}))
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("seen", [1, 300])
def test_D12_a_hidden_name_takes_the_work_of_an_unknown_one(seen: int) -> None:
    """D12: to the letter, in another spelling, and nearly: as much as if none of the hidden tools were there."""
    shown = [public(name=f"pub_{n}") for n in range(seen)]
    with_secrets = [*(hidden(f"tool_{n}_{n * 7919}") for n in range(600)), *shown]
    session, plain = (ToolSearch(Catalog(of), "keyword").session(caller=EVE) for of in (with_secrets, shown))
    for name in ("tool_7_55433", "Tool-7-55433", "vaultsrv/tool_7_55433"):
        assert abs(steps(session, name) - steps(plain, name)) <= 12 + 0.03 * steps(plain, name)


def test_D12_near_names_look_at_nothing_but_what_may_be_seen() -> None:
    names = Names()
    for n in range(2_000):
        names.add(f"t{n}", (f"create_issue_{n}",))

    class Counted(frozenset[str]):
        looked = 0

        def __contains__(self, item: object) -> bool:
            Counted.looked += 1
            return super().__contains__(item)

    assert names.near("create_issue_7", 3, Counted(["t7", "t8"])) == ["t7", "t8"]
    assert Counted.looked == 0, "no other tool was even compared with them"
