"""The scripted model: how it uses tools that an answer only names."""

from collections.abc import Sequence
from typing import Any

import pytest

from toolsearch import Catalog, Scored, Tool, ToolSearch
from toolsearch.tokens import counter
from toolsearch_evals.data.cases import Case
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.scripted import PlayedConversation, answer, play
from toolsearch_evals.token_usage import TokenMeter

IDS = [f"desk/tool_{letter}" for letter in "abcdef"]
NEEDED = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Fixed:
    """An index that gives every query the same answer."""

    name = "fixed"

    def add(self, tools: Sequence[Tool]) -> None: ...
    def remove(self, ids: Sequence[str]) -> None: ...
    def search(self, query: str, limit: int, among: Any = None) -> list[Scored]:
        return [Scored(i, 1.0 - at / 10) for at, i in enumerate(IDS)][:limit]


def played(
    cases: Sequence[Case], recognised: float, schema: dict[str, Any] = NEEDED, **options: Any
) -> PlayedConversation:
    """One tool is loaded and four are named; `tool_f` is not told at first."""
    definitions = [{"name": i.partition("/")[2], "server": "desk", "input_schema": schema} for i in IDS]
    search = ToolSearch(Catalog(definitions), Fixed(), run=answer, **{"results": 1, "named": 4, **options})
    return play(search, cases, FORMATS["openai_chat"], TokenMeter(counter()), recognised=recognised)


def needs(*ids: str, name: str = "1") -> Case:
    return Case(name, "do something that no name says", tuple((i,) for i in ids))


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_a_right_tool_that_is_only_named_is_called_by_its_name_and_then_with_arguments(mode: str) -> None:
    talk = played([needs("desk/tool_c"), needs("desk/tool_c")], 1.0, mode=mode)
    first, again = talk.turns
    assert (first.served, first.searches, len(first.requests)) == (True, 1, 4)
    assert (again.served, again.searches, len(again.requests)) == (True, 0, 2)
    assert talk.refused == []


def test_names_that_the_model_recognises_are_called_in_one_reply() -> None:
    (turn,) = played([needs("desk/tool_a", "desk/tool_c", "desk/tool_d")], 1.0).turns
    assert (turn.served, turn.searches, len(turn.requests)) == (True, 1, 4)


def test_a_name_that_is_not_recognised_costs_another_search() -> None:
    (turn,) = played([needs("desk/tool_c")], 0.0).turns
    assert turn.served
    assert turn.searches == 2


def test_a_name_from_an_earlier_turn_is_remembered() -> None:
    first, second = played([needs("desk/tool_a"), needs("desk/tool_d", name="2")], 1.0).turns
    assert (first.searches, second.searches) == (1, 0)
    assert second.served


def test_where_calls_of_tools_that_are_not_loaded_are_refused_the_name_is_searched() -> None:
    talk = played([needs("desk/tool_c")], 1.0, not_loaded="refuse")
    (turn,) = talk.turns
    assert (turn.served, turn.searches, len(turn.requests)) == (True, 2, 4)
    assert talk.refused == []


def test_where_they_run_a_call_without_arguments_may_be_enough() -> None:
    (turn,) = played([needs("desk/tool_c")], 1.0, {"type": "object"}, not_loaded="run").turns
    assert (turn.served, turn.searches, len(turn.requests)) == (True, 1, 3)
    (turn,) = played([needs("desk/tool_c")], 1.0, not_loaded="run").turns
    assert (turn.served, turn.searches, len(turn.requests)) == (True, 1, 4)


def test_the_same_cases_are_recognised_in_every_mode() -> None:
    cases = [needs("desk/tool_c", name=str(at)) for at in range(30)]
    by_mode = [[played([case], 0.5, mode=mode).turns[0].searches for case in cases] for mode in ("append", "bridge")]
    assert by_mode[0] == by_mode[1]
    assert 5 < by_mode[0].count(1) < 25


@pytest.mark.parametrize("mode", ["append", "bridge"])
def test_a_right_name_in_the_directory_is_loaded_without_a_search_by_words(mode: str) -> None:
    case = needs("desk/tool_f", "desk/tool_e")
    (turn,) = played([case], 1.0, mode=mode, directory=10).turns
    assert (turn.served, turn.searches, len(turn.requests)) == (True, 1, 3)
    (turn,) = played([case], 0.0, mode=mode, directory=10).turns
    assert turn.searches == 2
    (turn,) = played([case], 1.0, mode=mode, directory=3).turns
    assert turn.searches == 1 + 1, "a directory of servers names no tool"
