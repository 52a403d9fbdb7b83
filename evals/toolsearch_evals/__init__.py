"""Cases, measures and reports that say what tool search saves and what it misses."""
