"""Cases, measures and reports that say what tool search saves and what it misses.

data          labelled cases and the tools they need     backends      an index by its notation, with its encoder
ranking       how well an index ranks                    confidence    how far its confidence can be trusted
savings       what search saves over conversations       token_usage   tokens of exact payloads, cached or not
learning      what learning from use brings              speed         how fast the indexes are
runs          runs that are kept, scored, compared       agent         tasks with a real model, over any endpoint
reports       what was found, as data, page and files    cli           `toolsearch eval`
recording     what real conversations say                testing       checks for what you add
installed     what installed packages add              inspection    what was recorded, turn by turn on a page
doctor        what is wrong with tools and servers
"""
