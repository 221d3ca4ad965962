"""How tensors are printed inside transforms: what they stand for, level by level, as PyTorch's wrappers show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stridescope.engine.autograd.lockstep import batch_of, own
from stridescope.engine.autograd.node import AccumulateGrad, Node
from stridescope.engine.autograd.task import children_first
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.ops.printing import transformed_text
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, from_array


class Differentiated(NamedTuple):
    """A transform at work that differentiates: how many are at work with it, and the points, by their ``id``."""

    number: int
    points: frozenset[int]


# The transforms at work that differentiate, innermost last.
differentiated: list[Differentiated] = []


def leaves_below(tensor: Tensor) -> list[Tensor]:
    """The leaves that a tensor depends on; itself, when it is one."""
    node = tensor._node
    if node is None:
        return [tensor] if tensor._requires_grad else []
    nodes: list[Node] = children_first([node])
    return [each.variable for each in nodes if isinstance(each, AccumulateGrad) and each.variable is not None]


def text(tensor: Tensor) -> str | None:
    """The printed form of a tensor that depends on a transform at work; None for all others."""
    layers = sorted([*_batches(tensor), *_gradients(tensor)])
    if not layers:
        return None
    lines = str(from_array(_memory(tensor))).split("\n")
    for number, bdim in layers:
        head = f"GradTrackingTensor(lvl={number}" if bdim is None else f"BatchedTensor(lvl={number}, bdim={bdim}"
        lines = [f"{head}, value=", *(f"    {line}" for line in lines), ")"]
    return "\n".join(lines)


def _batches(tensor: Tensor) -> list[tuple[int, int | None]]:
    found: list[tuple[int, int | None]] = []
    batch = batch_of(tensor)
    while batch is not None:
        found.append((batch.level.number, 0 if batch.origin is None else batch.origin[1]))
        batch = batch_of(batch.examples[0])
    return found


def _gradients(tensor: Tensor) -> list[tuple[int, int | None]]:
    leaves = {id(leaf) for leaf in leaves_below(own([tensor])[0])} if differentiated else set()
    return [(each.number, None) for each in differentiated if leaves & each.points]


def _memory(tensor: Tensor) -> Array:
    """The values of all examples, with the dims that count those of the outer levels in front."""
    batch = batch_of(tensor)
    if batch is None:
        return resolved(tensor)
    parts: Sequence[Array] = [_memory(one) for one in batch.examples]
    wider = len(_batches(batch.examples[0]))
    return np.stack(parts, wider + (0 if batch.origin is None else batch.origin[1]))


transformed_text.append(text)
