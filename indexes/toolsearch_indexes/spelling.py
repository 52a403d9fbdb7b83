"""A word the catalog does not know, read as one it does: a slip or two of the pen, or words run together."""

from __future__ import annotations

from collections.abc import Callable

from toolsearch_indexes.stem import LONGEST, stem

__all__ = ["Vocabulary"]


class Vocabulary:
    """The words a catalog knows, by first letter and length, so that near ones are found by looking at few."""

    def __init__(self) -> None:
        self._letters: dict[tuple[str, int], dict[str, int]] = {}  # word -> the set of its letters, as bits

    def add(self, word: str) -> None:
        if _is_word(word):
            self._letters.setdefault((word[0], len(word)), {})[word] = _bits(word)

    def discard(self, word: str) -> None:
        if _is_word(word):
            self._letters.get((word[0], len(word)), {}).pop(word, None)

    def __contains__(self, word: str) -> bool:
        return bool(word) and word in self._letters.get((word[0], len(word)), ())

    def repaired(self, word: str, holders: Callable[[str], int], spelled: str = "") -> list[str]:
        """The known words an unknown one stands for: [] if it looks like none, two if it is two run together.

        One edit (insertion, deletion, replacement, swap of neighbours) is forgiven from four letters on, two from
        nine; the first letter is taken to be right, or swapped with the second. Among equally near words the one
        with the most `holders` wins, then the first in the alphabet. `spelled` is the word before it was stemmed.
        """
        if not 4 <= len(word) <= LONGEST or not _is_word(word):
            return []
        if near := self._nearest(word, 1, holders):
            return [near]
        spelled = spelled or word
        for at in range(3, len(spelled) - 1):
            first, second = stem(spelled[:at]), stem(spelled[at:])
            if first in self and second in self:
                return [first, second]
        near = self._nearest(word, 2, holders) if len(word) >= 9 else None
        return [near] if near else []

    def _nearest(self, word: str, edits: int, holders: Callable[[str], int]) -> str | None:
        near = [c for c in self._close(word, edits) if _distance(word, c, edits) <= edits]
        if len(word) == 4:  # too many words of four letters are one letter apart
            near = [c for c in near if len(c) != 4 or sorted(c) == sorted(word)]
        return min(near, key=lambda c: (c[0] != word[0], -holders(c), c), default=None)

    def _close(self, word: str, edits: int) -> list[str]:
        """Known words of about this length, beginning alike, whose letters differ by what the edits can change."""
        bits, most = _bits(word), 2 * edits
        found: list[str] = []
        for beginning in {word[0], word[1] + word[0]}:
            for length in range(len(word) - edits, len(word) + edits + 1):
                known = self._letters.get((beginning[0], length), {}).items()
                found += [w for w, letters in known if (bits ^ letters).bit_count() <= most and w.startswith(beginning)]
        return found


def _is_word(word: str) -> bool:
    return len(word) > 1 and word.isascii() and word.isalpha()


def _bits(word: str) -> int:
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 31)
    return bits


def _distance(a: str, b: str, most: int) -> int:
    """Edits between two words, a swap of neighbours counting one (optimal string alignment), as far as `most` + 1."""
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
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
