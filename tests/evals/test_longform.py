"""The set with long definitions is what its card says, and leaves `commons` alone."""

from statistics import mean

import pytest

from toolsearch.schemas.argument_texts import argument_texts
from toolsearch.tokens import counter
from toolsearch_evals.data.cases import Dataset, load
from toolsearch_evals.data.check import problems
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.own_tokens import catalog_tokens
from toolsearch_evals.token_usage import TokenMeter


@pytest.fixture(scope="module")
def longform() -> Dataset:
    (loaded,) = load("longform")
    return loaded


def test_it_is_in_order_and_has_requests_that_no_tool_can_meet(longform: Dataset) -> None:
    assert problems(longform) == []
    assert sum(not case.gold for case in longform.cases) == 14
    assert {case.wording for case in longform.cases} == {"user", "agent"}


def test_its_definitions_are_as_long_as_those_of_real_servers(longform: Dataset) -> None:
    if not counter().exact:
        pytest.skip("the tokens are those of o200k_base, which is not on this machine")
    tokens = [
        each.tokens for each in catalog_tokens(longform.catalog(), FORMATS["openai_chat"], TokenMeter(counter())).tools
    ]
    assert 372 < mean(tokens) < 374
    assert (min(tokens), max(tokens)) == (222, 837)


def test_every_parameter_is_described(longform: Dataset) -> None:
    for tool in longform.catalog():
        names, texts = argument_texts(tool.input_schema)
        assert names
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.id}: {name}"
        assert len(texts) >= len(tool.input_schema["properties"])
