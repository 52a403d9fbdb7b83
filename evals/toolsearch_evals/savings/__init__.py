"""What search saves over whole conversations, by the number of tools.

plan       what is played                            sweep       plays it, and makes rows of it
jobs       one conversation, one catalog, one way    stage       plays jobs; with several processes, in workers
conversations   which cases follow one another       catalogs    the catalog of a conversation, as it grows
scripted   the model that plays                      played      what it played, with the tokens of every request
prices     what that costs                           runs        conversations with their costs, and what is assumed
rows       what conversations cost                   intervals   how sure that is
break_even   from where on search is cheaper         workers     playing in several processes
formats    what a request looks like on each wire    rendering   what a provider is known to make of it
format_plugins   formats that others add             spring      the same in a published setting
noted      a format that notes what is said, and what the tokens are spent on
own_tokens, own_play, own_report   the same for tools without labelled cases
choice     the choice of a delivery by price: fitted, and judged by its regret          choice_report   as a report
savings_run   a sweep as a run, kept, priced again and compared
report     what the sweep found, as a report, with its parts (headline, cards, charts, tables, notes, worked)
"""

from toolsearch_evals.savings.formats import WireFormat
from toolsearch_evals.savings.jobs import Job, jobs_of
from toolsearch_evals.savings.played import PlayedConversation, PlayedRequest, PlayedTurn
from toolsearch_evals.savings.prices import PriceProfile, cost, profile_of
from toolsearch_evals.savings.report import savings_report
from toolsearch_evals.savings.sweep import SweepPlan, rows_of, sweep

__all__ = [
    "Job",
    "PlayedConversation",
    "PlayedRequest",
    "PlayedTurn",
    "PriceProfile",
    "SweepPlan",
    "WireFormat",
    "cost",
    "jobs_of",
    "profile_of",
    "rows_of",
    "savings_report",
    "sweep",
]
