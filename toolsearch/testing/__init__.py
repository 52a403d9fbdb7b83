"""Public test doubles, and the kits that prove a plug, such as `check_index(MyIndex)`.

doubles        FixedIndex and ScriptedModel, for tests of what is around an index or a model
loopback       LoopbackProvider, a provider on this machine whose replies are written down
index_checks   check_index          store_checks   check_store
layer_checks   check_layer          wire_checks    check_wire
prefixes       assert_prefix_stable: whether the requests of a conversation keep their beginning
promises       BrokenPromise, which every kit raises
conversations  what the kit for layers plays
interleaving   how the kit for stores lets two writers meet       lease_checks   its part about leases

A kit returns nothing if every promise holds. Otherwise it raises `BrokenPromise` with the first one that does not, and
how to see it.
"""

from toolsearch.testing.doubles import FixedIndex, ScriptedModel
from toolsearch.testing.index_checks import check_index
from toolsearch.testing.layer_checks import check_layer
from toolsearch.testing.loopback import Failure, LoopbackProvider
from toolsearch.testing.prefixes import assert_prefix_stable
from toolsearch.testing.promises import BrokenPromise
from toolsearch.testing.store_checks import check_store
from toolsearch.testing.wire_checks import check_wire

__all__ = [
    "BrokenPromise",
    "Failure",
    "FixedIndex",
    "LoopbackProvider",
    "ScriptedModel",
    "assert_prefix_stable",
    "check_index",
    "check_layer",
    "check_store",
    "check_wire",
]
