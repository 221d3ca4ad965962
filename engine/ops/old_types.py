"""The old tensor types: ``torch.FloatTensor``, ``tensor.type()``, ``tensor.new()``."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import CPU, device
from stridescope.engine.devices.registry import device_count
from stridescope.engine.dtype import DTYPES, dtype, scalar_name
from stridescope.engine.tensor import Tensor


class TensorType(type):
    """The type of ``torch.FloatTensor``: ``isinstance`` looks at dtype and device."""

    kind: dtype
    place: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.kind and instance.device.type == cls.place

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a tensor as the old constructors did: of sizes uninitialised, of a list its values."""
        if cls.place == "cuda" and not device_count():
            raise TypeError(
                f"type {cls.__module__}.{cls.__name__} not available. Torch not compiled with CUDA enabled."
            )
        return constructed(cls.kind, args, None if cls.place == "cpu" else device(cls.place))

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def constructed(kind: dtype, args: tuple[Any, ...], on: device | None) -> Tensor:
    """The tensor that ``torch.FloatTensor(*args)`` gives; where it is put is not for the default device to say."""
    from stridescope.engine.ops.creation import empty
    from stridescope.engine.ops.from_data import tensor

    on = on or CPU
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0].detach()  # type: ignore[no-any-return]
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and type(args[0]).__name__ != "Size":
        return tensor(args[0], dtype=kind, device=on)
    sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    if not all(isinstance(n, int) for n in sizes):
        return tensor(list(sizes[0]) if len(sizes) == 1 else sizes, dtype=kind, device=on)
    return empty.call(tuple(sizes), kind, None, on, None, False, None)  # type: ignore[no-any-return]


def _made(kind: dtype, place: str, module: str) -> TensorType:
    made = TensorType(f"{scalar_name(kind)}Tensor", (), {"__module__": module})
    made.kind, made.place = kind, place
    return made


CPU_TYPES: dict[str, TensorType] = {f"{scalar_name(d)}Tensor": _made(d, "cpu", "torch") for d in DTYPES}
CUDA_TYPES: dict[str, TensorType] = {f"{scalar_name(d)}Tensor": _made(d, "cuda", "torch.cuda") for d in DTYPES}


def type_text(tensor: Tensor) -> str:
    """The old name of a tensor's type, such as ``torch.FloatTensor``."""
    place = "" if tensor.device.type == "cpu" else f"{tensor.device.type}."
    return f"torch.{place}{scalar_name(tensor.dtype)}Tensor"


def _named(name: str) -> tuple[dtype, str]:
    kind, place = name.rpartition(".")[2], "cuda" if ".cuda." in name else "cpu"
    if not name.startswith("torch.") or kind not in CPU_TYPES:
        raise ValueError(f"invalid type: '{name}'")
    return CPU_TYPES[kind].kind, place


def as_type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The old name of the type, or the tensor in another type."""
    if dtype is None:
        return type_text(self)
    if isinstance(dtype, _DTYPE):
        return self.to(dtype)
    if isinstance(dtype, TensorType):
        kind, place = dtype.kind, dtype.place
    elif isinstance(dtype, (str, type)):
        kind, place = _named(dtype if isinstance(dtype, str) else dtype.__name__)
    else:
        raise TypeError("dtype must be a type, str, or dtype object")
    on = self.device if self.device.type == place else device(place)
    return self.to(on, kind)


_DTYPE = dtype


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The old ``tensor.new(…)``: a tensor of the same dtype and device."""
    return constructed(self.dtype, args or (0,), None if self.device is CPU else self.device)


METHODS: dict[str, Any] = {"type": as_type, "new": new}
