"""Everything that is found in definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolsearch import Catalog, ToolIndex
from toolsearch.catalog.exports import PROVIDERS, Provider
from toolsearch_evals.doctor.exports import schema_findings
from toolsearch_evals.doctor.findings import Finding
from toolsearch_evals.doctor.searches import search_findings
from toolsearch_evals.doctor.texts import flagged, look_alikes, names_of_others

__all__ = ["all_findings"]


def all_findings(catalog: Catalog, index: ToolIndex, providers: Iterable[Provider] = PROVIDERS) -> Iterator[Finding]:
    """What is wrong with the definitions of a catalog, which the index must hold already."""
    yield from schema_findings(catalog, providers)
    yield from search_findings(catalog, index)
    yield from flagged(catalog)
    yield from look_alikes(catalog)
    yield from names_of_others(catalog)
