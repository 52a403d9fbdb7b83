"""The requests of a talk that the evaluation plays keep their beginning, as the requests of an agent do.

What is billed as cached rests on that.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from toolsearch import ToolSearch
from toolsearch.testing import assert_prefix_stable
from toolsearch.tokens import counter
from toolsearch_evals.data.cases import load
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.scripted import answer, play
from toolsearch_evals.token_usage import TokenMeter

Mode = Literal["static", "append", "bridge", "native"]


@pytest.mark.parametrize("mode", ["static", "append", "bridge", "native"])
@pytest.mark.parametrize("wire", sorted(FORMATS))
def test_requests_of_a_played_talk_begin_as_the_one_before(wire: str, mode: Mode) -> None:
    form, sent = FORMATS[wire], list[Any]()

    def request(tools: Sequence[Any], system: str, messages: Sequence[Any]) -> Any:
        made = form.request(tools, system, messages)
        if messages:  # otherwise only the fixed part is counted
            sent.append(made)
        return made

    data = load("commons")[0]
    cases = [case for case in data.cases if case.split == "dev" and case.gold][:4]
    needed = {tool_id for case in cases for group in case.gold for tool_id in group}
    tools = [tool for at, tool in enumerate(data.catalog()) if at < 60 or tool.id in needed]
    search = ToolSearch(tools, index="keyword", mode=mode, run=answer)
    played = play(search, cases, replace(form, request=request), TokenMeter(counter()))
    delivered = search.session(wire=form.wire).mode
    assert delivered == mode or (mode, delivered) == ("native", "append")
    assert len(sent) == len(played.requests) > 4
    assert_prefix_stable(sent, mode=delivered)
