"""What a conversation is made of: facts, the requests that models and layers receive, and a person's decisions.

facts       what happened: the facts of a journal, and the messages of a transcript
journal     how facts are stored and read back
requests    CallModel and CallTools; what each layer receives; Finished and Paused; Approve, Deny, Answer
stops       why a reply ended, in the words of providers and in ours
refusals    which tools a provider refuses, by its error
turn_view   the facts of the turn so far, for layers to look at
synthetic   every answer that is given in a tool's place, one function each
"""

from toolsearch.events.facts import (
    Answers,
    Compacted,
    Ending,
    Event,
    JudgedCall,
    Message,
    ModelCalled,
    ModelReplied,
    Note,
    Noted,
    Reply,
    ReplyDiscarded,
    RunBegan,
    RunEnded,
    TextDelta,
    ToolApproved,
    ToolDenied,
    ToolReturned,
    ToolsFound,
    ToolsRevealed,
    ToolStarted,
    ToolsUnloaded,
    ToolWaiting,
    Usage,
    UserSaid,
)
from toolsearch.events.journal import read_event, read_events, stored
from toolsearch.events.requests import (
    Answer,
    Approve,
    Call,
    CallModel,
    CallTools,
    Decision,
    Deny,
    Finished,
    Paused,
    Round,
    Run,
    Waiting,
    was_shown,
)
from toolsearch.events.turn_view import TurnView, fingerprint, is_one_of

__all__ = [
    "Answer",
    "Answers",
    "Approve",
    "Call",
    "CallModel",
    "CallTools",
    "Compacted",
    "Decision",
    "Deny",
    "Ending",
    "Event",
    "Finished",
    "JudgedCall",
    "Message",
    "ModelCalled",
    "ModelReplied",
    "Note",
    "Noted",
    "Paused",
    "Reply",
    "ReplyDiscarded",
    "Round",
    "Run",
    "RunBegan",
    "RunEnded",
    "TextDelta",
    "ToolApproved",
    "ToolDenied",
    "ToolReturned",
    "ToolStarted",
    "ToolWaiting",
    "ToolsFound",
    "ToolsRevealed",
    "ToolsUnloaded",
    "TurnView",
    "Usage",
    "UserSaid",
    "Waiting",
    "fingerprint",
    "is_one_of",
    "read_event",
    "read_events",
    "stored",
    "was_shown",
]
