"""What tools are called: base names, names a provider accepts, exact look-ups and near misses."""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
import zlib
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import compress

__all__ = [
    "LEGAL",
    "Names",
    "base_name",
    "escaped",
    "folded",
    "name_key",
    "provider_name",
    "qualified_name",
    "spellings_of",
    "squashed",
    "tool_id",
    "without_program",
]

LONGEST_LEGAL = 64
LEGAL = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_LEGAL}}}")  # what OpenAI and Anthropic both accept
SIMILAR = 0.5  # share of common letters; a name with fewer is not offered for another
SKETCH_BYTES = 64
SKETCHED = 100  # names that are compared letter by letter: those whose sketches are the most alike
_BITS = [bytes(byte >> bit & 1 for byte in range(256)) for bit in range(8)]
_OTHER = re.compile("[^a-z0-9]+")
_BETWEEN = re.compile(r"[\s_./:\-]+")  # what may stand between the words of a name
_SEPARATORS = str.maketrans("-. ", "___")
_PREFIX = re.compile(r".*(?:__|/|::|:|\.)(?=[^\W_])")
_PROGRAM = re.compile(r"\A(?:(?:functions|tools|default_api)[._:/]+)+")
_SPECIAL = re.compile(r"[%/*?\[]")


def squashed(text: str) -> str:
    """Letters and digits alone, case-folded: `Create-Issue` and `create_issue` are spelled the same."""
    if text.isascii():
        return _OTHER.sub("", text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum() or unicodedata.category(c)[0] == "M")  # marks: some are vowels


def folded(text: str) -> str:
    """The text case-folded and without what stands between words; any other sign stays, so that `c#` is not `c`."""
    return _BETWEEN.sub("", text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold())


def name_key(text: str) -> str:
    """Where a name is looked up. A name of signs only has no letter, and is its own key."""
    return squashed(text) or folded(text) or text


def without_program(name: str) -> str:
    """The name without the namespace of a program, which models put before it: `functions.create_issue`.

    Only the very front is dropped: without its server's name, a name could mean another server's tool.
    """
    return _PROGRAM.sub("", name)


def base_name(name: str, server: str | None = None) -> str:
    """The name without its namespace: `mcp__kit__ask_helper`, `kit/ask_helper`, `ask_helper_mcp_kit`: ask_helper."""
    prefix = _PREFIX.match(name)  # not `sub`, which looks at every place and takes the square of a name's length
    short = name[prefix.end() :] if prefix else name
    if "_mcp_" in short:
        short = short.partition("_mcp_")[0] or short
    if server and _flat(short).startswith(f"{_flat(server)}_"):
        short = short[len(server) :].lstrip("-_. ") or short
    return short


def _flat(name: str) -> str:
    return name.lower().translate(_SEPARATORS)


def tool_id(name: str, server: str | None) -> str:
    """The id of a tool: "server/name", or the name where there is no server.

    A slash in either, and what a pattern gives a meaning, is written as a code, as in `a%2Fb`. So no two tools have one
    id, and an id that is used as a pattern fits itself alone.
    """
    return f"{escaped(server)}/{escaped(name)}" if server else escaped(name)


def escaped(part: str) -> str:
    """A server or a name as it stands in an id."""
    return _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", part)


def provider_name(name: str, tool_id: str, server: str | None, *, shared: bool, digits: int = 8) -> str:
    """The name sent to a provider: a legal name that no other tool has stays; any other gets a hash of the tool's id.

    It depends only on the tool and on whether its plain name is `shared`, so the order of registration does not matter.
    The tool's own name stays whole as far as it fits; the server's is cut first.
    """
    if LEGAL.fullmatch(name) and not shared:
        return name
    most = 63 - digits
    own = _legal(name)[:most]
    before = _legal(server or "")[: max(0, most - 1 - len(own))].rstrip("_-") if shared else ""
    readable = f"{before}_{own}" if before and own else before or own or "tool"
    return f"{readable}_{hashlib.sha256(tool_id.encode()).hexdigest()[:digits]}"


def qualified_name(name: str, tool_id: str, server: str, *, digits: int = 8) -> str:
    """`server__name`, which no other tool that comes later can change: legal, a letter first, `__` once.

    Where one of both had to be changed for that, or cut, it ends with a hash of the tool's id.
    """
    before, own = (re.sub("__+", "_", _legal(part)).strip("_") for part in (server, name))
    plain = f"{before}__{own}"
    is_letter = before[:1].isalpha()
    if digits == 8 and is_letter and (before, own) == (server, name) and len(plain) <= LONGEST_LEGAL:
        return plain
    before = before if is_letter else f"s{before}"
    most = LONGEST_LEGAL - 1 - digits
    own = own[: most - 3].rstrip("_") or "tool"
    before = before[: most - 2 - len(own)].rstrip("_-")
    return f"{before}__{own}_{hashlib.sha256(tool_id.encode()).hexdigest()[:digits]}"


def _legal(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")


def spellings_of(name: str, tool_id: str, server: str | None) -> tuple[str, ...]:
    """What is a tool's name to the letter: id, name, the names providers see, and `mcp__<server>__<tool>`."""
    own = provider_name(name, tool_id, server, shared=False)
    if not server:
        return tuple(dict.fromkeys((tool_id, name, own)))
    shared = provider_name(name, tool_id, server, shared=True)
    qualified = qualified_name(name, tool_id, server)
    written = (f"{server}/{name}", f"{server}__{name}", f"mcp__{server}__{name}")
    return tuple(dict.fromkeys((tool_id, name, own, shared, qualified, *written)))


@dataclass(frozen=True, slots=True)
class _Entry:
    """The names of one tool: to the letter, these folded, all folded, their letters and digits."""

    exact: tuple[str, ...]
    own: frozenset[str]
    folded: frozenset[str]
    keys: tuple[str, ...]


class Names:
    """All names of a catalog's tools. A copy shares what it does not change, so that a state stays as it is."""

    def __init__(self) -> None:
        self._ids: dict[str, tuple[str, ...]] = {}  # key -> ids
        self._entries: dict[str, _Entry] = {}
        self._sketches: dict[str, bytes] = {}  # of the keys of each tool, in the order of the entries
        self._columns: list[bytes] | None = None  # the sketches byte by byte, once they are needed
        self._letters: set[str] = set()  # all that occurred in any name

    def copy(self) -> Names:
        """The same names, to be changed without a change of these."""
        other = Names()
        other._ids, other._entries, other._sketches = self._ids.copy(), self._entries.copy(), self._sketches.copy()
        other._letters = self._letters.copy()
        return other

    def add(self, tool_id: str, spellings: Iterable[str], others: Iterable[str] = ()) -> None:
        """`spellings` are the names of a tool to the letter; `others`, such as the base name, lead to it as well."""
        exact = tuple(filter(None, spellings))
        every = (*exact, *filter(None, others))
        keys = tuple(dict.fromkeys(map(name_key, every)))
        self._sketches[tool_id], self._columns = _sketch(frozenset().union(*map(_trigrams, keys))), None
        own, all_folded = (frozenset(map(folded, names)) - {""} for names in (exact, every))
        self._entries[tool_id] = _Entry(exact, own, all_folded, keys)
        self._letters.update(*keys)
        for key in keys:
            self._ids[key] = (*self._ids.get(key, ()), tool_id)

    def remove(self, tool_id: str) -> None:
        entry, self._columns = self._entries.pop(tool_id, None), None
        self._sketches.pop(tool_id, None)
        for key in entry.keys if entry is not None else ():
            if rest := tuple(i for i in self._ids[key] if i != tool_id):
                self._ids[key] = rest
            else:
                del self._ids[key]

    def exact(self, text: str) -> list[str]:
        """Ids of the tools whose name this is to the letter, sorted."""
        return sorted(i for i in self._ids.get(name_key(text), ()) if text in self._entries[i].exact)

    def folded(self, text: str) -> list[str]:
        """Ids of the tools whose name this is in any case and with any signs between its words, sorted."""
        wanted = folded(text)
        return sorted(i for i in self._ids.get(name_key(text), ()) if wanted in self._entries[i].folded)

    def folds_of(self, tool_id: str) -> frozenset[str]:
        """The names of a tool to the letter, folded."""
        return self._entries[tool_id].own

    def with_fold(self, fold: str) -> list[str]:
        """Ids of the tools that have a name, other than the base name, that is this when it is folded."""
        return [i for i in self._ids.get(name_key(fold), ()) if fold in self._entries[i].own]

    def alike(self, text: str) -> list[str]:
        """Ids of the tools with a name of the same letters and digits, whatever signs there are, sorted."""
        return sorted(self._ids.get(name_key(text), ()))

    def near(self, text: str, limit: int = 3, among: Collection[str] | None = None) -> list[str]:
        """Ids of the tools with the most similar names, best first; empty if none is similar.

        Only the tools in `among` are looked at, so the time that it takes says nothing of any others. Sketches choose
        the hundred most alike, whose names are compared letter by letter.
        """
        key = squashed(text[:64])
        if not key:
            return []
        wanted, entries = _trigrams(key), self._entries
        if among is None:
            if _most_similar(key, self._letters) < SIMILAR:  # a query in a script that no name has
                return []
            ids = list(self._sketches)
            columns = self._columns = self._columns or _columns(self._sketches.values())
        else:
            ids = [i for i in among if i in entries]
            columns = _columns([self._sketches[i] for i in ids])
        first = _most_alike(wanted, ids, columns)
        alike = sorted((-max(_dice(wanted, _trigrams(s)) for s in entries[i].keys), i) for i in first)[:10]
        scored = sorted((-max(_ratio(key, s) for s in entries[i].keys), i) for _, i in alike)
        return [i for score, i in scored if -score >= SIMILAR][:limit]


def _columns(sketches: Iterable[bytes]) -> list[bytes]:
    """The first bytes of all sketches, the second ones, and so on."""
    row = b"".join(sketches)
    return [row[at::SKETCH_BYTES] for at in range(SKETCH_BYTES)]


def _most_alike(wanted: frozenset[str], ids: list[str], columns: Sequence[bytes]) -> list[str]:
    """The ids whose sketches have the most bits in common with these trigrams, equal ones by id; `SKETCHED` of them.

    One bit of all sketches is a row of bytes, 0 or 1 for each tool. The sum of these rows, each read as one whole
    number, holds the counts, a byte for each tool. So nothing is done tool by tool.
    """
    if len(ids) <= SKETCHED:
        return ids
    total = 0
    for bit in sorted(set(map(_bit, wanted)))[:255]:  # a byte counts no further
        total += int.from_bytes(columns[bit >> 3].translate(_BITS[bit & 7]), "big")
    counts = total.to_bytes(len(ids), "big")
    bar, above = max(counts), 0
    while above + (reached := counts.count(bar)) < SKETCHED:
        bar, above = bar - 1, above + reached
    better = compress(ids, counts.translate(bytes(count > bar for count in range(256))))
    equal = compress(ids, counts.translate(bytes(count == bar for count in range(256))))
    return [*better, *heapq.nsmallest(SKETCHED - above, equal)]


def _most_similar(key: str, letters: AbstractSet[str]) -> float:
    """How similar at most a name of these letters is, 0 … 1: one that consists of what it shares with the key."""
    shared = sum([letter in letters for letter in key])
    return 2 * shared / (len(key) + shared)


def _ratio(wanted: str, name: str) -> float:
    """How similar two names are, 0 … 1; 0 if their letters, in any order, keep them from being similar."""
    shared = sum([min(wanted.count(letter), name.count(letter)) for letter in set(name)])
    if 2 * shared < SIMILAR * (len(wanted) + len(name)):
        return 0.0
    return SequenceMatcher(None, wanted, name).ratio()


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


@lru_cache(maxsize=4_096)
def _trigrams(key: str) -> frozenset[str]:
    whole = f"^{key}$"
    return frozenset([whole[i : i + 3] for i in range(len(key))])


def _sketch(trigrams: Iterable[str]) -> bytes:
    """A set of trigrams as bits: two sets that share many have many bits in common."""
    sketch = bytearray(SKETCH_BYTES)
    for bit in map(_bit, trigrams):
        sketch[bit >> 3] |= 1 << (bit & 7)
    return bytes(sketch)


def _bit(trigram: str) -> int:
    return zlib.crc32(trigram.encode("utf-8", "replace")) % (8 * SKETCH_BYTES)
