"""Commands of other packages: found by entry points, loaded when they are asked for, named when they are broken."""

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from toolsearch.cli import main
sys.argv = ["toolsearch", *sys.argv[1:]]
try:
    main()
finally:
    loaded = {name.partition(".")[0] for name in sys.modules}
    print(sorted(loaded & {"toolsearch_evals", "extra_commands"}), file=sys.stderr)
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    info = folder / "extra-1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1\n", "utf-8")
    (info / "entry_points.txt").write_text(
        "[toolsearch.commands]\ngreet = extra_commands:greet\nlost = extra_commands:nothing\n", "utf-8"
    )
    (folder / "extra_commands.py").write_text(
        'def greet(name: str) -> None:\n    """Greet somebody."""\n    print("hello", name)\n', "utf-8"
    )
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{CODE}", *arguments],
        check=False, capture_output=True, text=True,
    )  # fmt: skip


def test_a_function_is_a_command_and_no_other_command_is_loaded_for_it(tmp_path: Path) -> None:
    done = run(tmp_path, "greet", "Ann")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello Ann\n", "['extra_commands']\n")
    assert run(tmp_path, "--version").stderr == "[]\n"


def test_one_that_cannot_be_loaded_says_why_and_the_others_are_listed(tmp_path: Path) -> None:
    done = run(tmp_path, "lost", "--anything")
    assert done.returncode == 2
    assert "the command 'lost' cannot be loaded: AttributeError" in done.stderr
    listed = run(tmp_path, "--help").stdout
    assert all(word in listed for word in ("Greet somebody.", "cannot be loaded", "eval", "search"))
