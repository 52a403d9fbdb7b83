"""Data of one's own: tools in any file, drafts of labelled cases, and what is said of few cases and wrong labels."""

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolsearch import Catalog, SetupError, find
from toolsearch_evals.backends import open_backend
from toolsearch_evals.cli import app
from toolsearch_evals.data.cases import Case, load, require_gold
from toolsearch_evals.data.check import problems
from toolsearch_evals.data.drafts import draft_cases, tools_to_label, write_drafts
from toolsearch_evals.data.notes import data_notes, distinct_cases

SEND = {"name": "send_mail", "server": "post", "description": "Send a mail.", "examples": ["write to Bob"]}
ROLL = {"name": "roll_dice", "server": "games", "description": "Roll dice."}
CASES = [
    {"id": "1", "query": "write to Ana", "gold": [["post/send_mail"]], "wording": "user"},
    {"id": "2", "query": "throw a six", "gold": [["games/roll_dice"]], "wording": "agent"},
    {"id": "3", "query": "water the plants", "gold": []},
]


def lines(file: Path, objects: Sequence[object]) -> Path:
    file.write_text("".join(json.dumps(each) + "\n" for each in objects), "utf-8")
    return file


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=code == 0)
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def refused(*arguments: str) -> str:
    with pytest.raises(SetupError) as told:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    return str(told.value)


# -- files and folders -------------------------------------------------------------------------------------------------


def test_tools_in_any_form_stand_in_a_folder_with_cases(tmp_path: Path) -> None:
    listed = [{"name": "send_mail", "inputSchema": {"type": "object"}, "_meta": {"server": "post"}}, ROLL]
    wrapped = [{"type": "function", "function": {"name": "games_roll", "description": "Roll."}}]
    (tmp_path / "tools.json").write_text(json.dumps({"tools": listed}), "utf-8")
    lines(tmp_path / "cases.jsonl", [CASES[1]])
    (dataset,) = load(tmp_path)
    assert [tool.id for tool in dataset.catalog()] == ["send_mail", "games/roll_dice"]
    assert (dataset.key, len(dataset.cases)) == (f"{tmp_path.name}/cases", 1)
    require_gold(dataset)
    (tmp_path / "tools.json").write_text(json.dumps(wrapped), "utf-8")
    (dataset,) = load(tmp_path / "tools.json")
    assert [tool.id for tool in dataset.catalog()] == ["games_roll"]


def test_a_file_of_tools_and_one_of_cases_are_a_data_set(tmp_path: Path) -> None:
    tools = tmp_path / "mine.json"
    tools.write_text(json.dumps([SEND, ROLL]), "utf-8")
    cases = lines(tmp_path / "labels.jsonl", CASES)
    told = json.loads(
        run("ranking", "--data", str(tools), "--data", str(cases), "--index", "keyword", "--format", "json")
    )
    assert (told["tables"][0]["rows"][0]["dataset"], told["tables"][0]["rows"][0]["n"]) == ("mine", 3)
    assert any("mine has 3 distinct cases (1 in a user's words): so few" in limit for limit in told["limits"])
    assert "has no labelled case" in refused("ranking", "--data", str(tools))


@pytest.mark.parametrize("option", ["--tools", "--data"])
def test_a_ranking_without_cases_names_what_drafts_them_and_what_needs_none(option: str, tmp_path: Path) -> None:
    told = refused("ranking", option, str(lines(tmp_path / "tools.jsonl", [SEND])))
    assert "`toolsearch eval init TOOLS --out FOLDER` drafts one" in told
    assert "`toolsearch eval savings --tools TOOLS` needs none" in told


def test_a_file_without_a_usable_tool_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"mcpServers": {}}', "utf-8")
    with pytest.raises(SetupError, match=r"mine\.json' holds no usable tool"):
        load(tmp_path / "mine.json")
    with pytest.raises(SetupError, match="name the file of their tools"):
        load(lines(tmp_path / "cases.jsonl", CASES))


# -- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("send_mail", "did you mean 'post/send_mail'?"),
        ("post/send_mial", "did you mean 'post/send_mail'?"),
        ("mail/send_mail", "did you mean 'post/send_mail'?"),
    ],
)
def test_a_wrong_gold_is_answered_with_near_names(wrong: str, meant: str, tmp_path: Path) -> None:
    lines(tmp_path / "tools.jsonl", [SEND, ROLL])
    lines(tmp_path / "cases.jsonl", [{"id": "1", "query": "write", "gold": [[wrong]]}])
    (dataset,) = load(tmp_path)
    assert any(meant in problem for problem in problems(dataset))
    with pytest.raises(SetupError, match=r"did you mean 'post/send_mail'\?"):
        require_gold(dataset)


def test_few_cases_are_counted_once_each() -> None:
    asked = (Case("1", "Mail Ana", wording="user"), Case("2", "mail ana ", wording="user"), Case("3", "send mail"))
    assert distinct_cases(asked) == "2 distinct cases (1 in a user's words)"
    assert distinct_cases([Case("1", "x")]) == "1 distinct case"


# -- drafts ------------------------------------------------------------------------------------------------------------


def drafted(folder: Path, *options: str) -> list[dict[str, Any]]:
    tools = lines(folder / "catalog.jsonl", [SEND, ROLL])
    run("init", str(tools), "--out", str(folder / "own"), *options)
    return [json.loads(line) for line in (folder / "own" / "cases.jsonl").read_text("utf-8").splitlines()]


def test_drafts_come_from_the_tools_own_examples_and_empty_forms_for_the_rest(tmp_path: Path) -> None:
    first, second, third = drafted(tmp_path)
    assert (first["query"], first["gold"], first["draft"]) == ("write to Bob", [["post/send_mail"]], True)
    assert (second["query"], second["gold"]) == ("", [["games/roll_dice"]])
    assert (third["query"], third["gold"]) == ("", [])
    assert {line["split"] for line in (first, second, third)} <= {"dev", "test"}
    (dataset,) = load(tmp_path / "own")
    assert (len(dataset.cases), dataset.empty_drafts) == (1, 2)
    assert not any(tool.examples for tool in dataset.catalog()), "a draft would find itself"
    told = run("datasets", "check", "--data", str(tmp_path / "own"), code=1)
    assert "1 of 1 case is an unreviewed draft" in told
    assert "2 drafts without a query" in told
    assert any("1 are drafts that nobody has reviewed" in note for note in data_notes([dataset]))


def test_a_reviewed_draft_is_a_case(tmp_path: Path) -> None:
    made = drafted(tmp_path)
    kept = [{k: v for k, v in made[0].items() if k != "draft"}, {**made[2], "query": "fly to Mars", "draft": False}]
    lines(tmp_path / "own" / "cases.jsonl", kept)
    (dataset,) = load(tmp_path / "own")
    assert not any("draft" in problem for problem in problems(dataset))


def test_drafts_come_from_a_model_and_from_a_file_of_examples(tmp_path: Path) -> None:
    answer = json.dumps({"1": ["drop Ana a line"], "2": ["throw a six", "roll twice"]})
    script = tmp_path / "model.py"
    script.write_text(f"import sys; sys.stdin.read(); print({answer!r})", "utf-8")
    made = drafted(tmp_path, "--ask", f"'{Path(sys.executable).as_posix()}' '{script.as_posix()}'", "--queries", "1")
    assert [line["query"] for line in made] == ["drop Ana a line", "throw a six", ""]
    file = lines(tmp_path / "examples.jsonl", [{"tool": "games/roll_dice", "queries": ["a dice roll", "roll a d20"]}])
    (tmp_path / "second").mkdir()
    made = drafted(tmp_path / "second", "--examples", str(file))
    assert [line["query"] for line in made] == ["", "a dice roll", "roll a d20", ""]
    assert "from a file or from a model" in refused("init", "x", "--out", "o", "--examples", str(file), "--ask", "cat")


def test_nobody_s_labels_are_overwritten(tmp_path: Path) -> None:
    drafted(tmp_path)
    assert "exists already, and may hold your labels" in refused(
        "init", str(tmp_path / "catalog.jsonl"), "--out", str(tmp_path / "own")
    )


def test_a_set_of_empty_drafts_says_so(tmp_path: Path) -> None:
    tools = Catalog([ROLL])
    write_drafts(tools, draft_cases(list(tools), {}, "nobody"), tmp_path / "own")
    assert "has no case yet, only drafts without a query" in refused("ranking", "--data", str(tmp_path / "own"))


def test_tools_to_label_are_drawn_from_every_server_and_the_same_by_seed() -> None:
    tools = Catalog([{"name": f"t{n}", "server": "big" if n else "small"} for n in range(40)])
    chosen = tools_to_label(tools, 4, seed=1)
    assert len(chosen) == 4
    assert "small/t0" in [tool.id for tool in chosen]
    assert chosen == tools_to_label(tools, 4, seed=1) != tools_to_label(tools, 4, seed=2)
    assert len(tools_to_label(tools, 99)) == 40


def test_the_order_of_the_tools_moves_no_score() -> None:
    """F06: twins score the same, and the cut at five stands between them; twenty orders give one answer each."""
    tools = [{"name": f"send_{n}", "description": "Send a mail to somebody."} for n in range(12)]
    index_scores = set()
    for seed in range(20):
        shuffled = random.Random(seed).sample(tools, len(tools))
        catalog = Catalog(shuffled)
        index = open_backend("keyword")
        index.add(list(catalog))
        index_scores.add(tuple(hit.tool.id for hit in find(catalog, index, "send a mail", 5)))
    assert len(index_scores) == 1


@pytest.mark.parametrize("count", [1, 9, 10, 50])
def test_filled_in_drafts_pass_the_check_of_requests_that_no_tool_can_meet(count: int, tmp_path: Path) -> None:
    """`init` once drafted 5 of 55, and `datasets check` then asked for more."""
    catalog = Catalog([{"name": f"do_{at}", "description": f"Do the thing {at}."} for at in range(count)])
    drafts = draft_cases(list(catalog), {}, "nobody")
    filled = [{**line, "query": f"request {line['id']}", "draft": False} for line in drafts.lines]
    write_drafts(catalog, drafts, tmp_path / "own")
    lines(tmp_path / "own" / "cases.jsonl", filled)
    assert not [each for each in problems(load(tmp_path / "own")[0]) if "cannot be answered" in each]
