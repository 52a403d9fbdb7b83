"""The options of `toolsearch eval savings` that take several values."""

import pytest

from toolsearch import SetupError
from toolsearch_evals.cli.savings_options import read_axes, read_modes


def test_each_axis_takes_several_values_with_commas() -> None:
    axes = read_axes("3, 10", "0,.5,1", "cold,warm", "plain,gpt-5", "1,.9")
    assert axes["turns"] == (3, 10)
    assert axes["localities"] == (0.0, 0.5, 1.0)
    assert axes["caches"] == ("cold", "warm")
    assert axes["prices"] == ("plain", "gpt-5")
    assert axes["static_success"] == (1.0, 0.9)


def test_what_users_run_is_measured_if_no_delivery_is_asked_for() -> None:
    assert read_modes(None) == ("auto", "append", "bridge")
    assert read_modes(["bridge"]) == ("bridge",)
    with pytest.raises(SetupError, match="no delivery 'lazy' to measure; there are: 'append', 'bridge', 'auto'"):
        read_modes(["lazy"])


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        (("three", "0", "cold", "plain", "1"), "--turns 'three' does not hold whole numbers .* such as 3,10"),
        (("0", "0", "cold", "plain", "1"), "--turns '0': 0 is below 1"),
        (("3,", "0", "cold", "plain", "1"), "--turns '3,' does not hold whole numbers"),
        (("3", "2", "cold", "plain", "1"), "--locality '2': 2 is not from 0 to 1"),
        (("3", "0", "", "plain", "1"), "--cache '' does not hold names"),
        (("3", "0", "cold", "plain", "nan"), "--static-success 'nan': nan is not from 0 to 1"),
    ],
)
def test_a_value_that_cannot_be_read_is_named(axes: tuple[str, str, str, str, str], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        read_axes(*axes)
