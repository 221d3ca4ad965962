"""Whether a Python number fits a dtype, with PyTorch's refusal where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dtype import INTEGER, dtype

C_TYPES = {
    "float32": "float", "float64": "double", "int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t",
    "uint8": "uint8_t", "bool": "bool", "float16": "at::Half", "bfloat16": "at::BFloat16", "uint16": "uint16_t",
    "uint32": "uint32_t", "uint64": "uint64_t",
}  # fmt: skip


def check_number(value: Any, kind: dtype) -> None:
    """Raise RuntimeError for a number that the dtype cannot hold; a negative one may wrap around in an unsigned."""
    if isinstance(value, complex):
        if value.imag and not kind.is_complex:
            raise RuntimeError(f"value cannot be converted to type {C_TYPES[kind.name]} without overflow")
        return
    if kind.category != INTEGER or not isinstance(value, (int, float)) or isinstance(value, bool):
        return
    limits = np.iinfo(kind.np)
    low = -int(limits.max) if kind.name.startswith("uint") else int(limits.min)
    if value != value or not low <= value <= limits.max:
        raise RuntimeError(f"value cannot be converted to type {C_TYPES[kind.name]} without overflow")
