"""Labelled cases and the tools they are about, read from a folder and checked.

Two forms are read. Ours has `tools.jsonl` and `cases.jsonl`, and tool ids are "server/name" (see a set's CARD.md). That
of public research sets has `tools.jsonl` with names that are unique in the set, and any number of `queries*.jsonl` with
"id", "query", "gold" and perhaps "gold_groups"; the unique name is the id, and `native_name` is the tool's own name.
The tools may also stand in another file, in any form that `Catalog` reads, and the sets of `public_forms` in their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import toolsearch_datasets
from toolsearch import Catalog, DefinitionError, SetupError, Tool, tool
from toolsearch.catalog import Examples
from toolsearch_evals.data.files import read_definitions, read_json, read_lines, read_text
from toolsearch_evals.data.public_forms import FORMS, form_of, read_public
from toolsearch_evals.installed import installed_points, load_point, named

__all__ = [
    "GROUP",
    "Case",
    "Dataset",
    "Groups",
    "dataset_names",
    "distinct",
    "is_case_file",
    "load",
    "near_names",
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
    the set does not say. `language` is that of the query, a code such as "en" or "pt-br". A `draft` was made by a
    command, and nobody has reviewed it.
    """

    id: str
    query: str
    gold: Groups = ()
    kind: str = ""
    wording: str = ""
    steps: tuple[str, ...] = ()
    split: str = ""
    language: str = "en"
    draft: bool = False
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

    `enriched` are example queries that its catalog gets in addition to the tools; None adds none. `empty_drafts` counts
    the drafts without a query, which are no cases yet. `notes` are sentences on what was not read.
    """

    name: str
    definitions: tuple[dict[str, Any], ...]
    cases: tuple[Case, ...]
    folder: Path | None = None  # where it was read from, if it was
    key: str = ""  # "name/cases" if not given
    ids_are_names: bool = False
    enriched: Examples | None = None
    empty_drafts: int = 0
    notes: tuple[str, ...] = ()

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


def load(source: str | Path, *, cases: Path | None = None) -> list[Dataset]:
    """The data sets behind a name, a folder or a file: one, or one for each `queries*.jsonl` in a folder.

    A name is that of a data set that ships or, as a str, that a package installs. A file holds tools; its `cases` are
    those of the file given, else of the `cases.jsonl` beside it. "bfcl:FOLDER" reads a public set in its own form; a
    folder that has no tools is read in the form that its files give away. Raises `SetupError` naming the file and line
    for what cannot be read, and the package for what it installs and cannot be used.
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
    if (prefixed := re.fullmatch(r"([a-z]{2,}):(.+)", name)) and not Path(source).exists():
        return [_public_set(prefixed[1], Path(prefixed[2]))]
    if Path(source).is_file():
        return [_from_file(Path(source), cases)]
    if not Path(source).is_dir():
        raise SetupError(f"there is no data set and no folder {name!r}; {_known_names()}")
    return _read_folder(Path(source), Path(source).resolve().name)


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
    tools = next((file for end in ("jsonl", "json", "ndjson") if (file := folder / f"tools.{end}").is_file()), None)
    queries = sorted(folder.glob("queries*.jsonl"), key=lambda file: file.stem)
    is_whole = tools is not None and ((folder / "cases.jsonl").is_file() or queries)
    if not is_whole and (form := form_of(folder)) is not None:
        return [_public_set(form, folder)]
    if tools is None:
        raise SetupError(
            f"the folder {str(folder)!r} has no tools.jsonl and no tools.json, and is not in the form of a public set "
            f"({', '.join(form.title for form in FORMS.values())})"
        )
    if (folder / "cases.jsonl").is_file() or (tools.suffix != ".jsonl" and not queries):
        return [_from_file(tools, None, name)]
    definitions = tuple(read_lines(tools, needed=("name",)))
    sets = []
    for file in queries:
        cases = tuple(_research_case(line, file.stem) for line in read_lines(file, needed=("id", "query", "gold")))
        key = f"{name}/{file.stem}"
        sets.append(Dataset(name if file.stem == "queries" else key, definitions, cases, folder, key, True))
    return sets or [Dataset(name, definitions, (), folder, f"{name}/queries", True)]


def _from_file(tools: Path, cases: Path | None, name: str = "") -> Dataset:
    """Our form: a file of tools, and one of cases."""
    beside = tools.parent / "cases.jsonl"
    file = cases or (beside if beside.is_file() and beside != tools else None)
    if tools.name == "cases.jsonl":
        raise SetupError(f"{str(tools)!r} has cases; name the file of their tools, or the folder of both")
    definitions = tuple(read_lines(tools, needed=("name",))) if tools.name == "tools.jsonl" else read_definitions(tools)
    lines = read_lines(file, needed=("id", "query", "gold")) if file else []
    made = [_case(line) for line in lines]
    kept = tuple(case for case in made if case.query.strip())
    folder = tools.parent if file in (None, beside) else None
    return Dataset(name or tools.stem, definitions, kept, folder, empty_drafts=len(made) - len(kept))


def is_case_file(file: Path) -> bool:
    """Whether a file has cases: whether its first line is an object with a query."""
    if file.suffix != ".jsonl" or not file.is_file():
        return False
    first = next((line for line in read_text(file).split("\n") if line.strip()), "")
    return bool(re.match(r"\s*\{", first)) and '"query"' in first and '"gold"' in first


def _public_set(form: str, folder: Path) -> Dataset:
    read = read_public(form, folder)
    cases = tuple(_research_case({"gold": (), **row}, form) for row in read.rows)
    return Dataset(form, read.definitions, cases, None, f"{form}/queries", True, notes=read.notes)


def require_gold(dataset: Dataset) -> None:
    """Raises `SetupError` for a case whose gold is no tool of the set: its score would say nothing about the search."""
    catalog = dataset.catalog()
    for case in dataset.cases:
        for name in (name for group in case.gold for name in group):
            if name not in catalog:
                raise SetupError(
                    f"the case {case.id!r} of {dataset.key!r} needs {name!r}, which is not a tool of the set"
                    f"{near_names(name, catalog)}"
                )


def near_names(name: str, catalog: Catalog) -> str:
    """The end of a sentence about a name that no tool has: the tools that may be meant."""
    own = [tool.id for tool in catalog.named(name)] or [tool.id for tool in catalog.near(name)]
    return f"; did you mean {' or '.join(map(repr, own))}?" if own else ""


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
    read = read_json(file)
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
        draft=line.get("draft") is True,
    )


def _research_case(line: Mapping[str, Any], stem: str) -> Case:
    gold = _groups(line.get("gold_groups") or line["gold"])
    kind = "unanswerable" if not gold else "multi" if len(distinct(gold)) > 1 else "single"
    return Case(
        id=line["id"],
        query=line["query"],
        gold=gold,
        kind=kind,
        wording="agent" if stem.endswith("_agent") else line.get("wording", ""),
        split=line.get("split", ""),
        language=str(line.get("language", "en")),
    )


def _groups(gold: Any) -> Groups:
    """Gold as groups: a bare id is a group of one; {"any_of": groups} is understood too."""
    if isinstance(gold, Mapping):
        gold = gold.get("any_of", [])
    if isinstance(gold, str):
        gold = [gold]
    return tuple((group,) if isinstance(group, str) else tuple(group) for group in gold)
