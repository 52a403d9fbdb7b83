"""Nothing heavy is imported until it is used: a fresh interpreter for each step on the way to a first search."""

import json
import subprocess
import sys

import pytest

HEAVY = (
    "numpy", "scipy", "torch", "transformers", "sentence_transformers", "tokenizers", "safetensors", "wordllama",
    "onnxruntime", "faiss", "whoosh", "tantivy", "regex", "tiktoken", "bpe_openai", "openai", "anthropic", "mcp",
    "typer", "rich", "bm25s", "rank_bm25", "psutil", "toolsearch_evals",
)  # fmt: skip


def heavy_after(program: str) -> list[str]:
    """What of it a program has imported at its end."""
    code = f"import sys, json\n{program}\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


OPEN = "from toolsearch import open_index; index = open_index({!r}); assert index.search('anything', 5) == []"


@pytest.mark.parametrize(
    "program", ["import toolsearch", "from toolsearch import *", "import toolsearch_indexes", "import toolsearch.mcp"]
)
def test_an_import_brings_in_nothing_heavy(program: str) -> None:
    assert heavy_after(program) == []


@pytest.mark.parametrize(
    ("index", "engine"),
    [
        ("keyword", []),
        ("regex", []),
        ("vector", []),
        ("hybrid", []),
        ("faiss", []),
        ("whoosh", ["whoosh"]),
        ("tantivy", ["tantivy"]),
    ],
)
def test_an_index_that_is_opened_brings_in_its_engine_at_most(index: str, engine: list[str]) -> None:
    """A model, and the packages that read it, wait for the first tool."""
    for package in engine:
        pytest.importorskip(package)
    if index in ("vector", "hybrid", "faiss"):
        pytest.importorskip("wordllama", reason="the extra 'vector' is not installed")
    if index == "faiss":
        pytest.importorskip("faiss")
    assert heavy_after(OPEN.format(index)) == engine


ADDED = (
    "from toolsearch import open_index, tool; open_index({!r}).add([tool({{'name': 'send', 'description': 'Mail.'}})])"
)


def test_the_first_tool_brings_in_what_encodes_it_and_no_more() -> None:
    pytest.importorskip("wordllama", reason="the extra 'vector' is not installed")
    found = heavy_after(ADDED.format("hybrid"))
    assert "numpy" in found
    assert not {"torch", "transformers", "sentence_transformers", "faiss", "openai"} & {*found}
    assert heavy_after(ADDED.format("keyword")) == []


def test_measuring_imports_no_engine_before_it_is_measured() -> None:
    assert heavy_after("import toolsearch_evals.speed.timing, toolsearch_evals.ranking.compare") == ["toolsearch_evals"]
