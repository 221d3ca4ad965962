"""``torch.vmap``: a function mapped over a dim of its arguments.

The function is called once per example and the results are stacked: the same values as PyTorch's one batched run, not
the speed. While it runs, everything computed from an example is known as such, so that what PyTorch refuses is refused:
random numbers without a rule for them, numbers read from examples, results whose shapes depend on values.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from stridescope.engine.autograd.blank import zeros
from stridescope.engine.autograd.function import Function as CustomFunction
from stridescope.engine.autograd.function import applied
from stridescope.engine.autograd.modes import transforms
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dtype import bool_
from stridescope.engine.events import journal
from stridescope.engine.ops.generator import default_generator
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.to_python import before_reading
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._trees import flatten, spread, structure

Function = Callable[..., Any]
NEEDS_CONTEXT = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    "the setup_context staticmethod. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
# Random ops whose distribution is given by a tensor.
_BY_TENSOR = frozenset(("bernoulli", "multinomial", "normal", "poisson", "binomial"))
_DYNAMIC = frozenset(("nonzero", "masked_select", "unique_dim", "_unique2", "unique_consecutive"))


def _is_random(op: Op) -> bool:
    return op.name.startswith("rand") or any(a.type.startswith("Generator") for a in op.schema.arguments)


class VmapInfo(NamedTuple):
    """What a custom function's ``vmap`` is told."""

    batch_size: int
    randomness: str


class Level:
    """One vmap at work.

    Attributes:
        batched: the tensors that depend on the example at hand, by id.
    """

    def __init__(self, info: VmapInfo) -> None:
        self.info = info
        self.batched: dict[int, weakref.ref[Tensor]] = {}

    def mark(self, tensor: Tensor) -> None:
        """This tensor depends on the example."""
        self.batched[id(tensor)] = weakref.ref(tensor)

    def depends(self, value: Any) -> bool:
        """Whether a value is, or holds, a tensor that depends on the example."""
        if isinstance(value, (tuple, list)):
            return any(self.depends(item) for item in value)
        found = self.batched.get(id(value))
        return found is not None and found() is value

    def watch(self, op: Op, call: Function, *args: Any) -> Any:
        """Stand before every op: refuse what vmap refuses, and follow what depends on the example."""
        depends = any(self.depends(a) for a in args)
        if random := _is_random(op):
            self._check_random(op, depends)
        if op.name == "index" and any(isinstance(i, Tensor) and i.dtype is bool_ and self.depends(i) for i in args[1]):
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
                "indexing with a boolean mask."
            )
        if depends and op.name in _DYNAMIC:
            raise RuntimeError(
                "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
                f"aten::{op.name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this "
                "feature."
            )
        if depends and op.schema.writes:
            self._check_write(args)
        result = call(*args)
        if depends or (random and self.info.randomness == "different"):
            for leaf in flatten(result)[0]:
                if isinstance(leaf, Tensor):
                    self.mark(leaf)
        return result

    def _check_random(self, op: Op, depends: bool) -> None:
        if self.info.randomness == "error":
            raise RuntimeError(_RANDOM)
        if self.info.randomness == "same" and depends and op.name in _BY_TENSOR:
            raise RuntimeError(_SAME)

    def _check_write(self, args: Sequence[Any]) -> None:
        target = args[0]
        if isinstance(target, Tensor) and not self.depends(target):
            own = list(target.shape)
            raise RuntimeError(
                f"output with shape {own} doesn't match the broadcast shape {[self.info.batch_size, *own]}"
            )

    def refuse_reading(self, tensor: Tensor, truth: bool) -> None:
        """Refuse that a number is made of what depends on the example."""
        if not self.depends(tensor):
            return
        if truth:
            raise RuntimeError(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
                "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
            )
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
            "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere "
            "inside PyTorch internals, please file a bug report."
        )

    def apply(self, cls: type[CustomFunction], args: tuple[Any, ...], kwargs: dict[str, Any], split: bool) -> Any:
        """Apply a custom function to one example."""
        if not split:
            raise RuntimeError(NEEDS_CONTEXT)
        if cls.generate_vmap_rule or not any(self.depends(a) for a in args):
            return self._followed(applied(cls, args, kwargs, split), args)
        if cls.vmap is CustomFunction.vmap:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
                "implement the vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
                "https://pytorch.org/docs/main/notes/extending.func.html"
            )
        dims = tuple(0 if self.depends(a) else None for a in args)
        given = [a if d is None else a.unsqueeze(0) for a, d in zip(args, dims, strict=True)]
        output, out_dims = cls.vmap(VmapInfo(1, self.info.randomness), dims, *given)
        leaves, unflatten = flatten(output)
        places = spread(out_dims, output) or []
        picked = [one if d is None else one.select(d, 0) for one, d in zip(leaves, places, strict=True)]
        return self._followed(unflatten(picked), args)

    def _followed(self, result: Any, args: Sequence[Any]) -> Any:
        for leaf in flatten(result)[0] if any(self.depends(a) for a in args) else ():
            if isinstance(leaf, Tensor):
                self.mark(leaf)
        return result


@contextlib.contextmanager
def running(level: Level) -> Iterator[None]:
    """The time in which a level stands before everything."""
    watch, refuse, apply = level.watch, level.refuse_reading, level.apply
    Interceptors.before.append(watch)
    before_reading.append(refuse)
    transforms.append(apply)
    journal.require_full(1)
    try:
        yield
    finally:
        journal.require_full(-1)
        transforms.remove(apply)
        before_reading.remove(refuse)
        Interceptors.before.remove(watch)


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
        chunk_size: accepted; one example after another is computed anyway.
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
        results = _examples(func, VmapInfo(size, randomness), (leaves, dims, unflatten), kwargs)
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


# ---- one example after another ---------------------------------------------------------------------------------------


class Example(NamedTuple):
    """What the function gave for one example, and which of its leaves depend on the example."""

    result: Any
    depends: list[bool]


def _examples(func: Function, info: VmapInfo, parts: Any, kwargs: dict[str, Any]) -> list[Example]:
    leaves, dims, unflatten = parts
    state = default_generator.get_state() if info.randomness == "same" else None
    found = []
    for index in range(info.batch_size) if info.batch_size else (None,):
        if state is not None:
            default_generator.set_state(state)
        level = Level(info)
        picked = [leaf if dim is None else _picked(leaf, dim, index) for leaf, dim in zip(leaves, dims, strict=True)]
        for one, dim in zip(picked, dims, strict=True):
            if dim is not None:
                level.mark(one)
        with running(level):
            result = func(*unflatten(picked), **kwargs)
        found.append(Example(result, [level.depends(leaf) for leaf in flatten(result)[0]]))
    return found


def _picked(leaf: Tensor, dim: int, index: int | None) -> Any:
    """One example; of none, something of an example's shape."""
    if index is not None:
        return leaf.select(dim, index)
    shape = leaf._array.shape
    return zeros(shape[:dim] + shape[dim + 1 :], leaf)


# ---- the results -----------------------------------------------------------------------------------------------------


def _check_out_dims(func: Function, out_dims: Any) -> None:
    if not all(isinstance(dim, int) or dim is None for dim in flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
            "ints representing where in the outputs the vmapped dimension should appear."
        )


def _joined(func: Function, examples: list[Example], out_dims: Any, size: int, place: int) -> Any:
    first = examples[0]
    dims = spread(out_dims, first.result)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            f"of `outputs`. out_dims has structure {structure(out_dims)} but outputs has structure "
            f"{structure(first.result)}."
        )
    columns = list(zip(*(flatten(example.result)[0] for example in examples), strict=True))
    depends = [any(column) for column in zip(*(example.depends for example in examples), strict=True)]
    _, unflatten = flatten(first.result)
    return unflatten([
        _result(func, column, dim, batched, size, place)
        for column, dim, batched in zip(columns, dims, depends, strict=True)
    ])  # fmt: skip


def _result(func: Function, column: tuple[Any, ...], dim: int | None, batched: bool, size: int, place: int) -> Any:
    """The results of all examples as one; in memory the mapped dim stands where the arguments have it."""
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
    stacked = op_call("stack")(list(column), place)
    return stacked if place == dim else stacked.movedim(place, dim)
