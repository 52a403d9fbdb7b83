"""JSON with comments, and where each value of it stands in the text, so that one can change and all else stays."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from toolsearch import SetupError

__all__ = ["Member", "Node", "after_space", "parse"]

MOST_DEPTH = 200
_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")


@dataclass(frozen=True, slots=True)
class Member:
    """One `"key": value` of an object. `start` is where the key begins."""

    key: str
    start: int
    node: Node


@dataclass(frozen=True, slots=True)
class Node:
    """A value, from `start` to `end` of the text. `members` are those of an object, `items` those of a list."""

    start: int
    end: int
    value: object
    members: tuple[Member, ...] = field(default=())
    items: tuple[Node, ...] = field(default=())

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    def at(self, *keys: str) -> Node | None:
        """The value under these keys, None if there is none."""
        node = self
        for key in keys:
            found = next((member.node for member in node.members if member.key == key), None)
            if found is None:
                return None
            node = found
        return node


class _Broken(Exception):
    pass


def parse(text: str, what: str) -> Node:
    """The value of a text: JSON, comments, and commas before a closing bracket.

    Raises `SetupError` for a text that is none, naming `what` and the line, and for a key that stands twice in an
    object: which of the two counts differs between programs.
    """
    parser = _Parser(text)
    try:
        node = parser.value(parser.skip(0), 0)
        if (end := parser.skip(node.end)) != len(text):
            parser.at = end
            raise _Broken("something follows the value")
    except _Broken as error:
        line = text.count("\n", 0, parser.at) + 1
        raise SetupError(f"{what} is no JSON, in line {line}: {error}. Correct it first") from None
    return node


def after_space(text: str, at: int) -> int:
    """Where the next thing begins that is neither space nor a comment."""
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self, at: int) -> int:
        """Where the next thing begins that is neither space nor a comment."""
        self.at = after_space(self.text, at)
        return self.at

    def value(self, at: int, depth: int) -> Node:
        if depth > MOST_DEPTH:
            raise _Broken("it is nested too deeply")
        sign = self.text[at : at + 1]
        if sign == "{":
            return self.object(at, depth)
        if sign == "[":
            return self.list(at, depth)
        if sign == '"':
            text, end = self.string(at)
            return Node(at, end, text)
        if (match := _SCALAR.match(self.text, at)) is None:
            raise _Broken("a value is missing" if sign else "it ends too early")
        try:
            return Node(at, match.end(), json.loads(match[0]))
        except ValueError:
            raise _Broken(f"{match[0][:20]!r} is no number") from None

    def string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self.text, at)
        if match is None:
            raise _Broken("a text in quotes is missing, or does not end")
        try:
            return str(json.loads(match[0])), match.end()
        except ValueError:
            raise _Broken("a text has an escape that JSON does not know") from None

    def object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "}":
            key, end = self.string(at)
            if any(member.key == key for member in members):
                raise _Broken(f"the key {key!r} stands there twice")
            colon = self.skip(end)
            if self.text[colon : colon + 1] != ":":
                raise _Broken("a colon is missing")
            node = self.value(self.skip(colon + 1), depth + 1)
            members.append(Member(key, at, node))
            at = self._next(node.end, "}")
        return Node(start, at + 1, {member.key: member.node.value for member in members}, tuple(members))

    def list(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "]":
            items.append(self.value(at, depth + 1))
            at = self._next(items[-1].end, "]")
        return Node(start, at + 1, [item.value for item in items], (), tuple(items))

    def _next(self, end: int, closing: str) -> int:
        """Where the next member begins, or the closing bracket stands."""
        at = self.skip(end)
        if self.text[at : at + 1] == ",":
            return self.skip(at + 1)
        if self.text[at : at + 1] != closing:
            raise _Broken(f"a comma or {closing!r} is missing")
        return at
