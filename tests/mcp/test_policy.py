"""Which tools may be called, by patterns and by what they do."""

import pytest

from toolsearch import SetupError, Tool, tool
from toolsearch.mcp.guards import Policy
from toolsearch.mcp.guards.policy import is_like


def tool_of(server: str, name: str, **hints: bool) -> Tool:
    return tool({"name": name, "inputSchema": {"type": "object"}, "annotations": hints}, server=server)


READ = tool_of("github", "get_issue", readOnlyHint=True)
WRITE = tool_of("github", "delete_issue", readOnlyHint=False)
UNSAID = tool_of("github", "do_something")


def test_reads_are_allowed_and_all_else_is_asked_about() -> None:
    policy = Policy.of({})
    assert [policy.verdict("github", each) for each in (READ, WRITE, UNSAID)] == ["allow", "ask", "ask"]


def test_the_strictest_pattern_decides_wherever_it_stands() -> None:
    policy = Policy.of(
        {"allow": ["github/*"], "deny": ["*/delete_*"]}, {"github": {"ask": ["get_*"], "allow": ["delete_issue"]}}
    )
    assert policy.verdict("github", UNSAID) == "allow"
    assert policy.verdict("github", WRITE) == "deny"
    assert policy.verdict("github", READ) == "ask"
    assert policy.why("github", WRITE) == "the pattern '*/delete_*' in 'deny'"
    assert policy.why("github", READ) == "the pattern 'get_*' in 'ask' of the server 'github'"


def test_a_default_is_the_verdict_on_what_no_pattern_fits() -> None:
    policy = Policy.of({"default": "deny", "allow": "github/get_*"}, {"notes": {"default": "ask"}})
    assert policy.verdict("github", READ) == "allow"
    assert policy.verdict("github", WRITE) == "deny"
    assert policy.verdict("notes", tool_of("notes", "get_note", readOnlyHint=True)) == "ask"
    assert policy.why("notes", tool_of("notes", "get_note")) == "the default of the server 'notes'"


def test_the_pattern_of_one_server_says_nothing_of_another() -> None:
    policy = Policy.of({}, {"notes": {"allow": ["*"]}})
    assert policy.verdict("notes", tool_of("notes", "delete_note")) == "allow"
    assert policy.verdict("github", WRITE) == "ask"


def test_a_tool_cannot_slip_under_the_pattern_of_another_server_by_its_name() -> None:
    policy = Policy.of({"default": "deny"}, {"a": {"allow": ["get"]}})
    assert policy.verdict("a/get", tool_of("a/get", "get")) == "deny"
    assert policy.verdict("evil", tool_of("evil", "a/get")) == "deny"


def test_a_server_with_a_slash_in_its_name_is_named_as_in_the_configuration_or_by_the_id() -> None:
    found = tool_of("@acme/mcp", "send")
    assert Policy.of({"deny": ["@acme/mcp/send"]}).verdict("@acme/mcp", found) == "deny"
    assert Policy.of({"deny": ["@acme%2Fmcp/*"]}).verdict("@acme/mcp", found) == "deny"


def test_only_the_star_has_a_meaning() -> None:
    assert is_like("a.b?[c]", "a.b?[c]")
    assert not is_like("axb?[c]", "a.b?[c]")
    assert is_like("abcbd", "a*b*d")
    assert not is_like("ab", "ab*b")
    assert is_like("line\nbreak", "*break")
    assert not is_like("Delete_issue", "delete_*")


def test_a_pattern_of_many_stars_takes_linear_time_in_the_name() -> None:
    """A regular expression would not end in this test's time: the name is the server's to choose."""
    assert not is_like("a" * 512, "*a" * 200 + "*b" + "*a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deny": ["delete_issue"]}, "the pattern 'delete_issue' in 'deny' names no server: write delete_issue/*"),
        ({"ask": [""]}, "a pattern in 'ask' is empty"),
        ({"allow": {"github": True}, "deny": 3}, "must be a collection of patterns"),
        ({"default": "maybe"}, "default must be 'allow', 'ask' or 'deny', not 'maybe'"),
    ],
)
def test_what_cannot_be_a_policy_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SetupError, match=message.replace("*", r"\*").replace("/", r"\/")):
        Policy.of(options)


def test_a_pattern_that_fits_nothing_is_named_for_it_may_be_misspelt() -> None:
    policy = Policy.of({"deny": ["gihub/delete_*", "github/delete_*"]}, {"github": {"ask": ["push"]}})
    assert policy.unused([READ, WRITE]) == ("'gihub/delete_*' in 'deny'", "'push' in 'ask' of the server 'github'")
    assert policy.unused([READ, WRITE], ["github"]) == ("'gihub/delete_*' in 'deny'",)
    anywhere = Policy.of({"deny": ["*/drop", "git*/drop", "gitlab/x", "hub/x"]})
    assert anywhere.unused([READ], ["github"]) == ("'gitlab/x' in 'deny'", "'hub/x' in 'deny'")
