"""A word that the catalog does not know is read as one it does, within bounds."""

import sys
import threading

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolsearch import ToolSearch
from toolsearch_indexes.spelling import Vocabulary, common_words
from toolsearch_indexes.stem import stem


def vocabulary(words: str) -> Vocabulary:
    return Vocabulary(lambda letter: [word for word in words.split() if word.startswith(letter)])


def repaired(word: str, known: str, spelled: str = "") -> list[str]:
    return vocabulary(known).repair(word, known.split().count, spelled)


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
    assert known.repair("mailx", lambda word: 5 if word == "mails" else 1) == ["mails"]
    assert known.repair("mailx", lambda _: 1) == ["maila"]


def test_a_word_that_no_tool_holds_any_more_is_no_guess() -> None:
    known = vocabulary("weather weath")
    assert known.repair("weathr", lambda word: word == "weath") == ["weath"]
    assert known.repair("weathr", lambda _: 0) == []
    assert known.repair("whiteboard", lambda word: word == "white") == []


def test_stop_words_are_no_guesses() -> None:
    assert repaired("thier", "their") == []
    assert repaired("theirboard", "their board") == []


def test_words_that_came_later_are_guesses_too_and_what_is_kept_of_them_is_bounded() -> None:
    asked: list[str] = []
    known = {"weather"}

    def source(letter: str) -> list[str]:
        asked.append(letter)
        return [word for word in known if word.startswith(letter)]

    vocabulary = Vocabulary(source)
    vocabulary.add(["wander"])  # nobody has asked for a word with w: the source will be asked
    assert vocabulary.repair("weathr", known.__contains__) == ["weather"]
    assert vocabulary.repair("windoww", known.__contains__) == []
    known.add("window")
    vocabulary.add(["window", "mail"])
    assert vocabulary.repair("windoww", known.__contains__) == ["window"]
    assert asked.count("w") == 1
    for start in range(0, 26**3, 500):
        new = {f"w{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}" for n in range(start, start + 500)}
        known |= new
        vocabulary.add(new)
        assert vocabulary.repair("windoww", known.__contains__) == ["window"]
    assert 3 < asked.count("w") < 10, "what came later is read from the source once it is more than that gave before"


def test_without_a_source_the_words_are_those_that_came_and_did_not_leave() -> None:
    vocabulary, known = Vocabulary(), {"weather", "window"}
    assert vocabulary.repair("weatherr", known.__contains__) == []
    vocabulary.add(["weather", "weather", "window", "x", "日本"])
    assert vocabulary.repair("weatherr", known.__contains__) == ["weather"]
    assert vocabulary.repair("ewather", known.__contains__) == ["weather"]
    vocabulary.remove(["weather", "mail", "x"])
    assert vocabulary.repair("weatherr", known.__contains__) == []
    assert vocabulary.repair("windwo", known.__contains__) == ["window"]


@given(st.text("ab", min_size=4, max_size=8), st.text("ab", min_size=3, max_size=9))
def test_what_one_edit_makes_of_a_word_is_repaired_wherever_the_edit_is(word: str, known: str) -> None:
    """The words that begin with the first two letters swapped are not looked through: there are only three."""
    vocabulary = Vocabulary()
    vocabulary.add([known])
    swaps = {known[:i] + known[i + 1] + known[i] + known[i + 2 :] for i in range(len(known) - 1)}
    others = {
        known[:i] + more + known[j:] for i in range(len(known) + 1) for j in (i, i + 1) for more in ("", "a", "b")
    }
    begins = known[0] == word[0] or known[:2] == word[1] + word[0]
    kept = len(word) > 4 or len(known) != 4 or sorted(known) == sorted(word)
    found = vocabulary.repair(word, lambda each: each == known)
    assert (found == [known]) == (word not in common_words() and word in swaps | others and begins and kept)


def test_words_may_come_while_other_threads_repair() -> None:
    """A dict that changes while it is walked through raises."""
    words = [f"we{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}r" for n in range(6_000)]
    vocabulary = Vocabulary(lambda letter: ["weather"] if letter == "w" else [])
    failures: list[BaseException] = []
    done = threading.Event()

    def repair() -> None:
        try:
            while not done.is_set():
                assert vocabulary.repair("weathr", lambda word: word == "weather") == ["weather"]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=repair) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for word in words:
            vocabulary.add([word])
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert failures == []


COMMON = [
    ("march", "match"), ("event", "even"), ("next", "net"), ("project", "protect"), ("trip", "tip"), ("song", "son"),
    ("sports", "short"), ("current", "currency"), ("apple", "app"), ("Paris", "pair"), ("month", "mouth"),
    ("weather", "leather"), ("house", "horse"), ("Rome", "role"), ("quite", "quiet"), ("London", "loading"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "known"), COMMON)
def test_a_common_word_or_name_is_not_taken_for_another_one(typed: str, known: str) -> None:
    """E8 of the reviews: `march` was read as `match`, `Paris` as `pair`."""
    assert repaired(stem(typed.lower()), f"{stem(known)} {known}", typed.lower()) == []
    search = ToolSearch([{"name": f"get_{known}"}, {"name": "send_mail"}], "keyword")
    assert list(search.find(f"in {typed}, please")) == []


def test_a_common_word_may_still_be_two_run_together() -> None:
    assert repaired("whiteboard", "white board") == ["white", "board"]
    assert repaired("timezon", "time zone", "timezone") == ["time", "zone"]


def test_a_word_of_thousands_of_letters_is_no_slip() -> None:
    assert repaired("ab" * 10_000, "ab abab " + "ab" * 9_999) == []


letters = st.text("abcde", min_size=4, max_size=9)


@given(letters, st.integers(0, 8), st.sampled_from("abcde"))
def test_one_wrong_letter_after_the_first_is_always_forgiven_from_five_letters_on(
    word: str, at: int, letter: str
) -> None:
    word += "z"
    at = 1 + at % (len(word) - 1)
    typed = word[:at] + letter + word[at + 1 :]
    assume(typed not in common_words())
    assert repaired(typed, word) == [word]


@given(st.lists(letters, max_size=8), st.text(max_size=12))
def test_a_repair_is_a_known_word_or_two(known: list[str], typed: str) -> None:
    found = repaired(typed, " ".join(known))
    assert len(found) <= 2
    assert set(found) <= set(known)
