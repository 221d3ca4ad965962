"""The dtypes and PyTorch's rules of promotion.

A :class:`dtype` is a singleton such as ``float32``. NumPy carries the values (``ml_dtypes`` gives it bfloat16), so a
dtype knows its NumPy twin. The promotion rules are those of PyTorch's ``c10/core/ScalarType.h`` and
``aten/src/ATen/native/TypeProperties.cpp``, checked against real PyTorch in the tests.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

BOOL, INTEGER, FLOAT, COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements.

    Attributes:
        name: PyTorch's name, such as ``float32``.
        itemsize: bytes per element.
        np: the NumPy dtype that carries the values.
        category: 0 bool, 1 integer, 2 floating point, 3 complex; promotion never leaves the higher category.
    """

    __slots__ = (
        "__weakref__", "abbr", "category", "is_complex", "is_floating_point", "is_signed", "itemsize", "metas", "name",
        "np", "row_major",
    )  # fmt: skip

    def __init__(self, name: str, numpy_type: Any, category: int, abbr: str) -> None:
        self.name, self.np, self.category, self.abbr = name, np.dtype(numpy_type), category, abbr
        self.itemsize: int = self.np.itemsize
        self.row_major: dict[Any, tuple[tuple[int, ...], ...]] = {}  # by shape: a note of the recording's
        self.metas: dict[Any, Any] = {}  # by shape: what autograd asks of a gradient, see OutputMeta
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.is_signed = not (category == BOOL or name.startswith("uint"))

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return by_name, (self.name,)

    def to_real(self) -> dtype:
        """The dtype of the real part of this dtype; itself when it is not complex."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this precision."""
        return complex128 if self.name in ("float64", "complex128") else complex64


uint8 = dtype("uint8", np.uint8, INTEGER, "u8")
int8 = dtype("int8", np.int8, INTEGER, "i8")
int16 = dtype("int16", np.int16, INTEGER, "i16")
int32 = dtype("int32", np.int32, INTEGER, "i32")
int64 = dtype("int64", np.int64, INTEGER, "i64")
float16 = dtype("float16", np.float16, FLOAT, "f16")
float32 = dtype("float32", np.float32, FLOAT, "f32")
float64 = dtype("float64", np.float64, FLOAT, "f64")
complex64 = dtype("complex64", np.complex64, COMPLEX, "c64")
complex128 = dtype("complex128", np.complex128, COMPLEX, "c128")
bool_ = dtype("bool", np.bool_, BOOL, "b8")
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOAT, "bf16")
uint16 = dtype("uint16", np.uint16, INTEGER, "u16")
uint32 = dtype("uint32", np.uint32, INTEGER, "u32")
uint64 = dtype("uint64", np.uint64, INTEGER, "u64")

DTYPES: tuple[dtype, ...] = (
    uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128, bool_, bfloat16,
    uint16, uint32, uint64,
)  # fmt: skip
FROM_NUMPY: dict[Any, dtype] = {d.np: d for d in DTYPES}
BY_NAME: dict[str, dtype] = {d.name: d for d in DTYPES} | {
    "double": float64, "float": float32, "half": float16, "long": int64, "int": int32, "short": int16,
    "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
# What a Python number is when nothing else decides: category -> dtype. Floats follow set_default_dtype.
PYTHON_TYPES: dict[type, int] = {bool: BOOL, int: INTEGER, float: FLOAT, complex: COMPLEX}


def by_name(name: str) -> dtype:
    """The dtype called ``name``; used by pickle and copy. Raises KeyError for an unknown name."""
    return BY_NAME[name]


class Defaults:
    """What ``torch.set_default_dtype`` changes."""

    float: dtype = float32


defaults = Defaults()


def default_float() -> dtype:
    """The dtype of a Python float: ``torch.get_default_dtype()``."""
    return defaults.float


def default_complex() -> dtype:
    """The complex dtype whose parts are the default float; raises NotImplementedError where that is float16."""
    return complex_of(defaults.float)


def of_category(category: int) -> dtype:
    """The dtype that a Python number of this category becomes."""
    return default_complex() if category == COMPLEX else (bool_, int64, defaults.float)[category]


def of_number(value: Any) -> dtype:
    """The dtype of a Python or NumPy number standing alone."""
    category = PYTHON_TYPES.get(type(value))
    return FROM_NUMPY[np.asarray(value).dtype] if category is None else of_category(category)


_ORDER = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


@functools.cache
def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest dtype both convert to, by PyTorch's table (``torch.promote_types``).

    Raises RuntimeError for uint16, uint32 and uint64 against another integer, which PyTorch does not define.
    """
    if a is b:
        return a
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.is_complex and low.name in ("float64",):
            return complex128
        return high
    if {a.name, b.name} & {"uint16", "uint32", "uint64"}:
        pair = f"{scalar_name(a)} and {scalar_name(b)}"
        raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {pair}")
    if {a.name, b.name} == {"float16", "bfloat16"}:
        return float32
    if uint8 in (a, b) and int8 in (a, b):
        return int16
    return a if _ORDER.index(a.name) > _ORDER.index(b.name) else b


_SCALAR_NAMES = {
    "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
    "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "bool": "Bool", "bfloat16": "BFloat16", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip


def scalar_name(d: dtype) -> str:
    """PyTorch's C++ name of the dtype, such as ``Float`` or ``Long``, as its error texts use it."""
    return _SCALAR_NAMES[d.name]


# The dtypes as C++ spells them in some error texts.
_CPP_NAMES = {
    "float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int",
    "int8": "signed char", "uint8": "unsigned char", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>", "uint16": "short unsigned int",
    "uint32": "unsigned int", "uint64": "long unsigned int",
}  # fmt: skip


def cpp_name(d: dtype) -> str:
    """The dtype as C++ spells it, such as ``long int`` or ``c10::Half``, as some of PyTorch's error texts do."""
    return _CPP_NAMES.get(d.name, d.name)


_TYPES_OF_OLD = frozenset(["Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte"])


def type_name(d: dtype, place: str) -> str:
    """The type of a tensor as PyTorch's C++ prints it: ``torch.FloatTensor``, but ``CPUBoolType``."""
    name = scalar_name(d)
    if name in _TYPES_OF_OLD:
        return f"torch.{'cuda.' if place == 'cuda' else ''}{name}Tensor"
    return f"{place.upper()}{name}Type"


@functools.cache
def category_result(dimensioned: dtype | None, zero_dim: dtype | None, number: dtype | None) -> dtype | None:
    """Combine the three classes of operands as ``torch.result_type`` does.

    Tensors with dimensions win over 0-d tensors, these over Python numbers, unless the weaker one is of a higher
    category.
    """
    result = dimensioned
    for weaker in (zero_dim, number):
        result = _stronger(result, weaker)
    return result


def _stronger(strong: dtype | None, weak: dtype | None) -> dtype | None:
    if strong is None or weak is None:
        return weak if strong is None else strong
    if weak.category <= strong.category:
        return strong
    # A float number against integers becomes the default float; a complex number takes the float's precision.
    if weak.is_complex and strong.category == FLOAT:
        return complex_of(strong)
    return promote_types(strong, weak) if weak.is_complex else weak


def complex_of(kind: dtype) -> dtype:
    """The complex dtype whose parts have this precision (for bfloat16, which has none, complex64)."""
    if kind is float16:
        raise NotImplementedError("torch.complex32 is not in Stridescope yet")
    return complex128 if kind is float64 else complex64


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether an in-place result of ``source`` may be written into ``target`` (``torch.can_cast``)."""
    return source.category <= target.category
