"""Text that people and log files see: secrets are removed, control characters are shown, and long texts are cut.

A secret is recognised by its key (`password=…`, `"api_key": "…"`, `Authorization: …`) or by its shape. No pattern finds
every secret: what must never be seen must not be logged. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["excerpt", "redacted", "redacted_value", "visible"]

REDACTED = "[redacted]"

# A key is secret by its last word, or its last two; `password_hash` counts as `password`.
_SECRET = frozenset(
    "password passwd passphrase passcode passwort pwd pass secret secrets token authorization auth credential "
    "credentials cookie cookies apikey jwt otp sig".split()
)
_ENDINGS = (
    "password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "secretkey",
)  # fmt: skip  # of keys written as one word: `clientsecret`
_SECRET_PAIRS = frozenset(
    (first, last)
    for last, firsts in {
        "key": "api access account private secret signing encryption master subscription ssh auth functions",
        "tokens": "access refresh auth bearer session api",
        "code": "verification recovery security authorization",
        "signature": "amz goog access",
    }.items()
    for first in firsts.split()
)
_WHOLE_LINE = frozenset(["authorization", "cookie", "cookies"])  # headers: their values have spaces
_SUFFIXES = frozenset("hash value plain text header base encoded encrypted".split())
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_PAIR = re.compile(
    r"(?<![\w.$-])(?P<key>[A-Za-z-][\w.$-]{0,127}(?: (?:key|token|secret|password|code))?)"
    r"(?P<quote>\\{0,15}[\"'`])?\]?(?:\s{0,4}(?:=>|:=|[:=])\s{0,4}|(?<=[\w])[ \t]{1,4}(?=[^\s-]))",
    re.ASCII,
)
_OPENING = re.compile(r"(\\{0,15})([\"'`])")
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_BARE = re.compile(r"(?:[^\s,;&\"'`\\]|\\(?![\"'`]))+")
_LINE = re.compile(r"(?:[^\r\n\"'`\\]|\\(?![\"'`nr]))+")
_NOTHING = frozenset("null none true false undefined".split())
_TAG = re.compile(r"<(?P<key>[A-Za-z][\w.:-]{0,127})>(?P<value>[^<]+)(?=<)", re.ASCII)

_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:.*?-----END [A-Z ]{0,40}PRIVATE KEY-----|.*)"
    r"|(?<![\w-])(?:"
    r"sk-[\w-]{16,}|[srp]k_(?:live|test)_\w{10,}"  # OpenAI, Anthropic; Stripe
    r"|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"  # GitHub, GitLab
    r"|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}"  # Slack
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)|AIza[\w-]{30,}|ya29\.[\w-]{20,}"  # Amazon, Google
    r"|hf_\w{20,}|npm_\w{30,}|pypi-[\w-]{30,}|SG\.[\w-]{16,}\.[\w-]{16,}"  # registries, SendGrid
    r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"  # a JSON web token
    r")"
    r"|(?<!\w)(?P<scheme>[Bb]earer|BEARER|[Bb]asic|BASIC)[ \t]{1,4}(?=\S{0,300}?(?:[0-9=]|[a-z][A-Z]))[\w.~+/=-]{8,}"
    r"|https://hooks\.[\w.-]{1,100}/[\w/-]{8,200}"  # whoever has the address of a hook may post
    r"|(?<=//)(?P<user>[^\s/@:]{0,128}):[^\s/@]{1,512}(?=@)",
    re.DOTALL | re.ASCII,
)
# Control characters except \t and \n, and those that reverse the text: a terminal would obey them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def redacted(text: str) -> str:
    """The text with `[redacted]` in the place of what looks like a secret. Redacting it again changes nothing."""
    pieces: list[str] = []
    done = at = 0
    while (pair := _PAIR.search(text, at)) is not None:
        words = _words(pair["key"])
        if not _separates(pair):  # the next word may be a key itself
            at = pair.end("key")
            continue
        at = pair.end()
        if not _is_secret(words):
            continue
        end, new = _value(text, at, words[-1] in _WHOLE_LINE, quoted=bool(pair["quote"]))
        pieces += (text[done:at], new)
        done = at = end
    pieces.append(text[done:])
    return _SHAPES.sub(_redact_shape, _TAG.sub(_redact_tag, "".join(pieces)))


def redacted_value(value: object, redact: Callable[[str], str]) -> object:
    """Every text in a JSON value redacted, and every number that is redacted as a text."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if redact(str(value)) == str(value) else redact(str(value))
    if isinstance(value, Mapping):
        return {str(key): _redacted_member(str(key), item, redact) for key, item in value.items()}
    return [redacted_value(item, redact) for item in value] if isinstance(value, list | tuple) else value


def _redacted_member(key: str, value: object, redact: Callable[[str], str]) -> object:
    """A member of an object: a text under a key such as `password` is a secret whatever it looks like."""
    if isinstance(value, str) and value and redact(f"{key}={value}".replace("\n", " ")) == redact(f"{key}=x"):
        return redact(f"{key}=x").partition("=")[2]
    return redacted_value(value, redact)


def _separates(pair: re.Match[str]) -> bool:
    """Whether a value follows: after a sign, or, for an option of a command line, after a space."""
    return any(sign in pair[0][len(pair["key"]) :] for sign in "=:") or pair["key"].startswith("-")


def _words(key: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(key)]
    while len(words) > 1 and words[-1] in _SUFFIXES:
        words.pop()
    return words or [""]


def _is_secret(words: list[str]) -> bool:
    last = words[-1]
    if last in _SECRET or last.endswith(_ENDINGS):
        return True
    single = last if last == "tokens" else last.removesuffix("s")
    return len(words) > 1 and (words[-2], single) in _SECRET_PAIRS


def _value(text: str, start: int, line: bool, *, quoted: bool) -> tuple[int, str]:
    """Where the value that begins at `start` ends, and what takes its place."""
    if (opening := _OPENING.match(text, start)) is not None:
        depth, quote = len(opening[1]), opening[2]
        end = len(text)
        for closing in re.compile(rf"\\*+{quote}").finditer(text, opening.end()):
            slashes = len(closing[0]) - 1
            if slashes % (2 * (depth + 1)) == depth:  # a quote of the same depth; one inside has more
                end = closing.end() - depth - 1
                break
        return end, opening[0] + (REDACTED if end > opening.end() else "")
    if text[start : start + 1] in ("[", "{"):
        new = f'"{REDACTED}"' if quoted else REDACTED
        depth = 0
        for bracket in _BRACKET.finditer(text, start):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket[0], 0)
            if depth == 0:
                return bracket.end(), new
        return len(text), new
    bare = (_LINE if line else _BARE).match(text, start)
    if bare is None or bare[0].strip(" )]}").lower() in _NOTHING:
        return (start, "") if bare is None else (bare.end(), bare[0])
    return bare.end(), REDACTED


def _redact_tag(match: re.Match[str]) -> str:
    secret = _is_secret(_words(match["key"])) and match["value"].strip()
    return f"<{match['key']}>{REDACTED}" if secret else match[0]


def _redact_shape(match: re.Match[str]) -> str:
    if match["scheme"] is not None:
        return f"{match['scheme']} {REDACTED}"
    return REDACTED if match["user"] is None else f"{match['user']}:{REDACTED}"


def visible(text: str) -> str:
    """The text with control characters written out, except tabs and ends of lines."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def excerpt(text: str, characters: int, redact: Callable[[str], str] = redacted) -> str:
    """The beginning of a text, redacted before it is cut: half a secret does not look like one."""
    window = 2 * characters + 2_000
    shown = redact(text[:window])
    if len(text) > window:
        shown = shown[:-100]
    end = characters
    if shown.startswith(REDACTED, at := shown.rfind("[", 0, end)):
        end = max(end, at + len(REDACTED))  # the mark is not cut
    if len(text) <= window and len(shown) <= end:
        return visible(shown)
    return f"{visible(shown[:end])}… ({len(text):,} characters)"
