"""The published form of each file of a run, as JSON Schema (2020-12).

manifest, unit, event, score and seal are schemas of one line or file each; report is that of `report.json`.
"""

from __future__ import annotations

import json
from importlib.resources import files

from toolsearch.support.json_types import JsonObject

__all__ = ["NAMES", "schema"]

NAMES = ("manifest", "unit", "event", "score", "seal", "report")


def schema(name: str) -> JsonObject:
    """The schema of that name, one of `NAMES`."""
    text = (files("toolsearch_evals.runs.schemas") / f"{name}.schema.json").read_text("utf-8")
    read: JsonObject = json.loads(text)
    return read
