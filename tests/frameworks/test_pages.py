"""The snippets of the pages on frameworks that no other test runs: each is run where its framework is installed."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs pip install 'toolsearch-kit[openai-agents]': see `make frameworks`")
pytest.importorskip("langchain_openai", reason="needs pip install langchain langchain-openai: see `make frameworks`")
pytest.importorskip("pydantic_ai", reason="needs pip install 'toolsearch-kit[pydantic-ai]': see `make frameworks`")

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.tools import tool as langchain_tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset

from toolsearch import ToolSearch

DOCS = Path(__file__).resolve().parents[2] / "docs"
SNIPPET = re.compile(r"<!-- no-run: (?P<why>[^\n]*) -->\n```python\n(?P<code>.*?)```", re.DOTALL)
OTHERS = re.compile("bigtool and a key|google-adk|llama-index|fastmcp")


def ask_user(question: str) -> str:
    """Ask the user a question."""
    return "yes"


@langchain_tool
def rotate_key(name: str) -> str:
    """Replace an API key by a new one."""
    return f"rotated {name}"


def what_a_reader_has() -> dict[str, Any]:
    return {
        "my_functions": [ask_user], "my_function": ask_user, "my_toolset": FunctionToolset([]),
        "my_langchain_tools": [rotate_key], "my_langchain_toolkit": [rotate_key], "my_tools": [rotate_key],
        "my_pydantic_agent": Agent("test", tools=[ask_user]), "checkpointer": InMemorySaver(), "Deps": SimpleNamespace,
        "embeddings": DeterministicFakeEmbedding(size=1536), "search": ToolSearch([ask_user]),
        "llm": ChatOpenAI(model="m"), "context": None,
    }  # fmt: skip


@pytest.mark.parametrize("page", ["frameworks", "moving-from-bigtool", "moving-from-pydantic-ai"])
def test_the_snippets_of_a_page_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the model: what is awaited is left out."""
    for provider in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{provider}_API_KEY", "none")
    names, ran = what_a_reader_has(), 0
    for snippet in SNIPPET.finditer((DOCS / f"{page}.md").read_text("utf-8")):
        if not OTHERS.search(snippet["why"]):
            code = re.sub(r"^result = await .*\n", "", snippet["code"], flags=re.MULTILINE)
            exec(compile(code.replace('"hybrid"', '"keyword"'), page, "exec"), names)
            ran += 1
    assert ran
