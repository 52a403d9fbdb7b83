"""A look inside what was recorded: conversations as a timeline, two traces side by side, and a search box.

traces     conversations read from journals, records and logs       steps   what a turn is made of, as data
turns      the facts of a journal as turns                          rounds  what a request cost, and what the cache lost
gateway_turns    the log of a gateway as turns
inspect_report   what a trace says                                  against   two traces side by side
inspect_page     the page with its timeline                         costs     by model, by tool, by the cache
box        what a query finds, by each index     live    a search box on loopback     live_tools   its tools
"""

from toolsearch_evals.inspection.against import against_report
from toolsearch_evals.inspection.inspect_page import inspect_page
from toolsearch_evals.inspection.inspect_report import inspect_report
from toolsearch_evals.inspection.steps import Words
from toolsearch_evals.inspection.traces import Trace, read_trace

__all__ = ["Trace", "Words", "against_report", "inspect_page", "inspect_report", "read_trace"]
