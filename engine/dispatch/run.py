"""Families of kernels: how a NumPy function becomes the backend part of an op.

``pointwise(np.exp)`` broadcasts, promotes, chooses the output's strides as TensorIterator does, computes, and wraps
the result. ``kernel(function)`` hands plain arrays to a function and wraps what it returns. ``into(run)`` writes a
result into the first argument: the in-place form of any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.device import CPU, device
from stridescope.engine.dispatch.halfway import tell_written, written_before
from stridescope.engine.dispatch.one_device import one_device
from stridescope.engine.dispatch.overlap import refuse_any_shared, refuse_lazy_overlap, refuse_overlap, writable
from stridescope.engine.dispatch.promote import common
from stridescope.engine.dispatch.result_strides import blank, output_strides
from stridescope.engine.dtype import FROM_NUMPY, bool_, can_cast, dtype, float32, float64, int64, scalar_name
from stridescope.engine.events import journal
from stridescope.engine.layout import (
    broadcast_shapes,
    dense_strides_like,
    is_contiguous,
    is_non_overlapping_and_dense,
)
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Scratch, Tensor, canonical, dense, fresh

Run = Callable[..., Any]
Strides = Callable[[tuple[int, ...], Sequence[Any]], tuple[int, ...]]
FLOATS = frozenset({float32, float64})
# The Python numbers that leave an operand of this dtype as it is.
NUMBERS: dict[dtype, frozenset[type]] = {
    float32: frozenset({float, int}),
    float64: frozenset({float, int}),
    int64: frozenset({int}),
}


def operand_array(operand: Any, kind: dtype) -> Any:
    """An operand's values as an array (or NumPy scalar) of ``kind``."""
    if isinstance(operand, Tensor):
        array = resolved(operand)
        return array if operand.dtype is kind else cast(array, kind)
    try:
        return kind.np.type(operand)
    except OverflowError:  # integers wrap around, as in C
        return np.asarray(operand).astype(kind.np)[()]


def precise_operand(operand: Any, kind: dtype) -> Any:
    """A number or 0-d tensor of another dtype as a half-precision op takes it that does not round it to half first."""
    if isinstance(operand, Tensor) and (operand._array.ndim or operand.dtype is kind):
        return operand_array(operand, kind)
    value = resolved(operand)[()] if isinstance(operand, Tensor) else operand
    return np.float32(value) if not isinstance(value, (complex, np.complexfloating)) else operand_array(operand, kind)


def resolved(tensor: Tensor) -> Array:
    """The tensor's values, with the conjugate and negative bits carried out."""
    array = tensor._array
    if tensor._conj:
        array = np.asarray(np.conj(array))  # of a 0-d array NumPy gives a scalar
    return np.asarray(np.negative(array)) if tensor._neg else array


def cast(array: Array, kind: dtype) -> Array:
    """``array`` converted as PyTorch's copy kernel converts (complex to real drops the imaginary part)."""
    if array.dtype.kind == "c" and not kind.is_complex:
        array = array.real if kind is not bool_ else np.asarray(array != 0)
    return array.astype(kind.np)


def laid_out(array: Array, strides: tuple[int, ...]) -> Array:
    """``array`` in memory of its own with these strides (in elements); itself when it already is."""
    item = array.itemsize
    wanted = tuple(s * item for s in strides)
    if array.size == 0:
        return np.ndarray(array.shape, array.dtype, bytearray(), 0, wanted)
    if array.strides == wanted and array.base is None:
        return np.asarray(array)
    if array.flags.c_contiguous and array.base is None and is_contiguous(array.shape, strides):
        return np.ndarray(array.shape, array.dtype, array, 0, wanted)
    memory = np.empty(array.size, array.dtype)
    result = np.ndarray(array.shape, array.dtype, memory, 0, wanted)
    result[...] = array
    return result


def placed(operand: Any, kind: dtype) -> Any:
    """An array laid out as the operand is when the kernel reads it: what is cast, conjugated or negated before has
    dense strides.
    """
    if not isinstance(operand, Tensor):
        return operand
    as_it_is = operand.dtype is kind and not (operand._conj or operand._neg)
    if as_it_is or not operand._array.ndim:
        return operand._array
    shape, strides = operand._array.shape, operand.strides
    if is_non_overlapping_and_dense(shape, strides):
        return operand._array
    return blank(shape, dense_strides_like(shape, strides))


class Pointwise:
    """The backend part of an elementwise op.

    Args:
        function: a NumPy ufunc or any function of broadcastable arrays.
        to_float: integers are computed as the default float (``exp``, ``div``).
        gives: the dtype of the result when it is not the computed one (``bool`` for comparisons).
        through: float16 and bfloat16 are computed in float32 and rounded once, as PyTorch's CPU kernels do it.
        precise: the operand that float16 and bfloat16 do not round before when it is a number (1 in ``mul`` and
            ``div``, whose kernels take it as a float).
        count: how many of the leading arguments are operands; the rest are passed to the function as they are.
        quick: the ufunc that does the same when the rest have their defaults (by default ``function`` itself where
            it is a ufunc whose result has the operands' dtype); it opens the shortest path of a call.
        strides: the rule for the strides of the result (by default TensorIterator's, where numbers are operands).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        to_float: bool = False,
        gives: dtype | None = None,
        through: bool = False,
        precise: int | None = None,
        count: int | None = None,
        quick: Callable[..., Any] | None = None,
        strides: Strides | None = None,
    ) -> None:
        self.strides, self.precise = strides or output_strides, precise
        self.function, self.to_float, self.gives, self.through, self.count = function, to_float, gives, through, count
        plain = isinstance(function, np.ufunc) and function.nout == 1
        self.ufunc = quick or (function if plain else None)
        self.quick = FLOATS if to_float else FLOATS | {int64}
        self.floats = True  # whether floating operands are computed without further questions

    def operands(self, arguments: int) -> int:
        """How many operands a call with this many arguments has."""
        return arguments if self.count is None else self.count

    def __call__(self, *args: Any) -> Tensor:
        """Compute the result of these operands and other arguments."""
        count = self.count
        operands, rest = (args, ()) if count is None else (args[:count], args[count:])
        usual = self._alike(operands, rest)
        if usual is not None:
            return usual
        kind = common(operands, self.to_float)
        arrays = [operand_array(o, kind) for o in operands]
        if self.precise is not None and kind.itemsize == 2 and kind.is_floating_point:
            arrays[self.precise] = precise_operand(operands[self.precise], kind)
        where = one_device(operands)
        sources = [placed(o, kind) for o in operands if o is not None]
        array = self.compute(arrays, kind, rest, sources)
        gives = self.gives or kind
        return fresh(array, gives, where)

    def _alike(self, operands: Sequence[Any], rest: tuple[Any, ...]) -> Tensor | None:
        """The result, the short way: of tensors of one floating dtype, shape and row-major layout, and numbers."""
        first = operands[0]
        if not isinstance(first, Tensor) or not self.floats or first.dtype not in FLOATS or not first._array.ndim:
            return None
        kind, shape, arrays = first.dtype, first._array.shape, []
        for operand in operands:
            if isinstance(operand, Tensor):
                array = operand._array
                plain = operand._plain and operand.dtype is kind and array.shape == shape and array.flags.c_contiguous
                if not plain:
                    return None
                arrays.append(array)
            elif operand.__class__ in NUMBERS[kind] and (journal.emit is None or len(operands) == 2):
                arrays.append(operand_array(operand, kind))
            else:
                return None
        alone = self.strides is output_strides and all(isinstance(operand, Tensor) for operand in operands)
        if not arrays[0].size or (1 in shape and not alone):
            return None
        result = self.function(*arrays, *rest)
        owns = result.__class__ is np.ndarray and result.base is None and result.flags.c_contiguous
        if not owns or result.dtype is not (self.gives or kind).np or any(result is array for array in arrays):
            return None
        return fresh(canonical(result) if 1 in shape else result, self.gives or kind)

    def admit(self, *args: Any) -> None:
        """Refuse what PyTorch refuses before it looks at the memory of the operands; most ops admit all."""

    def outcome(self, args: Sequence[Any]) -> tuple[tuple[int, ...], dtype]:
        """The shape and dtype of a result, before any kernel runs; raises RuntimeError when shapes do not match."""
        operands = args[: self.operands(len(args))]
        kind = self.gives or common(operands, self.to_float)
        return broadcast_shapes(*(o._array.shape for o in operands if isinstance(o, Tensor))), kind

    def compute(self, arrays: list[Any], kind: dtype, rest: tuple[Any, ...], sources: list[Any]) -> Array:
        """The result array, in the strides that TensorIterator gives it for operands laid out like ``sources``."""
        gives = self.gives or kind
        small = self.through and kind.itemsize == 2 and kind.is_floating_point
        inputs = [a.astype(np.float32) for a in arrays] if small else arrays
        try:
            array = np.asarray(self.function(*inputs, *rest))
        except ValueError:
            broadcast_shapes(*(np.shape(a) for a in arrays))
            raise
        if array.dtype != gives.np:
            array = cast(array, gives)
        if array.ndim < 2 and array.flags.c_contiguous and array.base is None and self.strides is output_strides:
            return canonical(array)
        return laid_out(array, self.strides(array.shape, sources))


def with_number(ufunc: Callable[..., Any], tensor: Tensor, number: Any, reflected: bool = False) -> Tensor | None:
    """The short way of an op of a floating CPU tensor and a usual number (on the left if ``reflected``), else None."""
    array, kind, small = tensor._array, tensor.dtype, number.__class__ in (int, float) and -1000 < number < 1000
    if not small or not tensor._plain or kind not in FLOATS:
        return None
    result = ufunc(number, array) if reflected else ufunc(array, number)
    if result.__class__ is not np.ndarray or result.strides != array.strides or not array.size:
        return None
    return fresh(result, kind)


def pointwise(
    function: Callable[..., Any],
    *,
    to_float: bool = False,
    gives: dtype | None = None,
    through: bool = False,
    precise: int | None = None,
    count: int | None = None,
    quick: Callable[..., Any] | None = None,
    strides: Strides | None = None,
) -> Pointwise:
    """The backend part of an elementwise op; see :class:`Pointwise`."""
    return Pointwise(
        function,
        to_float=to_float,
        gives=gives,
        through=through,
        precise=precise,
        count=count,
        quick=quick,
        strides=strides,
    )


class Guarded:
    """A backend part with checks that come before any look at the memory that its result shall be written to."""

    def __init__(self, admit: Callable[..., None], run: Run) -> None:
        self.admit, self.run = admit, run

    def __call__(self, *args: Any) -> Any:
        """Check the arguments, and compute."""
        self.admit(*args)
        return self.run(*args)


class Kernel:
    """The backend part of an op computed by a function of plain arrays.

    The function gets arrays where tensors were given (lists of arrays for lists), other arguments as they are, and
    returns one array or a tuple of arrays, freshly made. Results are row-major unless ``keep_strides``.
    """

    def __init__(self, function: Callable[..., Any], keep_strides: bool = False) -> None:
        self.function, self.keep_strides = function, keep_strides

    def __call__(self, *args: Any) -> Any:
        """Compute the result; tensors among the arguments reach the function as arrays."""
        if all(isinstance(a, Tensor) and a._plain for a in args):
            return self._on_arrays([a._array for a in args])
        where = one_device(flattened(args))
        inputs = [_as_arrays(a) for a in args]
        result = self.function(*inputs)
        if isinstance(result, (tuple, list)):
            return tuple(self._wrapped(r, where, inputs) for r in result)
        return self._wrapped(result, where, inputs)

    def _on_arrays(self, inputs: list[Array]) -> Any:
        """The short way for tensors on the CPU only: a new row-major result needs nothing else."""
        result = self.function(*inputs)
        owns = result.__class__ is np.ndarray and result.base is None and result.flags.c_contiguous
        if owns and not any(result is i for i in inputs):
            return fresh(canonical(result), FROM_NUMPY[result.dtype])
        if isinstance(result, (tuple, list)):
            return tuple(self._wrapped(r, CPU, inputs) for r in result)
        return self._wrapped(result, CPU, inputs)

    def _wrapped(self, result: Any, where: device, inputs: list[Any]) -> Tensor:
        array = np.asarray(result)
        if array.base is not None and any(array is i or np.may_share_memory(array, i) for i in flattened(inputs)
                                          if isinstance(i, np.ndarray)):  # fmt: skip
            array = array.copy(order="K" if self.keep_strides else "C")
        if not self.keep_strides:
            array = dense(array)
        return fresh(array, FROM_NUMPY[array.dtype], where)


def kernel(function: Callable[..., Any], *, keep_strides: bool = False) -> Kernel:
    """The backend part of an op computed by a function of plain arrays; see :class:`Kernel`."""
    return Kernel(function, keep_strides)


def flattened(values: Sequence[Any]) -> list[Any]:
    """The values with lists among them opened up."""
    flat: list[Any] = []
    for value in values:
        flat.extend(value) if isinstance(value, (list, tuple)) else flat.append(value)
    return flat


def _as_arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return resolved(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return [resolved(v) if isinstance(v, Tensor) else v for v in value]
    return value


class Into:
    """The in-place form of a backend part: its result is written into the first argument.

    Raises RuntimeError when the result's dtype or shape does not fit the target, with PyTorch's texts.

    Args:
        lenient: whether it writes into expanded tensors, and over what it reads.
        apart: whether no argument may share an element with the target; the other checks of arguments come before.
    """

    def __init__(self, run: Run, lenient: bool = False, apart: bool = False) -> None:
        self.run, self.lenient, self.apart = run, lenient, apart
        self.ufunc: np.ufunc | None = None
        self.quick: frozenset[dtype] = frozenset()
        if isinstance(run, Pointwise) and isinstance(run.ufunc, np.ufunc) and run.ufunc.nin == 2:
            self.ufunc, self.quick = run.ufunc, run.quick
        inner = run.run if isinstance(run, Guarded) else run
        computing = isinstance(inner, Pointwise) and inner.floats and inner.gives is None
        self.pointwise = inner if isinstance(inner, Pointwise) and computing else None

    def __call__(self, target: Tensor, *args: Any) -> Tensor:
        """Compute, and write into ``target``."""
        if self.ufunc is not None and target._plain and target.dtype in self.quick and _unscaled(args):
            other = self._like(target, args[0])
            if other is not None:
                self.ufunc(target._array, other, out=target._array)
                return target
        if isinstance(self.run, (Pointwise, Guarded)):
            self.run.admit(target, *args)
        if self.pointwise is not None and target._plain and target.dtype in FLOATS:  # an optimizer's step
            values = self._alike(target, args, self.pointwise.operands(len(args) + 1) - 1)
            if values is not None:
                target._array[...] = self.pointwise.function(target._array, *values)
                return target
        if not self.lenient:
            refuse_overlap(target, () if self.apart else args)
        if target.device is CPU:
            self._write(target, args)
        else:
            with Scratch():
                self._write(target, args)
        return target

    def _write(self, target: Tensor, args: tuple[Any, ...]) -> None:
        try:
            result = self._result(target, *args)
        except (RuntimeError, IndexError) as error:
            if (before := written_before(error)) is not None:
                store(target, before)
                tell_written(target)
            raise
        if self.apart:
            refuse_any_shared(target, args)
        check_fit(target, result._array.shape, result.dtype)
        refuse_lazy_overlap(target)
        store(target, result, checked=True)

    def _result(self, *args: Any) -> Tensor:
        """The result to write; that it does not fit the target is said before anything that the kernel refuses."""
        try:
            result: Tensor = self.run(*args)
        except (NotImplementedError, RuntimeError, IndexError) as error:
            if self.apart and "out of " in str(error):  # only the kernel looks where indices point
                refuse_any_shared(args[0], args[1:])
            inner = self.run.run if isinstance(self.run, Guarded) else self.run
            if isinstance(inner, Pointwise) and is_of_kernel(error):
                check_fit(args[0], *inner.outcome(args))
            raise
        return result

    def _alike(self, target: Tensor, args: tuple[Any, ...], count: int) -> list[Any] | None:
        """The arguments for NumPy when the first ``count``, the operands, are of the target's kind, else None."""
        if not count and 0 in target._array.strides:  # with operands it is they that are asked
            return None
        values = []
        for operand in args[:count]:
            value = self._like(target, operand)
            if value is None:
                return None
            if value is operand:
                if count > 1 and journal.emit is not None:  # who records hears of promotions
                    return None
                value = operand_array(operand, target.dtype)
            values.append(value)
        values.extend(args[count:])
        return values

    def _like(self, target: Tensor, other: Any) -> Any:
        """The other operand for NumPy when it is of the target's kind and fits into its last dims, else None."""
        if isinstance(other, Tensor):
            array, shape = other._array, target._array.shape
            same = other.dtype is target.dtype and other._plain and 0 not in target._array.strides
            apart = target._storage is None or other._storage is not target._storage or other is target
            fits = array.shape == shape or shape[len(shape) - array.ndim :] == array.shape != ()
            return array if same and apart and fits else None
        return other if other.__class__ in NUMBERS[target.dtype] and 0 not in target._array.strides else None


def _unscaled(args: tuple[Any, ...]) -> bool:
    """Whether nothing follows the other operand, or an ``alpha`` of 1 (which True and 1.0 are not)."""
    return len(args) == 1 or (len(args) == 2 and args[1] == 1 and args[1].__class__ is int)


into: Callable[..., Run] = Into


def is_of_kernel(error: Exception) -> bool:
    """Whether a kernel raised this, which PyTorch starts only when shapes and dtypes of the result are settled."""
    text = str(error)
    return text == "ZeroDivisionError" or "\" not implemented for '" in text


def check_fit(target: Tensor, shape: tuple[int, ...], kind: dtype) -> None:
    """Raise RuntimeError when a result of this shape and dtype cannot be written into ``target``."""
    if shape != target._array.shape:
        raise RuntimeError(
            f"output with shape {list(target._array.shape)} doesn't match the broadcast shape {list(shape)}"
        )
    if not can_cast(kind, target.dtype):
        raise RuntimeError(
            f"result type {scalar_name(kind)} can't be cast to the desired output type {scalar_name(target.dtype)}"
        )


def stored(target: Tensor, value: Any) -> Any:
    """What has to stand in memory for ``target``, which may be seen conjugated or negated, to read as ``value``."""
    if target._conj or target._neg:
        value = value.astype(target.dtype.np)
    value = np.conj(value) if target._conj else value
    return np.negative(value) if target._neg else value


def on_copy(target: Tensor, run: Run, *args: Any) -> Tensor:
    """Let an in-place kernel write a copy of the values of ``target``, whose memory holds others; copy that back."""
    array = laid_out(resolved(target), dense_strides_like(target._array.shape, target.strides))
    result = run(fresh(array, target.dtype, target.device), *args)
    refuse_lazy_overlap(target)
    store(target, result)
    return target


def store(target: Tensor, result: Tensor, checked: bool = False) -> None:
    """Copy ``result``'s values over ``target``'s, which must fit unless that has been ``checked``."""
    if not checked:
        check_fit(target, result._array.shape, result.dtype)
    array = stored(target, resolved(result))
    if array.size:
        np.copyto(writable(target), array, casting="unsafe")
