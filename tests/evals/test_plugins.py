"""What other packages add: measures, data sets and wire formats, each installed for real in a folder on the path."""

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolsearch import SetupError
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import Case, Dataset, load
from toolsearch_evals.data.derive import write_derived_set
from toolsearch_evals.ranking.measures import MEASURES, JudgedCase, Measure, score_of
from toolsearch_evals.ranking.rank import ranking
from toolsearch_evals.reports.forms import FORMS
from toolsearch_evals.savings.formats import FORMATS
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.sweep import SweepPlan, sweep
from toolsearch_evals.testing import check_format, check_measure

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package of one module: its name, its code, and its entry points by group."""

    def installed(package: str, code: str, **groups: str) -> Path:
        place = tmp_path / "site"
        place.mkdir(exist_ok=True)
        (place / f"{package}_code.py").write_text(code, "utf-8")
        monkeypatch.delitem(sys.modules, f"{package}_code", raising=False)
        info = place / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", "utf-8")
        points = "".join(f"[toolsearch.{group}]\n{lines}\n" for group, lines in groups.items())
        (info / "entry_points.txt").write_text(points, "utf-8")
        monkeypatch.syspath_prepend(str(place))
        return place

    return installed


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


TICKETS = Dataset(
    "tickets",
    ({"name": "open_ticket", "description": "Opens a ticket."}, {"name": "close_ticket", "description": "Closes one."}),
    (Case("1", "open a ticket", (("open_ticket",),)), Case("2", "sing")),
    Path(),
    "tickets/cases",
)

RECIPROCAL = """
from toolsearch_evals.ranking.measures import Measure

def score(retrieved, gold):
    wanted = {tool_id for group in gold for tool_id in group}
    return next((1 / place for place, tool_id in enumerate(retrieved, 1) if tool_id in wanted), 0)

MRR = Measure("MRR", score, "One divided by the place of the first needed tool.", has_interval=True)
LOUD = Measure("loud", lambda retrieved, gold: 7, "Always seven.")
BROKEN = Measure("broken", lambda retrieved, gold: gold["x"], "Fails.")
HIDDEN = Measure("hidden", score, "In the files only.", shown=False)
AGAIN = Measure("R@5", score, "A name that is taken.")
END = Measure("R@5 low", score, "A name that is taken too.")
NONE = score
"""


def test_an_installed_measure_is_in_every_form_of_a_ranking(install: Install, tmp_path: Path) -> None:
    install("ranks", RECIPROCAL, measures="mrr = ranks_code:MRR\nhidden = ranks_code:HIDDEN")
    out = tmp_path / "out"
    table = run("ranking", "--index", "keyword", "--split", "dev", "--out", str(out))
    assert "MRR" in table
    assert "hidden" not in table
    row = json.loads((out / "report.json").read_text("utf-8"))["tables"][0]["rows"][0]
    assert 0 < row["MRR low"] < row["MRR"] < row["MRR high"] <= 1
    assert row["hidden"] == row["MRR"]
    assert list(row).index("C@5") < list(row).index("MRR"), "ours come first"
    (first, *_) = csv.DictReader((out / "report.csv").read_text("utf-8").splitlines())
    assert float(first["MRR"]) == row["MRR"]
    for form in ("md", "html"):
        assert "MRR: One divided by the place" in (out / f"report.{form}").read_text("utf-8")


def test_a_measure_can_be_passed_in_python_and_is_in_the_mean_over_sets() -> None:
    first = Measure("first", lambda retrieved, gold: float(retrieved[0] in gold[0]), "Whether the first tool serves.")
    report = ranking([TICKETS, TICKETS], ["keyword"], measures=[first])
    assert report.tables[0].rows[0]["first"] == 1
    assert report.tables[0].rows[0]["dataset"] == "mean of 2 sets"
    assert "first" in FORMS["md"](report)
    assert "first" not in FORMS["csv"](ranking([TICKETS], ["keyword"]))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("gone = ranks_code:GONE", "the measure 'gone' of the package 'ranks' cannot be loaded: AttributeError"),
        ("none = ranks_code:NONE", "the measure 'none' of the package 'ranks' must be a .*Measure, not function"),
        ("again = ranks_code:AGAIN", "the measure 'again' of the package 'ranks' cannot be shown as 'R@5'"),
        ("end = ranks_code:END", "the measure 'end' of the package 'ranks' cannot be shown as 'R@5 low'"),
        ("a = ranks_code:MRR\nb = ranks_code:MRR", "the measure 'b' of the package 'ranks' cannot be shown as 'MRR'"),
        ("loud = ranks_code:LOUD", "the measure 'loud' gave 7 for the case '1'; a score is a number from 0 to 1"),
        ("broken = ranks_code:BROKEN", "the measure 'broken' failed on the case '1': TypeError"),
    ],
)
def test_a_measure_that_cannot_be_used_is_named(install: Install, points: str, message: str) -> None:
    install("ranks", RECIPROCAL, measures=points)
    with pytest.raises(SetupError, match=message):
        ranking([TICKETS], ["keyword"])


def test_a_measure_is_asked_about_answers_to_cases_with_gold_only() -> None:
    seen: list[Any] = []

    def note(retrieved: Any, gold: Any) -> float:
        seen.append((retrieved, gold))
        return 1.0

    measure = Measure("note", note, "Notes what it is asked.")
    assert ranking([TICKETS], ["keyword"], measures=[measure]).tables[0].rows[0]["note"] == 1
    assert {gold for _, gold in seen} == {(("open_ticket",),)}
    seen.clear()
    assert score_of(JudgedCase(TICKETS.cases[0], error="TimeoutError"), measure) == 0
    assert seen == []
    score_of(JudgedCase(TICKETS.cases[0], ("a", "b", "a")), measure)
    assert seen[0][0] == ("a", "b"), "each tool once"


def test_our_own_measures_keep_the_promises_of_one() -> None:
    for measure in MEASURES:
        check_measure(measure)


@pytest.mark.parametrize(
    ("measure", "promise"),
    [
        (Measure("", lambda retrieved, gold: 1, "One."), "has a name"),
        (Measure("a", lambda retrieved, gold: 1, ""), "has a meaning"),
        (Measure("a", lambda retrieved, gold: 2, "Two."), "from 0 to 1, not 2"),
        (Measure("a", lambda retrieved, gold: "1", "Text."), "is a number, not '1'"),
        (Measure("a", lambda retrieved, gold: float("a" not in retrieved), "Misses."), "no less than misses"),
        (Measure("a", lambda retrieved, gold: 1 / len(retrieved), "Fails."), "raises ZeroDivisionError"),
        (Measure("a", lambda retrieved: 1, "One argument."), "called with two arguments .* raises TypeError"),  # type: ignore[arg-type,misc]
        (Measure("R@5", lambda retrieved, gold: 1, "Taken."), "the name 'R@5' is taken by one of ours"),
        (Measure("cases", lambda retrieved, gold: 1, "Taken."), "the name 'cases' is taken by one of ours"),
        (lambda retrieved, gold: 1, r"a measure is a toolsearch_evals.ranking.measures.Measure\(.*\), not a function"),
    ],
)
def test_a_measure_that_breaks_a_promise_is_told_which(measure: Measure, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_measure(measure)


def write_set(folder: Path) -> None:
    folder.mkdir(parents=True)
    tools = [{"name": "send", "server": "mail", "description": "Sends a mail."}, {"name": "read", "server": "mail"}]
    cases = [{"id": "1", "query": "send a mail", "gold": [["mail/send"]]}, {"id": "2", "query": "sing", "gold": []}]
    (folder / "tools.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in tools), "utf-8")
    (folder / "cases.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in cases), "utf-8")


MAIL = """
from pathlib import Path
from toolsearch_evals.data.cases import Case, Dataset

FOLDER = Path(__file__).parent / "mail_files"
TEXT = str(FOLDER)
TOOLS = ({"name": "send", "server": "mail", "description": "Sends a mail."},)

def folder():
    return FOLDER

def made():
    return Dataset("letters", TOOLS, (Case("1", "send a mail", (("mail/send",),)),))

def several():
    return [made(), Dataset("empty", TOOLS, ())]

def down():
    raise OSError("the disk is gone")

NUMBER = 3
EMPTY = []
NOWHERE = Path("nowhere")
"""


@pytest.mark.parametrize("what", ["FOLDER", "TEXT", "folder"])
def test_an_installed_folder_is_a_data_set_by_its_name(install: Install, tmp_path: Path, what: str) -> None:
    write_set(install("post", MAIL, datasets=f"mails = post_code:{what}") / "mail_files")
    (found,) = load("mails")
    assert (found.name, found.key, len(found.cases)) == ("mails", "mails/cases", 2)
    told = json.loads(run("ranking", "--dataset", "mails", "--index", "keyword", "--format", "json"))
    assert told["parameters"]["data sets"] == ["mails/cases"]
    assert told["tables"][0]["rows"][0]["R@5"] == 1
    assert "mails: installed by 'post'." in run("datasets", "list")
    assert run("datasets", "check", "--dataset", "mails") == "mails/cases: 2 tools, 2 cases: in order\n"
    run("derive", "--dataset", "mails", "--size", "4", "--out", str(tmp_path / "more"))
    assert len(load(tmp_path / "more")[0].definitions) == 4


def test_a_function_may_give_data_sets_without_a_folder(install: Install) -> None:
    install("post", MAIL, datasets="letters = post_code:made\nboth = post_code:several")
    (found,) = load("letters")
    assert (found.key, found.folder, len(found.examples())) == ("letters/cases", None, 0)
    assert [each.name for each in load("both")] == ["letters", "empty"]
    out = run("savings", "--dataset", "letters", *"--sizes 1 --turns 1 --seeds 1 --conversations 1".split())
    assert "Break-even" in out
    with pytest.raises(SetupError, match="'empty/cases' has no labelled case"):
        run("ranking", "--dataset", "both")
    with pytest.raises(SetupError, match="only a data set in a folder can be derived from"):
        write_derived_set(found, 9, 1, Path("more"))


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("GONE", "cannot be loaded: AttributeError"),
        ("NUMBER", "must give a folder, a Dataset, or a list of them, not int"),
        ("EMPTY", "must give a folder, a Dataset, or a list of them, not list"),
        ("down", "cannot be read: OSError: the disk is gone"),
        ("NOWHERE", "cannot be read: the folder 'nowhere' has no tools.jsonl"),
    ],
)
def test_a_data_set_that_cannot_be_used_is_named(install: Install, what: str, problem: str) -> None:
    install("post", MAIL, datasets=f"mails = post_code:{what}")
    with pytest.raises(SetupError, match=f"the data set 'mails' of the package 'post' {problem}"):
        load("mails")


def test_what_a_build_left_out_is_said(install: Install, tmp_path: Path) -> None:
    place = install("post", MAIL, datasets="mails = post_code:FOLDER\ngone = post_data:FOLDER\nmade = post_code:made")
    (place / "mail_files").mkdir()
    with pytest.raises(
        SetupError, match=r"has no tools\.jsonl and .*If its source has the file, the build .* left it out"
    ):
        load("mails")
    with pytest.raises(SetupError, match=r"No module named 'post_data'\. Its package is installed without this module"):
        load("gone")
    listed = run("datasets", "list")
    assert "gone: installed by 'post'. It cannot be used: the data set 'gone' of the package" in listed
    assert "made: installed by 'post'. 1 tool, 1 case, 0 unanswerable." in listed


def test_the_check_says_that_cases_are_missing_and_which_fields_are_not_read(tmp_path: Path) -> None:
    write_set(tmp_path / "mails")
    cases = tmp_path / "mails" / "cases.jsonl"
    cases.write_text(cases.read_text("utf-8").replace('"gold": []', '"gold": [], "goal": ["x"]'), "utf-8")
    said = run("datasets", "check", "--data", str(tmp_path / "mails"), code=1)
    assert "cases.jsonl, line 2, has the unknown field 'goal'; known are id, query, gold," in " ".join(said.split())
    cases.unlink()
    said = run("datasets", "check", "--data", str(tmp_path / "mails"), code=1)
    assert "there are no cases: the folder needs a cases.jsonl with one case a line" in " ".join(said.split())


def test_names_of_data_sets_are_not_taken_twice(install: Install) -> None:
    install("post", MAIL, datasets="commons = post_code:made\nmails = post_code:made")
    install("more_post", MAIL, datasets="mails = more_post_code:made")
    with pytest.raises(SetupError, match="the data set 'commons' of the package 'post' has the name of one that ships"):
        load("commons")
    with pytest.raises(SetupError, match="several packages install a data set 'mails'"):
        load("mails")
    with pytest.raises(
        SetupError, match=r"shipped are: 'commons', 'longform'; installed are: 'mails'\. For a folder use --data"
    ):
        run("ranking", "--dataset", "males")


def test_a_folder_is_read_even_if_a_data_set_of_that_name_is_installed(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("post", MAIL, datasets="letters = post_code:made")
    write_set(tmp_path / "letters")
    monkeypatch.chdir(tmp_path)
    assert len(load(Path("letters"))[0].cases) == 2
    assert len(load("letters")[0].cases) == 1


PLAIN = """
from toolsearch import ToolCall
from toolsearch.wires import openai_chat
from toolsearch_evals.savings.formats import FORMATS, WireFormat

class Plain:
    def tools_for(self, session):
        return [
            {"tool": shown.name, "about": shown.tool.description, "arguments": shown.tool.input_schema}
            for shown in session.tools()
        ]

    def message_from(self, reply):
        return reply

    def calls_in(self, reply):
        return [ToolCall(call["id"], call["tool"], call["arguments"]) for call in reply.get("calls", ())]

    def results_for(self, answered):
        return [{"by": "tool", "id": call.id, "text": result.content} for call, result in answered]

def with_calls(calls):
    return {"by": "model", "calls": [{"id": c.id, "tool": c.name, "arguments": c.arguments} for c in calls]}

FORMAT = WireFormat(
    wire=Plain(),
    request=lambda tools, system, messages: {"system": system, "tools": list(tools), "messages": list(messages)},
    reply_with_calls=with_calls,
    reply_with_text=lambda text: {"by": "model", "text": text},
    user_message=lambda text: {"by": "user", "text": text},
)
MUTE = WireFormat(Plain(), FORMAT.request, lambda calls: {"by": "model"}, FORMAT.reply_with_text)
BROKEN = WireFormat(openai_chat, FORMAT.request, lambda calls: calls[9], FORMAT.reply_with_text)
"""


def test_an_installed_wire_can_be_measured(install: Install) -> None:
    install("plain", PLAIN, eval_formats="plain = plain_code:FORMAT")
    small = ("--sizes", "5,40", "--seeds", "1", "--conversations", "2", "--turns", "2", "--index", "keyword")
    told = json.loads(run("savings", *small, "--wire", "plain", "--wire", "openai_chat", "--format", "json"))
    plain, openai = (
        next(row for row in told["tables"][0]["rows"] if row["wire"] == w) for w in ("plain", "openai_chat")
    )
    assert 0 < plain["tokens"] != openai["tokens"]
    assert plain["success"] == openai["success"]
    assert told["tokenizers"]["plain"].startswith("estimate"), "nobody said that its tokenizer is public"
    assert list(dict.fromkeys(each["wire"] for each in told["break_even"])) == ["plain", "openai_chat"]


def test_a_wire_can_be_passed_in_python() -> None:
    form = replace(FORMATS["openai_chat"], tokenizer_is_public=False)
    plan = SweepPlan(indexes=("keyword",), wires=("mine",), sizes=(2,), seeds=1, conversations=1, turns=(1,))
    swept = sweep(TICKETS, TICKETS.cases, plan, formats={"mine": form})
    assert swept.rows[0]["wire"] == "mine"
    assert savings_report(swept, plan, TICKETS, "all").data["tokenizers"] == swept.tokenizers
    with pytest.raises(SetupError, match="no wire 'mine'; there are: 'openai_chat', 'anthropic'"):
        sweep(TICKETS, TICKETS.cases, plan)


@pytest.mark.parametrize(
    ("points", "wire", "message"),
    [
        ("x = plain_code:GONE", "x", "the wire 'x' of the package 'plain' cannot be loaded: AttributeError"),
        ("x = plain_code:Plain", "x", "the wire 'x' of the package 'plain' must be a .*WireFormat, not type"),
        ("x = plain_code:MUTE", "x", r"the wire 'x' of the package 'plain' breaks a promise: .* is read as \[\]"),
        ("x = plain_code:BROKEN", "x", "the wire 'x' of the package 'plain' failed: IndexError"),
        ("anthropic = plain_code:FORMAT", "anthropic", "has the name of one of ours"),
        ("x = plain_code:FORMAT", "y", "no wire 'y'; there are: 'openai_chat', 'anthropic', 'openai_responses', 'x'"),
    ],
)
def test_a_wire_that_cannot_be_used_is_named(install: Install, points: str, wire: str, message: str) -> None:
    install("plain", PLAIN, eval_formats=points)
    with pytest.raises(SetupError, match=message):
        run("savings", "--sizes", "5", "--wire", wire)


@pytest.mark.parametrize("wire", FORMATS)
def test_our_own_wires_keep_the_promises_of_one(wire: str) -> None:
    check_format(FORMATS[wire])
