"""What the page of a report shows besides tables: the figures at its top, and each task that was not met."""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolsearch.support.json_types import JsonObject
from toolsearch_evals.agent.tasks import tasks
from toolsearch_evals.reports.report import Card, Detail, Details, Said, counted, shown

__all__ = ["cards_of", "unmet_tasks"]

MOST_CASES = 40  # so that a page stays small


def cards_of(
    rows: Sequence[JsonObject], pairs: Sequence[JsonObject], checked: Sequence[JsonObject]
) -> tuple[Card, ...]:
    """Four figures: those of the last search arm in the largest catalog; of sending all, if no arm searches."""
    row = rows[-1]
    where = f"{row['arm']}, {counted(row['tools'], 'tool')}"
    played = f"{where}, {counted(row['n'], 'task')}"
    pair = next((p for p in pairs if (p["tools"], p["arm"]) == (row["tools"], row["arm"])), None)
    told = [each for each in checked if each["difference"] is not None]
    cards = [Card("Tasks met", shown(row["success"], "share"), _between(row, "success", played))]
    if pair is not None and pair["input saved"] is not None:
        note = _between(pair, "input saved", f"{where}, against sending all")
        cards.append(Card("Input tokens saved", shown(pair["input saved"], "share"), note))
    if row["dollars a 1,000 met"] is not None:
        cards.append(Card("1,000 tasks met cost", shown(row["dollars a 1,000 met"], "dollars"), where))
    if told:
        billed, count = sum(each["billed"] for each in told), sum(each["counted"] for each in told)
        requests = sum(each["billed requests"] for each in told)
        card = Card("Billed against counted", f"{(billed - count) / count:+.1%}", counted(requests, "request"))
        cards.append(card)
    return tuple(cards)


def _between(row: JsonObject, name: str, where: str) -> str:
    low, high = row[f"{name} low"], row[f"{name} high"]
    return where if low is None or high is None else f"{shown(low, 'share')} to {shown(high, 'share')}; {where}"


def unmet_tasks(scores: Sequence[JsonObject]) -> tuple[Details, ...]:
    """The tasks that were not met, each with what is wrong and the calls that were made."""
    unmet = [each for each in scores if not each["success"]]
    if not unmet:
        return ()
    asked: dict[str, str] = {task.id: task.text for task in tasks()}
    details = tuple(_detail(each, asked.get(each["case"], "")) for each in unmet[:MOST_CASES])
    note = "" if len(unmet) <= MOST_CASES else f"The first {MOST_CASES} of {len(unmet)}; all are in the run's scores."
    return (Details("Tasks not met, one by one", details, note),)


def _detail(score: JsonObject, asked: str) -> Detail:
    facts = [("wrong", problem) for problem in score["problems"]]
    facts += [("ended", score["reason"]), ("replies", str(score["rounds"])), ("seconds", f"{score['seconds']:.1f}")]
    calls = [
        Said(
            f"call, {each['status']}",
            f"{each['tool'] or 'no such tool'} {json.dumps(each['arguments'], ensure_ascii=False)}",
        )
        for each in score["calls"]
    ]
    said = (Said("user", asked), *calls, *([Said("model", answer)] if (answer := score.get("answer")) else []))
    return Detail(f"{score['case']}: {score['arm']}, {counted(score['tools'], 'tool')}", tuple(facts), said)
