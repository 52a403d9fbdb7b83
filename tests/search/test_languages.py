"""In which language a text is, and what a query in another language than the catalog's is told."""

import json
from importlib import resources

import pytest

from toolsearch import Catalog, ToolSearch
from toolsearch.search import languages
from toolsearch.search.languages import language_hint, language_of, script_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Welche Rechnungen sind bei unseren Kunden noch nicht bezahlt?", "German"),
        ("Wie kann ich die Rechnung an den Kunden schicken?", "German"),
        ("lege bitte einen neuen Kommentar an", "German"), ("zeige alle offenen Tickets", "German"),
        ("comment créer un ticket ?", "French"), ("crea un nuevo repositorio", "Spanish"),
        ("annule ma réservation pour le vol de demain", "French"),
        ("quiero ver los pedidos que faltan por enviar", "Spanish"),
        ("você pode criar uma tarefa para mim?", "Portuguese"),
        ("puoi cancellare il mio appuntamento con il dottore", "Italian"),
        ("kun je mijn afspraak met de tandarts verzetten", "Dutch"),
        ("ξεκλείδωσε την πόρτα", "Greek"), ("отмени встречу на завтра", "Cyrillic"), ("把明天的课删掉", "Chinese"),
        ("明日の会議を削除して", "Japanese"), ("내일 회의를 취소해 줘", "Korean"), ("ยกเลิกการประชุม", "Thai"),
        ("cancel the meeting of tomorrow", "English"), ("", None), ("kubectl pods", None),
    ],
)  # fmt: skip
def test_the_language_of_a_request_is_told_by_its_letters_and_commonest_words(text: str, language: str | None) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "query",
    [
        "flights to Los Angeles for Maria de la Cruz and El Greco", "book a table at Le Pain Quotidien",
        "play Que Sera by Los Lobos", "weather in Rio de Janeiro", "Das Boot reviews", "list der Spiegel articles",
        "send an e-mail to Jürgen von der Leyen", "UN resolutions on La Niña",
        "play Für Elise on the piano", "cancel 令和",
    ],
)  # fmt: skip
def test_names_make_no_request_foreign(query: str) -> None:
    assert language_of(query) in (None, "English")


def test_no_english_request_of_the_data_set_is_taken_for_another_language() -> None:
    lines = (resources.files("toolsearch_datasets") / "commons" / "cases.jsonl").read_text("utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["split"] != "test"]
    english = [case["query"] for case in cases if case.get("language", "en") == "en"]
    assert [query for query in english if language_of(query) not in (None, "English")] == []
    other = [
        case["query"] for case in cases if case.get("language", "en") in ("de", "fr", "es", "pt", "ru", "zh", "ja")
    ]
    told = [query for query in other if language_of(query) not in (None, "English")]
    assert len(told) >= 0.75 * len(other)


def test_a_script_is_that_of_most_letters() -> None:
    assert script_of("GitHub の issue を全部見せて下さいませんか") == "Japanese"
    assert script_of("pull request 令和") == "Latin"


TOOLS = [
    {"name": "kurs_get", "description": "Курс валют на сегодня"},
    {"name": "door_unlock", "description": "Unlock a door"},
    {"name": "note_add", "description": "Add a note"},
]


@pytest.mark.parametrize("index", ["keyword", "hybrid", "vector"])
@pytest.mark.parametrize("query", ["ξεκλείδωσε την πόρτα", "افتح الباب من فضلك", "разблокируй дверь", "ปลดล็อกประตู"])
def test_a_request_in_a_script_that_nobody_reads_loads_nothing_and_is_told_what_to_ask_in(
    index: str, query: str
) -> None:
    """K02: hybrid loaded the Russian tool for a Greek request."""
    hits = ToolSearch(TOOLS, index).find(query)
    assert list(hits) == []
    assert hits.hint is not None
    assert "most tools are described in English: ask in that" in hits.hint


def test_a_request_in_another_language_with_latin_letters_is_told_so() -> None:
    """K02."""
    hits = ToolSearch(TOOLS, "keyword").find("peux-tu ouvrir la porte de mon garage")
    assert hits.hint == "The query is in French, but most tools are described in English: ask in that."
    assert ToolSearch(TOOLS, "keyword").find("unlock the door of my garage please").hint is None
    german = [{"name": "tuer_auf", "description": "Öffnet die Tür zum Haus mit dem Schlüssel"}]
    assert ToolSearch(german, "keyword").find("mach bitte mir die Tür auf").hint is None


def test_no_tool_is_looked_at_for_a_request_without_foreign_words_and_a_sample_for_another() -> None:
    catalog = Catalog([{"name": f"t{i}", "description": f"Open the door number {i}"} for i in range(1_000)])
    languages.language_of.cache_clear()
    assert language_hint("open the door of my garage per remote", catalog.roster) is None
    assert languages.language_of.cache_info().misses == 0
    assert language_hint("peux-tu ouvrir la porte de mon garage", catalog.roster) is not None
    assert languages.language_of.cache_info().misses <= 1 + languages.SAMPLE
    few = frozenset(f"t{i}" for i in range(0, 1_000, 100))
    assert language_hint("peux-tu ouvrir la porte de ma maison", catalog.roster, few) is not None


def test_hidden_tools_do_not_show_in_what_is_told() -> None:
    """D: the language of tools that a caller may not see does not leak."""
    hidden = [{**tool, "roles": ["admin"]} for tool in TOOLS[1:]]
    assert ToolSearch([TOOLS[0], *hidden], "keyword").find("отмени встречу").hint is None


@pytest.mark.parametrize(
    "query",
    [
        "translate 'ich habe nicht die Zeit für das' to English",
        "git commit -m 'das ist ein Test und nicht mehr'",
        'what does "je ne sais pas ce que" mean',
        "post «je ne sais pas ce que» to the channel",
    ],
)
def test_what_a_request_quotes_does_not_tell_its_language(query: str) -> None:
    assert ToolSearch(TOOLS, "keyword").find(query).hint is None


def test_a_request_that_is_all_a_quote_or_has_apostrophes_tells_its_language() -> None:
    for query in ('"peux-tu ouvrir la porte de mon garage"', "peux-tu m'ouvrir la porte de l'entrée pour moi"):
        assert "The query is in French" in str(ToolSearch(TOOLS, "keyword").find(query).hint)
