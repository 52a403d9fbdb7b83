"""Searching a catalog: an index only scores, and `find` does everything else for all of them.

index       find, Hit, Hits, and indexes by name            confidence  how sure a hit is: probabilities and verdicts
diversity   like tools that would crowd out the rest        learned     lessons from use
upkeep      an index kept in step with a catalog        languages   in which language a request is
"""

from toolsearch.search.confidence import Fit, Verdict, verdict
from toolsearch.search.index import Hit, Hits, find, open_index
from toolsearch.search.learned import Learned, Lesson

__all__ = ["Fit", "Hit", "Hits", "Learned", "Lesson", "Verdict", "find", "open_index", "verdict"]
