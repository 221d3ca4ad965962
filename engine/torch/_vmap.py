"""``torch.vmap``: a function mapped over a dim of its arguments.

The function is called once, with tensors that stand for all examples; every op is done for one example after another,
and in the end the results are stacked: the same values as PyTorch's, not the speed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine.autograd.blank import zeros
from stridescope.engine.autograd.lockstep import batch_of
from stridescope.engine.ops.generator import default_generator
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._trees import flatten, spread, structure
from stridescope.engine.torch._vmap_level import Level, VmapInfo, running

Function = Callable[..., Any]


# ---- the arguments ---------------------------------------------------------------------------------------------------


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """A function that maps ``func`` over a dim of its arguments.

    Args:
        func: takes and returns nests of tensors.
        in_dims: the dim to map over, for all arguments or, in a nest like theirs, for each; None keeps one whole.
        out_dims: where the mapped dim goes in the results.
        randomness: whether random numbers are refused (``error``), the ``same`` for all or ``different`` for each.
        chunk_size: how many examples a call of ``func`` is for; by default all.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(func, out_dims)
        dims = _dims(func, in_dims, args)
        leaves, unflatten = flatten(args)
        size = _size(leaves, dims)
        results = _runs(func, (leaves, dims, unflatten), kwargs, (size, randomness, chunk_size))
        return _joined(func, results, out_dims, size, _place(leaves, dims))

    return wrapper


def _name(func: Function) -> str:
    return getattr(func, "__name__", repr(func))


def _dims(func: Function, in_dims: Any, args: tuple[Any, ...]) -> list[Any]:
    """The dim that each leaf of the arguments is mapped over."""
    head = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{head}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    dims = spread(in_dims, args)
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{structure(in_dims)} but inputs has structure {structure(args)}."
        )
    return [_dim(head, dim, leaf) for dim, leaf in zip(dims, flatten(args)[0], strict=True)]


def _dim(head: str, dim: Any, leaf: Any) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )  # fmt: skip
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    ndim = leaf._array.ndim
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"{head}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {ndim} so expected "
            f"in_dim to satisfy -{ndim} <= in_dim < {ndim}."
        )
    return dim % ndim


def _size(leaves: Sequence[Any], dims: Sequence[int | None]) -> int:
    sizes: list[int] = [leaf._array.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0]


def _place(leaves: Sequence[Any], dims: Sequence[int | None]) -> int:
    """Where the mapped dim of the results stands in memory: first, unless all arguments have it elsewhere.

    It is last, however many dims a result has, where it is the last one of every argument.
    """
    mapped = [(leaf._array.ndim, dim) for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    places = {sys.maxsize if dim == ndim - 1 and dim else dim for ndim, dim in mapped}
    return places.pop() if len(places) == 1 else 0


# ---- the runs --------------------------------------------------------------------------------------------------------


class Run:
    """One call of the function: its result, and of each leaf of that the examples that it stands for, if any."""

    def __init__(self, result: Any, level: Level) -> None:
        self.result, self.count = result, level.count
        self.leaves = flatten(result)[0]
        batches = [batch_of(leaf) if isinstance(leaf, Tensor) else None for leaf in self.leaves]
        self.batches = [None if batch is None or batch.level is not level else batch for batch in batches]

    def column(self, place: int) -> list[Any]:
        """What a leaf is for each example."""
        batch = self.batches[place]
        return [self.leaves[place]] * self.count if batch is None else batch.examples


def _runs(func: Function, parts: Any, kwargs: dict[str, Any], plan: tuple[int, str, int | None]) -> list[Run]:
    """Call the function once, or once for each chunk."""
    size, randomness, chunk = plan
    state = default_generator.get_state() if randomness == "same" and chunk else None
    found = []
    for start in range(0, size, chunk) if chunk and size else (0,):
        if state is not None:
            default_generator.set_state(state)
        level = Level(VmapInfo(min(chunk or size, size - start), randomness))
        found.append(_run(func, parts, kwargs, level, None if level.info.batch_size == size else start))
    return found


def _run(func: Function, parts: Any, kwargs: dict[str, Any], level: Level, start: int | None) -> Run:
    leaves, dims, unflatten = parts
    with running(level):
        given = [
            leaf if dim is None else _batched(leaf, dim, level, start) for leaf, dim in zip(leaves, dims, strict=True)
        ]
        return Run(func(*unflatten(given), **kwargs), level)


def _batched(leaf: Any, dim: int, level: Level, start: int | None) -> Tensor:
    """An argument as the function gets it; of no examples, something of an example's shape."""
    if not level.info.batch_size:
        shape = leaf._array.shape
        return level.stand_in([zeros(shape[:dim] + shape[dim + 1 :], leaf)])
    if start is not None:
        leaf = level.aside(lambda: leaf.narrow(dim, start, level.count))
    return level.unstacked(leaf, dim)


# ---- the results -----------------------------------------------------------------------------------------------------


def _check_out_dims(func: Function, out_dims: Any) -> None:
    if not all(isinstance(dim, int) or dim is None for dim in flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
            "ints representing where in the outputs the vmapped dimension should appear."
        )


def _joined(func: Function, runs: list[Run], out_dims: Any, size: int, place: int) -> Any:
    first = runs[0]
    dims = spread(out_dims, first.result)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            f"of `outputs`. out_dims has structure {structure(out_dims)} but outputs has structure "
            f"{structure(first.result)}."
        )
    _, unflatten = flatten(first.result)
    return unflatten([_result(func, runs, number, dim, size, place) for number, dim in enumerate(dims)])


def _result(func: Function, runs: list[Run], number: int, dim: int | None, size: int, place: int) -> Any:
    """The results of all examples as one; in memory the mapped dim stands where the arguments have it."""
    column = [one for run in runs for one in run.column(number)]
    batched = any(run.batches[number] is not None for run in runs)
    first = column[0]
    if dim is None:
        if batched:
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
            )  # fmt: skip
        return first
    if not isinstance(first, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(first)}. Did you mean "
            "to set out_dims= to None for output?"
        )
    last = first._array.ndim
    if not -last - 1 <= dim <= last:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-last - 1}, {last}], but got {dim})")
    if not size:
        shape = list(first._array.shape)
        shape.insert(dim % (len(shape) + 1), 0)
        return zeros(shape, first)
    if not batched:  # the same for all: nothing is copied
        return first.unsqueeze(0).expand(size, *first._array.shape).movedim(0, dim)
    place, dim = min(place, first._array.ndim), dim % (first._array.ndim + 1)
    batch = runs[0].batches[number]
    if len(runs) == 1 and batch is not None and batch.origin is not None:  # an argument, or whole already
        whole, at = batch.origin
        return whole.movedim(at, dim)
    stacked = op_call("stack")(list(column), place)
    return stacked if place == dim else stacked.movedim(place, dim)
