"""The live sessions of a `ToolSearch`, one per conversation, until they are ended or evicted."""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Protocol
from weakref import WeakSet

from toolsearch.calls import Caller, check_caller
from toolsearch.errors import StateError
from toolsearch.session.session import Session
from toolsearch.session.view import View
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean

__all__ = ["SessionRegistry", "Shelf"]

log = logging.getLogger("toolsearch")


class Shelf(Protocol):
    """Conversations that are kept elsewhere under the same settings: those of an agent without a store."""

    def list(self) -> Iterable[str]: ...
    def delete(self, conversation_id: str, /) -> bool: ...


class SessionRegistry:
    """Sessions by the id of their conversation, the most recently used last. Safe to use from several threads.

    At most `most` sessions are kept (None: all), and each until it was not used for `seconds` (None: for ever).
    """

    def __init__(self, view: View, *, most: int | None, seconds: float | None) -> None:
        self._view, self._most, self._seconds = view, most, seconds
        self._lock = threading.RLock()
        self._sessions: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        self._evicted: list[Session] = []  # not yet reported to the listeners
        self._listeners: list[Callable[[Session], None]] = []
        self._shelves: WeakSet[Shelf] = WeakSet()

    def share(self, shelf: Shelf) -> None:
        """Lists and ends the conversations of a shelf as well, as long as it exists."""
        with self._lock:
            self._shelves.add(shelf)

    @property
    def is_watched(self) -> bool:
        """Whether anybody listens for evicted sessions."""
        return bool(self._listeners)

    def report(self, session: Session) -> None:
        """Calls the listeners with a session that a shelf evicted."""
        with self._lock:
            self._evicted.append(session)
        self._report_evicted()

    def open(self, conversation_id: str | None, caller: Caller | None, wire: object = None) -> Session:
        """The session of a conversation, created at the first call; without an id, a new private one."""
        check_caller(caller)
        checks.text("conversation_id", conversation_id, none="for a fresh session")
        with self._lock:
            entry = self._sessions.get(clean(conversation_id)) if conversation_id else None
            if entry is None:
                session = Session(self._view, clean(conversation_id or "") or secrets.token_urlsafe(16), caller, wire)
            else:
                session = entry[0]
                session.rebind_caller(caller)
                if wire is not None:
                    session.use_wire(wire)
            self._keep(session)  # before old ones are dropped, so this one never leaves by its age
        self._report_evicted()
        return session

    def restore(self, state: JsonObject | str, caller: Caller | None, wire: object = None) -> Session:
        """A session from its exported state; it replaces a live one with the same id."""
        check_caller(caller)
        try:
            exported = json.loads(state) if isinstance(state, str) else state
        except (ValueError, RecursionError) as error:
            raise StateError(f"this is not an exported session: {error}") from None
        if not isinstance(exported, Mapping) or not isinstance(exported.get("id"), str):
            raise StateError("this is not an exported session: it has no id")
        mine = caller or Caller()
        if (exported.get("user", mine.user), exported.get("tenant", mine.tenant)) != (mine.user, mine.tenant):
            raise StateError(f"session {exported['id']!r} belongs to another caller")
        with self._lock:
            session = Session.from_state(self._view, exported, caller, wire=wire)
            self._keep(session)
        self._report_evicted()
        return session

    def end(self, conversation_id: str) -> bool:
        """Forgets a session; returns whether there was one."""
        checks.text("conversation_id", conversation_id)
        conversation_id = clean(conversation_id)
        with self._lock:
            shelves = list(self._shelves)
        ended = [shelf.delete(conversation_id) for shelf in shelves]
        with self._lock:
            return self._sessions.pop(conversation_id, None) is not None or any(ended)

    def on_evict(self, listener: Callable[[Session], None]) -> None:
        """Calls `listener` with each session that is evicted because of its age or their number."""
        checks.function("listener", listener, "that takes a Session")
        self._listeners.append(listener)

    def ids(self) -> tuple[str, ...]:
        """The ids of the live sessions, after those that are too old were evicted."""
        with self._lock:
            self._drop_idle()
            ids = list(self._sessions)
            shelves = list(self._shelves)
        self._report_evicted()
        return tuple(dict.fromkeys([*ids, *(each for shelf in shelves for each in shelf.list())]))

    def _keep(self, session: Session) -> None:
        self._sessions[session.id] = session, monotonic()
        self._sessions.move_to_end(session.id)
        self._drop_idle()
        while self._most is not None and len(self._sessions) > self._most:
            self._evict(next(iter(self._sessions)))

    def _drop_idle(self) -> None:
        while self._seconds is not None and self._sessions:
            oldest, (_, used) = next(iter(self._sessions.items()))
            if monotonic() - used <= self._seconds:
                break
            self._evict(oldest)

    def _evict(self, conversation_id: str) -> None:
        self._evicted.append(self._sessions.pop(conversation_id)[0])

    def _report_evicted(self) -> None:
        """Calls the listeners, outside the lock: a listener may open sessions itself."""
        with self._lock:
            evicted, self._evicted = self._evicted, []
        for session in evicted:
            for listener in self._listeners:
                try:
                    listener(session)
                except Exception:
                    log.exception("a listener for evicted sessions failed")
