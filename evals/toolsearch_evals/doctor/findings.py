"""What the doctor finds: a check, where it strikes, and what is wrong there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CHECKS", "Check", "Finding", "Kind"]

Kind = Literal["server", "schema", "search", "text", "configuration"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the doctor looks for: what it is, what goes wrong where it is found, and what to do about it."""

    id: str
    kind: Kind
    title: str
    harm: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that strikes. `where` is the id of a tool, or the name of a server; `text` says what is wrong there."""

    check: str
    where: str
    text: str
    server: str = ""


_ROWS: tuple[tuple[str, Kind, str, str, str], ...] = (
    (
        "fails",
        "server",
        "a server that gives no tools",
        "requests that need one of its tools",
        "do what the reason says; else start its command by hand, and read what it writes to standard error",
    ),
    (
        "unreadable",
        "schema",
        "a definition that cannot be read",
        "requests that need the tool",
        "correct the definition at its server",
    ),
    (
        "left-out",
        "schema",
        "a schema that has no form that the provider takes",
        "requests to the provider that need the tool",
        "make the arguments one object, and smaller",
    ),
    (
        "refused",
        "schema",
        "a definition that the provider refuses as it is",
        "requests that carry the definition as it is, whatever tool they need",
        "send it through toolsearch, which rewrites it, or correct it at its server",
    ),
    (
        "too-many",
        "schema",
        "more tools than a request may carry",
        "requests that carry all tools",
        "send the few that a search finds",
    ),
    (
        "contradiction",
        "schema",
        "an argument that no value fits",
        "calls that pass the argument",
        "correct the type, the enum or the bounds",
    ),
    (
        "lost",
        "schema",
        "a constraint that the provider does not get",
        "calls that keep to what was sent, and are refused for what was not",
        "say the constraint in the argument's description, too",
    ),
    (
        "silent",
        "search",
        "a tool without a description",
        "searches that need the tool, among the first five",
        "write one sentence that says what it does",
    ),
    (
        "missed",
        "search",
        "a tool that its own summary does not find",
        "searches that need the tool, among the first five",
        "say in the first sentence what only this tool does",
    ),
    (
        "shadowed",
        "search",
        "a tool that another one comes before when its own summary is searched for",
        "searches that need the tool, in the first place",
        "say in the first sentence how the two differ, or drop one of them",
    ),
    (
        "look-alike",
        "text",
        "a tool of another server with the same name, but for case and signs, that says the same",
        "searches that need the other tool, in the first place",
        "keep the server that you trust, or rename the tool",
    ),
    (
        "names-another",
        "text",
        "a description that names another server's tool",
        "searches that need the other tool, in the first place",
        "take the name out of the description",
    ),
    (
        "keyword-stuffing",
        "text",
        "words that are repeated or lined up to win searches",
        "searches that need other tools, among the first five",
        "describe the tool in sentences",
    ),
    (
        "instructions",
        "text",
        "a text that addresses the model instead of describing the tool",
        "definitions that reach the model with the text",
        "read the text, and do without the tool if you do not want it obeyed",
    ),
    (
        "hidden-comment",
        "text",
        "a comment that a person does not see",
        "definitions that reach the model with the text, where nothing removes it",
        "read the definition as it is; toolsearch removes the comment",
    ),
    (
        "invisible-characters",
        "text",
        "characters that a person does not see",
        "definitions that reach the model with the text, where nothing removes it",
        "read the definition as it is; toolsearch removes the characters",
    ),
    (
        "left-behind",
        "server",
        "a server that leaves processes when its input ends",
        "starts after which a process is left",
        "correct the server; toolsearch ends its process group, but not what left the group",
    ),
    (
        "noise",
        "server",
        "a server that writes to standard output what is no message",
        "connections that fail",
        "write it to standard error",
    ),
    (
        "slow",
        "server",
        "a server that takes more than five seconds to answer first",
        "connections that time out",
        "install the package beforehand, so that its runner need not fetch it",
    ),
    (
        "secret-in-arguments",
        "configuration",
        "a secret among the arguments of a command",
        "starts after which other users of the machine can read it",
        "give it in env, which only your own processes can read",
    ),
    (
        "secret-in-url",
        "configuration",
        "a secret in the address of a server",
        "requests that leave it in a log of the server",
        "give it in headers",
    ),
    (
        "secret-in-file",
        "configuration",
        "a secret that the file has in full",
        "copies of the file that hold it",
        "write ${NAME}, and set the variable NAME in your environment",
    ),
    (
        "plain-http",
        "configuration",
        "a remote server without encryption",
        "requests that others on the way can read",
        "use https",
    ),
    (
        "shared-secret",
        "configuration",
        "one secret that is given to two programs",
        "secrets that reach a program which they were not made for",
        "make a secret for each",
    ),
    (
        "unpinned",
        "configuration",
        "a package or an image without a version",
        "starts that may run another program than the last",
        "write the version that you have looked at",
    ),
)

CHECKS: dict[str, Check] = {row[0]: Check(*row) for row in _ROWS}
