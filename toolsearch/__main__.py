"""`python -m toolsearch` is the `toolsearch` command."""

from toolsearch.cli.main import main

main()
