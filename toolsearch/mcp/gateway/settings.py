"""How a gateway behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from toolsearch.mcp.config import Config
from toolsearch.mcp.guards.result_pages import LEAST_TOKENS
from toolsearch.support import checks

__all__ = ["Confirm", "GatewayMode", "GatewaySettings", "Serving"]

GatewayMode = Literal["auto", "bridge", "live", "all"]
Serving = Literal["bridge", "live", "all"]
Confirm = Literal["auto", "always", "never"]


@dataclass(frozen=True, kw_only=True)
class GatewaySettings:
    """How a gateway behaves; each can stand under "toolsearch" at the top of the configuration, too.

    `mode`: "bridge" lists a search and two call tools, "live" a search and what it found, "all" every tool, and "auto"
    chooses by the client and the number of tools. `confirm` is whether actions are asked about by elicitation: with
    "always" they are denied where the client cannot ask, with "auto" they are left to the client there, and with
    "never" only those that a pattern of `ask` names are asked about. A result of more than `result_tokens` is handed
    out in pages. `index` is the index of the search. A search waits up to `search_seconds` for servers that are still
    connecting. `cache` keeps definitions for the next start. `pins` is the file of the pins, `pin` what is done with
    tools that were never seen ("first", "strict" or "off"), and `log` a file that gets a line for each search and call.
    """

    mode: GatewayMode = "auto"
    confirm: Confirm = "always"
    result_tokens: int = 10_000
    index: str = "auto"
    search_seconds: float = 5.0
    cache: bool = True
    pins: Path | None = None
    pin: str | None = None
    log: Path | None = None
    sessions: int = 1_000
    idle_seconds: float = 3_600.0

    def __post_init__(self) -> None:
        checks.choice("mode", self.mode, *get_args(GatewayMode))
        checks.choice("confirm", self.confirm, *get_args(Confirm))
        checks.whole("result_tokens (--result-tokens)", self.result_tokens, LEAST_TOKENS)
        checks.whole("sessions", self.sessions, 1)

    @classmethod
    def of(cls, config: Config, given: Mapping[str, object]) -> GatewaySettings:
        """The settings of a configuration, where none is `given` that is not None."""
        options = {key: config.options[key] for key in _IN_FILE if config.options.get(key) is not None}
        chosen = {**options, **{key: value for key, value in given.items() if value is not None}}
        for name in ("pins", "log"):
            if isinstance(chosen.get(name), str):
                chosen[name] = Path(str(chosen[name])).expanduser()
        return cls(**chosen)  # type: ignore[arg-type]


_IN_FILE = ("mode", "confirm", "result_tokens", "index", "search_seconds", "cache", "sessions", "log", "pins")
