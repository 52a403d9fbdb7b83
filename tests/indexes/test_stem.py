"""Stemming, against the examples that Porter published with the algorithm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch import ToolSearch
from toolsearch_indexes.stem import _SINGULARS, LONGEST, stem

# The examples of the paper, step by step, each with its stem after all steps.
PUBLISHED = """
    caresses caress  ponies poni  ties ti  caress caress  cats cat
    feed feed  agreed agre  plastered plaster  bled bled  motoring motor  sing sing
    conflated conflat  troubled troubl  sized size  hopping hop  tanned tan  falling fall  hissing hiss  fizzed fizz
    failing fail  filing file  happy happi  sky sky
    relational relat  conditional condit  rational ration  valenci valenc  hesitanci hesit  digitizer digit
    conformabli conform  radicalli radic  differentli differ  vileli vile  analogousli analog  vietnamization vietnam
    predication predic  operator oper  feudalism feudal  decisiveness decis  hopefulness hope  callousness callous
    formaliti formal  sensitiviti sensit  sensibiliti sensibl
    triplicate triplic  formative form  formalize formal  electriciti electr  electrical electr  hopeful hope
    goodness good
    revival reviv  allowance allow  inference infer  airliner airlin  gyroscopic gyroscop  adjustable adjust
    defensible defens  irritant irrit  replacement replac  adjustment adjust  dependent depend  adoption adopt
    homologou homolog  communism commun  activate activ  angulariti angular  homologous homolog  effective effect
    bowdlerize bowdler
    probate probat  rate rate  cease ceas  controll control  roll roll
    generalizations gener  oscillators oscil
""".split()


@pytest.mark.parametrize(("word", "expected"), list(zip(PUBLISHED[::2], PUBLISHED[1::2], strict=True)))
def test_the_published_examples_have_their_published_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    "forms",
    [
        "connect connected connecting connection connections",
        "create creates created creating",
        "mail mails mailed mailing",
        "reply replies replied replying",
        "schedule schedules scheduled scheduling scheduler",
    ],
)
def test_the_forms_of_a_word_share_a_stem(forms: str) -> None:
    assert len({stem(word) for word in forms.split()}) == 1


@pytest.mark.parametrize(("plural", "singular"), list(_SINGULARS.items()))
def test_an_irregular_plural_has_the_stem_of_its_singular(plural: str, singular: str) -> None:
    """K05."""
    assert stem(plural) == stem(singular)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("find_child", "children"),
        ("create_index", "indices creation"),
        ("trace_mouse", "mice"),
        ("list_statuses", "status"),
        ("get_alias", "aliases"),
        ("listCriteria", "one criterion"),
    ],
)
def test_a_tool_of_the_singular_is_found_by_the_plural_and_the_other_way(name: str, query: str) -> None:
    """K05: beside two unrelated tools."""
    search = ToolSearch([{"name": name}, {"name": "send_mail"}, {"name": "play_music"}], "keyword")
    assert [hit.tool.name for hit in search.find(query)] == [name]


@pytest.mark.parametrize("word", ["", "a", "is", "42", "s3", "get_x", "über", "天气", "e" * (LONGEST + 1)])
def test_what_is_no_english_word_comes_back_unchanged(word: str) -> None:
    assert stem(word) == word


def test_a_word_of_thousands_of_letters_is_left_alone() -> None:
    """Matching such runs of vowels used to take time cubic in their length."""
    assert stem("e" * 20_000) == "e" * 20_000


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=60))
def test_a_stem_is_never_empty_and_never_longer_than_its_word(word: str) -> None:
    assert 0 < len(stem(word)) <= len(word) + 1  # `hop(e)` and its like get their `e` back
    assert stem(word)[0] == word[0]
