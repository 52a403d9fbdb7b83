"""Provider formats, one module each, dicts in and dicts out; no SDK is imported.

Each has `tools_for(session)`, `message_from(reply)`, `calls_in(reply)` and `results_for(pairs)`.
"""
