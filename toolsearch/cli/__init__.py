"""The `toolsearch` command.

main        the entry point, which names the extra `cli` where it is missing      commands    the commands themselves
"""

from toolsearch.cli.main import main

__all__ = ["main"]
