"""The tasks of `toolsearch eval agent`: a small world that tools change, and the check of what became of it."""

import copy
from collections.abc import Sequence

import pytest

from toolsearch import Catalog, SetupError, ToolContext
from toolsearch_evals.agent.catalogs import RIVALS, definitions_for, least_tools, most_tools
from toolsearch_evals.agent.tasks import MadeCall, Task, difference, problems_of, same, tasks, unchosen
from toolsearch_evals.agent.world import Refusal, Tables, World, effects, world_definitions

TASKS = {task.id: task for task in tasks()}
every_task = pytest.mark.parametrize("task", tasks(), ids=lambda task: task.id)


def play(calls: Sequence[tuple[str, dict[str, object]]]) -> Tables:
    """The tables after these calls."""
    world = World()
    for tool, arguments in calls:
        world.apply(effects()[tool], arguments)
    return world.tables


def solution_of(task: Task) -> list[tuple[str, dict[str, object]]]:
    return [(step.tool, dict(step.arguments)) for step in task.solution]


def made(calls: Sequence[tuple[str, dict[str, object]]]) -> list[MadeCall]:
    return [MadeCall(tool, arguments, "ok") for tool, arguments in calls]


def test_every_definition_of_the_world_is_a_tool_that_says_whether_it_acts() -> None:
    catalog = Catalog(world_definitions())
    assert not catalog.quarantined
    reading = {i for i, effect in effects().items() if effect["do"] == "find"}
    assert {tool.id for tool in catalog if tool.marks.kind != "action"} == reading
    assert len(TASKS) == len(tasks()) >= 30


@every_task
def test_a_solution_meets_its_task_and_doing_nothing_does_not(task: Task) -> None:
    calls = solution_of(task)
    end = play(calls)
    assert problems_of(task, end, made(calls), task.said) == []
    assert unchosen(task, made(calls)) == []
    assert problems_of(task, World().tables, [], "I have done it.") != []
    assert unchosen(task, []) == [group[0] for group in task.needs]


@every_task
def test_a_change_that_nobody_asked_for_fails(task: Task) -> None:
    calls = solution_of(task)
    end = play(calls)
    end["loans"]["LN-32"]["renewals"] = 7
    assert problems_of(task, end, made(calls), task.said) == ["LN-32 of loans was changed, which nobody asked for"]


@pytest.mark.parametrize(
    ("wanted", "got", "is_same"),
    [
        ({"limit": 5}, {"limit": 700}, False),
        ({"limit": 5}, {"limit": "5"}, False),
        ({"limit": 5}, {"limit": 5.0}, True),
        ({"limit": 1}, {"limit": True}, False),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "b": None}, {"a": 1}, False),
        (["x", "y"], ["y", "x"], True),
        (["x", "x"], ["x", "y"], False),
        ("Elm  room.", "elm room", True),
        ("Elm", "Oak", False),
        (None, "", False),
    ],
)
def test_values_are_compared_scalars_too(wanted: object, got: object, is_same: bool) -> None:
    """F05."""
    assert same(wanted, got) is is_same


@pytest.mark.parametrize(
    ("task_id", "arguments", "problem"),
    [
        ("stock-7", {"state": "sent", "limit": 700}, "stock/list_purchase_orders was not called with exactly"),
        ("stock-7", {"state": "sent"}, "stock/list_purchase_orders was not called with exactly"),
        ("stock-5", {"sku": "SKU-310", "level": 700}, "reorder_level of SKU-310 of items is 700 and not 250"),
        ("rooms-4", {"booking_id": "BK-104", "people": 81}, "catering of BK-104 of bookings is 81 and not 18"),
        ("rooms-4", {"booking_id": "BK-102", "people": 18}, "BK-102 of bookings was changed, which nobody asked for"),
        (
            "rooms-5",
            {"room": "Birch", "what": "black", "urgent": False},
            "urgent of what was added to defects is False and not True",
        ),
        (
            "tracker-1",
            {"project": "web", "title": "Export button does nothing", "labels": ["bug"], "priority": "high"},
            "project of what was added to issues is 'web' and not 'app'",
        ),
        (
            "tracker-1",
            {
                "project": "app",
                "title": "Export button does nothing",
                "labels": ["bug"],
                "priority": "high",
                "assignee": "Lee Wong",
            },
            "assignee of what was added to issues is 'Lee Wong' and not ''",
        ),
        ("tracker-4", {"issue_id": "ISS-101", "text": "done"}, "comments of ISS-101 of issues does not say '4.2.1'"),
    ],
)
def test_a_wrong_argument_of_the_right_tool_fails(task_id: str, arguments: dict[str, object], problem: str) -> None:
    """F05."""
    task = TASKS[task_id]
    *before, (tool, _) = solution_of(task)
    calls = [*before, (tool, arguments)]
    assert problem in " ".join(problems_of(task, play(calls), made(calls), task.said))
    assert unchosen(task, made(calls)) == []  # the tool was right


@pytest.mark.parametrize(
    ("task_id", "answer", "is_said"),
    [
        ("tracker-5", "There are 2 open bugs.", True),
        ("tracker-5", "Two.", True),
        ("tracker-5", "There are 12, see ISS-102.", False),
        ("tracker-5", "About 2.5", False),
        ("rooms-6", "cedar, on the third floor", True),
        ("stock-7", "PO-51", False),
    ],
)
def test_an_answer_is_read_by_whole_words(task_id: str, answer: str, is_said: bool) -> None:
    task = TASKS[task_id]
    calls = solution_of(task)
    assert (problems_of(task, play(calls), made(calls), answer) == []) is is_said


def test_what_a_model_words_itself_is_open() -> None:
    task = TASKS["rooms-5"]
    calls = [("rooms/report_defect", {"room": "birch".title(), "what": "No picture at all!", "urgent": True})]
    assert problems_of(task, play(calls), made(calls), "Done.") == []


def test_a_call_that_was_refused_is_no_call() -> None:
    task = TASKS["stock-7"]
    calls = [MadeCall(step.tool, step.arguments, "failed") for step in task.solution]
    assert unchosen(task, calls) == ["stock/list_purchase_orders"]
    assert any("not called" in problem for problem in problems_of(task, World().tables, calls, task.said))


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("rooms/book_room", {"room": "Oak", "date": "2026-03-04", "start": "09:30", "end": "11:00"}, "taken by BK-101"),
        ("rooms/book_room", {"room": "Oak", "date": "2026-03-04", "start": "12:00", "end": "11:00"}, "is not before"),
        ("rooms/book_room", {"room": "Fir", "date": "2026-03-04", "start": "09:30", "end": "11:00"}, "no room 'Fir'"),
        ("rooms/cancel_booking", {"booking_id": "BK-9"}, "no 'BK-9' among the bookings"),
        ("library/renew_loan", {"loan_id": "LN-32"}, "cannot be more than 2"),
        ("stock/receive_purchase_order", {"order_id": "PO-50"}, "has to be 'sent'"),
    ],
)
def test_a_tool_says_why_it_cannot_and_changes_nothing(tool: str, arguments: dict[str, str], reason: str) -> None:
    world = World()
    with pytest.raises(Refusal, match=reason):
        world.apply(effects()[tool], arguments)
    assert difference(World().tables, world.tables) == {}


def test_each_world_is_new() -> None:
    one = World()
    one.apply(effects()["files/delete_file"], {"file_id": "FL-3"})
    one.tables["issues"]["ISS-101"]["labels"].append("x")
    assert copy.deepcopy(World().tables) == World().tables
    assert "FL-3" in World().tables["files"]
    assert World().tables["issues"]["ISS-101"]["labels"] == ["bug"]


def test_what_a_tool_outside_the_world_does_is_a_change() -> None:
    catalog = Catalog(definitions_for(TASKS["rooms-1"], 100))
    outside = [tool for tool in catalog if tool.id not in effects()]
    acting = next(tool for tool in outside if tool.marks.kind == "action")
    world, context = World(), ToolContext("c", "1")
    assert world.run(acting, {"x": 1}, context) == '{"status": "done"}'
    assert [key for key, _ in difference(World().tables, world.tables).items()] == [("elsewhere", "X-1")]
    reading = next(tool for tool in outside if tool.marks.kind != "action")
    assert World().run(reading, {}, context) == '{"found": []}'


def test_a_catalog_has_what_the_task_needs_and_no_rival() -> None:
    for task in tasks():
        few, many = ({f"{d['server']}/{d['name']}" for d in definitions_for(task, size)} for size in (20, 100))
        assert (len(few), len(many)) == (20, 100)
        assert {step.tool for step in task.solution} <= few & many
        assert effects().keys() <= many
        assert not RIVALS & {each.partition("/")[0] for each in few | many}
    assert len({str(definitions_for(task, 100)) for task in tasks()}) == 1  # one catalog, as in a program
    assert definitions_for(TASKS["rooms-1"], 100, 1) != definitions_for(TASKS["rooms-1"], 100, 2)
    assert len(definitions_for(TASKS["rooms-1"], most_tools())) == most_tools() > 200
    for size in (least_tools([TASKS["rooms-1"]]) - 1, most_tools() + 1):
        with pytest.raises(SetupError, match=f"a catalog of {size} tools cannot be made"):
            definitions_for(TASKS["rooms-1"], size)
