"""``torch.autograd.graph``: edges, versions, and hooks on several tensors."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from stridescope.engine.autograd.api import GradientEdge
from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.handle import RemovableHandle
from stridescope.engine.autograd.leaf import register_hook
from stridescope.engine.autograd.node import Node, on_creation
from stridescope.engine.autograd.task import Task, running
from stridescope.engine.tensor import Tensor, bump_version


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of ``tensor`` is computed, for ``torch.autograd.grad``."""
    if not tensor._requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )  # fmt: skip
    return GradientEdge(_node_of(tensor), gradient_edge(tensor)[1])


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tell autograd that a tensor (or each of several) was written by something it does not see."""
    if not isinstance(tensor, (Tensor, Iterable)):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not each._inference:
            bump_version(each)


class _MultiHandle(RemovableHandle):
    """The handle of several hooks that go together."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take them all out."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.handles

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call ``fn`` when the gradients of all these tensors are there (``"all"``), or that of the first (``"any"``)."""
    if mode == "all":
        return _MultiHandle(_when_all(tensors, fn))
    if mode == "any":
        return _MultiHandle(_when_any(tensors, fn))
    raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")


class _Collected:
    """What has arrived for a multi-grad hook in one backward pass."""

    def __init__(self, count: int, expected: int) -> None:
        self.gradients: list[Tensor | None] = [None] * count
        self.missing = expected


def _when_all(tensors: Sequence[Tensor], fn: Callable[[Any], None]) -> tuple[RemovableHandle, ...]:
    nodes = [_node_of(tensor) for tensor in tensors]
    passes: dict[int, _Collected] = {}

    def arrived(position: int, gradient: Tensor | None) -> None:
        task = _current()
        state = passes.get(task.number)
        if state is None:
            expected = sum(_will_run(task, node) for node in nodes)
            state = passes[task.number] = _Collected(len(nodes), expected)
        state.gradients[position] = gradient
        state.missing -= 1
        if not state.missing:
            del passes[task.number]
            fn(state.gradients)

    return tuple(register_hook(tensor, _numbered(arrived, position)) for position, tensor in enumerate(tensors))


def _node_of(tensor: Tensor) -> Node:
    node, _ = gradient_edge(tensor)
    if node is None:
        raise AssertionError("Expected gradient function to be set")
    return node


def _numbered(function: Callable[[int, Any], None], position: int) -> Callable[[Any], None]:
    return lambda gradient: function(position, gradient)


def _when_any(tensors: Sequence[Tensor], fn: Callable[[Any], None]) -> tuple[RemovableHandle, ...]:
    ran: dict[int, bool] = defaultdict(bool)

    def first(gradient: Tensor) -> None:
        number = _current().number
        if not ran[number]:
            ran[number] = True
            fn(gradient)

    return tuple(register_hook(tensor, first) for tensor in tensors if tensor._requires_grad)


def _current() -> Task:
    if running.task is None:
        raise AssertionError("expected this hook to be called inside a backward call")
    return running.task


def _will_run(task: Task, node: Node) -> bool:
    return task.wants(node) and (node in task.waiting or node in task.roots)


@contextlib.contextmanager
def node_creation_hook(hook: Callable[[Node], None]) -> Iterator[None]:
    """Inside the block, ``hook`` is called with every new node of the graph."""
    on_creation.append(hook)
    try:
        yield
    finally:
        on_creation.remove(hook)


for _class in (GradientEdge, _MultiHandle):
    _class.__module__ = "torch.autograd.graph"
