"""What is looked up often in one state, found once: who views a storage, whose gradient, which node made what."""

from __future__ import annotations

import functools

from stridescope.engine.recording.model import State, TensorState


class Index:
    """Look-ups in ``state``, each made when first asked for."""

    def __init__(self, state: State) -> None:
        self.state = state

    @functools.cached_property
    def views(self) -> dict[int, list[TensorState]]:
        """The tensors that look into each storage, oldest first."""
        return self._by("storage")

    @functools.cached_property
    def outputs(self) -> dict[int, list[TensorState]]:
        """The tensors that each node made."""
        return self._by("node")

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

    def _by(self, field: str) -> dict[int, list[TensorState]]:
        found: dict[int, list[TensorState]] = {}
        for tensor in sorted(self.state.tensors.values(), key=lambda t: t.id):
            found.setdefault(getattr(tensor, field), []).append(tensor)
        return found


_latest: list[Index] = []


def index_of(state: State) -> Index:
    """Return the index of ``state``; that of the state asked for last is kept."""
    if not _latest or _latest[0].state is not state:
        _latest[:] = [Index(state)]
    return _latest[0]
