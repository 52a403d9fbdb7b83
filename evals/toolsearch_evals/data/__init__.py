"""What is measured with: cases, that is requests with the tools that meet them, and the tools.

cases    labelled cases and their tools, read from files       check   what is wrong with a data set
files    lines of JSON, and definitions in any form            notes   what a reader of a report must know about them
drafts   cases for one's own tools, to be edited               derive  larger catalogs, made up and marked as derived
public_sets, public_forms   public research sets, from the folders that their authors publish
argument_maker   arguments that a tool accepts
"""

from toolsearch_evals.data.cases import Case, Dataset, Groups, load
from toolsearch_evals.data.check import problems

__all__ = ["Case", "Dataset", "Groups", "load", "problems"]
