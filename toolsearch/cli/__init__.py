"""The `toolsearch` command.

main      the entry point; it names the extra `cli` if that is missing      commands  the commands themselves
"""

from toolsearch.cli.main import main

__all__ = ["main"]
