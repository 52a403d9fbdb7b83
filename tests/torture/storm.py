"""Many conversations at once, in threads and in asyncio, over one catalog that changes all the time."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.torture import Outcome
from toolsearch import Agent, Caller, Catalog, Finished, ToolCall, ToolContext, ToolSearch
from toolsearch.errors import UnknownTool
from toolsearch.events import CallModel, Reply, ToolReturned
from toolsearch.stores import MemoryStore

TENANTS = [f"ten{number}" for number in range(10)]
TOOLS = 30  # for each tenant
SESSIONS = 50  # that the registry keeps


def _definition(tenant: str, number: int, version: int = 0) -> dict[str, Any]:
    def run(key: str, context: ToolContext) -> str:
        return "|".join((tenant, _user(context.caller), context.conversation_id, key))

    return {
        "name": f"do_{tenant}_{number}",
        "server": tenant,
        "roles": [tenant],
        "description": f"Does {tenant} subject{number} version{version} word{number % 7}",
        "input_schema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
        "run": run,
    }


def _slowly(definitions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A source that takes its time, so that others look while it is read."""
    for each in definitions:
        time.sleep(0.0005)
        yield each


def _user(caller: Caller | None) -> str:
    return (caller.user if caller else None) or ""


def _caller(number: int) -> Caller:
    tenant = TENANTS[number % len(TENANTS)]
    return Caller(f"u{number}", [tenant], tenant)


class Storm:
    """One catalog, and the conversations that use it; `violations` is shared by all threads."""

    def __init__(self, index: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.catalog = Catalog([_definition(tenant, n) for tenant in TENANTS for n in range(TOOLS)])
        self.search = ToolSearch(self.catalog, index, max_sessions=SESSIONS)
        self.outcome = Outcome()
        self.ended: Counter[str] = Counter()
        self.changes = self.looks = 0
        self.hidden = "do_vault_0"  # a tool that may be there at the moment
        self.stop = threading.Event()

    def wrong(self, text: str) -> None:
        self.outcome.violations.append(text)

    # -- the catalog changes -------------------------------------------------------------------------------------

    def churn(self) -> None:
        """Changes the catalog until it is stopped, in every way there is."""
        while not self.stop.wait(0.002):
            tenant, number = self.rng.choice(TENANTS), self.rng.randrange(TOOLS)
            try:
                self._change(tenant, number, self.rng.random())
            except UnknownTool:
                pass
            except Exception as error:
                self.wrong(f"a change of the catalog raised {error!r}")
            self.changes += 1

    def _change(self, tenant: str, number: int, chance: float) -> None:
        if chance < 0.35:
            self.catalog.replace(_definition(tenant, number, self.changes))
        elif chance < 0.5:
            self.catalog.remove(f"{tenant}/do_{tenant}_{number}")
        elif chance < 0.65:
            self.catalog.add(_definition(tenant, number, self.changes))
        elif chance < 0.8:
            kept = [each for each in range(TOOLS) if self.rng.random() < 0.9]
            self.catalog.sync([_definition(tenant, each, self.changes) for each in kept], server=tenant)
        else:  # many at once, of several tenants: nobody sees some of them before the others
            first = TOOLS + self.rng.randrange(1_000)
            self.hidden = f"do_vault_{first}"
            new = [_definition(other, first + each) for each in range(8) for other in ("vault", *TENANTS)]
            self.catalog.extend(_slowly(new))
            for each in new:
                self.catalog.remove(f"{each['server']}/{each['name']}")

    def watch(self) -> None:
        """Somebody who sees every tool but those that come and go behind a role nobody has."""
        caller = Caller("everybody", TENANTS)
        session = self.search.session("everybody", caller=caller)
        while not self.stop.is_set():
            self.looks += 1
            for hit in self.search.find("does vault subject version", caller=caller):
                if hit.tool.server == "vault":
                    self.wrong(f"{hit.tool.id} is found without its role")
            hidden = self.hidden
            result = session.handle(ToolCall("1", hidden, {"key": "x"}))
            if result.status != "unknown" or "vault" in result.content.replace(hidden, ""):
                self.wrong(f"{hidden} is called without its role: {result.status} {result.content}")
            for shown in session.tools():
                if shown.tool.server == "vault":
                    self.wrong(f"{shown.tool.id} is shown without its role")

    # -- the conversations -----------------------------------------------------------------------------------------

    def model(self, request: CallModel) -> Reply:
        """Searches, then calls what it found, and a tool of another tenant."""
        number = int(_user(request.caller)[1:])
        mine, other = TENANTS[number % len(TENANTS)], TENANTS[(number + 3) % len(TENANTS)]
        found = [shown for shown in request.tools if not shown.built_in]
        for shown in found:
            if shown.tool.server != mine:
                self.wrong(f"{request.conversation_id} is shown {shown.tool.id}")
        place = request.turn.rounds
        if place == 0:
            queries = [f"does {mine} subject{number % TOOLS}", f"do_{other}_{number % TOOLS}"]
            return Reply("", (ToolCall("search", "search_tools", {"queries": queries}),))
        if place < 4 and found:
            name = found[place % len(found)].name
            calls = (
                ToolCall(f"mine{place}", name, {"key": f"k{number}"}),
                ToolCall(f"other{place}", f"do_{other}_{number % TOOLS}", {"key": "x"}),
            )
            return Reply("", calls)
        return Reply(f"end {number}")

    def run_threads(self, conversations: int) -> None:
        agent = Agent(self.model, self.search, store=MemoryStore())

        def one(number: int) -> None:
            try:
                self._ended(agent.run("Go", conversation_id=f"t{number}", caller=_caller(number)))
            except Exception as error:
                self.wrong(f"t{number} raised {error!r}")

        with ThreadPoolExecutor(conversations) as pool:
            list(pool.map(one, range(conversations)))
        self._judge(agent, [f"t{number}" for number in range(conversations)])

    async def run_tasks(self, conversations: int) -> None:
        agent = Agent(self.model, self.search, store=MemoryStore())

        async def one(number: int) -> None:
            try:
                self._ended(await agent.arun("Go", conversation_id=f"a{number}", caller=_caller(number)))
            except Exception as error:
                self.wrong(f"a{number} raised {error!r}")

        await asyncio.gather(*[one(number) for number in range(conversations)])
        self._judge(agent, [f"a{number}" for number in range(conversations)])

    def _ended(self, result: object) -> None:
        self.ended[result.reason if isinstance(result, Finished) else type(result).__name__] += 1

    def _judge(self, agent: Agent, names: list[str]) -> None:
        """Every answer belongs to its own conversation, and no tool of another tenant ran."""
        for name in names:
            number = int(name[1:])
            mine = TENANTS[number % len(TENANTS)]
            for fact in agent.conversation(name, caller=_caller(number)).journal:
                if not isinstance(fact, ToolReturned) or fact.status != "ok":
                    continue
                if fact.call_id.startswith("other"):
                    self.wrong(f"{name}: a tool of another tenant ran: {fact.content}")
                elif fact.call_id.startswith("mine") and fact.content != f"{mine}|u{number}|{name}|k{number}":
                    self.wrong(f"{name}: has the answer {fact.content!r}")

    # -- sessions, and the index at the end ------------------------------------------------------------------------

    def open_sessions(self, count: int) -> None:
        def one(number: int) -> None:
            session = self.search.session(f"live{number}", caller=_caller(number))
            session.handle(ToolCall("1", "search_tools", {"queries": [f"subject{number % TOOLS}"]}))
            for shown in session.tools():
                if not shown.built_in and shown.tool.server != TENANTS[number % len(TENANTS)]:
                    self.wrong(f"live{number} is shown {shown.tool.id}")

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(one, range(count)))
        kept = [each for each in self.search.conversation_ids() if each.startswith("live")]
        if len(kept) > SESSIONS:
            self.wrong(f"{len(kept)} sessions are kept, and {SESSIONS} may be")

    def compare_with_a_fresh_index(self, index: str) -> int:
        """After all changes a search gives what it gives over the same tools that never changed."""
        fresh = ToolSearch(Catalog(list(self.catalog)), index)
        compared = 0
        for query, caller in _searches():
            now, then = (
                [(hit.tool.id, round(hit.score, 4)) for hit in each.find(query, 5, caller=caller)]
                for each in (self.search, fresh)
            )
            compared += 1
            if sorted(now) != sorted(then):
                self.wrong(f"{query!r} finds {now}, and {then} in a fresh index")
        return compared


def _searches() -> Iterator[tuple[str, Caller]]:
    for tenant in TENANTS:
        for number in range(0, TOOLS, 5):
            for query in (f"does {tenant} subject{number}", f"word{number % 7}", f"do_{tenant}_{number}"):
                yield query, Caller("x", [tenant], tenant)
                yield query, Caller("x", TENANTS)


def storm(conversations: int = 250, seed: int = 1, index: str = "keyword") -> Outcome:
    """Runs so many conversations in threads and as many in asyncio while the catalog changes."""
    weather = Storm(index, seed)
    others = [threading.Thread(target=weather.churn), threading.Thread(target=weather.watch)]
    for thread in others:
        thread.start()
    try:
        weather.run_threads(conversations)
        asyncio.run(weather.run_tasks(conversations))
        weather.open_sessions(4 * SESSIONS)
    finally:
        weather.stop.set()
        for thread in others:
            thread.join()
    answered = weather.ended["answered"]
    if answered != 2 * conversations:
        weather.wrong(f"{answered} of {2 * conversations} conversations were answered: {dict(weather.ended)}")
    compared = weather.compare_with_a_fresh_index(index)
    outcome = weather.outcome
    outcome.figures = {
        "conversations": 2 * conversations,
        "answered": answered,
        "changes": weather.changes,
        "looks for hidden tools": weather.looks,
        "searches compared": compared,
    }
    return outcome
