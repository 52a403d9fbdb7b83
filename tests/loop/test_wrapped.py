"""A layer, a model or a store inside another object keeps what it may have besides its methods, in every Python."""

from typing import Any

from toolsearch import Agent, ToolSearch
from toolsearch.events import Event, Round, ToolReturned, UserSaid
from toolsearch.protocols import RedactingLayer, RoundSteps
from toolsearch.support.checks import offers
from toolsearch.testing import ScriptedModel


class Wrapper:
    """Passes everything on, as a proxy for logging or for tests does."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Guard:
    """Redacts, brings a name, and is a gate that fails."""

    name = "guard"
    gate = True

    def around_round(self, request: Round) -> RoundSteps:
        raise RuntimeError("nobody can be asked")
        yield request

    def as_stored(self, fact: Event) -> Event:
        return UserSaid("***", at=fact.at) if isinstance(fact, UserSaid) else fact


def test_a_wrapped_layer_still_redacts_and_is_still_a_gate(drive: Any) -> None:
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = Agent(ScriptedModel([("pay", {})]), ToolSearch([pay], mode="static"), layers=[Wrapper(Guard())])  # type: ignore[list-item]
    assert drive(agent, "my secret", conversation_id="s").reason == "answered"
    journal = agent.conversation("s").journal
    assert "my secret" not in str(journal)
    assert [(f.status, f.by) for f in journal if isinstance(f, ToolReturned)] == [("denied", "guard")]


def test_a_wrapped_model_keeps_its_name_and_a_wrapped_store_layer_its_store() -> None:
    the_store = Agent(ScriptedModel(), []).store

    class Keeps:
        store = the_store

    agent = Agent(model := ScriptedModel(), [], layers=[Wrapper(Keeps())])  # type: ignore[list-item]
    assert agent.store is the_store

    class Named(Wrapper):
        def __call__(self, request: Any) -> Any:
            return self._inner(request)  # type: ignore[operator]

    assert Agent(Named(model), []).parts.model_name == "scripted"


def test_members_count_whether_an_object_has_them_or_passes_them_on() -> None:
    assert offers(Guard(), RedactingLayer)
    assert offers(Wrapper(Guard()), RedactingLayer)  # from Python 3.12 on, `isinstance` says no
    assert not offers(Wrapper(object()), RedactingLayer)
