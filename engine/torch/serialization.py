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
from stridescope.engine.torch import _weights_only_unpickler
from stridescope.engine.torch._archive import ALIGNMENT, ArchiveReader, ArchiveWriter, folder_name, is_zip
from stridescope.engine.torch._location import restorer
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
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("torch.save(_use_new_zipfile_serialization=False) is not in Stridescope yet")
    if not (isinstance(f, (str, os.PathLike)) or hasattr(f, "write")):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    pickled = io.BytesIO()
    pickler = CheckpointPickler(pickled, pickle_protocol)
    pickler.dump(obj)
    with _opened(f, "wb") as file:
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
            _refuse_old_format(file)
        archive = ArchiveReader(file)
        if archive.has("constants.pkl"):
            raise NotImplementedError("torch.jit is not in Stridescope yet: this file is a TorchScript archive")
        if not weights_only:
            return _Everything(archive, map_location, pickle_load_args).load()
        try:
            data = io.BytesIO(archive.record("data.pkl"))
            return _weights_only_unpickler.Unpickler(data, _Storages(archive, map_location)).load()
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(_explained(str(error))) from None


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


def _refuse_old_format(file: Any) -> None:
    if not file.read(1):
        raise EOFError
    raise RuntimeError(
        "This is no checkpoint in PyTorch's zip format. Files of PyTorch before 1.6 are not in Stridescope yet: load "
        "it with PyTorch and save it again."
    )


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


class _Everything(pickle.Unpickler):
    """Reads a pickle that may name anything; what it names under ``torch`` is found in the engine."""

    def __init__(self, archive: ArchiveReader, map_location: Any, options: dict[str, Any]) -> None:
        options.setdefault("encoding", "utf-8")
        super().__init__(io.BytesIO(archive.record("data.pkl")), **options)
        self.storages = _Storages(archive, map_location)

    def find_class(self, module: str, name: str) -> Any:
        """A class or function by its name in the file; raises ImportError or AttributeError when there is none."""
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        found: Any = importlib.import_module(ROOM + module)
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def persistent_load(self, saved: tuple[Any, ...]) -> Any:
        """A storage."""
        return self.storages(saved)


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


__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
