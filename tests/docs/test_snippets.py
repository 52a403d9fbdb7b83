"""Every snippet a reader may copy runs: the blocks of one page in their order, in one namespace and one empty folder.

What is run
    ```python             compiled and run; `await` at the top level works
    ```console, ```bash   each line that begins with `$ toolsearch` goes to the command line and must exit with 0
    ```text               right after a Python block, only empty lines between: exactly what that block prints

A comment on a line before a block changes that
    <!-- no-run: reason -->   Python is only compiled, a command is not run; there must be a reason
    <!-- file: tools.json --> the block, of whatever language, is written to that file instead

and a comment that holds Python prepares what a reader has and the test does not, such as a server:
    <!-- setup
    import os
    os.environ["OPENAI_BASE_URL"] = ...
    -->
"""

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+) *(?P<language>[\w+-]*)(?P<info>.*)$")
MARK = re.compile(r"^ *<!-- *(?P<kind>no-run|file): *(?P<value>.*?) *-->$")
SETUP = re.compile(r"^ *<!-- *setup *$")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page, or one setup comment."""

    line: int  # of the first line of its text, counted from 1
    language: str
    text: str
    no_run: str | None = None
    file: str | None = None
    follows: bool = False  # only empty lines stand between it and the block before


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page in Markdown, in order."""
    lines = iter(enumerate(page.splitlines(), 1))
    marks: dict[str, str] = {}
    follows = False
    for number, line in lines:
        if SETUP.match(line):
            body = _until(lines, lambda each: each.strip() == "-->")
            yield Block(number + 1, "setup", textwrap.dedent(body))
            follows = False
        elif mark := MARK.match(line):
            marks[mark["kind"]] = mark["value"]
            follows = False
        elif fence := FENCE.match(line):
            closing = fence["fence"]
            body = _until(lines, lambda each, closing=closing: each.strip() == closing)
            text = textwrap.dedent(body)
            yield Block(number + 1, fence["language"], text, marks.get("no-run"), marks.get("file"), follows)
            marks, follows = {}, True
        elif line.strip():
            assert not marks, f"line {number}: the comment {marks} belongs right before a block"
            follows = False


def _until(lines, is_end) -> str:
    body = []
    for _, line in lines:
        if is_end(line):
            return "".join(f"{each}\n" for each in body)
        body.append(line)
    raise AssertionError(f"a block is never closed: {body[:1]}")


def commands(block: Block) -> Iterator[list[str]]:
    """The arguments of each `$ toolsearch …` line of a console block; a trailing backslash continues a line."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ toolsearch"):
            yield shlex.split(line.removeprefix("$ toolsearch"), comments=True)


def compiled(block: Block, page: Path) -> types.CodeType:
    """The block as code whose tracebacks name the line of the page."""
    source = "\n" * (block.line - 1) + block.text
    return compile(source, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def run_python(block: Block, page: Path, module: types.ModuleType) -> str:
    """Runs the block and gives what it prints."""
    code = compiled(block, page)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        result = eval(code, module.__dict__)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(result)
    return printed.getvalue()


def run_command(arguments: list[str]) -> None:
    command = [sys.executable, "-c", "from toolsearch.cli import main; main()", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", errors="replace", timeout=300)
    assert done.returncode == 0, f"`toolsearch {shlex.join(arguments)}` failed:\n{done.stdout}{done.stderr}"


@pytest.fixture
def own_environment() -> Iterator[None]:
    """What a page does to the environment variables ends with the page."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.usefixtures("own_environment")
def test_every_snippet_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "page_" + re.sub(r"\W", "_", page.stem)
    module = types.ModuleType(name)  # a real module: annotations and pickles find their names in it
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    printed = ""
    for block in blocks(page.read_text("utf-8")):
        if block.language == "text" and block.follows and printed and not block.file:
            assert block.text == printed, f"{page.name}:{block.line}: this is not what the block above prints"
        if block.language != "setup":
            printed = ""
        if block.no_run is not None:
            assert block.no_run, f"{page.name}:{block.line}: say why this block is not run"
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text, "utf-8")
        elif block.language in ("python", "setup"):
            if block.no_run:
                compiled(block, page)
            else:
                printed = run_python(block, page, module)
        elif block.language in ("console", "bash", "shell", "sh") and not block.no_run:
            for arguments in commands(block):
                run_command(arguments)


def test_no_language_is_missed(page: Path) -> None:
    for block in blocks(page.read_text("utf-8")):
        assert block.language, f"{page.name}:{block.line}: name the block's language (text, if it is none)"
        assert block.language not in ("py", "python3", "pycon", "ipython"), (
            f"{page.name}:{block.line}: write `python`, so that the block is run"
        )


PAGE = """
<!-- setup
given = 20
-->
```python
async def double(number: int) -> int:
    return 2 * number
answer = await double(given) + 2
```

<!-- no-run: needs a key -->

```python
raise SystemExit
```

1. In a list:
   ```console
   $ toolsearch search "a b" \\
       --tools x.json   # looks
   found
   $ ls
   ```

<!-- file: data/x.json -->
```json
{}
```
"""


def test_blocks_are_found_with_their_lines_and_marks() -> None:
    found = list(blocks(PAGE))
    assert [(block.language, block.line) for block in found] == [
        ("setup", 3), ("python", 6), ("python", 14), ("console", 19), ("json", 27),
    ]  # fmt: skip
    assert [block.no_run for block in found] == [None, None, "needs a key", None, None]
    assert found[4].file == "data/x.json"
    assert [block.follows for block in found] == [False, False, False, False, False]
    assert list(commands(found[3])) == [["search", "a b", "--tools", "x.json"]]


def test_blocks_share_a_namespace_and_may_await() -> None:
    module = types.ModuleType("page")
    for block in list(blocks(PAGE))[:2]:
        run_python(block, Path("page.md"), module)
    assert module.__dict__["answer"] == 42


def test_what_a_block_prints_is_known() -> None:
    page = "```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n\nA word.\n\n```text\nnot its output\n```\n"
    code, output, other = blocks(page)
    assert run_python(code, Path("page.md"), types.ModuleType("page")) == output.text == "42\n"
    assert (output.follows, other.follows) == (True, False)


def test_a_failing_snippet_names_the_line_of_its_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_python(Block(7, "python", "x = 1\n1 / 0\n"), Path("page.md"), types.ModuleType("page"))
    frame = traceback.extract_tb(caught.tb)[-1]
    assert (frame.filename, frame.lineno) == ("page.md", 8)


def test_a_mark_without_a_block_is_an_error() -> None:
    with pytest.raises(AssertionError, match="right before a block"):
        list(blocks("<!-- no-run: because -->\nsome text\n"))
