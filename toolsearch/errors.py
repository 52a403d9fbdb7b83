"""What can go wrong, by whose fault it is.

Only developers see these. What a model or a user gets wrong is answered with a `ToolResult`, never raised.
"""

from __future__ import annotations

__all__ = [
    "AnswerError",
    "DefinitionError",
    "MissingExtra",
    "NotExportable",
    "QueryError",
    "ReplyError",
    "SetupError",
    "StateError",
    "ToolSearchError",
    "UnknownTool",
]


class ToolSearchError(Exception):
    """The root of every error this library raises."""


class SetupError(ToolSearchError, ValueError):
    """The program that uses toolsearch passed something that cannot work; the message says what to pass instead."""


class MissingExtra(SetupError, ImportError):
    """An optional package is not installed; the message holds the install line."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the package {package!r}. Install it with: pip install 'toolsearch-kit[{extra}]' "
            f"(from a clone: pip install '.[{extra}]')"
        )


class DefinitionError(ToolSearchError, ValueError):
    """A tool definition cannot be used. A catalog quarantines such a tool and keeps this message as the reason."""


class NotExportable(DefinitionError):
    """The schema of a tool cannot be expressed for a provider. A wire leaves the tool out of the request."""


class UnknownTool(ToolSearchError, KeyError):
    """The catalog has no tool with that id."""

    def __str__(self) -> str:
        return str(self.args[0])


class StateError(ToolSearchError, ValueError):
    """A stored or live session cannot be used this way: its format is unknown, or it belongs to another caller."""


class AnswerError(ToolSearchError, ValueError):
    """A model's last answer does not fit what `structured` wants, repairs included.

    `problems` has a sentence for each problem of each attempt. `text` is the last answer, after `attempts` attempts.
    """

    def __init__(self, problems: list[str], text: str, attempts: int) -> None:
        shown = "; ".join(problems[-5:])
        super().__init__(
            f"the answer does not fit after {attempts} attempt{'s' * (attempts != 1)}: {shown}. Allow more repairs, "
            "ask for less, or catch this: .text is what the model said"
        )
        self.problems, self.text, self.attempts = problems, text, attempts


class ReplyError(ToolSearchError):
    """A provider answered a request with an error, or with nothing, although its status says that all is well.

    `status_code` is the status that fits the error, None if the provider names none that is known; `code` is the
    provider's own code. The layer `retry` reads both.
    """

    def __init__(self, message: str, *, status_code: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status_code, self.code = status_code, code


class QueryError(ToolSearchError, ValueError):
    """A search query an index cannot run (a broken pattern); the message tells the model how to write a better one."""
