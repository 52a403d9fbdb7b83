"""What one conversation's model may see and call.

session     Session: what is shown, and the answer to each call     meta_tool  search_tools: definition, input, answer
loaded      the tools one conversation has                          searching  its searches, and when they lead nowhere
teaching    which search led to which call                          view       what may be seen, for each caller
registry    the live sessions of a ToolSearch
"""

from toolsearch.session.session import CallPlan, Session

__all__ = ["CallPlan", "Session"]
