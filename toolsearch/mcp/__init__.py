"""Servers of MCP: their tools as a searched catalog, and one server in front of all of them.

guards    what stands between a client and the servers: policy, pins, pages of long results
oauth     logins to servers that ask for one
commands  the commands of this package: serve, login, pin, connect
"""
