"""The kit that proves a layer: `check_layer(MyLayer)`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toolsearch import SetupError, ToolSearchError
from toolsearch.calls import ToolResult
from toolsearch.events.facts import (
    ModelReplied,
    Noted,
    Reply,
    RunEnded,
    TextDelta,
    ToolReturned,
    ToolWaiting,
    UserSaid,
)
from toolsearch.events.requests import Call, CallModel, Finished, Paused, Round, Run
from toolsearch.loop.agent import Agent
from toolsearch.protocols import Do, Layer, Record, RedactingLayer, Sleep, StreamingLayer, Within
from toolsearch.support.checks import offers, shown
from toolsearch.testing.conversations import (
    Asker,
    Journals,
    Probe,
    ProviderDown,
    Request,
    Way,
    facts_of,
    long_reply,
    make_agent,
    notes_of,
    play_turn,
    reply_to,
)
from toolsearch.testing.promises import BrokenPromise, check_maker, guarded, is_json, require

__all__ = ["check_layer"]

SEAMS: dict[str, type[Request]] = {
    "around_run": Run, "around_round": Round, "around_model": CallModel, "around_tool": Call,
}  # fmt: skip


FACTS = (UserSaid("Hello"), ModelReplied("Hello"), ToolReturned("c1", "ok", "x"), Noted("kit", 1), RunEnded("answered"))


def check_layer(make: Callable[[], Layer], *, ways: Sequence[Way] = ("run", "arun")) -> None:
    """Raises `BrokenPromise`, saying which promise of a layer is broken and how to see it; returns if all hold.

    `make` gives a new layer each time: a class will do. It is put around short conversations with a scripted model; a
    question that it asks a person is answered with yes. Pass `ways=["arun"]` for a layer that does async work, which
    `run` refuses.
    """
    check_maker("check_layer", make, "a layer")
    with guarded("an ordinary call"):
        layer = make()
        _has_its_members(layer)
        requests = _gives_what_require_due(make, ways)
        for seam, request in requests.items():
            if getattr(layer, seam, None) is not None:
                _can_be_closed(make, seam, request)
                _lets_errors_through(make, seam, request)
        for check in (_keeps_no_state, _can_be_asked_again, _serves_many_conversations, _leaves_a_whole_conversation):
            check(make, ways)


def _has_its_members(layer: Layer) -> None:
    try:
        make_agent([layer], Journals())
    except SetupError as error:
        raise BrokenPromise(str(error), "Agent(model, search, layers=[this layer])") from error
    if offers(layer, StreamingLayer):
        one, other = layer.pieces(), layer.pieces()
        require(one is not other, "pieces() gives the same filter twice", "a filter holds what it keeps of one reply")
        deltas = [*one.take(TextDelta("Hello, ")), *one.take(TextDelta("you.")), *one.rest()]
        right = all(isinstance(delta, TextDelta) for delta in deltas)
        require(
            right, "a filter of pieces() gives something other than TextDelta", f"take and rest gave {shown(deltas)}"
        )
    if offers(layer, RedactingLayer):  # before any conversation: with a lost answer, a turn would not end
        _stores_the_same_kind(layer)
    store: object = getattr(layer, "store", None)
    missing = [name for name in ("append", "load", "delete", "list") if not callable(getattr(store, name, None))]
    require(store is None or not missing, f"its store has no {', '.join(missing)}", "layer.store; see check_store")


def _gives_what_require_due(make: Callable[[], Layer], ways: Sequence[Way]) -> dict[str, Request]:
    """Plays a turn in each way, whole and in pieces; returns the last request that each seam was given."""
    requests: dict[str, Request] = {}
    first: tuple[str, list[str]] | None = None
    for way in ways:
        for pieces in (0, 4):
            outer, layer, store = Probe(), make(), Journals()
            ended = play_turn(make_agent([outer, layer], store, pieces=pieces), way)
            _notes_json(outer)
            for seam, request, answer in outer.passed:
                _require_due(seam, request, answer)
                if not (isinstance(request, Round) and len(request.calls) < 2 and seam in requests):
                    requests[seam] = request
            played = (ended, facts_of(store))
            first = first or played
            see = (
                f"the turn ended with {first[0]!r} first, and with {ended!r} by {way}, in pieces of {pieces} characters"
            )
            require(played == first, "run and arun, or whole and streamed replies, give different conversations", see)
    return requests


def _notes_json(probe: Probe) -> None:
    for noted in probe.notes:
        see = f"it recorded {shown(noted)}"
        promise = "a note is not a JSON value: it would not come back from the journal as it was"
        require(is_json(noted.note), promise, see)


def _require_due(seam: str, request: Request, answer: object) -> None:
    kinds = {"around_run": Finished | Paused, "around_model": Reply, "around_tool": ToolResult | ToolWaiting}
    see = f"{seam} was given {shown(request)} and returned {shown(answer)}"
    if seam in kinds:
        kind = kinds[seam]
        names = str(kind).replace("toolsearch.events.facts.", "").replace("toolsearch.", "")
        require(
            isinstance(answer, kind), f"{seam} does not return what is due: {getattr(kind, '__name__', names)}", see
        )
    if isinstance(request, Call) and isinstance(answer, ToolResult | ToolWaiting):
        require(answer.call_id == request.judged.id, f"{seam} answers another call than it was given", see)
    if isinstance(request, Round) and isinstance(answer, Mapping):
        asked = {call.id for call in request.calls}
        lost, strange = sorted(asked - answer.keys()), sorted(answer.keys() - asked)
        require(not lost, f"around_round gives no answer to the calls {lost}", see)
        require(not strange, f"around_round answers the calls {strange}, which nobody made", see)
        for call_id, each in answer.items():
            right = isinstance(each, ToolResult | ToolWaiting) and each.call_id == call_id
            require(
                right, f"around_round answers {call_id!r} with {shown(each)}: a ToolResult or ToolWaiting is due", see
            )


def _stores_the_same_kind(layer: RedactingLayer) -> None:
    for fact in FACTS:
        kept = layer.as_stored(fact)
        see = f"as_stored({shown(fact)}) gave {shown(kept)}"
        require(type(kept) is type(fact), "as_stored does not return a fact of the same kind", see)


def _begin(make: Callable[[], Layer], seam: str, request: Request) -> Generator[Any, Any, Any] | None:
    """The generator of a seam where it has yielded its request; None if it answers by itself."""
    steps: Generator[Any, Any, Any] = getattr(make(), seam)(request)
    answer: object = None
    try:
        while True:
            wanted = steps.send(answer)
            match wanted:
                case Do():
                    answer = wanted.function()
                    if inspect.iscoroutine(answer):
                        answer = asyncio.run(answer)
                case Sleep() | Record():
                    answer = None
                case _:
                    given = wanted.request if isinstance(wanted, Within) else wanted
                    see = f"{seam} yielded {shown(given)}"
                    require(
                        isinstance(given, SEAMS[seam]), f"{seam} yields something other than what it was given", see
                    )
                    return steps
    except StopIteration:
        return None


def _can_be_closed(make: Callable[[], Layer], seam: str, request: Request) -> None:
    steps = _begin(make, seam, request)
    if steps is not None:
        try:
            steps.close()
        except BaseException as error:
            promise = f"{seam} yields, or raises, while it is closed: {error}"
            raise BrokenPromise(promise, f"steps = layer.{seam}(…); next(steps); steps.close()") from error


def _lets_errors_through(make: Callable[[], Layer], seam: str, request: Request) -> None:
    """What the inner step raises may be handled, or asked for again, but not turned into a fault of the layer."""
    steps = _begin(make, seam, request)
    if steps is None:
        return
    down = ProviderDown("the provider is down")
    try:
        steps.throw(down)
    except StopIteration as end:
        if seam != "around_round" or isinstance(end.value, Mapping):
            _require_due(seam, request, end.value)
    except BaseException as error:
        right = error is down or (isinstance(error, ToolSearchError) and not isinstance(error, SetupError))
        see = f"steps = layer.{seam}(…); next(steps); steps.throw(an error of the inner step)"
        if not right:
            raise BrokenPromise(f"{seam} turns an error of the inner step into {error!r}", see) from error
    finally:
        steps.close()


def _keeps_no_state(make: Callable[[], Layer], ways: Sequence[Way]) -> None:
    """A conversation that goes on with a new layer, as after a restart, is the one that goes on with the old one."""
    promise = "it keeps state of its own: what it must remember is a Noted fact in the journal"
    same, restarted = Journals(), Journals()
    agent = make_agent([make()], same)
    ended = [play_turn(agent, ways[0]), play_turn(agent, ways[0], "Once more.")]
    again = [
        play_turn(make_agent([make()], restarted), ways[0]),
        play_turn(make_agent([make()], restarted), ways[0], "Once more."),
    ]
    see = f"two turns with one layer ended with {ended}, with a new layer for the second turn with {again}"
    require(ended == again and facts_of(same) == facts_of(restarted), promise, see)
    agent.conversation("s")  # the journal can be replayed
    one, *others = [_play_long(make, ways[0], restarts) for restarts in (False, True, True)]
    (ended, facts, notes), (again, new_facts, new_notes) = one, others[0]
    see = "two turns of 12 rounds, in which a person is asked: with one layer, and with a new one for each run"
    see = f"{see}, they ended with {ended} and {again}"
    require(ended == again and facts == new_facts, promise, see)
    if others[0] == others[1]:  # else the notes are of time or chance
        require(notes == new_notes, promise, f"{see}; the notes are {shown(notes)} and {shown(new_notes)}")


def _play_long(make: Callable[[], Layer], way: Way, restarts: bool) -> tuple[list[str], list[str], list[str]]:
    """How two long turns end, and their facts and notes, with one layer or with a new one for each run."""
    store, probe = Journals(), Probe()

    def agent() -> Agent:
        return make_agent([probe, Asker(), make()], store, *[long_reply] * 100)

    one = agent()
    ended = [
        play_turn(agent() if restarts else one, way, said, restarted=agent if restarts else None)
        for said in ("Do it all.", "Once more.")
    ]
    _notes_json(probe)
    return ended, facts_of(store), notes_of(store)


def _can_be_asked_again(make: Callable[[], Layer], ways: Sequence[Way]) -> None:
    """A layer further out, such as `retry`, may yield a request again."""
    once, again = (play_turn(make_agent([Probe(twice), make()], Journals()), ways[0]) for twice in (False, True))
    see = f"the turn ended with {once!r}, and with {again!r} where an outer layer yields each request twice"
    require(once == again, "it cannot be asked a second time with the same request", see)


def _serves_many_conversations(make: Callable[[], Layer], ways: Sequence[Way]) -> None:
    names = [f"s{number}" for number in range(4)]
    alone, together = Journals(), Journals()
    agent = make_agent([make()], together, *[reply_to] * 80)

    def play(one: Agent, name: str) -> str:
        return play_turn(one, ways[0], f"Do it for {name}.", name)

    with ThreadPoolExecutor(len(names)) as pool:
        ended = list(pool.map(lambda name: play(agent, name), names))
    for name, end in zip(names, ended, strict=True):
        wanted = play(make_agent([make()], alone), name)
        same = end == wanted and facts_of(together, name) == facts_of(alone, name)
        see = f"conversations of one agent in several threads at once; alone it ended with {wanted!r}, so with {end!r}"
        require(same, "one conversation disturbs another one of the same agent", see)


def _leaves_a_whole_conversation(make: Callable[[], Layer], ways: Sequence[Way]) -> None:
    for way in ways:
        store = Journals()
        play_turn(make_agent([make()], store, ProviderDown("the provider is down")), way)
        ended = play_turn(make_agent([make()], store), way, "Once more.")
        see = f"a turn in which the model raises, then another turn by {way}: it ended with {ended!r}"
        alone = play_turn(make_agent([make()], Journals()), way, "Once more.")
        require(ended == alone, "after a model call that failed, the conversation does not go on", see)
