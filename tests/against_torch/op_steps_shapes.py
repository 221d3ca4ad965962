"""The steps of the op programs that move, view, choose, index and sort elements."""

from __future__ import annotations

import math
from typing import Any

from op_programs import INTEGERS, Inexact, OpProgram, step

# ---- views -----------------------------------------------------------------------------------------------------------


@step(6)
def reshaped(p: OpProgram) -> Any:
    one = p.tensor()
    sizes = p.pick([(-1,), (one.numel(), 1), (1, -1), (2, -1), (3, 2), (6,), (-1, 3), (2, 1, -1), (0, -1), (-1, -1)])
    return getattr(one, p.pick(["reshape", "view"]))(*sizes) if p.chance(0.5) else one.reshape(sizes)


@step(6)
def viewed(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["t", "T", "mT", "H", "transpose", "unsqueeze", "squeeze", "squeeze_all", "flatten", "permute",
                   "movedim", "swapaxes", "select", "narrow", "diagonal", "unfold", "expand", "expand_new", "unflatten",
                   "view_as", "adjoint", "broadcast_to", "atleast_2d", "atleast_3d"])  # fmt: skip
    if name in ("T", "mT", "H"):
        return getattr(one, name)
    if name == "squeeze_all":
        return one.squeeze()
    if name in ("t", "adjoint"):
        return getattr(one, name)()
    if name in ("transpose", "swapaxes", "movedim"):
        return getattr(one, name)(p.dim(one), p.dim(one))
    return other_view(p, one, name)


def other_view(p: OpProgram, one: Any, name: str) -> Any:
    if name in ("unsqueeze", "squeeze"):
        return getattr(one, name)(p.dim(one) if p.chance(0.8) else one.dim())
    if name == "flatten":
        return one.flatten(p.dim(one), p.dim(one)) if p.chance(0.7) else one.flatten()
    if name == "permute":
        return one.permute(p.random.sample(range(one.dim()), one.dim()))
    if name == "select":
        return one.select(p.dim(one), p.pick([0, -1, 1, 5]))
    if name == "narrow":
        return one.narrow(p.dim(one), p.pick([0, 1, -1]), p.pick([0, 1, 2]))
    if name == "diagonal":
        return (
            one.diagonal(**p.options(offset=[0, 1, -1])) if p.chance(0.7) else one.diagonal(0, p.dim(one), p.dim(one))
        )
    if name == "unfold":
        return one.unfold(p.dim(one), p.pick([1, 2, 3]), p.pick([1, 2]))
    if name == "unflatten":
        one = one if one.dim() else one.view(1)  # of a 0-d tensor the error holds a C++ stack
        return one.unflatten(p.dim(one), p.pick([(1, -1), (-1, 2), (3, 1), (2, 2)]))
    if name == "view_as":
        return one.view_as(p.tensor())
    if name.startswith("atleast"):
        return getattr(p.torch, name)(one)
    return one.broadcast_to(p.tensor().shape) if name == "broadcast_to" else expanded(p, one, name)


def expanded(p: OpProgram, one: Any, name: str) -> Any:
    return one.expand(2, *one.shape) if name == "expand_new" else one.expand(*(p.pick([n, -1, 2]) for n in one.shape))


@step(2)
def as_other_dtype(p: OpProgram) -> Any:
    """The bytes seen as another dtype; as integers, for which every pattern of bits is a number.

    Which of its many patterns a NaN has, and with which sign, is left to the processor and to the order of operands,
    of bfloat16 also to where an element stands: in a whole vector PyTorch writes 0xffff, after the last one 0x7fc0.
    All get the same one before, and what stays is no view of floats, since later writes may bring other NaNs.
    """
    one = p.target()
    floats = one.is_floating_point() or one.is_complex()
    if floats:
        one.masked_fill_(one.isnan(), math.nan)
    seen = one.view(p.dtype([*INTEGERS]))
    if not floats:
        return seen
    if p.chance(0.3):
        seen.zero_()  # seen by all who share the memory
    return [seen.clone(), [seen._is_view(), seen._version, list(seen.stride()), seen.storage_offset()]]


@step(2)
def restrided(p: OpProgram) -> Any:
    one = p.tensor()
    return one.as_strided(
        p.pick([(2,), (2, 2), (1, 2), ()]), p.pick([(1,), (1, 1), (2, 1), (0, 1), ()]), p.pick([None, 0, 1])
    )


@step(1)
def parts_of_complex(p: OpProgram) -> Any:
    one = p.tensor(["complex64", "complex128"])
    return p.pick([lambda: p.torch.view_as_real(one), lambda: one.real, lambda: one.imag, lambda: one.conj()])()


@step(3)
def split(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "split_sizes", "dsplit"])
    if name in ("hsplit", "vsplit", "dsplit"):
        return getattr(p.torch, name)(one, p.pick([1, 2, [1], [1, 2]]))
    if name == "unbind":
        return one.unbind(p.dim(one))
    if name == "split_sizes":
        return one.split([1, 2], p.dim(one))
    return getattr(one, name)(p.pick([1, 2, 3, 0]), p.dim(one))


# ---- copies ----------------------------------------------------------------------------------------------------------


@step(4)
def joined(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(
        ["cat", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag", "concat", "cartesian_prod"]
    )
    others = [p.tensor() if p.chance(0.5) else one for _ in range(p.random.randrange(1, 3))]
    if name == "block_diag":  # it promotes 0-d tensors, float16 with complex to complex32
        others = [t for t in others if t.dtype == one.dtype]
    options = {} if name not in ("cat", "stack", "concat") else {"dim": p.dim(one)}
    if name in ("block_diag", "cartesian_prod"):
        return getattr(p.torch, name)(one, *others)
    return getattr(p.torch, name)([one, *others], **options)


@step(5)
def moved(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["flip", "roll", "rot90", "tile", "repeat", "repeat_interleave", "tril", "triu", "diag", "diag_embed",
                   "fliplr", "flipud", "pad", "diagflat", "trace", "contiguous_last"])  # fmt: skip
    if name == "flip":
        return one.flip(p.dims(one))
    if name == "roll":
        return one.roll(p.pick([1, -1, 2]), *([p.dim(one)] if p.chance(0.7) else []))
    if name in ("tile", "repeat"):
        return getattr(one, name)(*p.pick([(2,), (1, 2), (2, 1, 1), (0, 1)]))
    if name == "repeat_interleave":
        return one.repeat_interleave(p.pick([2, 0, 1]), *([p.dim(one)] if p.chance(0.7) else []))
    if name in ("tril", "triu", "diag"):
        return getattr(one, name)(*([p.pick([0, 1, -1, 2])] if p.chance(0.6) else []))
    if name == "pad":
        options = padding(p)  # cutting off in circles reads what was never written
        sizes = [(1, 1), (0, 1, 1, 0), *([] if options.get("mode") == "circular" else [(-1, 1)])]
        return p.torch.nn.functional.pad(one, p.pick(sizes), **options)
    if name == "contiguous_last":
        return one.contiguous(memory_format=p.torch.channels_last)
    return getattr(p.torch, name)(one)


def padding(p: OpProgram) -> dict[str, Any]:
    return p.options(mode=["constant", "reflect", "replicate", "circular"], value=[0.0, 2.0])


@step(2)
def spread(p: OpProgram) -> Any:
    one, other = p.tensor(), p.tensor()
    name = p.pick(["meshgrid", "broadcast_tensors", "broadcast_shapes", "clone_last", "empty_like"])
    if name == "meshgrid":
        one, other = one.flatten(), other.flatten()  # of more dims the error prints the tensor as C++ does
        return p.torch.meshgrid(one, other, indexing=p.pick(["ij", "xy"]))
    if name == "broadcast_shapes":
        return p.torch.broadcast_shapes(one.shape, other.shape)
    if name == "broadcast_tensors":
        return p.torch.broadcast_tensors(one, other)
    if name == "empty_like":
        return list(p.torch.empty_like(one).stride())
    return one.clone(memory_format=p.torch.contiguous_format)


# ---- indexing --------------------------------------------------------------------------------------------------------


def index(p: OpProgram, one: Any) -> Any:
    """An index for ``t[…]``: a tuple of what may stand there, or a mask."""
    if p.chance(0.12):
        return one == p.number_for(one) if p.chance(0.8) else p.tensor(["bool"])
    parts, dim = [], 0
    kinds = ["int", "slice", "slice", "none", "list", "tensor", "ellipsis", "mask", "bool", "step"]
    while dim < one.dim() and p.chance(0.75):
        size = one.shape[dim]
        part = p.random.choice(kinds)
        if part in ("bool", "ellipsis"):  # several bools give empty results strides that nothing explains
            kinds.remove(part)
        dim += part not in ("none", "ellipsis", "bool")
        parts.append(index_part(p, part, size))
    p.words.append(repr([x.tolist() if isinstance(x, p.torch.Tensor) else x for x in parts]))
    return parts[0] if len(parts) == 1 and p.chance(0.5) else tuple(parts)


def index_part(p: OpProgram, part: str, size: int) -> Any:
    number = p.random.randrange(-size, size) if size and not p.chance(0.03) else 5
    if part == "int":
        return number
    if part == "slice":
        return slice(p.random.choice([None, 0, 1, -1]), p.random.choice([None, 1, 2, -1, 9]))
    if part == "step":
        return slice(None, None, p.random.choice([1, 2, 3, 2, -1]))
    if part == "list":
        return [p.random.randrange(-size, size) for _ in range(p.random.randrange(0, 3))] if size else []
    if part == "tensor":
        shape = p.random.choice([(), (1,), (2,), (2, 1), (3,)])
        kind = p.random.choice([p.torch.int64, p.torch.int64, p.torch.int32])
        return p.torch.full(shape, number if size else 0, dtype=kind)
    if part == "mask":
        return p.torch.tensor([p.chance(0.5) for _ in range(size)], dtype=p.torch.bool)
    return {"none": None, "ellipsis": Ellipsis, "bool": p.chance(0.5)}[part]


@step(8)
def indexed(p: OpProgram) -> Any:
    one = p.tensor()
    return one[index(p, one)]


@step(8)
def assigned(p: OpProgram) -> Any:
    one = p.target()
    key = index(p, one)
    one[key] = p.number() if p.chance(0.4) else fitting(p, one, key)
    return one


def fitting(p: OpProgram, one: Any, key: Any) -> Any:
    """A value that fits what the key selects, as a rule."""
    if p.chance(0.2):
        return p.apart(p.tensor(), one)
    selected = one[key]
    kind = one.dtype if p.chance(0.7) else p.dtype([*INTEGERS, "bool"])
    shape = selected.shape[1:] if p.chance(0.3) else selected.shape
    return p.torch.arange(shape.numel()).reshape(shape).to(kind)


def positions(p: OpProgram, size: int, shape: Any) -> Any:
    """Indices below ``size``; all different in the last dim where it is small enough, for writes."""
    count = shape[-1] if len(shape) else 1
    row = p.random.sample(range(size), count) if count <= size else [0] * count
    if p.chance(0.04):
        row = [size + 2] * count
    made = p.torch.tensor(row, dtype=p.torch.int64 if p.chance(0.95) else p.dtype(["int32", "float32"]))
    return made.reshape(()) if not len(shape) else made.expand(shape)


@step(5)
def gathered(p: OpProgram) -> Any:
    one = p.target()
    dim = p.dim(one)
    name = p.pick(["gather", "index_select", "take", "take_along_dim", "masked_select", "argwhere", "nonzero",
                   "scatter",
                   "scatter_add", "index_add", "index_copy", "index_fill", "put", "masked_fill", "masked_scatter",
                   "scatter_reduce"])  # fmt: skip
    size = one.shape[dim] if one.dim() and -one.dim() <= dim < one.dim() else 1
    flat = positions(p, max(size, 1), (min(size, 2),))
    if name in ("argwhere", "nonzero"):
        return getattr(one, name)()
    if name == "index_select":
        return one.index_select(dim, flat)
    if name in ("take", "put"):
        at = positions(p, max(one.numel(), 1), (2,))
        return one.take(at) if name == "take" else one.put(at, p.torch.ones(2, dtype=one.dtype))
    if name.startswith("masked"):
        return masked(p, one, name)
    if name.startswith("index"):
        return by_index(p, one, name, dim, flat)
    return by_positions(p, one, name, dim)


def masked(p: OpProgram, one: Any, name: str) -> Any:
    mask = one == p.number_for(one) if p.chance(0.8) else p.tensor(["bool"])
    if name == "masked_select":
        return one.masked_select(mask)
    if name == "masked_fill":
        return one.masked_fill(mask, p.number() if p.chance(0.8) else p.tensor())
    return one.masked_scatter(mask, p.torch.arange(one.numel() + 1).to(one.dtype))


def by_index(p: OpProgram, one: Any, name: str, dim: int, flat: Any) -> Any:
    one = one.clone()  # an index out of bounds leaves some elements written
    way = getattr(one, p.pick([name, f"{name}_"]))
    if name == "index_fill":
        return way(dim, flat, p.number())
    return way(dim, flat, one.narrow(dim, 0, flat.numel()).clone())


def by_positions(p: OpProgram, one: Any, name: str, dim: int) -> Any:
    shape = tuple(one.shape)
    at = p.torch.zeros(shape, dtype=p.torch.int64) if p.chance(0.5) else one.to(p.torch.bool).to(p.torch.int64)
    if name == "take_along_dim":  # which looks for indices out of bounds in some cases only
        return p.torch.take_along_dim(one, at * 0, dim)
    if name == "gather":
        return one.gather(dim, at)
    one = one.clone()
    at = p.torch.arange(at.numel()).reshape(shape) * 0 if name == "scatter" else at
    way = getattr(one, name if p.chance(0.6) else f"{name}_")
    if name == "scatter":
        return way(dim, at[..., :1] if one.dim() else at, p.number())
    if name == "scatter_add":
        return way(dim, at, p.torch.ones(shape, dtype=one.dtype))
    reduce = p.pick(["sum", "amax", "amin", "prod"])
    return Inexact(
        one.scatter_reduce(
            dim, at, p.torch.ones(shape, dtype=one.dtype), reduce, **p.options(include_self=[True, False])
        )
    )


# ---- sorting ---------------------------------------------------------------------------------------------------------


@step(4)
def ordered(p: OpProgram) -> Any:
    """Sorting; where equals may stand in either order, only the values are observed."""
    one = p.tensor()
    name = p.pick(["sort", "stable", "argsort", "topk", "kthvalue", "unique", "unique_consecutive", "msort", "isin",
                   "searchsorted", "bucketize", "bincount", "histc"])  # fmt: skip
    if name == "sort":
        return one.sort(p.dim(one), **p.options(descending=[True, False]))[0]
    if name in ("stable", "argsort"):
        options = p.options(descending=[True, False])
        return (
            p.torch.argsort(one, dim=p.dim(one), stable=True, **options)
            if name == "argsort"
            else p.torch.sort(one, stable=True, dim=p.dim(one), **options)
        )
    if name == "topk":
        return one.topk(p.pick([0, 1, 2]), p.dim(one), **p.options(largest=[True, False]))[0]
    if name == "kthvalue":
        return one.kthvalue(p.pick([1, 2, 4]), p.dim(one), **p.options(keepdim=[True, False]))[0]
    return searched(p, one, name)


def searched(p: OpProgram, one: Any, name: str) -> Any:
    if name in ("unique", "unique_consecutive"):  # of +0 and -0 either may stand for both, and NaNs have no order
        one = one.nan_to_num() if one.is_floating_point() else one
        return Inexact(getattr(one, name)(**p.options(return_inverse=[True], return_counts=[True])))
    if name == "isin":  # of a 0-d tensor in one that cannot be viewed flat PyTorch fails
        return p.torch.isin(one, p.tensor().contiguous())
    edges = p.torch.tensor([-1, 0, 1, 2], dtype=p.dtype(["int64", "float32"]))
    if name == "searchsorted":
        return p.torch.searchsorted(edges, one, **p.options(right=[True, False], out_int32=[True]))
    if name == "bucketize":
        return p.torch.bucketize(one, edges, **p.options(right=[True, False]))
    if name == "histc":
        return Inexact(one.histc(p.pick([3, 4]), -2, 2))
    if name == "bincount" and p.kind(one) in INTEGERS:  # of large numbers it would need much memory
        one = one.clamp(0, 9)
    return p.torch.bincount(one.flatten()) if name == "bincount" else p.torch.msort(one)


@step(2)
def resized(p: OpProgram) -> Any:
    """Smaller or equal sizes: what a larger storage holds in the end is not defined."""
    one = p.tensor().clone()
    name = p.pick(["resize_", "set_", "swap", "unsqueeze_", "squeeze_", "t_", "transpose_", "resize_as_"])
    if name == "resize_":
        return one.resize_(p.pick([(min(1, one.numel()),), (0,), (one.numel(),), (1, one.numel())]))
    if name == "set_":
        return one.set_(p.tensor())
    if name in ("unsqueeze_", "squeeze_"):
        return getattr(one, name)(p.dim(one))
    if name == "transpose_":
        return one.transpose_(p.dim(one), p.dim(one))
    return one.t_() if name == "t_" else one.detach()
