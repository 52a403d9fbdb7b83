"""What a damaged SQLite file raises: one answer for all that keep such a file."""

from __future__ import annotations

import sqlite3

__all__ = ["FAILURES", "code_of", "is_damage"]

FAILURES = (sqlite3.Error, UnicodeError)
"""What reading or writing a file can raise. A message of SQLite quotes damaged bytes, which may be no UTF-8."""

# A statement that always works fails, because a table is gone or has other columns; or rows contradict each other.
_DAMAGE = frozenset(
    {
        sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_SCHEMA,
    }
)  # fmt: skip


def code_of(error: Exception) -> int:
    """The primary result code of SQLite; -1 for an error of the Python module."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF


def is_damage(error: Exception) -> bool:
    """Whether a failure means that the file is damaged, or is not the file that it should be."""
    return isinstance(error, UnicodeError) or code_of(error) in _DAMAGE
