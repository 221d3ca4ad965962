"""``torch.testing.assert_close``: two values, or two containers of values, agree within tolerances.

The containers are walked first, so that a difference of structure is told before a difference of values; then each
pair is compared by its kind: None, bools, numbers, tensors.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from stridescope.engine.dtype import (
    INTEGER,
    bfloat16,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int64,
    promote_types,
)
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.ops.from_data import as_tensor
from stridescope.engine.tensor import Tensor

# Relative and absolute tolerance by dtype, from the documentation of torch.testing.assert_close; others are exact.
TOLERANCES: dict[dtype, tuple[float, float]] = {
    float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7),
    complex64: (1.3e-6, 1e-5), complex128: (1e-7, 1e-7),
}  # fmt: skip
_OF_NUMBERS: dict[type, dtype] = {float: float64, complex: complex128, int: int64}
Place = tuple[Any, ...]


class Options(NamedTuple):
    """What a comparison was asked for."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_stride: bool

    def tolerances(self, *kinds: dtype) -> tuple[float, float]:
        """Relative and absolute: those given, else the wider of the dtypes' own."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        own = [TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(rtol for rtol, _ in own), max(atol for _, atol in own)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` holds for all values.

    Args:
        actual: a tensor, array, number, bool, None, or (nested) sequences and mappings of them.
        expected: what it should be: of the same structure and kinds.
        allow_subclasses: directly related classes of tensors may be compared.
        rtol: relative tolerance; by default it follows the dtype, like ``atol``. Both or none are given.
        atol: absolute tolerance.
        equal_nan: NaNs are equal to each other.
        check_device: tensors lie on the same device.
        check_dtype: dtypes, and types of numbers, are the same; otherwise values are promoted.
        check_layout: accepted; all tensors here are strided.
        check_stride: strides are the same.
        msg: the message of the error instead, or a function of the message.

    Raises:
        AssertionError: the values or the structures differ.
        ValueError: only one of the tolerances is given.
        TypeError: values of these types cannot be compared.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    options = Options(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    for a, b, place in list(_pairs(actual, expected, (), msg)):
        if message := _difference(a, b, options):
            _fail(message, place, msg)


def _fail(message: str, place: Place, msg: str | Callable[[str], str] | None) -> NoReturn:
    if place:
        message = f"{message}\n\nThe failure occurred for item {''.join(f'[{part!r}]' for part in place)}"
    raise AssertionError(msg(message) if callable(msg) else msg or message) from None


def _pairs(actual: Any, expected: Any, place: Place, msg: Any) -> Iterator[tuple[Any, Any, Place]]:
    """The pairs of values of two containers, each with its place; a single pair for two values."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            _fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place, msg)
        for index, (a, b) in enumerate(zip(actual, expected, strict=True)):
            yield from _pairs(a, b, (*place, index), msg)
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            _fail(_keys_differ(actual, expected), place, msg)
        for key in sorted(actual, key=_orderly):
            yield from _pairs(actual[key], expected[key], (*place, key), msg)
    else:
        yield actual, expected, place


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _orderly(key: Any) -> tuple[str, Any]:
    return (type(key).__name__, key if isinstance(key, (str, int, float)) else repr(key))


def _keys_differ(actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str:
    missing = sorted(expected.keys() - actual.keys(), key=_orderly)
    additional = sorted(actual.keys() - expected.keys(), key=_orderly)
    return (
        "The keys of the mappings do not match:\n"
        f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {additional}"
    )


def _difference(actual: Any, expected: Any, options: Options) -> str | None:
    """What tells two values apart, in PyTorch's words; None when they are close."""
    if actual is None or expected is None:
        return None if actual is expected else f"None mismatch: {actual} is not {expected}"
    booleans = (bool, np.bool_)
    if isinstance(actual, booleans) and isinstance(expected, booleans):
        return None if bool(actual) is bool(expected) else f"Booleans mismatch: {actual} is not {expected}"
    if isinstance(actual, (int, float, complex)) and isinstance(expected, (int, float, complex)):
        return _numbers_differ(actual, expected, options)
    tensors = _as_tensors(actual, expected, options.allow_subclasses)
    if tensors is None:
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    return _attributes_differ(*tensors, options) or _values_differ(*tensors, options)


def _numbers_differ(actual: Any, expected: Any, options: Options) -> str | None:
    if options.check_dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    kinds = [_OF_NUMBERS.get(type(value), int64) for value in (actual, expected)]
    return _scalars_differ(actual, expected, options.tolerances(*kinds), options.equal_nan)


def _scalars_differ(actual: Any, expected: Any, tolerances: tuple[float, float], equal_nan: bool) -> str | None:
    rtol, atol = tolerances
    apart = abs(actual - expected)
    if actual == expected or (cmath.isfinite(expected) and apart <= atol + rtol * abs(expected)):
        return None
    if equal_nan and actual != actual and expected != expected:
        return None
    relative = apart / abs(expected) if expected else float("inf")
    return "\n".join([
        f"Scalars are not {_closeness(tolerances)}!\n",
        f"Expected {expected} but got {actual}.",
        f"Absolute difference: {apart}{_allowed(atol, tolerances)}",
        f"Relative difference: {relative}{_allowed(rtol, tolerances)}",
    ])  # fmt: skip


def _closeness(tolerances: tuple[float, float]) -> str:
    return "close" if any(tolerances) else "equal"


def _allowed(tolerance: float, tolerances: tuple[float, float]) -> str:
    return f" (up to {tolerance} allowed)" if any(tolerances) else ""


def _as_tensors(actual: Any, expected: Any, allow_subclasses: bool) -> tuple[Tensor, Tensor] | None:
    a, b = type(actual), type(expected)
    if a is not b and not (allow_subclasses and (issubclass(a, b) or issubclass(b, a))):
        return None
    try:
        return _on_hand(actual), _on_hand(expected)
    except (TypeError, ValueError, RuntimeError):
        return None


def _on_hand(value: Any) -> Tensor:
    tensor: Tensor = value if isinstance(value, Tensor) else as_tensor(value)
    return tensor.detach()  # type: ignore[no-any-return]


def _attributes_differ(actual: Tensor, expected: Tensor, options: Options) -> str | None:
    checks: list[tuple[str, bool, Callable[[Tensor], Any]]] = [
        ("shape", True, lambda t: t.shape),
        ("device", options.check_device, lambda t: t.device),
        ("dtype", options.check_dtype, lambda t: t.dtype),
        ("stride()", options.check_stride, lambda t: t.stride()),
    ]
    for name, wanted, read in checks:
        a, b = read(actual), read(expected)
        if wanted and a != b:
            return f"The values for attribute '{name}' do not match: {a} != {b}."
    return None


def _values_differ(actual: Tensor, expected: Tensor, options: Options) -> str | None:
    tolerances = options.tolerances(actual.dtype, expected.dtype)
    actual, expected = actual.cpu(), expected.cpu()
    kind = promote_types(actual.dtype, expected.dtype)
    if kind.category <= INTEGER:
        kind = int64
    actual, expected = actual.to(kind), expected.to(kind)
    rtol, atol = tolerances
    matches = FUNCTIONS["torch"]["isclose"](actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(matches.all()):
        return None
    if not actual._array.ndim:
        return _scalars_differ(actual.item(), expected.item(), tolerances, options.equal_nan)
    return _tensors_apart(actual, expected, matches, tolerances)


def _tensors_apart(actual: Tensor, expected: Tensor, matches: Tensor, tolerances: tuple[float, float]) -> str:
    total, wrong = matches.numel(), matches.numel() - int(matches.sum())
    apart = (actual - expected).abs()
    relative = apart / expected.abs()
    rtol, atol = tolerances
    return "\n".join([
        f"Tensor-likes are not {_closeness(tolerances)}!\n",
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})",
        f"Greatest absolute difference: {_greatest(apart, matches)}{_allowed(atol, tolerances)}",
        f"Greatest relative difference: {_greatest(relative, matches)}{_allowed(rtol, tolerances)}",
    ])  # fmt: skip


def _greatest(differences: Tensor, matches: Tensor) -> str:
    """The largest of the differences that count, and where it is."""
    flat = differences.masked_fill(matches, 0).flatten()
    where = int(flat.argmax())
    index = tuple(int(i) for i in np.unravel_index(where, tuple(matches.shape)))
    return f"{flat[where].item()} at index {index}"
