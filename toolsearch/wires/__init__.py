"""Provider formats, one module each, dicts in and dicts out; no SDK is imported.

openai_chat   Chat Completions, of OpenAI and of servers that speak it      anthropic   Messages
openai_responses   Responses, of OpenAI       response_items, response_input   what a reply of it has, and a request
gemini        Gemini, by google-genai      gemini_parts, gemini_contents, gemini_pieces   its parts, a request, a stream
ollama        Ollama, by its own client     ollama_pieces, ollama_fields   a stream; the fields of arguments in words
user_parts    what a user's message holds besides text, for any provider
chat_message, chat_extras   a chat completion as a history may hold it, and what its server wants back with it
shared        what all have in common                               reading     what a reply may hold besides a reply
chat_pieces, message_pieces, response_pieces   a streamed reply of each, put together
fragments     the arguments of a call that comes in pieces          arguments   … as a history has them
message_blocks, message_replies, message_cache   Anthropic's blocks, both ways; where the marks of its cache go
native, response_reasoning   what a model does if its server refuses native delivery, or earlier reasoning

Each has `tools_for(session)`, `message_from(reply)`, `calls_in(reply)` and `results_for(pairs)`; see
`toolsearch.protocols.Wire`. The names below are for a wire of your own:

    exported, shortened          the schema and the description of a tool, as providers accept them
    definitions, Exported        the definitions of all tools; a schema with what was changed in it
    refused_tool                 the tool that an error of a provider is about
    distinct_ids, legal_name     ids and names that providers accept
    fields_of, answered_calls    a reply as a dict; calls and results, checked
    clean, clean_json            text and JSON that can be sent
    shown_image                  a part of a result that is an image, as a provider takes it
    read_answer, Pieces          the answer of a client, sync or async, whole or in pieces, for a model function
"""

from toolsearch.calls.parts import shown_image
from toolsearch.events.refusals import refused_tool
from toolsearch.schemas.export import Exported, exported, shortened
from toolsearch.support.text import clean, clean_json, legal_name
from toolsearch.wires.shared import Pieces, answered_calls, definitions, distinct_ids, fields_of, read_answer

__all__ = [
    "Exported",
    "Pieces",
    "answered_calls",
    "clean",
    "clean_json",
    "definitions",
    "distinct_ids",
    "exported",
    "fields_of",
    "legal_name",
    "read_answer",
    "refused_tool",
    "shortened",
    "shown_image",
]
