"""Settings: arguments, environment and file by the same names."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from toolsearch import Settings, SetupError


def test_every_setting_has_a_default_and_they_are_those_of_the_design() -> None:
    settings = Settings.of()
    assert (settings.index, settings.mode, settings.not_loaded) == ("auto", "search", "show")
    assert (settings.expected_turns, settings.cache, settings.without_native) == (10, "cold", None)
    assert (settings.auto_tools, settings.auto_tokens) == (None, None)
    assert (settings.results, settings.named) == (2, 10)
    assert settings == Settings.load(environ={})


def test_the_later_source_wins(tmp_path: Path) -> None:
    """File, then environment, then arguments."""
    file = tmp_path / "toolsearch.toml"
    file.write_text('index = "regex"\nresults = 7\nqueries = 4\n', "utf-8")
    environment = {"TOOLSEARCH_RESULTS": "8", "TOOLSEARCH_QUERIES": "5", "OTHER": "x"}
    settings = Settings.load(file, environment, queries=6)
    assert (settings.index, settings.results, settings.queries) == ("regex", 8, 6)


def test_the_environment_may_name_the_file_and_a_pyproject_has_a_table(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[project]\nname = 'x'\n[tool.toolsearch]\nresults = 9\n", "utf-8")
    assert Settings.load(environ={"TOOLSEARCH_CONFIG": str(file)}).results == 9
    file.write_text("[project]\nname = 'x'\n", "utf-8")
    assert Settings.load(file, {}) == Settings.of()


def test_the_process_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSEARCH_SEARCH_TOOL", "find_tools")
    assert Settings.load().search_tool == "find_tools"


@pytest.mark.parametrize("none", ["none", "None", "NONE"])
def test_a_limit_can_be_taken_away_by_the_environment(none: str) -> None:
    settings = Settings.load(environ={"TOOLSEARCH_MAX_SESSIONS": none, "TOOLSEARCH_TTL_SECONDS": none})
    assert (settings.max_sessions, settings.ttl_seconds) == (None, None)


@pytest.mark.parametrize(("options", "told"), [
    ({"results": 0}, "the setting 'results' cannot be 0: Input should be greater than or equal to 1"),
    ({"results": "many"}, "the setting 'results' cannot be 'many'"),
    ({"mode": "lazy"}, "the setting 'mode' cannot be 'lazy': Input should be 'search', 'auto', 'static'"),
    ({"search_tool": "find tools"}, "the setting 'search_tool' cannot be 'find tools'"),
    ({"search_tool": "x" * 65}, "the setting 'search_tool'"),
    ({"ttl_seconds": 0}, "the setting 'ttl_seconds' cannot be 0"),
    ({"max_tools": None}, "the setting 'max_tools' cannot be None"),
    ({"reslts": 5}, "there is no setting 'reslts'; did you mean 'results'?"),
    ({"zzz": 5}, "there is no setting 'zzz'; there are index, mode"),
    ({"results": 0, "queries": 0}, "'results' cannot be 0.*; the setting 'queries' cannot be 0"),
])  # fmt: skip
def test_what_is_wrong_is_named_with_what_it_may_be(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=told.replace("?", r"\?")):
        Settings.of(**options)


@pytest.mark.parametrize(("content", "told"), [
    (b"results = ", "is not valid TOML"), (b"results = '\xff'", "is not valid TOML"),
    (b"resuls = 5", "there is no setting 'resuls'; did you mean 'results'"),
])  # fmt: skip
def test_a_broken_file_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(content)
    with pytest.raises(SetupError, match=told):
        Settings.load(file, {})


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"there is no settings file .*nowhere"):
        Settings.load(tmp_path / "nowhere.toml", {})
    with pytest.raises(SetupError, match="cannot be read"):
        Settings.load(tmp_path, {})


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings.of().results = 9  # type: ignore[misc]


def test_an_empty_variable_is_not_set() -> None:
    assert Settings.load(environ={"TOOLSEARCH_MAX_SESSIONS": "", "TOOLSEARCH_MODE": ""}) == Settings()


def test_a_variable_that_is_no_setting_is_logged_with_the_name_meant(caplog: pytest.LogCaptureFixture) -> None:
    Settings.load(environ={"TOOLSEARCH_RESULTZ": "3"})
    assert "did you mean 'results'?" in caplog.text


@pytest.mark.parametrize(("options", "told"), [
    ({"search_tool": "call_tool"}, "cannot both be 'call_tool'"),
    ({"nothing_below": 0.9}, "nothing_below=0.9 is above sure_from=0.8"),
])  # fmt: skip
def test_settings_that_contradict_each_other_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        Settings.of(**options)
