"""The tantivy engine: it ranks as `keyword` does, filters before ranking, and keeps a folder through everything."""

import json
import logging
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from toolsearch import Catalog, SetupError, Tool, ToolSearch
from toolsearch.protocols import Scored
from toolsearch.search.index import find
from toolsearch.testing import check_index
from toolsearch_indexes import tantivy as module
from toolsearch_indexes.keyword import KeywordIndex
from toolsearch_indexes.tantivy import TantivyIndex

WORDS = "mail issue invoice calendar secret weather pipeline cluster photo ticket".split()
OFFICE: list[dict[str, Any]] = [
    {"name": "send_mail", "server": "post", "description": "Send an electronic mail with attachments"},
    {"name": "search_mail", "server": "post", "description": "Search the mailbox, the archive too"},
    {"name": "create_issue", "server": "tracker", "description": "Open a new issue in a project"},
    {"name": "getWeather", "description": "Weather forecast for a city"},
]


def tools(definitions: list[dict[str, Any]] = OFFICE) -> list[Tool]:
    return list(Catalog(definitions))


def many(number: int) -> list[Tool]:
    return tools(
        [
            {"name": f"{WORDS[n % 10]}_{n}", "description": f"About {WORDS[n % 7]} and {WORDS[n // 3 % 10]}."}
            for n in range(number)
        ]
    )


def filled(folder: Path | None = None, definitions: list[dict[str, Any]] = OFFICE) -> TantivyIndex:
    index = TantivyIndex(folder)
    index.add(tools(definitions))
    return index


def ids(found: list[Scored]) -> list[str]:
    return [scored.id for scored in found]


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def test_it_keeps_the_promises_of_an_index_in_memory_and_in_a_folder(tmp_path: Path) -> None:
    numbers = iter(range(1_000))
    check_index(TantivyIndex)
    check_index(lambda: TantivyIndex(tmp_path / str(next(numbers))))


def test_it_ranks_as_keyword_does() -> None:
    """SA-26, SA-27: one analysis, one score, though the engine knows weights in sixteen levels only."""
    ours, theirs = KeywordIndex(), TantivyIndex()
    for index in (ours, theirs):
        index.add(many(300))
    for query in ("mail", "mail invoice", "photo_8", "about the weather and a pipeline", "issue 31 clendar"):
        assert theirs.search(query, 7) == ours.search(query, 7) != []


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("mail NOT archive", "mail not archive"), ("description:mail", "description mail"), ("send/mail?", "send mail"),
        ('"send mail', "send mail"), ("(mail", "mail"), ("mail^abc", "mail abc"), ("mail OR *", "mail or"),
        ("[mail TO issue]", "mail to issue"), ("w15:mail", "w 15 w15 mail"), ("+mail -post", "mail post"),
        ("IN [mail]", "in mail"), ("mail~2", "mail 2"),
    ],
)  # fmt: skip
def test_what_is_syntax_elsewhere_is_a_word_here(query: str, plain: str) -> None:
    """I02."""
    index = filled()
    assert index.search(query, 5) == index.search(plain, 5) != []


@pytest.mark.parametrize("query", ["*", "NOT", "(", "", "^^", "zzqx", "reserve helicopter ride over a volcano city"])
def test_a_query_without_evidence_finds_nothing(query: str) -> None:
    """A09, I02."""
    assert filled().search(query, 5) == []


@pytest.mark.parametrize("few", [200, 0], ids=["looked up", "filtered from the best"])
def test_the_best_of_those_a_caller_may_see_are_found_however_many_others_rank_before(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW", few)
    ours, theirs = KeywordIndex(), TantivyIndex()
    for index in (ours, theirs):
        index.add(many(900))
    for allowed in (1, 5, 300):
        last = frozenset(ids(ours.search("mail invoice", 900))[-allowed:])
        assert theirs.search("mail invoice", 4, last) == ours.search("mail invoice", 4, last) != []
    assert theirs.search("mail invoice", 3, frozenset(["not_there"])) == []
    assert theirs.search("mail invoice", 3, frozenset()) == []


def test_equal_scores_are_in_order_of_id_whatever_the_order_of_adding() -> None:
    index = TantivyIndex()
    for tool in reversed(tools([{"name": f"t{n:03}", "description": "Play the violin"} for n in range(90)])):
        index.add([tool])
    assert ids(index.search("violin", 5)) == ["t000", "t001", "t002", "t003", "t004"]


def test_very_long_words_and_long_tools_are_no_trouble() -> None:
    long = "x" * 70_000
    index = filled(None, [{"name": "odd", "description": f"Takes {long} along"}, *OFFICE])
    assert ids(index.search(long, 5)) == ["odd"]


def test_a_folder_gives_the_same_answers_when_it_is_opened_again(tmp_path: Path) -> None:
    """I11: with words that were never indexed, too."""
    index = TantivyIndex(tmp_path)
    index.add(many(80))
    index.remove(["mail_0", "mail_10"])
    queries = ["mail", "invoice and weather", "mail unheardof neverseen", "neverseen", "photo_8"]
    before = [index.search(query, 10) for query in queries]
    again = TantivyIndex(tmp_path)
    assert len(again) == 78
    assert [again.search(query, 10) for query in queries] == before
    assert before[3] == []


def test_adding_tools_that_have_not_changed_writes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    before = contents(tmp_path)
    filled(tmp_path)
    assert contents(tmp_path) == before
    index = filled(tmp_path, [{**OFFICE[0], "description": "Play the violin"}, *OFFICE[1:]])
    assert ids(index.search("violin", 5)) == ["post/send_mail"]
    assert index.search("attachments", 5) == []
    assert len(index) == len(TantivyIndex(tmp_path)) == len(OFFICE)


def test_tools_that_left_the_catalog_between_two_runs_can_be_forgotten(tmp_path: Path) -> None:
    filled(tmp_path)
    index = filled(tmp_path, OFFICE[:2])
    index.keep_only(tool.id for tool in tools(OFFICE[:2]))
    assert len(index) == len(TantivyIndex(tmp_path)) == 2


@pytest.mark.parametrize("what", ["meta", "segment", "mark", "gone", "a bit"])
def test_a_damaged_index_is_logged_and_made_anew(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    """I05."""
    filled(tmp_path)
    mark, meta = tmp_path / "toolsearch-index.json", tmp_path / "index" / "meta.json"
    segment = max((tmp_path / "index").glob("*.store"))
    if what == "meta":
        meta.write_bytes(meta.read_bytes()[:2])
    elif what == "segment":
        segment.write_bytes(segment.read_bytes()[:2])
    elif what == "mark":
        mark.write_bytes(mark.read_bytes()[:2])
    elif what == "gone":
        segment.unlink()
    else:
        broken = bytearray(segment.read_bytes())
        broken[len(broken) // 2] ^= 1
        segment.write_bytes(broken)
    with caplog.at_level(logging.WARNING, "toolsearch"):
        index = TantivyIndex(tmp_path)
        assert len(index) == 0
        assert index.search("mail", 5) == []
    assert "is made anew" in caplog.text
    search = ToolSearch(Catalog(OFFICE), index=index)
    assert {hit.tool.id for hit in search.find("electronic mail")} == {"post/send_mail", "post/search_mail"}
    assert len(TantivyIndex(tmp_path)) == len(OFFICE)


def test_an_index_by_another_recipe_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path)
    mark = tmp_path / "toolsearch-index.json"
    mark.write_text(json.dumps({**json.loads(mark.read_bytes()), "recipe": "0 older"}))
    with caplog.at_level(logging.WARNING, "toolsearch"):
        assert len(TantivyIndex(tmp_path)) == 0
    assert "another version" in caplog.text
    assert len(filled(tmp_path)) == len(OFFICE)


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("my only copy")
    with pytest.raises(SetupError, match="holds files that are not an index"):
        TantivyIndex(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "my only copy"


def process(code: str, folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), str(folder), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


HOLDS = """
    import sys
    from toolsearch_indexes.tantivy import TantivyIndex
    index = TantivyIndex(sys.argv[1])
    with index._folder.writing():
        print("held", flush=True)
        sys.stdin.readline()
"""


def test_a_second_writer_waits_for_a_bounded_time_and_a_dead_one_locks_nothing(tmp_path: Path) -> None:
    """I01: two real processes."""
    filled(tmp_path)
    index = TantivyIndex(tmp_path, lock_seconds=0.5)
    with process(HOLDS, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        started = time.monotonic()
        with pytest.raises(SetupError, match="another process has been writing the index"):
            index.add(tools([{"name": "new", "description": "violin"}]))
        assert 0.4 < time.monotonic() - started < 4
        assert ids(index.search("electronic mail", 1)) == ["post/send_mail"]
        assert len(TantivyIndex(tmp_path, lock_seconds=0.1)) == len(OFFICE)
        other.kill()
        other.wait(20)
    index.add(tools([{"name": "new", "description": "violin"}]))
    assert ids(index.search("violin", 5)) == ["new"]


def test_a_folder_that_is_removed_while_it_is_in_use_is_made_anew(tmp_path: Path) -> None:
    search = ToolSearch(Catalog(OFFICE), index=filled(tmp_path / "kept"))
    for step in range(2):
        shutil.rmtree(tmp_path / "kept")
        if step:
            search.catalog.add({"name": "roll_dice", "description": "Roll dice"})
        assert "post/send_mail" in [hit.tool.id for hit in search.find("electronic mail")]
        assert len(TantivyIndex(tmp_path / "kept")) == len(OFFICE) + step


def test_a_folder_that_cannot_be_made_again_leaves_the_index_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = filled(tmp_path / "kept")
    shutil.rmtree(tmp_path / "kept")
    (tmp_path / "kept").write_text("a file")
    with caplog.at_level(logging.WARNING, "toolsearch"):
        assert "post/send_mail" in ids(index.search("electronic mail", 5))
    assert "the index stays as it was read last" in caplog.text


def test_a_process_that_dies_before_its_first_index_is_whole_leaves_a_usable_folder(tmp_path: Path) -> None:
    """I05."""
    with process(HOLDS, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        (tmp_path / "toolsearch-index.json").write_text('{"engine": "tantivy"}')
        other.kill()
        other.wait(20)
    assert len(filled(tmp_path)) == len(TantivyIndex(tmp_path)) == len(OFFICE)


def test_two_processes_that_index_at_the_same_time_both_succeed(tmp_path: Path) -> None:
    """I01: neither loses what the other wrote, and a process sees what another adds."""
    code = """
        import sys
        from toolsearch import Catalog
        from toolsearch_indexes.tantivy import TantivyIndex
        index = TantivyIndex(sys.argv[1], lock_seconds=60)
        for n in range(12):
            index.add(list(Catalog([{"name": f"{sys.argv[2]}_{n}", "description": "violin"}])))
        print(len(index.search("violin", 100)) >= 12)
    """
    index = TantivyIndex(tmp_path)
    with process(code, tmp_path, "first") as first, process(code, tmp_path, "second") as second:
        assert first.communicate(timeout=100)[0] == "True\n"
        assert second.communicate(timeout=100)[0] == "True\n"
    expected = {f"{who}_{n}" for who in ("first", "second") for n in range(12)}
    assert set(ids(index.search("violin", 100))) == expected
    assert set(ids(TantivyIndex(tmp_path).search("violin", 100))) == expected


@pytest.mark.parametrize("on_disk", [False, True])
def test_searching_goes_on_while_another_thread_updates(tmp_path: Path, on_disk: bool) -> None:
    """H09's twin for words."""
    catalog = Catalog(many(200))
    index = TantivyIndex(tmp_path if on_disk else None)
    index.add(list(catalog))
    extra = tools([{"name": f"extra_{n}", "description": "mail"} for n in range(15)])
    failures: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                assert len(index.search("mail", 5)) == 5
                assert find(catalog, index, "mail_70")[0].tool.id == "mail_70"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    for tool in extra:
        index.add([tool])
        index.remove([tool.id])
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(index) == 200


def test_a_tool_that_cannot_be_indexed_leaves_the_index_as_it_was() -> None:
    index = filled()
    broken = Tool(id="broken", name="broken", description=7)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        index.add([*tools([{"name": "new", "description": "violin"}]), broken])
    assert index.search("violin", 5) == []
    index.add(tools([{"name": "new", "description": "violin"}]))
    assert ids(index.search("violin", 5)) == ["new"]


def test_without_the_package_the_message_holds_the_install_line() -> None:
    code = """
        import sys
        sys.modules["tantivy"] = None
        from toolsearch import open_index
        try:
            open_index("tantivy")
        except ImportError as error:
            print(error)
    """
    with process(code, Path()) as other:
        told = other.communicate(timeout=60)[0]
    assert told == (
        "the index 'tantivy' needs the package 'tantivy'. Install it with: pip install 'toolsearch-kit[tantivy]' "
        "(from a clone: pip install '.[tantivy]')\n"
    )
