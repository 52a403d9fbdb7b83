"""The search seam: `find` does for every index what none should do twice; an index only scores.

index       find, Hit, Hits, and indexes by name            confidence  how sure a hit is: probabilities and verdicts
diversity   like tools that crowd out the rest              learned     what use has taught
upkeep      an index kept in step with a catalog
"""

from toolsearch.search.confidence import Fit, Verdict, verdict
from toolsearch.search.index import Hit, Hits, find, open_index
from toolsearch.search.learned import Learned, Lesson

__all__ = ["Fit", "Hit", "Hits", "Learned", "Lesson", "Verdict", "find", "open_index", "verdict"]
