"""Native delivery: what a wire can do, and the definitions that an answer, or a message, brings to the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LoadedTool", "NativeDelivery", "native_of"]


@dataclass(frozen=True, slots=True)
class LoadedTool:
    """A definition that reaches the model in the middle of a conversation, with the `name` to call the tool by."""

    id: str
    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict, hash=False)
    server: str = ""

    def stored(self) -> dict[str, object]:
        """As JSON-ready data for `read`."""
        data = {"id": self.id, "name": self.name, "description": self.description, "schema": dict(self.input_schema)}
        return {**data, **({"server": self.server} if self.server else {})}

    @classmethod
    def read(cls, data: object) -> LoadedTool:
        """What `stored` wrote; raises `ValueError` for anything else."""
        if not isinstance(data, Mapping) or not isinstance(schema := data.get("schema", {}), Mapping):
            raise ValueError(f"{data!r} is not the definition of a loaded tool")
        texts = {key: str(data.get(key, "")) for key in ("id", "name", "description", "server")}
        return cls(**texts, input_schema=dict(schema))


@dataclass(frozen=True, slots=True)
class NativeDelivery:
    """How a wire brings found tools to the model without a change of the `tools` of its requests.

    Either found tools come by value, or with `declares` every tool that can be found stands in each request, deferred,
    and a found one is referred to; `most_declared` is the most tools that the provider takes so. With `with_messages`
    tools can come with a message of the user too, and not only with the result of a call.
    """

    declares: bool = False
    with_messages: bool = False
    most_declared: int | None = None


def native_of(wire: object) -> NativeDelivery | None:
    """How a wire, or a model, delivers natively; None for one that does not."""
    native = getattr(wire, "native", None)
    return native if isinstance(native, NativeDelivery) else None
