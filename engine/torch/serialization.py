"""``torch.save`` and ``torch.load``, in PyTorch's own zip format: files go to and from a real PyTorch.

A file holds ``data.pkl``, a pickle in which tensors name their storages, and one entry per storage. ``load`` reads
only tensors and plain containers unless ``weights_only=False`` says otherwise: a pickle may run any code.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from stridescope.engine.device import device
from stridescope.engine.dtype import DTYPES, dtype, scalar_name
from stridescope.engine.storage import Storage
from stridescope.engine.tensor import Size, Tensor
from stridescope.engine.torch._rebuild import rebuild_parameter, rebuild_tensor

ENGINE = "stridescope.engine."
STORAGES: dict[str, dtype] = {f"{scalar_name(kind)}Storage": kind for kind in DTYPES}
# What a weights-only file may name, besides storages and dtypes.
SAFE: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch", "Size"): Size,
    ("torch", "device"): device,
    ("torch", "Tensor"): Tensor,
    ("builtins", "set"): set,
    ("builtins", "complex"): complex,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "slice"): slice,
}
_allowed: dict[tuple[str, str], Any] = {}


class _Global:
    """Something that the pickle names as ``module name``."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *arguments: Any) -> Any:
        """Only for pickle, which insists that what it names can be called."""
        raise TypeError(f"{self.module}.{self.name} is a name in a file")


class _StorageRef:
    """A storage in the pickle, as the dtype sees it."""

    def __init__(self, storage: Storage, kind: dtype) -> None:
        self.storage, self.kind = storage, kind


class _Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Writes tensors as PyTorch names them; storages are kept aside, in ``storages``."""

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[Storage, str] = {}

    def persistent_id(self, obj: Any) -> Any:
        """Name a storage by its number."""
        if not isinstance(obj, _StorageRef):
            return None
        key = self.storages.setdefault(obj.storage, str(len(self.storages)))
        length = obj.storage.nbytes // obj.kind.itemsize
        return ("storage", _Global("torch", f"{scalar_name(obj.kind)}Storage"), key, str(obj.storage.device), length)

    def reducer_override(self, obj: Any) -> Any:
        """How tensors, dtypes and devices are written."""
        if isinstance(obj, Tensor):
            return _reduced(obj)
        if isinstance(obj, device):
            return _Global("torch", "device"), ((obj.type,) if obj.index is None else (obj.type, obj.index))
        if isinstance(obj, Size):
            return _Global("torch", "Size"), (tuple(obj),)
        return NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object; names of the engine become PyTorch's."""
        if isinstance(obj, dtype):
            obj = _Global("torch", obj.name)
        if isinstance(obj, _Global):
            self._save_name(obj.module, obj.name)
        else:
            super().save(obj, save_persistent_id)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a class or function by name."""
        module, name = obj.__module__, name or obj.__qualname__
        if module.startswith((ENGINE + "torch", "torch")):
            self._save_name(module.removeprefix(ENGINE), name)
        else:
            super().save_global(obj, name)

    def _save_name(self, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())


def _reduced(tensor: Tensor) -> tuple[Any, ...]:
    """A tensor as a call of PyTorch's rebuilding function."""
    if type(tensor).__name__ == "Parameter":
        plain = tensor.data
        return _Global("torch._utils", "_rebuild_parameter"), (plain, tensor.requires_grad, OrderedDict())
    sizes, strides, offset = tensor.layout_
    where = _StorageRef(tensor.storage_, tensor.dtype)
    grad = tensor._requires_grad and tensor._node is None
    arguments = (where, offset, tuple(sizes), tuple(strides), grad, OrderedDict())
    return _Global("torch._utils", "_rebuild_tensor_v2"), arguments


@contextlib.contextmanager
def _opened(f: Any, mode: str) -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, mode) as file:
            yield file
    else:
        yield f


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object with its tensors to a file; a view brings its whole storage along."""
    body = io.BytesIO()
    pickler = _Pickler(body, pickle_protocol)
    pickler.dump(obj)
    folder = os.path.splitext(os.path.basename(f))[0] if isinstance(f, (str, os.PathLike)) else "archive"
    with _opened(f, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{folder}/data.pkl", body.getvalue())
        archive.writestr(f"{folder}/byteorder", "little")
        for storage, key in pickler.storages.items():
            archive.writestr(f"{folder}/data/{key}", storage.raw.tobytes())
        archive.writestr(f"{folder}/version", "3\n")


class _Unpickler(pickle.Unpickler):
    """Reads what PyTorch or ``save`` wrote."""

    def __init__(self, body: bytes, read: Callable[[str], bytes], place: Callable[[str], device], safe: bool) -> None:
        super().__init__(io.BytesIO(body))
        self.read_storage, self.place, self.safe = read, place, safe
        self.storages: dict[str, Storage] = {}

    def persistent_load(self, pid: Any) -> Any:
        """The storage of a number, with its dtype and the device that its tensors go to."""
        kind_word, kind, key, location, _ = pid
        if kind_word != "storage":
            raise pickle.UnpicklingError(
                f"Unknown typename for persistent_load, expected 'storage' but got '{kind_word}'"
            )
        if key not in self.storages:
            self.storages[key] = Storage(np.frombuffer(self.read_storage(key), np.uint8).copy())
        return self.storages[key], kind, self.place(location)

    def find_class(self, module: str, name: str) -> Any:
        """What the pickle names; with ``safe`` only tensors and plain containers."""
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        found = SAFE.get((module, name)) or _allowed.get((module, name))
        if found is not None:
            return found
        if module == "torch" and (kind := {d.name: d for d in DTYPES}.get(name)) is not None:
            return kind
        if self.safe:
            raise pickle.UnpicklingError(_refusal(f"{module}.{name}"))
        if module == "torch" or module.startswith("torch."):
            return getattr(importlib.import_module(ENGINE + module), name)
        return super().find_class(module, name)


def _refusal(name: str) -> str:
    return (
        "Weights only load failed. This file can still be loaded, to do so you have two options, \x1b[1mdo those steps "
        "only if you trust the source of the checkpoint\x1b[0m. \n\t(1) In PyTorch 2.6, we changed the default value "
        "of the `weights_only` argument in `torch.load` from `False` to `True`. Re-running `torch.load` with "
        "`weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. Do it only "
        "if you got the file from a trusted source.\n\t(2) Alternatively, to load with `weights_only=True` please "
        "check the recommended steps in the following error message.\n\tWeightsUnpickler error: Unsupported global: "
        f"GLOBAL {name} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` "
        "context manager to allowlist this global if you trust "
        "this class/function.\n\nCheck the documentation of torch.load to learn more about types accepted by default "
        "with weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
    )


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **_pickle_options: Any,
) -> Any:
    """Read what ``save`` wrote; ``map_location`` says where the tensors go."""
    with _opened(f, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile:
            raise RuntimeError(
                "this is no zip file as torch.save writes it; files of PyTorch before 1.6 cannot be read here"
            ) from None
        with archive:
            folder = next(name for name in archive.namelist() if name.endswith("data.pkl"))[: -len("data.pkl")]
            reader = _Unpickler(
                archive.read(f"{folder}data.pkl"),
                lambda key: archive.read(f"{folder}data/{key}"),
                lambda location: _mapped(map_location, location),
                weights_only is not False,
            )
            return reader.load()


def _mapped(map_location: Any, location: str) -> device:
    if map_location is None:
        return device(location)
    if isinstance(map_location, dict):
        return device(map_location.get(location, location))
    if isinstance(map_location, (str, device)):
        return device(map_location)
    raise NotImplementedError("torch.load: map_location as a function; give a device, its name or a dict of names")


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let weights-only files name these classes and functions."""
    for item in safe_globals:
        _allowed[(item.__module__, item.__qualname__)] = item


def get_safe_globals() -> list[Any]:
    """What ``add_safe_globals`` allowed."""
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Take back what ``add_safe_globals`` allowed."""
    _allowed.clear()


@contextlib.contextmanager
def safe_globals(items: list[Any]) -> Iterator[None]:
    """Allow classes and functions inside a block."""
    before = dict(_allowed)
    add_safe_globals(items)
    try:
        yield
    finally:
        _allowed.clear()
        _allowed.update(before)
