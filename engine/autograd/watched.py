"""Who watches a backward pass from outside, such as a profiler: nobody, most of the time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from stridescope.engine.autograd.node import Node


class Watcher(Protocol):
    """What a watcher is told; each of its answers stands around the work."""

    def evaluating(self, node: Node) -> AbstractContextManager[Any]:
        """The engine has taken ``node`` from its queue: around its hooks, its formula and its gradients' delivery."""

    def applying(self, node: Node, sizes: list[list[int]]) -> AbstractContextManager[Any]:
        """``node`` receives gradients of these sizes: around its formula, or around the accumulation into a leaf."""


class Watched:
    """The watcher, if there is one."""

    by: Watcher | None = None


watched = Watched()
