"""What is measured with: cases, that is requests with the tools that meet them, and the tools.

cases    labelled cases and their tools, read from a folder      check   what is wrong with a data set
derive   larger catalogs, made up from a given one and marked as derived
argument_maker   arguments that a tool accepts
"""

from toolsearch_evals.data.cases import Case, Dataset, Groups, load
from toolsearch_evals.data.check import problems

__all__ = ["Case", "Dataset", "Groups", "load", "problems"]
