"""`python tests/mcp/servers NAME …` runs one of the servers, in any folder and environment."""

import sys
from importlib import import_module
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[3])  # not this folder: its modules have the names of others

import_module(f"tests.mcp.servers.{sys.argv.pop(1)}").main()
