"""All ranks of a group with the same parameters and buffers: those of rank 0."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.distributed.process_group import ProcessGroup

Shape = tuple[tuple[int, ...], tuple[int, ...]]


def check(parameters: Sequence[Tensor], group: ProcessGroup) -> None:
    """Raise RuntimeError when the ranks have not as many parameters of the same sizes and strides."""
    shapes = [(tuple(each._array.shape), tuple(each.strides)) for each in parameters]
    everyone = range(group.size())
    body = pickle.dumps(shapes)
    found = group.objects("DistributedDataParallel's check", dict.fromkeys(everyone, body), list(everyone))
    others = {rank: pickle.loads(sent) for rank, sent in found.items()}
    for rank, other in others.items():
        if len(other) != len(shapes):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {group.rank()} has {len(shapes)} params, while "
                f"rank {rank} has inconsistent {len(other)} params."
            )
        _compare(shapes, other, group.rank(), rank)


def _compare(shapes: Sequence[Shape], others: Sequence[Shape], here: int, there: int) -> None:
    for index, (mine, other) in enumerate(zip(shapes, others, strict=True)):
        for word, own, theirs in zip(("sizes", "strides"), mine, other, strict=True):
            if own != theirs:
                raise RuntimeError(
                    f"[{here}]: params[{index}] in this process with {word} {list(own)} appears not to match {word} of "
                    f"the same param in process {there}."
                )


def take_over(tensors: Sequence[Any], group: ProcessGroup) -> None:
    """Give all ranks rank 0's values, as ``copy_`` would."""
    with torch.no_grad():
        for tensor in tensors:
            received = tensor.detach().clone()
            group.broadcast([received]).wait()
            tensor.detach().copy_(received)


def write_over(tensors: Sequence[Any], group: ProcessGroup) -> None:
    """The same behind autograd's back: the tensors' versions stay."""
    for tensor in tensors:
        group.broadcast([tensor]).wait()
