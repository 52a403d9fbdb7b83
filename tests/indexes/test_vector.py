"""Search by meaning: exact, in step while it changes, and silent where nothing is near."""

import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import Catalog, MissingExtra, QueryError, SetupError, Tool, find
from toolsearch.testing import check_index
from toolsearch_indexes import vectors as vectors_module
from toolsearch_indexes.hybrid import HybridIndex
from toolsearch_indexes.vector import VectorIndex
from toolsearch_indexes.vectors import VectorMatrix


class Written:
    """An encoder whose vectors are written down, by the first word of a text that has one."""

    def __init__(self, vectors: dict[str, Sequence[float]], name: str = "written") -> None:
        self.vectors, self.name = vectors, name
        self.width = len(next(iter(vectors.values())))

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        nothing = [0.0] * self.width
        found = [next((self.vectors[w] for w in t.strip(".").split() if w in self.vectors), nothing) for t in texts]
        return np.array(found, np.float32)


def tools(*names: str, **descriptions: str) -> list[Tool]:
    given = {**dict.fromkeys(names, ""), **descriptions}
    return list(Catalog([{"name": name, "description": text} for name, text in given.items()]))


def ids(found: Sequence[Any]) -> list[str]:
    return [scored.id for scored in found]


def test_it_keeps_every_promise_of_an_index(hashed_words):
    check_index(lambda: VectorIndex(type(hashed_words)()))


def test_it_keeps_every_promise_with_the_static_encoder():
    check_index(VectorIndex)


def test_what_has_no_direction_is_never_found():
    """Case H04: the zero vector of an empty text, whose cosine would be NaN, does not come first."""
    index = VectorIndex(Written({"good": [1, 0], "empty": [0, 0]}))
    index.add(tools("good", "empty"))
    assert ids(index.search("good", 2)) == ["good"]
    assert index.search("empty", 2) == []
    assert index.search("said in no known word", 2) == []
    assert len(index) == 2


def test_removing_shifts_no_ids():
    """Case H06: after the first tool is removed, a search for another gives that one and not its neighbour."""
    names = ["anna", "bert", "carl", "dora"]
    index = VectorIndex(Written({name: np.eye(4)[n] for n, name in enumerate(names)}))
    index.add(tools(*names))
    index.remove(["anna"])
    assert [ids(index.search(name, 4)) for name in names] == [[], ["bert"], ["carl"], ["dora"]]


def test_another_width_is_an_error_with_both_numbers_and_names():
    """Case H01: vectors of two widths, or of two models of one width, are never compared."""
    encoder = Written({"mail": [1, 0, 0]}, "small")
    index = VectorIndex(encoder)
    index.add(tools("mail"))
    encoder.vectors, encoder.width, encoder.name = {"mail": [1, 0, 0, 0, 0]}, 5, "large"
    for act in (lambda: index.add(tools("post")), lambda: index.search("mail", 5)):
        with pytest.raises(SetupError, match=r"3 numbers by 'small'.*'large'.* 5: .*Make a new index"):
            act()
    index.remove(["mail"])
    index.add(tools("mail"))
    assert ids(index.search("mail", 5)) == ["mail"]


def test_an_encoder_that_breaks_its_own_width_is_named():
    encoder = Written({"mail": [1, 0, 0]}, "small")
    encoder.width = 4
    with pytest.raises(SetupError, match=r"'small' gave an array of shape \(.*, 3\), not \(.*, 4\)"):
        VectorIndex(encoder).add(tools("mail"))


def test_searches_while_tools_come_and_go_see_ids_and_rows_in_step(hashed_words):
    """Case H09: eight threads search, one adds and removes 500 tools; no error, and no id with another's vector."""
    words = [f"word{chr(97 + n % 26)}{chr(97 + n // 26)}x" for n in range(500)]
    index = VectorIndex(hashed_words)
    index.add(tools("steady_one", "steady_two"))
    failures: list[Any] = []
    done = threading.Event()

    def search(thread: int) -> None:
        try:
            at = thread
            while not done.is_set():
                at = (at + 7) % len(words)
                near = [scored.id for scored in index.search(words[at], 3) if scored.score > 0.9]
                failures.extend((words[at], tool_id) for tool_id in near if tool_id != words[at])
                if ids(index.search("steady one", 1)) != ["steady_one"]:
                    failures.append("steady_one")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search, args=(n,)) for n in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        made = tools(*words)
        for start in range(0, 500, 50):
            index.add(made[start : start + 50])
            index.remove(words[max(0, start - 25) : start + 10])
        index.remove(words)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert failures == []
    assert len(index) == 2


def test_a_tool_that_is_replaced_over_and_over_is_found_once_at_any_time(hashed_words):
    index = VectorIndex(hashed_words)
    both = [tools(f"other_{n}", mail=f"Send a mail, version {n}") for n in (1, 2)]
    only = frozenset(["mail"])
    index.add([each for pair in both for each in pair])
    failures: list[Any] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                for among in (None, only, {"mail"}):
                    found = ids(index.search("send a mail", 1, among))
                    if found != ["mail"]:
                        failures.append((among, found))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for n in range(300):
            index.add(both[n % 2])
            index.remove([f"other_{n % 2 + 1}"])
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert failures == []


def test_what_did_not_change_is_not_encoded_again(hashed_words):
    index = VectorIndex(hashed_words)
    index.add(tools(send_mail="Send a mail", get_weather="Tell the weather"))
    before = hashed_words.calls
    index.add(tools(send_mail="Send a mail", get_weather="Tell the weather"))
    assert hashed_words.calls == before
    hashed_words.asked.clear()
    index.add(tools(send_mail="Send a letter", get_weather="Tell the weather"))
    assert hashed_words.asked
    assert not [text for text in hashed_words.asked if "weather" in text]
    assert ids(index.search("letter", 5)) == ["send_mail"]


def test_a_text_that_many_tools_share_is_encoded_once(hashed_words):
    made = [{"name": f"get_{n}", "input_schema": {"type": "object", "properties": {"cityName": {}}}} for n in range(99)]
    VectorIndex(hashed_words).add(list(Catalog(made)))
    assert hashed_words.asked.count("city name") == 1
    assert hashed_words.calls == 1


def test_filters_apply_before_ranking(hashed_words):
    index = VectorIndex(hashed_words)
    index.add(tools(*(f"mail_{n}" for n in range(200))))
    for allowed in (["mail_7"], [f"mail_{n}" for n in range(5, 190)]):
        for _ in range(2):  # the second search has the set's places at hand
            assert set(ids(index.search("mail", 200, frozenset(allowed)))) == set(allowed)
    assert index.search("mail", 5, {"mail_3", "no_such_tool"})[0].id == "mail_3"
    kept = frozenset(["mail_3", "mail_4"])
    assert len(index.search("mail", 5, kept)) == 2
    index.remove(["mail_4"])
    assert ids(index.search("mail", 5, kept)) == ["mail_3"]
    index.add(tools("mail_4"))
    assert set(ids(index.search("mail", 5, kept))) == kept


def test_equal_tools_have_equal_scores_wherever_they_are_in_the_matrix():
    encoder = Written({"mail": np.linspace(0.1, 1, 37), "noise": np.linspace(1, -1, 37)})
    index = VectorIndex(encoder)
    index.add(tools(*(("mail" if n % 3 else "noise") + f" {n:03}" for n in range(300))))
    found = index.search("mail", 100)
    assert {scored.score for scored in found} == {1.0}
    assert ids(found) == sorted(ids(found))


@pytest.mark.parametrize("make", [VectorIndex, HybridIndex])
def test_a_bar_that_is_no_cosine_is_refused(make: Any) -> None:
    with pytest.raises(SetupError, match="near must be a cosine of at least 0 and below 1, not 7"):
        make(near=7)
    with pytest.raises(SetupError, match=r"near_alone must be a cosine .* or None for one that suits"):
        make(near_alone="high")


def test_a_query_in_words_the_catalog_does_not_know_must_be_nearer():
    index = VectorIndex(Written({"mail": [1, 0], "post": [0.3, 0.954], "letter": [0.4, 0.917]}))
    index.add(tools(mail="post"))  # the words of the tool are mail and post; its vector is that of mail
    assert ids(index.search("post", 5)) == ["mail"]
    assert ids(index.search("letter", 5)) == ["mail"]
    for bar, found in ((None, []), (0.05, ["mail"]), (0.2, [])):
        index = VectorIndex(Written({"mail": [1, 0], "letter": [0.12, 0.993]}), near_alone=bar)
        index.add(tools("mail"))
        assert ids(index.search("letter", 5)) == found


def test_the_more_tools_are_searched_the_nearer_a_query_in_unknown_words_must_be():
    """Among many some is near to anything: one senseless query in ten is answered, whatever the size of the catalog."""
    index = VectorIndex(Written({"mail": [1, 0], "letter": [0.28, 0.96]}))
    index.add(tools("mail", *(f"other_{n}" for n in range(400))))
    assert index.search("letter", 5) == []
    assert ids(index.search("letter", 5, among={"mail", *(f"other_{n}" for n in range(20))})) == ["mail"]
    index.remove([f"other_{n}" for n in range(380)])
    assert ids(index.search("letter", 5)) == ["mail"]


def test_nothing_is_said_to_letters_without_meaning():
    index = VectorIndex()
    index.add(tools(send_mail="Send a mail", get_weather="Tell the weather of a city", create_issue="Open an issue"))
    assert [index.search(query, 5) for query in ("zzqx vvkp", "?!", "", "   ", "\ud800")] == [[]] * 5


def test_a_hit_says_that_its_meaning_was_found(hashed_words):
    index = VectorIndex(hashed_words)
    index.add(tools("send_mail"))
    (match,) = index.search("mail", 5)[0].matched
    assert (match.word, match.fields) == ("mail", ("meaning",))
    (match,) = index.search("mail " * 50, 5)[0].matched
    assert len(match.word) == 40


def test_an_encoder_that_fails_during_a_search_is_a_problem_and_no_crash(hashed_words):
    catalog = Catalog([{"name": "send_mail"}])
    index = VectorIndex(hashed_words)
    index.add(list(catalog))

    def fail(texts, *, query=False):
        raise TimeoutError("no answer")

    hashed_words.encode = fail
    with pytest.raises(QueryError):
        index.search("mail", 5)
    hits = find(catalog, index, "a mail")
    assert not hits
    assert hits.problem is not None
    assert "(TimeoutError)" in hits.problem
    assert "no answer" not in hits.problem
    assert find(catalog, index, "send_mail")[0].exact


def test_an_encoder_that_fails_for_good_during_a_search_is_a_problem_that_tells_no_address(hashed_words, caplog):
    catalog = Catalog([{"name": "send_mail"}])
    index = VectorIndex(hashed_words)
    index.add(list(catalog))

    def refused(texts, *, query=False):
        raise SetupError("http://secret.example answered with 429: insufficient_quota")

    for encode in (refused, lambda texts, *, query=False: np.full((len(texts), hashed_words.width), np.nan)):
        hashed_words.encode = encode
        problem = find(catalog, index, "a mail").problem
        assert problem == "Search by meaning does not answer now (SetupError). Try again, or name the tool."
    assert "insufficient_quota" in caplog.text


def test_of_a_change_that_could_not_be_encoded_the_old_vector_is_gone(hashed_words):
    index = VectorIndex(hashed_words)
    index.add(tools(post="Send a mail", other="Play music"))
    encode = hashed_words.encode

    def fail(texts, *, query=False):
        raise TimeoutError

    hashed_words.encode = fail
    with pytest.raises(TimeoutError):
        index.add(tools(post="Paint a wall"))
    hashed_words.encode = encode
    assert ids(index.search("mail", 5)) == []
    assert ids(index.search("music", 5)) == ["other"]
    index.add(tools(post="Paint a wall"))
    assert ids(index.search("wall", 5)) == ["post"]


def test_an_empty_index_asks_its_encoder_nothing(hashed_words):
    index = VectorIndex(hashed_words)
    assert index.search("mail", 5) == []
    index.add(tools("mail"))
    index.remove(["mail"])
    calls = hashed_words.calls
    assert index.search("mail", 5) == []
    assert hashed_words.calls == calls


def test_what_cannot_encode_is_refused_at_once():
    with pytest.raises(SetupError, match="there is no encoder 'no-such-encoder'"):
        VectorIndex("no-such-encoder")
    with pytest.raises(SetupError, match="no method `encode`"):
        VectorIndex(object())  # type: ignore[arg-type]


def test_without_numpy_the_message_holds_the_install_line(monkeypatch):
    monkeypatch.setattr("toolsearch_indexes.tool_vectors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'toolsearch-kit\[vector\]'"):
        VectorIndex()


def test_nothing_heavy_is_imported_until_a_tool_is_added():
    code = """
import sys
from toolsearch import open_index
for name in ("vector", "hybrid"):
    index = open_index(name)
    assert index.search("anything", 5) == []
heavy = {"numpy", "tokenizers", "safetensors", "wordllama"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


class _Model:
    """What `VectorMatrix` must do, without any cleverness."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}

    def look(self, query: Any, limit: int, among: frozenset[str] | None) -> list[tuple[float, str]]:
        scored = [(float(row @ query), i) for i, row in self.rows.items() if among is None or i in among]
        return sorted((-round(score, 5), i) for score, i in scored if score > 1e-4)[:limit]


_NAMES = st.integers(0, 120).map(str)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.lists(_NAMES, min_size=1, max_size=90, unique=True), st.integers(0, 9)),
            st.tuples(st.just("drop"), st.lists(_NAMES, max_size=90), st.just(0)),
        ),
        max_size=8,
    ),
    st.integers(1, 7),
    st.none() | st.frozensets(_NAMES),
    st.integers(0, 99),
)
def test_rows_answer_as_a_plain_scan_would_after_any_changes(steps, limit, among, seed):
    rows, model = VectorMatrix(8), _Model()
    for kind, names, number in steps:
        if kind == "put":
            vectors = np.random.default_rng(number).standard_normal((len(names), 8)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            rows.put(names, vectors)
            model.rows |= dict(zip(names, vectors, strict=True))
        else:
            rows.drop(names)
            for name in names:
                model.rows.pop(name, None)
    query = np.random.default_rng(seed).standard_normal(8).astype(np.float32)
    query /= np.linalg.norm(query)
    found, cosines = rows.find_nearest(query[None], limit, among)
    best = sorted((-round(score, 5), i) for score, i in zip(cosines[0].tolist(), found, strict=True) if score > 1e-4)
    expected = model.look(query, limit, among)
    assert len(rows) == len(model.rows)
    assert np.allclose([s for s, _ in best[: len(expected)]], [s for s, _ in expected], atol=2e-5)
    assert all(abs(float(model.rows[i] @ query) + score) < 2e-5 for score, i in best)


def test_a_large_matrix_is_multiplied_in_blocks_with_the_same_answer(monkeypatch):
    vectors = np.random.default_rng(1).standard_normal((5_000, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = VectorMatrix(16)
    rows.put([str(n) for n in range(5_000)], vectors)
    queries = vectors[[17, 4_999]]
    whole = rows.find_nearest(queries, 10)
    monkeypatch.setattr(vectors_module, "BLOCK", 16 * 300)
    found, cosines = rows.find_nearest(queries, 10)
    assert (found, cosines.tolist()) == (whole[0], whole[1].tolist())
    expected = {str(n) for query in queries for n in np.argsort(-(vectors @ query))[:10]}
    assert expected == set(found)
    assert cosines[0][found.index("17")] == cosines[1][found.index("4999")] == 1


def test_ids_that_are_asked_for_come_back_however_far_they_are():
    rows = VectorMatrix(2)
    rows.put(["near", "far", "gone"], np.array([[1, 0], [-1, 0], [1, 0]], np.float32))
    rows.drop(["gone"])
    found, cosines = rows.find_nearest(np.array([[1, 0]], np.float32), 1, None, ["far", "gone", "unknown"])
    assert dict(zip(found, cosines[0].tolist(), strict=True)) == {"near": 1.0, "far": -1.0}


def test_many_rows_that_are_equally_near_are_compared_with_one_query_at_a_time():
    rows = VectorMatrix(512)
    same = np.zeros((4_000, 512), np.float32)
    same[:, 0] = 1
    rows.put([str(n) for n in range(4_000)], same)
    queries = same[:16]
    tracemalloc.start()
    try:
        found, cosines = rows.find_nearest(queries, 5)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 4_000
    assert (cosines == 1).all()
    assert peak < 6 * same.nbytes, "not 16 times as much, a copy for each query"
