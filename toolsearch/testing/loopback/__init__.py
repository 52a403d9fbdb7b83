"""A provider on this machine whose replies are written down, for tests of a loop, a wire or a program, without a key.

server         LoopbackProvider: HTTP on 127.0.0.1, one address for every format
steps          what a script may say              schema_rules   the tool definitions that providers refuse

One module for each format: what such a provider refuses, its replies whole and streamed, its errors:
openai_chat   Chat Completions       openai_responses   Responses       anthropic   Messages
gemini        generateContent        ollama             /api/chat       responses_rules   what Responses refuses
"""

from toolsearch.testing.loopback.server import LoopbackProvider
from toolsearch.testing.loopback.steps import Failure

__all__ = ["Failure", "LoopbackProvider"]
