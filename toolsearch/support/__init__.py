"""Small helpers that every other package uses and that know nothing of tools; not part of the public interface.

checks      options a program passes, checked        text        valid UTF-8, plain JSON, what a model reads
threads     threads that never keep a program alive  context     which conversation and call the code works for
plugins     entry points by name                     redaction   secrets out of texts that are shown
html        what notebooks show                      json_types  names for JSON as types
base64_data placeholders for data in Base64          bounded_cache   a cache bounded by the weight of its values
processes   which process this is, and if one has ended   json_changes    what differs between two states
sqlite_errors   what a damaged file of SQLite raises
large_values    what is too large for an event loop           locks           locks between processes
private_files   files that only their owner may read           tool_questions  what a running tool asks of the user
server_files    the form of mcp.json
"""
