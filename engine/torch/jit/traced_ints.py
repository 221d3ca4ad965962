"""Sizes that a trace follows: ``x.shape[0] * 2`` is computed again when the trace runs with another shape."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from stridescope.engine.torch.fx.node import Node


class TracedInt(int):
    """An int that knows the node that it came from."""

    node: Node

    @classmethod
    def of(cls, value: int, node: Node) -> TracedInt:
        """The number with its node."""
        made = cls(value)
        made.node = node
        return made

    def __hash__(self) -> int:
        return int.__hash__(self)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, TracedInt) else value


def _operator(name: str, reflected: bool) -> Callable[[TracedInt, Any], Any]:
    target = getattr(operator, name)

    def method(self: TracedInt, other: Any) -> Any:
        if not isinstance(other, (int, float)) or isinstance(other, bool):
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        result = target(*map(_plain, pair))
        args = tuple(value.node if isinstance(value, TracedInt) else value for value in pair)
        node = self.node.graph.call_function(target, args)
        return TracedInt.of(result, node) if isinstance(result, int) else result

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    setattr(TracedInt, f"__{_name}__", _operator(_name, reflected=False))
    setattr(TracedInt, f"__r{_name}__", _operator(_name, reflected=True))
