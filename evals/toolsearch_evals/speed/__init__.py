"""How fast the indexes are, next to published engines.

timing    searches, building and changing   engines   what is timed
engine_process   one engine in a process of its own
import_cost      what `import toolsearch` costs
report    what `timing` measured, as a report
"""

from toolsearch_evals.speed.timing import speed

__all__ = ["speed"]
