"""Labelled cases and the tools they are about, read from a folder and checked.

Two forms are read. Ours has `tools.jsonl` and `cases.jsonl`, and tool ids are "server/name" (see a set's CARD.md). That
of public research sets has `tools.jsonl` with names that are unique in the set, and any number of `queries*.jsonl` with
"id", "query", "gold" and perhaps "gold_groups"; the unique name is the id, and `native_name` is the tool's own name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import toolsearch_datasets
from toolsearch import Catalog, DefinitionError, SetupError, Tool, tool
from toolsearch.catalog import Examples
from toolsearch_evals.installed import installed_points, load_point, named

__all__ = [
    "GROUP",
    "Case",
    "Dataset",
    "Groups",
    "dataset_names",
    "distinct",
    "load",
    "only",
    "read_samples",
    "require_gold",
    "unknown_dataset",
]

GROUP = "toolsearch.datasets"
Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled query.

    `gold` has a group for each capability that is needed; a group holds tool ids, and any one of those tools will do.
    Without groups, no tool can do it. A group that is there twice is one need; `repeated` are those. `steps` are short
    queries, one for each group. `wording` is "user" or "agent", `split` "train", "dev" or "test"; each is empty where
    the set does not say. `language` is that of the query, a code such as "en" or "pt-br".
    """

    id: str
    query: str
    gold: Groups = ()
    kind: str = ""
    wording: str = ""
    steps: tuple[str, ...] = ()
    split: str = ""
    language: str = "en"
    repeated: Groups = field(default=(), init=False, compare=False)

    def __post_init__(self) -> None:
        needs = distinct(self.gold)
        seen = Counter(map(frozenset, self.gold))
        object.__setattr__(self, "repeated", tuple(group for group in needs if seen[frozenset(group)] > 1))
        object.__setattr__(self, "gold", needs)

    @property
    def queries(self) -> tuple[str, ...]:
        """What an agent would search for: its steps, else the query."""
        return self.steps or (self.query,)


def distinct(gold: Iterable[Sequence[str]]) -> Groups:
    """The groups, each once, whatever the order of its tools; and of a group each tool once."""
    needs: dict[frozenset[str], tuple[str, ...]] = {}
    for group in gold:
        needs.setdefault(frozenset(group), tuple(dict.fromkeys(group)))
    return tuple(needs.values())


@dataclass(frozen=True)
class Dataset:
    """Definitions as they stand in the file, and cases over them; `key` is what a sample calls the set.

    `enriched` are example queries that its catalog gets in addition to the tools; None adds none.
    """

    name: str
    definitions: tuple[dict[str, Any], ...]
    cases: tuple[Case, ...]
    folder: Path | None = None  # where it was read from, if it was
    key: str = ""  # "name/cases" if not given
    ids_are_names: bool = False
    enriched: Examples | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or f"{self.name}/cases")

    @property
    def derived(self) -> int:
        """How many of the tools were made up by `toolsearch eval derive`, as their `_meta` says."""
        metas = (definition.get("_meta") for definition in self.definitions)
        return sum(isinstance(meta, Mapping) and meta.get("derived") is True for meta in metas)

    def catalog(self) -> Catalog:
        """The tools as a catalog; what could not be read is in its `quarantined`."""
        catalog = Catalog(self._tool(d) for d in self.definitions) if self.ids_are_names else Catalog(self.definitions)
        if self.enriched is not None:
            catalog.enrich(self.enriched)
        return catalog

    def examples(self) -> Examples:
        """The example queries of the set, from its `examples.jsonl`; empty without that file."""
        file = self.folder and self.folder / "examples.jsonl"
        return Examples.load(file) if file and file.is_file() else Examples()

    def _tool(self, definition: Mapping[str, Any]) -> Tool | Mapping[str, Any]:
        try:
            own = tool(definition, name=definition.get("native_name") or definition["name"])
        except DefinitionError:
            return definition  # the catalog sets it aside, with the reason
        return replace(own, id=str(definition["name"]))


def dataset_names() -> list[str]:
    """The names that `load` knows: of the data sets that ship, then of those that packages install."""
    return list(dict.fromkeys([*toolsearch_datasets.names(), *(point.name for point in installed_points(GROUP))]))


def load(source: str | Path) -> list[Dataset]:
    """The data sets behind a name or a folder: one, or one for each `queries*.jsonl` in it.

    A name is that of a data set that ships or, as a str, that a package installs. Raises `SetupError` naming the file
    and line for what cannot be read, and the package for what it installs and cannot be used.
    """
    name = str(source)
    points = [point for point in installed_points(GROUP) if point.name == source]
    if name in toolsearch_datasets.names():
        if points:
            raise SetupError(f"{named('data set', points[0])} has the name of one that ships; rename or remove it")
        return _read_folder(toolsearch_datasets.path(name), name)
    if len(points) > 1:
        raise SetupError(f"several packages install a data set {name!r}: remove all but one")
    if points:
        return _installed(points[0])
    if not Path(source).is_dir():
        raise SetupError(f"there is no data set and no folder {name!r}; {_known_names()}")
    return _read_folder(Path(source), Path(source).name)


def unknown_dataset(name: str) -> SetupError:
    """The error for a name that is neither shipped nor installed."""
    return SetupError(f"there is no data set {name!r}; {_known_names()}. For a folder use --data.")


def _known_names() -> str:
    shipped = toolsearch_datasets.names()
    others = [name for name in dataset_names() if name not in shipped]
    installed = f"; installed are: {', '.join(map(repr, others))}" if others else ""
    return f"shipped are: {', '.join(map(repr, shipped))}{installed}"


def _installed(point: EntryPoint) -> list[Dataset]:
    """What an entry point offers: a folder, or a function that gives a folder, a data set, or several."""
    described = named("data set", point)
    offered = load_point("data set", point)
    given: object = None
    try:
        given = offered() if callable(offered) else offered
        if isinstance(given, str | Path):
            return _read_folder(Path(given), point.name)
    except Exception as error:  # the function of another package may raise anything
        problem = str(error) if isinstance(error, SetupError) else f"{type(error).__name__}: {error}"
        if isinstance(given, str | Path) and not Path(given, "tools.jsonl").is_file():
            problem += ". If its source has the file, the build of the package left it out"
        raise SetupError(f"{described} cannot be read: {problem}") from error
    sets = [given] if isinstance(given, Dataset) else list(given) if isinstance(given, Sequence) else []
    if not sets or not all(isinstance(each, Dataset) for each in sets):
        raise SetupError(f"{described} must give a folder, a Dataset, or a list of them, not {type(given).__name__}")
    return sets


def _read_folder(folder: Path, name: str) -> list[Dataset]:
    if not (folder / "tools.jsonl").is_file():
        raise SetupError(f"the folder {str(folder)!r} has no tools.jsonl: it needs one definition a line")
    definitions = tuple(_lines(folder / "tools.jsonl", needed=("name",)))
    if (folder / "cases.jsonl").is_file():
        cases = tuple(_case(line) for line in _lines(folder / "cases.jsonl", needed=("id", "query", "gold")))
        return [Dataset(name, definitions, cases, folder, f"{name}/cases")]
    files = sorted(folder.glob("queries*.jsonl"), key=lambda file: file.stem)
    sets = []
    for file in files:
        cases = tuple(_research_case(line, file.stem) for line in _lines(file, needed=("id", "query", "gold")))
        key = f"{name}/{file.stem}"
        sets.append(Dataset(name if file.stem == "queries" else key, definitions, cases, folder, key, True))
    return sets or [Dataset(name, definitions, (), folder, f"{name}/queries", True)]


def require_gold(dataset: Dataset) -> None:
    """Raises `SetupError` for a case whose gold is no tool of the set: its score would say nothing about the search."""
    known = {tool.id for tool in dataset.catalog()}
    for case in dataset.cases:
        for name in (name for group in case.gold for name in group):
            if name not in known:
                raise SetupError(
                    f"the case {case.id!r} of {dataset.key!r} needs {name!r}, which is not a tool of the set"
                )


def only(datasets: Iterable[Dataset], samples: Mapping[str, Sequence[str]] | Sequence[str]) -> list[Dataset]:
    """The data sets cut down to the ids of a sample: ids by "set/file", or one list of ids for all.

    A set that the sample does not name is left out. Raises `SetupError` for an id no set has.
    """
    kept = []
    for dataset in datasets:
        ids = samples.get(dataset.key) if isinstance(samples, Mapping) else samples
        if ids is None:
            continue
        known = {case.id: case for case in dataset.cases}
        unknown = [i for i in ids if i not in known]
        if unknown and isinstance(samples, Mapping):
            raise SetupError(f"the sample of {dataset.key!r} names {unknown[0]!r}, which is not a case of it")
        wanted = set(ids)
        kept.append(replace(dataset, cases=tuple(case for case in dataset.cases if case.id in wanted)))
    if not any(dataset.cases for dataset in kept):
        raise SetupError("the sample holds no case of these data sets; its keys look like 'set/queries' or 'set/cases'")
    return kept


def read_samples(file: Path) -> dict[str, list[str]] | list[str]:
    """A sample from a JSON file: {"set/queries": [ids], …}, or a list of ids."""
    try:
        read = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise SetupError(f"there is no file {str(file)!r}") from None
    except ValueError as error:
        raise SetupError(f"{str(file)!r} is not valid JSON: {error}") from None
    lists = list(read.values()) if isinstance(read, dict) else [read]
    if not all(isinstance(ids, list) and all(isinstance(i, str) for i in ids) for ids in lists):
        raise SetupError(f'{str(file)!r} must hold a list of ids, or {{"set/queries": [ids]}}')
    sample: dict[str, list[str]] | list[str] = read
    return sample


def _case(line: Mapping[str, Any]) -> Case:
    return Case(
        id=line["id"],
        query=line["query"],
        gold=_groups(line["gold"]),
        kind=line.get("kind", ""),
        wording=line.get("wording", ""),
        steps=tuple(line.get("steps", ())),
        split=line.get("split", ""),
        language=str(line.get("language", "en")),
    )


def _research_case(line: Mapping[str, Any], stem: str) -> Case:
    gold = _groups(line.get("gold_groups") or line["gold"])
    kind = "unanswerable" if not gold else "multi" if len(distinct(gold)) > 1 else "single"
    wording = "agent" if stem.endswith("_agent") else ""
    language = str(line.get("language", "en"))
    return Case(id=line["id"], query=line["query"], gold=gold, kind=kind, wording=wording, language=language)


def _groups(gold: Any) -> Groups:
    """Gold as groups: a bare id is a group of one; {"any_of": groups} is understood too."""
    if isinstance(gold, Mapping):
        gold = gold.get("any_of", [])
    if isinstance(gold, str):
        gold = [gold]
    return tuple((group,) if isinstance(group, str) else tuple(group) for group in gold)


def _lines(file: Path, needed: Sequence[str]) -> list[dict[str, Any]]:
    lines = []
    try:
        whole = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{str(file)!r} cannot be read as UTF-8 text: {error}") from None
    for number, text in enumerate(whole.split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError as error:
            raise SetupError(f"{str(file)!r}, line {number}, is not valid JSON: {error}") from None
        if not isinstance(line, dict):
            raise SetupError(f"{str(file)!r}, line {number}, is not a JSON object")
        if missing := [key for key in needed if key not in line]:
            raise SetupError(f"{str(file)!r}, line {number}, has no {missing[0]!r}")
        for key in ("id", "query"):
            if key in needed and not (isinstance(line[key], str) and line[key].strip()):
                raise SetupError(f"{str(file)!r}, line {number}: the {key!r} must be text, not {line[key]!r}")
        lines.append(line)
    ids = [line["id"] for line in lines] if "id" in needed else []
    if twice := [i for i, times in Counter(ids).items() if times > 1]:
        raise SetupError(f"{str(file)!r} has the id {twice[0]!r} {ids.count(twice[0])} times; each case counts once")
    return lines
