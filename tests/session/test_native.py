"""The mode "native": found tools come where the model found them, and the tools of a request keep their bytes (J50)."""

from collections.abc import Callable

import pytest

from toolsearch import Caller, Catalog, Settings, ToolCall, ToolSearch
from toolsearch.calls import NativeDelivery
from toolsearch.catalog.tools import shown_of
from toolsearch.session.session import Session

NAMES = ("rotate_key", "send_mail", "water_plants", "book_room")
BY_VALUE, DECLARING = NativeDelivery(with_messages=True), NativeDelivery(declares=True, most_declared=6)


class _Wire:
    """What a session asks of a wire."""

    def __init__(self, native: NativeDelivery | None) -> None:
        self.native = native


def _tools() -> list[dict[str, object]]:
    return [{"name": name, "description": f"{name.replace('_', ' ')}.", "run": lambda: "done"} for name in NAMES]


def _search(**options: object) -> ToolSearch:
    return ToolSearch(_tools(), "keyword", settings=Settings.from_mapping({"mode": "native", "results": 1, **options}))


def _find(session: Session, query: str) -> tuple[str, ...]:
    result = session.handle(ToolCall(query, "search_tools", {"queries": [query]}))
    return tuple(loaded.name for loaded in result.loaded)


def test_an_answer_brings_the_definition_of_what_it_found_once() -> None:
    session = _search().session(wire=_Wire(BY_VALUE))
    assert _find(session, "rotate key") == ("rotate_key",)
    assert _find(session, "rotate key please") == ()
    found = [(shown.name, shown.delivered) for shown in session.tools()]
    assert found == [("search_tools", False), ("rotate_key", True)]
    assert session.handle(ToolCall("c", "rotate_key", {})).content == "done"


def test_an_answer_to_a_call_of_a_tool_that_was_not_loaded_brings_it_too() -> None:
    session = _search().session(wire=_Wire(BY_VALUE))
    session.tools()
    result = session.handle(ToolCall("c", "send_mail", {}))
    assert (result.status, [loaded.id for loaded in result.loaded]) == ("not_loaded", ["send_mail"])


def test_a_definition_that_an_answer_brings_is_what_a_wire_lists() -> None:
    session = _search().session(wire=_Wire(BY_VALUE))
    (loaded,) = session.handle(ToolCall("s", "search_tools", {"queries": ["rotate key"]})).loaded
    (listed,) = [shown for shown in session.tools() if not shown.built_in]
    shown = shown_of(loaded)
    assert (shown.name, shown.tool.description, shown.tool.input_schema) == (
        listed.name,
        listed.tool.description,
        listed.tool.input_schema,
    )


def test_after_a_compaction_found_tools_are_listed() -> None:
    """What brought them is gone from the history."""
    session = _search().session(wire=_Wire(BY_VALUE))
    _find(session, "rotate key")
    session.after_compaction()
    assert [(shown.name, shown.delivered) for shown in session.tools()][1:] == [("rotate_key", False)]


def test_a_tool_that_the_program_loads_is_listed() -> None:
    session = _search().session(wire=_Wire(BY_VALUE))
    session.load(["send_mail"])
    assert [(shown.name, shown.delivered) for shown in session.tools()][1:] == [("send_mail", False)]


def test_a_restored_session_knows_what_was_brought() -> None:
    search = _search()
    session = search.session(wire=_Wire(BY_VALUE))
    _find(session, "rotate key")
    restored = search.restore(session.export(), wire=_Wire(BY_VALUE))
    assert [(shown.name, shown.delivered) for shown in restored.tools()][1:] == [("rotate_key", True)]


def test_a_declaring_wire_is_given_every_tool_that_can_be_found_in_an_order_that_stays() -> None:
    catalog = Catalog(_tools())
    session = ToolSearch(catalog, "keyword", mode="native", pinned=["book_room"]).session(wire=_Wire(DECLARING))
    declared = [shown.name for shown in session.deferred()]
    assert declared == ["rotate_key", "send_mail", "water_plants"]
    catalog.add({"name": "a_late_one", "description": "Late.", "run": lambda: "done"})
    catalog.remove("send_mail")
    assert [shown.name for shown in session.deferred()] == [*declared, "a_late_one"]
    session.after_compaction()
    assert [shown.name for shown in session.deferred()] == ["a_late_one", "rotate_key", "water_plants"]


def test_a_tool_that_the_caller_may_no_longer_see_is_declared_no_more() -> None:
    allowed = set(NAMES)
    visible: Callable[..., bool] = lambda tool, caller: tool.id in allowed  # noqa: E731
    visible.version = lambda: len(allowed)  # type: ignore[attr-defined]
    search = ToolSearch(_tools(), "keyword", mode="native", visible=visible)
    session = search.session(caller=Caller("ana"), wire=_Wire(DECLARING))
    _find(session, "rotate key")
    assert "rotate_key" in [shown.name for shown in session.deferred()]
    allowed.remove("rotate_key")
    assert "rotate_key" not in [shown.name for shown in session.tools()]
    (left,) = [shown.tool for shown in session.deferred() if shown.name == "rotate_key"]  # an answer refers to it
    assert (left.description, left.input_schema["properties"]) == ("No longer available.", {})
    assert session.handle(ToolCall("c", "rotate_key", {})).status == "unknown"


def test_a_wire_that_goes_by_value_is_given_nothing_to_declare() -> None:
    assert _search().session(wire=_Wire(BY_VALUE)).deferred() == []


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (_Wire(None), "append: the wire '_Wire' cannot deliver natively"),
        (_Wire(NativeDelivery(True, most_declared=3)), "append: 4 tools are more than the wire '_Wire' declares (3)"),
        (_Wire(BY_VALUE), "native: the setting `mode`"),
    ],
)  # fmt: skip
def test_a_session_falls_back_to_append_where_the_wire_cannot_and_says_why(wire: _Wire, why: str) -> None:
    assert _search().session(wire=wire).why() == why


def test_a_conversation_that_moves_to_another_wire_goes_on_with_what_it_found() -> None:
    search = _search()
    session = search.session("c", wire=_Wire(BY_VALUE))
    _find(session, "rotate key")
    moved = search.session("c", wire=_Wire(None))
    assert moved is session
    assert (moved.mode, [(shown.name, shown.delivered) for shown in moved.tools()][1:]) == (
        "append",
        [("rotate_key", False)],
    )
    assert _find(session, "send mail") == ()
    assert session.handle(ToolCall("c", "rotate_key", {})).ok


def test_no_tools_are_pre_selected_where_the_wire_can_bring_them_with_results_only() -> None:
    assert not _search(preselect=1).session(wire=_Wire(DECLARING)).preselects()
    assert _search(preselect=1).session(wire=_Wire(BY_VALUE)).preselects()
