"""The `toolsearch` command.

main        the entry point; it names the extra `cli` if that is missing      commands  the commands themselves
tool_files  the options --tools and --index                                   output    what the commands print
enrich      example queries: which tools need them, and from a model          learned   what use has taught
model_options   the options that name a model to ask
targets     the option --target of check, and what it prints                  installed commands of other packages
"""

from toolsearch.cli.main import main

__all__ = ["main"]
