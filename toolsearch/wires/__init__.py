"""Provider formats, one module each, dicts in and dicts out; no SDK is imported.

openai_chat   Chat Completions, of OpenAI and of servers that speak it      anthropic   Messages
shared        what both do alike

Each has `tools_for(session)`, `message_from(reply)`, `calls_in(reply)` and `results_for(pairs)`; see
`toolsearch.protocols.Wire`.
"""
