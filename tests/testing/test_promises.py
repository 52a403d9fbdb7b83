"""What every kit has in common: a broken promise is an error of its own, with and without `-O`."""

import pickle
import subprocess
import sys

import pytest

from toolsearch.testing import BrokenPromise
from toolsearch.testing.promises import is_sendable, require

PROGRAM = """
from toolsearch.testing import BrokenPromise, check_index, check_layer, check_store, check_wire

class Nothing:
    name = "nothing"
    around_tool = lambda self, call: call
    tools_for = lambda self, session: []
    calls_in = message_from = lambda self, reply: []
    add = remove = search = append = load = delete = lambda self, *args: []

for check in (check_index, check_layer, check_store):
    try:
        check(Nothing)
    except BrokenPromise as broken:
        print(check.__name__, "says", broken)
try:
    check_wire(Nothing(), reply_with_calls=lambda calls: {}, reply_with_text=lambda text: {})
except BrokenPromise as broken:
    print("check_wire says", broken)
assert False, "asserts are on"
"""


@pytest.mark.parametrize("options", [[], ["-O"], ["-OO"]])
def test_a_kit_proves_something_where_asserts_are_off(options: list[str]) -> None:
    done = subprocess.run([sys.executable, *options, "-c", PROGRAM], check=False, capture_output=True, text=True)
    assert [line.split(" says ")[0] for line in done.stdout.splitlines()] == [
        "check_index", "check_layer", "check_store", "check_wire",
    ], done.stderr  # fmt: skip
    assert ("asserts are on" in done.stderr) is not bool(options)


def test_a_broken_promise_says_which_and_how_to_see_it() -> None:
    with pytest.raises(AssertionError) as caught:
        require(False, "it forgets", "add(x), then search(x)")
    broken = caught.value
    assert isinstance(broken, BrokenPromise)
    assert (broken.promise, broken.see) == ("it forgets", "add(x), then search(x)")
    assert str(broken) == "it forgets. To see it: add(x), then search(x)"
    assert str(BrokenPromise("it forgets")) == "it forgets"
    again = pickle.loads(pickle.dumps(broken))
    assert (str(again), again.promise, again.see) == (str(broken), broken.promise, broken.see)


@pytest.mark.parametrize("value", ["\ud800", float("nan"), {1: 2}, {"a": object()}, b"x", {"a": {1}}])
def test_what_a_request_cannot_carry_is_not_sendable(value: object) -> None:
    assert not is_sendable(value)
    assert is_sendable({"a": [1, 2.5, None, True, "天气", {"b": ("c",)}]})
