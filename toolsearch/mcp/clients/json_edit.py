"""Changes the servers in a file of JSON and nothing else: what stands outside of them keeps its bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from toolsearch import SetupError
from toolsearch.mcp.clients.jsonc import Node, after_space, parse

__all__ = ["entries_in", "with_entries"]


def entries_in(text: str, keys: tuple[str, ...], what: str) -> dict[str, object]:
    """The servers under these keys, by name. Raises `SetupError` if there is something else."""
    if not text.strip("\ufeff \t\r\n"):
        return {}
    node = _root(text, what).at(*keys)
    if node is None:
        return {}
    if not node.is_object:
        raise SetupError(f"{'.'.join(keys)!r} in {what} is no object of servers. Correct it first")
    return {member.key: member.node.value for member in node.members}


def with_entries(
    text: str, keys: tuple[str, ...], removed: Collection[str], added: Mapping[str, object], what: str
) -> str:
    """The text without the `removed` servers and with the `added` ones; those that stay keep bytes and comments."""
    if not text.strip("\ufeff \t\r\n"):
        return text + _dump(_nested(keys, added), "  ", "") + "\n"
    root = _root(text, what)
    form = _Form(text, root)
    node = root.at(*keys)
    if node is not None and node.is_object:
        inner = _members(text, node, removed, added, form)
        return text[: node.start] + inner + text[node.end :]
    parent, missing = root, list(keys)
    while len(missing) > 1 and (child := parent.at(missing[0])) is not None:
        parent = child
        missing.pop(0)
    if node is not None or not parent.is_object:
        raise SetupError(f"{'.'.join(keys)!r} in {what} cannot be put there. Correct it first")
    value = _nested(tuple(missing), added)
    return text[: parent.start] + _members(text, parent, (), value, form) + text[parent.end :]


def _root(text: str, what: str) -> Node:
    root = parse(text, what)
    if not root.is_object:
        raise SetupError(f"{what} holds no object. Correct it first")
    return root


def _nested(keys: tuple[str, ...], value: Mapping[str, object]) -> dict[str, object]:
    nested: dict[str, object] = dict(value)
    for key in reversed(keys):
        nested = {key: nested}
    return nested


class _Form:
    """How a file is laid out: in one line or many, with which ends of lines and indentation."""

    def __init__(self, text: str, root: Node) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        first = self.indent_of(root.members[0].start) if root.members else None
        self.is_flat = bool(root.members) and first is None
        base = self.indent_of(root.start) or ""
        self.unit = (first or "").removeprefix(base) or "  "

    def indent_of(self, at: int) -> str | None:
        """The spaces that the line begins with, None if something else stands before."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
        return line if not line.strip(" \t") else None

    def depth_of(self, node: Node) -> str:
        """The indentation of the line in which an object begins."""
        begin = self.text.rfind("\n", 0, node.start) + 1
        match = re.compile(r"\ufeff?([ \t]*)").match(self.text, begin)
        assert match is not None
        return match[1]


def _members(text: str, node: Node, removed: Collection[str], added: Mapping[str, object], form: _Form) -> str:
    """The object anew. A member that stays has the text before it, comments among it, from the comma before."""
    outer = form.depth_of(node)
    inner = outer + form.unit
    kept: list[str] = []
    at = node.start + 1
    for member in node.members:
        comma = _comma(text, member.node.end)
        if member.key not in removed and member.key not in added:
            kept.append(text[at : member.node.end if comma is None else comma])
        at = member.node.end if comma is None else comma + 1
    rest = text[at : node.end - 1]
    if not added:
        return "{" + ",".join(kept) + (rest if kept or rest.strip() else "") + "}"
    between = " " if form.is_flat else form.newline + inner
    shown = [_shown(key, value, form, inner) for key, value in added.items()]
    before = ",".join(kept) + ("," if kept else "") + rest.rstrip()
    if not form.is_flat:
        first = between
    elif "//" in before.rpartition("\n")[2]:
        first = form.newline  # nothing stands behind such a comment
    else:
        first = " " if before else ""
    return "{" + before + first + f",{between}".join(shown) + ("" if form.is_flat else form.newline + outer) + "}"


def _comma(text: str, end: int) -> int | None:
    """Where the comma after a member stands, None if there is none."""
    at = after_space(text, end)
    return at if text[at : at + 1] == "," else None


def _shown(key: str, value: object, form: _Form, depth: str) -> str:
    name = json.dumps(key, ensure_ascii=False)
    if form.is_flat:
        return f"{name}: {json.dumps(value, ensure_ascii=False)}"
    return f"{name}: {_dump(value, form.unit, depth, form.newline)}"


def _dump(value: object, unit: str, depth: str, newline: str = "\n") -> str:
    dumped = json.dumps(value, indent=unit, ensure_ascii=False)
    return dumped.replace("\n", newline + depth)
