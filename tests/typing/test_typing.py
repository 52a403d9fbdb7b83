"""A user's type checker sees the types of the installed wheel, and finds nothing wrong with a right program."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder far from this checkout, so that only the installed package can be found."""
    for file in HERE.glob("user_*.py"):
        shutil.copy(file, tmp_path)
    return tmp_path


def mypy(python: Path, project: Path, file: str) -> set[tuple[int, str]]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--show-error-codes"]
    command += [f"--config-file={os.devnull}", f"--python-executable={python}", file]
    done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True, env=clean_environment())
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {(int(line), text) for line, text in re.findall(r"^[^:\n]+:(\d+): error: (.*)$", done.stdout, re.MULTILINE)}


def pyright(python: Path, project: Path, file: str) -> set[tuple[int, str]]:
    (project / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    command = [sys.executable, "-m", "pyright", "--outputjson", f"--pythonpath={python}", file]
    done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True, env=clean_environment())
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {(each["range"]["start"]["line"] + 1, each["message"]) for each in found if each["severity"] == "error"}


def clean_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    return environment | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


checkers = pytest.mark.parametrize("check", [mypy, pyright])


@checkers
def test_a_right_program_is_clean_under_the_strictest_setting(check, bare_python: Path, project: Path) -> None:
    assert check(bare_python, project, "user_program.py") == set()


@checkers
def test_a_users_mistakes_are_caught(check, bare_python: Path, project: Path) -> None:
    lines = (HERE / "user_mistakes.py").read_text("utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert {line for line, _ in check(bare_python, project, "user_mistakes.py")} == wrong
