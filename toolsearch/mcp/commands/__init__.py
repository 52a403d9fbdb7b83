"""The commands of this package, each a function that `toolsearch` mounts: serve, login, pin, connect."""
