"""Two traces side by side: `toolsearch inspect A --against B`."""

from pathlib import Path

import pytest

from tests.evals.inspection.conftest import TALKS, play, query, reply
from tests.evals.inspection.test_page import driven, in_a_browser
from toolsearch.stores import SqliteStore
from toolsearch_evals.inspection import Trace, Words, against_report, inspect_page, read_trace
from toolsearch_evals.inspection.against import pairs_of

SAID = TALKS["desk-1"][0][0]
QUICKER = [
    reply(query("delete invoice")),
    reply(("delete_invoice", {"which": "7", "password": "swordfish"}), read=1_700, cached=1_408),
    reply(text="Deleted.", read=1_900, cached=1_664),
]


@pytest.fixture(scope="module")
def traces(store: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Trace]:
    file = tmp_path_factory.mktemp("other") / "other.db"
    with SqliteStore(file) as kept:
        play(
            kept, {"desk-1": [(SAID, QUICKER, True)], "named-anew": TALKS["desk-2"], "new": [("Hi.", [reply()], True)]}
        )
    return read_trace([store], Words()), read_trace([file], Words())


def test_conversations_belong_together_by_id_or_else_by_how_they_begin(traces: tuple[Trace, Trace]) -> None:
    one, other = traces
    named = [
        tuple(None if at is None else of.conversations[at].id for at, of in zip(pair, traces, strict=True))
        for pair in pairs_of(one.conversations, other.conversations)
    ]
    assert named == [("desk-2", "named-anew"), ("desk-1", "desk-1"), ("desk-3", None), (None, "new")]
    assert pairs_of(one.conversations[:1], other.conversations[:1]) == [(0, 0)]
    assert pairs_of([], other.conversations) == [(None, 0), (None, 1), (None, 2)]


def test_the_report_says_what_differs(traces: tuple[Trace, Trace]) -> None:
    report = against_report(*traces)
    assert "2 conversations are in both, 1 only in A, 1 only in B" in report.headline[0]
    assert report.headline[1].startswith("B has 1 fewer search (−33 %), 2 fewer calls (−50 %), ")
    tables = {table.title: table for table in report.tables}
    a, b, minus = tables["Both traces"].rows
    assert (a["searches"], b["searches"], minus["searches"]) == (3, 2, -1)
    (row,) = [row for row in tables["Conversation by conversation"].rows if row["conversation"] == "desk-1"]
    assert (row["only A"], row["only B"]) == ("invoice/find_invoice", "")
    assert (row["tokens A"], row["tokens B"]) == (11_720, 5_160)
    alone = [row for row in tables["Conversation by conversation"].rows if row["conversation"] == "new"]
    assert alone[0]["turns A"] is None
    same = against_report(traces[0], traces[0])
    assert same.headline[1] == "B has as much as A."
    assert len(report.data["against"]) == 3


@in_a_browser
def test_J53_two_traces_are_shown_side_by_side_and_what_only_one_did_is_marked(
    traces: tuple[Trace, Trace], tmp_path: Path
) -> None:
    driver = """(() => {
        set("conversation", "desk-1"); open(".turn");
        const sides = all(".row.two:not(.heads)").slice(0, 1).flatMap((row) => [...row.children]);
        const is_only = (step) => step.querySelector(".only");
        const only = (side) => all(".step", side).filter(is_only).map((step) => step.innerText);
        const left = sides.map((side) => side.getBoundingClientRect().left);
        return [all(".heads b").map((head) => head.textContent), ...sides.map(only), left, told()];
    })()"""
    page = inspect_page(against_report(*traces))
    heads, a, b, left, told = driven(page, tmp_path, driver, "--window-size=1200,900")
    assert heads == ["A: journals.db, desk-1", "B: other.db, desk-1"]
    assert [text.split()[0] for text in a] == ["Search", "Call", "Call"]
    assert [text.split()[0] for text in b] == ["Search"]
    assert left[0] < left[1]
    assert told == "2 of 5 turns in 1 of 4 conversations"
    narrow = driven(page, tmp_path, driver, "--window-size=500,900")
    assert narrow[3][0] == narrow[3][1]
