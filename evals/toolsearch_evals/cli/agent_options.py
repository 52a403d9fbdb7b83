"""The options of `toolsearch eval agent`, and what they say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any

import typer

from toolsearch import SetupError
from toolsearch.layers import PRICES, Price
from toolsearch_evals.agent.endpoint import WireName
from toolsearch_evals.agent.play import Arm
from toolsearch_evals.cli.options import read_settings

__all__ = [
    "AdapterOption",
    "AgentIndexOption",
    "AgentModeOption",
    "AgentSeedOption",
    "BaseUrlOption",
    "BudgetOption",
    "ConcurrencyOption",
    "KeyVariableOption",
    "ModelOption",
    "PriceOption",
    "ProbeOnlyOption",
    "RepeatsOption",
    "RequestOption",
    "ScriptedOption",
    "StreamOption",
    "TaskOption",
    "TimeoutOption",
    "ToolsOption",
    "WireOption",
    "read_arms",
    "read_options",
    "read_prices",
    "read_wire",
]

ModelOption = Annotated[
    str, typer.Option(metavar="NAME", help="The model, by the name that its endpoint knows.", show_default="none")
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The address of the endpoint.", show_default="the provider's own"),
]
WireOption = Annotated[
    str | None,
    typer.Option(
        help="The form of its requests: openai_chat, of OpenAI and servers that speak it, or anthropic.",
        show_default="anthropic if the model's name begins with claude, else openai_chat",
    ),
]
KeyVariableOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The environment variable that holds the key.",
        show_default="OPENAI_API_KEY or ANTHROPIC_API_KEY",
    ),
]
ScriptedOption = Annotated[
    bool,
    typer.Option("--scripted", help="Ask a scripted model on this machine that knows the solutions; it needs no key."),
]
AdapterOption = Annotated[
    str,
    typer.Option(
        help="How tools are sent: tools, as the endpoint's own; schema, as text, with replies held to a JSON Schema; "
        "json, as text alone; auto, as a probe says."
    ),
]
ProbeOnlyOption = Annotated[
    bool, typer.Option("--probe-only", help="Only ask the endpoint whether it reads tools, in two or three requests.")
]
ToolsOption = Annotated[str, typer.Option(help="Catalog sizes in tools, with commas between them.")]
AgentModeOption = Annotated[
    list[str] | None,
    typer.Option(
        help="How tools reach the model: static (all of them), append, bridge, auto, compact or search; may be "
        "repeated.",
        show_default="static and append",
    ),
]
AgentIndexOption = Annotated[
    str | None,
    typer.Option(
        "--index",
        help="The index to search with, such as keyword, hybrid or hybrid:ENCODER=MODEL.",
        show_default="auto, which is hybrid or keyword",
    ),
]
AgentSeedOption = Annotated[int, typer.Option("--seed", help="The same seed fills catalogs with the same tools.")]
TaskOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="A task to play, such as rooms-1; may be repeated.", show_default="all"),
]
RepeatsOption = Annotated[int, typer.Option(min=1, help="How often each task is played.")]
BudgetOption = Annotated[
    str,
    typer.Option(metavar="AMOUNT", help="The most to spend, such as '$2.50' or '300000 tokens'.", show_default="none"),
]
PriceOption = Annotated[
    str,
    typer.Option(
        metavar="IN,CACHED,OUT",
        help="Dollars per million tokens of input, of cached input and of output.",
        show_default="those of the library's table",
    ),
]
RequestOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An option of each request, such as temperature=0; may be repeated.",
        show_default="none",
    ),
]
StreamOption = Annotated[bool, typer.Option("--stream/--whole", help="Ask for replies as a stream, or whole.")]
TimeoutOption = Annotated[float, typer.Option(min=1, help="Seconds that a request may take.")]
ConcurrencyOption = Annotated[int, typer.Option(min=1, max=64, help="Tasks that are played at the same time.")]

MODES = ("static", "append", "bridge", "auto", "compact", "search")


def read_wire(asked: str | None, model: str) -> WireName:
    """The wire asked for, or the one that the model's name suggests."""
    known: dict[str, WireName] = {"openai_chat": "openai_chat", "anthropic": "anthropic"}
    if asked is not None and asked not in known:
        raise SetupError(f"there is no wire {asked!r} to ask an endpoint with; pass openai_chat or anthropic")
    return known[asked] if asked else "anthropic" if model.startswith("claude") else "openai_chat"


def read_arms(modes: Sequence[str], index: str, asked: Sequence[str] | None) -> tuple[Arm, ...]:
    """An arm for each mode and, of those that search, for each combination of the settings."""
    values: dict[str, list[str]] = {}
    for name, value in read_settings(asked):
        if name in ("mode", "index"):
            raise SetupError(f"the setting {name!r} is an option of its own: pass --{name} instead of --set {name}=…")
        values.setdefault(name, []).append(value)
    ways = [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
    arms: list[Arm] = []
    for mode in dict.fromkeys(modes):
        if mode not in MODES:
            raise SetupError(f"there is no mode {mode!r} to play; pass one of {', '.join(MODES)}")
        arms += [Arm(mode)] if mode == "static" else [Arm(mode, index, way, _in_words(way, values)) for way in ways]
    return tuple(arms)


def _in_words(way: Mapping[str, str], values: Mapping[str, Sequence[str]]) -> str:
    """The settings that tell one arm from the others."""
    return ", ".join(f"{name}={value}" for name, value in way.items() if len(values[name]) > 1)


def read_options(asked: Sequence[str] | None) -> dict[str, Any]:
    """Options of a request by name; a value is JSON, or else a text."""
    options: dict[str, Any] = {}
    for text in asked or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise SetupError(f"{text!r} is not an option of a request and its value, such as temperature=0")
        if "key" in name.lower() or "auth" in name.lower():
            raise SetupError(f"the option {name!r} looks like a key: a key is read from the environment only")
        try:
            options[name.strip()] = json.loads(value)
        except ValueError:
            options[name.strip()] = value
    return options


def read_prices(asked: str) -> tuple[Mapping[str, Price], str]:
    """Prices by name of a model, and where they are from."""
    if not asked:
        return PRICES, "toolsearch.layers.PRICES"
    try:
        fresh, cached, written = (float(part) for part in asked.split(","))
    except ValueError:
        raise SetupError(
            f"the price {asked!r} is not three numbers with commas between them, such as 0.25,0.025,2"
        ) from None
    return {"*": Price(fresh, cached, written, source="--price")}, f"--price {fresh:g},{cached:g},{written:g}"
