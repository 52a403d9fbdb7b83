"""The `toolsearch` command.

main        the entry point; it names the extra `cli` if that is missing      commands  the commands themselves
tool_files  the option --tools: files, folders, standard input                output    what the commands print
"""

from toolsearch.cli.main import main

__all__ = ["main"]
