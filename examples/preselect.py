"""What comes before the model asks: a directory in the instructions, and tools that come with the user's message.

It needs no network. For each line of a talk it prints what the message gets; for plain talk that is nothing.
"""

from __future__ import annotations

from toolsearch import ToolCall, ToolSearch
from toolsearch.wires import openai_chat

VERBS = ("create", "list", "update", "delete")
NOUNS = {
    "tracker": ("issue", "comment", "milestone"),
    "post": ("mail", "folder", "signature"),
    "files": ("file", "link", "version"),
    "sky": ("forecast", "station", "alert"),
}
TALK = (
    "Hi, how are you?",
    "Delete the milestone of May, please.",
    "And list my mail folders.",
    "Thanks, that was great!",
)


def tools() -> list[dict[str, object]]:
    return [
        {
            "server": server,
            "name": f"{verb}_{noun}",
            "description": f"{verb.capitalize()} a {noun}.",
            "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
        for server, nouns in NOUNS.items()
        for noun in nouns
        for verb in VERBS
    ]


def main() -> None:
    search = ToolSearch(tools(), index="keyword", preselect=1, directory=200)
    session = search.session()
    print(session.instructions())
    for text in TALK:
        message = {"role": "user", "content": text + session.preselect(text)}
        names = [tool["function"]["name"] for tool in openai_chat.tools_for(session)]
        print(f"\n{message['content']}\ntools: {', '.join(names)}")
    print(
        "\n" + session.handle(ToolCall("1", "search_tools", {"queries": ["select:create_alert", "server:sky"]})).content
    )


if __name__ == "__main__":
    main()
