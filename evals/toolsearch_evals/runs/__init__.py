"""Runs that are kept: a folder each, which says what was played and can be scored and compared later.

folder     a run while it is written: begun, gone on with, closed, by one process alone
manifest   what a run is of, and its hashes
reading    a run as it was kept, and whether a file was changed       schemas    the published form of each file
ranking_run   a ranking as a run, kept and scored again     bars   how good a report must be at least
kinds      what can be compared of each kind of run     diff     two runs of a kind, unit by unit
paired     by how much they differ, and whether chance alone explains it
"""

from toolsearch_evals.runs.folder import Run
from toolsearch_evals.runs.manifest import Manifest
from toolsearch_evals.runs.reading import StoredRun, read_run

__all__ = ["Manifest", "Run", "StoredRun", "read_run"]
