"""Who may see and call which tool, decided anew in every round: NA-3."""

from __future__ import annotations

from typing import Any

import pytest

from toolsearch import Caller, Catalog, SetupError, Tool, ToolSearch, tool
from toolsearch.calls import NativeDelivery
from toolsearch.events.facts import Answers
from toolsearch.events.requests import CallModel
from toolsearch.layers import approval, rules
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel

HR, DEV = Caller("ana", ["hr"], "north"), Caller("bob", ["dev"], "south")


class Firm:
    """A catalog of a few servers, and what was run."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.catalog = Catalog(
            [
                tool(lambda n=name: self.did.append(n), name=name, server=server, category=server, description=about)
                for server, name, about in [
                    ("payroll", "salary_of", "Salary of an employee"),
                    ("payroll", "raise_salary", "Raise a salary"),
                    ("code", "merge", "Merge a branch"),
                    ("code", "deploy", "Deploy a branch"),
                    ("wiki", "read_page", "Read a page"),
                ]
            ]
        )

    def agent(self, rule: Any, *script: Any, visible: bool = True, mode: str = "append", layers: Any = ()) -> Agent:
        search = ToolSearch(self.catalog, visible=rule if visible else None, mode=mode)  # type: ignore[arg-type]
        return Agent(ScriptedModel(*script), search, layers=[rule, *layers])

    def allowed(self, rule: Any, caller: Caller | None = None) -> set[str]:
        return {held.id for held in self.catalog if rule(held, caller)}


def results(agent: Agent, caller: Caller | None = None) -> list[tuple[str, str]]:
    transcript = agent.conversation("s", caller=caller).transcript
    return [(r.status, r.content) for m in transcript if isinstance(m, Answers) for r in m.results]


def own(caller: Caller) -> str:
    """The persona of a caller's first role."""
    return min(caller.roles)


ALL = {"payroll/salary_of", "payroll/raise_salary", "code/merge", "code/deploy", "wiki/read_page"}


@pytest.mark.parametrize(
    ("options", "caller", "expected"),
    [
        ({}, None, ALL),
        ({"allow": ["code/*", "wiki/read_page"]}, None, {"code/merge", "code/deploy", "wiki/read_page"}),
        ({"deny": ["code/*", "*salary*"]}, HR, {"wiki/read_page"}),
        ({"roles": {"payroll/*": ["hr", "boss"]}}, HR, ALL),
        ({"roles": {"payroll/*": ["hr", "boss"]}}, DEV, {"code/merge", "code/deploy", "wiki/read_page"}),
        ({"roles": {"payroll/*": ["hr", "boss"]}}, None, {"code/merge", "code/deploy", "wiki/read_page"}),
        ({"roles": {"*": ["hr"], "payroll/raise*": ["boss"]}}, HR, ALL - {"payroll/raise_salary"}),
        ({"tenants": {"code/deploy": ["south"]}}, DEV, ALL),
        ({"tenants": {"code/deploy": ["south"]}}, HR, ALL - {"code/deploy"}),
        ({"tenants": {"code/deploy": ["south"]}}, None, ALL - {"code/deploy"}),
        ({"personas": {"clerk": ["wiki/*"]}, "persona": "clerk"}, HR, {"wiki/read_page"}),
        ({"personas": {"hr": ["payroll/*"]}, "persona": own}, HR, {"payroll/salary_of", "payroll/raise_salary"}),
        ({"personas": {"hr": ["payroll/*"]}, "persona": own}, DEV, set()),
    ],
)  # fmt: skip
def test_allow_lists_roles_tenants_and_personas_each_have_to_agree(
    options: dict[str, Any], caller: Caller | None, expected: set[str]
) -> None:
    """NA-3: agent allow-list, persona allow-list, roles; and the tenant."""
    assert Firm().allowed(rules(**options), caller) == expected


def test_checks_see_the_tool_and_the_caller_and_one_that_raises_says_no() -> None:
    """NA-3: enabled, canUse."""

    def can_use(held: Tool, caller: Caller | None) -> bool:
        return held.category != "code" or "dev" in caller.roles  # type: ignore[union-attr]

    rule = rules(can_use, lambda held, caller: held.name != "read_page")
    assert Firm().allowed(rule, HR) == {"payroll/salary_of", "payroll/raise_salary"}
    assert Firm().allowed(rule, DEV) == ALL - {"wiki/read_page"}
    assert Firm().allowed(rule, None) == {"payroll/salary_of", "payroll/raise_salary"}


def test_what_may_not_be_used_is_found_by_nobody_and_answers_like_what_does_not_exist(drive: Any) -> None:
    """NA-3, C39: at search, at load and at the call."""
    firm = Firm()
    script = [
        [("search_tools", {"queries": ["salary of an employee", "merge a branch"]})],
        [("salary_of", {}), ("merge", {}), ("no_such_tool", {})],
    ]
    agent = firm.agent(rules(roles={"payroll/*": ["hr"]}), *script)
    drive(agent, "Go", conversation_id="s", caller=DEV)
    found, *called = results(agent, DEV)
    assert "salary" not in found[1].replace("salary of an employee", "")
    assert [status for status, _ in called] == ["unknown", "ok", "unknown"]
    assert called[0][1].split(": ")[1].split(".")[0] == called[2][1].split(": ")[1].split(".")[0]
    assert firm.did == ["merge"]


def test_a_rule_that_changes_holds_from_the_next_round_on(drive: Any) -> None:
    """NA-3: evaluated each step. The definition leaves the request, and a call to it is refused."""
    firm, on = Firm(), [True]

    def off(_: CallModel) -> Any:
        on[0] = False
        return [("merge", {})]

    rule = rules(lambda held, caller: on[0] or held.server != "code", version=lambda: on[0])
    agent = firm.agent(rule, [("search_tools", {"queries": ["merge a branch"]})], [("merge", {})], off, [("merge", {})])
    drive(agent, "Go", conversation_id="s")
    shown = [{shown.tool.id for shown in request.tools} for request in agent.parts.model.requests]  # type: ignore[attr-defined]
    assert ["code/merge" in ids for ids in shown] == [False, True, True, False, False]
    assert all("search_tools" in ids for ids in shown), "the search tool is nobody's to refuse"
    assert [status for status, _ in results(agent)] == ["ok", "ok", "unknown", "unknown"]
    assert firm.did == ["merge"]


def test_a_search_sees_a_rule_change_by_its_version(drive: Any) -> None:
    """NA-3 at search: what a search keeps of `visible` holds until the version changes."""
    firm, on = Firm(), [True]

    def off(_: CallModel) -> Any:
        on[0] = False
        return [("search_tools", {"queries": ["deploy a branch"]})]

    rule = rules(lambda held, caller: on[0] or held.server != "code", version=lambda: on[0])
    agent = firm.agent(rule, [("search_tools", {"queries": ["merge a branch"]})], off)
    drive(agent, "Go", conversation_id="s")
    first, second = results(agent)
    assert "merge" in first[1]
    assert "code" not in second[1]


def test_without_visible_a_search_may_list_what_cannot_be_called(drive: Any) -> None:
    """The boundary, as the documentation states it: the layer alone keeps a call from running, no more."""
    firm = Firm()
    script = [[("search_tools", {"queries": ["merge a branch"]})], [("merge", {})]]
    agent = firm.agent(rules(deny=["code/*"]), *script, visible=False)
    drive(agent, "Go", conversation_id="s")
    (_, listed), (status, _) = results(agent)
    assert "merge" in listed
    assert status == "unknown"
    assert not firm.did


def test_the_roles_a_caller_has_now_are_the_ones_that_count(drive: Any) -> None:
    firm = Firm()
    agent = firm.agent(rules(roles={"code/*": ["dev"]}), [("merge", {})], "Done.", [("merge", {})], mode="static")
    drive(agent, "Go", conversation_id="s", caller=Caller("bob", ["dev"]))
    drive(agent, "Again", conversation_id="s", caller=Caller("bob"))
    assert [status for status, _ in results(agent, Caller("bob"))] == ["ok", "unknown"]
    assert firm.did == ["merge"]


def test_nobody_is_asked_to_approve_what_may_not_be_used(drive: Any) -> None:
    firm = Firm()

    def ask(waiting: Any) -> Any:
        raise AssertionError("nobody is asked")

    agent = firm.agent(rules(deny=["code/*"]), [("merge", {})], layers=[approval(ask, when=["merge"])], mode="static")
    drive(agent, "Go", conversation_id="s")
    assert [status for status, _ in results(agent)] == ["unknown"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"allow": "code/*"}, r"allow must be a collection of patterns, as in \['code/\*'\]"),
        ({"roles": {"code/*": "dev"}}, r"roles\['code/\*'\]"),
        ({"persona": "clerk"}, "go together"),
        ({"personas": {"clerk": []}, "persona": "boss"}, "no persona 'boss'; there are: 'clerk'"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SetupError, match=named):
        rules(**options)
    with pytest.raises(SetupError, match="each check must be a function"):
        rules("code/*")  # type: ignore[arg-type]


class Native(ScriptedModel):
    """A model whose wire delivers natively."""

    native = NativeDelivery(declares=True)


@pytest.mark.parametrize("declares", [True, False])
def test_in_the_mode_native_no_request_holds_what_may_not_be_used_now(declares: bool) -> None:
    """NA-3: neither among the deferred tools nor in the answer that brought it."""
    firm, allowed = Firm(), {"payroll/salary_of", "wiki/read_page"}
    rule = rules(lambda tool, caller: tool.id in allowed)

    def call_after_the_rule_has_changed(request: CallModel) -> Any:
        allowed.remove("payroll/salary_of")
        return [("salary_of", {})]

    model = Native(
        [("search_tools", {"queries": ["salary of an employee"]})],
        [("salary_of", {})],
        call_after_the_rule_has_changed,
        "Done.",
    )
    model.native = NativeDelivery(declares=declares)
    agent = Agent(model, ToolSearch(firm.catalog, mode="native", results=1), layers=[rule])
    agent.run("What does Ana earn?", conversation_id="s")

    def held(request: CallModel) -> list[str]:
        brought = [loaded.id for message in request.transcript if isinstance(message, Answers)
                   for result in message.results for loaded in result.loaded]  # fmt: skip
        return [shown.tool.id for shown in (*request.tools, *request.deferred)] + brought

    assert [held(request).count("payroll/salary_of") for request in model.requests] == (
        [1, 3, 3, 0] if declares else [0, 2, 2, 0]
    )
    assert firm.did == ["salary_of"]
    assert [status for status, _ in results(agent)] == ["ok", "ok", "unknown"]
