"""Operands of an op stand on one device; numbers of 0 dims on the CPU go along with a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.device import CPU, device
from stridescope.engine.tensor import Tensor


def one_device(operands: Sequence[Any]) -> device:
    """The device of these operands; 0-d CPU tensors go along with a GPU. Raises RuntimeError when they differ."""
    found: device = CPU
    chosen = False
    for operand in operands:
        if isinstance(operand, Tensor) and operand.device is not found:
            if operand.device is CPU and not operand._array.ndim and chosen:
                continue
            if chosen and not (found is CPU and _only_scalars(operands)):
                if "meta" in {operand.device.type for operand in operands if isinstance(operand, Tensor)}:
                    raise RuntimeError(_strays(operands))
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"{_first(operands)} and {_other(operands)}!"
                )
            found = operand.device
        chosen = chosen or (isinstance(operand, Tensor) and bool(operand._array.ndim or operand.device is not CPU))
    return found


def _strays(operands: Sequence[Any]) -> str:
    """Say which operand is elsewhere, as PyTorch's shape-only kernels do."""
    devices = [operand.device for operand in operands if isinstance(operand, Tensor)]
    stray = next(each for each in devices if each is not devices[0])
    return f"Tensor on device {stray} is not on the expected device {devices[0]}!"


def _only_scalars(operands: Sequence[Any]) -> bool:
    return all(not o._array.ndim for o in operands if isinstance(o, Tensor) and o.device is CPU)


def _first(operands: Sequence[Any]) -> device:
    devices = [o.device for o in operands if isinstance(o, Tensor)]
    return next((d for d in devices if d is not CPU), CPU)


def _other(operands: Sequence[Any]) -> device:
    first = _first(operands)
    return next((o.device for o in operands if isinstance(o, Tensor) and o.device is not first), CPU)
