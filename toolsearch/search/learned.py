"""Learning from use: a search that led to a successful call raises that tool for like requests of the same tenant.

Everything is bounded: tenants, past queries of each, tools of a query, what one user can add, what a search can gain.
Lessons fade. The time is what `clock` says, in seconds; only differences count, also across restarts.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from toolsearch.catalog.tools import Tool
from toolsearch.errors import StateError
from toolsearch.protocols import Matched
from toolsearch.search.index import Hit, Hits
from toolsearch.settings import SURE_FROM
from toolsearch.support import checks
from toolsearch.support.json_types import JsonObject
from toolsearch.support.text import clean

__all__ = ["Learned", "Lesson", "raised"]

FORMAT = 1  # of `Learned.export`
QUERY_CHARACTERS = 300  # a longer query teaches nothing
TOOLS = 8  # of one past query
USERS = 8  # counted for one pair of query and tool
TIMES = 3  # counted for one user
SHARE = 4  # one user may have taught a past query in every so many
COMPARED = 30  # past queries that are compared in full
SECONDS_A_DAY = 86_400.0

_WORD = re.compile(r"[^\W_]+")
_IDLE = frozenset(
    "a about all am an and any are as at be by can could do does for from get give has have how i if in into is it its "
    "just let like make me my need of on or our please show so tell that the their them then there these this those to "
    "up us want was we were what when where which who will with would you your".split()
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What past use says for a tool: `share`, above 0 and below 1, and the past query most like the present one."""

    share: float
    query: str


@dataclass
class _Past:
    """A past query: its pieces, who taught it first, and how often and when last it helped, by tool and user."""

    query: str
    pieces: frozenset[str]
    teacher: str
    tools: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # tool -> user -> [times, seconds]


@dataclass
class _Bucket:
    """One tenant's past queries by their key, the most recent at the end."""

    past: OrderedDict[str, _Past] = field(default_factory=OrderedDict)
    holders: dict[str, set[str]] = field(default_factory=dict)  # piece -> keys

    def drop(self, key: str) -> None:
        for piece in self.past.pop(key).pieces:
            self.holders[piece].discard(key)
            if not self.holders[piece]:
                del self.holders[piece]

    def put(self, key: str, past: _Past) -> None:
        self.past[key] = past
        for piece in past.pieces:
            self.holders.setdefault(piece, set()).add(key)


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
        weight: float = 2.0,
        least: float = 0.5,
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
        self._buckets: OrderedDict[str | None, _Bucket] = OrderedDict()
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
        if not self._serves(tenant) or len(query) > QUERY_CHARACTERS or not (pieces := _pieces(query)):
            return False
        who = "" if user is None else hashlib.blake2b(user.encode("utf-8", "replace"), digest_size=8).hexdigest()
        now = float(checks.time_of(self._clock))
        with self._lock:
            bucket = self._buckets.setdefault(tenant, _Bucket())
            self._buckets.move_to_end(tenant)
            while len(self._buckets) > self._tenants:
                self._buckets.popitem(last=False)
            key = _key(query)
            if key not in bucket.past:
                self._make_room(bucket, who)
                bucket.put(key, _Past(query, pieces, who))
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
        if not self._serves(tenant) or not (pieces := _pieces(query[: 4 * QUERY_CHARACTERS])):
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
                        lessons[tool_id] = Lesson(share, past.query)
        return lessons

    def forget(self, tool_ids: Iterable[str]) -> None:
        """Forgets tools, such as those that have left the catalog."""
        gone = set(checks.names("tool_ids", tool_ids, "ids"))
        with self._lock:
            for bucket in self._buckets.values():
                for key, past in list(bucket.past.items()):
                    if not gone.isdisjoint(past.tools):
                        past.tools = {i: users for i, users in past.tools.items() if i not in gone}
                        if not past.tools:
                            bucket.drop(key)

    def forget_tenant(self, tenant: str | None) -> None:
        """Forgets all that a tenant taught."""
        with self._lock:
            self._buckets.pop(tenant, None)

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
            buckets: OrderedDict[str | None, _Bucket] = OrderedDict()
            for each in stored["tenants"][-self._tenants :]:
                bucket = buckets.setdefault(each["tenant"], _Bucket())
                for query, teacher, tools in each["past"][-self._capacity :]:
                    counted = {
                        str(i): {str(who): [float(times), float(at)] for who, (times, at) in users.items()}
                        for i, users in tools.items()
                    }
                    bucket.put(_key(query), _Past(query, _pieces(query), str(teacher), counted))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
            raise StateError(f"this is not an export of Learned: {type(error).__name__}: {error}") from None
        with self._lock:
            self._buckets = buckets

    # -- inside ------------------------------------------------------------------------------------------------------

    def _serves(self, tenant: str | None) -> bool:
        return self.without_tenant or bool(tenant)

    def _make_room(self, bucket: _Bucket, who: str) -> None:
        """Makes room for one more: among the teacher's own, if these are a large part already, else the oldest goes."""
        most = max(1, self._capacity // SHARE)
        own = [key for key, past in bucket.past.items() if past.teacher == who] if who else []
        if len(own) >= most:
            bucket.drop(own[0])
        while len(bucket.past) >= self._capacity:
            bucket.drop(next(iter(bucket.past)))

    def _count(self, past: _Past, tool_id: str, who: str, now: float, more: float) -> None:
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

    def _like(self, bucket: _Bucket, pieces: frozenset[str]) -> list[tuple[float, _Past]]:
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


def raised(hits: Hits, lessons: Mapping[Tool, Lesson], weight: float, limit: int, sure_from: float = SURE_FROM) -> Hits:
    """The hits with `weight` times a lesson's share of the best score added to each tool's own, best first.

    Tools that the search did not find come in with that alone. Tools that the query named stay in front, however many;
    the answer to a query of names only is unchanged. The verdict becomes "weak" if the index was sure that nothing
    fits, and if "found" is not true of the hits that remain: the best came in by a lesson alone, or no hit is as sure
    as `sure_from`.
    """
    exact = [hit for hit in hits if hit.exact]
    rest = {hit.tool.id: hit for hit in hits if not hit.exact}
    if hits.unknown or (exact and not rest):
        return hits
    places: dict[str, float] = {}  # the scores, as far as they agree with the order: like tools may stand behind others
    for hit in rest.values():
        places[hit.tool.id] = min([hit.score, *list(places.values())[-1:]])
    best = max((hit.score for hit in rest.values()), default=1.0)
    named = {hit.tool.id for hit in exact}
    for tool, lesson in lessons.items():
        if tool.id not in named and (more := weight * lesson.share * best) > 0:
            hit = rest.get(tool.id) or Hit(tool, 0.0)
            matched = (*hit.matched, Matched(lesson.query, ("learned",)))
            rest[tool.id] = replace(hit, score=hit.score + more, matched=matched)
            places[tool.id] = places.get(tool.id, 0.0) + more
    order = {tool_id: at for at, tool_id in enumerate(rest)}
    ranked = sorted(rest.values(), key=lambda hit: (-places[hit.tool.id], order[hit.tool.id]))
    first = (*exact, *ranked[: max(0, limit - len(exact))])
    if not first:
        return hits
    sure = first[0].confidence is not None and max(hit.confidence or 0.0 for hit in first) >= sure_from
    weak = hits.verdict == "none" or (hits.verdict == "found" and not sure)
    return replace(hits, hits=first, near=(), problem=None, verdict="weak" if weak else hits.verdict)


def _words(query: str) -> list[str]:
    """The words of a query as they are compared, without idle ones unless there are no others."""
    words = _WORD.findall(unicodedata.normalize("NFKC", query).casefold())
    return [word for word in words if word not in _IDLE] or words


def _key(query: str) -> str:
    return " ".join(sorted(set(_words(query))))


def _pieces(query: str) -> frozenset[str]:
    """The trigrams of all words, ends marked: they catch inflections, typos and scripts without spaces alike."""
    return frozenset(piece for word in _key(query).split()[:64] for piece in _thirds(word[:40]))


@lru_cache(maxsize=4096)
def _thirds(word: str) -> tuple[str, ...]:
    marked = f" {word} "
    return tuple(marked[at : at + 3] for at in range(max(1, len(marked) - 2)))
