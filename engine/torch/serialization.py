"""``torch.save`` and ``torch.load``: checkpoints in PyTorch's own file format, both ways."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from stridescope.engine.dtype import DTYPES, scalar_name, uint8
from stridescope.engine.ops.storage_objects import LEGACY, TypedStorage, UntypedStorage, handle
from stridescope.engine.storage import Storage
from stridescope.engine.torch import _legacy, _weights_only_unpickler
from stridescope.engine.torch._archive import ALIGNMENT, ArchiveReader, ArchiveWriter, folder_name, is_zip
from stridescope.engine.torch._location import restorer
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch._pickler import ROOM, CheckpointPickler
from stridescope.engine.torch._safetensors import load_file
from stridescope.engine.torch._weights_only_unpickler import Allowed

DEFAULT_PROTOCOL = 2
DTYPE_OF = {LEGACY[f"{scalar_name(kind)}Storage"]: kind for kind in DTYPES} | {UntypedStorage: uint8}
_UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)
_DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file, a path or anything with ``write``; real PyTorch can load it.

    Raises AttributeError when ``f`` is none of these, and RuntimeError when its folder does not exist.
    """
    if not (isinstance(f, (str, os.PathLike)) or hasattr(f, "write")):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    pickled = io.BytesIO()
    pickler = CheckpointPickler(pickled, pickle_protocol, legacy=not _use_new_zipfile_serialization)
    pickler.dump(obj)
    with _opened(f, "wb") as file:
        if not _use_new_zipfile_serialization:
            kept = enumerate(pickler.storages)
            parts = [(str(key), pickler.count(storage), storage.raw.tobytes()) for key, storage in kept]
            _legacy.write(file, pickled.getvalue(), parts, pickle_protocol)
            return
        archive = ArchiveWriter(file, folder_name(f))
        archive.record("data.pkl", pickled.getvalue())
        archive.record(".format_version", b"1")
        archive.record(".storage_alignment", str(ALIGNMENT).encode())
        if not _disable_byteorder_record:
            archive.record("byteorder", b"little")
        for key, storage in enumerate(pickler.storages):
            archive.record(f"data/{key}", storage.raw.tobytes())
        archive.close()


@contextlib.contextmanager
def _opened(f: Any, mode: str) -> Iterator[Any]:
    if not isinstance(f, (str, os.PathLike)):
        yield f
        return
    folder = os.path.dirname(os.path.abspath(f))
    if mode == "wb" and not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(f))} does not exist.")
    with open(f, mode) as file:
        yield file


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what ``save`` or real PyTorch has written.

    With ``weights_only`` (the default) only tensors, plain containers and what ``add_safe_globals`` was given are
    read; anything else raises UnpicklingError and nothing of the file is run. ``map_location`` is a device, a dict
    of locations, or a function from (storage, location) to a storage.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if isinstance(f, (str, os.PathLike)) and os.fspath(f).endswith(".safetensors"):
        return load_file(f, device="cpu" if map_location is None else str(map_location))
    with _opened(f, "rb") as file:
        if not is_zip(file):
            return _load_legacy(f, file, map_location, weights_only, bool(mmap), pickle_load_args)
        if mmap and not isinstance(f, (str, os.PathLike)):
            raise ValueError("f must be a file path in order to use the mmap argument")
        archive = ArchiveReader(file)
        if archive.has("constants.pkl"):
            raise NotImplementedError("torch.jit is not in Stridescope yet: this file is a TorchScript archive")
        return _unpickled(archive.record("data.pkl"), _Storages(archive, map_location), weights_only, pickle_load_args)


def _unpickled(data: bytes, storages: Any, weights_only: bool, options: dict[str, Any]) -> Any:
    """The object of a pickle; raises UnpicklingError with PyTorch's explanation for what is not allowed in it."""
    if not weights_only:
        return _Everything(data, storages, options).load()
    try:
        return _weights_only_unpickler.Unpickler(io.BytesIO(data), storages).load()
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(_explained(str(error))) from None


def _load_legacy(f: Any, file: Any, map_location: Any, weights_only: bool, mmap: bool, options: dict[str, Any]) -> Any:
    """Read a file of PyTorch before 1.6, or one saved with ``_use_new_zipfile_serialization=False``."""
    if mmap:
        place = f"{f}, " if isinstance(f, (str, os.PathLike)) else ""
        raise RuntimeError(
            f"mmap can only be used with files saved with `torch.save({place}_use_new_zipfile_serialization=True), "
            "please torch.save your checkpoint with this option in order to use mmap."
        )
    if _legacy.is_tar(file):
        if weights_only:
            raise RuntimeError(
                f"Cannot use ``weights_only=True`` with files saved in the legacy .tar format. {_UNSAFE}"
            )
        raise NotImplementedError(
            "torch.load of files in the .tar format of PyTorch before 0.1.10 is not in Stridescope yet: load it with "
            "PyTorch and save it again."
        )
    reader = _legacy.LegacyReader(file, lambda data: _unpickled(data, None, weights_only, options))
    storages = _LaterStorages(map_location)
    loaded = _unpickled(reader.pickled, storages, weights_only, options)
    storages.fill(reader)
    return loaded


def _weights_only(asked: bool | None, pickle_module: Any) -> bool:
    """What the argument, and the two environment variables that overrule it, come to."""
    force, never = (
        os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if force and never:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if force:
        return True
    if asked is None and never:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not "
            "explicitly passed to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None if asked is None else bool(asked)


def _explained(message: str) -> str:
    """Why a file was refused and what one can do, in PyTorch's words."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        return (
            "Weights only load failed. This file can still be loaded, to do so you have two options, \x1b[1mdo those "
            f"steps only if you trust the source of the checkpoint\x1b[0m. \n\t(1) {_UNSAFE}\n\t(2) Alternatively, to "
            "load with `weights_only=True` please check the recommended steps in the following error message.\n\t"
            f"WeightsUnpickler error: {message}{_DOCS}"
        )
    please = (
        "Please file an issue with the following so that we can make `weights_only=True` compatible with your use "
        "case: WeightsUnpickler error: "
    )
    blocked = re.search(r"whose module (\S+) is blocked", message)
    return f"Weights only load failed. {_UNSAFE}\n{'' if blocked else please}\n\n{message}{_DOCS}"


class _Storages:
    """Reads each storage of an archive once, to where it belongs."""

    def __init__(self, archive: ArchiveReader, map_location: Any) -> None:
        self.archive, self.restore = archive, restorer(map_location)
        self.swapped = archive.has("byteorder") and archive.record("byteorder") == b"big"
        self.found: dict[str, Any] = {}

    def __call__(self, saved: tuple[Any, ...]) -> Any:
        """The storage that a pickle names."""
        _, kind, key, location, count = saved
        if key not in self.found:
            element = DTYPE_OF[kind]
            data = np.frombuffer(self.archive.record(f"data/{key}"), np.uint8, count * element.itemsize).copy()
            if self.swapped:
                data = data.view(element.np).byteswap().view(np.uint8)
            placed = self.restore(handle(Storage(data)), location)
            typed = TypedStorage(wrap_storage=placed, dtype=element, _internal=True)
            self.found[key] = placed if kind is UntypedStorage else typed
        return self.found[key]


class _LaterStorages:
    """The storages of a legacy file, whose bytes come after the pickle: made blank, then filled."""

    def __init__(self, map_location: Any) -> None:
        self.restore = restorer(map_location)
        self.found: dict[str, tuple[Any, Any]] = {}

    def __call__(self, saved: tuple[Any, ...]) -> Any:
        """The storage that a pickle names; raises UnpicklingError for what is none."""
        _, kind, key, location, count, *view = saved
        element = DTYPE_OF[kind]
        if key not in self.found:
            blank = handle(Storage(np.zeros(count * element.itemsize, np.uint8)))
            self.found[key] = self.restore(blank, location), element
        placed = self.found[key][0]
        if view and view[0] is not None:
            raise NotImplementedError("torch.load of views of storages is not in Stridescope yet")
        return placed if kind is UntypedStorage else TypedStorage(wrap_storage=placed, dtype=element, _internal=True)

    def fill(self, reader: _legacy.LegacyReader) -> None:
        """Read the bytes of all storages."""
        contents = reader.read_storages({key: element.itemsize for key, (_, element) in self.found.items()})
        for key, (placed, element) in self.found.items():
            data = np.frombuffer(contents[key], np.uint8).copy()
            if reader.swapped:
                data = data.view(element.np).byteswap().view(np.uint8)
            if placed.device.type != "meta":
                placed.copy_(handle(Storage(data)))


class _Everything(pickle.Unpickler):
    """Reads a pickle that may name anything; what it names under ``torch`` is found in the engine."""

    def __init__(self, data: bytes, storages: Any, options: dict[str, Any]) -> None:
        super().__init__(io.BytesIO(data), **{"encoding": "utf-8", **options})
        self.storages = storages

    def find_class(self, module: str, name: str) -> Any:
        """A class or function by its name in the file; raises ImportError or AttributeError when there is none."""
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        found: Any = importlib.import_module(ROOM + module)
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def persistent_load(self, saved: tuple[Any, ...]) -> Any:
        """A storage; a legacy file may also name a module by its class and source, of which the class is taken."""
        return saved[1] if saved[0] == "module" else self.storages(saved)


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let ``load(weights_only=True)`` read objects of these classes and call these functions."""
    Allowed.globals = [*Allowed.globals, *safe_globals]


def get_safe_globals() -> list[Any]:
    """What was added to the list of harmless things."""
    return list(Allowed.globals)


def clear_safe_globals() -> None:
    """Forget everything that was added."""
    Allowed.globals = []


class safe_globals:
    """Adds to the list of harmless things inside a ``with`` block."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.added = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.added)

    def __exit__(self, *failure: object) -> None:
        Allowed.globals = [item for item in Allowed.globals if item not in self.added]


def _get_layout(name: str) -> Any:
    """The layout that a file names, such as ``torch.strided``."""
    return getattr(importlib.import_module("stridescope.engine.torch"), name.removeprefix("torch."))


__getattr__ = missing_from("torch.serialization")
__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
