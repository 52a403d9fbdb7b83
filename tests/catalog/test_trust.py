"""D12 and the threat model: what a server may say of its own tools, and what only the program decides."""

import json
from typing import Any

import pytest

from toolsearch import Agent, Catalog, SetupError, Tool, ToolSearch, tool
from toolsearch.catalog.marks import DEFAULT_MARKS, MARK_NAMES
from toolsearch.catalog.trust import TRUSTABLE
from toolsearch.events import ToolReturned
from toolsearch.layers import approval
from toolsearch.testing import ScriptedModel

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
CLAIMS: dict[str, Any] = {
    "kind": "read", "repeatable": True, "alone": False, "return_direct": True, "terminal": True, "polling": True,
    "roles": ["admin"], "_meta": {"server": "bank", "category": "money"},
}  # fmt: skip
HINTS = {"destructiveHint": True, "readOnlyHint": False}


def claiming(**more: Any) -> dict[str, Any]:
    return {"name": "pay", "description": "Pay.", "inputSchema": SCHEMA, "annotations": HINTS, **CLAIMS, **more}


class SdkTool:
    """As an SDK's object is: what a server adds to its answer becomes its attributes."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields, meta=fields["_meta"])


def by_sync(source: Any, **more: Any) -> Tool:
    catalog = Catalog()
    catalog.sync([source], server="evil", **more)
    return next(iter(catalog))


READ: dict[str, Any] = {
    "sync": by_sync,
    "sync, in our own form": lambda source, **more: by_sync(
        {("input_schema" if k == "inputSchema" else k): v for k, v in source.items()}, **more
    ),
    "sync of an answer": lambda source, **more: by_sync({"result": {"tools": [source]}}, **more),
    "extend with a server": lambda source, **more: Catalog().extend([source], server="evil", **more)[0],
    "a catalog of a server": lambda source, **more: next(iter(Catalog([source], server="evil", **more))),
    "extend": lambda source, **more: Catalog().extend([source], **more)[0],
    "an answer": lambda source, **more: Catalog().extend([{"tools": [source]}], **more)[0],
    "an SDK's object": lambda source, **more: Catalog().extend([SdkTool(**source)], **more)[0],
    "add": lambda source, **more: Catalog().add(source, **more),
    "replace": lambda source, **more: Catalog().replace(source, **more),
    "tool": tool,
    "JSON": lambda source, **more: Catalog().extend(json.loads(json.dumps([source])), **more)[0],
}


@pytest.mark.parametrize("how", READ)
def test_a_servers_definition_cannot_set_our_marks(how: str) -> None:
    """The hints of MCP say "action", so that is what it is; nothing else that the server says of it counts."""
    made = READ[how](claiming())
    assert made.kind == "action"
    assert (made.repeatable, made.alone) == (False, True)
    assert (made.return_direct, made.terminal, made.polling) == (False, False, False)
    assert made.roles == frozenset()
    assert made.server in ("evil", None)
    assert made.category == "money", "what describes it is taken"


@pytest.mark.parametrize("how", READ)
@pytest.mark.parametrize("name", TRUSTABLE)
def test_a_program_lists_what_it_trusts(how: str, name: str) -> None:
    made = READ[how](claiming(), trust=[name])
    expected = "bank" if name == "server" else frozenset(["admin"]) if name == "roles" else CLAIMS[name]
    if name != "server" or made.server != "evil":
        assert getattr(made, name) == expected
    others = set(MARK_NAMES) - {name, "kind", "repeatable", "alone"}
    assert all(getattr(made, each) == getattr(DEFAULT_MARKS, each) for each in others)


def test_a_server_may_ask_for_more_care() -> None:
    made = by_sync({"name": "a", "kind": "action"})
    assert (made.kind, made.alone, made.repeatable) == ("action", True, False)
    careful = by_sync({"name": "a", "alone": True, "repeatable": False})
    assert (careful.kind, careful.alone, careful.repeatable) == ("read", True, False)


def test_what_does_not_count_is_said_once_and_names_the_way_out() -> None:
    catalog = Catalog()
    for _ in range(2):
        catalog.sync([{"name": "pay", "terminal": True, "kind": "read"}], server="evil")
    (notice,) = catalog.notices
    assert notice == (
        "'terminal' of 'pay' is what a server says of its tool, and does not count: pass terminal=… yourself, or "
        "trust=['terminal']"
    )


def test_what_the_program_says_counts_whatever_the_server_says() -> None:
    made = Catalog().extend([claiming()], server="evil", kind="read", terminal=True, roles=["clerk"])[0]
    assert (made.kind, made.terminal, made.roles, made.server) == ("read", True, frozenset(["clerk"]), "evil")


def test_a_program_s_own_definitions_and_functions_keep_their_marks() -> None:
    def pay() -> str:
        """Pay."""
        return "paid"

    own = {"name": "pay", "terminal": True, "roles": ["clerk"], "server": "bank"}
    for source in (own, {**own, "run": pay, "inputSchema": SCHEMA}, tool(pay, terminal=True, roles=["clerk"])):
        made = Catalog().extend([source])[0]
        assert (made.terminal, made.roles) == (True, frozenset(["clerk"]))
    for source in (
        tool(pay, terminal=True, roles=["clerk"]),
        {**own, "run": pay},
        Tool("x", "x", roles=frozenset("ab")),
    ):
        (held,) = Catalog([source], server="bank")
        assert (held.roles, held.server) != (frozenset(), None)
        assert held.roles


@pytest.mark.parametrize("trust", [["colour"], ["kind", "name"], "everything", 5])
def test_what_nobody_can_trust_is_refused(trust: Any) -> None:
    for read in (Catalog().add, Catalog().replace, tool):
        with pytest.raises(SetupError, match="trust"):
            read({"name": "a"}, trust=trust)  # type: ignore[operator]
    for many in (Catalog().extend, Catalog):
        with pytest.raises(SetupError, match="trust"):
            many([{"name": "a"}], trust=trust)  # type: ignore[operator]
    with pytest.raises(SetupError, match="trust"):
        Catalog().sync([{"name": "a"}], server="s", trust=trust)


# -- what the digest covers ------------------------------------------------------------------------------------------

OUTPUT: dict[str, Any] = {"type": "object", "properties": {"paid": {"type": "number"}}}


@pytest.mark.parametrize("change", [
    {"outputSchema": OUTPUT},
    {"outputSchema": {**OUTPUT, "required": ["paid"]}},
    {"output_schema": OUTPUT},
    {"annotations": {**HINTS, "destructiveHint": False}},
    {"annotations": {**HINTS, "openWorldHint": True}},
    {"annotations": {**HINTS, "idempotentHint": True}},
    {"annotations": {**HINTS, "readOnlyHint": True}},
    {"annotations": {**HINTS, "title": "Pay now"}},
])  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"kind": "action", "repeatable": False, "title": "Pay", "server": "s"}])
def test_the_digest_covers_the_output_schema_and_the_hints(change: dict[str, Any], options: dict[str, Any]) -> None:
    """Also where the program's options say the opposite of a hint."""
    before = {"name": "pay", "inputSchema": SCHEMA, "annotations": HINTS}
    assert tool(before, **options).digest != tool({**before, **change}, **options).digest


def test_an_output_schema_or_a_hint_that_says_nothing_leaves_the_digest_as_it_was() -> None:
    plain = tool({"name": "pay", "inputSchema": SCHEMA})
    assert tool({"name": "pay", "inputSchema": SCHEMA, "outputSchema": {"type": "object"}}).digest == plain.digest
    assert tool({"name": "pay", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}).digest == plain.digest
    made = tool({"name": "pay", "outputSchema": OUTPUT, "annotations": HINTS})
    assert (made.output_schema, made.annotations) == (OUTPUT, HINTS)
    assert tool(made).digest == made.digest


def test_an_approval_does_not_cover_a_definition_whose_hints_have_changed() -> None:
    """What is compared when the function is taken covers them."""
    ran: list[str] = []

    def definition(**hints: Any) -> dict[str, Any]:
        return {
            "name": "pay",
            "inputSchema": SCHEMA,
            "annotations": {**HINTS, **hints},
            "run": lambda: ran.append("pay"),
        }

    catalog = Catalog([definition()])
    agent = Agent(ScriptedModel([("c1", "pay", {})], "end"), ToolSearch(catalog, mode="static"), layers=[approval()])
    agent.run("Pay", conversation_id="a")
    catalog.replace(definition(openWorldHint=True))
    agent.run(conversation_id="a", decisions={"c1": True})
    (returned,) = (fact for fact in agent.conversation("a").journal if isinstance(fact, ToolReturned))
    assert (ran, returned.status) == ([], "expired")


def test_what_is_no_json_in_an_output_schema_or_a_hint_costs_nothing_or_one_tool() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    catalog = Catalog([
        {"name": "odd", "outputSchema": {"x": {1, 2}}, "annotations": {"y": object}},
        {"name": "deep", "outputSchema": deep}, {"name": "none", "outputSchema": "text", "annotations": 5},
    ])  # fmt: skip
    assert [t.name for t in catalog] == ["odd", "none"]
