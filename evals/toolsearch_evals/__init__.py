"""Cases, measures and reports that say what tool search saves and what it misses.

cases, check     labelled data, and what is wrong with it      measures    recall, NDCG, coverage, false answers
ranking          how well an index ranks                       speed       how fast it is; import_cost: the import
savings          the sweep over catalog sizes                  findings    the sweep as a report; spring: a preset
scripted         the model that plays conversations            arguments   what it passes; replies: what it says
usage            tokens of exact payloads, cached or not       report      one value; page, chart, terminal: its looks
cli, demo        `toolsearch eval`
"""
