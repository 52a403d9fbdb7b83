"""The examples with_….py run offline, on the test model of their framework, with warnings as errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NEEDS = {  # the package of each, and its extra
    "with_fastmcp": ("fastmcp", "fastmcp"),
    "with_google_adk": ("google.adk", "google-adk"),
    "with_langchain": ("langchain", "langchain"),
    "with_llama_index": ("llama_index.core", "llama-index"),
    "with_openai_agents": ("agents", "openai-agents"),
    "with_pydantic_ai": ("pydantic_ai", "pydantic-ai"),
}
# LlamaIndex looks at every attribute of an agent, those among them that pydantic warns about.
WARNINGS = {"with_llama_index": ["-W", "error", "-W", "ignore::DeprecationWarning"]}
POSTED = "Tomorrow it rains in Oslo, 4 to 7 °C. I have posted it."

# What a reader should see, in this order.
WITHOUT = ["95 tools\n", "request 3: 95 tools\n", POSTED, "3 requests, "]
WITH = ["95 tools\n", "request 1: 1 tools\n", "request 4: ", POSTED, "4 requests, "]
SHOWN = {
    "with_fastmcp": [*WITHOUT, "95 tools\n", "request 1: 2 tools\n", "request 4: 2 tools\n", POSTED, "4 requests, "],
    "with_google_adk": [*WITHOUT, *WITH],
    "with_langchain": [*WITHOUT, *WITH, *WITHOUT, *WITH],
    "with_llama_index": [*WITHOUT, *WITH],
    "with_openai_agents": [*WITHOUT, *WITH],
    "with_pydantic_ai": [*WITHOUT, *WITH, *WITH],
}


def test_no_example_is_missed() -> None:
    assert {script.stem for script in EXAMPLES.glob("with_*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_shows_what_it_is_about(name: str, tmp_path: Path) -> None:
    package, extra = NEEDS[name]
    pytest.importorskip(package, reason=f"needs pip install 'toolsearch-kit[{extra}]': see `make frameworks`")
    environment = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
    done = subprocess.run(
        [sys.executable, *WARNINGS.get(name, ["-W", "error"]), str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path, env={**environment, "PYTHONUTF8": "1"}, check=False, capture_output=True, encoding="utf-8",
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    at = 0
    for text in SHOWN[name]:
        at = done.stdout.find(text, at)
        assert at >= 0, f"{text!r} is not shown, or not in its place:\n{done.stdout}"
