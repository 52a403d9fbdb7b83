"""Confidence of an index: fitted on the splits "train" and "dev" of a data set, judged on "test" and on other sets.
An index can be calibrated if its `Scored` have `signals`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from toolsearch import Catalog, Scored, Settings, SetupError, ToolIndex, find
from toolsearch.search import Fit, Verdict, verdict
from toolsearch.search.confidence import DEPTH, PROBE, PROBED
from toolsearch_evals.backends import label, open_backend
from toolsearch_evals.confidence.elsewhere import judge, judged_tables, needed
from toolsearch_evals.confidence.fitting import LabelledSearch, fit
from toolsearch_evals.data.cases import Case, Dataset
from toolsearch_evals.ranking.measures import wilson
from toolsearch_evals.reports.report import Column, Report, ReportTable

__all__ = ["calibrate", "searches"]

FITTED, JUDGED = ("train", "dev"), "test"
BINS = 10
SURE_FROM, NOTHING_BELOW = Settings().sure_from, Settings().nothing_below
BORROWING = {"best": ("hybrid:minilm", "hybrid:multilingual")}  # indexes that use the fits of others, and of which
Tick = Callable[[str], None]


def calibrate(
    dataset: Dataset, indexes: Sequence[str], tick: Tick = lambda _: None, *, others: Sequence[Dataset] = ()
) -> tuple[Report, list[dict[str, Any]]]:
    """The report on these indexes by notation, and an entry for each as `fitting.write_fits` takes them.

    `others` are data sets that nothing is fitted on; the fits are judged on them as well. `tick` is called after each
    search. Raises `SetupError` for a data set that lacks the splits, for an index that uses the fits of others, and for
    one whose hits have no signals.
    """
    for name in BORROWING.keys() & set(indexes):
        others_of = " and ".join(BORROWING[name])
        raise SetupError(f"the index {name!r} has no fit of its own, it uses those of others: calibrate {others_of}")
    cases = {split: [case for case in dataset.cases if case.split in split] for split in (FITTED, (JUDGED,))}
    if not all(cases.values()):
        raise SetupError(
            f"{dataset.key!r} has no splits to fit on and to judge by: some cases must be in 'dev' and some in 'test'"
        )
    catalog = dataset.catalog()
    entries: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    bins: list[dict[str, Any]] = []
    signals: list[dict[str, Any]] = []
    far: tuple[list[dict[str, Any]], list[dict[str, Any]]] = [], []
    remembered = cache(_CachingEncoder)  # one for each encoder, shared by the indexes
    for notation in indexes:
        index = open_backend(notation, remembered)
        index.add(list(catalog))
        name = label(notation)
        fitted = searches(catalog, index, cases[FITTED], partial(tick, f"{name}, fitting"))
        judged = searches(catalog, index, cases[JUDGED,], partial(tick, f"{name}, judging"))
        made = fit(fitted)
        place = {"index": name}
        entries.append(_entry(index, dataset, fitted, made) | _probe(index))
        verdicts += [place | row for row in _verdicts(judged, made)]
        bins += [place | row for row in _bins(judged, made)]
        signals += [place | {"signal": name, "weight": weight} for name, weight in made.weights.items()]
        opened = partial(open_backend, notation, remembered)
        for rows, more in zip(far, judge(others, opened, made, partial(tick, f"{name}, others")), strict=True):
            rows += [place | row for row in more]
    parameters = {"data sets": [dataset.key], "indexes": [label(each) for each in indexes]}
    if others:
        parameters["judged on"] = [each.key for each in others]
    report = _calibration_report(verdicts, bins, signals, entries, parameters)
    return replace(report, tables=(*report.tables, *judged_tables(*far))), entries


def searches(
    catalog: Catalog, index: ToolIndex, cases: Sequence[Case], tick: Callable[[], None]
) -> list[LabelledSearch]:
    """Searches for each case; for a case that tools can meet, once more with those tools taken out of the index."""
    found = []
    silent = _FindsNothing()
    for case in cases:
        gold = needed(case)
        hits = find(catalog, silent, case.query)
        named = bool(hits.hits or hits.unknown)
        found.append(_search(case, index.search(case.query, DEPTH), gold, named=named))
        if gold and not named:
            index.remove(sorted(gold))
            found.append(_search(case, index.search(case.query, DEPTH), gold, left_out=True))
            index.add([catalog[tool_id] for tool_id in sorted(gold)])
        tick()
    if not any(any(each.signals) for each in found):
        raise SetupError(f"the index {index.name!r} gives no signals with its hits, so its confidence cannot be fitted")
    return found


class _CachingEncoder:
    """An encoder that remembers the vectors of documents: tools are removed and added again for each case."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._kept: dict[str, Any] = {}
        self.name, self.width = encoder.name, encoder.width

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        if query:
            return self._encoder.encode(texts, query=True)
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new:
            rows = self._encoder.encode(new)
            if len(rows) != len(new):
                raise SetupError(f"the encoder {self.name!r} gave {len(rows)} rows for {len(new)} texts")
            self._kept.update(zip(new, map(copy, rows), strict=True))  # the encoder may use the array again
        return [self._kept[text] for text in texts]


def _probe(index: ToolIndex) -> dict[str, list[float]]:
    """What identifies the encoder even under another name; see `Fit.load`."""
    encoder: Any = getattr(index, "encoder", None)
    # An index of another package may call something else `encoder`.
    if isinstance(encoder, str) or not hasattr(encoder, "encode"):
        return {}
    (row,) = encoder.encode([PROBE], query=True)
    length = sum(float(number) ** 2 for number in row) ** 0.5
    return {"probe": [round(float(number) / length, 3) for number in row[:PROBED]]} if length else {}


class _FindsNothing:
    """An index that finds nothing: with it, `find` returns only the tools that a query names."""

    name = "silent"

    def add(self, tools: Any) -> None: ...
    def remove(self, ids: Any) -> None: ...
    def search(self, query: str, limit: int, among: AbstractSet[str] | None = None) -> list[Scored]:
        return []


def _search(
    case: Case, scored: Sequence[Scored], gold: AbstractSet[str], *, named: bool = False, left_out: bool = False
) -> LabelledSearch:
    signals = tuple(dict(each.signals or {}) for each in scored)
    return LabelledSearch(case, signals, tuple(each.id in gold for each in scored), named, left_out)


def _entry(index: ToolIndex, dataset: Dataset, found: Sequence[LabelledSearch], made: Fit) -> dict[str, Any]:
    cases = [each.case for each in found if not each.left_out]
    return {
        "index": index.name,
        "encoder": getattr(getattr(index, "encoder", None), "name", ""),
        "data set": dataset.key,
        "splits": [split for split in FITTED if any(case.split == split for case in cases)],
        "cases": len(cases),
        "unanswerable": sum(not case.gold for case in cases),
        "date": datetime.now(UTC).date().isoformat(),
        "bias": made.bias,
        "weights": dict(made.weights),
        "offset": made.offset,
        "slope": made.slope,
    }


def _verdict_of(each: LabelledSearch, made: Fit) -> tuple[list[float], Verdict | None]:
    """P(relevant) of each hit, and the verdict that `find` gives."""
    sure = [made.relevant(signals) for signals in each.signals]
    return sure, "found" if each.named else verdict(sure, made.answerable(sure), SURE_FROM, NOTHING_BELOW)


def _verdicts(judged: Sequence[LabelledSearch], made: Fit) -> list[dict[str, Any]]:
    """How often each kind of request gets which verdict, with Wilson's 95 % intervals."""
    kinds = {
        "answerable": [each for each in judged if each.answerable],
        "unanswerable": [each for each in judged if not each.case.gold],
        "its tools left out": [each for each in judged if each.left_out],
    }
    rows = []
    for kind, of in kinds.items():
        given = [_verdict_of(each, made)[1] for each in of]
        row: dict[str, Any] = {"requests": kind, "n": len(of)}
        for each in ("found", "weak", "none"):
            times = given.count(each)
            row |= dict(zip((each, f"{each} low", f"{each} high"), _share(times, len(of)), strict=True))
        right = [e.named or e.relevant[0] for e, v in zip(of, given, strict=True) if v == "found" and e.answerable]
        rows.append(row | {"first is right": sum(right) / len(right) if right else None})
    return rows


def _share(times: int, of: int) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if not of else (times / of, *wilson(times, of))


def _bins(judged: Sequence[LabelledSearch], made: Fit) -> list[dict[str, Any]]:
    """P(relevant) of first hits, and how many of them are relevant: of all hits, then by tenths."""
    pairs = [
        (made.relevant(each.signals[0]), each.relevant[0])
        for each in judged
        if each.signals and not each.named and not each.left_out
    ]
    tenths = [[pair for pair in pairs if min(int(pair[0] * BINS), BINS - 1) == at] for at in range(BINS)]
    rows = [_bin(f"{at / BINS:.1f} – {(at + 1) / BINS:.1f}", of) for at, of in enumerate(tenths) if of]
    error = sum(row["n"] * abs(row["confidence"] - row["relevant"]) for row in rows) / len(pairs)
    brier = sum((p - relevant) ** 2 for p, relevant in pairs) / len(pairs)
    return [_bin("all", pairs) | {"calibration error": error, "Brier": brier}, *rows]


def _bin(said: str, of: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    confidence, relevant = sum(p for p, _ in of) / len(of), sum(y for _, y in of) / len(of)
    return {"said": said, "n": len(of), "confidence": confidence, "relevant": relevant}


def _calibration_report(
    verdicts: list[dict[str, Any]],
    bins: list[dict[str, Any]],
    signals: list[dict[str, Any]],
    entries: list[dict[str, Any]],
    parameters: dict[str, Any],
) -> Report:
    return Report(
        kind="calibration",
        title="How far confidence can be trusted",
        headline=_headline(verdicts, bins),
        parameters=parameters,
        tables=(
            ReportTable("Verdicts", _VERDICT_COLUMNS, verdicts),
            ReportTable("Confidence of first hits", _BIN_COLUMNS, bins),
            ReportTable("The model", _SIGNAL_COLUMNS, signals),
        ),
        measured=_MEASURED,
        limits=(
            "In another catalog, with other requests, the same signals may mean more or less.",
            "Labels are incomplete: a fitting tool that they do not name counts as irrelevant.",
        ),
        data={"fits": entries},
    )


def _headline(verdicts: Sequence[dict[str, Any]], bins: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    of = {(row["index"], row["requests"]): row for row in verdicts}
    whole = {row["index"]: row for row in bins if row["said"] == "all"}
    return tuple(
        f"{name}: {_percent(of[name, 'unanswerable']['found'])} of the unanswerable requests come back as found, "
        f"{_percent(of[name, 'answerable']['none'])} of the answerable ones as none; calibration error "
        f"{row['calibration error']:.3f} (test split)."
        for name, row in whole.items()
    )


def _percent(share: float | None) -> str:
    """A share as a sentence states it."""
    return "none" if share is None else f"{share:.1%}"


_VERDICT_COLUMNS = (
    Column("index", "index"),
    Column("requests", "requests"),
    Column("n", "n", "count"),
    *(
        column
        for name in ("found", "weak", "none")
        for column in (Column(name, name, "share"), Column(f"{name} high", "at most", "share"))
    ),
    Column("first is right", "found: first is right", "share"),
)
_BIN_COLUMNS = (
    Column("index", "index"),
    Column("said", "confidence"),
    Column("n", "n", "count"),
    Column("confidence", "mean", "score"),
    Column("relevant", "relevant", "score"),
    Column("calibration error", "calibration error", "score"),
    Column("Brier", "Brier", "score"),
)
_SIGNAL_COLUMNS = (Column("index", "index"), Column("signal", "signal"), Column("weight", "weight", "number"))
_MEASURED = (
    (
        "Fitted on the splits train and dev, judged on test, with the default thresholds. On other sets nothing is "
        "fitted: their own requests can be met, those of another set are about something else."
    ),
    (
        f"found: some hit has a confidence of at least {SURE_FROM}, or the query names a tool. none: the probability "
        "that some tool can do it, computed as if half of all requests could not be met, is below "
        f"{NOTHING_BELOW}. weak: neither."
    ),
    "at most: the upper end of Wilson's 95 % interval.",
    (
        "its tools left out: the answerable requests once more, with every tool that meets them taken out of "
        "the catalog. They are harder to recognise than real requests that no tool can meet, because similar tools "
        "are left."
    ),
    (
        "calibration error: the mean distance between confidence and the share of relevant hits over ten bins of "
        "confidence, weighted by their hits. Brier: the mean squared distance between confidence and relevance. Both "
        "are over first hits only."
    ),
)
