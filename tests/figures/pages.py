"""The marks of a page: the commands that it names, and its text with the figures made again."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.figures.expressions import FIGURE, NUMBER, Expression, NoRow, NotMade, parsed, value, written

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^<!-- numbers: (?P<name>[\w-]+)(?P<rule>[^\n]*?) -->\n(?P<between>(?:<!-- no-run:[^\n]*-->\n|\n)*)"
    r"(?P<fence>```\w+\n)(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"\$ toolsearch (?:[^\n]*\\\n)*[^\n]*\n")
CELLS = re.compile(
    r"^<!-- cells:(?P<spec>.*?)-->\n(?P<between>\n*)(?P<table>(?:\|[^\n]*\n)+)", re.MULTILINE | re.DOTALL
)
ONE = re.compile(rf"(?P<text>{FIGURE})<!-- = (?P<expression>[^>]*?) -->")
IMAGE = re.compile(r"!\[(?P<told>[^\]]*)\](?P<file>\([^)]*\))<!-- alt: (?P<spec>[^>]*?) -->")
MADE = re.compile(r"\d{1,2} [A-Z]\w+ \d{4}(?:, commit \w+)?<!-- made: (?P<name>[\w-]+) -->")
TIME = re.compile(r"\d+\.\d{3}$")


@dataclass(frozen=True)
class Named:
    """A command that a page shows, by its name."""

    name: str
    arguments: tuple[str, ...]  # after `toolsearch`
    quick: bool = False


@dataclass(frozen=True)
class Made:
    """What a command gave: what it printed, its report as JSON if it makes one, and when that was."""

    output: str
    report: Any = None
    when: str = ""


@dataclass
class Page:
    """A page, and what went wrong when its figures were made."""

    path: Path
    text: str
    wrong: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def commands(self) -> list[Named]:
        return [_named(block) for block in BLOCK.finditer(self.text)]

    def expressions(self) -> list[Expression]:
        """Of every figure and cell."""
        found = [parsed(one["expression"]) for one in ONE.finditer(self.text)]
        found += [one for image in IMAGE.finditer(self.text) for one in _list(image["spec"]) if one is not None]
        for cells in CELLS.finditer(self.text):
            columns, rows = _spec(cells["spec"])
            found += [e for row in rows if row for column in columns if column for e in _both(column, row)]
        return found

    def remade(self, made: Mapping[str, Made]) -> str:
        """The text with every figure that one of these commands makes; what went wrong is added to `wrong`."""
        reports = {name: each.report for name, each in made.items() if each.report is not None}
        text = BLOCK.sub(lambda block: self._block(block, made), self.text)
        text = CELLS.sub(lambda cells: self._cells(cells, reports), text)
        text = IMAGE.sub(lambda image: self._image(image, reports), text)
        text = ONE.sub(lambda one: self._one(one, reports), text)
        return MADE.sub(lambda mark: _date(mark, made), text)

    def _block(self, block: re.Match[str], made: Mapping[str, Made]) -> str:
        named, (command, before) = _named(block), _split(block["body"])
        if named.name not in made or not before.strip():
            return block[0]
        try:
            after = trimmed(made[named.name].output, _rule(block["rule"]))
        except ValueError as error:
            self.wrong.append(f"{self.name}: {named.name}: {error}")
            return block[0]
        if same_but_times(before, after):
            return block[0]
        head = block[0][: block.start("body") - block.start()]
        return f"{head}{command}\n{after}```"

    def _cells(self, cells: re.Match[str], reports: Mapping[str, Any]) -> str:
        columns, rows = _spec(cells["spec"])
        lines = cells["table"].splitlines()
        if len(lines) - 2 != len(rows):
            self.wrong.append(f"{self.name}: a table has {len(lines) - 2} rows, and its mark {len(rows)}")
            return cells[0]
        done = lines[:2] + [self._row(*each, columns, reports) for each in zip(lines[2:], rows, strict=True)]
        return f"{cells[0][: cells.start('table') - cells.start()]}{chr(10).join(done)}\n"

    def _row(
        self, line: str, row: list[Expression], columns: list[list[Expression]], reports: Mapping[str, Any]
    ) -> str:
        if not row:
            return line
        parts = re.split(r"(?<!\\)\|", line)  # the first and the last are empty
        for at, column in enumerate(columns[: len(parts) - 2], 1):
            if column and "<!-- =" not in parts[at]:
                wanted = iter(_both(column, row))
                parts[at] = re.sub(FIGURE, lambda like, w=wanted: self._next(like[0], w, reports), parts[at])  # type: ignore[misc]
        return "|".join(parts)

    def _next(self, like: str, wanted: Iterable[Expression], reports: Mapping[str, Any]) -> str:
        for one in wanted:
            return self._figure(like, one, reports)
        return like

    def _image(self, image: re.Match[str], reports: Mapping[str, Any]) -> str:
        wanted = iter(_list(image["spec"]))

        def number(like: re.Match[str]) -> str:
            one = next(wanted, None)
            return like[0] if one is None else self._figure(like[0], one, reports)

        told = re.sub(NUMBER, number, image["told"])
        return f"![{told}]{image['file']}{image[0][image.end('file') - image.start() :]}"

    def _one(self, one: re.Match[str], reports: Mapping[str, Any]) -> str:
        return f"{self._figure(one['text'], parsed(one['expression']), reports)}{one[0][len(one['text']) :]}"

    def _figure(self, like: str, wanted: Expression, reports: Mapping[str, Any]) -> str:
        try:
            return written(like, *value(wanted, reports))
        except NotMade:
            return like
        except ValueError as error:
            if isinstance(error, NoRow) and like == "–":
                return like
            self.wrong.append(f"{self.name}: {like!r}: {error}")
            return like


def pages(root: Path = ROOT) -> list[Page]:
    """README.md and the pages in docs/."""
    return [Page(path, path.read_text("utf-8")) for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]]


def commands(of: Iterable[Page]) -> dict[str, Named]:
    """Every command, by its name, which is its own on all pages."""
    found: dict[str, Named] = {}
    for page in of:
        for named in page.commands():
            if named.name in found:
                raise ValueError(f"{page.name}: another command has the name {named.name!r}")
            found[named.name] = named
    return found


def trimmed(output: str, rule: Mapping[str, str]) -> str:
    """The lines of an output that a block shows; an ellipsis stands for rows that it leaves out."""
    skipped = tuple(label.strip() for label in rule.get("skip", "").split(",") if label.strip())
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    lines = lines[_at(lines, rule["from"]) if "from" in rule else 0 : _at(lines, rule["to"]) if "to" in rule else None]
    kept: list[str] = []
    rows = 0  # since the line under the heads of a table
    for line in lines:
        rows = 0 if not line or "───" in line else rows + 1
        if line.startswith(tuple(f" {label}" for label in skipped)) or rows > int(rule.get("rows", len(lines))):
            if kept[-1:] != [" …"]:
                kept.append(" …")
        elif line or kept[-1:] != [""]:
            kept.append(line)
    if (most := int(rule.get("lines", len(kept)))) < len(kept):
        kept = [*kept[:most], "…"]
    return "\n".join(kept).strip("\n") + "\n"


def _at(lines: list[str], beginning: str) -> int:
    for number, line in enumerate(lines):
        if line.strip().startswith(beginning):
            return number
    raise ValueError(f"no line of the output begins with {beginning!r}")


def same_but_times(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but a time in each row, such as 1.260 milliseconds."""

    def words(text: str) -> list[list[str]]:
        return [re.sub("─+", "─", line).split() for line in text.strip("\n").splitlines()]  # of any width

    def alike(first: list[str], second: list[str]) -> bool:
        if len(first) != len(second):
            return False
        changed = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
        return len(changed) <= 1 and all(TIME.fullmatch(word) for pair in changed for word in pair)

    return len(words(one)) == len(words(other)) and all(map(alike, words(one), words(other)))


def _named(block: re.Match[str]) -> Named:
    shown = COMMAND.findall(block["body"])
    if len(shown) != 1:
        raise ValueError(f"the block {block['name']!r} has {len(shown)} commands of toolsearch; it takes exactly one")
    words = shlex.split(shown[0].replace("\\\n", " "), comments=True)
    return Named(block["name"], tuple(words[2:]), "quick" in _rule(block["rule"]))


def _split(body: str) -> tuple[str, str]:
    """The command as it stands, and what the block shows after it."""
    command = COMMAND.search(body)
    assert command
    return body[: command.end()], body[command.end() :]


def _rule(text: str) -> dict[str, str]:
    return {name: worth for name, _, worth in (word.partition("=") for word in shlex.split(text))}


def _spec(text: str) -> tuple[list[list[Expression]], list[list[Expression]]]:
    """For each column and each row the expressions of its cells; no expression means that it stays as it is."""
    common, columns, *rows = [line.strip() for line in text.strip("\n").splitlines() if line.strip()] or ["", ""]
    if common.startswith("|"):
        common, columns, rows = "", common, [columns, *rows]
    for_all = parsed(common)
    split = [cell.strip() for cell in columns.removeprefix("|").split("|")]
    return (
        [[for_all + parsed(one) for one in cell.split(";")] if cell else [] for cell in split],
        [[] if row == "-" else [parsed(one) for one in row.split(";")] for row in rows],
    )


def _list(text: str) -> list[Expression | None]:
    """Expressions with `;` between them; `-` is none, for a number that stays as it is."""
    return [None if one.strip() == "-" else parsed(one) for one in text.split(";")]


def _both(column: list[Expression], row: list[Expression]) -> list[Expression]:
    return [for_row + for_column for for_column in column for for_row in row]


def _date(mark: re.Match[str], made: Mapping[str, Made]) -> str:
    when = made[mark["name"]].when if mark["name"] in made else ""
    return f"{when}<!-- made: {mark['name']} -->" if when else mark[0]
