"""A little of an attack that `make torture` makes at length."""

from tests.torture.wires import replies, streams


def test_random_replies_and_streams_break_nothing() -> None:
    """Only `SetupError` and `ReplyError` are raised; every turn ends with an answer or with a reason of its own."""
    assert replies(600, 3).violations == []
    assert streams(90, 3).violations == []
