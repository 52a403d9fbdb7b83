"""What there is: tools, made from functions and definitions of every form, and the catalog that holds them.

catalog       Catalog: unique ids, bad definitions set aside, every change announced
roster        the tools of a catalog at one moment           changes     a change, as it is made and announced
quarantine    definitions that cannot be used, and why       reserved    names kept for built-in tools
tools         Tool, and Shown: a tool as a request has it    marks       how a tool may be run, and its options
sources       what a program passes, checked as a whole      listings    lists of tools, unwrapped
definitions   the forms in which people have tools           functions   a Python function as a tool
parameters    the forms in which they have parameters        shapes      what is no definition, called what it is
foreign_tools tools of other frameworks, with their function
files         definitions in files                           names       names a provider accepts, and names alike
sanitising    hostile texts in definitions                   examples    example queries of tools
enrichment    example queries asked of a model               answers     what a model answers, read in any form
text_models   a program or an endpoint as a model of texts
missing       servers that cannot be reached, and who may hear of it
trust         what a definition may say of its own tool
exports       what becomes of tools on their way to a provider
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import Change
from toolsearch.catalog.marks import Kind, Marks, ToolOptions
from toolsearch.catalog.quarantine import Quarantined
from toolsearch.catalog.tools import Shown, Tool, definition_tokens, first_sentence, tool

if TYPE_CHECKING:
    from toolsearch.catalog.enrichment import enrich
    from toolsearch.catalog.examples import ExampleEntry, Examples
    from toolsearch.catalog.files import read_tools
    from toolsearch.catalog.text_models import command, endpoint

__all__ = [
    "Catalog",
    "Change",
    "ExampleEntry",
    "Examples",
    "Kind",
    "Marks",
    "Quarantined",
    "Shown",
    "Tool",
    "ToolOptions",
    "command",
    "definition_tokens",
    "endpoint",
    "enrich",
    "first_sentence",
    "read_tools",
    "tool",
]

# What a program needs only now and then, imported where it is used.
_LATER = {
    "ExampleEntry": "examples",
    "Examples": "examples",
    "command": "text_models",
    "endpoint": "text_models",
    "enrich": "enrichment",
    "read_tools": "files",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
