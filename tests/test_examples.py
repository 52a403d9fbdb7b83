"""Every example runs as it lies there: offline, in an empty folder, with no key set, and with warnings as errors."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))

# What a reader should see. A figure that a better ranking would change is not in here.
SHOWN = {
    "own_loop_openai": [
        "OPENAI_API_KEY is not set",
        "673 tools from 47 servers",
        "request: 1 tools",
        "ok: Loaded",
        'ok: {"location": "Oslo"',
        'ok: {"ok": true, "tool": "slack/slack_post_message"}',
        "I have posted it.",
    ],
    "own_loop_responses": [
        "OPENAI_API_KEY is not set",
        "brings get_forecast, ",
        'ok: {"location": "Oslo"',
        'ok: {"ok": true, "tool": "slack/slack_post_message"}',
        "I have posted it.",
        "the tools of all requests: 1, the same bytes: True",
    ],
    "own_loop_anthropic": [
        "ANTHROPIC_API_KEY is not set",
        "request: search_tools, ask_user\n",
        "request: search_tools, ask_user, get_weather\n",
        '-> ok: {"city": "Rome", "celsius": 17}',
        "It is 4 °C in Oslo and 17 °C in Rome.",
    ],
    "own_loop_gemini": [
        "GEMINI_API_KEY is not set",
        "request: search_tools\n",
        "ok: Loaded",
        "_3d_print",
        'ok: {"location": "Oslo"',
        "  3d_print {'what': 'umbrella'}\n  ok: printing: umbrella\n",
        "Your umbrella is being printed.",
    ],
    "own_loop_ollama": [
        "OLLAMA_MODEL is not set",
        "request: search_tools\n",
        'ok: {"location": "Oslo"',
        "Tomorrow it rains in Oslo, 4 to 7 °C.",
        "piece by piece: Tomorrow it rains in| Oslo, 4 to 7 °C.",
    ],
    "catalog_from_everything": [
        "Catalog(7 tools",
        "post/send_mail   action",
        "set aside: broken: the input schema of 'broken' must be a JSON object, not list",
        "look at: post/send_mail: hidden-comment, instructions",
        "'renew credentials': rotate_key",
        "'wether tomorrow': get_forecast",
        "'create_issue, close_issue': create_issue, close_issue",
        "'paint the fence': nothing fits",
    ],
    "enrich_catalog": [
        '"I\'m freezing": nothing fits',
        "house/set_mode: 'it is freezing in here', 'turn the heating to eco'\n",
        "nothing is asked for: True",
        '"I\'m freezing": house/set_mode by enriched',
        "bank/list_payouts by enriched",
        "stale, so not used: house/set_mode",
    ],
    "mcp_agent": [
        "north: ready, 3 tools\nsouth: ready, 3 tools\narchive: failed, 0 tools (there is no command",
        "ok: Loaded 6 tools",
        "progress: 3 of 3, hall 3",
        "south asks: Really send P-7 back? ['sure'] -> yes",
        "ok: P-7 goes back",
        "P-7 waits in the north, and goes back to its sender.",
    ],
    "layer_cost": ["0 layers: ", "3 layers: ", "three layers add "],
    "support_agent": [
        "Catalog(673 tools from 47 servers)",
        "user       Customer cus_9 writes",
        'search     search_tools {"queries": ["get an order by its number"',
        "shopify/get_order",
        'call       get_order {"order_number": "1042"}\ncall       list_payment_intents {"customer": "cus_9"',
        '  a person is asked: Run create_refund of stripe? {"payment_intent": "pi_77", "amount": 1200',
        "decided    create_refund approved",
        "result     create_refund ok",
        "end        answered",
        "the value: Resolution(order='1042', refunded_cents=1200,",
        "actor  calls  failed  input  cached  output  seconds  US dollars\nana        4       0    400       0      40",
        "0.0012",
    ],
    "approval_across_processes": [
        "the first process stops: refund {'order': 'A-17', 'amount': 25.0} waits for an approval",
        "the second process finds 1 waiting call, approves it, and goes on",
        "the answer: The 25 are on their way.",
        "the approved tool ran once: A-17 25.0",
    ],
    "preselect": [
        "loads some by their names:\nfiles: create_file, ",
        "Hi, how are you?\ntools: search_tools\n",
        "May, please.\n\n[Loaded for this message, if it fits: delete_milestone.]\n",
        "tools: search_tools, delete_milestone\n",
        "that was great!\ntools: search_tools, delete_milestone, list_folder\n",
        "Server sky, 12 tools;",
    ],
    "threshold": [
        "9 tools: static: ",
        "10 tools: append: ",
        "What is the weather in Lisbon? 21 degrees and sunny. (3 model calls)",
        "How warm was that again? It was 21 degrees, as I said. (1 model calls)",
    ],
    "mcp_results": [
        "4 tools: notes/add_note, notes/draw_note, notes/read_note, notes/count_notes",
        "add_note: ok\nnoted: buy milk\n",
        "draw_note: ok\nthe note 'buy milk' as a picture:\n<image/png, 69 bytes, not shown>\n(TextPart, ImagePart)",
        "read_note: failed\nError executing tool read_note: there is no note 'yesterday'\n",
        'count_notes: ok\n{\n  "notes": 2,\n  "words": 7\n}\n(TextPart, JsonPart)',
        "Anthropic is sent: text, image\n",
        "OpenAI is sent: \"the note 'buy milk' as a picture:\\n<image/png, 69 bytes, not shown>\"",
    ],
    "record_and_replay": [
        "recorded: Is it cold in Oslo? Tell [e-mail].\n",
        "2 of 3 (21 to 94 %) led to a call; 1 of 3 (6 to 79 %) ended in nothing.",
        "draft: user: 'Who owes me for order [number]?' needs [['list_invoices']]",
        "draft: user: 'Paint the fence, please.' needs []",
        "keyword, append: loads 100% of 3 needed tools\nkeyword, bridge: ",
    ],
    "gateway": [],  # it says what to install; tests/mcp/test_published.py runs it with the servers it needs
    "framework_tools": [],  # a part of those with_…, which tests/frameworks/test_framework_examples.py runs
}


def test_no_example_is_missed() -> None:
    assert {script.stem for script in EXAMPLES.glob("*.py") if not script.stem.startswith("with_")} == set(SHOWN)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_an_example_shows_what_it_is_about(name: str, tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path, env={**environment, "PYTHONUTF8": "1"}, check=False, capture_output=True, encoding="utf-8",
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    at = 0
    for text in SHOWN[name]:
        at = done.stdout.find(text, at)
        assert at >= 0, f"{text!r} is not shown, or not in its place:\n{done.stdout}"
    assert list(tmp_path.iterdir()) == [], "an example leaves files behind"


def outputs(cell: Any) -> str:
    """All that a cell shows, as text and as HTML."""
    shown = [out.get("text", "") or "".join(out.get("data", {}).values()) for out in cell.get("outputs", [])]
    return "\n".join(shown)


# The words of a cell's source, and what its output must hold, by notebook. Figures of a ranking are not in here.
IN_A_NOTEBOOK = {
    "search_my_tools": {
        "read_tools(": ["Catalog(675 tools from 47 servers)", "'weather'"],
        'server == "weather"': ["<table>", "weather/get_forecast"],
        "catalog.suspicious": ["invisible-characters", "instructions"],
        "weather warnings": ["<table>", "weather/get_weather_alerts"],
        "the plants need": ["water_plants"],
        "resize a pictrue": ["community_scripts/resize_image"],
        "avoid tolls": ["google_maps/maps_directions", "arguments"],
        "createIssue": ["github/create_issue", "gitlab/create_issue", "jira/createIssue", "linear/create_issue"],
        'category="mail"': ["gmail/send_email"],
        "zzqx": ["0 by keyword"],
        "_?messages": ["twilio/listMessages", "by regex"],
        "session.why()": ["append", "More tools exist than are listed", "A request carries 1 tool,"],
        '"queries"': ["search_tools: ok", "For &quot;weather forecast&quot;:", "get_forecast", "slack_post_message"],
        "session.tools()\nsession": ["conversation-42&#x27;, append", "<td style='text-align:left'>found</td>"],
        '"days": "2"': ["get_forecast: ok", "(pretended) weather/get_forecast", "&#x27;days&#x27;: 2"],
        '{"city": "Oslo"}': ["invalid_arguments", "the required argument &#x27;location&#x27; is missing"],
        "counter()": ["every tool: 675 tools"],
    },
    "how_much_would_i_save": {
        "MINE = ": ["Catalog(97 tools from 8 servers)"],
        "own_savings(": ["search would save on the tools of eight servers", "Search pays from", "Tokens by server"],
        ".pivot(": ["turns", "found"],
        "dearest = ": ["tokens", "its parameter"],
        "sweep(commons": ["What tool search saves: commons", "Break-even", "95 % interval", "append"],
        "saved.plots()": ["Plots(2)", 'src="data:image/svg+xml;base64,', 'alt="Tokens'],
        "saved.limits": ["The scripted model never mistakes a tool."],
    },
    "compare_two_indexes": {
        'load("commons")': ["673 tools, 913 cases", "Case(id="],
        "compare([commons]": ["keyword against hybrid", "the interval", "sign test p"],
        'rows.measure == "R@5"': ["paraphrase", "wins"],
        "better = ": ["query", "needed"],
        '"hybrid").find(': ["by hybrid"],
    },
}  # fmt: skip
NEEDED = {"how_much_would_i_save": ("altair", "pandas", "vl_convert"), "compare_two_indexes": ("pandas",)}


def test_no_notebook_is_missed() -> None:
    assert {notebook.stem for notebook in NOTEBOOKS} == set(IN_A_NOTEBOOK)


def check_shown(notebook: Any, shown: dict[str, list[str]]) -> None:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for words, wanted in shown.items():
        held = [cell for cell in cells if words in cell.source]
        assert held, f"no cell has {words!r}"
        for text in wanted:
            assert any(text in outputs(cell) for cell in held), f"{words!r} does not show {text!r}"
    for cell in cells:
        assert "<script" not in outputs(cell), "what a notebook shows needs no script"
    for place, cell in enumerate(cells, 1):
        assert cell.execution_count == place, "a notebook is run from its top, once"
        assert not [out for out in cell.outputs if out.output_type == "error" or out.get("name") == "stderr"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.name)
def test_a_notebook_is_stored_with_its_outputs(notebook: Path) -> None:
    check_shown(nbformat.read(notebook, as_version=4), IN_A_NOTEBOOK[notebook.stem])


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.name)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    for module in NEEDED.get(notebook.stem, ()):
        pytest.importorskip(module, reason=f"the notebook needs {module}, which the extra dev has")
    # In a process of its own: a kernel brings event loops, sockets and warnings of others with it.
    run = (
        "import sys, nbformat, nbclient\n"
        "held = nbformat.read(sys.argv[1], as_version=4)\n"
        "nbclient.NotebookClient(held, timeout=120, resources={'metadata': {'path': '.'}}).execute()\n"
        "nbformat.write(held, 'ran.ipynb')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", run, str(notebook)],
        cwd=tmp_path, check=False, capture_output=True, encoding="utf-8", errors="replace", timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_shown(nbformat.read(tmp_path / "ran.ipynb", as_version=4), IN_A_NOTEBOOK[notebook.stem])
