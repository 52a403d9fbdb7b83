"""Learning from use: a search that led to a successful call raises that tool for like requests of the same tenant.

Everything is bounded: tenants, past queries of each, tools of a query, what one user can add, what a search can gain.
Lessons fade. The time is what `clock` says, in seconds; only differences count, also across restarts.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from toolsearch.errors import SetupError, StateError
from toolsearch.search.lessons import Lesson, TaughtLesson, lessons_table
from toolsearch.search.past_queries import Bucket, PastQuery, key_of, pieces_of
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean

__all__ = ["Learned"]

FORMAT = 1  # of `Learned.export`
QUERY_CHARACTERS = 300  # a longer query teaches nothing
TOOLS = 8  # of one past query
USERS = 8  # counted for one pair of query and tool
TIMES = 3  # counted for one user
SHARE = 4  # one user may have taught a past query in every so many
COMPARED = 30  # past queries that are compared in full
SECONDS_A_DAY = 86_400.0


class Learned:
    """Pairs of a past query and the tool that answered it, by tenant; pass it to `ToolSearch(…, learned=…)`.

    `clock` gives the time in seconds, as `time.time` does. `capacity` is the most past queries of a tenant, `tenants`
    the most tenants; the oldest lessons leave first. A lesson counts half after `half_life_days`. It adds at most
    `weight` to a score that is divided by the best of its search. Past queries whose likeness to the present one is
    below `least` (0 … 1) are ignored. Callers without a tenant neither teach nor learn, unless `without_tenant` gives
    them a bucket of their own, which suits a program with one tenant.

    Safe to share between threads; one `Learned` belongs to one catalog.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        capacity: int = 1_000,
        tenants: int = 1_000,
        half_life_days: float = 30.0,
        weight: float = 2.5,
        least: float = 0.1,
        without_tenant: bool = False,
    ) -> None:
        checks.function("clock", clock, "that gives the time in seconds, as time.time is")
        checks.whole("capacity", capacity)
        checks.whole("tenants", tenants)
        checks.number("half_life_days", half_life_days, "a number of days")
        checks.number("weight", weight, least=0, finite=True)
        checks.number("least", least, most=1)
        checks.flag("without_tenant", without_tenant)
        self.weight = weight
        self.without_tenant = without_tenant
        self._clock = clock
        self._capacity, self._tenants = capacity, tenants
        self._half_life = half_life_days * SECONDS_A_DAY
        self._least = least
        self._buckets: OrderedDict[str | None, Bucket] = OrderedDict()
        self._lock = threading.RLock()

    def teach(
        self, query: str, tool_id: str, *, tenant: str | None = None, user: str | None = None, times: float = 1.0
    ) -> bool:
        """Records that a query led to a successful call of a tool, counted `times`; says whether it was recorded."""
        checks.text("query", query)
        checks.text("tool_id", tool_id, empty=False)
        checks.text("tenant", tenant, none=True)
        checks.text("user", user, none="for nobody in particular")
        checks.number("times", times, finite=True)
        query = " ".join(clean(query).split())
        if not self._serves(tenant) or len(query) > QUERY_CHARACTERS or not (pieces := pieces_of(query)):
            return False
        who = "" if user is None else _digest(user)
        now = float(checks.time_of(self._clock))
        with self._lock:
            bucket = self._buckets.setdefault(tenant, Bucket())
            self._buckets.move_to_end(tenant)
            while len(self._buckets) > self._tenants:
                self._buckets.popitem(last=False)
            key = key_of(query)
            if key not in bucket.past:
                self._make_room(bucket, who)
                bucket.put(key, PastQuery(query, pieces, who))
            bucket.past.move_to_end(key)
            self._count(bucket.past[key], tool_id, who, now, times)
        return True

    def lessons(
        self, query: str, *, tenant: str | None = None, among: Container[str] | None = None
    ) -> dict[str, Lesson]:
        """What this tenant's past says for a query: lessons by tool id, out of `among` (None: all).

        A tool's share is likeness × n / (n + 1) × its part in all tools that the like query led to. n is how often that
        query led to the tool, faded. Of several like queries the best one counts.
        """
        checks.text("query", query)
        if not self._serves(tenant) or not (pieces := pieces_of(query[: 4 * QUERY_CHARACTERS])):
            return {}
        now = float(checks.time_of(self._clock))
        lessons: dict[str, Lesson] = {}
        with self._lock:
            bucket = self._buckets.get(tenant)
            for likeness, past in self._like(bucket, pieces) if bucket is not None else ():
                counts = {i: self._faded(users, now) for i, users in past.tools.items() if among is None or i in among}
                total = sum(counts.values())
                for tool_id, count in counts.items():
                    share = likeness * count / (count + 1) * count / total if total else 0.0
                    if share > 1e-3 and (tool_id not in lessons or share > lessons[tool_id].share):
                        lessons[tool_id] = Lesson(share, past.query, likeness)
        return lessons

    def taught(
        self,
        *,
        query: str | None = None,
        tool: str | None = None,
        tenant: str | None = None,
        since: float | None = None,
    ) -> list[TaughtLesson]:
        """The lessons that meet all of these, as in `undo`: tenant by tenant, what counts most first."""
        now = float(checks.time_of(self._clock))
        key = None if query is None else key_of(clean(query))
        with self._lock:
            lessons = [
                TaughtLesson(
                    past.query,
                    tool_id,
                    self._faded(users, now),
                    sum(times for times, _ in users.values()),
                    len(users),
                    max(last for _, last in users.values()),
                    whose,
                )
                for whose, bucket in self._buckets.items()
                if tenant is None or whose == tenant
                for its_key, past in bucket.past.items()
                if key is None or its_key == key
                for tool_id, users in past.tools.items()
                if tool is None or tool_id == tool
            ]
        lessons = [each for each in lessons if since is None or each.last >= since]
        return sorted(lessons, key=lambda each: (each.tenant or "", -each.weight, each.query, each.tool))

    def page(self, lessons: Sequence[TaughtLesson] | None = None) -> str:
        """A small HTML page with these lessons, by default all. It needs nothing else, and everything is escaped."""
        shown = self.taught() if lessons is None else lessons
        body = lessons_table(shown, most=len(shown))
        return f"<!doctype html>\n<meta charset='utf-8'>\n<title>What was learned from use</title>\n{body}\n"

    def _repr_html_(self) -> str:
        return lessons_table(self.taught(), most=100)

    # -- forgetting --------------------------------------------------------------------------------------------------

    def forget(self, tool_ids: Iterable[str]) -> None:
        """Forgets tools, such as those that have left the catalog."""
        gone = frozenset(checks.names("tool_ids", tool_ids, "ids"))
        with self._lock:
            for bucket in self._buckets.values():
                for key in list(bucket.past):
                    bucket.undo(key, gone)

    def forget_tenant(self, tenant: str | None) -> None:
        """Forgets all that a tenant taught."""
        with self._lock:
            self._buckets.pop(tenant, None)

    def undo(
        self,
        *,
        query: str | None = None,
        tool: str | None = None,
        tenant: str | None = None,
        user: str | None = None,
        since: float | None = None,
    ) -> int:
        """Forgets the lessons that meet all of these, and returns how many.

        `query` is a past query, in any order of its words; `tool` an id; `tenant` and `user` those who taught; `since`
        a time of the clock: what was taught or confirmed from then on is forgotten. At least one must be given. Of a
        lesson that several users taught, the part of the others stays.
        """
        for name, value in (("query", query), ("tool", tool), ("tenant", tenant), ("user", user)):
            checks.text(name, value, none=True)
        if since is not None:
            checks.time_of(lambda: since)
        if since is None and not any(each is not None for each in (query, tool, tenant, user)):
            raise SetupError("undo() needs to know what: pass a query, a tool, a tenant, a user, or since when")
        who = None if user is None else _digest(user)
        key = None if query is None else key_of(clean(query))
        tools = None if tool is None else frozenset([tool])
        gone = 0
        with self._lock:
            for whose, bucket in self._buckets.items():
                if tenant is None or whose == tenant:
                    keys = list(bucket.past) if key is None else [key] if key in bucket.past else []
                    gone += sum(bucket.undo(each, tools, who, since) for each in keys)
        return gone

    def __len__(self) -> int:
        """Past queries of all tenants."""
        with self._lock:
            return sum(len(bucket.past) for bucket in self._buckets.values())

    # -- storing -----------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, object]:
        """Everything as JSON-ready data, for `restore`. It holds the queries of users, and digests of their names."""
        with self._lock:
            tenants = [
                {"tenant": tenant, "past": [[p.query, p.teacher, p.tools] for p in bucket.past.values()]}
                for tenant, bucket in self._buckets.items()
            ]
            return {"format": FORMAT, "tenants": json.loads(json.dumps(tenants))}

    def restore(self, state: JsonObject | str) -> None:
        """Replaces everything by what `export` gave. Raises `StateError` for anything else."""
        try:
            stored = json.loads(state) if isinstance(state, str) else state
            if stored["format"] != FORMAT:
                raise ValueError(f"the format {stored['format']!r} is not known; {FORMAT} is")
            buckets: OrderedDict[str | None, Bucket] = OrderedDict()
            for each in stored["tenants"][-self._tenants :]:
                tenant = each["tenant"]
                checks.text("tenant", tenant, none=True)
                bucket = buckets.setdefault(tenant and clean(tenant), Bucket())
                for query, teacher, tools in each["past"][-self._capacity :]:
                    text = " ".join(clean(query).split())
                    if len(text) <= QUERY_CHARACTERS and (counted := _counts(tools)):
                        bucket.put(key_of(text), PastQuery(text, pieces_of(text), str(teacher), counted))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError, SetupError) as error:
            raise StateError(f"this is not an export of Learned: {type(error).__name__}: {error}") from None
        with self._lock:
            self._buckets = buckets

    # -- inside ------------------------------------------------------------------------------------------------------

    def _serves(self, tenant: str | None) -> bool:
        return self.without_tenant or bool(tenant)

    def _make_room(self, bucket: Bucket, who: str) -> None:
        """Makes room for one more: among the teacher's own, if these are a large part already, else the oldest goes."""
        most = max(1, self._capacity // SHARE)
        own = [key for key, past in bucket.past.items() if past.teacher == who] if who else []
        if len(own) >= most:
            bucket.drop(own[0])
        while len(bucket.past) >= self._capacity:
            bucket.drop(next(iter(bucket.past)))

    def _count(self, past: PastQuery, tool_id: str, who: str, now: float, more: float) -> None:
        if tool_id not in past.tools and len(past.tools) >= TOOLS:
            del past.tools[min(past.tools, key=lambda i: self._faded(past.tools[i], now))]
        users = past.tools.setdefault(tool_id, {})
        if who not in users and len(users) >= USERS:
            del users[min(users, key=lambda each: users[each][1])]
        times, last = users.get(who, (0.0, now))
        users[who] = [min(TIMES, times * self._left(now - last) + more), now]

    def _faded(self, users: Mapping[str, list[float]], now: float) -> float:
        return sum(times * self._left(now - last) for times, last in users.values())

    def _left(self, seconds: float) -> float:
        return math.pow(0.5, max(0.0, seconds) / self._half_life)

    def _like(self, bucket: Bucket, pieces: frozenset[str]) -> list[tuple[float, PastQuery]]:
        """The past queries like these pieces, with the cosine of both, each piece weighed by its rarity here."""
        many = len(bucket.past)
        squares = {p: math.log(1 + (many + 1) / (len(bucket.holders.get(p, ())) + 1)) ** 2 for p in pieces}
        shared: dict[str, float] = {}
        for piece, square in squares.items():
            for key in bucket.holders.get(piece, ()):
                shared[key] = shared.get(key, 0.0) + square
        mine = sum(squares.values())
        like = []
        for key in sorted(shared, key=lambda k: (-shared[k], k))[:COMPARED]:
            past = bucket.past[key]
            theirs = sum(math.log(1 + (many + 1) / (len(bucket.holders[p]) + 1)) ** 2 for p in past.pieces)
            likeness = shared[key] / math.sqrt(mine * theirs)
            if likeness >= self._least:
                like.append((min(1.0, likeness), past))
        return like


def _digest(user: str) -> str:
    return hashlib.blake2b(user.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _counts(tools: JsonObject) -> dict[str, dict[str, list[float]]]:
    """The stored counts of one past query, within the bounds of what could have been taught, whatever a file says."""
    counts: dict[str, dict[str, list[float]]] = {}
    for tool_id, users in list(tools.items())[-TOOLS:]:
        for who, (times, at) in list(users.items())[-USERS:]:
            if not (math.isfinite(times) and math.isfinite(at)):
                raise ValueError(f"{times!r} calls at the time {at!r} cannot be counted")
            if times > 0:
                counts.setdefault(clean(tool_id), {})[str(who)] = [min(float(TIMES), float(times)), float(at)]
    return counts
