"""Arguments of a call that arrive as a JSON text: group P of what users of gateways report."""

import pytest

from toolsearch.mcp.guards import UnreadableArguments, read_arguments


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        (' {"a": {"b": [1, null]}}\n', {"a": {"b": [1, None]}}),
        (None, {}),
        ("", {}),
        ("null", {}),
        ("{}", {}),
        ({"text": '{"not": "touched"}'}, {"text": '{"not": "touched"}'}),
        ({"lone": "\ud800"}, {"lone": "\ufffd"}),
    ],
)
def test_an_object_or_its_text_is_read(sent: object, read: dict[str, object]) -> None:
    assert read_arguments(sent) == read


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ('{"a": 1', "not valid JSON"),
        ("path=/tmp", "not valid JSON"),
        ('{"a": NaN}', "JSON has no NaN"),
        ("[1]", "must be a JSON object, not a list"),
        (["a"], "must be a JSON object, not a list"),
        (7, "not a number"),
        (True, "not true or false"),
        ('"a text"', "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100 + "1" + "}" * 100, "nested more than 64 levels"),
        ('{"a": ' + "9" * 10_000 + "}", "not valid JSON"),
    ],
)
def test_what_is_no_object_is_refused_and_never_taken_for_no_arguments(sent: object, told: str) -> None:
    with pytest.raises(UnreadableArguments, match=told):
        read_arguments(sent)
