"""What a change would do, as a person may see it: the lines that differ, without the secrets in them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from difflib import unified_diff
from typing import Literal

from toolsearch import SetupError
from toolsearch.mcp.clients.jsonc import Node, parse
from toolsearch.mcp.clients.toml_edit import statements
from toolsearch.support.redaction import redacted, visible

__all__ = ["difference", "without_secrets"]

MASK = "[redacted]"
LINE = 160  # characters of a line that are shown
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*(?:"(?P<colon>\s*:)?)?')
# Whatever stands in these tables of an entry may be a secret.
_SECRET_TABLES = frozenset(["env", "headers", "auth", "oauth", "http_headers"])


def difference(
    before: str,
    after: str,
    name: str,
    form: Literal["json", "toml"],
    labels: tuple[str, str] = ("as it is now", "as it will be"),
) -> Iterator[str]:
    """The lines that differ, as `diff -u` shows them; `labels` say of which state each of the two texts is."""
    old, new = (without_secrets(text, form).splitlines() for text in (before, after))
    first, second = (f"{name} ({label})" for label in labels)
    for line in unified_diff(old, new, first, second, n=1, lineterm=""):
        yield visible(line if len(line) <= LINE else line[:LINE] + "…")


def without_secrets(text: str, form: Literal["json", "toml"]) -> str:
    """The text of a configuration with `[redacted]` in the place of what may be a secret."""
    if form == "toml":
        return "".join(_statements_without_secrets(text))
    try:
        root = parse(text, "the file")
    except SetupError:
        return redacted(
            _TEXT.sub(lambda match: match[0] if match["colon"] else f'"{MASK}"', text)
        )  # it is broken, so that no value can be judged
    pieces, done = [], 0
    for node, shown in _masked(root, "", secret=False):
        pieces += [text[done : node.start], json.dumps(shown, ensure_ascii=False)]
        done = node.end
    return redacted("".join([*pieces, text[done:]]))


def _masked(node: Node, key: str, *, secret: bool) -> Iterator[tuple[Node, str]]:
    """The texts that may be secrets, in their order, each with what is shown of it."""
    if isinstance(node.value, str) and (shown := _shown(node.value, key, secret=secret)) != node.value:
        yield node, shown
    for member in node.members:
        yield from _masked(member.node, member.key, secret=secret or member.key in _SECRET_TABLES)
    before = ""
    for item in node.items:
        yield from _masked(item, before, secret=secret)
        before = item.value if isinstance(item.value, str) and item.value.startswith("-") else ""


def _shown(text: str, key: str, *, secret: bool) -> str:
    if secret:
        is_variable = text.startswith(("${", "$", "Bearer ${")) and " " not in text.removeprefix("Bearer ")
        return text if is_variable or text in ("", "true", "false") else MASK
    return redacted(f"{key}={text}")[len(key) + 1 :] if key else redacted(text)


def _statements_without_secrets(text: str) -> Iterator[str]:
    done, table = 0, ""
    for start, end, is_header in statements(text):
        yield redacted(text[done:start])
        done = end
        line = text[start:end]
        if is_header:
            table = line.strip().strip("[]").rpartition(".")[2].strip("\"' ")
            yield line
            continue
        try:
            has_secret = _has_secret(tomllib.loads(line), "", secret=table in _SECRET_TABLES)
        except tomllib.TOMLDecodeError:
            has_secret = True
        yield f'{line.partition("=")[0].rstrip()} = "{MASK}"\n' if has_secret else redacted(line)
    yield redacted(text[done:])


def _has_secret(value: object, key: str, *, secret: bool) -> bool:
    if isinstance(value, str):
        return _shown(value, key, secret=secret) != value
    if isinstance(value, dict):
        return any(_has_secret(each, name, secret=secret or name in _SECRET_TABLES) for name, each in value.items())
    if isinstance(value, list):
        before = ["", *(each if isinstance(each, str) and each.startswith("-") else "" for each in value)]
        return any(_has_secret(each, flag, secret=secret) for each, flag in zip(value, before, strict=False))
    return False
