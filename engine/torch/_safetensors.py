"""``safetensors.torch`` over the engine's tensors.

The library's own module hands ``data_ptr()`` to native code. Ours are symbolic, so the bytes go through NumPy here;
reading and checking the file stays the library's work.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from stridescope.engine import dtype as dtypes
from stridescope.engine.device import device as device_of
from stridescope.engine.tensor import Tensor, from_array

Path = str | os.PathLike[str]
# The format's names of dtypes (its README, "Format").
DTYPES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "U16": dtypes.uint16, "I16": dtypes.int16,
    "U32": dtypes.uint32, "I32": dtypes.int32, "U64": dtypes.uint64, "I64": dtypes.int64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
}  # fmt: skip


def _library() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError("safetensors files need the library: pip install safetensors") from None
    return safetensors


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The file's bytes; raises ValueError for what is no tensor, is not contiguous, or shares its memory."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if not tensor.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It "
                             "either "
                             "means you are trying to save tensors which are reference of each other in which case "
                             "it's "
                             "recommended to save only the full tensors, and reslice at load time, or simply call "
                             "`.contiguous()` on your tensor to pack it before saving.")  # fmt: skip
    _refuse_shared(tensors)
    data: bytes = _library().numpy.save({n: t.detach().cpu()._array for n, t in tensors.items()}, metadata)
    return data


def _refuse_shared(tensors: Mapping[str, Tensor]) -> None:
    names: dict[Any, list[str]] = {}
    for name, tensor in tensors.items():
        if tensor.numel():
            names.setdefault(tensor.storage_, []).append(name)
    shared = [set(group) for group in names.values() if len(group) > 1]
    if shared:
        raise RuntimeError(f"\n            Some tensors share memory, this will lead to duplicate memory on disk and "
                           f"potential differences when loading them again: {shared}.\n            A potential way to "
                           "correctly save your model is to use `save_model`.\n            More information at "
                           "https://huggingface.co/docs/safetensors/torch_shared_tensors\n            ")  # fmt: skip


def save_file(tensors: dict[str, Tensor], filename: Path, metadata: dict[str, str] | None = None) -> None:
    """Write the tensors into a file."""
    data = save(tensors, metadata)
    with open(filename, "wb") as file:
        file.write(data)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a file's bytes; raises SafetensorError when they are no whole file."""
    return {name: _tensor(part) for name, part in _library().deserialize(data)}


def _tensor(part: dict[str, Any]) -> Tensor:
    kind = DTYPES.get(part["dtype"])
    if kind is None:
        raise NotImplementedError(f"safetensors of {part['dtype']} is not in Stridescope yet")
    return from_array(np.frombuffer(part["data"], kind.np).reshape(part["shape"]))


def load_file(filename: Path, device: str | int = "cpu") -> dict[str, Tensor]:
    """The tensors of a file, by name, on a device."""
    with open(filename, "rb") as file:
        found = load(file.read())
    where = device_of(device)
    return found if where.type == "cpu" else {name: tensor.to(where) for name, tensor in found.items()}


def save_model(
    model: Any, filename: Path, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Write a module's state; of tied tensors the first name is kept and the others are noted as metadata."""
    kept: dict[str, Tensor] = {}
    first: dict[Any, str] = {}
    notes = dict(metadata or {})
    for name, tensor in sorted(model.state_dict().items()):
        known = first.setdefault(tensor.storage_, name)
        if known != name:
            notes[name] = known
        else:
            kept[name] = tensor.contiguous() if force_contiguous else tensor
    save_file(kept, filename, notes)


def load_model(
    model: Any, filename: Path, strict: bool = True, device: str | int = "cpu"
) -> tuple[set[str], list[str]]:
    """Read a module's state; returns the names missing and unexpected, and raises RuntimeError for them when strict."""
    state = load_file(filename, device)
    own = model.state_dict()
    missing, unexpected = model.load_state_dict(state, strict=False)
    loaded = {own[name].storage_ for name in state if name in own}
    lacking = {name for name in missing if own[name].storage_ not in loaded}
    if strict and (lacking or unexpected):
        lines = [
            f"    {what} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(names))
            for what, names in (("Missing", lacking), ("Unexpected", unexpected))
            if names
        ]
        raise RuntimeError("\n".join([f"Error(s) in loading state_dict for {type(model).__name__}:", *lines]))
    return lacking, unexpected
