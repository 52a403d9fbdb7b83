"""Every setting in one place: its name, default, unit and range. Arguments, environment and files use these names."""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, Self, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from toolsearch.errors import SetupError

__all__ = ["Mode", "SearchSettings", "SettingValues", "Settings"]

log = logging.getLogger("toolsearch")

SURE_FROM, NOTHING_BELOW = 0.8, 0.2  # probabilities: see the settings of these names
PRESELECTED, IN_DIRECTORY = 3, 200  # tools, with "auto": see the settings `preselect` and `directory`
AUTO_TOOLS, AUTO_TOKENS = 10, 2_500  # of which one is set: see the setting `auto_tools`

Mode = Literal["search", "auto", "static", "append", "bridge", "native", "compact"]
ExampleSource = Literal["author", "enriched", "learned"]
_Name = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$")]


class SearchSettings(TypedDict, total=False):
    """The settings that `ToolSearch` takes as keywords, for type checkers; `Settings` says what each means."""

    mode: Mode
    expected_turns: int
    cache: Literal["cold", "warm"]
    without_native: Literal["append", "bridge"] | None
    auto_tools: int | None
    auto_tokens: int | None
    results: int
    named: int
    sure_from: float
    nothing_below: float
    examples: tuple[ExampleSource, ...] | list[ExampleSource]
    queries: int
    answer_tokens: int
    preselect: int | None
    directory: int | None
    max_tools: int
    max_tool_tokens: int
    not_loaded: Literal["show", "run", "refuse"]
    search_tool: str
    call_tool: str
    action_tool: str | None
    max_sessions: int | None
    ttl_seconds: float | None


class SettingValues(SearchSettings, total=False):
    """All settings as keywords."""

    index: str


class Settings(BaseModel):
    """How a `ToolSearch` behaves. Build it with `Settings.of(...)` or `Settings.load(...)`; both name what is wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    index: str = "auto"
    """The search backend, by the name of its entry point. "auto": "hybrid" with the extra `vector`, else "keyword"."""
    mode: Mode = "search"
    """What a conversation begins with, and how found tools reach the model. "search" begins with the search tool and
    chooses the delivery behind it: "native" where the wire can, else "append" for short conversations and "bridge" for
    longer ones. "auto" does so too, or shows all tools ("static") where that costs less; and it turns `preselect` and
    `directory` on. Each delivery can be asked for: "native" (found tools come in the answers; `tools` keeps its bytes),
    "append" (to the tools), "bridge" (a fixed `call_tool`), "static" (all tools at once, no search), "compact" (the
    signatures of all tools in the instructions, calls through `call_tool`)."""
    expected_turns: Annotated[int, Field(ge=1)] = 10
    """The turns that a conversation is expected to have. With "search" and "auto", the delivery depends on it."""
    cache: Literal["cold", "warm"] = "cold"
    """With "auto": whether the provider's cache holds the tools and the system message when a conversation begins."""
    without_native: Literal["append", "bridge", None] = None
    """With "search" and "auto": how found tools reach the model where the wire cannot deliver natively. None: by
    `expected_turns`."""
    auto_tools: Annotated[int, Field(ge=0)] | None = None
    """With "auto": fewer tools than this are static. Set it, or `auto_tokens`, for fixed thresholds in place of the
    choice by price; the one that is not set is 10 tools, or 2,500 tokens."""
    auto_tokens: Annotated[int, Field(ge=0)] | None = None
    """With "auto": definitions of fewer tokens than this are static, likewise."""
    results: Annotated[int, Field(ge=1, le=50)] = 2
    """Tools a search loads for each query. The same search again, or a larger limit, loads up to five more."""
    named: Annotated[int, Field(ge=0, le=50)] = 10
    """Further tools a search names for each query, without loading them: half as many where it has found something,
    three times as many where its hits are doubtful; asked for more, it names up to thirty. 0: no names."""
    sure_from: Annotated[float, Field(ge=0, le=1)] = SURE_FROM
    """A probability. If the best tool of a search is relevant with at least this probability, the search has found
    something; below it, its tools may not fit."""
    nothing_below: Annotated[float, Field(ge=0, le=1)] = NOTHING_BELOW
    """If the probability that any tool fits is below this, the search returns nothing. 0 disables the cut-off."""
    examples: tuple[ExampleSource, ...] = ("author", "enriched", "learned")
    """The example queries that are searched: those of the tools' authors, those of `Catalog.enrich`, and those learned
    from use (see `Learned`). In an environment variable they stand between commas."""
    queries: Annotated[int, Field(ge=1, le=50)] = 8
    """Queries one search call may hold."""
    answer_tokens: Annotated[int, Field(ge=100)] = 1_000
    """Tokens that one search result may cost; tools that do not fit are neither listed nor loaded, but named as far as
    there is room. With "bridge", where results hold the schemas, four times as many."""
    preselect: Annotated[int, Field(ge=0, le=100)] | None = None
    """The most tools that come with a message of the user: its words are searched before the model is asked. The best
    hit comes, and others only if the search is fairly sure of them. 0: none. None: up to 3 with "auto", else none."""
    directory: Annotated[int, Field(ge=0)] | None = None
    """The most tools whose names all stand in the instructions, by server; of more, the servers with what they are for.
    0: neither. None: 200 with "auto", else 0."""
    max_tools: Annotated[int, Field(ge=2)] = 128
    """The most tools in one request, including the built-in ones; beyond it the oldest found ones leave, and the model
    is informed."""
    max_tool_tokens: Annotated[int, Field(ge=0)] = 0
    """The most tokens of the found definitions in one request, likewise; 0 for no such limit."""
    not_loaded: Literal["show", "run", "refuse"] = "show"
    """A call to a tool that exists but was not loaded: load it and show its schema, load and run it, or refuse."""
    search_tool: _Name = "search_tools"
    """The name of the built-in search tool."""
    call_tool: _Name = "call_tool"
    """The name of the built-in call tool of "bridge"."""
    action_tool: _Name | None = None
    """In "bridge", the name of a second call tool, for tools of the kind "action": the call tool then runs the others
    alone, so that a client can ask a person before the one and not before the other. None: one call tool for all."""
    max_sessions: Annotated[int, Field(ge=1)] | None = 1_000
    """The most sessions kept; beyond it the one not used for the longest time is evicted. None keeps all."""
    ttl_seconds: Annotated[float, Field(gt=0)] | None = None
    """A session that has not been used for this long is evicted. None: no session is evicted because of its age."""

    @property
    def fixed_thresholds(self) -> tuple[int, int] | None:
        """The tools and tokens below which "auto" shows all; None if the price decides."""
        if self.auto_tools is None and self.auto_tokens is None:
            return None
        tools, tokens = self.auto_tools, self.auto_tokens
        return AUTO_TOOLS if tools is None else tools, AUTO_TOKENS if tokens is None else tokens

    @property
    def doors(self) -> tuple[str, ...]:
        """The names of the tools through which "bridge" calls others."""
        return (self.call_tool,) if self.action_tool is None else (self.call_tool, self.action_tool)

    def door_of(self, kind: str) -> str:
        """The name of the tool through which a tool of this kind is called."""
        return self.action_tool if self.action_tool is not None and kind == "action" else self.call_tool

    @property
    def most_preselected(self) -> int:
        """The most tools that come with a message; 0 if its words are not searched."""
        return self.preselect if self.preselect is not None else PRESELECTED if self.mode == "auto" else 0

    @property
    def most_in_directory(self) -> int:
        """The most tools whose names all stand in the instructions; 0 if there is no directory."""
        return self.directory if self.directory is not None else IN_DIRECTORY if self.mode in ("auto", "compact") else 0

    @field_validator("examples", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """A text with commas as several values: an environment variable is one text."""
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.nothing_below > self.sure_from:
            raise ValueError(f"nothing_below={self.nothing_below} is above sure_from={self.sure_from}")
        if self.search_tool == self.call_tool:
            raise ValueError(f"search_tool and call_tool cannot both be {self.search_tool!r}")
        if self.action_tool is not None and self.mode != "bridge":
            raise ValueError(f"action_tool={self.action_tool!r} needs mode='bridge', not {self.mode!r}")
        if self.action_tool in (self.search_tool, self.call_tool):
            raise ValueError(f"action_tool cannot be {self.action_tool!r}: another built-in tool has that name")
        return self

    @classmethod
    def of(cls, **options: Unpack[SettingValues]) -> Settings:
        """Settings from arguments; raises `SetupError` naming the setting, its value and what is allowed."""
        return cls.from_mapping(options)

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Settings:
        """As `of`, from names and values that no type checker has seen."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise SetupError("; ".join(_explain(problem, cls) for problem in error.errors(include_url=False))) from None

    @classmethod
    def load(
        cls,
        file: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        **options: Unpack[SettingValues],
    ) -> Settings:
        """Settings from a TOML file, then `TOOLSEARCH_…` variables, then arguments; later ones override earlier ones.

        The file is `file`, or the one that `TOOLSEARCH_CONFIG` names. In a `pyproject.toml` the table
        `[tool.toolsearch]` is read. No file is searched for.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, object] = {}
        if path := file or environ.get("TOOLSEARCH_CONFIG"):
            values |= _from_file(Path(path))
        for variable, value in environ.items():
            if variable.startswith("TOOLSEARCH_") and variable != "TOOLSEARCH_CONFIG":
                name = variable.removeprefix("TOOLSEARCH_").lower()
                if name in cls.model_fields:
                    if value:  # an empty variable counts as not set
                        values[name] = None if value.lower() == "none" else value
                else:  # it may be meant for another program, so it is not an error
                    log.warning("the variable %s is not a setting%s", variable, _near(name, cls))
        return cls.from_mapping({**values, **options})


def _from_file(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except FileNotFoundError:
        raise SetupError(f"there is no settings file {str(path)!r}") from None
    except OSError as error:
        raise SetupError(f"the settings file {str(path)!r} cannot be read: {error}") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise SetupError(f"the settings file {str(path)!r} is not valid TOML: {error}") from None
    if path.name == "pyproject.toml":
        tools = table.get("tool")
        table = tools.get("toolsearch", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise SetupError(f"[tool.toolsearch] in {str(path)!r} must be a table, not {table!r}")
    return table


def _near(name: str, settings: type[Settings]) -> str:
    near = get_close_matches(name, settings.model_fields, 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(settings.model_fields)}"


def _explain(problem: ErrorDetails, settings: type[Settings]) -> str:
    if not problem["loc"]:
        return str(problem.get("ctx", {})["error"])
    name = str(problem["loc"][0])
    if problem["type"] == "extra_forbidden":
        return f"there is no setting {name!r}{_near(name, settings)}"
    return f"the setting {name!r} cannot be {problem['input']!r}: {problem['msg']}"
