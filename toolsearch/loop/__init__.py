"""The agent loop: a conversation as a state machine, and drivers that do what it asks for.

agent         Agent: the front door                            conversation  facts in, commands out: the state machine
batch         the open calls of one reply                      turn_loop     one turn, written once as a generator
model_step    one reply of a model                             round_step    one round of calls
turn_io       what a turn does through its driver              effects       what the loop asks of its driver
drivers       one with threads, one with tasks                 activities    work that runs in the background
resumption    continuing where a journal ends                  layering      layers around a step, for sync and async
trampoline    the one place that sends into a generator        evictions     conversations that leave the memory
actions       a warning if actions run without an approval     replies       what becomes of a reply that is no answer
stored_journal  a turn's journal in its store                  leases        one worker at a time for a conversation
large_facts     what is too large for an event loop            session_states  the session after each fact, as changes
"""

from toolsearch.loop.agent import Agent
from toolsearch.loop.conversation import Conversation

__all__ = ["Agent", "Conversation"]
