"""The page of `toolsearch inspect`: the report on a trace, with a timeline that its script draws from the data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from toolsearch_evals.reports.page import Inset, page
from toolsearch_evals.reports.report import Report

__all__ = ["MOST_DATA", "inspect_page"]

MOST_DATA = 32_000_000  # characters of the data of a page; steps of older conversations that have no room are left out
_KEY = (("cached", "from the cache"), ("lost", "lost by the cache"), ("fresh", "new"), ("written", "written"))


def inspect_page(report: Report, most: int = MOST_DATA) -> str:
    """One self-contained page, which loads nothing."""
    data = {key: report.data[key] for key in ("conversations", "against", "pairs") if key in report.data}
    space = most
    for key in ("conversations", "against"):
        if key in data:
            data[key], space = _fitting(data[key], space)
    return page(report, Inset("Timeline", "timeline", _html(), _asset("timeline.css"), _asset("timeline.js"), data))


def _fitting(conversations: Sequence[Mapping[str, Any]], space: int) -> tuple[list[Mapping[str, Any]], int]:
    """The conversations, without the steps of those for which there is no room."""
    kept: list[Mapping[str, Any]] = []
    for each in conversations:
        size = len(json.dumps(each, ensure_ascii=False))
        if size > space:
            each = {**each, "turns": [{**turn, "steps": []} for turn in each["turns"]]}  # noqa: PLW2901
        else:
            space -= size
        kept.append(each)
    return kept, space


def _html() -> str:
    key = "".join(
        f'<span><span class="tokens" aria-hidden="true"><span class="{name}"></span></span>{told}</span>'
        for name, told in _KEY
    )
    return (
        f'<div class="key" aria-label="Tokens of a request">{key}</div><div id="timeline-of-all"></div>'
        '<noscript><p class="note">The timeline needs a script. The tables do not, and <code>--format json</code> has '
        "every turn.</p></noscript>"
    )


@cache
def _asset(name: str) -> str:
    return resources.files("toolsearch_evals.inspection").joinpath(name).read_text("utf-8")
