"""``out=``: a result is written into a tensor of the caller's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.history import check_inference
from stridescope.engine.autograd.lockstep import Lockstep, run_of
from stridescope.engine.autograd.modes import ForwardMode, grad_mode
from stridescope.engine.dispatch.halfway import tell_written, written_before
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.out_dtypes import (
    TRANSFORMS,
    other_dtype,
    refusal,
    refusal_of_one,
)
from stridescope.engine.dispatch.out_rule import Gradients
from stridescope.engine.dispatch.overlap import PARTIAL, is_lazy, refuse_lazy_overlap, refuse_overlap
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dispatch.return_types import return_type
from stridescope.engine.dispatch.run import Guarded, Pointwise, flattened, is_of_kernel, placed, store
from stridescope.engine.dispatch.torch_function import Overrides, dispatching
from stridescope.engine.layout import dense_strides_like
from stridescope.engine.tensor import Scratch, Tensor, bump_version, moved, resize
from stridescope.engine.warn import internal, warn

RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match the required output "
    "shape {}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
    "have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
    "t.resize_(0)."
)


def write_out(op: Op, values: list[Any], out: Any) -> Any:
    """Run the op without recording a graph and write its results into ``out`` (one tensor or several)."""
    targets = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if Overrides.any_dispatch and not Overrides.without_dispatch and dispatching(flattened([*values, *targets])):
        raise NotImplementedError(f"out= of {op.name} for tensors with a __torch_dispatch__ is not in Stridescope yet")
    _refuse_batches(op, values, targets)
    op = op.first
    at_once = isinstance(op.run, (Pointwise, Guarded)) or op.out.memory_first
    _refuse_before(op, values, targets, at_once)
    enabled, grad_mode.enabled = grad_mode.enabled, False
    Interceptors.writing += 1
    try:
        with Scratch():
            result = _computed(op, _in_dtype_of_out(op, values, targets[0]), targets)
        results: Sequence[Any] = result if isinstance(result, (tuple, list)) else (result,)
        _write_all(op, values, targets, results, at_once)
    except (RuntimeError, IndexError) as error:
        if (before := written_before(error)) is not None:
            filled(targets[0], before)
            tell_written(targets[0])
        raise
    finally:
        grad_mode.enabled = enabled
        Interceptors.writing -= 1
    if op.schema.returns == ("Tensor[]",):
        return None
    if isinstance(result, tuple) and type(result) is not tuple:
        kind: Any = type(result)
        return return_type(f"{kind.__name__}_out", kind.__match_args__)(targets)
    return targets if isinstance(result, (tuple, list)) else out


def _refuse_batches(op: Op, values: list[Any], targets: tuple[Tensor, ...]) -> None:
    if Lockstep.levels and run_of([values, targets]) is not None:
        raise RuntimeError(
            f"Batching rule not implemented for aten::{op.name}.out; the fallback path doesn't work on out= or view "
            "ops."
        )


def _refuse_before(op: Op, values: list[Any], targets: tuple[Tensor, ...], at_once: bool) -> None:
    """Refuse what PyTorch refuses before it computes; ``at_once`` are the ops that look at the memory then."""
    if op.out.factory and (asked := _asked_dtype(op, values)) not in (None, targets[0].dtype):
        raise other_dtype(asked, targets[0].dtype)
    _refuse_gradients(op, values, targets)
    if op.out.dtype_at_once is not None:
        refused = refusal(op.name, op.out.dtype_at_once(*values), targets[0].dtype)
        if refused is not None:
            raise refused
    if isinstance(op.run, (Pointwise, Guarded)):
        op.run.admit(*values)
    for target in targets:
        if at_once:
            refuse_overlap(target, values)
        if op.out.apart:
            _refuse_sharing(target, values)


def _write_all(
    op: Op, values: list[Any], targets: tuple[Tensor, ...], results: Sequence[Any], at_once: bool
) -> None:  # fmt: skip
    """Write each result into its target; ops that are not ``at_once`` look at the memory only now."""
    if op.schema.returns == ("Tensor[]",):
        _refuse_count(op.name, len(targets), len(results))
    several = len(results) > 1
    if several:
        _refuse_dtypes(op.name, targets, results)
    plain = several or (op.out.casts is not None and op.out.casts(*values))
    for place, (target, one) in enumerate(zip(targets, results, strict=False)):
        counts = op.out.counts if place < 2 else op.out.counts_third
        if one is target:  # an op that leaves it as it was
            continue
        if op.name in TRANSFORMS and target._array.shape != one._array.shape:
            one = one.contiguous()  # computed apart and copied
        if target._array.shape == one._array.shape:
            refuse_lazy_overlap(target)
        if isinstance(op.run, Pointwise):
            _refuse_reshaping_an_operand(target, one._array.shape, values)
        written(target, one, "" if plain else op.name, () if at_once else values, counts)


def _refuse_count(name: str, given: int, wanted: int) -> None:
    """A view's parts are written into as many tensors as there are parts."""
    if given != wanted:
        spelled = {"split_copy": "split_copy_Tensor_out()", "unbind_copy": "unbind_copy_int_out"}
        raise RuntimeError(
            f"{spelled.get(name, f'{name}_out')} expected an out= argument of size {wanted}, got size {given}"
        )


def _refuse_dtypes(name: str, targets: Sequence[Tensor], results: Sequence[Any]) -> None:
    for place, (target, one) in enumerate(zip(targets, results, strict=False)):
        refused = refusal_of_one(name, place, one.dtype, target.dtype)
        if refused is not None:
            raise refused


def _asked_dtype(op: Op, values: list[Any]) -> Any:
    """The ``dtype`` among the arguments."""
    found = [value for argument, value in zip(op.schema.arguments, values, strict=True) if argument.name == "dtype"]
    return found[0] if found else None


def _in_dtype_of_out(op: Op, values: list[Any], target: Tensor) -> list[Any]:
    """The arguments of a reduction that computes in the dtype of ``out`` where none is asked for."""
    names = [argument.name for argument in op.schema.arguments]
    if not op.out.own_dtype or "dtype" not in names or values[names.index("dtype")] is not None:
        return values
    return [target.dtype if name == "dtype" else value for name, value in zip(names, values, strict=True)]


def _computed(op: Op, values: list[Any], targets: tuple[Tensor, ...]) -> Any:
    """The result; that its dtype does not fit ``out`` is said before anything that the kernel refuses."""
    try:
        return op.call(*values) if op.out.into is None else op.out.into(*values, targets[0])
    except (NotImplementedError, RuntimeError, IndexError) as error:
        if op.out.dtype_first is not None and not str(error).startswith(op.out.dtype_first):
            raise refusal(op.name, values[0].dtype, targets[0].dtype) or error from None
        given = next((v for v in flattened(values) if isinstance(v, Tensor)), None)
        if given is None or not is_of_kernel(error):
            raise
        kind = given.dtype
        if isinstance(op.run, Pointwise):
            shape, kind = op.run.outcome(values)
            _refuse_reshaping_an_operand(targets[0], shape, values)
        refused = None if op.out.own_dtype or op.out.into else refusal(op.name, kind, targets[0].dtype)
        if refused is None and isinstance(op.run, Pointwise) and targets[0]._array.shape != shape:
            sources = [placed(value, kind) for value in values[: op.run.operands(len(values))]]
            resized(targets[0], shape, op.run.strides(shape, sources))  # which PyTorch does before its kernel refuses
        raise refused or error from None


def _refuse_reshaping_an_operand(target: Tensor, shape: tuple[int, ...], values: list[Any]) -> None:
    """An output that is read too cannot take another shape."""
    if shape != target._array.shape and any(value is target for value in values):
        raise RuntimeError(
            f"output with shape {list(target._array.shape)} doesn't match the broadcast shape {list(shape)}"
        )


def _refuse_gradients(op: Op, values: list[Any], targets: Sequence[Tensor]) -> None:
    given: list[Any] = [*targets]
    for value in values:
        given.extend(value if isinstance(value, (list, tuple)) else (value,))
    tensors = [t for t in given if isinstance(t, Tensor)]
    if ForwardMode.custom is not None and any(map(ForwardMode.carried_by, tensors)):
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name}_out that does not support it because it is an out= function"
        )
    if not grad_mode.enabled or op.out.gradients is Gradients.FREE:
        return
    label = op.name
    if op.out.gradients is Gradients.LEAVES:
        label, tensors = f"aten::{op.name}", [t for t in targets if t._node is None]
    if any(t._requires_grad for t in tensors):
        raise RuntimeError(
            f"{label}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )


def _refuse_sharing(target: Tensor, values: list[Any]) -> None:
    for value in () if is_lazy(target) else flattened(values):
        if (
            isinstance(value, Tensor)
            and not is_lazy(value)
            and (value is target or value._storage is target._storage is not None)
        ):
            raise RuntimeError(PARTIAL)


def written(target: Tensor, result: Tensor, name: str = "", reads: Sequence[Any] = (), counts: int = 1) -> Tensor:
    """Write a result of the op ``name``, which ``reads`` these, into ``target``, which takes its shape.

    The write ``counts`` so often.
    Raises RuntimeError (``cat`` and its like TypeError) when the dtype does not fit, or memory is shared.
    """
    refused = refusal(name, result.dtype, target.dtype)
    if refused is not None:
        raise refused
    if target._array.shape == result._array.shape:  # another shape takes memory of its own
        refuse_overlap(target, reads)
    filled(target, result)
    if target._inference:
        check_inference(target)
    for _ in range(counts):
        bump_version(target)
    return target


def filled(target: Tensor, result: Tensor) -> None:
    """Give ``target`` the shape and the values of a result, and leave its version as it is."""
    if target._array.shape != result._array.shape:
        resized(target, *layout_for(result))
    store(target, result, checked=True)


def layout_for(result: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape and the dense strides of a tensor that shall take this result."""
    shape = result._array.shape
    return shape, dense_strides_like(shape, result.strides)


def resized(target: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Give ``target`` a result's shape and strides; PyTorch warns when elements are lost on the way."""
    if target._array.size:
        warn_of_growth(target._array.shape, shape)
    reshaped(target, shape, strides)


def warn_of_growth(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    """The warning that an output with elements is resized."""
    warn(internal(RESIZED.format(list(old), list(new)), "aten/src/ATen/native/Resize.cpp:30"))


def reshaped(target: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Give ``target`` another shape and dense strides, and more memory where it needs it."""
    storage, item = target.storage_, target.dtype.itemsize
    offset = target.offset
    needed = (offset + math.prod(shape)) * item
    if needed > storage.nbytes:
        resize(storage, needed)
    target._array = np.ndarray(shape, target.dtype.np, storage.raw, offset * item, tuple(s * item for s in strides))
    moved(target)
