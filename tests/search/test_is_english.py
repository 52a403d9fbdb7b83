"""Whether a request is in English, which decides which encoder of `best` reads it."""

import pytest

from toolsearch.search.languages import is_english
from toolsearch_evals.data.cases import load
from toolsearch_indexes.encoders.multilingual import LANGUAGES

ENGLISH, *OTHERS = LANGUAGES


@pytest.mark.parametrize(
    "text",
    [
        *ENGLISH,
        "delete_pipeline",
        "book a table at Café Noir for me",
        "What are the 八字 of a boy born on August 8, 2008?",
        "list open issues",
        "show me the disk use per region",
        "Find me a movie by Guillermo del Toro",
        "🎲 12 345",
        "",
    ],
)
def test_english_is_told(text: str) -> None:
    assert is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        *(text for language in OTHERS for text in language),
        "Docusign-Vorlage löschen",
        "GitHubのacme/web #58、レビュー前にdiffだけ見せて",
        "ξεκλείδωσε την πόρτα",
    ],
)
def test_other_languages_are_told(text: str) -> None:
    assert not is_english(text)


def test_nearly_every_request_of_the_data_set_is_told_right() -> None:
    (dataset,) = load("commons")
    english = [is_english(case.query) for case in dataset.cases if case.language == "en"]
    others = [is_english(case.query) for case in dataset.cases if case.language != "en"]
    assert sum(english) / len(english) > 0.99
    assert sum(others) / len(others) < 0.03
