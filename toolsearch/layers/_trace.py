"""A trace shows a person what happens in a conversation: live in a terminal or a notebook, or from a journal.

It is an observer: it knows only what events say.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, TypedDict, Unpack

from toolsearch.events.facts import Event, ModelReplied, ReplyDiscarded, RunBegan, TextDelta
from toolsearch.events.journal import read_event
from toolsearch.layers._narration import Narration, Observed, TraceLine
from toolsearch.support import checks
from toolsearch.support.context import scope
from toolsearch.support.html import table
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted, visible

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["trace"]

LINES = 2_000  # kept for `str` and for notebooks
CONVERSATIONS = 1_000  # that one trace follows at once
INDENT = 11  # columns for the word before each line
REDRAW_SECONDS = 0.1  # between two pieces of a reply in a notebook

_STYLES = {
    "turn": "bold", "user": "bold cyan", "thinks": "dim italic", "model": "bold", "usage": "dim", "call": "yellow",
    "search": "magenta", "loaded": "magenta", "unloaded": "magenta", "changed": "magenta", "result": "green",
    "waits": "bold yellow", "decided": "bold yellow", "note": "dim", "end": "bold", "value": "bold",
}  # fmt: skip
_WORDS = {"text": "model", "reasoning": "thinks"}


class _Options(TypedDict, total=False):
    """What `trace.of` and `trace.text` pass on."""

    characters: int
    redact: Callable[[str], str]


@dataclass(slots=True)
class _Incoming:
    """Pieces of a reply, all of one kind, as they come in."""

    kind: str = ""
    text: str = ""
    shown: str = ""  # the part of the text that was shown
    length_then: int = 0  # how long the text was when that was last decided


@dataclass(slots=True)
class _Talk:
    """A conversation that is observed."""

    narration: Narration
    incoming: _Incoming = field(default_factory=_Incoming)
    shown: dict[str, str] = field(default_factory=dict)  # by kind, what was shown of this reply up to its end
    lines: list[TraceLine] = field(default_factory=list)  # of this turn
    display: Any = None  # of this turn, in a notebook
    drawn: float = 0.0


class trace:  # noqa: N801  # called like a function, as the layers are
    """An observer that shows what happens as it happens: `Agent(…, observe=trace())`.

    It writes to `to`: by default to the notebook it runs in, otherwise to the standard output. It uses colours if that
    is a terminal and rich is installed, unless `colour` says otherwise. Arguments, results and reasoning are cut to
    that many `characters`; `redact` takes a text and returns what may be seen of it. `str` of it is the text so far,
    and a notebook shows it as a table; both have the last 2,000 lines. One object may observe many conversations at
    once.
    """

    def __init__(
        self,
        to: TextIO | None = None,
        *,
        characters: int = 400,
        colour: bool | None = None,
        redact: Callable[[str], str] = redacted,
    ) -> None:
        file = "a file to write to, as sys.stderr is (for a journal: trace.of(…))"
        checks.having("to", to, file, "write", none="for the notebook or the standard output")
        checks.whole("characters", characters)
        if colour is not None:
            checks.flag("colour", colour)
        checks.function("redact", redact, "from a text to what may be seen of it")
        self._notebook = to is None and _in_notebook()
        self._to, self._colour = to, colour
        self._characters, self._redact = characters, redact
        self._lines: deque[tuple[str, TraceLine]] = deque(maxlen=LINES)
        self._talks: OrderedDict[str, _Talk] = OrderedDict()
        self._console: Console | None = None
        self._written: TextIO | None = None  # the file that the console is for
        self._last = ""  # the conversation of the last line
        self._open: _Talk | None = None  # whose last line has not ended yet
        self._lock = threading.RLock()

    @classmethod
    def of(cls, journal: Iterable[Event | JsonObject], **options: Unpack[_Options]) -> trace:
        """The trace of a journal: facts, or what a store has of them. A notebook shows it; `str` of it is the text.

        Raises `StateError` for anything else.
        """
        shown = cls(io.StringIO(), colour=False, **options)
        for at, fact in enumerate(journal):
            shown(read_event(fact, at) if isinstance(fact, Mapping) else fact)
        return shown

    @classmethod
    def text(cls, journal: Iterable[Event | JsonObject], **options: Unpack[_Options]) -> str:
        """The trace of a journal as text; see `of`."""
        return str(cls.of(journal, **options))

    def __call__(self, event: Observed) -> None:
        with self._lock:
            talk = self._talk(scope().conversation)
            if isinstance(event, TextDelta):
                self._delta(talk, event)
                return
            self._close(talk)
            if isinstance(event, RunBegan):
                talk.lines, talk.display = [], None
            words = _words_shown(talk, event)
            lines = talk.narration.lines_of(event)
            for line in lines:
                self._add(talk, line, write=line.word not in words)
            if lines:
                self._draw(talk)

    def __str__(self) -> str:
        with self._lock:
            lines = tuple(self._lines)
        many = len({conversation for conversation, _ in lines}) > 1
        texts, last = [], None
        for conversation, line in lines:
            if many and conversation != last:
                texts.append(_heading(conversation))
                last = conversation
            texts.append((line.word.ljust(INDENT) + _indented(line.text)).rstrip())
        return "\n".join(texts)

    def __repr__(self) -> str:
        return f"trace({len(self._lines)} lines)"

    def _repr_html_(self) -> str:
        with self._lock:
            return _html(tuple(self._lines))

    def _talk(self, conversation: str) -> _Talk:
        talk = self._talks.get(conversation)
        if talk is None:
            talk = self._talks[conversation] = _Talk(Narration(conversation, self._characters, self._redact))
            while len(self._talks) > CONVERSATIONS:
                self._talks.popitem(last=False)
        self._talks.move_to_end(conversation)
        return talk

    # -- pieces of a reply ---------------------------------------------------------------------------------------

    def _delta(self, talk: _Talk, event: TextDelta) -> None:
        """Shows the whole words of a reply that comes in; the last word is held back, as it may be part of a secret."""
        if event.kind != talk.incoming.kind:
            self._close(talk)
            talk.incoming.kind = event.kind
        incoming = talk.incoming
        incoming.text += event.text
        if len(incoming.text) - incoming.length_then < len(incoming.text) / 200:
            return  # a long text is not redacted anew for every letter
        incoming.length_then = len(incoming.text)
        safe = talk.narration.uncut(incoming.text[: _whole_words(incoming.text)])
        if safe.startswith(incoming.shown):
            self._write_piece(talk, safe[len(incoming.shown) :])
            incoming.shown = safe
        self._draw(talk, often=True)

    def _close(self, talk: _Talk) -> None:
        """Shows the rest of the pieces; or all of them anew, if what was shown turns out to be part of a secret."""
        incoming = talk.incoming
        if incoming.text:
            safe = talk.narration.uncut(incoming.text)
            if not safe.startswith(incoming.shown):
                self._end_line()
                incoming.shown = ""
            self._write_piece(talk, safe[len(incoming.shown) :])
            self._end_line()
            talk.shown[incoming.kind] = talk.shown.get(incoming.kind, "") + incoming.text
            talk.incoming = _Incoming()

    def _write_piece(self, talk: _Talk, text: str) -> None:
        if self._notebook or not text:
            return
        word = _WORDS[talk.incoming.kind]
        if self._open is not talk:
            self._end_line()
            self._head(talk)
            self._write(word.ljust(INDENT), "dim", end="")
            self._open = talk
        self._write(_indented(text), _STYLES[word], end="")

    # -- showing -------------------------------------------------------------------------------------------------

    def _add(self, talk: _Talk, line: TraceLine, *, write: bool) -> None:
        self._lines.append((talk.narration.id, line))
        talk.lines.append(line)
        if self._notebook or not write:
            return
        self._end_line()
        if line.word != "turn":  # that line names the conversation itself
            self._head(talk)
        self._last = talk.narration.id
        self._write(line.word.ljust(INDENT), "dim", end="")
        self._write(_indented(line.text), "red" if line.wrong else _STYLES.get(line.word, ""))

    def _head(self, talk: _Talk) -> None:
        """Names the conversation of the next lines, if lines of another one came before."""
        if talk.narration.id != self._last:
            self._write(_heading(talk.narration.id), "dim")
        self._last = talk.narration.id

    def _end_line(self) -> None:
        if self._open is not None:
            self._open = None
            self._write("", "")

    def _write(self, text: str, style: str, end: str = "\n") -> None:
        to = self._to or sys.stdout
        if self._written is not to:
            self._written, self._console = to, None if self._colour is False else _rich(to, self._colour)
        encoding = getattr(to, "encoding", None) or "utf-8"
        text = text.encode(encoding, "replace").decode(encoding)
        if self._console is None:
            to.write(text + end)
            to.flush()
        else:
            self._console.print(
                text, style=style or None, end=end, markup=False, highlight=False, emoji=False, soft_wrap=True
            )

    def _draw(self, talk: _Talk, *, often: bool = False) -> None:
        """Shows the turn in the notebook, in the place where it began."""
        if not self._notebook or (often and time.monotonic() - talk.drawn < REDRAW_SECONDS):
            return
        from IPython.core.display import HTML
        from IPython.display import display

        incoming = talk.incoming
        last = [TraceLine(_WORDS[incoming.kind], incoming.shown + "…")] if incoming.shown else []
        lines = [(talk.narration.id, line) for line in (*talk.lines, *last)]
        shown = HTML(_html(lines))  # type: ignore[no-untyped-call]
        if talk.display is None:
            talk.display = display(shown, display_id=True)  # type: ignore[no-untyped-call]
        else:
            talk.display.update(shown)
        talk.drawn = time.monotonic()


def _words_shown(talk: _Talk, event: Observed) -> frozenset[str]:
    """The words of the lines of a reply that were already shown, piece by piece."""
    if not isinstance(event, ModelReplied | ReplyDiscarded):
        return frozenset()
    shown, talk.shown = talk.shown, {}
    texts = {"text": event.text, "reasoning": event.reasoning} if isinstance(event, ModelReplied) else {}
    return frozenset(_WORDS[kind] for kind, text in texts.items() if shown.get(kind) == text)


def _whole_words(text: str) -> int:
    """How much of a text can be shown before the rest of its last word has come in."""
    at = len(text)
    while at and text[at - 1].isascii() and not text[at - 1].isspace():
        at -= 1
    return at


def _heading(conversation: str) -> str:
    return f"== {visible(conversation)} =="


def _indented(text: str) -> str:
    return text.replace("\n", "\n" + " " * INDENT)


def _html(lines: Sequence[tuple[str, TraceLine]]) -> str:
    ids = list(dict.fromkeys(conversation for conversation, _ in lines))
    many = len(ids) > 1
    cells = [(conversation, line.word, line.text)[not many :] for conversation, line in lines]
    title = ids[0] if len(ids) == 1 and ids[0] else "Trace"
    heads = ("conversation", "", "")[not many :]
    return table(title, heads, cells, most=LINES, style=";vertical-align:top;white-space:pre-wrap")


def _in_notebook() -> bool:
    """Whether a notebook shows what is displayed; IPython in a terminal does not."""
    if "IPython" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def _rich(to: TextIO, colour: bool | None) -> Console | None:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=to, force_terminal=colour, highlight=False)
