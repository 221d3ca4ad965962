"""Padding and packing of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import int64
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.tensor import Tensor, dense, fresh


def _steps(lengths: Any) -> Any:
    """How many sequences are still there at each step."""
    return (lengths[None, :] > np.arange(lengths.max())[:, None]).sum(1)


def _pack(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    array, counts = resolved(input), resolved(lengths)
    array = array.swapaxes(0, 1) if batch_first else array
    sizes = _steps(counts)
    data = np.concatenate([array[t, :n] for t, n in enumerate(sizes)])
    return fresh(dense(data), input.dtype, input.device), fresh(dense(sizes.astype(np.int64)), int64)


def _pack_grad(grad: Tensor, input_sym_sizes: Sequence[int], result1: Tensor, batch_first: bool) -> Any:
    total: Any = grad.new_zeros(tuple(input_sym_sizes))
    target, at = total.transpose(0, 1) if batch_first else total, 0
    for t, n in enumerate(resolved(result1).tolist()):
        target.select(0, t).narrow(0, 0, n).copy_(grad.narrow(0, at, n))
        at += n
    return total


define(
    "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
    doc="The steps of padded sequences, all first steps first, and how many there are of each.",
    run=_pack,
    grads={"input": _pack_grad},
    differentiable_outputs=(0,),
    method=False,
)


def _unpacked(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: int
) -> tuple[Any, Any]:
    """Written by slices, as PyTorch writes it: the graph is one of CopySlices."""
    sizes = resolved(batch_sizes).tolist()
    longest = max(total_length, len(sizes)) if total_length > 0 else len(sizes)
    output = op_call("full")((longest, sizes[0], *data._array.shape[1:]), padding_value, dtype=data.dtype)
    lengths, at, start = [0] * sizes[0], 0, 0
    for place in range(1, len(sizes) + 1):
        last = place == len(sizes)
        if last or sizes[place] != sizes[start]:
            count, size = place - start, sizes[start]
            block = data.narrow(0, at, count * size).view((count, size, *data._array.shape[1:]))
            output.narrow(0, start, count).narrow(1, 0, size).copy_(block)
            at, start = at + count * size, place
            gone = size - (0 if last else sizes[place])
            lengths[size - gone : size] = [place] * gone
    shown = output.transpose(0, 1) if batch_first else output
    return shown, fresh(np.array(lengths, np.int64), int64)


define(
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) "
    "-> "
    "(Tensor, Tensor)",
    doc="Packed sequences, padded again, and their lengths.",
    composite=_unpacked,
    method=False,
)


def _padded(sequences: Sequence[Tensor], batch_first: bool, padding_value: float, padding_side: str) -> Any:
    longest = max(s._array.shape[0] for s in sequences)
    rest = sequences[0]._array.shape[1:]
    lead = (len(sequences), longest) if batch_first else (longest, len(sequences))
    kind, place = sequences[0].dtype, sequences[0].device
    output = op_call("full")((*lead, *rest), padding_value, dtype=kind, device=place)
    for index, sequence in enumerate(sequences):
        size = sequence._array.shape[0]
        start = longest - size if padding_side == "left" else 0
        row = output.select(0 if batch_first else 1, index)
        row.narrow(0, start, size).copy_(sequence)
    return output


define(
    'pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side="right") -> '
    "Tensor",
    doc="Sequences of different lengths in one tensor, filled up with a value.",
    composite=_padded,
    method=False,
)
