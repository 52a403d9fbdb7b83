"""Servers of MCP: their tools as a searched catalog, and one server in front of all of them."""
