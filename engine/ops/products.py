"""Products described by dims or by letters: inner, tensordot, einsum, and chains of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_dtypes import refusal
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.parser import refuse_items
from stridescope.engine.dtype import cpp_name
from stridescope.engine.layout import wrap_dims
from stridescope.engine.ops.matmul import bmm, dot, mm
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import internal, warn_once


def _contracted(a: Tensor, b: Tensor, dims_a: Sequence[int], dims_b: Sequence[int]) -> tuple[Tensor, Tensor, int]:
    """Sum dims that meet a size of 1 right away; return the size of what is left to contract."""
    size = 1
    for x, y in zip(dims_a, dims_b, strict=True):
        n, m = a.shape[x], b.shape[y]
        if m == 1:
            a = a.sum(x, True, dtype=a.dtype)
        elif n == 1:
            b = b.sum(y, True, dtype=b.dtype)
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {x} and second has size {m} in "
                f"dim {y}"
            )
        else:
            size *= n
    return a, b, size


def _tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self.dtype is not other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    a, b, size = _contracted(self, other, dims_self, dims_other)
    out_a, out_b = wrap_dims(dims_self, a._array.ndim), wrap_dims(dims_other, b._array.ndim)
    kept_a = [d for d in range(a._array.ndim) if d not in out_a]
    kept_b = [d for d in range(b._array.ndim) if d not in out_b]
    rows, columns = math.prod(a.shape[d] for d in kept_a), math.prod(b.shape[d] for d in kept_b)
    left, right = a.permute((*kept_a, *out_a)), b.permute((*out_b, *kept_b))
    shape = [a.shape[d] for d in kept_a] + [b.shape[d] for d in kept_b]
    if rows == columns == 1:  # one number: no matrix product is needed
        if left.is_contiguous() and right.is_contiguous():
            return dot.call(left.flatten(), right.flatten()).view(shape)  # type: ignore[no-any-return]
        return (left.squeeze() * right.squeeze()).sum(dtype=self.dtype).view(shape)  # type: ignore[no-any-return]
    left, right = left.reshape((rows, size)), right.reshape((size, columns))
    return mm.call(left, right).reshape(shape)  # type: ignore[no-any-return]


_tensordot_op = define(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    doc="Multiplies and adds up over pairs of dims.",
    composite=_tensordot,
    method=False,
    function=False,
)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """``torch.tensordot``: ``dims`` is a number of dims, or a list of dims for each tensor."""
    dims_a, dims_b = _dim_lists(a, b, dims)
    result: Tensor = _tensordot_op.call(a, b, dims_a, dims_b)
    if out is None:
        return result
    from stridescope.engine.dispatch.out import written

    return written(out, result)


def _dim_lists(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        if dims._array.size > 1:
            return dims[0].tolist(), dims[1].tolist()
        dims = int(dims.item())
    if isinstance(dims, (tuple, list)):
        first, second = dims
        return ([first] if isinstance(first, int) else list(first)), (
            [second] if isinstance(second, int) else list(second)
        )
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a._array.ndim, b._array.ndim):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return list(range(-dims, 0)), list(range(dims))


def _inner(self: Tensor, other: Tensor) -> Tensor:
    if not self._array.ndim or not other._array.ndim:
        return self * other  # type: ignore[no-any-return]
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    return _tensordot_op.call(self, other, [-1], [-1])  # type: ignore[no-any-return]


def _inner_into(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    """What ``inner(out=)`` writes; a number times a tensor is written as ``mul`` does, into any dtype that holds it."""
    result = _inner(self, other)
    if self._array.ndim and other._array.ndim:
        return result
    if (refused := refusal("mul", result.dtype, out.dtype)) is not None:
        raise refused
    return result.to(out.dtype)  # type: ignore[no-any-return]


define(
    "inner(Tensor self, Tensor other) -> Tensor",
    doc="The sums of products over the last dims.",
    composite=_inner,
    out=Out(_inner_into),
    samples=[((3, 4), (2, 4))],
)

# ---- einsum ------------------------------------------------------------------------------------------------------

ELLIPSIS = "..."


def _labels(text: str, operand: int) -> list[str]:
    """The letters of one operand, the ellipsis as one of them."""
    found: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == ".":
            where = f"for operand {operand}" if operand >= 0 else "for the output"
            if ELLIPSIS in found:
                raise RuntimeError(f"einsum(): found '.' {where} for which an ellipsis was already found")
            if text[position : position + 3] != ELLIPSIS:
                raise RuntimeError(f"einsum(): found '.' {where} that is not part of any ellipsis")
            found.append(ELLIPSIS)
            position += 2
        elif not (char.isascii() and char.isalpha()):
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {position} in the equation string, subscripts must be in "
                "[a-zA-Z]"
            )
        else:
            found.append(char)
        position += 1
    return found


def _parse(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str] | None]:
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = [_labels(part, number) for number, part in enumerate(left.split(","))]
    if len(inputs) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(inputs) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    for number, (labels, operand) in enumerate(zip(inputs, operands, strict=True)):
        _check_count(labels, operand, number)
    return inputs, _labels(right, -1) if arrow else None


def _check_count(labels: list[str], operand: Tensor, number: int) -> None:
    letters, ndim = len(labels) - (ELLIPSIS in labels), operand._array.ndim
    if ELLIPSIS in labels:
        if letters > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({letters}) is more than the number of dimensions "
                f"({ndim}) for operand {number}"
            )
    elif letters != ndim:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({letters}) does not match the number of dimensions "
            f"({ndim}) for operand {number} and no ellipsis was given"
        )


def _output(inputs: list[list[str]], given: list[str] | None) -> list[str]:
    """The labels of the result: as written, or the ellipsis and then all letters that occur once."""
    everything = [label for labels in inputs for label in labels]
    if given is None:
        once = sorted(c for c in set(everything) if c != ELLIPSIS and everything.count(c) == 1)
        return ([ELLIPSIS] if ELLIPSIS in everything else []) + once
    for label in given:
        if label != ELLIPSIS and given.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label != ELLIPSIS and label not in everything:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    return given


class _Frame:
    """The common order of dims that all operands of an einsum are brought into: the output's first."""

    def __init__(self, inputs: list[list[str]], output: list[str], operands: Sequence[Tensor]) -> None:
        self.ellipsis = max(
            (o._array.ndim - len(ls) + 1 for ls, o in zip(inputs, operands, strict=True) if ELLIPSIS in ls), default=0
        )
        self.place: dict[str, int] = {}
        position = 0
        for label in output:
            self.place[label] = position
            position += self.ellipsis if label == ELLIPSIS else 1
        self.kept = position
        if ELLIPSIS not in self.place:
            self.place[ELLIPSIS] = position
            position += self.ellipsis
        for label in sorted({c for labels in inputs for c in labels} - set(self.place)):
            self.place[label] = position
            position += 1
        self.ndim = position

    def arranged(self, operand: Tensor, labels: list[str], number: int) -> Tensor:
        """The operand with its dims in the common order, size 1 where it has no such label."""
        seen: dict[str, int] = {}
        order, dim = [-1] * self.ndim, 0
        own = operand._array.ndim
        for label in labels:
            if label == ELLIPSIS:
                for _ in range(self.ellipsis - (own - len(labels) + 1)):
                    operand = operand.unsqueeze(dim)
                for k in range(self.ellipsis):
                    order[self.place[ELLIPSIS] + k] = dim
                    dim += 1
            elif label in seen:
                operand = self._diagonal(operand, label, seen[label], dim, number)
            else:
                seen[label], order[self.place[label]] = dim, dim
                dim += 1
        for position, found in enumerate(order):
            if found == -1:
                operand, order[position] = operand.unsqueeze(operand._array.ndim), dim
                dim += 1
        return operand.permute(order)  # type: ignore[no-any-return]

    @staticmethod
    def _diagonal(operand: Tensor, label: str, first: int, second: int, number: int) -> Tensor:
        n, m = operand.shape[second], operand.shape[first]
        if n != m:
            raise RuntimeError(
                f"einsum(): subscript {label} is repeated for operand {number} but the sizes don't match, {n} != {m}"
            )
        return operand.diagonal(0, first, second).movedim(-1, first)  # type: ignore[no-any-return]


def _check_sizes(frame: _Frame, arranged: Sequence[Tensor], inputs: list[list[str]]) -> None:
    label_at = {place: label for label, place in frame.place.items()}
    for dim in range(frame.ndim):
        known = 1
        for number, operand in enumerate(arranged):
            size = operand.shape[dim]
            if known != 1 and size not in (1, known):
                label = label_at.get(dim, ELLIPSIS)
                what = f"subscript {label}" if label != ELLIPSIS else "dimension"
                raise RuntimeError(
                    f"einsum(): {what} has size {size} for operand {number} which does not broadcast with previously "
                    f"seen size {known}"
                )
            known = size if known == 1 else known


def _pair(left: Tensor, right: Tensor, over: Sequence[int]) -> Tensor:
    """The product of two arranged operands, added up over some dims, by one batched matrix product."""
    if not over:
        return left * right  # type: ignore[no-any-return]
    both: list[int] = []
    only_left: list[int] = []
    only_right: list[int] = []
    for dim in range(left._array.ndim):
        if dim in over:
            continue
        in_left, in_right = left.shape[dim] != 1, right.shape[dim] != 1
        (both if in_left and in_right else only_left if in_left else only_right).append(dim)
    batch, rows = (math.prod(left.shape[d] for d in dims) for dims in (both, only_left))
    columns, inner = math.prod(right.shape[d] for d in only_right), math.prod(left.shape[d] for d in over)
    a = left.permute((*both, *only_left, *over, *only_right)).reshape((batch, rows, inner))
    b = right.permute((*both, *over, *only_right, *only_left)).reshape((batch, inner, columns))
    sizes = [left.shape[d] for d in both + only_left] + [1] * len(over) + [right.shape[d] for d in only_right]
    order = both + only_left + list(over) + only_right
    back = [order.index(d) for d in range(len(order))]
    return bmm.call(a, b).view(sizes).permute(back)  # type: ignore[no-any-return]


def _step(a: Tensor, b: Tensor, counts: list[int], frame: _Frame) -> Tensor:
    """Contract two operands over the dims that no later operand needs."""
    sums: tuple[list[int], list[int], list[int]] = ([], [], [])
    for dim in range(frame.kept, frame.ndim):
        in_a, in_b = a.shape[dim] != 1, b.shape[dim] != 1
        if in_a and in_b:
            counts[dim] -= 1
            if counts[dim] == 1:
                sums[2].append(dim)
                counts[dim] = 0
        elif counts[dim] == 1 and (in_a or in_b):
            sums[0 if in_a else 1].append(dim)
            counts[dim] = 0
    a = a.sum(tuple(sums[0]), True) if sums[0] else a
    b = b.sum(tuple(sums[1]), True) if sums[1] else b
    return _pair(a, b, sums[2])


def _einsum(equation: str, tensors: Sequence[Tensor], path: Any = None) -> Tensor:
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    inputs, given = _parse(equation, tensors)
    frame = _Frame(inputs, _output(inputs, given), tensors)
    left = [frame.arranged(t, ls, n) for n, (t, ls) in enumerate(zip(tensors, inputs, strict=True))]
    _check_sizes(frame, left, inputs)
    counts = [sum(t.shape[dim] != 1 for t in left) for dim in range(frame.ndim)]
    result = left[0]
    for other in left[1:]:
        result = _step(result, other, counts, frame)
    if frame.ndim == frame.kept:
        return result
    if len(left) > 1:
        return result.view(result.shape[: frame.kept])  # type: ignore[no-any-return]
    return result.sum(tuple(range(frame.kept, frame.ndim)))  # type: ignore[no-any-return]


_einsum_op = define(
    "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    doc="A product described by letters: each letter names a dim, letters missing in the result are added up.",
    composite=_einsum,
    method=False,
    function=False,
)


def einsum(*args: Any) -> Tensor:
    """``torch.einsum``: an equation and operands, or operands each followed by a list of numbers for its dims."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], Tensor):
        return _einsum_op.call(_equation(args), list(args[: len(args) // 2 * 2 : 2]))  # type: ignore[no-any-return]
    operands = args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        return einsum(args[0], *operands[0])
    return _einsum_op.call(args[0], list(operands))  # type: ignore[no-any-return]


def _equation(args: Sequence[Any]) -> str:
    lists = [_letters(item) for item in args[1::2]]
    return ",".join(lists) + (f"->{_letters(args[-1])}" if len(args) % 2 else "")


def _letters(numbers: Sequence[Any]) -> str:
    return "".join(ELLIPSIS if n is Ellipsis else chr(ord("A") + n if n < 26 else ord("a") + n - 26) for n in numbers)


# ---- chains ------------------------------------------------------------------------------------------------------


def _check_chain(tensors: Sequence[Tensor]) -> None:
    last = len(tensors) - 1
    for number, tensor in enumerate(tensors):
        ends = number in (0, last)
        ndim = tensor._array.ndim
        if ndim != 2 and not (ends and ndim == 1):
            which = "the first tensor" if number == 0 else "the last tensor" if number == last else f"tensor {number}"
            allowed = "1D or 2D" if ends else "2D"
            raise RuntimeError(f"multi_dot(): {which} must be {allowed} but got {ndim}D")
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {cpp_name(tensors[0].dtype)} "
                f"and tensor {number} {cpp_name(tensor.dtype)}"
            )


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices so that the fewest multiplications are needed."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cost[i, j] = min(options)
            split[i, j] = i + options.index(cost[i, j])
    if count == 3 and len(set(options)) == 1:
        split[0, 2] = 1  # of three matrices PyTorch takes the first two together when both ways cost the same
    return split


def _multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    _check_chain(tensors)
    matrices = list(tensors)
    shape = []
    if matrices[0]._array.ndim == 1:
        matrices[0] = matrices[0].unsqueeze(0)
    else:
        shape.append(matrices[0].shape[0])
    if matrices[-1]._array.ndim == 1:
        matrices[-1] = matrices[-1].unsqueeze(-1)
    else:
        shape.append(matrices[-1].shape[1])
    for number, (a, b) in enumerate(zip(matrices, matrices[1:], strict=False)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {number} and {number + 1} with shapes {list(tensors[number].shape)} and "
                f"{list(tensors[number + 1].shape)} cannot be multiplied"
            )
    split = _best_splits([m.shape[0] for m in matrices] + [matrices[-1].shape[1]])

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return matrices[i]
        middle = split[i, j]
        return mm.call(product(i, middle), product(middle + 1, j))  # type: ignore[no-any-return]

    return product(0, len(matrices) - 1).view(shape)  # type: ignore[no-any-return]


multi_dot = define(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    doc="A chain of matrix products, in the order that needs the fewest multiplications.",
    composite=_multi_dot,
    method=False,
    namespace="torch.linalg",
)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """``torch.chain_matmul``, the older name of ``torch.linalg.multi_dot``."""
    warn_once(
        internal(
            "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
            "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than multiple "
            "parameters.",
            "aten/src/ATen/native/LinearAlgebra.cpp:1102",
        )
    )
    refuse_items(matrices)
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix._array.ndim}, expected 2 instead.")
    result: Tensor = matrices[0] if len(matrices) == 1 else multi_dot.call(list(matrices))
    if out is None:
        return result
    from stridescope.engine.dispatch.out import written

    return written(out, result)


FUNCTIONS: dict[str, Any] = {"tensordot": tensordot, "einsum": einsum, "chain_matmul": chain_matmul}
