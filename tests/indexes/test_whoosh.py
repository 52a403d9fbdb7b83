"""The whoosh engine: what it finds, what it keeps in a folder, and what happens when the folder is shared or broken."""

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
from toolsearch_indexes.keyword import KeywordIndex
from toolsearch_indexes.whoosh import WhooshIndex

WORDS = "mail issue invoice calendar secret weather pipeline cluster photo ticket".split()
OFFICE: list[dict[str, Any]] = [
    {"name": "send_mail", "server": "post", "description": "Send an electronic mail with attachments"},
    {"name": "search_mail", "server": "post", "description": "Search the mailbox, the archive too"},
    {"name": "create_issue", "server": "tracker", "description": "Open a new issue in a project"},
    {"name": "getWeather", "description": "Weather forecast for a city"},
    {"name": "calendar_add", "description": "Add an event to a calendar, created by anyone"},
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


def filled(folder: Path | None = None, definitions: list[dict[str, Any]] = OFFICE) -> WhooshIndex:
    index = WhooshIndex(folder)
    index.add(tools(definitions))
    return index


def ids(found: list[Scored]) -> list[str]:
    return [scored.id for scored in found]


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir() if file.is_file()}


def test_it_keeps_the_promises_of_an_index_in_memory_and_in_a_folder(tmp_path: Path) -> None:
    numbers = iter(range(1_000))
    check_index(WhooshIndex)
    check_index(lambda: WhooshIndex(tmp_path / str(next(numbers))))


def test_it_ranks_as_keyword_does() -> None:
    """SA-26, SA-27: one analysis, one score; tests/indexes/test_engines_agree.py has more."""
    ours, theirs = KeywordIndex(), WhooshIndex()
    for index in (ours, theirs):
        index.add(many(300))
    for query in ("mail", "mail invoice", "photo_8", "about the weather and a pipeline", "issue 31 clendar"):
        assert theirs.search(query, 7) == ours.search(query, 7) != []


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("mail NOT archive", "mail not archive"), ("created:anyone", "created anyone"), ("a:b:c mail", "a b c mail"),
        ("send/mail?", "send mail"), ('"send mail', "send mail"), ("(mail", "mail"), ("NOT mail", "not mail"),
        ("mail^abc", "mail abc"), ("mail ANDNOT archive", "mail andnot archive"), ("mail OR *", "mail or"),
        ("[mail TO issue]", "mail to issue"), ("ma?l mail~2", "ma l mail 2"), ("mail && calendar", "mail calendar"),
    ],
)  # fmt: skip
def test_what_is_syntax_elsewhere_is_a_word_here(query: str, plain: str) -> None:
    """I02: no exception, and the same hits as without the punctuation."""
    index = filled()
    assert index.search(query, 5) == index.search(plain, 5) != []


@pytest.mark.parametrize("query", ["*", "NOT", "(", "?", "~", "", "^^", "zzqx", "zzqx:", "zz AND qx"])
def test_a_query_without_a_known_word_finds_nothing(query: str) -> None:
    """I02: a wildcard does not bring everything."""
    assert filled().search(query, 5) == []


def test_one_word_is_no_evidence_where_the_catalog_knows_none_of_the_others() -> None:
    """A09: never padded."""
    assert filled().search("reserve helicopter ride over volcano for a city", 5) == []


def test_the_best_of_those_a_caller_may_see_are_found_however_many_others_rank_before() -> None:
    index = WhooshIndex()
    index.add(many(500))
    last = ids(index.search("mail invoice", 500))[-3:]
    assert ids(index.search("mail invoice", 3, frozenset(last))) == last
    assert index.search("mail invoice", 3, frozenset(["not_there"])) == []
    assert index.search("mail invoice", 3, frozenset()) == []


def test_equal_scores_are_in_order_of_id_whatever_the_order_of_adding() -> None:
    same = tools([{"name": f"t{n:03}", "description": "Play the violin"} for n in range(90)])
    index = WhooshIndex()
    for tool in reversed(same):
        index.add([tool])
    assert ids(index.search("violin", 5)) == ["t000", "t001", "t002", "t003", "t004"]


def test_a_word_of_twenty_thousand_letters_costs_no_time_and_is_found() -> None:
    """STACK: it takes whoosh's own analysis five seconds."""
    long = "x" * 20_000
    started = time.perf_counter()
    index = filled(None, [{"name": "odd", "description": f"Takes {long} along"}, *OFFICE])
    assert ids(index.search(long, 5)) == ["odd"]
    assert time.perf_counter() - started < 2


def test_a_folder_gives_the_same_answers_when_it_is_opened_again(tmp_path: Path) -> None:
    """I11: with words that were never indexed, too."""
    index = WhooshIndex(tmp_path)
    index.add(many(80))
    index.remove(["mail_0", "mail_10"])
    queries = ["mail", "invoice and weather", "mail unheardof neverseen", "neverseen", "photo_8"]
    before = [index.search(query, 10) for query in queries]
    again = WhooshIndex(tmp_path)
    assert len(again) == 78
    assert [again.search(query, 10) for query in queries] == before
    assert before[3] == []


def test_adding_tools_that_have_not_changed_writes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    before = contents(tmp_path)
    filled(tmp_path)
    assert contents(tmp_path) == before
    changed = [{**OFFICE[0], "description": "Play the violin"}, *OFFICE[1:]]
    index = filled(tmp_path, changed)
    assert contents(tmp_path) != before
    assert ids(index.search("violin", 5)) == ["post/send_mail"]
    assert len(index) == len(OFFICE)


def test_a_changed_schema_is_a_change(tmp_path: Path) -> None:
    filled(tmp_path)
    more = {"type": "object", "properties": {"violin": {"type": "string"}}}
    assert ids(filled(tmp_path, [{**OFFICE[0], "input_schema": more}]).search("violin", 5)) == ["post/send_mail"]


def test_tools_that_left_the_catalog_between_two_runs_can_be_forgotten(tmp_path: Path) -> None:
    filled(tmp_path)
    index = filled(tmp_path, OFFICE[:2])
    index.keep_only(tool.id for tool in tools(OFFICE[:2]))
    assert len(index) == len(WhooshIndex(tmp_path)) == 2


def test_what_removed_tools_leave_behind_does_not_grow(tmp_path: Path) -> None:
    index = WhooshIndex(tmp_path)
    index.add(many(100))
    for turn in range(12):
        index.add([Tool(id=f"t{n}", name=f"t{n}", description=f"mail {turn}") for n in range(100)])
    assert len(index) == 200
    assert sum(len(content) for _, content in contents(tmp_path).values()) < 300_000
    assert not [file for file in tmp_path.iterdir() if file.is_dir() or file.suffix == ".part"]


@pytest.mark.parametrize("what", ["toc", "seg", "mark", "toc gone", "seg a bit", "mark of nothing", "mark too deep"])
def test_a_damaged_index_is_logged_and_made_anew(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    """I05: the table of contents is cut to two bytes by a crash, and other ways to break a folder."""
    filled(tmp_path)
    mark = tmp_path / "toolsearch-index.json"
    (toc,) = tmp_path.glob("*.toc")
    segment = next(tmp_path.glob("*.seg"))
    if what == "toc":
        toc.write_bytes(toc.read_bytes()[:2])
    elif what == "seg":
        segment.write_bytes(segment.read_bytes()[:2])
    elif what == "mark":
        mark.write_bytes(mark.read_bytes()[:2])
    elif what == "toc gone":
        toc.unlink()
    elif what == "seg a bit":
        broken = bytearray(segment.read_bytes())
        broken[len(broken) // 2] ^= 1
        segment.write_bytes(broken)
    elif what == "mark too deep":
        mark.write_text("[" * 100_000)
    else:
        mark.write_text(json.dumps({**json.loads(mark.read_bytes()), "files": 7}))
    with caplog.at_level(logging.WARNING, "toolsearch"):
        index = WhooshIndex(tmp_path)
        assert len(index) == 0
        assert index.search("mail", 5) == []
    assert "is made anew" in caplog.text
    search = ToolSearch(Catalog(OFFICE), index=index)
    assert {hit.tool.id for hit in search.find("electronic mail")} == {"post/send_mail", "post/search_mail"}
    assert len(WhooshIndex(tmp_path)) == len(OFFICE)


def test_an_index_by_another_recipe_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Stored weights of an older version are never mixed with new ones."""
    filled(tmp_path)
    mark = tmp_path / "toolsearch-index.json"
    mark.write_text(json.dumps({**json.loads(mark.read_bytes()), "recipe": "0 older"}))
    with caplog.at_level(logging.WARNING, "toolsearch"):
        assert len(WhooshIndex(tmp_path)) == 0
    assert "another version" in caplog.text


def test_an_index_that_is_lost_while_it_is_in_use_is_made_anew_by_the_process_that_has_the_tools(
    tmp_path: Path,
) -> None:
    index = filled(tmp_path)
    mark = tmp_path / "toolsearch-index.json"
    mark.write_bytes(b"{")
    assert "post/send_mail" in ids(index.search("electronic mail", 5))
    assert len(WhooshIndex(tmp_path)) == len(OFFICE)


def test_a_folder_that_is_removed_while_it_is_in_use_is_made_anew(tmp_path: Path) -> None:
    search = ToolSearch(Catalog(OFFICE), index=filled(tmp_path / "kept"))
    for step in range(2):
        shutil.rmtree(tmp_path / "kept")
        if step:
            search.catalog.add({"name": "roll_dice", "description": "Roll dice"})
        assert "post/send_mail" in [hit.tool.id for hit in search.find("electronic mail")]
        assert len(WhooshIndex(tmp_path / "kept")) == len(OFFICE) + step


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
    """I05: files without a mark would look like somebody else's."""
    with process(HOLDS, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        (tmp_path / "tools_half.seg").write_bytes(b"half")
        other.kill()
        other.wait(20)
    assert len(filled(tmp_path)) == len(WhooshIndex(tmp_path)) == len(OFFICE)
    assert (tmp_path / "tools_half.seg").exists(), "no mark has named it, so it may be somebody else's"


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("my only copy")
    with pytest.raises(SetupError, match=r"holds files that are not an index, such as 'thesis\.txt'"):
        WhooshIndex(tmp_path)
    with pytest.raises(SetupError, match="cannot be the folder of an index"):
        WhooshIndex(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "my only copy"
    other = tmp_path / "other"
    other.mkdir()
    (other / "toolsearch-index.json").write_text('{"engine": "tantivy"}')
    with pytest.raises(SetupError, match="holds an index of 'tantivy', not of 'whoosh'"):
        WhooshIndex(other)


def process(code: str, folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), str(folder), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


HOLDS = """
    import sys
    from toolsearch_indexes.whoosh import WhooshIndex
    index = WhooshIndex(sys.argv[1])
    with index._folder.writing():
        print("held", flush=True)
        sys.stdin.readline()
"""


def test_a_second_writer_waits_for_a_bounded_time_and_then_says_why(tmp_path: Path) -> None:
    """I01: two real processes."""
    filled(tmp_path)
    index = WhooshIndex(tmp_path, lock_seconds=0.5)
    with process(HOLDS, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        started = time.monotonic()
        with pytest.raises(SetupError, match=r"another process has been writing the index in .* Raise lock_seconds"):
            index.add(tools([{"name": "new", "description": "violin"}]))
        assert 0.4 < time.monotonic() - started < 4
        started = time.monotonic()
        for tool in many(5):
            with pytest.raises(SetupError, match="another process"):
                index.add([tool])
        assert time.monotonic() - started < 0.4, "a batch that is retried one by one waits once"
        assert ids(index.search("electronic mail", 1)) == ["post/send_mail"], "searching goes on"
        assert len(WhooshIndex(tmp_path, lock_seconds=0.1)) == len(OFFICE), "so does opening"
        other.communicate("\n", timeout=20)
    index.add(tools([{"name": "new", "description": "violin"}]))
    assert ids(index.search("violin", 5)) == ["new"]


def test_a_lock_left_behind_by_a_process_that_died_locks_nothing(tmp_path: Path) -> None:
    """I01: a stale lock."""
    with process(HOLDS, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        other.kill()
        other.wait(20)
    assert (tmp_path / "toolsearch-index.lock").exists()
    started = time.monotonic()
    assert len(filled(tmp_path)) == len(OFFICE)
    assert time.monotonic() - started < 4


def test_two_processes_that_index_at_the_same_time_both_succeed(tmp_path: Path) -> None:
    """I01: neither loses what the other wrote, and a process sees what another adds."""
    code = """
        import sys
        from toolsearch import Catalog
        from toolsearch_indexes.whoosh import WhooshIndex
        index = WhooshIndex(sys.argv[1], lock_seconds=60)
        for n in range(15):
            index.add(list(Catalog([{"name": f"{sys.argv[2]}_{n}", "description": "violin"}])))
        print(len(index.search("violin", 100)) >= 15)
    """
    index = WhooshIndex(tmp_path)
    with process(code, tmp_path, "first") as first, process(code, tmp_path, "second") as second:
        assert first.communicate(timeout=100)[0] == "True\n"
        assert second.communicate(timeout=100)[0] == "True\n"
    expected = {f"{who}_{n}" for who in ("first", "second") for n in range(15)}
    assert set(ids(index.search("violin", 100))) == expected
    assert set(ids(WhooshIndex(tmp_path).search("violin", 100))) == expected


@pytest.mark.parametrize("on_disk", [False, True])
def test_searching_goes_on_while_another_thread_updates(tmp_path: Path, on_disk: bool) -> None:
    """H09's twin for words; STACK: whoosh's memory raced once in 4,500 searches beside a writer."""
    catalog = Catalog(many(200))
    index = WhooshIndex(tmp_path if on_disk else None)
    index.add(list(catalog))
    extra = tools([{"name": f"extra_{n}", "description": "mail"} for n in range(12)])
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
    assert ids(index.search("electronic mail", 1)) == ["post/send_mail"]
    index.remove(["broken"])
    index.add(tools([{"name": "new", "description": "violin"}]))
    assert ids(index.search("violin", 5)) == ["new"]


def test_without_the_package_the_message_holds_the_install_line() -> None:
    code = """
        import sys
        sys.modules["whoosh"] = None
        from toolsearch import open_index
        try:
            open_index("whoosh")
        except ImportError as error:
            print(error)
    """
    with process(code, Path()) as other:
        told = other.communicate(timeout=60)[0]
    assert told == (
        "the index 'whoosh' needs the package 'Whoosh'. Install it with: pip install 'toolsearch-kit[whoosh]' "
        "(from a clone: pip install '.[whoosh]')\n"
    )


def test_its_sources_compile_without_a_warning_where_warnings_are_errors(tmp_path: Path) -> None:
    """STACK: escapes in its strings warn at the first compile, so its cached byte code must not be what is tested."""
    code = f"""
        import sys
        sys.pycache_prefix = {str(tmp_path)!r}
        from toolsearch.testing import check_index
        from toolsearch_indexes.whoosh import WhooshIndex
        before = {{name for name in sys.modules if name.startswith("whoosh")}}
        check_index(WhooshIndex)
        print({{name for name in sys.modules if name.startswith("whoosh")}} - before or "nothing more")
    """
    with process(code, tmp_path) as other:
        assert other.communicate(timeout=100)[0] == "nothing more\n"
