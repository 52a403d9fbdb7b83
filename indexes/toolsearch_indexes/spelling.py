"""A word the catalog does not know, read as one it does: a slip or two of the pen, or words run together."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from toolsearch_indexes.stem import LONGEST, stem
from toolsearch_indexes.text import STOP_WORDS

__all__ = ["Vocabulary", "common_words"]

COMMON_WORDS = Path(__file__).with_name("common_words.txt")
REPAIRS_KEPT = 1_000
MORE = 1_000  # words that are kept outside a table before it is built again


class Vocabulary:
    """The words a catalog knows, by first letter and length, so that similar ones are found by looking at few.

    Without a `source`, the words are those that `add` was given and `remove` was not. Repairs are kept then, so call
    one of the two whenever `holders` changes, and nothing at the same time. A source returns the words that begin with
    a letter; it is asked when the first word with that letter has to be repaired, and may return words that no tool
    holds any more. Then pass later words to `add`, as soon as the source would return them too, at any time and from
    any thread. `source` and `holders` must not use the vocabulary.
    """

    def __init__(self, source: Callable[[str], Iterable[str]] | None = None) -> None:
        self._source = source
        self._tables: dict[str, _Table] = {}
        # Since the last change: sentences of one query share words.
        self._repairs: dict[tuple[str, str], list[str]] = {}
        self._lock = threading.Lock()

    def add(self, words: Iterable[str]) -> None:
        with self._lock:
            self._repairs.clear()
            for word in words if self._tables or self._source is None else ():
                table = self._tables.get(word[:1])
                if (table is None and self._source is not None) or not _is_candidate(word):
                    continue
                if table is None:
                    table = self._tables[word[0]] = _Table()
                table.add(word)
                if self._source is not None and table.added > max(MORE, table.size):
                    del self._tables[word[0]]

    def remove(self, words: Iterable[str]) -> None:
        """Forgets words, where there is no source."""
        with self._lock:
            self._repairs.clear()
            for word in words:
                if (table := self._tables.get(word[:1])) is not None:
                    table.remove(word)

    def repair(self, word: str, holders: Callable[[str], int], spelled: str = "") -> list[str]:
        """The known words that an unknown one stands for: [] if it resembles none, two if two words are run together.

        One edit (insertion, deletion, replacement, swap of neighbours) is forgiven from four letters on, two edits from
        nine letters on. The first letter is taken to be right, or swapped with the second. Among equally similar words
        the one with the most `holders` wins, then the first in the alphabet. `spelled` is the word before stemming. A
        common word is no slip for another one, but it may be two run together.
        """
        if not 4 <= len(word) <= LONGEST or not _is_word(word):
            return []
        if self._source is not None:  # whose words may change at any time
            return self._repaired(word, holders, spelled)
        if (known := self._repairs.get((word, spelled))) is None:
            if len(self._repairs) >= REPAIRS_KEPT:
                self._repairs.clear()
            known = self._repairs[word, spelled] = self._repaired(word, holders, spelled)
        return known

    def _repaired(self, word: str, holders: Callable[[str], int], spelled: str) -> list[str]:
        is_common = word in common_words()
        if not is_common and (near := self._nearest(word, 1, holders)):
            return [near]
        spelled = spelled or word
        for at in range(3, len(spelled) - 1):
            parts = [stem(spelled[:at]), stem(spelled[at:])]
            if all(_is_word(part) and part not in STOP_WORDS and holders(part) for part in parts):
                return parts
        near = self._nearest(word, 2, holders) if len(word) >= 9 and not is_common else None
        return [near] if near else []

    def _nearest(self, word: str, edits: int, holders: Callable[[str], int]) -> str | None:
        near = {c: holders(c) for c in self._similar(word, edits) if _distance(word, c, edits) <= edits}
        if len(word) == 4:  # too many words of four letters are one letter apart
            near = {c: tools for c, tools in near.items() if len(c) != 4 or sorted(c) == sorted(word)}
        in_use = [c for c, tools in near.items() if tools]
        return min(in_use, key=lambda c: (c[0] != word[0], -near[c], c), default=None)

    def _similar(self, word: str, edits: int) -> list[str]:
        """Known words of about this length, beginning alike, whose letters differ by what the edits can change."""
        first, second = word[0], word[1]
        with self._lock:
            similar = self._table(first).near(word, edits)
            if edits == 1:  # then these three alone begin with the same two letters swapped
                swapped = (second + first + word[2:], word[1:], second + word)
                return similar + [each for each in swapped if each.startswith(second + first) and _is_candidate(each)]
            return similar + [each for each in self._table(second).near(word, edits) if each.startswith(second + first)]

    def _table(self, letter: str) -> _Table:
        table = self._tables.get(letter)
        if table is None:
            table = _Table.of(self._source(letter) if self._source is not None else ())
            self._tables[letter] = table
        return table


@dataclass(slots=True)
class _Table:
    """Words of one first letter. There may be 100,000 of them, so those of a source stand end to end in one text."""

    size: int = 0  # words of the source
    lengths: dict[int, tuple[str, array[int]]] = field(default_factory=dict)  # length -> words; of each its letters
    later: dict[int, _Words] = field(default_factory=dict)  # length -> words that were added
    added: int = 0

    @classmethod
    def of(cls, words: Iterable[str]) -> _Table:
        by_length: dict[int, set[str]] = {}
        for word in words:
            if _is_candidate(word):
                by_length.setdefault(len(word), set()).add(word)
        lengths = {length: ("".join(of), array("I", map(_bits, of))) for length, of in by_length.items()}
        return cls(sum(map(len, by_length.values())), lengths)

    def add(self, word: str) -> None:
        self.added += self.later.setdefault(len(word), _Words()).add(word)

    def remove(self, word: str) -> None:
        if (of_length := self.later.get(len(word))) is not None:
            self.added -= of_length.remove(word)

    def near(self, word: str, edits: int) -> list[str]:
        """The words of about this length whose letters differ by what the edits can change.

        An edit changes two letters at most, one that makes a word longer or shorter only one.
        """
        bits, near = _bits(word), []
        for length in range(len(word) - edits, len(word) + edits + 1):
            most = 2 * edits - abs(length - len(word))
            if (later := self.later.get(length)) is not None:
                near += [later.words[at] for at, own in enumerate(later.bits) if (bits ^ own).bit_count() <= most]
            if length in self.lengths:
                text, letters = self.lengths[length]
                places = [at for at, own in enumerate(letters) if (bits ^ own).bit_count() <= most]
                near += [text[at * length : (at + 1) * length] for at in places]
        return near


class _Words:
    """Words that come and go; the letters of all, as bits, stand in one row, which is read as a whole."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.bits = array("I")
        self._places: dict[str, int] = {}

    def add(self, word: str) -> bool:
        """Adds a word; whether it is new."""
        if word in self._places:
            return False
        self._places[word] = len(self.words)
        self.words.append(word)
        self.bits.append(_bits(word))
        return True

    def remove(self, word: str) -> bool:
        """Removes a word, whose place the last one takes; whether it was there."""
        if (place := self._places.pop(word, None)) is None:
            return False
        last, bits = self.words.pop(), self.bits.pop()
        if last != word:
            self.words[place], self.bits[place], self._places[last] = last, bits, place
        return True


@cache
def common_words() -> frozenset[str]:
    """Common words and names, stemmed."""
    lines = COMMON_WORDS.read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def _is_candidate(word: str) -> bool:
    """Whether a misspelt word may stand for this one."""
    return len(word) <= LONGEST + 2 and _is_word(word) and word not in STOP_WORDS


def _is_word(word: str) -> bool:
    return len(word) > 1 and word.isascii() and word.isalpha()


def _bits(word: str) -> int:
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 31)
    return bits


def _distance(a: str, b: str, most: int) -> int:
    """Edits between two words, a swap of neighbours counting one (optimal string alignment), as far as `most` + 1."""
    least = min(len(a), len(b))
    same = 0
    while same < least and a[same] == b[same]:
        same += 1
    a, b, least = a[same:], b[same:], least - same
    same = 0
    while same < least and a[-1 - same] == b[-1 - same]:
        same += 1
    a, b = a[: len(a) - same], b[: len(b) - same]
    # What differs begins and ends differently, so it is as long as the edits are far apart; mostly it is short.
    if not a or not b:
        return len(a or b)
    if most == 1:
        return 1 if len(a) == len(b) == 1 or (len(a) == 2 and a == b[::-1]) else 2
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
