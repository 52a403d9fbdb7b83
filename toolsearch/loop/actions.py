"""Tools that change something, in an agent whose layers ask nobody: this is said once, in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Literal
from weakref import WeakSet

from toolsearch.catalog.catalog import Catalog
from toolsearch.loop.layering import name_of
from toolsearch.protocols import GateLayer, Layer
from toolsearch.support.checks import offers

__all__ = ["ActionNotice", "Actions", "has_approval"]

log = logging.getLogger("toolsearch")

Actions = Literal["wait", "run"]

SHOWN = 5  # ids of tools in the warning
_TOLD: WeakSet[Catalog] = WeakSet()  # catalogs about which it was said: there may be an agent for each request
# Layers that judge calls too, but ask nobody about an action.
OTHER_GATES = ("eligibility", "interaction", "limits", "preflight", "rules")


def has_approval(layers: Iterable[Layer]) -> bool:
    """Whether a layer may hold actions back: `approval`, or a gate of the program's own."""
    gates = [layer for layer in layers if offers(layer, GateLayer) and layer.gate]
    return any(name_of(gate) not in OTHER_GATES for gate in gates)


class ActionNotice:
    """Warns once per catalog, as soon as the catalog of an agent without an approval has an action."""

    def __init__(self, catalog: Catalog, layers: Iterable[Layer]) -> None:
        self._catalog = catalog
        self._is_done = has_approval(layers)
        self._version: object = None  # of the catalog that was looked at

    def look(self) -> None:
        """Looks for actions, if the catalog is another one than before."""
        if self._is_done or self._version == self._catalog.version:
            return
        self._version = self._catalog.version
        if self._catalog in _TOLD:
            return
        actions = [tool.id for tool in self._catalog if tool.marks.is_action]
        if not actions:
            return
        self._is_done = True
        _TOLD.add(self._catalog)
        more = f" and {len(actions) - SHOWN} more" if len(actions) > SHOWN else ""
        log.warning(
            "actions run without an approval: no layer of this agent asks a person before %s%s. Pass actions='wait' to "
            "Agent, or add layers.approval(…); if they may run at once, pass actions='run'",
            ", ".join(actions[:SHOWN]), more,
        )  # fmt: skip
