"""Public sets, each in the form that its authors publish: tiny files of each form, whole, partial and broken."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from toolsearch import SetupError
from toolsearch_evals.data.cases import Dataset, load, require_gold
from toolsearch_evals.data.notes import data_notes
from toolsearch_evals.data.public_forms import FORMS


def write(folder: Path, files: Mapping[str, object]) -> Path:
    """Writes files: text as it is, a list as JSON Lines where the name says so, anything else as JSON."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        is_lines = isinstance(content, list) and file.suffix == ".jsonl"
        text = content if isinstance(content, str) else in_lines(*content) if is_lines else json.dumps(content)
        file.write_text(text, "utf-8")
    return folder


def in_lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


WEATHER = {
    "name": "weather.get",
    "description": "Get the weather.",
    "parameters": {"type": "dict", "required": ["city"], "properties": {"city": {"type": "str"}, "k": {"type": "any"}}},
}


def bfcl(folder: Path) -> Path:
    """Files are called .json and hold lines; a second function of one name is another definition."""
    other = {**WEATHER, "description": "Get the weather of a station."}
    asked = [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it raining in Rome?"}]]
    second = [[{"role": "user", "content": "What is it like at LIRA?"}]]
    return write(
        folder,
        {
            "data/BFCL_v4_live_simple.json": in_lines({"id": "s-1", "question": asked, "function": [WEATHER]}),
            "data/BFCL_v4_multiple.json": in_lines({"id": "m-1", "question": second, "function": [other]}),
            "data/BFCL_v4_irrelevance.json": in_lines(
                {"id": "i-1", "question": asked, "function": [{"name": "dice", "parameters": {}}]}
            ),
            "data/BFCL_v4_multi_turn_base.json": in_lines({"id": "t-1", "question": [asked[0], second[0]]}),
            "data/possible_answer/BFCL_v4_live_simple.json": in_lines(
                {"id": "s-1", "ground_truth": [{"weather_get": {"city": ["Rome"]}}]}
            ),
            "data/possible_answer/BFCL_v4_multiple.json": in_lines(
                {"id": "m-1", "ground_truth": [{"weather.get": {}}, {"weather.get": {}}]}
            ),
        },
    )


def toolret(folder: Path) -> Path:
    told = {"name": "getNews", "description": "Get news.", "parameters": {"topic": {"type": "str, optional"}}}
    return write(
        folder,
        {
            "web/tools.jsonl": [
                {"id": "t_1", "documentation": json.dumps(told)},
                {"id": "t_2", "documentation": str({**told, "name": "getSport"})},
                {"id": "t_3", "documentation": "A tool that rolls dice."},
            ],
            "queries.json": {
                "queries": [
                    {"id": "q_1", "query": "any news?", "labels": json.dumps([{"id": "t_1", "relevance": 1}])},
                    {
                        "id": "q_2",
                        "query": "news and dice",
                        "labels": [{"id": "t_1"}, {"id": "t_3"}, {"id": "t_2", "relevance": 0}],
                    },
                ]
            },
        },
    )


def metatool(folder: Path) -> Path:
    return write(
        folder,
        {
            "dataset/plugin_des.json": {"dice": "Rolls dice.", "news": "Tells news."},
            "dataset/data/all_clean_data.csv": 'Query,Tool\n"roll, please",dice\nanything new?,news\nfly,plane\n',
            "dataset/data/multi_tool_query_golden.json": [{"query": "roll and tell", "tool": ["dice", "news"]}],
        },
    )


def livemcpbench(folder: Path) -> Path:
    served = [{"name": "search", "description": "Search.", "inputSchema": {"type": "object", "properties": {}}}]
    server = {"description": "x", "tools": {"s": {"server_name": "s", "tools": served}}}
    task = {
        "task_id": "1",
        "Question": "find it and ring me",
        "Annotator Metadata": {"Steps": "…", "Tools": "1. search\n2. telephone"},
    }
    lost = {"task_id": "2", "Question": "ring me", "Annotator Metadata": {"Steps": "…", "Tools": "telephone"}}
    return write(
        folder,
        {
            "tools/LiveMCPTool/tools.json": [{"name": "Bing", **server}, {"name": "Brave", **server}],
            "annotated_data/all_annotations.json": [task, lost],
        },
    )


def sealtools(folder: Path) -> Path:
    tool = {
        "api_name": "getGame",
        "api_description": "Get a game.",
        "field": "Sports",
        "parameters": {"day": {"type": "str", "description": "the day"}, "properties": {"type": "str"}},
        "required": ["day"],
    }
    case = {"id": "dev-1", "query": "who plays?", "calling": [{"api": "getGame", "parameters": {}, "responses": []}]}
    return write(folder, {"Set/tool.jsonl": [tool], "Set/dev.jsonl": [case], "Set/test_in_domain.jsonl": []})


API = {
    "category_name": "Food",
    "tool_name": "The Cocktail DB",
    "api_name": "list/:kind",
    "api_description": " List cocktails. ",
    "required_parameters": [{"name": "kind", "type": "STRING", "description": "the kind", "default": "a"}],
    "optional_parameters": [{"name": "most", "type": "NUMBER"}],
    "method": "GET",
}


def toolbench(folder: Path) -> Path:
    row = {"query": "which drinks?", "api_list": [API], "relevant APIs": [["The Cocktail DB", "list/:kind"]]}
    return write(folder, {"instruction/G1_query.json": [{**row, "query_id": 7}]})


def toolbench_corpus(folder: Path) -> Path:
    document = json.dumps(API).replace('"', '""')
    return write(
        folder,
        {
            "G1/corpus.tsv": f'docid\tdocument_content\n1\t"{document}"\n',
            "G1/test.query.txt": "5\twhich drinks?\n",
            "G1/qrels.test.tsv": "5\t0\t1\t1\n",
        },
    )


BY_FORM: dict[str, Callable[[Path], Path]] = {
    "bfcl": bfcl,
    "toolret": toolret,
    "metatool": metatool,
    "livemcpbench": livemcpbench,
    "sealtools": sealtools,
    "toolbench": toolbench,
}


def only(source: str | Path) -> Dataset:
    (dataset,) = load(source)
    return dataset


def test_every_form_has_a_reader_here() -> None:
    assert BY_FORM.keys() == FORMS.keys()


@pytest.mark.parametrize("form", BY_FORM)
def test_a_form_is_read_by_name_and_recognised_by_its_files(form: str, tmp_path: Path) -> None:
    folder = BY_FORM[form](tmp_path)
    named, recognised = only(f"{form}:{folder}"), only(folder)
    assert named.cases == recognised.cases
    assert named.key == f"{form}/queries"
    assert named.catalog().quarantined == ()
    require_gold(named)


def test_bfcl_joins_the_functions_of_all_files_and_takes_what_the_user_says(tmp_path: Path) -> None:
    dataset = only(bfcl(tmp_path))
    tools = dataset.catalog()
    assert [tool.id for tool in tools] == ["dice", "weather.get", "weather.get__2"]
    assert tools["weather.get"].input_schema["properties"]["city"] == {"type": "string"}
    assert [(case.query, case.gold, case.wording) for case in dataset.cases] == [
        ("Is it raining in Rome?", (("weather.get", "weather.get__2"),), "user"),
        ("What is it like at LIRA?", (("weather.get", "weather.get__2"),), "user"),
    ]
    assert any("none of their own few functions" in note for note in data_notes([dataset]))


def test_toolret_labels_may_be_text_and_documentation_what_python_prints(tmp_path: Path) -> None:
    dataset = only(toolret(tmp_path))
    tools = dataset.catalog()
    assert (tools["t_2"].name, tools["t_3"].description) == ("getSport", "A tool that rolls dice.")
    assert tools["t_1"].input_schema["properties"] == {"topic": {"type": "string"}}
    assert [case.gold for case in dataset.cases] == [(("t_1",),), (("t_1",), ("t_3",))]


def test_metatool_has_requests_for_one_plugin_and_for_two(tmp_path: Path) -> None:
    dataset = only(metatool(tmp_path))
    assert [(case.query, len(case.gold)) for case in dataset.cases] == [
        ("roll, please", 1),
        ("anything new?", 1),
        ("roll and tell", 2),
    ]
    assert dataset.notes == (
        "Labels that name no tool of the set were left out: 'plane'.",
        "1 request was left out: no label names a tool of the set.",
    )


def test_livemcpbench_takes_any_tool_of_the_annotated_name(tmp_path: Path) -> None:
    dataset = only(livemcpbench(tmp_path))
    assert [case.gold for case in dataset.cases] == [(("Bing/search", "Brave/search"),)]
    assert "'telephone'" in dataset.notes[0]


def test_sealtools_keeps_splits_and_a_parameter_that_is_called_properties(tmp_path: Path) -> None:
    dataset = only(sealtools(tmp_path))
    assert [case.split for case in dataset.cases] == ["dev"]
    assert sorted(dataset.catalog()["getGame"].input_schema["properties"]) == ["day", "properties"]


@pytest.mark.parametrize("make", [toolbench, toolbench_corpus])
def test_toolbench_is_read_from_instructions_and_from_its_retriever(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    dataset = only(make(tmp_path))
    (tool,) = dataset.catalog()
    assert (tool.id, tool.name, tool.server) == ("The Cocktail DB/list/:kind", "list/:kind", "The Cocktail DB")
    assert tool.input_schema["required"] == ["kind"]
    assert tool.input_schema["properties"]["most"] == {"type": "number"}
    assert dataset.cases[0].gold == ((tool.id,),)


@pytest.mark.parametrize(
    ("make", "without", "told"),
    [
        (bfcl, "data/possible_answer/BFCL_v4_multiple.json", "has no answers: there is no file"),
        (
            metatool,
            "dataset/data/all_clean_data.csv",
            "not a whole MetaTool: no file in it is called 'all_clean_data.csv'",
        ),
        (livemcpbench, "tools/LiveMCPTool/tools.json", "not a whole LiveMCPBench"),
        (sealtools, "Set/dev.jsonl", "no labelled request in the form of Seal-Tools"),
        (toolret, "queries.json", "not a whole ToolRet: it has no queries.jsonl"),
        (toolbench_corpus, "G1/test.query.txt", "no file in it is called 'test.query.txt'"),
    ],
)
def test_a_set_of_which_a_part_is_missing_is_told(
    make: Callable[[Path], Path], without: str, told: str, tmp_path: Path
) -> None:
    folder = make(tmp_path)
    (folder / without).unlink()
    form = make.__name__.partition("_")[0]
    with pytest.raises(SetupError, match=told):
        load(f"{form}:{folder}")


def test_what_is_no_form_or_no_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no form 'gaia' of public sets; there are: 'bfcl'"):
        load(f"gaia:{tmp_path}")
    with pytest.raises(SetupError, match="no folder 'nowhere' to read BFCL from"):
        load("bfcl:nowhere")
    with pytest.raises(SetupError, match="not in the form of a public set"):
        load(tmp_path)
    write(tmp_path, {"plugin_des.json": ["dice"], "all_clean_data.csv": "Query,Tool\n"})
    with pytest.raises(SetupError, match="is not a JSON object"):
        load(f"metatool:{tmp_path}")
    write(tmp_path, {"plugin_des.json": {"dice": "x"}, "all_clean_data.csv": "Question,Plugin\nroll,dice\n"})
    with pytest.raises(SetupError, match="not in the form of MetaTool"):
        load(f"metatool:{tmp_path}")
    write(tmp_path / "table", {"queries.jsonl": [], "tools.parquet": "PAR1"})
    with pytest.raises(SetupError, match="is a Parquet table: save its rows as JSON Lines"):
        load(f"toolret:{tmp_path / 'table'}")
