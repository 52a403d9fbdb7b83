"""How well an index ranks the tools that a request needs.

rank       how well an index ranks                 compare   two indexes, case by case
measures   recall, NDCG, coverage, false answers   measure_plugins   measures that others add
answers    what a model reads when it searches, and what it costs
report     what `rank` measured, as a report       misses    what it missed, case by case
agreement  how far a second annotator agrees with the labels
"""

from toolsearch_evals.ranking.compare import compare
from toolsearch_evals.ranking.measures import Measure
from toolsearch_evals.ranking.rank import ranking

__all__ = ["Measure", "compare", "ranking"]
