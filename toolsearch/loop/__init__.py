"""The agent loop: a conversation as a state machine, and drivers that do what it asks for.

agent         Agent: the front door, and the two drivers        conversation   facts in, commands out
turn_loop     one turn, written once as a generator             effects        what it asks of its driver
activities    what runs in threads or tasks                     resumption     going on where a journal ends
layering      layers around a step, written once for sync and async
"""

from toolsearch.loop.agent import Agent
from toolsearch.loop.conversation import Conversation

__all__ = ["Agent", "Conversation"]
