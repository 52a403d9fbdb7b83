"""An evaluation of a model as a run: what it is of, played and kept, and its report made again without playing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from toolsearch import SetupError
from toolsearch.support.json_types import JsonObject
from toolsearch.support.redaction import redacted
from toolsearch_evals.agent.catalogs import all_definitions
from toolsearch_evals.agent.evaluation import AgentPlan, Outcome
from toolsearch_evals.agent.play import Asked
from toolsearch_evals.agent.report import agent_report
from toolsearch_evals.agent.world import DATA
from toolsearch_evals.backends import label
from toolsearch_evals.reports.report import Report, counted
from toolsearch_evals.runs.manifest import Manifest, index_hash
from toolsearch_evals.runs.reading import StoredRun

__all__ = ["KIND", "agent_manifest", "facts_of", "missing_sentences", "report_of", "score_agent"]

KIND = "agent"


def facts_of(plan: AgentPlan, asked: Asked, probe: JsonObject) -> dict[str, object]:
    """What is played, for a report and a manifest: neither the key nor the budget."""
    endpoint = asked.endpoint
    return {
        "model": endpoint.model,
        "endpoint": endpoint.place,
        "wire": endpoint.wire,
        "adapter": asked.adapter,
        "probe": probe.get("sentence", "That was not asked, since the adapter was given."),
        "options": redacted(json.dumps(dict(endpoint.options))) if endpoint.options else None,
        "streamed": endpoint.stream,
        "tools": list(plan.sizes),
        "arms": [arm.label for arm in plan.arms],
        "index": sorted({label(arm.index) for arm in plan.arms if arm.mode != "static"}),
        "tasks": [task.id for task in plan.chosen()],
        "repeats": plan.repeats,
        "seed": plan.seed,
        "tokenizer": asked.tokens.counter.name,
    }


def agent_manifest(command: str, plan: AgentPlan, asked: Asked, probe: JsonObject) -> Manifest:
    """What such a run is of. The sentence of the probe is told, and may differ when the run goes on."""
    facts = facts_of(plan, asked, probe)
    searched = sorted({arm.index for arm in plan.arms if arm.mode != "static"})
    return Manifest(
        KIND,
        command,
        data={"tasks": _hash([(DATA / name).read_text("utf-8") for name in ("tasks.jsonl", "state.json")])},
        catalog={"world and commons": _hash(all_definitions())},
        index={label(each): index_hash(each) for each in searched},
        seed=plan.seed,
        tokenizer={"requests": asked.tokens.counter.name},
        profile=asked.prices_in_words,
        settings={key: value for key, value in facts.items() if key != "probe"},
        facts={"probe": probe},
    )


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def report_of(outcome: Outcome, facts: Mapping[str, object]) -> Report:
    """The report on what was played; it begins with what is missing. Raises `SetupError` if nothing was."""
    if not outcome.scores:
        raise SetupError(f"no task was played to its end: {outcome.stopped}")
    return agent_report(outcome.scores, facts, missing_sentences(outcome))


def missing_sentences(outcome: Outcome) -> list[str]:
    """That the evaluation is not whole, and which tasks are missing, if it is not."""
    if not outcome.missing:
        return []
    whole = len(outcome.missing) + len(outcome.scores)
    tasks = dict.fromkeys(unit.task.id for unit in outcome.missing)
    names = ", ".join([*tasks][:8]) + (", …" if len(tasks) > 8 else "")
    why = outcome.stopped or "it was interrupted"
    return [f"Not whole: {why}. {len(outcome.missing)} of {counted(whole, 'task')} are missing, of {names}."]


def score_agent(stored: StoredRun) -> Report:
    """The report on what a run has kept, without asking the endpoint."""
    scores: Sequence[JsonObject] = list(stored.scores())
    probe = stored.manifest.facts.get("probe") or {}
    facts = {**stored.manifest.settings, "probe": probe.get("sentence", "That was not asked.")}
    return agent_report(scores, facts)
