"""What a message brings that needs no tool: the price of searching every message of a user."""

from __future__ import annotations

import toolsearch_datasets
from toolsearch import Catalog, ToolSearch

COMMONS = toolsearch_datasets.path("commons") / "tools.jsonl"

TALK = """\
Hi there!
Good morning, how are you?
Thanks, that was great.
Thank you so much, you are a star
ok
Sounds good to me.
No, that's all for today.
lol
Can you explain that again, in simpler words?
Why is the sky blue?
What do you think about modern art?
Tell me a joke.
Write a haiku about autumn.
What is the difference between a virus and a bacterium?
How old is the universe?
Who wrote Pride and Prejudice?
I feel a bit tired today.
My sister is getting married in June.
That doesn't look right to me.
Could you make your last answer shorter?
Please use British spelling from now on.
What does "ubiquitous" mean?
Translate "good night" into French.
What is 17 times 23?
Is a tomato a fruit or a vegetable?
Yes, go on.
Hmm, I am not sure about that.
Never mind.
Sorry, I meant the other one.
Which of the two would you choose, and why?
Give me three names for a black cat.
How do I make a good pancake?
I had a terrible day at work.
What are the rules of chess?
You misunderstood me.
Let's talk about something else.
Do you remember what I said at the beginning?
How do you spell "rhythm"?
Why did the Roman Empire fall?
See you tomorrow, bye!
""".splitlines()


def test_talk_that_needs_no_tool_seldom_brings_one() -> None:
    """Among 673 tools; before only likely tools came, 33 of these 40 lines brought one."""
    search = ToolSearch(Catalog.from_file(COMMONS), "keyword", mode="bridge", preselect=3)
    brought = [line for line in TALK if search.session().preselect(line)]
    assert len(TALK) == 40
    assert len(brought) <= 10, brought
