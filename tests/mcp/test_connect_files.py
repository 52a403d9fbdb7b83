"""Any file of a client, however it is written: the servers change, the values of all else stay, and so do its bytes."""

import json
import tomllib
from random import Random
from typing import Any

import pytest

from toolsearch.mcp.clients import json_edit, toml_edit
from toolsearch.mcp.clients.jsonc import parse
from toolsearch.mcp.clients.preview import without_secrets

ADDED = {"toolsearch": {"command": "ts", "args": ["serve", "ü.json"]}}
SPACES = ["", "", " ", "\n", "\r\n  ", "\t", "/* a, } */", "/**/", "// b ] \n", " /* { */ // {,\n "]
NAMES = ["a", "b c", "", 'q"', "ü", "\\", "//", "/* */", "{,}", "servers"]


def written(value: Any, random: Random) -> str:
    """A value as JSON, with any space, comments and trailing commas between its parts."""

    def space() -> str:
        return random.choice(SPACES)

    if isinstance(value, dict):
        parts = [
            f"{space()}{json.dumps(key, ensure_ascii=random.random() < 0.5)}{space()}:{space()}{written(each, random)}"
            for key, each in value.items()
        ]
    elif isinstance(value, list):
        parts = [space() + written(each, random) for each in value]
    else:
        return json.dumps(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inner = ",".join(part + space() for part in parts) or space()
    return opening + inner + ("," + space() if parts and random.random() < 0.3 else "") + closing


def made(random: Random, depth: int) -> Any:
    """Any value of JSON."""
    kind = random.randrange(8 if depth else 6)
    if kind < 6:
        return [None, True, -1.5e3, "", "x // y", "/* z */ }"][kind]
    size = random.randrange(3)
    if kind == 6:
        return [made(random, depth - 1) for _ in range(size)]
    return {name: made(random, depth - 1) for name in random.sample(NAMES, size)}


def table(random: Random, depth: int) -> dict[str, Any]:
    return {name: made(random, depth) for name in random.sample(NAMES, random.randrange(4))}


@pytest.mark.parametrize("part", range(4))
def test_any_json_with_comments(part: int) -> None:
    for seed in range(150):
        random = Random(f"{part} {seed}")
        document = table(random, 2)
        document.pop("servers", None)
        there = table(random, 3)
        if random.random() < 0.8:
            document["servers"] = there
        else:
            there = {}
        text = random.choice(SPACES) + written(document, random) + random.choice(SPACES)
        assert parse(text, "it").value == document
        removed = [name for name in there if random.random() < 0.6]
        added = ADDED if random.random() < 0.7 or not removed else {}
        after = json_edit.with_entries(text, ("servers",), removed, added, "it")
        kept = {name: entry for name, entry in there.items() if name not in removed}
        assert parse(after, "it").value == {**document, "servers": {**kept, **added}}
        node = parse(text, "it").at("servers")
        outside = parse(text, "it") if node is None else node
        assert after.startswith(text[: outside.start])
        assert after.endswith(text[outside.end :])
        for name in kept:
            assert node is not None
            assert (entry := node.at(name)) is not None
            assert text[entry.start : entry.end] in after
        without_secrets(after, "json")


KEYS = ["a", "b-c", '"d e"', '"f.g"', "'h'"]
LINES = [
    "x = 1", 'x = "[t]"', "x = '''\n[mcp_servers.a]\n'''", 'x = """\n[z]\n\\"""" # "', "x = [ # [\n  [1],\n  [2] ]",
    'x = { y = "}" }', "# [mcp_servers.a]", "", "  x = 1979-05-27T07:32:00Z", 'x = "#" # "', "x = '\\'",
]  # fmt: skip


def test_any_toml() -> None:
    for seed in range(300):
        random = Random(seed)
        found = random.sample(KEYS, random.randrange(5))
        tables = [f"mcp_servers.{key}" for key in found] + random.sample(["one", "two.three"], random.randrange(3))
        tables += [f"mcp_servers.{key}.env" for key in found if random.random() < 0.5]
        random.shuffle(tables)
        text = random.choice(LINES) + "\n"
        for name in tables:
            text += f"{random.choice(['', '  '])}[{name}]{random.choice(['', ' # c'])}\n"
            text += f"{random.choice(LINES)}\n{random.choice(['', '# end', 'y = 2'])}\n"
        text = text.replace("\n", random.choice(["\n", "\r\n"]))
        document = tomllib.loads(text)
        servers = document.pop("mcp_servers", {})
        removed = [name for name in servers if random.random() < 0.6]
        after = toml_edit.with_entries(text, ("mcp_servers",), removed, ADDED, "it")
        changed = tomllib.loads(after)
        kept = {name: entry for name, entry in servers.items() if name not in removed}
        assert changed.pop("mcp_servers") == {**kept, **ADDED}
        assert changed == document
        tomllib.loads(without_secrets(after, "toml"))
