"""The types that a schema names, and what PyTorch's parser takes for them: Python values to the engine's."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.device import device
from stridescope.engine.dispatch.invalid_arguments import Mismatch, Unpacked, type_name
from stridescope.engine.dispatch.schema import Argument
from stridescope.engine.dtype import bool_ as torch_bool
from stridescope.engine.dtype import dtype
from stridescope.engine.dtype import float64 as torch_float64
from stridescope.engine.dtype import int64 as torch_int64
from stridescope.engine.layout import OTHER_LAYOUTS
from stridescope.engine.tensor import Tensor


def is_int(value: Any) -> bool:
    """Whether PyTorch takes this as an int: ints, NumPy integers and one-element integer tensors, but no bools."""
    if isinstance(value, Tensor):
        return value._array.size == 1 and value.dtype.category == 1 and not value._array.ndim
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


PLAIN_NUMBERS = frozenset({int, float, bool, complex})


def is_number(value: Any) -> bool:
    """Whether PyTorch takes this as a Scalar."""
    if value.__class__ in PLAIN_NUMBERS:  # asking an abstract class takes longer than a small op's kernel
        return True
    if isinstance(value, Tensor):
        return not value._array.ndim and not value._requires_grad
    return isinstance(value, (numbers.Number, np.number, np.bool_))


def plain_number(value: Any) -> Any:
    """A Scalar as a plain Python number."""
    if value.__class__ in PLAIN_NUMBERS:
        return value
    return value.item() if isinstance(value, (Tensor, np.generic)) else value


def _one_int(value: Any) -> int:
    return int(value.item()) if isinstance(value, Tensor) else int(value)


def is_index(value: Any) -> bool:
    """Whether PyTorch takes this as the first of several ints: a single one, or a tensor of one element."""
    if isinstance(value, Tensor):
        return value._array.size == 1 and value.dtype.category <= 1
    return is_int(value)


def _listed_int(place: int, value: Any, kind: str) -> int:
    if not (is_index(value) or isinstance(value, bool)):
        raise Unpacked(f'at pos {place + 1} with error "type must be tuple of ints,but got {type_name(value)}"')
    if kind == "SymInt" and isinstance(value, Tensor) and not value.dtype.category:
        raise RuntimeError(
            "Expected scalar.isIntegral( false) to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)"
        )
    return _one_int(value)


def _int_list(argument: Argument, value: Any) -> tuple[int, ...]:
    if argument.length and is_int(value):
        return (_one_int(value),) * argument.length
    if not isinstance(value, (list, tuple)):
        raise Mismatch(type_name(value))
    if value and not is_index(value[0]):
        raise Mismatch(f"found element of type {type_name(value[0])} at pos 0")
    return tuple(_listed_int(place, item, argument.type) for place, item in enumerate(value))


def _tensor_list(argument: Argument, value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise Mismatch(type_name(value))
    for item in value:
        if not isinstance(item, Tensor):  # not even where the schema takes None: torch.ops alone does
            raise Mismatch(type_name(value))
    return value


_PYTHON_DTYPES: dict[Any, dtype] = {float: torch_float64, int: torch_int64, bool: torch_bool}


def convert(argument: Argument, value: Any, numbers_fit: bool) -> Any:
    """The value as the engine takes it; raises Mismatch when it does not fit the argument."""
    kind = argument.type
    if value is None:
        if argument.optional or argument.default is None:
            return None
        if argument.default == ():
            return ()
        raise Mismatch("NoneType")
    if argument.listed:
        return _LISTS[kind](argument, value)
    converter = _SINGLE.get(kind)
    if converter is None:
        if kind == "Layout" and value in OTHER_LAYOUTS:
            raise NotImplementedError(f"a tensor of layout {value} is not in Stridescope yet")
        return value
    fits, made = converter
    if fits(value):
        return made(value)
    if kind == "Tensor" and numbers_fit and is_number(value):
        return plain_number(value)
    raise Mismatch(type_name(value))


def _same(value: Any) -> Any:
    return value


def _float_list(argument: Argument, value: Any) -> tuple[float, ...]:
    if argument.length and is_number(value):
        return (float(value),) * argument.length
    if not isinstance(value, (list, tuple)) or not all(is_number(v) for v in value):
        raise Mismatch(type_name(value))
    return tuple(float(v) for v in value)


def _bool_list(argument: Argument, value: Any) -> tuple[bool, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, bool) for v in value):
        raise Mismatch(type_name(value))
    return tuple(value)


def _scalar_list(argument: Argument, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)) or not all(is_number(v) for v in value):
        raise Mismatch(type_name(value))
    return tuple(plain_number(v) for v in value)


_LISTS: dict[str, Callable[[Argument, Any], Any]] = {
    "int": _int_list, "SymInt": _int_list, "Tensor": _tensor_list, "float": _float_list, "bool": _bool_list,
    "Scalar": _scalar_list,
}  # fmt: skip


def _is_float(value: Any) -> bool:
    return is_number(value) and not isinstance(value, complex)


_SINGLE: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any]]] = {
    "Tensor": (lambda v: isinstance(v, Tensor), _same),
    "int": (is_int, _one_int),
    "SymInt": (is_int, _one_int),
    "float": (_is_float, lambda v: float(plain_number(v))),
    "bool": (lambda v: isinstance(v, (bool, np.bool_)), bool),
    "Scalar": (is_number, plain_number),
    "ScalarType": (
        lambda v: isinstance(v, dtype) or (isinstance(v, type) and v in _PYTHON_DTYPES),
        lambda v: v if isinstance(v, dtype) else _PYTHON_DTYPES[v],
    ),
    "Device": (lambda v: isinstance(v, (device, str)) or is_int(v), device),
    "str": (lambda v: isinstance(v, str), _same),
    "Generator": (lambda v: hasattr(v, "initial_seed"), _same),  # the class is declared above this room
}

_NAMES = {
    "Scalar": "Number", "SymInt": "int", "ScalarType": "torch.dtype", "Device": "torch.device",
    "Layout": "torch.layout", "MemoryFormat": "torch.memory_format", "Generator": "torch.Generator",
    "Storage": "torch.Storage",
}  # fmt: skip


def expected_name(argument: Argument) -> str:
    """How PyTorch names what an argument must be."""
    name = _NAMES.get(argument.type, argument.type)
    if argument.listed:
        return f"tuple of {name}s"
    return name
