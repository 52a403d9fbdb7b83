"""What a run is of: everything that its figures depend on, so that two runs can be told apart or found alike.

Texts are not in it, but SHA-256 hashes of them; nor are keys, and no name of a machine or a user.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypedDict

import toolsearch
from toolsearch import Catalog, SetupError
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted
from toolsearch.support.text import clean
from toolsearch_evals.backends import label
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.installed import package_of
from toolsearch_evals.reports.report import environment

__all__ = [
    "FORMAT",
    "Manifest",
    "case_hash",
    "catalog_hash",
    "command_text",
    "commit",
    "hashes_of",
    "index_hash",
    "now",
]

_ADDRESS = re.compile(r"\b(https?://)(?:[^\s/?#]*@)?([^\s/?#@]*)([/?#]\S+)?", re.IGNORECASE)
FORMAT = 1  # of all files of a run
_OBJECTS = ("data", "catalog", "index", "tokenizer", "settings", "facts", "environment")
# What does not tell two runs apart: when, where and with which words they were begun, and what others say as well.
_ASIDE = ("command", "when", "commit", "facts", "environment")


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str | None:
    """The commit of the working folder, with "-dirty" if files were changed since; None where that is not known."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        told = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", timeout=10)  # noqa: S603 - constant
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.stdout.strip() or None if told.returncode == 0 else None


@dataclass(frozen=True)
class Manifest:
    """What a run is of.

    `data` has a hash of the cases of each data set, `catalog` one of its tools, and `index` one of each index: of its
    name, its package's version and its encoder. `tokenizer` says what counted the tokens, by what was counted, and
    `profile` by whose prices; both may be unknown. `settings` are the options that the figures depend on, and `facts`
    what a report says besides, such as numbers of tools.
    """

    kind: str
    command: str
    data: Mapping[str, str]
    catalog: Mapping[str, str]
    index: Mapping[str, str]
    seed: int | None = None
    tokenizer: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None
    settings: JsonObject = field(default_factory=dict)
    facts: JsonObject = field(default_factory=dict)
    version: str = toolsearch.__version__
    commit: str | None = field(default_factory=commit)
    when: str = field(default_factory=now)
    environment: JsonObject = field(default_factory=environment)

    def as_json(self) -> str:
        """The text of `manifest.json`."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> Manifest:
        """Raises `SetupError`, which says `where`, for a text that is not a manifest of this format."""
        try:
            read = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SetupError(f"the manifest of {where} is not valid JSON: {error}") from None
        if not isinstance(read, dict) or read.get("format") != FORMAT:
            written = read.get("format") if isinstance(read, dict) else None
            raise SetupError(
                f"the manifest of {where} has the format {written!r}, and this version reads {FORMAT}: "
                "read the run with the version of toolsearch that wrote it"
            )
        known = {each.name for each in fields(cls)}
        for kind, names in ((str, ("kind", "command", "version", "when")), (dict, _OBJECTS)):
            if wrong := [name for name in names if name in read and not isinstance(read[name], kind)]:
                raise SetupError(f"the manifest of {where} was changed: its {wrong[0]!r} is {read[wrong[0]]!r}")
        try:
            return cls(**{key: value for key, value in read.items() if key in known})
        except TypeError:
            needed = ("kind", "command", "data", "catalog", "index")
            missing = [key for key in needed if key not in read]
            raise SetupError(f"the manifest of {where} has no {' and no '.join(map(repr, missing))}") from None

    def differences(self, other: Manifest) -> dict[str, tuple[object, object]]:
        """What tells the two runs apart, by "data", "settings results" and so on: the value here, and the other's."""
        found: dict[str, tuple[object, object]] = {}
        for each in fields(self):
            if each.name in _ASIDE:
                continue
            here, there = _plain(getattr(self, each.name)), _plain(getattr(other, each.name))
            if here == there:
                continue
            if isinstance(here, Mapping) and isinstance(there, Mapping):
                keys = sorted(key for key in {*here, *there} if here.get(key) != there.get(key))
                found |= {f"{each.name} {key}": (here.get(key), there.get(key)) for key in keys}
            else:
                found[each.name] = (here, there)
        return found


def _plain(value: object) -> object:
    """The value as it is read back from JSON: without tuples."""
    return json.loads(json.dumps(value))


def case_hash(cases: Iterable[Case]) -> str:
    """A hash of the cases: what they ask and what they need."""
    return _hash([[case.id, case.query, case.gold, case.steps] for case in cases])


def catalog_hash(catalog: Catalog) -> str:
    """A hash of the tools: all that a model, a policy or an index sees of them, whatever their order."""
    return _hash(sorted(tool.searched_digest for tool in catalog))


def index_hash(notation: str) -> str:
    """A hash of the name of an index, its encoder and model, and the version of the package that brings it."""
    name = notation.partition(":")[0]
    points = [point for point in entry_points(group="toolsearch.indexes") if point.name == name]
    versions = [f"{package_of(point)} {point.dist.version if point.dist else '?'}" for point in points]
    return _hash([label(notation), *versions])


class Hashes(TypedDict):
    """What the figures of a run are about, by name."""

    data: dict[str, str]
    catalog: dict[str, str]
    index: dict[str, str]


def hashes_of(datasets: Sequence[Dataset], catalogs: Sequence[Catalog], indexes: Sequence[str]) -> Hashes:
    """The manifest's `data`, `catalog` and `index`; `catalogs` are those of the data sets.

    Raises `SetupError` for two of one name: only one could be kept.
    """
    names = list(map(label, indexes))
    for what, each in (("data set", [each.key for each in datasets]), ("index", names)):
        if twice := [name for name in each if each.count(name) > 1]:
            raise SetupError(f"the {what} {twice[0]!r} is there twice: a run keeps each once, by its name")
    return {
        "data": {each.key: case_hash(each.cases) for each in datasets},
        "catalog": {each.key: catalog_hash(catalog) for each, catalog in zip(datasets, catalogs, strict=True)},
        "index": {name: index_hash(notation) for name, notation in zip(names, indexes, strict=True)},
    }


def _hash(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def command_text(arguments: Iterable[str | Path]) -> str:
    """A command line as a manifest keeps it: no secret, and of a folder outside the working folder the name only.

    Of an address the host is kept: a key may be anywhere in the rest, and nothing tells it from a path.
    """
    return clean(redacted(" ".join(map(_argument, arguments))))


def _argument(given: str | Path) -> str:
    if isinstance(given, Path) and given.is_absolute():
        inside = given.is_relative_to(Path.cwd())
        given = given.relative_to(Path.cwd()) if inside else Path("…") / given.name
    return shlex.quote(given.as_posix() if isinstance(given, Path) else _ADDRESS.sub(_host, given))


def _host(address: re.Match[str]) -> str:
    return f"{address[1]}{address[2]}{'/…' if address[3] else ''}"
