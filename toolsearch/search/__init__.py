"""Searching a catalog: an index only scores, and `find` does everything else for all of them.

index       find, Hit, Hits, and indexes by name            confidence  how sure a hit is: probabilities and verdicts
diversity   like tools that would crowd out the rest        learned     what use teaches, by tenant
lessons     what was taught, and what it does to hits       probes      tools that need example queries most
upkeep      an index kept in step with a catalog            past_queries  queries as `learned` keeps them
languages   in which language a request is
abilities   what an index may offer beyond `ToolIndex`
"""

from toolsearch.search.confidence import Fit, Verdict, verdict
from toolsearch.search.index import Hit, Hits, find, open_index
from toolsearch.search.learned import Learned
from toolsearch.search.lessons import Lesson, TaughtLesson
from toolsearch.search.probes import Suggestion, suggest

__all__ = [
    "Fit",
    "Hit",
    "Hits",
    "Learned",
    "Lesson",
    "Suggestion",
    "TaughtLesson",
    "Verdict",
    "find",
    "open_index",
    "suggest",
    "verdict",
]
