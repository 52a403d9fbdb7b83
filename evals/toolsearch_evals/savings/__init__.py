"""What search saves over whole conversations, by the number of tools.

sweep      plays conversations in catalogs of every size     rows     what they cost, and where search breaks even
scripted   the model that plays                              spring   the same in a published setting
formats    what it writes, and what a request looks like, on each wire
format_plugins   formats that others add
report     what the sweep found, as a report, with its cards, charts and notes (cards, charts, notes)
"""

from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.sweep import SweepPlan, sweep

__all__ = ["SweepPlan", "WireFormat", "savings_report", "sweep"]
