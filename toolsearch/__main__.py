"""`python -m toolsearch` is the `toolsearch` command."""

from toolsearch.cli import main

main()
