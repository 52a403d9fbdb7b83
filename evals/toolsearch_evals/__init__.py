"""Cases, measures and reports that say what tool search saves and what it misses.

cases, check     labelled data, and what is wrong with it      measures    recall, NDCG, coverage, false answers
calibrate        how sure it can be; fitting: how that is fitted
ranking          how well an index ranks                       compare     two of them, case by case
speed, pace      how fast it is: the run and its report        engines     what is timed; worker: in its own process
backends         an index by notation, with its encoder        derive      larger catalogs, marked as derived
import_cost      what the import costs
savings          the sweep over catalog sizes                  findings    the sweep as a report; spring: a preset
scripted         the model that plays conversations            arguments   what it passes; replies: what it says
usage            tokens of exact payloads, cached or not       report      one value; page, chart, terminal: its looks
cli, options, demo   `toolsearch eval`
"""
