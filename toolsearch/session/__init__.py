"""What the model of one conversation may see and call.

view        the tools that each caller may see             session     Session: the tools to show, and answers to calls
loaded      the tools that one conversation has loaded     call_plans  what to do with a call
meta_tool   search_tools: its definition and its input     execution   running the tool of a planned call
searching   what a search loads and names, and repeats     search_outcome  what a search did, and its answer
teaching    which search led to which call
registry    the live sessions of a ToolSearch              visible_tools  what a caller may see of one state
replies     the calls of one reply, answered together      pinning     which tools are listed in every request
preselection  which tools come with a message          instructions  the note for the system message
directory   what there is: names, or servers and counts    subjects    what a set of tools is about
listing     queries that list names                    session_html   how a notebook shows a session
delivery    how tools reach the model, by price        signatures  a tool in one line
performing  carries out the plan of a call             declared    tools that each request declares, deferred
"""

from toolsearch.session.call_plans import CallPlan
from toolsearch.session.session import Session

__all__ = ["CallPlan", "Session"]
