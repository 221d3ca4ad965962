"""What is looked up often in one state, found once: who views a storage, whose gradient, which node made what."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from operator import attrgetter

from stridescope.engine.recording.model import State, TensorState


class Groups:
    """Tensors by what they share. Most share it with nobody: only those that do are put into lists."""

    def __init__(self, tensors: Iterable[TensorState], field: str) -> None:
        self._first: dict[int, TensorState] = {}
        self._several: dict[int, list[TensorState]] = {}
        first, of = self._first.setdefault, attrgetter(field)
        for tensor in sorted(tensors, key=attrgetter("id")):
            if (other := first(of(tensor), tensor)) is not tensor:
                self._several.setdefault(of(tensor), [other]).append(tensor)

    def of(self, key: int) -> list[TensorState]:
        """Return the tensors of a group, oldest first."""
        if key in self._several:
            return self._several[key]
        return [self._first[key]] if key in self._first else []


class Index:
    """Look-ups in ``state``, each made when first asked for."""

    def __init__(self, state: State) -> None:
        self.state = state

    @functools.cached_property
    def views(self) -> Groups:
        """The tensors that look into each storage."""
        return Groups(self.state.tensors.values(), "storage")

    @functools.cached_property
    def named_storages(self) -> frozenset[int]:
        """The storages that a tensor with a name looks into."""
        return frozenset(tensor.storage for tensor in self.state.tensors.values() if tensor.names)

    @functools.cached_property
    def outputs(self) -> Groups:
        """The tensors that each node made."""
        return Groups(self.state.tensors.values(), "node")

    @functools.cached_property
    def grad_owners(self) -> dict[int, str]:
        """The name of the tensor whose .grad a tensor is."""
        return {t.grad: t.names[0] for t in self.state.tensors.values() if t.grad and t.names}

    @functools.cached_property
    def accumulators(self) -> dict[int, int]:
        """The AccumulateGrad node of each leaf."""
        return {node.variable: node.id for node in self.state.nodes.values() if node.variable}

    @functools.cached_property
    def gradients(self) -> frozenset[int]:
        """The tensors that went along edges of the graph in this backward pass."""
        backward = self.state.backward
        return frozenset(sent.gradient for sent in backward.sent) if backward else frozenset()


_latest: list[Index] = []


def index_of(state: State) -> Index:
    """Return the index of ``state``; that of the state asked for last is kept."""
    if not _latest or _latest[0].state is not state:
        _latest[:] = [Index(state)]
    return _latest[0]
