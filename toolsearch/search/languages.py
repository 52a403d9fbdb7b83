"""In which language or script a text is written, as far as its letters and its commonest words tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice

from toolsearch.catalog.roster import Roster

__all__ = ["LATIN", "is_english", "language_hint", "language_of", "script_of"]

LATIN = "Latin"
SAMPLE = 200  # tools that are looked at to say in which language a catalog is described
FEWEST = 2  # common words of a language that show it
OUTWEIGHS = 3  # times as many as English ones, as English requests hold names and quotes
OTHER_SCRIPT = 1 / 3  # of the letters; an English request may quote a name or a word

_SCRIPTS = {
    LATIN: re.compile("[A-Za-z\u00c0-\u024f]"),
    "Greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "Cyrillic": re.compile("[\u0400-\u052f]"),
    "Hebrew": re.compile("[\u0590-\u05ff]"),
    "Arabic": re.compile("[\u0600-\u06ff\u0750-\u077f]"),
    "Devanagari": re.compile("[\u0900-\u097f]"),
    "Thai": re.compile("[\u0e00-\u0e7f]"),
    "Japanese": re.compile("[\u3040-\u30ff]"),
    "Korean": re.compile("[\u1100-\u11ff\uac00-\ud7af]"),
    "Chinese": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
}
_WORD = re.compile(r"[^\W\d_]+")
_QUOTE = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»""")
_SENTENCE = re.compile(r"[.!?:]\s+|\n+")
# Function words, and what requests begin with. Not those that English has too, such as "die", "is" or "me"; nor "an",
# which English and German have.
_COMMON = {
    "English": "the of and to with for from by this that these what which who how my your their it its are be can "
    "could would should please when where into about all any not if or at we you our",
    "German": "der das den dem ein eine einen einem einer und oder ich wir mir mich uns mein meine meinen bitte für "
    "mit nicht ist sind wie wann welche welcher welches kann kannst können zum zur auf aus bei von nach über alle im "
    "vom allen unser unsere neue neuen neuer neues zeig zeige gib suche suchen finde finden lege anlegen erstelle "
    "erstellen schick schicke schicken sende senden lösche löschen öffne öffnen ändere ändern anzeigen",
    "French": "le les des du une un et ou je tu nous vous moi mon mes ma est sont pour avec dans sur que qui quel "
    "quelle quels peux pouvez pourrais voudrais ce cette ces au aux s'il plaît veux y il elle pas à nouveau nouvelle "
    "tous toutes créer crée envoyer envoie afficher affiche chercher cherche trouver supprimer supprime",
    "Spanish": "el los las del una un unos y yo mi mis por para con que qué cuál cuánto cómo quiero puedes puede "
    "favor está están es esta este su al en de la lo se necesito me nuevo nueva todos todas crea crear envía enviar "
    "muestra mostrar busca buscar borra borrar",
    "Portuguese": "os das do dos uma um e eu meu meus minha por para com que qual quais quero pode você está são não "
    "esta este ao na nas nos em de da favor seu sua preciso novo nova todos todas cria criar crie enviar envie "
    "mostre mostrar apagar",
    "Italian": "il lo gli dei del della delle dello una un e io mi mio mia miei per con che cosa quale quali voglio "
    "puoi può questo questa sono nel nella dal dalla di da al alla favore vorrei nuovo nuova tutti tutte le non crea "
    "creare invia inviare mostra mostrare trova cerca elimina",
    "Dutch": "het een en ik wij mij mijn voor met niet zijn hoe wat welke kun kunt kan alsjeblieft dit deze van naar "
    "bij aan op te om graag wil nieuwe alle maak maken stuur verstuur toon zoek zoeken verwijder",
    "Polish": "jest się nie na do że dla jak czy proszę mi mój moje moja który która które w z oraz po od",
    "Swedish": "och att det en ett jag mig min mitt mina för med på som är inte hur vilka kan till av den",
    "Turkish": "bir ve bu için ile bana benim lütfen mı mi mu mü ne nasıl hangi olan göster",
}
_OF_NAMES = frozenset("de la las los del da do dos das di e y du des le van von der den zu zur of the and".split())
_LANGUAGES = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_NOT_ENGLISH = frozenset[str]().union(*(words for language, words in _LANGUAGES.items() if language != "English"))
_ALSO_ENGLISH = _LANGUAGES["English"] | {"do", "me", "per"}
_FOREIGN = [words - _ALSO_ENGLISH for language, words in _LANGUAGES.items() if language != "English"]


def script_of(text: str) -> str:
    """The script of most letters; where a text has a kana, its Chinese characters are Japanese too."""
    if text.isascii():
        return LATIN
    counts = {script: len(letter.findall(text)) for script, letter in _SCRIPTS.items()}
    if counts["Japanese"]:
        counts["Japanese"] += counts.pop("Chinese")
    return max(counts, key=lambda script: counts[script])


@lru_cache(maxsize=1_024)  # the same descriptions are looked at for every query in another language
def language_of(text: str) -> str | None:
    """The language of a text in Latin script, or the script of another text; None where too little tells it.

    A capitalised word within a sentence, and words such as "de la" between two of them, may belong to a name: they
    say nothing.
    """
    script = script_of(text)
    if script != LATIN:
        return script
    said = {word.lower() for part in _SENTENCE.split(text) for word in _plain_words(_WORD.findall(part))}
    counts = {language: len(words & said) for language, words in _LANGUAGES.items()}
    language = max(counts, key=lambda each: counts[each])
    if counts[language] < FEWEST or (language != "English" and counts[language] < OUTWEIGHS * counts["English"]):
        return "English" if counts["English"] else None
    return language


@lru_cache(maxsize=1_024)
def is_english(text: str) -> bool:
    """Whether a text is more likely in English than not; where nothing speaks against it, as in names alone, it is.

    `language_of` decides what people are told, so it says nothing where it is not sure. This always decides, and one
    word is enough.
    """
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    if letters - len(_SCRIPTS[LATIN].findall(text)) > OTHER_SCRIPT * letters:
        return False
    said = {word.lower() for word in words}
    english = len(_LANGUAGES["English"] & said)
    foreign = max(len(common & said) for common in _FOREIGN)
    return english > foreign or (english == foreign and all(word.isascii() for word in words))


def language_hint(query: str, tools: Roster, among: AbstractSet[str] | None = None) -> str | None:
    """What to say of a query in another language than most of the tools are described in; None if it is not.

    `among` are the ids of the tools that the caller may see. A sample of them is looked at.
    """
    if query.isascii() and len(_NOT_ENGLISH.intersection(_WORD.findall(query.lower()))) < FEWEST:  # as most are
        return None
    if (asked := language_of(_unquoted(query))) is None or asked == "English":
        return None
    every = (len(tools) if among is None else len(among)) // SAMPLE + 1
    visible = iter(tools) if among is None else (tool for tool in tools if tool.id in among)
    texts = [tool.description for tool in islice(visible, 0, None, every)]
    # A few words in Latin script that tell no language are taken for English, as most descriptions of tools are.
    described = Counter(language_of(text) or "English" for text in texts if text)
    if not described:
        return None
    (language, _), *_ = described.most_common(1)
    if language == asked:
        return None
    return f"The query is in {_named(asked)}, but most tools are described in {_named(language)}: ask in that."


def _unquoted(text: str) -> str:
    """A request without what it quotes, such as a text to be translated, unless all of it is a quote."""
    rest = _QUOTE.sub(" ", text)
    return rest if _WORD.search(rest) else text


def _plain_words(words: list[str]) -> list[str]:
    """The words of a sentence without those that may belong to a name."""
    capital = [word[0].isupper() for word in words]
    return [
        word
        for at, word in enumerate(words)
        if not (capital[at] and at)
        and not (word in _OF_NAMES and any(capital[max(0, at - 2) : at]) and any(capital[at + 1 : at + 3]))
    ]


def _named(language: str | None) -> str:
    script = language in _SCRIPTS and language not in ("Japanese", "Korean", "Chinese", "Greek", "Hebrew", "Arabic")
    return f"{language} script" if script else str(language)
