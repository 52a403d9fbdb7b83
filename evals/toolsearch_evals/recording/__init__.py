"""What people really asked: journals and recorded turns as cases, searched again, and summed up.

files      what is read: databases, JSON, lines            journals  turns from journals and from recorded lines
needs      what each search was for, by what was called    gateway_log   the log of a gateway as turns
cases      labelled cases drafted from turns               replay    the same searches with other settings
journal_report   what is searched in vain, never found, never called
replay_report    what the other settings would have found, and at which cost
"""

from toolsearch_evals.recording.cases import cases_from
from toolsearch_evals.recording.journal_report import journal_report
from toolsearch_evals.recording.journals import read_turns
from toolsearch_evals.recording.replay import ReplayPlan, replay_turns

__all__ = ["ReplayPlan", "cases_from", "journal_report", "read_turns", "replay_turns"]
