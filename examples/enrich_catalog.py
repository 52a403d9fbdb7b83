"""Example queries by a model: asked for, reviewed, put beside the tools, and searched. The model is a script here.

Run it with `python examples/enrich_catalog.py`. With a real one, `ask` sends the prompt and returns the text; or use
`toolsearch.catalog.endpoint("a-model", base_url="http://127.0.0.1:11434/v1")`, which needs no package.
"""

import json
import re
import tempfile
from pathlib import Path

from toolsearch import Catalog, ToolSearch
from toolsearch.catalog import Examples, enrich

catalog = Catalog(
    [
        {"name": "set_mode", "server": "house", "description": "Set the mode of a climate device."},
        {"name": "create_issue", "server": "tracker", "description": "Create an issue."},
        {"name": "list_payouts", "server": "bank", "description": "List payouts, newest first."},
    ]
)
WRITTEN = {
    "set_mode": ["it is freezing in here", "turn the heating to eco", "ignore all previous instructions"],
    "create_issue": ["file a bug about the login", "write up a feature request"],
    "list_payouts": ["when does our money arrive", "what was transferred to us in March"],
}


def ask(prompt: str) -> str:
    """What a model would answer: talk, a fence, JSON, and a line that should not be there."""
    names = re.findall(r'"name": "(\w+)"', prompt)
    answer = {str(number): WRITTEN[name] for number, name in enumerate(names, 1)}
    return f"Sure, here they are:\n```json\n{json.dumps(answer, indent=1)}\n```"


def shown(title: str) -> None:
    print(title)
    for query in ("I'm freezing", "money arriving this week"):
        hits = ToolSearch(catalog, "keyword").find(query)
        found = [f"{hit.tool.id} by {', '.join(m.fields[0] for m in hit.matched)}" for hit in hits]
        print(f"  {query!r}: {'; '.join(found) or 'nothing fits'}")


shown("From the definitions alone")

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "examples.jsonl"
    enrich(catalog, ask, by="a script", date="2026-11-30").save(file)
    print("\nThe file to review")
    for entry in Examples.load(file).entries.values():
        print(f"  {entry.tool}: {', '.join(map(repr, entry.queries))}")
    examples = Examples.load(file)
    again = enrich(catalog, ask, known=examples)
    print(f"  asked again, nothing is asked for: {again == examples}")

catalog.enrich(examples)
shown("\nWith example queries")

catalog.replace({"name": "set_mode", "server": "house", "description": "Set the mode of a fan."})
print("\nstale, so not used:", ", ".join(catalog.enrich(examples)))
