"""Mistakes a type checker should catch for a user, each on a line that ends in `# wrong`. Never run."""

from toolsearch import Caller, Catalog, ToolSearch

catalog = Catalog([])
search = ToolSearch(catalog, index=3)  # wrong
search.find(["a", "list"])  # wrong
search.find("weather", limit="five")  # wrong
print(search.find("weather")[0].tool.no_such_thing)  # wrong
Caller(user=7)  # wrong
search.session("one", caller="ana")  # wrong
