"""The one lexical analysis chain: documents and queries become words here, and nowhere else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise

from toolsearch_indexes.stem import stem

__all__ = [
    "ACTIONS",
    "FOREIGN_FUNCTION_WORDS",
    "LABELS",
    "STOP_WORDS",
    "content_words",
    "is_unspaced",
    "joined_words",
    "name_words",
    "sentences",
    "spellings",
    "words",
]

LABELS = frozenset(stem(word) for word in "mcp tool tools function functions api server".split())  # of namespaces
# Function words, and words that people wrap a request in. They are indexed (a tool may be called `do_it`), but dropped
# from a query as long as another word is left.
STOP_WORDS = frozenset(
    stem(word)
    for word in """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can cannot could did didn do does doesn doing don down during each few for from further had has have having he her
    here hers him his how i if in into is isn it its itself just me more most my myself no nor not now of off on once
    only or other our ours out over own same she should so some such than that the their theirs them then there these
    they this those through to too under until up us very was we were what when where which while who whom why will
    with won would you your yours
    please help want need needs let like tell give show using use used via
    mcp tool tools function functions
    """.split()
)

# Function words of other languages in which tools are described and requested. They are searched for like any word, but
# it says nothing about a request that a catalog does not know them.
FOREIGN_FUNCTION_WORDS = frozenset(
    stem(word)
    for word in """
    aber als am auf aus bei bitte da das dass dem den der des die dir du ein eine einem einen einer eines er es
    für hat
    habe haben ich ihm ihr im in ist kann kannst kein können mein meine mich mir mit möchte nach nicht noch oder
    sein sich
    sie sind so über um und uns unter vom von vor war was welche welcher welches wenn wer wie will wir wird wo
    zu zum zur
    au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur lui ma me mes moi mon ne
    nous par pas
    peux peut pour pouvez qu que quel quelle qui sa ses son sont sur ta te toi ton tous tout tu un une veux
    voudrais vous
    al como con cual cuál de del el ella en eres es esta este la las lo los me mi mis muy no nos o para pero por favor
    puede puedes que qué quien quiero se ser si sin sobre su sus te tu un una unas unos y yo
    ao aos as até com como da das de do dos e ela ele em é esta este eu isso lhe mais me meu minha na nas no nos
    não o os
    ou para pela pelo pode por qual quando que quem quero se seu sua são também te tem um uma você
    a ai al alla che chi ci come con cui da dal degli dei del della delle di e ed gli ho i il in io la le lo ma mi mio
    nel nella non o per però più può puoi quale quali questa questo se si sono su sul tra tu un una uno vorrei
    aan alsjeblieft dat de deze die dit een en er graag heb het hij hoe ik in is je jij kan kun maar me met mij
    mijn naar
    niet of om onze ook op te tot uit van voor waar was wat we welke wie wij wil zijn zonder
    att av den det du en ett för han har hur i inte jag kan med mig min och om på som till vad var vi är
    aby ale bez być co czy dla do i ja jak jest kto ktoś mi mnie możesz na nie o od oraz po proszę się są ta ten
    to tym w z za że
    bana bir bu da de için ile lütfen mi mu mü ne nasıl olan ve veya ya
    а без бы был в вас во все вы где для до его если есть ещё же за и из или как ко который кто мне можешь можно
    мой мы
    на не него но о об он она они от по пожалуйста при с со так также то ты у что чтобы эта это этот я
    """.split()
)
# What nearly every tool does to something. Alone such a word does not say to what.
ACTIONS = frozenset(
    stem(word)
    for word in """
    add apply approve archive assign book build buy call cancel change check clear clone close compare configure
    connect
    convert copy count create deactivate delete deploy disable download edit enable execute export fetch filter find
    format generate get give handle import insert install invite launch list load lock lookup make manage mark merge
    modify move notify open order pause pay perform pin play post print process publish pull push put query read
    receive
    register reject release remove rename replace reply request reserve reset restart restore resume retrieve
    return run
    save schedule search select send set share show sign sort start stop store submit subscribe sync take test track
    transfer trigger turn update upload validate verify view watch write
    """.split()
)

_ASCII_RUN = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*")
# `URLs` is one word, `PDFtoDOCX` three.
_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]{2,}(?=(?:to|of|and|for|or)[A-Z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PARTICLES = frozenset("up in out on off down over".split())  # people write `set up` and `setup`
_CONTRACTION = re.compile(r"(?<=\w)['\u2019](?:s|t|d|m|ll|re|ve)\b", re.IGNORECASE)
# Scripts written without spaces between words; Hangul is here because its particles are glued to the word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Accents, Hebrew points, Arabic vowel signs, and the selectors that say how an emoji is drawn.
_OPTIONAL_MARK = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\ufe00-\ufe0f]"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


def words(text: str, *, query: bool = False) -> list[str]:
    """The words of a text in order, stemmed and lower-cased.

    `getS3Object` gives get, s, 3, object, and the whole `gets3object`; an unspaced script gives character pairs, in a
    document the single characters too, so that a one-character query finds them.
    """
    result: list[str] = []
    for run, unspaced in _runs(text):
        result += _pairs(run, query) if unspaced else _identifier(run)
    return result


def joined_words(text: str) -> list[str]:
    """Words that may be written as one: `oauth` in a document's `createOAuthToken`, `setup` where it says `set up`."""
    result: list[str] = []
    before = ""
    for run, unspaced in _runs(text):
        parts = () if unspaced else _parts(run)
        if 2 < len(parts) < 12:
            result += [stem(first + second) for first, second in pairwise(parts)]
        if len(parts) == 1 and before and parts[0] in _PARTICLES:
            result.append(stem(before + parts[0]))
        before = parts[0] if len(parts) == 1 else ""
    return result


def content_words(text: str) -> list[str]:
    """The words of a query: stop words are dropped as long as another word is left."""
    result = words(text, query=True)
    return [w for w in result if w not in STOP_WORDS] or result


def name_words(name: str) -> frozenset[str]:
    """The words that make up a name, or a query that may be one: no joined forms, no stop words if others are left."""
    result = [w for run, unspaced in _runs(name) for w in (_pairs(run, True) if unspaced else map(stem, _parts(run)))]
    return frozenset(w for w in result if w not in STOP_WORDS) or frozenset(result)


def spellings(text: str) -> list[str]:
    """The words of a query in order as they are spelled: lower case, identifiers in parts, not stemmed."""
    return [part for run, unspaced in _runs(text) if not unspaced for part in _parts(run)]


def sentences(text: str) -> list[str]:
    """A text cut after full stops, question and exclamation marks, and at line ends."""
    return [part for part in map(str.strip, _SENTENCE_END.split(text)) if part]


def is_unspaced(word: str) -> bool:
    """Whether a word is a piece of a script written without spaces, where it may lie across two words."""
    return not word.isascii() and _UNSPACED_RUN.fullmatch(word) is not None


def _runs(text: str) -> Iterator[tuple[str, bool]]:
    """Runs of letters, digits and underscores of one kind of script, and whether it is written without spaces."""
    if "'" in text or "\u2019" in text:
        text = _CONTRACTION.sub("", text)
    if text.isascii():
        for run in _ASCII_RUN.findall(text):
            yield run, False
    else:
        for run in _run().findall(_fold(text)):
            yield from _scripts(run)


@cache
def _run() -> re.Pattern[str]:
    """Letters, digits, underscores, and the marks that are vowels in many scripts, which `\\w` leaves out."""
    marks = "".join(c for c in map(chr, range(0x0300, 0x11000)) if unicodedata.category(c)[0] == "M")
    return re.compile(rf"[\w{marks}]+(?:-[\w{marks}]+)*")


@lru_cache(maxsize=65536)
def _parts(run: str) -> tuple[str, ...]:
    parts = _PART.findall(run) if run.isascii() else _camel(run.replace("_", " ").replace("-", " ")).split()
    return tuple(part.casefold() for part in parts)


@lru_cache(maxsize=65536)
def _identifier(run: str) -> tuple[str, ...]:
    parts = _parts(run)
    if len(parts) < 2:
        return tuple(map(stem, parts))
    return (*map(stem, parts), stem("".join(parts)))


def _camel(text: str) -> str:
    """Spaces put where a lower-case letter meets an upper-case one, or a letter a digit, in any alphabet."""
    out: list[str] = []
    for before, char in zip(" " + text, text, strict=False):
        if (
            (before.islower() and char.isupper())
            or (before.isalpha() and char.isdigit())
            or (before.isdigit() and char.isalpha())
        ):
            out.append(" ")
        out.append(char)
    return "".join(out)


# Letters that Unicode does not take apart, as people write them on another keyboard.
_PLAIN = str.maketrans({"ı": "i", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "Ae",
                        "œ": "oe", "Œ": "Oe", "\u0640": ""})  # fmt: skip


def _fold(text: str) -> str:
    """NFKC; Latin, Greek, Cyrillic, Hebrew and Arabic lose optional marks. Elsewhere marks are vowels and stay."""
    folded = []
    for char in unicodedata.normalize("NFKC", text).translate(_PLAIN):
        base = unicodedata.normalize("NFD", char)[0]
        folded.append(base if base < "\u0700" else char)
    return _OPTIONAL_MARK.sub("", "".join(folded))


def _scripts(run: str) -> Iterator[tuple[str, bool]]:
    at = 0
    for match in _UNSPACED_RUN.finditer(run):
        if match.start() > at:
            yield run[at : match.start()], False
        yield match.group(), True
        at = match.end()
    if at < len(run):
        yield run[at:], False


def _pairs(run: str, query: bool) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return pairs if query and pairs else [*pairs, *run]
