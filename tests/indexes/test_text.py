"""Text becomes words, the same way for tools and for queries, in every script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_indexes.text import STOP_WORDS, content_words, name_words, sentences, spellings, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getWeather", ["get", "weather", "getweath"]),
        ("create_issue", ["creat", "issu", "createissu"]),
        ("files.read", ["file", "read"]),
        ("send-mail", ["send", "mail", "sendmail"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("getS3Object", ["get", "s", "3", "object", "gets3object"]),
        ("v2", ["v", "2", "v2"]),
        ("base_v1_rowTableEntry_find", ["base", "v", "1", "row", "tabl", "entri", "find", "basev1rowtableentryfind"]),
        ("ÜberMail2Go", ["uber", "mail", "2", "go", "ubermail2go"]),
        ("письмоОтправить", ["письмо", "отправить", "письмоотправить"]),
    ],
)
def test_identifiers_are_split_before_they_are_lower_cased_and_kept_whole_too(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ｗｅａｔｈｅｒ", "weather"),
        ("café", "cafe"),
        ("cafe\u0301", "CAFÉ"),
        ("STRASSE", "straße"),
        ("İSTANBUL", "istanbul"),
        ("IŞIK", "ışık"),
        ("Łódź", "lodz"),
        ("ΟΔΟΣ", "οδος"),
        ("пого\u0301ды", "ПОГОДЫ"),
        ("ещё", "еще"),
        ("كِتَاب", "كتاب"),
        ("أحمد", "احمد"),
        ("مـــوسيقى", "موسيقى"),
        ("שָׁלוֹם", "שלום"),
        ("don’t", "don't"),
        ("ﬁle", "file"),
        ("①", "1"),
    ],
)
def test_spellings_that_readers_take_for_the_same_are_the_same(one: str, other: str) -> None:
    assert words(one) == words(other) != []


@pytest.mark.parametrize(("one", "other"), [("मौसम", "मसम"), ("คน", "คืน"), ("가", "나"), ("が", "か")])
def test_marks_that_are_letters_of_their_script_are_kept(one: str, other: str) -> None:
    assert set(words(one)) != set(words(other))


def test_an_unspaced_script_becomes_pairs_and_a_document_single_characters_too() -> None:
    assert words("天气预报", query=True) == ["天气", "气预", "预报"]
    assert words("天气预报") == ["天气", "气预", "预报", "天", "气", "预", "报"]
    assert words("天", query=True) == ["天"]


@pytest.mark.parametrize("text", ["查询weather预报", "查询 weather 预报"])
def test_scripts_that_meet_without_a_space_are_told_apart(text: str) -> None:
    assert {"查询", "weather", "预报"} <= set(words(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what's new", ["new"]),
        ("don't send it", ["send"]),
        ("John's mail", ["john", "mail"]),
        ("re-index 're'", ["re", "index", "reindex", "re"]),
        ("let's go", ["go"]),
    ],
)
def test_the_end_of_a_contraction_is_no_word(text: str, expected: list[str]) -> None:
    assert content_words(text) == expected


def test_an_emoji_is_no_word_and_neither_is_what_says_how_it_is_drawn() -> None:
    assert words("☀️ ❤️ 📧") == []


def test_stop_words_are_dropped_from_a_query_as_long_as_another_word_is_left() -> None:
    assert content_words("please show me the weather") == ["weather"]
    assert content_words("who am I") == ["who", "am", "i"]
    assert content_words("the of and") == ["the", "of", "and"]
    assert content_words("use a tool") == ["us", "a", "tool"]


@pytest.mark.parametrize("text", ["R", "C++", "3", "vitamin D"])
def test_single_letters_and_digits_are_words(text: str) -> None:
    assert len(content_words(text)[-1]) == 1


def test_name_words_are_the_parts_of_a_name_without_joined_forms_and_stop_words() -> None:
    assert name_words("get_theWeather") == {"get", "weather"} == name_words("get weather")
    assert name_words("do_it") == {"do", "it"}
    assert name_words("🙂") == frozenset()


def test_spellings_are_lower_case_and_not_stemmed() -> None:
    assert spellings("Pay rolls, doMagic") == ["pay", "rolls", "do", "magic"]


@given(st.text(max_size=300))
def test_any_text_becomes_words_without_spaces_capitals_or_empty_ones(text: str) -> None:
    for word in (*words(text), *words(text, query=True), *content_words(text), *spellings(text)):
        assert word
        assert word == word.casefold()
        assert not any(char.isspace() for char in word)


@given(st.text(max_size=100))
def test_a_query_has_no_word_that_the_same_text_as_a_document_would_not_hold(text: str) -> None:
    assert set(words(text, query=True)) <= set(words(text))
    left = content_words(text)
    assert not set(left) & STOP_WORDS or set(left) <= STOP_WORDS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two? Three!", ["One.", "Two?", "Three!"]),
        ("Version 1.5 of it", ["Version 1.5 of it"]),
        ("- a point\n- another", ["- a point", "- another"]),
        ("查询天气。按城市！", ["查询天气。", "按城市！"]),
        ("  ", []),
    ],
)
def test_a_text_is_cut_into_its_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
