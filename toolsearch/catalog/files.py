"""Tools from a file: JSON or JSON Lines, an array of definitions in any form, or an MCP `tools/list` result."""

from __future__ import annotations

import json
import os
from pathlib import Path

from toolsearch.errors import SetupError

__all__ = ["read_tools"]


def read_tools(file: str | os.PathLike[str]) -> list[object]:
    """The definitions in a file, unread; raises `SetupError` naming the file, and the line where it is broken."""
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SetupError(f"there is no file {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the file {str(path)!r} cannot be read: {error}") from None
    try:
        whole = json.loads(text)
    except RecursionError:
        raise SetupError(f"the file {str(path)!r} cannot be read: it is nested too deeply") from None
    except ValueError as error:
        return _lines(path, text, error)
    if isinstance(whole, dict) and whole.get("type") != "namespace":
        result = whole.get("result", whole)  # the whole JSON-RPC answer
        inner = result.get("tools") if isinstance(result, dict) else None
        return inner if isinstance(inner, list) else [whole]
    if isinstance(whole, dict):
        return [whole]
    if isinstance(whole, list):
        return whole
    raise SetupError(f"the file {str(path)!r} holds {type(whole).__name__}, not tools")


def _lines(path: Path, text: str, error: ValueError) -> list[object]:
    definitions: list[object] = []
    for number, line in enumerate(text.split("\n"), 1):  # not `splitlines`: a JSON text may hold U+2028
        if line.strip():
            try:
                definitions.append(json.loads(line))
            except (ValueError, RecursionError) as wrong:
                # A broken first line means that the file was never one definition a line.
                reason = error if number == 1 else f"line {number}: {wrong}"
                raise SetupError(f"the file {str(path)!r} is neither JSON nor JSON Lines: {reason}") from None
    if not definitions:
        raise SetupError(f"the file {str(path)!r} is empty")
    return definitions
