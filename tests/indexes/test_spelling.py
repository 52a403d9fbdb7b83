"""A word that the catalog does not know is read as one it does, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_indexes.spelling import Vocabulary


def vocabulary(words: str) -> Vocabulary:
    made = Vocabulary()
    for word in words.split():
        made.add(word)
    return made


def repaired(word: str, known: str, spelled: str = "") -> list[str]:
    return vocabulary(known).repaired(word, lambda _: 1, spelled)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("weathr", "weather"),
        ("weatther", "weather"),
        ("weether", "weather"),
        ("waether", "weather"),
        ("ewather", "weather"),
        ("calender", "calendar"),
        ("repositroy", "repository"),
        ("databsaes", "database"),
        ("mial", "mail"),
    ],
)
def test_a_slip_of_the_pen_is_forgiven(typed: str, meant: str) -> None:
    assert repaired(typed, "weather calendar repository database mail issue") == [meant]


@pytest.mark.parametrize("typed", ["flight", "bark", "xyzzy", "cat", "mzil", "weatxyz", "s3", "42", "天气", ""])
def test_another_word_is_not_taken_for_a_slip(typed: str) -> None:
    """`flight` is no slip for `light`: the first letter is right, or in the second place."""
    assert repaired(typed, "light weather mail dark cut s4 43 a") == []


def test_words_run_together_are_taken_apart() -> None:
    assert repaired("whiteboard", "white board") == ["white", "board"]


def test_words_run_together_are_taken_apart_before_they_are_stemmed() -> None:
    """The stem of `payroll` is `payrol`, that of `pay` is `pai`."""
    assert repaired("payrol", "pai roll") == []
    assert repaired("payrol", "pai roll", "payroll") == ["pai", "roll"]


def test_among_equally_near_words_the_commonest_wins_then_the_first_in_the_alphabet() -> None:
    known = vocabulary("mails maila")
    assert known.repaired("mailx", lambda word: 5 if word == "mails" else 1) == ["mails"]
    assert known.repaired("mailx", lambda _: 1) == ["maila"]


def test_a_word_that_was_taken_out_is_no_longer_known() -> None:
    known = vocabulary("weather")
    assert "weather" in known
    known.discard("weather")
    known.discard("never")
    assert "weather" not in known
    assert known.repaired("weathr", lambda _: 1) == []


def test_a_word_of_thousands_of_letters_is_no_slip() -> None:
    assert repaired("ab" * 10_000, "ab abab " + "ab" * 9_999) == []


letters = st.text("abcde", min_size=4, max_size=9)


@given(letters, st.integers(0, 8), st.sampled_from("abcde"))
def test_one_wrong_letter_after_the_first_is_always_forgiven_from_five_letters_on(
    word: str, at: int, letter: str
) -> None:
    word += "z"
    at = 1 + at % (len(word) - 1)
    assert repaired(word[:at] + letter + word[at + 1 :], word) == [word]


@given(st.lists(letters, max_size=8), st.text(max_size=12))
def test_a_repair_is_a_known_word_or_two(known: list[str], typed: str) -> None:
    made = vocabulary(" ".join(known))
    found = made.repaired(typed, lambda _: 1)
    assert len(found) <= 2
    assert all(word in made for word in found)
