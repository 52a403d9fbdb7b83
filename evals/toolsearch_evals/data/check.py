"""What is wrong with a data set, as sentences."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator

import toolsearch_datasets
from toolsearch_evals.data.cases import Dataset, near_names
from toolsearch_evals.data.files import read_text
from toolsearch_evals.reports.report import counted

__all__ = ["problems"]

LEAST_UNANSWERABLE = 0.1  # of the cases; fewer would hide a ranker that always returns something
LEAST_OF_A_KIND = 10  # cases
_KINDS = ("lexical", "paraphrase", "typo", "identifier", "parameter", "multi", "single", "unanswerable")
_FIELDS = ("id", "query", "gold", "kind", "wording", "steps", "split", "language", "note", "draft")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})*")


def problems(dataset: Dataset) -> list[str]:
    """One sentence for each mistake. A set that ships is also compared with the manifest."""
    return [
        *_tools(dataset),
        *_examples(dataset),
        *_cases(dataset),
        *_drafts(dataset),
        *_fields(dataset),
        *_shares(dataset),
        *_manifest(dataset),
    ]


def _tools(dataset: Dataset) -> Iterator[str]:
    catalog = dataset.catalog()
    yield from (f"the tool {entry.name!r} cannot be used: {entry.reason}" for entry in catalog.quarantined)
    twice = len(dataset.definitions) - len(catalog) - len(catalog.quarantined)
    if twice:
        yield f"{twice} definitions appear twice"


def _examples(dataset: Dataset) -> Iterator[str]:
    known = {tool.id for tool in dataset.catalog()}
    asked = {query.strip().casefold() for case in dataset.cases for query in (case.query, *case.steps)}
    for entry in dataset.examples().entries.values():
        if entry.tool not in known:
            yield f"examples.jsonl names {entry.tool!r}, which is not a tool of the set"
        if not entry.queries:
            yield f"examples.jsonl has no usable query for {entry.tool!r}"
        yield from (f"the example query {q!r} is a case" for q in entry.queries if q.strip().casefold() in asked)


def _cases(dataset: Dataset) -> Iterator[str]:
    catalog = dataset.catalog()
    for case_id, times in Counter(case.id for case in dataset.cases).items():
        if times > 1:
            yield f"the case id {case_id!r} is used {times} times"
    for text, times in Counter(case.query.strip().lower() for case in dataset.cases).items():
        if times > 1 and not dataset.ids_are_names:
            yield f"the query {text!r} appears {times} times"
    for case in dataset.cases:
        if not case.query.strip():
            yield f"case {case.id!r} has no query"
        for group in case.gold:
            if not group:
                yield f"case {case.id!r} has an empty group in its gold"
            yield from (
                f"case {case.id!r} names {i!r}, which is not a tool of the set{near_names(i, catalog)}"
                for i in group
                if i not in catalog
            )
        for group in case.repeated:
            yield f"case {case.id!r} has {' or '.join(map(repr, group))} twice in its gold; it counts once"
        if case.steps and len(case.steps) != len(case.gold):
            steps, needed = counted(len(case.steps), "step"), counted(len(case.gold), "needed tool")
            yield f"case {case.id!r} has {steps} for {needed}"
        if case.kind and case.kind not in _KINDS:
            yield f"case {case.id!r} is of the unknown kind {case.kind!r}; known are {', '.join(_KINDS)}"
        if case.kind and (case.kind == "unanswerable") != (not case.gold):
            yield f"case {case.id!r} is of kind {case.kind!r} with {counted(len(case.gold), 'needed tool')}"
        if case.kind == "multi" and len(case.gold) < 2:
            yield f"case {case.id!r} is of kind 'multi' and needs fewer than two tools"
        if case.wording not in ("", "user", "agent"):
            yield f"case {case.id!r} has the unknown wording {case.wording!r}; it is 'user' or 'agent'"
        if case.split not in ("", "train", "dev", "test"):
            yield f"case {case.id!r} has the unknown split {case.split!r}; it is 'train', 'dev' or 'test'"
        if not _LANGUAGE.fullmatch(case.language):
            yield f"case {case.id!r} has the language {case.language!r}; it is a code such as 'en' or 'pt-br'"


def _drafts(dataset: Dataset) -> Iterator[str]:
    drafts = sum(case.draft for case in dataset.cases)
    if drafts:
        of = f"{drafts} of {counted(len(dataset.cases), 'case')}"
        state = "is an unreviewed draft" if drafts == 1 else "are unreviewed drafts"
        yield f'{of} {state}: read each, correct it, and take "draft" out of its line'
    if dataset.empty_drafts:
        yield f"{counted(dataset.empty_drafts, 'draft')} without a query: write one, or delete the line"


def _fields(dataset: Dataset) -> Iterator[str]:
    """Fields of cases.jsonl that are not read, such as a misspelt one."""
    file = dataset.folder and dataset.folder / "cases.jsonl"
    if not file or not file.is_file():
        return
    for number, line in enumerate(read_text(file).split("\n"), 1):
        for name in json.loads(line) if line.strip() else ():
            if name not in _FIELDS:
                yield f"cases.jsonl, line {number}, has the unknown field {name!r}; known are {', '.join(_FIELDS)}"


def _shares(dataset: Dataset) -> Iterator[str]:
    if not dataset.cases:
        files = [*dataset.folder.glob("cases.jsonl"), *dataset.folder.glob("queries*.jsonl")] if dataset.folder else []
        needed = ": the folder needs a cases.jsonl with one case a line" if dataset.folder and not files else ""
        yield f"there are no cases{needed}"
        return
    unanswerable = sum(not case.gold for case in dataset.cases)
    if unanswerable < LEAST_UNANSWERABLE * len(dataset.cases):
        yield (
            f"{unanswerable} of {len(dataset.cases)} cases cannot be answered: below {LEAST_UNANSWERABLE:.0%}, a "
            f"search that always returns something goes unnoticed"
        )
    for (split, kind), count in sorted(
        Counter((case.split, case.kind) for case in dataset.cases if case.split).items()
    ):
        if count < LEAST_OF_A_KIND:
            of = f"of kind {kind!r}" if kind else "without a kind"
            yield f"the split {split!r} has only {counted(count, 'case')} {of}; {LEAST_OF_A_KIND} is the least"


def _manifest(dataset: Dataset) -> Iterator[str]:
    entry = toolsearch_datasets.manifest().get(dataset.name)
    if entry is None or toolsearch_datasets.path(dataset.name) != dataset.folder:
        return
    catalog = dataset.catalog()
    counted = {
        "tools": len(dataset.definitions),
        "servers": len(catalog.servers),
        "cases": len(dataset.cases),
        "unanswerable": sum(not case.gold for case in dataset.cases),
    }
    for what, count in counted.items():
        if entry.get(what) != count:
            yield f"the manifest says {entry.get(what)} {what}; there are {count}"
    for name, digest in entry["files"].items():
        file = dataset.folder / name
        # Line ends are made the same, for checkouts that change them.
        found = hashlib.sha256(file.read_bytes().replace(b"\r\n", b"\n")).hexdigest() if file.is_file() else None
        if found != digest:
            yield f"{name} is not the file of the manifest: its SHA-256 is {found or 'none, it is missing'}"
    for key in ("licence", "provenance", "title"):
        if not entry.get(key):
            yield f"the manifest has no {key!r}"
