"""The package of layers: what an agent has by default, and what an import brings with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolsearch import ToolSearch, layers
from toolsearch.layers._defaults import DEFAULTS, default_layers
from toolsearch.loop.agent import Agent
from toolsearch.testing import ScriptedModel


class Own:
    """A layer of the program's own, called like a default one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def around_model(self, request):  # type: ignore[no-untyped-def]
        return (yield request)


def said(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_the_default_layers_are_outermost() -> None:
    agent = Agent(ScriptedModel(), ToolSearch([]), layers=[Own("mine")])
    assert [layer.name for layer in agent.parts.layers] == [*DEFAULTS, "mine"]


def test_a_layer_of_the_same_name_takes_the_place_of_a_default_one() -> None:
    agent = Agent(ScriptedModel(), ToolSearch([]), layers=[Own("mine"), Own("limits")])
    assert [layer.name for layer in agent.parts.layers] == [n for n in DEFAULTS if n != "limits"] + ["mine", "limits"]


def test_an_agent_may_have_no_layers_at_all() -> None:
    assert Agent(ScriptedModel(), ToolSearch([]), defaults=False).parts.layers == []


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_layer_is_called_like_what_makes_it(name: str) -> None:
    """Else one of the program's own could not take its place."""
    assert [layer.name for layer in default_layers()].count(name) == 1
    assert getattr(layers, name)().name == name


def test_every_name_of_the_package_is_real() -> None:
    assert [name for name in layers.__all__ if name != "PRICES" and not callable(getattr(layers, name))] == []
    assert set(layers.__all__) <= set(dir(layers))
    with pytest.raises(AttributeError, match="no attribute 'approve'"):
        layers.approve  # noqa: B018


@pytest.mark.parametrize("name", ["limits", "approval", "preflight", "interaction", "rules"])
def test_importing_one_layer_imports_no_other(name: str) -> None:
    """Besides the layer there is at most what all of them share."""
    loaded = (
        "print(sorted({m for m in sys.modules if m.startswith('toolsearch.layers.')} - {'toolsearch.layers._shared'}))"
    )
    assert said(f"import sys; from toolsearch.layers import {name}; {loaded}") == f"['toolsearch.layers._{name}']"


def test_a_name_means_the_layer_whatever_was_imported_before() -> None:
    """A module and what it makes have one name; the order of imports must not decide which of them that is."""
    first = "from toolsearch.layers._limits import limits as one"
    program = f"{first}; from toolsearch.layers import limits; print(one is limits)"
    assert said(program) == "True"


@pytest.mark.parametrize("seam", ["run", "round", "model", "tool"])
def test_a_layer_from_a_function_has_the_one_seam_it_is_for(seam: str) -> None:
    for layer in (layers.before(seam, lambda given: None), layers.after(seam, lambda result: None)):
        assert [name for name in dir(layer) if name.startswith("around_")] == [f"around_{seam}"]


def test_only_a_function_that_may_change_the_reply_keeps_it_from_being_shown_early() -> None:
    assert layers.after("model", lambda reply: None).buffers
    assert not layers.before("model", lambda request: None).buffers
    assert not hasattr(layers.after("tool", lambda result: None), "buffers")


def test_importing_toolsearch_imports_neither_the_loop_nor_a_layer() -> None:
    loaded = (
        "print([m for m in sys.modules if m.startswith(('toolsearch.layers', 'toolsearch.loop', 'toolsearch.events'))])"
    )
    assert said(f"import sys, toolsearch; {loaded}") == "[]"
