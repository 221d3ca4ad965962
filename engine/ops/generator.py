"""``torch.Generator``: where random numbers come from; one per device is the default one.

On the CPU it is PyTorch's own stream (:mod:`stridescope.engine.kernels.mersenne`), on cuda that of the device's
kernels (:mod:`stridescope.engine.devices.cuda_generator`).
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from stridescope.engine.device import CPU, device
from stridescope.engine.devices.cuda_generator import CudaGenerator
from stridescope.engine.devices.registry import device_at
from stridescope.engine.dtype import uint8
from stridescope.engine.kernels.mersenne import STATE_BYTES, Stream
from stridescope.engine.tensor import Tensor, fresh

_SIGNED, _UNSIGNED = range(-(1 << 63), 0), range(1 << 64)


class Generator:
    """A source of random numbers on a device."""

    def __init__(self, device: Any = "cpu") -> None:
        self.device = _place(device)
        self.source: Stream | CudaGenerator = (
            Stream() if self.device.type == "cpu" else CudaGenerator(device_at(self.device.index or 0).properties)
        )

    @classmethod
    def over(cls, source: Any, on: device) -> Generator:
        """The generator object of a source that exists already."""
        made: Generator = object.__new__(cls)
        made.device, made.source = on, source
        return made

    def manual_seed(self, seed: Any) -> Generator:
        """Begin the sequence of a seed."""
        number = checked_seed(seed)
        if isinstance(self.source, Stream):
            self.source.seed_with(number)
        else:
            self.source.manual_seed(number)
        return self

    def seed(self) -> int:
        """Begin the sequence of an unforeseeable seed, and return it."""
        number = secrets.randbits(63 if self.device.type == "cpu" else 53)
        self.manual_seed(number)
        return number

    def initial_seed(self) -> int:
        """The seed that the sequence began with."""
        return self.source.seed

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes."""
        data = self.source.to_bytes() if isinstance(self.source, Stream) else self.source.state()
        return fresh(np.frombuffer(data, np.uint8).copy(), uint8)

    def set_state(self, new_state: Tensor) -> Generator:
        """Go back to a state."""
        data = state_bytes(new_state)
        if isinstance(self.source, Stream):
            if len(data) != STATE_BYTES:
                raise RuntimeError(
                    f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be "
                    f"{len(data)}"
                )
            self.source.from_bytes(data)
        else:
            self.source.set_state(data)
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        copy = Generator(self.device)
        copy.set_state(self.get_state())
        return copy

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"


Generator.__module__ = "torch._C"


def _place(where: Any) -> device:
    found = device(where)
    if found.type not in ("cpu", "cuda"):
        raise RuntimeError(f"{found.type.upper()} device type not an accelerator.")
    return device("cuda", 0) if found.type == "cuda" and found.index is None else found


def checked_seed(seed: Any) -> int:
    """The seed as PyTorch takes it: what ``int`` makes of it, in 64 bits, negative ones wrapped."""
    number = int(seed.item() if isinstance(seed, Tensor) else seed)
    if number not in _UNSIGNED and number not in _SIGNED:
        raise ValueError("Overflow when unpacking long long")
    return number % (1 << 64)


def state_bytes(state: Any) -> bytes:
    """The bytes of a state tensor; raises TypeError when it is none."""
    if not isinstance(state, Tensor) or state.dtype is not uint8:
        raise TypeError("RNG state must be a torch.ByteTensor")
    return bytes(np.ascontiguousarray(state._array))


default_generator = Generator()


def source_for(generator: Generator | None, on: device) -> Any:
    """The source of a call: the given generator's, or that of the device."""
    if generator is None:
        return default_generator.source if on is CPU else device_at(on.index or 0).generator
    if generator.device.type != on.type:
        raise RuntimeError(f"Expected a '{on.type}' device type for generator but found '{generator.device.type}'")
    return generator.source
