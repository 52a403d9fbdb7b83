"""Installs every extra at its lower bounds, in a few environments, and runs the tests of what it brings.

python tests/packaging/lower_bounds.py [NAME ...]    these environments, or all; they stay in build/lower-bounds/
"""

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "lower-bounds"
TOOLS = ("pytest", "pytest-xdist", "packaging", "hypothesis", "jsonschema")


@dataclass(frozen=True)
class Environment:
    """What goes into one environment together, and the tests that run there.

    `core` also installs the core at its own lower bound, where nothing else in the environment needs a newer pydantic.
    `tools` are further packages that only the tests need. `without` leaves tests out, as an expression for pytest: long
    ones, which show what no version of a package changes.
    """

    extras: str
    tests: str
    core: bool = False
    tools: str = ""
    without: str = ""


ENVIRONMENTS = {
    "kit": Environment(
        "cli tokens numpy static multilingual minilm onnx vector best regex whoosh tantivy faiss otel evals pandas "
        "polars plots all",
        "tests/test_settings.py tests/test_tool_search.py tests/test_tokens.py tests/indexes/encoders "
        "tests/indexes/test_regex.py tests/indexes/test_whoosh.py tests/indexes/test_tantivy.py "
        "tests/indexes/test_faiss.py tests/loop/test_otel.py tests/evals/test_in_notebooks.py",
        core=True,
        tools="opentelemetry-sdk",
        without="promises or finds_the_tool or goes_on_while or load_and_run_nothing",
    ),
    "clients": Environment(
        "endpoints gemini ollama",
        "tests/wires/test_anthropic.py tests/wires/test_openai_chat.py tests/wires/test_openai_responses.py "
        "tests/wires/test_gemini.py tests/wires/test_ollama.py tests/wires/test_moved_conversation.py",
    ),
    "frameworks": Environment(
        "pydantic-ai langchain openai-agents fastmcp llama-index",
        "tests/frameworks tests/catalog/test_foreign_tools.py",
    ),
    "mcp": Environment("mcp", "tests/mcp"),
    "adk": Environment("google-adk", "tests/frameworks/test_google_adk.py"),
}
ELSEWHERE = {"dev", "sentence-transformers"}  # the versions of constraints.txt; torch, which `make heavy` installs


def project() -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def lower_bounds(requirements: list[str]) -> dict[str, str]:
    """The lower bound of each package: "numpy>=2.0" gives numpy 2.0. Extras of our own are left out."""
    bounds = {}
    for requirement in requirements:
        if not requirement.startswith("toolsearch-kit["):
            name, least = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", requirement).groups()  # type: ignore[union-attr]
            bounds[name] = least
    return bounds


def pins(environment: Environment) -> dict[str, str]:
    """The version of each package that pip has to take."""
    parts = project()
    extras: dict[str, list[str]] = parts["optional-dependencies"]  # type: ignore[assignment]
    wanted = [each for extra in environment.extras.split() for each in extras[extra]]
    return lower_bounds([*wanted, *(parts["dependencies"] if environment.core else [])])  # type: ignore[misc]


def check(name: str, environment: Environment) -> bool:
    """Makes the environment anew and runs its tests; returns whether they pass."""
    folder = FOLDER / name
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    constraints = folder / "lower-bounds.txt"
    constraints.write_text("".join(f"{package}=={least}\n" for package, least in pins(environment).items()), "utf-8")
    print(f"{name}: {', '.join(constraints.read_text('utf-8').split())}", flush=True)
    ours = f"{ROOT}[{environment.extras.replace(' ', ',')}]"
    quiet = ["-qq", "--disable-pip-version-check"]
    tools = [*TOOLS, *environment.tools.split()]
    subprocess.run([python, "-m", "pip", "install", *quiet, "-c", constraints, "-e", ours, *tools], check=True)
    options = ["-q", "--numprocesses", "auto", "--dist", "loadfile", "-m", "not heavy and not slow"]
    options += ["--override-ini", "filterwarnings=ignore"]  # what old versions do may be deprecated by now
    options += ["-k", f"not ({environment.without})"] if environment.without else []
    tests = [python, "-m", "pytest", *options, *environment.tests.split()]
    return subprocess.run(tests, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    failed = [name for name in sys.argv[1:] or ENVIRONMENTS if not check(name, ENVIRONMENTS[name])]
    sys.exit(f"lower bounds that do not hold: {', '.join(failed)}" if failed else 0)
