"""What one conversation's model may see and call.

view        what may be seen, for each caller              session     Session: what is shown, the answer to each call
loaded      the tools one conversation has                 call_plans  what is to be done with a call
meta_tool   search_tools: definition, input, answer        execution   running the tool of a planned call
searching   searches, and when they lead nowhere           teaching    which search led to which call
registry    the live sessions of a ToolSearch
"""

from toolsearch.session.call_plans import CallPlan
from toolsearch.session.session import Session

__all__ = ["CallPlan", "Session"]
