"""What learning from use brings.

months   simulated months of use            simulated_month   the requests of such a month
report   what `months` measured, as a report
"""

from toolsearch_evals.learning.months import learning

__all__ = ["learning"]
