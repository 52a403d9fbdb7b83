"""The public sets that can be read, one reader each: BFCL, ToolRet, MetaTool, LiveMCPBench, Seal-Tools, ToolBench."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolsearch import SetupError
from toolsearch_evals.data.files import JsonObject, read_json, read_lines, read_text
from toolsearch_evals.data.public_sets import (
    Labels,
    PublicForm,
    PublicSet,
    as_object,
    files_like,
    flat_schema,
    one_file,
)

__all__ = ["FORMS", "form_of", "read_public"]


def read_public(form: str, folder: Path) -> PublicSet:
    """A public set from its folder. Raises `SetupError` for an unknown form, and for missing or broken files."""
    if form not in FORMS:
        raise SetupError(f"there is no form {form!r} of public sets; there are: {', '.join(map(repr, FORMS))}")
    if not folder.is_dir():
        raise SetupError(f"there is no folder {str(folder)!r} to read {FORMS[form].title} from")
    try:
        made = FORMS[form].read(folder)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        told = f"{type(error).__name__}: {error}"
        raise SetupError(f"{str(folder)!r} is not in the form of {FORMS[form].title} ({told})") from error
    if not made.rows:
        raise SetupError(f"{str(folder)!r} has no labelled request in the form of {FORMS[form].title}")
    return made


def form_of(folder: Path) -> str | None:
    """The form that the files of a folder give away."""
    return next((name for name, form in FORMS.items() if form.fits(folder)), None)


# -- BFCL --------------------------------------------------------------------------------------------------------------

_SINGLE_TURN = re.compile(r"BFCL_v\d+_(?!.*(multi_turn|memory|web_search|format_sensitivity|rest|sql|chatable))")
_UNLABELLED = re.compile(r"irrelevance|relevance")


def _bfcl(folder: Path) -> PublicSet:
    """Its single-turn files. The catalog is the union of all their functions, which each case has few of."""
    files = [f for f in files_like(folder, "BFCL_v*.json") if _SINGLE_TURN.match(f.name) and not _is_apart(f)]
    made, cases = _Functions(), list[tuple[JsonObject, list[str]]]()
    for file in files:
        answers = _bfcl_answers(file)
        for row in read_lines(file, needed=("id", "question", "function")):
            by_fold = {_folded(each["name"]): made.add(each) for each in row["function"]}
            wanted = [by_fold.get(_folded(name), name) for name in answers.get(row["id"], ())]
            if wanted:
                cases.append(({"id": row["id"], "query": _asked(row["question"]), "wording": "user"}, wanted))
    labels = Labels(frozenset(each["name"] for each in made.definitions))
    for row, wanted in cases:
        labels.add(row, [(name, made.alike(name)) for name in dict.fromkeys(wanted)])
    note = "Requests that none of their own few functions meets were left out: another function of the set may."
    return labels.made(made.definitions, *([note] if any(_UNLABELLED.search(f.name) for f in files) else []))


def _is_apart(file: Path) -> bool:
    return any(part in ("possible_answer", "unused_datasets") for part in file.parts)


def _bfcl_answers(file: Path) -> dict[str, list[str]]:
    """The names of the functions to call, by case."""
    answers = file.parent / "possible_answer" / file.name
    if not answers.is_file():
        if _UNLABELLED.search(file.name):
            return {}
        raise SetupError(f"{str(file)!r} has no answers: there is no file {str(answers)!r}")
    return {
        row["id"]: [name for call in row["ground_truth"] for name in call]
        for row in read_lines(answers, needed=("id", "ground_truth"))
    }


def _asked(question: Any) -> str:
    """What the user says in the first turn."""
    turn = question[0] if isinstance(question[0], list) else question
    return "\n".join(said["content"] for said in turn if said["role"] == "user")


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


class _Functions:
    """Functions under names that are unique in the set: equal ones once, others of the same name with a number."""

    def __init__(self) -> None:
        self.definitions: list[JsonObject] = []
        self._by_text: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}

    def add(self, function: Mapping[str, Any]) -> str:
        """Adds a function that is new, and returns its own name."""
        native, text = str(function["name"]), json.dumps(function, sort_keys=True)
        if text not in self._by_text:
            alike = self._by_name.setdefault(native, [])
            alike.append(f"{native}__{len(alike) + 1}" if alike else native)
            self._by_text[text] = alike[-1]
            described = {"native_name": native, "description": str(function.get("description", ""))}
            self.definitions.append(
                {"name": alike[-1], **described, "input_schema": flat_schema(function.get("parameters"))}
            )
        return native

    def alike(self, native: str) -> list[str]:
        """The unique names of the functions with this name."""
        return self._by_name.get(native, [])


# -- ToolRet -----------------------------------------------------------------------------------------------------------


def _toolret(folder: Path) -> PublicSet:
    """Its tools and queries, saved as JSON or JSON Lines."""
    definitions = [_toolret_tool(row) for file in _toolret_files(folder, "tools") for row in _rows(file, "tools")]
    labels = Labels(frozenset(each["name"] for each in definitions))
    for file in _toolret_files(folder, "queries"):
        for row in _rows(file, "queries"):
            told = json.loads(row["labels"]) if isinstance(row["labels"], str) else row["labels"]
            needed = [str(each["id"]) for each in told if int(each.get("relevance", 1)) > 0]
            labels.add({"id": str(row["id"]), "query": row["query"]}, [(each, [each]) for each in needed])
    return labels.made(definitions)


def _toolret_files(folder: Path, what: str) -> list[Path]:
    found = [file for file in files_like(folder, f"*{what}*.json*") if file.suffix in (".json", ".jsonl")]
    if found:
        return found
    tables = files_like(folder, f"*{what}*.parquet") + files_like(folder / what, "*.parquet")
    also = f". {str(tables[0])!r} is a Parquet table: save its rows as JSON Lines" if tables else ""
    raise SetupError(f"{str(folder)!r} is not a whole ToolRet: it has no {what}.jsonl{also}")


def _rows(file: Path, what: str) -> list[JsonObject]:
    """The rows of a file of JSON Lines, or of JSON: a list, or an object that holds one."""
    if file.suffix == ".jsonl":
        return read_lines(file)
    whole = read_json(file)
    rows = whole.get(what) if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise SetupError(f"{str(file)!r} holds no list of {what}")
    return [as_object(row, f"a row of {str(file)!r}") for row in rows]


def _toolret_tool(row: Mapping[str, Any]) -> JsonObject:
    told = row["documentation"]
    for read in (json.loads, ast.literal_eval):  # the documentation is JSON, or what Python prints of it
        if isinstance(told, str):
            try:
                told = read(told)
            except (ValueError, SyntaxError, RecursionError):
                continue
    if not isinstance(told, Mapping):
        return {"name": str(row["id"]), "description": str(told)}
    native = str(told.get("name") or told.get("api_name") or row["id"])
    about = str(told.get("description") or told.get("api_description") or told.get("functionality") or "")
    schema = flat_schema(told.get("parameters"), told.get("required") or ())
    return {"name": str(row["id"]), "native_name": native, "description": about, "input_schema": schema}


# -- MetaTool ----------------------------------------------------------------------------------------------------------


def _metatool(folder: Path) -> PublicSet:
    """Its plugins, which have no parameters; requests for one of them, and for two."""
    plugins = read_json(one_file(folder, "plugin_des.json", "MetaTool"))
    definitions = [
        {"name": name, "description": about} for name, about in as_object(plugins, "plugin_des.json").items()
    ]
    labels = Labels(frozenset(plugins))
    singles = csv.DictReader(io.StringIO(read_text(one_file(folder, "all_clean_data.csv", "MetaTool")), newline=""))
    for number, row in enumerate(singles, 1):
        if row["Query"].strip():
            labels.add({"id": f"single-{number}", "query": row["Query"]}, [(row["Tool"], [row["Tool"]])])
    for file in files_like(folder, "multi_tool_query_golden.json"):
        for number, row in enumerate(read_json(file), 1):
            labels.add({"id": f"multi-{number}", "query": row["query"]}, [(name, [name]) for name in row["tool"]])
    return labels.made(definitions)


# -- LiveMCPBench ------------------------------------------------------------------------------------------------------


def _livemcpbench(folder: Path) -> PublicSet:
    """The tools of its servers; whole tasks, with the tools that its annotators used. Any tool of that name will do."""
    tasks = one_file(folder, "all_annotations.json", "LiveMCPBench")
    tools: dict[str, JsonObject] = {}
    by_name: dict[str, list[str]] = {}
    for entry in read_json(one_file(folder, "tools.json", "LiveMCPBench")):
        for server in entry["tools"].values():
            for each in server["tools"]:
                key = f"{entry['name']}/{each['name']}"
                if key not in tools:
                    by_name.setdefault(each["name"], []).append(key)
                tools[key] = {
                    "name": key,
                    "native_name": each["name"],
                    "server": entry["name"],
                    "description": each.get("description") or "",
                    "input_schema": each.get("inputSchema") or {"type": "object", "properties": {}},
                }
    labels = Labels(frozenset(tools))
    for task in read_json(tasks):
        listed = re.findall(r"^\s*(?:\d+[.)]\s*)?(\S.*?)\s*$", task["Annotator Metadata"]["Tools"], re.MULTILINE)
        needs = [(name, by_name.get(name, [])) for name in dict.fromkeys(listed)]
        labels.add({"id": task["task_id"], "query": task["Question"], "wording": "user"}, needs)
    return labels.made(tools.values())


# -- Seal-Tools --------------------------------------------------------------------------------------------------------

_SEAL_SPLITS = {"train": "train", "dev": "dev", "test_in_domain": "test", "test_out_domain": "test"}


def _sealtools(folder: Path) -> PublicSet:
    """Its tools, and the requests of its splits; the old format is not read."""
    file = one_file(folder, "tool.jsonl", "Seal-Tools")
    tools = {
        row["api_name"]: {
            "name": row["api_name"],
            "description": row["api_description"],
            "input_schema": flat_schema(row.get("parameters"), row.get("required") or ()),
        }
        for row in read_lines(file, needed=("api_name", "api_description"))
    }
    labels = Labels(frozenset(tools))
    for stem, split in _SEAL_SPLITS.items():
        if (cases := file.parent / f"{stem}.jsonl").is_file():
            for row in read_lines(cases, needed=("id", "query", "calling")):
                names = dict.fromkeys(call["api"] for call in row["calling"])
                labels.add({"id": row["id"], "query": row["query"], "split": split}, [(n, [n]) for n in names])
    return labels.made(tools.values())


# -- ToolBench ---------------------------------------------------------------------------------------------------------


def _toolbench(folder: Path) -> PublicSet:
    """The instructions of its groups G1 to G3, or the corpus and the labels that its retriever is trained on."""
    files = files_like(folder, "G[123]_*.json")
    return _toolbench_instructions(files) if files else _toolbench_corpus(folder)


def _toolbench_instructions(files: list[Path]) -> PublicSet:
    tools: dict[str, JsonObject] = {}
    cases = []
    for file in files:
        for number, row in enumerate(read_json(file), 1):
            tools |= {each["name"]: each for each in map(_toolbench_tool, row["api_list"])}
            needed = ["/".join(pair[:2]) for pair in row["relevant APIs"]]
            cases.append(({"id": f"{file.stem}-{row.get('query_id', number)}", "query": row["query"]}, needed))
    labels = Labels(frozenset(tools))
    for row, needed in cases:
        labels.add(row, [(name, [name]) for name in needed])
    return labels.made(tools.values())


def _toolbench_tool(api: Mapping[str, Any]) -> JsonObject:
    listed = [*(api.get("required_parameters") or ()), *(api.get("optional_parameters") or ())]
    parameters = {each["name"]: {k: v for k, v in each.items() if k in ("type", "description")} for each in listed}
    return {
        "name": f"{api['tool_name']}/{api['api_name']}",
        "native_name": api["api_name"],
        "server": api["tool_name"],
        "description": str(api.get("api_description") or "").strip(),
        "input_schema": flat_schema(parameters, [each["name"] for each in api.get("required_parameters") or ()]),
    }


def _toolbench_corpus(folder: Path) -> PublicSet:
    corpus = one_file(folder, "corpus.tsv", "ToolBench")
    tools: dict[str, JsonObject] = {}
    by_number: dict[str, str] = {}
    for number, document in _table(corpus, header=True):
        each = _toolbench_tool(as_object(json.loads(document), f"a document of {str(corpus)!r}"))
        tools[each["name"]], by_number[number] = each, each["name"]
    labels = Labels(frozenset(tools))
    for split in ("train", "test"):
        judged: dict[str, list[str]] = {}
        qrels = corpus.parent / f"qrels.{split}.tsv"
        if not qrels.is_file():
            continue
        for number, _, document, relevance in _table(qrels):
            if int(relevance) > 0:
                judged.setdefault(number, []).append(by_number.get(document, f"document {document}"))
        for number, query in _table(one_file(corpus.parent, f"{split}.query.txt", "ToolBench")):
            needs = [(name, [name]) for name in judged.get(number, ())]
            labels.add({"id": f"{split}-{number}", "query": query, "split": split}, needs)
    return labels.made(tools.values())


def _table(file: Path, *, header: bool = False) -> Iterator[list[str]]:
    rows = csv.reader(io.StringIO(read_text(file), newline=""), delimiter="\t")
    yield from (row for at, row in enumerate(rows) if row and not (header and at == 0))


FORMS: dict[str, PublicForm] = {
    form.name: form
    for form in (
        PublicForm("bfcl", "BFCL", (("BFCL_v*_*.json",),), _bfcl),
        PublicForm("livemcpbench", "LiveMCPBench", (("all_annotations.json",),), _livemcpbench),
        PublicForm("metatool", "MetaTool", (("plugin_des.json",),), _metatool),
        PublicForm("sealtools", "Seal-Tools", (("tool.jsonl",),), _sealtools),
        PublicForm("toolbench", "ToolBench", (("G[123]_*.json",), ("corpus.tsv",)), _toolbench),
        PublicForm("toolret", "ToolRet", (("*tools*.json*", "*queries*.json*"),), _toolret, "documentation"),
    )
}
