"""What went wrong with a server, as a sentence: no secrets, no traces of the machinery."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, REQUEST_TIMEOUT

from toolsearch import SetupError, ToolSearchError
from toolsearch.mcp.config import ServerEntry
from toolsearch.support.redaction import visible

__all__ = ["CallFailed", "ServerUnavailable", "is_forgotten", "is_lost", "leaf_of", "reason_of_failure"]

REASON_CHARACTERS = 300
_TOO_LARGE = "byte limit."  # of one answer: the SDK gives that one up, and the connection goes on
# The whole message, so that no tool is run twice that says "your session at the bank has expired".
_FORGOTTEN = re.compile(
    r"(?:not found: )?(?:(?:invalid|unknown) session(?: id)?"
    r"|session(?: id)?(?: has been| has| was| is)? (?:not found|terminated|expired|unknown|invalid))\.?",
    re.IGNORECASE,
)


class ServerUnavailable(ToolSearchError, ConnectionError):
    """A server cannot be reached now. The message names it, says why, and what to do."""


class CallFailed(ToolSearchError, RuntimeError):
    """A server answered a call with an error of the protocol, or not at all."""


@dataclass(frozen=True)
class _Words:
    kind: type[BaseException]
    text: str


_PLAIN = (
    _Words(TimeoutError, "no answer in time"),
    _Words(httpx2.ConnectError, "nothing answers at its address"),
    _Words(httpx2.TimeoutException, "no answer in time"),
    _Words(PermissionError, "its command may not be run"),
    _Words(FileNotFoundError, "its command or its folder was not found"),
)


def leaf_of(error: BaseException) -> BaseException:
    """The first error in a group of them, and not a cancellation if there is anything else."""
    while isinstance(error, BaseExceptionGroup):
        inner = error.exceptions
        error = next((each for each in inner if not isinstance(leaf_of(each), asyncio.CancelledError)), inner[0])
    return error


def is_forgotten(error: BaseException, entry: ServerEntry) -> bool:
    """Whether a server over HTTP knows the session no more, as after a restart: then the request did not run."""
    if entry.transport == "stdio" or not isinstance(error, MCPError):
        return False
    return _FORGOTTEN.fullmatch(error.message.strip()) is not None


def is_lost(error: BaseException, entry: ServerEntry) -> bool:
    """Whether an error means that the connection is gone, rather than that the server refused something."""
    error = leaf_of(error)
    if isinstance(error, MCPError):
        # By its words: the code that the SDK gives it, -32000, is that of any error which a server makes up.
        broke = error.message.startswith("SSE stream ") and not error.message.endswith(_TOO_LARGE)
        return broke or error.message == "Connection closed" or is_forgotten(error, entry)
    return isinstance(
        error,
        anyio.ClosedResourceError | anyio.BrokenResourceError | anyio.EndOfStream | httpx2.TransportError | OSError,
    )


def reason_of_failure(error: BaseException, entry: ServerEntry, masked: Callable[[str], str]) -> str:
    """Why a server could not be reached, without a final stop."""
    error = leaf_of(error)
    if isinstance(error, SetupError):
        text = str(error)
    elif isinstance(error, ConnectionResetError) or (isinstance(error, MCPError) and is_lost(error, entry)):
        text = "it ended" if entry.transport == "stdio" else "it closed the connection"
    elif isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT:
        text = "no answer in time"
    elif isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND and entry.transport == "http":
        text = (
            f"nothing that speaks MCP answers at its address ({error.message}); if it serves the older SSE, its entry "
            'needs "type": "sse"'
        )
    elif isinstance(error, httpx2.HTTPStatusError):
        text = f"it answered with the status {error.response.status_code}"
    else:
        text = next((words.text for words in _PLAIN if isinstance(error, words.kind)), "") or (
            f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        )
    return visible(" ".join(masked(text).split()))[:REASON_CHARACTERS].rstrip(". ")
